//! Types of Tile IR values, and their text.
//!
//! Source: type system chapter of the Tile IR specification. Left out: views that gather and scatter.

use super::words::Padding;
use std::fmt;

macro_rules! scalars {
    ($($variant:ident $name:literal $code:literal $bits:literal $class:ident),+ $(,)?) => {
        /// A type of one element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "their names say what they are")]
        pub enum Scalar { $($variant),+ }

        impl Scalar {
            /// All there are.
            pub const ALL: &'static [Scalar] = &[$(Scalar::$variant),+];

            /// As texts have it.
            pub fn name(self) -> &'static str {
                match self { $(Scalar::$variant => $name),+ }
            }

            /// Tag in the bytecode.
            pub fn code(self) -> u8 {
                match self { $(Scalar::$variant => $code),+ }
            }

            /// Bits of a value; `tf32` is kept in 32 of which 19 count.
            pub fn bits(self) -> u32 {
                match self { $(Scalar::$variant => $bits),+ }
            }

            /// Whether it is an integer.
            pub fn integer(self) -> bool {
                match self { $(Scalar::$variant => scalars!(@ $class)),+ }
            }
        }
    };
    (@ int) => { true };
    (@ float) => { false };
}
scalars!(
    I1 "i1" 0 1 int,
    I8 "i8" 1 8 int,
    I16 "i16" 2 16 int,
    I32 "i32" 3 32 int,
    I64 "i64" 4 64 int,
    F16 "f16" 5 16 float,
    BF16 "bf16" 6 16 float,
    F32 "f32" 7 32 float,
    TF32 "tf32" 8 32 float,
    F64 "f64" 9 64 float,
    F8E4M3FN "f8E4M3FN" 10 8 float,
    F8E5M2 "f8E5M2" 11 8 float,
    F8E8M0FNU "f8E8M0FNU" 18 8 float,
    F4E2M1FN "f4E2M1FN" 19 4 float,
    I4 "i4" 22 4 int,
);

impl Scalar {
    /// What that tag means.
    pub fn from_code(code: u8) -> Option<Scalar> {
        Self::ALL.iter().copied().find(|s| s.code() == code)
    }

    /// What that word means.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Self::ALL.iter().copied().find(|s| s.name() == name)
    }

    /// Bytes of an element in memory.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// All bits a value may have set.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits().min(64))
    }
}

/// What a tile holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Elem {
    /// Numbers.
    Scalar(Scalar),
    /// Addresses of numbers.
    Pointer {
        /// What it points to.
        to: Scalar,
        /// It names all replicas of a multicast object.
        multicast: bool,
    },
}

impl Elem {
    /// Addresses of numbers in ordinary memory.
    pub fn pointer(to: Scalar) -> Elem {
        Elem::Pointer { to, multicast: false }
    }

    /// The number type, where it is one.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Elem::Scalar(scalar) => Some(scalar),
            Elem::Pointer { .. } => None,
        }
    }
}

/// Elements in a grid whose extents are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    /// Of each element.
    pub elem: Elem,
    /// Extents; none for a scalar.
    pub shape: Vec<u32>,
}

impl Tile {
    /// One element.
    pub fn scalar(elem: Elem) -> Tile {
        Tile { elem, shape: Vec::new() }
    }

    /// How many elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |n, d| n.saturating_mul(u64::from(*d)))
    }

    /// The same shape with other elements.
    pub fn of(&self, elem: Elem) -> Tile {
        Tile { elem, shape: self.shape.clone() }
    }
}

/// A tensor in memory: extents and strides, in elements; `None` where only the program knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorView {
    /// Of each element.
    pub elem: Scalar,
    /// Extents.
    pub shape: Vec<Option<u64>>,
    /// Distances between neighbours.
    pub strides: Vec<Option<u64>>,
    /// It lies in all replicas of a multicast object.
    pub multicast: bool,
}

/// A tensor cut into tiles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileView {
    /// How far apart tiles start, where they are not side by side.
    pub steps: Option<Vec<u32>>,
    /// Extents of a tile.
    pub tile: Vec<u32>,
    /// What is cut.
    pub tensor: TensorView,
    /// Dimension of the tensor for each of the tile.
    pub dim_map: Vec<u32>,
    /// What is read outside the tensor.
    pub padding: Option<Padding>,
}

impl TileView {
    /// What one load from it gives.
    pub fn loaded(&self) -> Tile {
        Tile { elem: Elem::Scalar(self.tensor.elem), shape: self.tile.clone() }
    }

    /// Whether dimensions are in order.
    pub fn identity_map(&self) -> bool {
        self.dim_map.iter().zip(0..).all(|(d, i)| *d == i) && self.dim_map.len() == self.tile.len()
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// Numbers or addresses.
    Tile(Tile),
    /// A place in the order of memory operations.
    Token,
    /// A tensor in memory.
    Tensor(TensorView),
    /// A tensor cut into tiles.
    View(TileView),
    /// A bare number; only parameters of functions in tests have it.
    Bare(Scalar),
}

impl Type {
    /// One number.
    pub fn scalar(scalar: Scalar) -> Type {
        Type::Tile(Tile::scalar(Elem::Scalar(scalar)))
    }

    /// One address.
    pub fn pointer(to: Scalar) -> Type {
        Type::Tile(Tile::scalar(Elem::pointer(to)))
    }

    /// Numbers in a row.
    pub fn row(scalar: Scalar, length: u32) -> Type {
        Type::Tile(Tile { elem: Elem::Scalar(scalar), shape: vec![length] })
    }

    /// The tile, where it is one.
    pub fn tile(&self) -> Option<&Tile> {
        match self {
            Type::Tile(tile) => Some(tile),
            _ => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Scalar(scalar) => scalar.fmt(f),
            Elem::Pointer { to, multicast: false } => write!(f, "ptr<{to}>"),
            Elem::Pointer { to, multicast: true } => write!(f, "ptr<{to}, <multicast>>"),
        }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tile<")?;
        self.shape.iter().try_for_each(|d| write!(f, "{d}x"))?;
        write!(f, "{}>", self.elem)
    }
}

/// `2,3` with a question mark for what is not known.
pub(crate) fn extents(list: &[Option<u64>]) -> String {
    let each = list.iter().map(|d| d.map_or("?".to_owned(), |d| d.to_string()));
    each.collect::<Vec<_>>().join(",")
}

fn numbers(list: &[u32], between: &str) -> String {
    list.iter().map(u32::to_string).collect::<Vec<_>>().join(between)
}

impl fmt::Display for TensorView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tensor_view<")?;
        for extent in &self.shape {
            match extent {
                Some(n) => write!(f, "{n}x")?,
                None => write!(f, "?x")?,
            }
        }
        write!(f, "{}", self.elem)?;
        if !self.shape.is_empty() || !self.strides.is_empty() {
            write!(f, ", strides=[{}]", extents(&self.strides))?;
        }
        if self.multicast {
            write!(f, ", #cuda_tile.ptr_attr<multicast>")?;
        }
        write!(f, ">")
    }
}

impl fmt::Display for TileView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.steps.is_some() { "strided_view" } else { "partition_view" };
        write!(f, "{kind}<tile=({}), ", numbers(&self.tile, "x"))?;
        if let Some(steps) = &self.steps {
            write!(f, "traversal_strides=[{}], ", numbers(steps, ","))?;
        }
        if let Some(padding) = self.padding {
            write!(f, "padding_value = {}, ", padding.word())?;
        }
        write!(f, "{}", self.tensor)?;
        if !self.identity_map() {
            write!(f, ", dim_map=[{}]", numbers(&self.dim_map, ", "))?;
        }
        write!(f, ">")
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tile(tile) => tile.fmt(f),
            Type::Token => f.write_str("token"),
            Type::Tensor(tensor) => tensor.fmt(f),
            Type::View(view) => view.fmt(f),
            Type::Bare(scalar) => scalar.fmt(f),
        }
    }
}
