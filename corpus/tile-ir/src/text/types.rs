//! Reads types, with or without the prefix `!cuda_tile.`, and optimization hints.

use super::reader::{Reader, because};
use crate::{Elem, Hint, Hints, Padding, RANK, Reason, Scalar, TensorView, Tile, TileView, Type};
use moire_program::text::scan::{Parsed, closest};

impl<'a> Reader<'a> {
    /// Any type.
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        self.scan.take("!cuda_tile.");
        let at = self.scan.at;
        let word = self.scan.word("a type", "")?;
        Ok(match word {
            "token" => Type::Token,
            "tile" => Type::Tile(self.tile()?),
            "tensor_view" => Type::Tensor(self.tensor()?),
            "partition_view" | "strided_view" | "gather_scatter_view" => Type::View(self.view(word)?),
            _ => match Scalar::from_name(word) {
                Some(scalar) => Type::Bare(scalar),
                None => return Err(self.no_type(at, word)),
            },
        })
    }

    fn no_type(&mut self, at: usize, word: &str) -> moire_program::text::ParseError {
        let mut known: Vec<&str> = Scalar::ALL.iter().map(|s| s.name()).collect();
        known.extend([
            "token",
            "tile",
            "tensor_view",
            "partition_view",
            "strided_view",
            "gather_scatter_view",
        ]);
        let hint = closest(word, &known).map(|k| format!("did you mean `{k}`?"));
        because(Reason::Type, self.scan.error_at(at, format!("unknown type `{word}`"), hint))
    }

    /// One or more types, separated by commas.
    pub(super) fn types(&mut self) -> Parsed<Vec<Type>> {
        let mut out = vec![self.ty()?];
        while self.scan.take(",") {
            out.push(self.ty()?);
        }
        Ok(out)
    }

    /// One type, or several in parentheses.
    pub(super) fn type_list(&mut self) -> Parsed<Vec<Type>> {
        if !self.scan.take("(") {
            return Ok(vec![self.ty()?]);
        }
        if self.scan.take(")") {
            return Ok(Vec::new());
        }
        let out = self.types()?;
        self.scan.expect(")")?;
        Ok(out)
    }

    /// A type that must be a tile.
    pub(super) fn tile_type(&mut self) -> Parsed<Tile> {
        let at = self.scan.at;
        match self.ty()? {
            Type::Tile(tile) => Ok(tile),
            other => {
                let message = format!("expected a type `tile<..>`, found `{other}`");
                Err(because(Reason::Type, self.scan.error_at(at, message, None)))
            }
        }
    }

    /// `<4x8xf32>`
    fn tile(&mut self) -> Parsed<Tile> {
        self.scan.expect("<")?;
        let at = self.scan.at;
        let mut shape = Vec::new();
        for extent in self.extents()? {
            let extent = extent.and_then(|n| u32::try_from(n).ok());
            shape.push(extent.ok_or_else(|| {
                let message = "an extent of a tile must be a 32-bit number".to_owned();
                because(Reason::Shape, self.scan.error_at(at, message, None))
            })?);
        }
        let elem = self.elem()?;
        self.scan.expect(">")?;
        Ok(Tile { elem, shape })
    }

    fn elem(&mut self) -> Parsed<Elem> {
        self.scan.take("!cuda_tile.");
        if !self.scan.keyword("ptr") {
            return Ok(Elem::Scalar(self.scalar()?));
        }
        self.scan.expect("<")?;
        let to = self.scalar()?;
        let multicast = self.scan.take(",");
        if multicast {
            self.scan.expect("<")?;
            self.multicast()?;
            self.scan.expect(">")?;
        }
        self.scan.expect(">")?;
        Ok(Elem::Pointer { to, multicast })
    }

    fn multicast(&mut self) -> Parsed<()> {
        if self.scan.keyword("multicast") {
            return Ok(());
        }
        Err(self.scan.expected("`multicast`, the only pointer attribute"))
    }

    /// An element type.
    pub(super) fn scalar(&mut self) -> Parsed<Scalar> {
        let at = self.scan.at;
        let word = self.scan.word("an element type", "")?;
        Scalar::from_name(word).ok_or_else(|| self.no_type(at, word))
    }

    /// `4x?x`: numbers and question marks, each with an `x` after it.
    fn extents(&mut self) -> Parsed<Vec<Option<u64>>> {
        let mut out = Vec::new();
        while self.scan.peek("?") || self.scan.rest().starts_with(|c: char| c.is_ascii_digit()) {
            out.push(if self.scan.take("?") { None } else { Some(self.digits()?) });
            self.scan.expect("x")?;
            self.rank(out.len())?;
        }
        Ok(out)
    }

    fn rank(&mut self, n: usize) -> Parsed<()> {
        if n <= RANK {
            return Ok(());
        }
        Err(self.fault(Reason::Limit, format!("at most {RANK} dimensions")))
    }

    /// `<4x8xf32, strides=[8,1]>`
    fn tensor(&mut self) -> Parsed<TensorView> {
        self.scan.expect("<")?;
        let shape = self.extents()?;
        let elem = self.scalar()?;
        let (mut strides, mut multicast) = (Vec::new(), false);
        while self.scan.take(",") {
            if self.scan.take("#cuda_tile.ptr_attr") {
                self.scan.expect("<")?;
                self.multicast()?;
                self.scan.expect(">")?;
                multicast = true;
                continue;
            }
            if !self.scan.keyword("strides") {
                return Err(self.scan.expected("`strides=[..]`"));
            }
            self.scan.expect("=")?;
            self.scan.expect("[")?;
            strides.clear();
            while !self.scan.take("]") {
                if !strides.is_empty() {
                    self.scan.expect(",")?;
                }
                strides.push(if self.scan.take("?") { None } else { Some(self.digits()?) });
                self.rank(strides.len())?;
            }
        }
        self.scan.expect(">")?;
        Ok(TensorView { elem, shape, strides, multicast })
    }

    /// `<tile=(4x8), tensor_view<..>>` of a view of this kind
    fn view(&mut self, kind: &str) -> Parsed<TileView> {
        self.scan.expect("<")?;
        self.name_is("tile")?;
        self.scan.expect("(")?;
        let mut tile = vec![self.small()?];
        while self.scan.take("x") {
            tile.push(self.small()?);
            self.rank(tile.len())?;
        }
        self.scan.expect(")")?;
        self.scan.expect(",")?;
        let mut steps = None;
        if kind == "strided_view" {
            self.name_is("traversal_strides")?;
            steps = Some(self.list()?);
            self.scan.expect(",")?;
        }
        let mut padding = None;
        if self.scan.peek("padding_value") {
            self.name_is("padding_value")?;
            padding = Some(Padding::ALL[self.one_of("padding value", Padding::WORDS)?]);
            self.scan.expect(",")?;
        }
        self.scan.take("!cuda_tile.");
        if !self.scan.keyword("tensor_view") {
            return Err(self.scan.expected("`tensor_view<..>`"));
        }
        let tensor = self.tensor()?;
        let mut dim_map: Vec<u32> = (0..).take(tile.len()).collect();
        let mut sparse = None;
        if kind == "gather_scatter_view" {
            self.scan.expect(",")?;
            self.name_is("sparse_dim")?;
            sparse = Some(self.small()?);
        } else if self.scan.take(",") {
            self.name_is("dim_map")?;
            dim_map = self.list()?;
        }
        self.scan.expect(">")?;
        Ok(TileView { steps, tile, tensor, dim_map, sparse, padding })
    }

    /// `name =`
    fn name_is(&mut self, name: &str) -> Parsed<()> {
        if !self.scan.keyword(name) {
            return Err(self.scan.expected(&format!("`{name}`")));
        }
        self.scan.expect("=")
    }

    /// `[1, 2]`
    fn list(&mut self) -> Parsed<Vec<u32>> {
        self.scan.expect("[")?;
        let mut out = Vec::new();
        while !self.scan.take("]") {
            if !out.is_empty() {
                self.scan.expect(",")?;
            }
            out.push(self.small()?);
            self.rank(out.len())?;
        }
        Ok(out)
    }

    fn small(&mut self) -> Parsed<u32> {
        let at = self.scan.at;
        let number = self.digits()?;
        u32::try_from(number)
            .map_err(|_| self.scan.error_at(at, "this number does not fit 32 bits".into(), None))
    }

    /// `<sm_90 = {latency = 3, allow_tma = false}>`
    pub(super) fn hints(&mut self) -> Parsed<Hints> {
        self.scan.expect("<")?;
        let mut out = Hints::new();
        while !self.scan.take(">") {
            if !out.is_empty() {
                self.scan.expect(",")?;
            }
            let arch = self.scan.name("an architecture such as `sm_90`")?.to_owned();
            self.scan.expect("=")?;
            self.scan.expect("{")?;
            let mut all = Vec::new();
            while !self.scan.take("}") {
                if !all.is_empty() {
                    self.scan.expect(",")?;
                }
                let name = self.scan.name("the name of a hint")?.to_owned();
                self.scan.expect("=")?;
                let hint = if self.scan.keyword("true") {
                    Hint::Flag(true)
                } else if self.scan.keyword("false") {
                    Hint::Flag(false)
                } else {
                    Hint::Number(self.small()?)
                };
                all.push((name, hint));
            }
            out.push((arch, all));
        }
        Ok(out)
    }
}
