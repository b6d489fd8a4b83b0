//! Tensors in memory, cut into tiles: the address of each element of a tile.
//!
//! Dimension `d` of a tile lies along dimension `dim_map[d]` of the tensor. Element `i` of the tile at index `k` has the
//! coordinate `k * step + i` there; the step is the length of the tile unless the view has its own steps. A view that
//! gathers has a row for each index of its sparse dimension and the step 1 along the others (as NVIDIA's compiler has it).
//! Indices, extents and strides are natural numbers. An element with a coordinate beyond the extent is outside: a load
//! gives the padding of the view, or an unspecified value if it has none, and a store does nothing. A wrong promise that a
//! tile is inside has no meaning: it is refused, or the address is wrong if the index comes from memory. A tensor in
//! multicast memory lies in each replica.
//!
//! Where an index comes from memory, so do addresses, and a mask says which elements are inside.
//!
//! Elements of four bits are packed along the dimension whose stride is one, the even one in the low half of the byte. An
//! access to both is one to their byte; one to half a byte is refused, since the text does not say what it does to the other
//! half. Source: Tile IR specification, types of views.

use super::value::{Held, Lane, register_type};
use super::{Block, Done, ELEMENTS};
use crate::{Instr, Op, Padding, Place, Scalar, Sign, TensorView, TileView, Type, Value};
use moire_program::Refusal;
use moire_program::ir::{Address, AluOp, CmpOp, Op as Code, Operand, Reg};
use std::collections::BTreeMap;

/// A tensor in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    /// The start address in each replica.
    bases: Vec<Address>,
    extents: Vec<u64>,
    /// Distances between neighbours, in elements.
    strides: Vec<u64>,
}

/// The elements of a tile with one coordinate along a dimension.
#[derive(Clone, Copy)]
struct Row {
    /// The coordinate, or what it is beside an index from memory.
    at: u128,
    /// A register that holds an index from memory, and how far the coordinate goes with it.
    index: Option<(Reg, u64)>,
    /// Whether it is inside, or the register that says so.
    inside: Result<bool, Reg>,
    stride: u64,
}

/// Where an element of a tile lies.
pub(super) struct Spot {
    /// Its address in each replica; none outside.
    pub(super) places: Vec<Address>,
    /// A register that says whether it is inside.
    pub(super) mask: Option<Reg>,
}

/// Where the elements of a tile lie.
pub(super) struct Spots {
    /// In row-major order of the elements, or of the pairs.
    pub(super) all: Vec<Spot>,
    pub(super) elem: Scalar,
    /// The elements that share a byte, the one in its low half first.
    pub(super) pairs: Option<Vec<[usize; 2]>>,
}

/// Registers that several elements of a tile share: by what they are made of.
#[derive(Default)]
struct Shared {
    products: BTreeMap<(Reg, u64), Reg>,
    bases: BTreeMap<(usize, Vec<Reg>), Reg>,
    masks: BTreeMap<Vec<Reg>, Reg>,
}

/// Runs an operation that makes a view. Returns whether it was one.
pub(super) fn views(b: &mut Block<'_, '_>, instr: &Instr) -> Done<bool> {
    let tensor = if let Op::TensorView { base, shape, strides } = &instr.op {
        tensor(b, instr, *base, shape, strides)?
    } else if let Op::PartitionView { tensor } | Op::StridedView { tensor } | Op::GatherView { tensor } =
        &instr.op
    {
        tensor_of(b, *tensor)?.clone()
    } else {
        return Ok(false);
    };
    b.define(instr, 0, Held::Tensor(tensor));
    Ok(true)
}

fn tensor(b: &Block<'_, '_>, instr: &Instr, base: Value, shape: &[Value], strides: &[Value]) -> Done<Tensor> {
    let ty = instr.results.first().and_then(|v| b.shared.function.ty(*v));
    let Some(Type::Tensor(TensorView { shape: extents, strides: steps, multicast, .. })) = ty else {
        return b.refuse("a tensor of another type");
    };
    let Some(Lane::Pointer(base)) = b.lanes(base)?.first().copied() else {
        return b.refuse("a tensor that does not start at a pointer");
    };
    let extents = filled(b, extents, shape)?;
    let strides = filled(b, steps, strides)?;
    Ok(Tensor { bases: replicas(b, base, *multicast)?, extents, strides })
}

/// The same address in all replicas of a multicast object.
fn replicas(b: &Block<'_, '_>, base: Address, multicast: bool) -> Done<Vec<Address>> {
    if !multicast {
        return Ok(vec![base]);
    }
    let symbol = if let Operand::Address(symbol) = base.base { Some(symbol) } else { None };
    let Some(others) = symbol.and_then(|s| b.shared.replicas.get(&s.0)) else {
        return b.refuse("a multicast address that is no parameter");
    };
    let others = others.iter().map(|s| Address { base: Operand::Address(*s), ..base });
    Ok(std::iter::once(base).chain(others).collect())
}

/// The numbers of the type, with open ones replaced by the values in turn.
fn filled(b: &Block<'_, '_>, of_type: &[Option<u64>], open: &[Value]) -> Done<Vec<u64>> {
    let mut open = open.iter();
    let from_memory = "a tensor whose extents or strides come from memory";
    let one = |known: &Option<u64>| match known {
        Some(known) => Ok(*known),
        None => match open.next() {
            Some(value) => natural(b, *value, from_memory),
            None => b.refuse("a tensor without all its extents and strides"),
        },
    };
    of_type.iter().map(one).collect()
}

/// The known number in a scalar; refuses `what` if it is not known.
fn natural(b: &Block<'_, '_>, value: Value, what: &str) -> Done<u64> {
    let bits = b.lanes(value)?.first().and_then(|lane| lane.bits());
    match bits.and_then(|b| u64::try_from(b).ok()) {
        Some(number) => Ok(number),
        None => b.refuse(what),
    }
}

fn tensor_of<'b>(b: &'b Block<'_, '_>, value: Value) -> Done<&'b Tensor> {
    match b.held(value)? {
        Held::Tensor(tensor) => Ok(tensor),
        Held::Tile(_) | Held::Token(_) => b.refuse("a tile or a token as a view"),
    }
}

fn view_type<'b>(b: &'b Block<'_, '_>, value: Value) -> Done<&'b TileView> {
    match b.shared.function.ty(value) {
        Some(Type::View(view)) if view.loaded().elements() <= ELEMENTS => Ok(view),
        Some(Type::View(_)) => Err(Refusal::Bounded(format!("a tile of more than {ELEMENTS} elements"))),
        _ => b.refuse("a value that is no view in tiles"),
    }
}

/// The places of the elements of a tile.
pub(super) fn tile_at(b: &mut Block<'_, '_>, place: &Place) -> Done<Spots> {
    let (view, tensor) = (view_type(b, place.view)?.clone(), tensor_of(b, place.view)?.clone());
    let mut axes = Vec::new();
    for (d, index) in place.index.iter().enumerate().take(view.tile.len()) {
        axes.push(axis(b, (&view, &tensor), place, (d, *index))?);
    }
    if axes.len() != view.tile.len() {
        return b.refuse("a tile of a view without all its indices");
    }
    let elem = view.tensor.elem;
    if axes.iter().flatten().any(|row| row.index.is_some()) {
        reaches_end(b, &tensor, elem)?;
    }
    let count = view.tile.iter().map(|n| *n as usize).product();
    let pairs =
        if elem.bits() < 8 && elem != Scalar::I1 { Some(packed(b, &view, &axes, count)?) } else { None };
    let firsts = match &pairs {
        Some(pairs) => pairs.iter().map(|pair| pair[0]).collect(),
        None => (0..count).collect::<Vec<usize>>(),
    };
    let (mut shared, mut all) = (Shared::default(), Vec::new());
    for at in firsts {
        let rows = coordinates(&axes, at);
        all.push(element(b, &mut shared, &tensor.bases, &rows, elem)?);
    }
    Ok(Spots { all, elem, pairs })
}

/// The elements of a tile that share a byte. A pair lies inside its tensor or outside.
fn packed(b: &Block<'_, '_>, view: &TileView, axes: &[Vec<Row>], count: usize) -> Done<Vec<[usize; 2]>> {
    let unit = |d: &usize| {
        let along = view.dim_map.get(*d).and_then(|along| view.tensor.strides.get(*along as usize));
        along == Some(&Some(1))
    };
    let Some((d, axis)) = (0..axes.len()).find(unit).and_then(|d| Some((d, axes.get(d)?))) else {
        return b.refuse("a tensor of half bytes without a stride of one");
    };
    let halves = |pair: &[Row]| {
        let [low, high] = pair else { return true };
        low.at % 2 == 1 || low.index.is_some_and(|(_, step)| step % 2 == 1) || low.inside != high.inside
    };
    if axis.len() % 2 == 1 || axis.chunks(2).any(halves) {
        return b.refuse("an access to half a byte");
    }
    // The distance between neighbours along that dimension.
    let apart: usize = axes.iter().skip(d + 1).map(Vec::len).product();
    let even = |at: &usize| (at / apart.max(1) % axis.len()).is_multiple_of(2);
    Ok((0..count).filter(even).map(|at| [at, at + apart]).collect())
}

/// The rows along dimension `d` of a tile.
fn axis(
    b: &mut Block<'_, '_>,
    (view, tensor): (&TileView, &Tensor),
    place: &Place,
    (d, index): (usize, Value),
) -> Done<Vec<Row>> {
    let length = view.tile.get(d).copied().unwrap_or(1);
    let along = view.dim_map.get(d).map(|along| *along as usize);
    let found = along.and_then(|along| tensor.extents.get(along).zip(tensor.strides.get(along)));
    let Some((extent, stride)) = found else {
        return b.refuse("a view with more dimensions than its tensor");
    };
    let gathers = view.sparse.is_some_and(|sparse| sparse as usize == d);
    let usual = if view.sparse.is_some() { 1 } else { length };
    let step = u64::from(view.steps.as_ref().and_then(|s| s.get(d)).copied().unwrap_or(usual));
    let promised = place.inbounds.get(d).copied().unwrap_or(false);
    let lanes = b.lanes(index)?;
    let mut limits: BTreeMap<(Reg, u64), Reg> = BTreeMap::new();
    let mut rows = Vec::new();
    for i in 0..length {
        let (number, first) = if gathers { (i as usize, 0) } else { (0, i) };
        let Some(lane) = lanes.get(number).copied() else { return b.refuse("an index without elements") };
        let row = Row { at: u128::from(first), index: None, inside: Ok(true), stride: *stride };
        let row = match b.number(lane)? {
            Operand::Imm(_) => {
                let at = lane.bits().unwrap_or_default() * u128::from(step) + row.at;
                Row { at, inside: Ok(at < u128::from(*extent)), ..row }
            }
            Operand::Reg(reg) => {
                // The index for which the coordinate reaches the extent.
                let limit = extent.saturating_sub(u64::from(first)).div_ceil(step.max(1));
                let inside = match limits.get(&(reg, limit)) {
                    _ if limit == 0 => Ok(false),
                    _ if promised => Ok(true),
                    Some(known) => Err(*known),
                    None => {
                        let dst = b.fresh("p")?;
                        let (a, with) = (Operand::Reg(reg), Operand::Imm(i128::from(limit)));
                        let ty = register_type(Scalar::I64, Sign::Unsigned);
                        b.push(Code::Setp { op: CmpOp::Lt, ty, dst, a, b: with })?;
                        limits.insert((reg, limit), dst);
                        Err(dst)
                    }
                };
                Row { index: Some((reg, step)), inside, ..row }
            }
            Operand::Address(_) => return b.refuse("an address as an index"),
        };
        if promised && row.inside == Ok(false) {
            return b.refuse("a tile that lies outside its tensor against its `inbounds` promise");
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The memory behind the tensor is as long as the tensor.
fn reaches_end(b: &mut Block<'_, '_>, tensor: &Tensor, elem: Scalar) -> Done<()> {
    let steps = tensor.extents.iter().zip(&tensor.strides);
    let last = steps.map(|(n, s)| u128::from(n.saturating_sub(1)) * u128::from(*s));
    let last = last.fold(0u128, u128::saturating_add).saturating_mul(u128::from(elem.stored_bits())) / 8;
    for base in &tensor.bases {
        let offset = i32::try_from(last).ok().and_then(|last| base.offset.checked_add(last));
        match offset {
            Some(offset) => b.reaches(base.base, offset, elem.bytes())?,
            None => return b.refuse("an offset this large"),
        }
    }
    Ok(())
}

/// The rows that element number `at` lies in.
fn coordinates(axes: &[Vec<Row>], mut at: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for axis in axes.iter().rev() {
        rows.extend(axis.get(at % axis.len().max(1)).copied());
        at /= axis.len().max(1);
    }
    rows
}

fn element(
    b: &mut Block<'_, '_>,
    shared: &mut Shared,
    bases: &[Address],
    rows: &[Row],
    elem: Scalar,
) -> Done<Spot> {
    if rows.iter().any(|row| row.inside == Ok(false)) {
        return Ok(Spot { places: Vec::new(), mask: None });
    }
    let mask = shared.mask(b, rows.iter().filter_map(|row| row.inside.err()).collect())?;
    let offset = rows.iter().try_fold(0u128, |sum, row| {
        row.at.checked_mul(u128::from(row.stride)).and_then(|further| sum.checked_add(further))
    });
    let bits = offset.and_then(|o| o.checked_mul(u128::from(elem.stored_bits())));
    let offset = bits.and_then(|bits| i32::try_from(bits / 8).ok());
    let mut whole = bits.is_none_or(|bits| bits % 8 == 0);
    let mut products = Vec::new();
    for row in rows {
        if let Some((index, step)) = row.index {
            let bits =
                step.checked_mul(row.stride).and_then(|f| f.checked_mul(u64::from(elem.stored_bits())));
            let Some(bits) = bits else { return b.refuse("an offset this large") };
            whole &= bits % 8 == 0;
            products.push(shared.product(b, index, bits / 8)?);
        }
    }
    if !whole {
        return b.refuse("an access to half a byte");
    }
    let mut places = Vec::new();
    for (number, base) in bases.iter().enumerate() {
        let Some(offset) = offset.and_then(|offset| base.offset.checked_add(offset)) else {
            return b.refuse("an offset this large");
        };
        places.push(Address { base: shared.base(b, (number, base.base), &products)?, offset });
    }
    Ok(Spot { places, mask })
}

impl Shared {
    /// An index multiplied by a constant.
    fn product(&mut self, b: &mut Block<'_, '_>, index: Reg, factor: u64) -> Done<Reg> {
        if let Some(known) = self.products.get(&(index, factor)) {
            return Ok(*known);
        }
        let dst = b.fresh("i")?;
        let (a, with) = (Operand::Reg(index), Operand::Imm(i128::from(factor)));
        let ty = register_type(Scalar::I64, Sign::Unsigned);
        b.push(Code::Alu { op: AluOp::Mul, ty, dst, a, b: with })?;
        self.products.insert((index, factor), dst);
        Ok(dst)
    }

    /// A base moved by products.
    fn base(
        &mut self,
        b: &mut Block<'_, '_>,
        (number, base): (usize, Operand),
        products: &[Reg],
    ) -> Done<Operand> {
        let Some((last, front)) = products.split_last() else { return Ok(base) };
        let key = (number, products.to_vec());
        if let Some(known) = self.bases.get(&key) {
            return Ok(Operand::Reg(*known));
        }
        let a = self.base(b, (number, base), front)?;
        let dst = b.fresh("a")?;
        let ty = register_type(Scalar::I64, Sign::Unsigned);
        b.push(Code::Alu { op: AluOp::Add, ty, dst, a, b: Operand::Reg(*last) })?;
        self.bases.insert(key, dst);
        Ok(Operand::Reg(dst))
    }

    /// The register that holds where all of these hold.
    fn mask(&mut self, b: &mut Block<'_, '_>, all: Vec<Reg>) -> Done<Option<Reg>> {
        let Some((last, front)) = all.split_last() else { return Ok(None) };
        if let Some(known) = self.masks.get(&all) {
            return Ok(Some(*known));
        }
        let Some(a) = self.mask(b, front.to_vec())? else { return Ok(Some(*last)) };
        let dst = b.fresh("p")?;
        let (a, with) = (Operand::Reg(a), Operand::Reg(*last));
        b.push(Code::Alu { op: AluOp::And, ty: register_type(Scalar::I8, Sign::Unsigned), dst, a, b: with })?;
        self.masks.insert(all, dst);
        Ok(Some(dst))
    }
}

/// The value that a load gives outside the tensor.
pub(super) fn padding(b: &Block<'_, '_>, place: &Place) -> Done<Lane> {
    let view = view_type(b, place.view)?;
    match view.padding.map(|p| pattern(p, view.tensor.elem)) {
        None => Ok(Lane::Nothing),
        // Both halves of a byte.
        Some(Some(bits)) if view.tensor.elem.stored_bits() < 8 => Ok(Lane::known(bits << 4 | bits)),
        Some(Some(bits)) => Ok(Lane::known(bits)),
        Some(None) => b.refuse("this padding of a view"),
    }
}

/// The bits of a padding value; `None` if the type has no such value or several bit patterns for it.
fn pattern(padding: Padding, elem: Scalar) -> Option<u128> {
    let sign = 1u128 << (elem.bits() - 1);
    let infinity: u128 = match elem {
        Scalar::F16 => 0x7c00,
        Scalar::BF16 => 0x7f80,
        Scalar::F32 | Scalar::TF32 => 0x7f80_0000,
        Scalar::F64 => 0x7ff0 << 48,
        _ => 0,
    };
    match padding {
        Padding::Zero => Some(0),
        Padding::NegZero if !elem.integer() => Some(sign),
        Padding::PosInf if infinity > 0 => Some(infinity),
        Padding::NegInf if infinity > 0 => Some(infinity | sign),
        Padding::NegZero | Padding::PosInf | Padding::NegInf | Padding::Nan => None,
    }
}
