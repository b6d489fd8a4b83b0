//! Types of Tile IR values, and how they print.
//!
//! Source: type system chapter of the Tile IR specification.

use super::words::Padding;
use std::fmt;

macro_rules! scalars {
    ($($variant:ident $name:literal $code:literal $bits:literal $class:ident),+ $(,)?) => {
        /// A type of one element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "their names say what they are")]
        pub enum Scalar { $($variant),+ }

        impl Scalar {
            /// All scalar types.
            pub const ALL: &'static [Scalar] = &[$(Scalar::$variant),+];

            /// The name in texts.
            pub fn name(self) -> &'static str {
                match self { $(Scalar::$variant => $name),+ }
            }

            /// The tag in the bytecode.
            pub fn code(self) -> u8 {
                match self { $(Scalar::$variant => $code),+ }
            }

            /// The width in bits. A `tf32` takes 32 bits, of which 19 count.
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
    /// The type with this tag.
    pub fn from_code(code: u8) -> Option<Scalar> {
        Self::ALL.iter().copied().find(|s| s.code() == code)
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Self::ALL.iter().copied().find(|s| s.name() == name)
    }

    /// The size of an element in memory, in bytes.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Bits of memory from one element of a tensor to the next.
    pub fn stored_bits(self) -> u32 {
        if self == Scalar::I1 { 8 } else { self.bits() }
    }

    /// A mask of the bits that a value may have set.
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits().min(64))
    }
}

/// The element type of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Elem {
    /// A number.
    Scalar(Scalar),
    /// The address of a number.
    Pointer {
        /// The type it points to.
        to: Scalar,
        /// Whether it names all replicas of a multicast object.
        multicast: bool,
    },
}

impl Elem {
    /// A pointer to ordinary memory.
    pub fn pointer(to: Scalar) -> Elem {
        Elem::Pointer { to, multicast: false }
    }

    /// The scalar type, if the elements are numbers.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Elem::Scalar(scalar) => Some(scalar),
            Elem::Pointer { .. } => None,
        }
    }
}

/// An array of elements with known extents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    /// The element type.
    pub elem: Elem,
    /// The extents; empty for a scalar.
    pub shape: Vec<u32>,
}

impl Tile {
    /// A tile of one element and no dimensions.
    pub fn scalar(elem: Elem) -> Tile {
        Tile { elem, shape: Vec::new() }
    }

    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().fold(1, |n, d| n.saturating_mul(u64::from(*d)))
    }

    /// A tile of the same shape with other elements.
    pub fn of(&self, elem: Elem) -> Tile {
        Tile { elem, shape: self.shape.clone() }
    }
}

/// A tensor in memory. Extents and strides count elements; `None` is an extent or stride given by an operand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorView {
    /// The element type.
    pub elem: Scalar,
    /// The extents.
    pub shape: Vec<Option<u64>>,
    /// The distance between neighbours in each dimension.
    pub strides: Vec<Option<u64>>,
    /// Whether it lies in all replicas of a multicast object.
    pub multicast: bool,
}

/// A tensor cut into tiles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileView {
    /// The distance between the starts of neighbouring tiles, for a strided view. Otherwise tiles are side by side.
    pub steps: Option<Vec<u32>>,
    /// The extents of a tile.
    pub tile: Vec<u32>,
    /// The tensor that is cut.
    pub tensor: TensorView,
    /// For each dimension of the tile, the dimension of the tensor it lies along.
    pub dim_map: Vec<u32>,
    /// The dimension of which a tile has any rows, for a view that gathers and scatters.
    pub sparse: Option<u32>,
    /// The value that a load gives outside the tensor.
    pub padding: Option<Padding>,
}

impl TileView {
    /// The type of the tile that one load gives.
    pub fn loaded(&self) -> Tile {
        Tile { elem: Elem::Scalar(self.tensor.elem), shape: self.tile.clone() }
    }

    /// Whether dimension `i` of the tile is dimension `i` of the tensor.
    pub fn identity_map(&self) -> bool {
        self.dim_map.iter().zip(0..).all(|(d, i)| *d == i) && self.dim_map.len() == self.tile.len()
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// Numbers or addresses.
    Tile(Tile),
    /// A token, which orders memory operations.
    Token,
    /// A tensor in memory.
    Tensor(TensorView),
    /// A tensor cut into tiles.
    View(TileView),
    /// A number that is no tile; only parameters of test functions have this type.
    Bare(Scalar),
}

impl Type {
    /// A tile of one number.
    pub fn scalar(scalar: Scalar) -> Type {
        Type::Tile(Tile::scalar(Elem::Scalar(scalar)))
    }

    /// A tile of one address.
    pub fn pointer(to: Scalar) -> Type {
        Type::Tile(Tile::scalar(Elem::pointer(to)))
    }

    /// A tile of numbers with one dimension.
    pub fn row(scalar: Scalar, length: u32) -> Type {
        Type::Tile(Tile { elem: Elem::Scalar(scalar), shape: vec![length] })
    }

    /// The tile type, if the value is a tile.
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

/// Prints `2,?,3`, with a question mark for an unknown extent.
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
        let kind = match (&self.steps, self.sparse) {
            (Some(_), _) => "strided_view",
            (None, Some(_)) => "gather_scatter_view",
            (None, None) => "partition_view",
        };
        write!(f, "{kind}<tile=({}), ", numbers(&self.tile, "x"))?;
        if let Some(steps) = &self.steps {
            write!(f, "traversal_strides=[{}], ", numbers(steps, ","))?;
        }
        if let Some(padding) = self.padding {
            write!(f, "padding_value = {}, ", padding.word())?;
        }
        write!(f, "{}", self.tensor)?;
        if let Some(sparse) = self.sparse {
            write!(f, ", sparse_dim={sparse}")?;
        } else if !self.identity_map() {
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
