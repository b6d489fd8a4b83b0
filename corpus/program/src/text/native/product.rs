//! `tcgen05.mma` in all its forms.
//!
//! PTX ISA 9.2, 9.7.16.10. Order of the operands: D, A, B, the metadata of `.sp`, the shape, the two scales of
//! `.block_scale`, the lanes left out, whether D is read, and then a power of two (or for `.ws` the columns of B
//! taken as zero).

use super::words::Words;
use super::*;
use crate::text::print::{COLLECTOR_USES, MMA_KINDS, SCALE_SIZES};

/// What the words of a product say.
struct Form {
    group: CtaGroup,
    kind: MmaKind,
    stationary: bool,
    sparse: bool,
    ashift: bool,
    scale: Option<ScaleSize>,
    collector_a: Option<CollectorUse>,
    collector_b: Option<CollectorB>,
}

impl Reader<'_, '_> {
    pub(super) fn product(&mut self, w: &mut Words<'_>) -> Parsed<Tcgen05> {
        let form = self.product_form(w)?;
        self.done(w)?;
        let d = self.tensor_address()?;
        self.scan.expect(",")?;
        let a = if self.scan.peek("[") {
            Factor::Tensor(self.tensor_address()?)
        } else {
            Factor::Shared(self.descriptor()?)
        };
        self.scan.expect(",")?;
        let b = self.descriptor()?;
        let metadata = if form.sparse { Some(self.next_tensor()?) } else { None };
        self.scan.expect(",")?;
        let shape = self.shape()?;
        let scales = match form.scale {
            Some(size) => Some(BlockScale { size, a: self.next_tensor()?, b: self.next_tensor()? }),
            None => None,
        };
        self.scan.expect(",")?;
        let mut lanes_off = Vec::new();
        if self.scan.peek("{") {
            lanes_off = self.vector()?;
            self.scan.expect(",")?;
        }
        let input = self.enable_input()?;
        let (mut scale_input, mut zero_columns) = (None, None);
        if self.scan.take(",") {
            if form.stationary {
                zero_columns = Some(self.value("mask of columns", "a number")?);
            } else {
                scale_input = u8::try_from(self.range("a scale of", 0, 15)?).ok();
            }
        }
        let Form { group, kind, stationary, ashift, collector_a, collector_b, .. } = form;
        Ok(Tcgen05::Mma(Box::new(Mma {
            group,
            kind,
            stationary,
            ashift,
            collector_a,
            collector_b,
            d,
            a,
            b,
            metadata,
            shape,
            scales,
            lanes_off,
            input,
            scale_input,
            zero_columns,
        })))
    }

    fn product_form(&self, w: &mut Words<'_>) -> Parsed<Form> {
        let (stationary, sparse) = (w.take("ws"), w.take("sp"));
        let group = self.group(w)?;
        let Some(kind) = w.pick(&MMA_KINDS) else {
            let known: Vec<&str> = MMA_KINDS.iter().map(|(k, _)| *k).collect();
            return self
                .fail("tcgen05.mma needs a kind".into(), Some(format!("one of {}", known.join(", "))));
        };
        let scale = if w.take("block_scale") {
            Some(w.pick(&SCALE_SIZES).unwrap_or(ScaleSize::Default))
        } else {
            None
        };
        let usage = |text: &str| COLLECTOR_USES.iter().find(|(word, _)| *word == text).map(|(_, u)| *u);
        let collector_a = w.find(|word| usage(word.strip_prefix("collector::a::")?));
        let collector_b = w.find(|word| {
            let (buffer, text) = word.strip_prefix("collector::b")?.split_once("::")?;
            let buffer = match buffer {
                "" => None,
                "0" | "1" | "2" | "3" => Some(buffer.parse().ok()?),
                _ => return None,
            };
            Some(CollectorB { buffer, usage: usage(text)? })
        });
        let ashift = w.take("ashift");
        Ok(Form { group, kind, stationary, sparse, ashift, scale, collector_a, collector_b })
    }

    fn next_tensor(&mut self) -> Parsed<Address> {
        self.scan.expect(",")?;
        self.tensor_address()
    }

    /// `idesc(m, n)`, a register or a number.
    fn shape(&mut self) -> Parsed<ProductShape> {
        if !self.call("idesc") {
            return Ok(ProductShape::Packed(self.value("instruction descriptor", "idesc(m, n)")?));
        }
        let m = self.range("rows of", 32, 256)?;
        self.scan.expect(",")?;
        let n = self.range("columns of", 8, 256)?;
        self.scan.expect(")")?;
        let small = |v: i128| u16::try_from(v).expect("within the range");
        Ok(ProductShape::Tile { m: small(m), n: small(n) })
    }

    /// A predicate, negated or not, or 0 or 1.
    pub(super) fn enable_input(&mut self) -> Parsed<EnableInput> {
        if self.scan.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(EnableInput::Always(self.range("a truth value of", 0, 1)? == 1));
        }
        let negated = self.scan.take("!");
        Ok(EnableInput::When(Guard { reg: self.reg()?, negated }))
    }
}
