//! What is statically wrong with a module: the rules of NVIDIA's verifier, each with its class.
//!
//! Contract: a module without faults is one that the verifier takes, for the operations of [`super::Op`]; one with
//! faults is refused, first for the reason of the first fault. Also sound for modules that no text could give: nothing
//! is indexed before it was looked at. Source: verification rules of the open dialect (release 13.3) and, for later
//! operations, what the released compiler says.

mod access;
mod control;
mod plain;

use super::types::{Elem, Scalar, Tile, Type};
use super::{Block, Function, Hint, Hints, Instr, Module, NESTING, Op, RANK, Value};
use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident $name:literal),+ $(,)?) => {
        /// Why something is no Tile IR program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $variant),+ }

        impl Reason {
            /// Short and stable; the `rule` of a diagnostic.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name),+ }
            }

            /// What that name means.
            pub fn named(name: &str) -> Option<Reason> {
                match name { $($name => Some(Reason::$variant),)+ _ => None }
            }
        }
    };
}
reasons!(
    /// The text does not follow the grammar.
    Syntax "tile-syntax",
    /// More of something than is read.
    Limit "tile-limit",
    /// A name is not defined, or twice, or not where it is used.
    Name "tile-name",
    /// No such operation.
    Operation "tile-operation",
    /// A word that is none of its vocabulary.
    Word "tile-word",
    /// No such type, or a type of another kind.
    Type "tile-type",
    /// A value is missing.
    Value "tile-value",
    /// A value has another type than is said or needed.
    ValueType "tile-value-type",
    /// The number or the types of results.
    Results "tile-results",
    /// A number that its type cannot hold.
    Constant "tile-constant",
    /// Elements of the wrong type.
    ElementType "tile-element-type",
    /// Shapes that do not fit each other, or no shape of a tile.
    Shape "tile-shape",
    /// Extents, strides or dimensions of a view.
    ViewShape "tile-view-shape",
    /// A tile of another type than the view's.
    ViewTile "tile-view-tile",
    /// The number of indices.
    IndexCount "tile-index-count",
    /// The type of an index.
    IndexType "tile-index-type",
    /// An ordering that the operation cannot have.
    Ordering "tile-ordering",
    /// A strong access without scope.
    ScopeMissing "tile-scope-missing",
    /// A weak access with one, or a scope that the operation cannot have.
    ScopeUnwanted "tile-scope-unwanted",
    /// Fewer than two tokens to join.
    Tokens "tile-tokens",
    /// Pointers are needed.
    Pointer "tile-pointer",
    /// Pointers to something else.
    Pointee "tile-pointee",
    /// A mask that is none.
    Mask "tile-mask",
    /// A mask of another shape.
    MaskShape "tile-mask-shape",
    /// Padding of another type than what is loaded, or for a type that has no such value.
    Padding "tile-padding",
    /// An atomic operation on elements that it does not work with.
    AtomicType "tile-atomic-type",
    /// An atomic operation that is none here.
    AtomicMode "tile-atomic-mode",
    /// A view with padding where none is allowed.
    PaddedView "tile-padded-view",
    /// Multicast memory where ordinary is needed, or the other way round.
    Multicast "tile-multicast",
    /// A block that does not end as it must, or an end where none can be.
    Block "tile-block",
    /// A hint for the compiler that is given twice.
    Hint "tile-hint",
    /// A kernel with results, or with parameters that none can have.
    Entry "tile-entry",
);

/// One thing that is wrong, with its place in the text (0 for generated operations).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its class.
    pub reason: Reason,
    /// Which function.
    pub function: String,
    /// 1-based.
    pub line: u32,
    /// 1-based, in bytes.
    pub column: u32,
    /// In words.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} (in `@{}`)", self.line, self.column, self.message, self.function)
    }
}

/// What is wrong with the module, in the order of its operations; at most one fault each.
pub fn verify(module: &Module) -> Vec<Fault> {
    module.functions.iter().flat_map(function).collect()
}

/// A rule that is broken, and what to say.
type Broken = (Reason, String);
type Checked = Result<(), Broken>;

fn broken<T>(reason: Reason, message: impl Into<String>) -> Result<T, Broken> {
    Err((reason, message.into()))
}

fn function(function: &Function) -> Vec<Fault> {
    let mut check = Check {
        function,
        defined: vec![false; function.types.len()],
        seen: vec![false; function.types.len()],
        frames: Vec::new(),
        faults: Vec::new(),
    };
    if let Err(broken) = check.head() {
        check.report(0, 0, broken);
    } else {
        check.frames.push(control::Frame::Function);
        check.block(&function.body);
    }
    check.faults
}

/// State of the walk through one function.
struct Check<'f> {
    function: &'f Function,
    /// Values that can be used here.
    defined: Vec<bool>,
    /// Values that were defined anywhere before.
    seen: Vec<bool>,
    /// What the present block is inside of.
    frames: Vec<control::Frame>,
    faults: Vec<Fault>,
}

impl<'f> Check<'f> {
    fn head(&self) -> Checked {
        let function = self.function;
        for ty in &function.types {
            well_formed(ty)?;
        }
        once(&function.hints)?;
        if !function.entry {
            return Ok(());
        }
        if !function.results.is_empty() {
            return broken(Reason::Entry, "a kernel returns nothing");
        }
        for param in &function.body.params {
            match function.ty(*param) {
                Some(Type::Tile(tile)) if tile.shape.is_empty() => {}
                Some(other) => {
                    let message =
                        format!("a parameter of a kernel is a tile without dimensions, not `{other}`");
                    return broken(Reason::Entry, message);
                }
                None => return broken(Reason::Name, "a parameter is no value of the function"),
            }
        }
        Ok(())
    }

    fn report(&mut self, line: u32, column: u32, (reason, message): Broken) {
        let function = self.function.name.clone();
        self.faults.push(Fault { reason, function, line, column, message });
    }

    fn block(&mut self, block: &Block) {
        let mut made = Vec::new();
        if let Err(broken) = self.define(&block.params, &mut made) {
            self.report(0, 0, broken);
        }
        for (i, instr) in block.ops.iter().enumerate() {
            let last = i + 1 == block.ops.len();
            let checked = self.instr(instr, last);
            let sound = checked.is_ok();
            if let Err(broken) = checked {
                self.report(instr.line, instr.column, broken);
            }
            // Blocks are looked at even where something else is wrong, and results are there only after them.
            if self.frames.len() <= NESTING {
                for inner in instr.op.blocks() {
                    self.frames.push(control::Frame::of(instr));
                    self.block(inner);
                    self.frames.pop();
                }
            }
            let defined = self.define(&instr.results, &mut made);
            if let Err(broken) = defined
                && sound
            {
                self.report(instr.line, instr.column, broken);
            }
        }
        if !block.ops.last().is_some_and(|i| i.op.ends_block()) {
            self.report(0, 0, (Reason::Block, "a block does not end with a terminator".into()));
        }
        for value in made {
            self.defined[value.index()] = false;
        }
    }

    fn define(&mut self, values: &[Value], made: &mut Vec<Value>) -> Checked {
        for value in values {
            match self.seen.get_mut(value.index()) {
                Some(seen) if !*seen => *seen = true,
                Some(_) => return broken(Reason::Name, "a value is defined twice"),
                None => return broken(Reason::Name, "a result is no value of the function"),
            }
            self.defined[value.index()] = true;
            made.push(*value);
        }
        Ok(())
    }

    fn instr(&self, instr: &Instr, last: bool) -> Checked {
        if self.frames.len() > NESTING {
            return broken(Reason::Limit, format!("blocks are nested deeper than {NESTING}"));
        }
        if instr.op.ends_block() && !last {
            return broken(Reason::Block, "a terminator stands before the end of its block");
        }
        for value in instr.op.operands() {
            if !self.defined.get(value.index()).copied().unwrap_or(false) {
                return broken(Reason::Name, "a value is used where it is not defined");
            }
        }
        for value in &instr.results {
            if self.function.ty(*value).is_none() {
                return broken(Reason::Name, "a result is no value of the function");
            }
        }
        match &instr.op {
            Op::LoadPtr { hints, .. }
            | Op::StorePtr { hints, .. }
            | Op::LoadView { hints, .. }
            | Op::StoreView { hints, .. } => once(hints)?,
            _ => {}
        }
        if let Some(checked) = self.plain(instr) {
            return checked;
        }
        if let Some(checked) = self.access(instr) {
            return checked;
        }
        self.control(instr)
    }

    /// The type of an operand; operands were looked at before.
    fn ty(&self, value: Value) -> &'f Type {
        self.function.ty(value).unwrap_or(&Type::Token)
    }

    fn tile(&self, value: Value) -> Result<&'f Tile, Broken> {
        match self.ty(value) {
            Type::Tile(tile) => Ok(tile),
            other => broken(Reason::ValueType, format!("a tile is needed, not `{other}`")),
        }
    }

    fn integers(&self, value: Value) -> Result<&'f Tile, Broken> {
        let tile = self.tile(value)?;
        match tile.elem.scalar() {
            Some(scalar) if scalar.integer() => Ok(tile),
            _ => broken(Reason::ElementType, format!("integers are needed, not `{tile}`")),
        }
    }

    fn token(&self, token: Option<Value>) -> Checked {
        match token.map(|t| self.ty(t)) {
            None | Some(Type::Token) => Ok(()),
            Some(other) => broken(Reason::ValueType, format!("a token is needed, not `{other}`")),
        }
    }

    /// The only result.
    fn single(&self, instr: &Instr) -> Result<&'f Type, Broken> {
        match instr.results.as_slice() {
            [one] => Ok(self.ty(*one)),
            all => broken(Reason::Results, format!("one result is needed, there are {}", all.len())),
        }
    }

    /// The only result, which has type `want`.
    fn gives(&self, instr: &Instr, want: &Type) -> Checked {
        let ty = self.single(instr)?;
        if ty == want {
            return Ok(());
        }
        broken(Reason::Results, format!("the result has type `{want}`, not `{ty}`"))
    }
}

/// No architecture and no hint stands there twice.
fn once(hints: &Hints) -> Checked {
    let twice = |names: Vec<&String>| (1..names.len()).any(|i| names[..i].contains(&names[i]));
    let inner = |(_, all): &(String, Vec<(String, Hint)>)| twice(all.iter().map(|(name, _)| name).collect());
    if twice(hints.iter().map(|(arch, _)| arch).collect()) || hints.iter().any(inner) {
        return broken(Reason::Hint, "a hint is given twice");
    }
    Ok(())
}

/// Shapes are small powers of two, views fit their tensors.
fn well_formed(ty: &Type) -> Checked {
    match ty {
        Type::Tile(tile) => tile_shape(&tile.shape),
        Type::Tensor(view) => tensor(view),
        Type::View(view) => tile_view(view),
        Type::Token | Type::Bare(_) => Ok(()),
    }
}

/// Most elements of a tile.
const TILE_ELEMENTS: u64 = 1 << 24;

fn tile_shape(shape: &[u32]) -> Checked {
    if shape.len() > RANK {
        return broken(Reason::Limit, format!("a tile has more than {RANK} dimensions"));
    }
    if let Some(extent) = shape.iter().find(|d| !d.is_power_of_two()) {
        return broken(Reason::Shape, format!("the extents of a tile are powers of two, {extent} is none"));
    }
    if shape.iter().fold(1u64, |n, d| n.saturating_mul(u64::from(*d))) > TILE_ELEMENTS {
        return broken(Reason::Shape, format!("a tile has at most {TILE_ELEMENTS} elements"));
    }
    Ok(())
}

fn tensor(view: &super::TensorView) -> Checked {
    if view.shape.len() != view.strides.len() {
        let message = format!("{} extents and {} strides", view.shape.len(), view.strides.len());
        return broken(Reason::ViewShape, message);
    }
    let known = view.shape.iter().chain(&view.strides).flatten();
    if known.into_iter().any(|n| *n == 0 || i64::try_from(*n).is_err()) {
        return broken(Reason::ViewShape, "extents and strides are positive and fit 64 bits with sign");
    }
    if view.elem == Scalar::I1 || view.elem.bits() < 8 {
        return broken(Reason::ElementType, format!("a tensor in memory has no elements `{}`", view.elem));
    }
    Ok(())
}

fn tile_view(view: &super::TileView) -> Checked {
    tensor(&view.tensor)?;
    tile_shape(&view.tile)?;
    let rank = view.tensor.shape.len();
    if view.tile.is_empty() || view.tile.len() != rank || view.dim_map.len() != rank {
        return broken(Reason::ViewShape, "tile, tensor and map have the same number of dimensions, not 0");
    }
    if view.steps.as_ref().is_some_and(|s| s.len() != rank || s.contains(&0)) {
        return broken(Reason::ViewShape, "traversal strides are positive, one for each dimension");
    }
    let mut used = vec![false; rank];
    for dimension in &view.dim_map {
        match used.get_mut(*dimension as usize) {
            Some(used) if !*used => *used = true,
            _ => return broken(Reason::ViewShape, "the map names each dimension once"),
        }
    }
    use super::Padding;
    let float_only = !matches!(view.padding, None | Some(Padding::Zero));
    if float_only && Elem::Scalar(view.tensor.elem).scalar().is_some_and(Scalar::integer) {
        return broken(Reason::Padding, "integers are padded with zero only");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
