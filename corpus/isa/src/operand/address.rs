//! Operands in brackets: addresses, descriptors or addresses, boxes of tensors, coordinates of textures and surfaces.

use super::list::{Must, Never};
use super::value::{bytes_behind, symbol, value};
use super::{Braces, List, Part, Piece, Shown, Value, Width};
use crate::kinds::Space;
use crate::text::{Cursor, Refusal};

/// `[base + offset]`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// A register, a variable or a number.
    pub base: Value,
    /// Bytes behind it.
    pub offset: i64,
    /// Where the variable lives, if it is one and that is known.
    pub home: Option<Space>,
}

impl Address {
    fn inside(at: &mut Cursor<'_, '_>, space: Option<Space>, width: Width) -> Result<Address, Refusal> {
        at.rest();
        let start = at.at;
        let refuse = |message: String| Err(Refusal { at: start, message, hint: None });
        let (base, home) = match symbol(at)? {
            Some((index, home)) => (Value::Symbol(index, 0), home),
            None => (value(at, width)?, None),
        };
        if home.zip(space).is_some_and(|(home, space)| !space.reaches(home)) {
            return refuse("the variable is in another state space".into());
        }
        if matches!(base, Value::Imm(_))
            && space.is_none_or(|space| space != Space::Local)
            && width != Width::Any
        {
            return refuse("a number is an address in .local alone".into());
        }
        let offset = bytes_behind(at)?;
        Ok(Address { base, offset, home })
    }

    /// Whether it names a variable that lives elsewhere.
    #[must_use]
    pub fn strays(&self, space: Space) -> bool {
        self.home.is_some_and(|home| home != space)
    }
}

impl Shown for Address {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Mark("["));
        see(Piece::Value(&self.base));
        if self.offset != 0 {
            see(Piece::Mark("+"));
            see(Piece::Value(&Value::Imm(self.offset)));
        }
        see(Piece::Mark("]"));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(&mut self.base);
    }
}

/// `[base + offset]` in tensor memory: columns and lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorAddress(pub Address);

impl Shown for TensorAddress {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        self.0.pieces(see);
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.0.values(change);
    }
}

impl Part for TensorAddress {
    /// What registers fit.
    type Spec = Width;
    fn read(at: &mut Cursor<'_, '_>, width: Width) -> Result<TensorAddress, Refusal> {
        at.next()?;
        at.want("[")?;
        let address = Address::inside(at, None, width)?;
        if address.home.is_some() {
            return at.fail("the variable is not in tensor memory".into());
        }
        at.want("]")?;
        Ok(TensorAddress(address))
    }
    fn fits(&self, width: Width) -> bool {
        self.0.base.reg().is_none_or(|reg| width.fits(reg.class))
    }
}

impl Part for Address {
    /// State space of the access: a variable must live there.
    type Spec = Space;
    fn read(at: &mut Cursor<'_, '_>, space: Space) -> Result<Address, Refusal> {
        at.next()?;
        at.want("[")?;
        let address = Address::inside(at, Some(space), Width::Base)?;
        at.want("]")?;
        Ok(address)
    }
}

/// `[base + offset]`, and `.unified` behind it: the address is the same on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unified {
    /// The address.
    pub address: Address,
    /// Whether `.unified` stands.
    pub unified: bool,
}

impl std::ops::Deref for Unified {
    type Target = Address;
    fn deref(&self) -> &Address {
        &self.address
    }
}

impl Shown for Unified {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        self.address.pieces(see);
        if self.unified {
            see(Piece::Mark(".unified"));
        }
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.address.values(change);
    }
}

impl Part for Unified {
    type Spec = Space;
    fn read(at: &mut Cursor<'_, '_>, space: Space) -> Result<Unified, Refusal> {
        let address = Address::read(at, space)?;
        let unified = at.eat(".unified");
        if unified && address.base.reg().is_none() {
            return at.fail("`.unified` stands behind a register".into());
        }
        Ok(Unified { address, unified })
    }
}

/// A factor of a product: a descriptor or a list of registers, or an address in tensor memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Factor {
    /// A descriptor, or registers.
    Values(List),
    /// An address in tensor memory.
    Tensor(TensorAddress),
}

impl Factor {
    /// Whether it is an address in tensor memory.
    #[must_use]
    pub fn is_tensor(&self) -> bool {
        matches!(self, Factor::Tensor(_))
    }

    /// Whether it is registers in braces.
    #[must_use]
    pub fn is_registers(&self) -> bool {
        matches!(self, Factor::Values(list) if list.braced)
    }
}

impl Shown for Factor {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        match self {
            Factor::Values(list) => list.pieces(see),
            Factor::Tensor(address) => address.pieces(see),
        }
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        match self {
            Factor::Values(list) => list.values(change),
            Factor::Tensor(address) => address.values(change),
        }
    }
}

impl Part for Factor {
    /// How many registers may stand instead of a descriptor.
    type Spec = Option<usize>;
    fn read(at: &mut Cursor<'_, '_>, registers: Self::Spec) -> Result<Factor, Refusal> {
        if at.begins("[") {
            return TensorAddress::read(at, Width::Int(32)).map(Factor::Tensor);
        }
        match registers.filter(|_| at.begins("{")) {
            Some(count) => List::read(at, (count, Width::Bits(32), Must)),
            None => List::read(at, (1, Width::Int(64), Never)),
        }
        .map(Factor::Values)
    }
    fn fits(&self, registers: Self::Spec) -> bool {
        match self {
            Factor::Tensor(_) => true,
            Factor::Values(list) if list.braced => Some(list.items.len()) == registers,
            Factor::Values(list) => list.fits((1, Width::Int(64), Never)),
        }
    }
}

/// `[map, {coordinates}]`, with what overrides the map between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Map; then, where they override it: address, dimensions, strides with one more dimension; then the coordinates.
    pub parts: Vec<List>,
}

impl Shown for Tensor {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Mark("["));
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                see(Piece::Mark(", "));
            }
            part.pieces(see);
        }
        see(Piece::Mark("]"));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.parts.iter_mut().for_each(|part| part.values(change));
    }
}

impl Part for Tensor {
    /// Kinds of parts: how many elements, of which width, whether in braces.
    type Spec = Vec<(usize, Width, Braces)>;
    fn read(at: &mut Cursor<'_, '_>, spec: Self::Spec) -> Result<Tensor, Refusal> {
        at.next()?;
        at.want("[")?;
        let outside = std::mem::replace(&mut at.count, 0);
        let parts = spec.into_iter().map(|spec| List::read(at, spec)).collect::<Result<Vec<_>, _>>()?;
        at.count = outside;
        // Dimensions and strides that override those of a map are registers; coordinates, the last part, may be numbers.
        let coordinates = parts.len() - 1;
        let number = |(i, part): (usize, &List)| part.is_numbers() && (i < coordinates || !part.braced);
        if parts.iter().enumerate().any(number) {
            return at.fail("a register stands here".into());
        }
        at.want("]")?;
        Ok(Tensor { parts })
    }
    fn fits(&self, spec: Self::Spec) -> bool {
        self.parts.len() == spec.len() && self.parts.iter().zip(spec).all(|(part, spec)| part.fits(spec))
    }
}

/// `[texture, sampler, {coordinates}]`: any parts, which nobody interprets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// Objects and coordinates.
    pub parts: Vec<List>,
}

impl Shown for Sampled {
    fn pieces(&self, see: &mut dyn FnMut(Piece<'_>)) {
        see(Piece::Mark("["));
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                see(Piece::Mark(", "));
            }
            part.pieces(see);
        }
        see(Piece::Mark("]"));
    }
    fn values(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.parts.iter_mut().for_each(|part| part.values(change));
    }
}

impl Part for Sampled {
    /// How many coordinates there are, 0 for none; what they fit; whether a sampler may stand between.
    type Spec = (usize, Width, bool);
    fn read(at: &mut Cursor<'_, '_>, (count, width, sampler): Self::Spec) -> Result<Sampled, Refusal> {
        at.next()?;
        at.want("[")?;
        let outside = std::mem::replace(&mut at.count, 0);
        let mut parts = Vec::new();
        while !at.peek("]") {
            let braced = at.begins("{");
            let object = (1, if parts.is_empty() { Width::Int(64) } else { width }, Never);
            parts.push(List::read(at, if braced { (count, width, Must) } else { object })?);
        }
        at.count = outside;
        at.want("]")?;
        let least = 1 + usize::from(count > 0);
        let number = |part: &List| !part.braced && part.is_numbers();
        if !(least..=least + usize::from(sampler)).contains(&parts.len()) || parts.iter().any(number) {
            return at.fail("an object stands here, and behind it the coordinates".into());
        }
        Ok(Sampled { parts })
    }
    fn fits(&self, (count, ..): Self::Spec) -> bool {
        self.parts.iter().all(|part| !part.braced || part.items.len() == count)
    }
}
