//! Static checks of a module: the rules of NVIDIA's verifier, each with its class.
//!
//! Contract, for the operations of [`super::Op`]: NVIDIA's verifier accepts a module without faults and refuses one with
//! faults, first for the reason of the first fault. Modules that no text can express are safe to check too: every index
//! is checked before use. Source: verification rules of the open dialect (release 13.3) and, for later operations, the
//! messages of the released compiler.

mod access;
mod control;
mod plain;

use super::types::{Elem, Scalar, Tile, Type};
use super::{Block, Function, Hint, Hints, Instr, Module, NESTING, Op, RANK, Value};
use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident $name:literal),+ $(,)?) => {
        /// Why something is not a Tile IR program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $variant),+ }

        impl Reason {
            /// A short, stable name; the `rule` of a diagnostic.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name),+ }
            }

            /// The reason with this name.
            pub fn named(name: &str) -> Option<Reason> {
                match name { $($name => Some(Reason::$variant),)+ _ => None }
            }
        }
    };
}
reasons!(
    /// The text does not follow the grammar.
    Syntax "tile-syntax",
    /// A limit of the reader is exceeded.
    Limit "tile-limit",
    /// A name or value is undefined where it is used, or defined twice.
    Name "tile-name",
    /// An unknown operation.
    Operation "tile-operation",
    /// A word outside its vocabulary.
    Word "tile-word",
    /// An unknown type, or a type of the wrong kind.
    Type "tile-type",
    /// A value is missing.
    Value "tile-value",
    /// A value has another type than stated or needed.
    ValueType "tile-value-type",
    /// The wrong number or types of results.
    Results "tile-results",
    /// A number that its type cannot hold.
    Constant "tile-constant",
    /// Elements of the wrong type.
    ElementType "tile-element-type",
    /// Shapes that do not fit each other, or an invalid shape of a tile.
    Shape "tile-shape",
    /// Wrong extents, strides or dimensions of a view.
    ViewShape "tile-view-shape",
    /// A tile of another type than the tiles of the view.
    ViewTile "tile-view-tile",
    /// The wrong number of indices.
    IndexCount "tile-index-count",
    /// The wrong type of an index.
    IndexType "tile-index-type",
    /// An ordering that the operation cannot have.
    Ordering "tile-ordering",
    /// A strong access without scope.
    ScopeMissing "tile-scope-missing",
    /// A weak access with a scope, or a scope that the operation cannot have.
    ScopeUnwanted "tile-scope-unwanted",
    /// Fewer than two tokens to join.
    Tokens "tile-tokens",
    /// Something else where pointers are needed.
    Pointer "tile-pointer",
    /// Pointers to the wrong type.
    Pointee "tile-pointee",
    /// A mask with elements other than `i1`.
    Mask "tile-mask",
    /// A mask of the wrong shape.
    MaskShape "tile-mask-shape",
    /// Padding of another type than the loaded tile, or a padding value that the type does not have.
    Padding "tile-padding",
    /// An atomic operation that does not support the element type.
    AtomicType "tile-atomic-type",
    /// An atomic operation that is not allowed here.
    AtomicMode "tile-atomic-mode",
    /// A view with padding where none is allowed.
    PaddedView "tile-padded-view",
    /// Multicast memory where ordinary is needed, or the other way round.
    Multicast "tile-multicast",
    /// A block with a wrong terminator, or a misplaced terminator.
    Block "tile-block",
    /// An optimization hint given twice.
    Hint "tile-hint",
    /// A kernel with results or with parameters of a wrong type.
    Entry "tile-entry",
);

/// One broken rule with its place in the text (0 for generated operations).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The class of the rule.
    pub reason: Reason,
    /// The name of the function.
    pub function: String,
    /// The line, 1-based.
    pub line: u32,
    /// The column in bytes, 1-based.
    pub column: u32,
    /// The message.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} (in `@{}`)", self.line, self.column, self.message, self.function)
    }
}

/// Checks a module. Faults come in the order of its operations, at most one for each.
pub fn verify(module: &Module) -> Vec<Fault> {
    module.functions.iter().flat_map(function).collect()
}

/// The class of a broken rule and the message.
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
    /// Values that are in scope.
    defined: Vec<bool>,
    /// Values defined so far, in scope or not.
    seen: Vec<bool>,
    /// The constructs around the current block, innermost last.
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
            // Inner blocks are checked even if the operation is wrong. Results are defined only after them.
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
        self.rules(instr)
    }

    /// No hint is given twice.
    fn hinted(&self, _: &Instr, hints: &Hints) -> Checked {
        once(hints)
    }

    /// The type of an operand; `instr` has checked that it exists.
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

    /// The type of the only result.
    fn single(&self, instr: &Instr) -> Result<&'f Type, Broken> {
        match instr.results.as_slice() {
            [one] => Ok(self.ty(*one)),
            all => broken(Reason::Results, format!("one result is needed, there are {}", all.len())),
        }
    }

    /// Checks that the only result has type `want`.
    fn gives(&self, instr: &Instr, want: &Type) -> Checked {
        let ty = self.single(instr)?;
        if ty == want {
            return Ok(());
        }
        broken(Reason::Results, format!("the result has type `{want}`, not `{ty}`"))
    }
}

macro_rules! rules {
    ($(
        $(#[$doc:meta])*
        $variant:ident $(($only:ident: $only_ty:ty))? $({ $($field:ident: $ty:ty),+ })?
            [$($order:tt)*]
            $($word:literal = $code:literal $(@$since:ident)? $(with $set:ident = $value:expr)?;)+
            gives $gives:expr, $text:expr;
            rules [$($rule:ident($($given:ident),*)),*];
    )+) => {
        impl Check<'_> {
            /// Checks an operation by the rules of its entry, in their order.
            #[expect(unused_variables, reason = "a rule names the fields that it needs")]
            fn rules(&self, instr: &Instr) -> Checked {
                match &instr.op {
                    $(Op::$variant $(($only))? $({ $($field),+ })? => {
                        $(self.$rule(instr $(, $given)*)?;)*
                    })+
                }
                Ok(())
            }
        }
    };
}
operations!(rules);

/// Checks that no architecture and no hint is given twice.
fn once(hints: &Hints) -> Checked {
    let twice = |names: Vec<&String>| (1..names.len()).any(|i| names[..i].contains(&names[i]));
    let inner = |(_, all): &(String, Vec<(String, Hint)>)| twice(all.iter().map(|(name, _)| name).collect());
    if twice(hints.iter().map(|(arch, _)| arch).collect()) || hints.iter().any(inner) {
        return broken(Reason::Hint, "a hint is given twice");
    }
    Ok(())
}

/// Checks that extents of tiles are powers of two and views fit their tensors.
fn well_formed(ty: &Type) -> Checked {
    match ty {
        Type::Tile(tile) => tile_shape(&tile.shape).and_then(|()| tile_of_halves(tile)),
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
        return broken(Reason::Shape, format!("the extents of a tile are powers of two, {extent} is not"));
    }
    if shape.iter().fold(1u64, |n, d| n.saturating_mul(u64::from(*d))) > TILE_ELEMENTS {
        return broken(Reason::Shape, format!("a tile has at most {TILE_ELEMENTS} elements"));
    }
    Ok(())
}

/// Checks that half bytes come in pairs, and that pointers point to what memory can hold.
fn tile_of_halves(tile: &Tile) -> Checked {
    match tile.elem {
        Elem::Scalar(Scalar::F4E2M1FN) if tile.shape.iter().all(|d| d % 2 == 1) => {
            broken(Reason::Shape, format!("`{tile}` has no even number of elements"))
        }
        Elem::Pointer { to: Scalar::I4, .. } => {
            broken(Reason::ElementType, "memory has no elements `i4`".to_owned())
        }
        Elem::Pointer { to: Scalar::F4E2M1FN, .. } if !tile.shape.is_empty() => {
            broken(Reason::Shape, format!("`{tile}` has dimensions; half bytes are reached through views"))
        }
        Elem::Scalar(_) | Elem::Pointer { .. } => Ok(()),
    }
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
    if view.elem == Scalar::I4 {
        return broken(Reason::ElementType, format!("a tensor in memory has no elements `{}`", view.elem));
    }
    Ok(())
}

fn tile_view(view: &super::TileView) -> Checked {
    tensor(&view.tensor)?;
    tile_shape(&view.tile)?;
    tile_of_halves(&view.loaded())?;
    let rank = view.tensor.shape.len();
    if view.tile.is_empty() || view.tile.len() != rank || view.dim_map.len() != rank {
        return broken(Reason::ViewShape, "tile, tensor and map have the same number of dimensions, not 0");
    }
    if view.steps.as_ref().is_some_and(|s| s.len() != rank || s.contains(&0)) {
        return broken(Reason::ViewShape, "traversal strides are positive, one for each dimension");
    }
    if view.sparse.is_some_and(|dimension| dimension as usize >= rank) {
        return broken(Reason::ViewShape, "a view gathers along a dimension of its tensor");
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
