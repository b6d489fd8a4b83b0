//! Operands of tensor-core instructions, and `tcgen05.*` but for products.
//!
//! ```text
//! .tmem t[64];                                        columns of tensor memory, allocated from start to end
//! .shared .b8 a[4096];
//! tcgen05.ld.sync.aligned.32x32b.x2.b32 {r0, r1}, [t+lane 32+8];      lane 32, column 8
//! tcgen05.cp.cta_group::1.128x256b [t], desc(a, 4096);                all bytes of `a`
//! tcgen05.mma.cta_group::1.kind::f16 [t], desc(a, 2048), desc(a+2048, 2048), idesc(128, 64), 1;
//! ```
//!
//! An address in tensor memory is what PTX has: `[t+2097160]` is `[t+lane 32+8]`, and a register with the address that
//! `tcgen05.alloc` wrote does as well as a name. So does a register with 64 bits of a real descriptor in place of
//! `desc`, and one with 32 in place of `idesc`. What reads fine and no assembler takes is said by `validate`.

use super::words::Words;
use super::*;
use crate::text::print::{COPY_SHAPES, MOVE_SHAPES};

const FORMS: [&str; 11] = [
    "alloc",
    "dealloc",
    "relinquish_alloc_permit",
    "ld",
    "st",
    "wait::ld",
    "wait::st",
    "cp",
    "shift",
    "mma",
    "commit",
];

impl Reader<'_, '_> {
    pub(super) fn tcgen05(&mut self, words: &[&str]) -> Parsed<()> {
        let (form, rest) = words.split_first().map_or(("", &words[..0]), |(f, rest)| (*f, rest));
        let mut w = Words::new(&format!("tcgen05.{form}"), rest);
        let op = match form {
            "alloc" => self.allocation(&mut w)?,
            "dealloc" => self.deallocation(&mut w)?,
            "relinquish_alloc_permit" => {
                self.need(&mut w, &["sync", "aligned"])?;
                Tcgen05::Relinquish { group: self.group(&mut w)? }
            }
            "ld" => self.tensor_load(&mut w)?,
            "st" => self.tensor_store(&mut w)?,
            "wait::ld" | "wait::st" => {
                self.need(&mut w, &["sync", "aligned"])?;
                if form == "wait::ld" { Tcgen05::WaitLoad } else { Tcgen05::WaitStore }
            }
            "cp" => self.tensor_copy(&mut w)?,
            "shift" => {
                self.need(&mut w, &["down"])?;
                let group = self.group(&mut w)?;
                self.done(&w)?;
                Tcgen05::Shift { group, addr: self.tensor_address()? }
            }
            "mma" => self.product(&mut w)?,
            "commit" => self.commit(&mut w)?,
            "fence::before_thread_sync" => Tcgen05::FenceBefore,
            "fence::after_thread_sync" => Tcgen05::FenceAfter,
            other => {
                let mut known = FORMS.to_vec();
                known.extend(["fence::before_thread_sync", "fence::after_thread_sync"]);
                let hint = closest(other, &known).map_or_else(
                    || format!("known are {}", known.join(", ")),
                    |k| format!("did you mean `tcgen05.{k}`?"),
                );
                return self.fail(format!("`tcgen05.{other}` is not known"), Some(hint));
            }
        };
        self.done(&w)?;
        self.push(Op::Tcgen05(op))
    }

    /// `[base]`, `[base+n]`, `[base+lane n]`, `[base+lane n+n]`
    pub(super) fn tensor_address(&mut self) -> Parsed<Address> {
        self.scan.expect("[")?;
        let base = self.tensor_base()?;
        let mut offset = 0;
        let mut lanes = 0;
        if self.scan.take("+") {
            if self.scan.keyword("lane") {
                lanes = self.range("a lane of", 0, i128::from(TENSOR_LANES) - 1)?;
                offset = if self.scan.take("+") { self.range("a column of", 0, 0xffff)? } else { 0 };
            } else {
                offset = self.scan.number()?;
            }
        } else if self.scan.peek("-") {
            offset = self.scan.number()?;
        }
        self.scan.expect("]")?;
        match i32::try_from(lanes << 16 | offset) {
            Ok(offset) => Ok(Address { base, offset }),
            Err(_) => self.fail(format!("the offset {offset} does not fit 32 bits"), None),
        }
    }

    fn tensor_base(&mut self) -> Parsed<Operand> {
        match self.operand()? {
            Operand::Imm(_) => self.fail(
                "a number is no address in tensor memory".into(),
                Some("use a name declared with .tmem, or a register".into()),
            ),
            base => Ok(base),
        }
    }

    /// A number in a range.
    pub(super) fn range(&mut self, what: &str, least: i128, most: i128) -> Parsed<i128> {
        self.scan.rest();
        let at = self.scan.at;
        let n = self.scan.number()?;
        if (least..=most).contains(&n) {
            return Ok(n);
        }
        let hint = format!("it is between {least} and {most}");
        Err(self.scan.error_at(at, format!("{what} {n} is out of range"), Some(hint)))
    }

    /// `name(` of a notation.
    pub(super) fn call(&mut self, name: &str) -> bool {
        let mut ahead = self.scan.clone();
        let hit = ahead.keyword(name) && ahead.take("(");
        if hit {
            *self.scan = ahead;
        }
        hit
    }

    /// `x+offset, bytes)` of `desc` and `tile`.
    pub(super) fn bytes_of(&mut self) -> Parsed<(Address, u32)> {
        let base = self.operand()?;
        if matches!(base, Operand::Imm(_)) {
            return self.fail("a number is no address".into(), Some("use a name or a register".into()));
        }
        let signed = self.scan.peek("-");
        let offset = if self.scan.take("+") || signed { self.scan.number()? } else { 0 };
        let Ok(offset) = i32::try_from(offset) else {
            return self.fail(format!("the offset {offset} does not fit 32 bits"), None);
        };
        self.scan.expect(",")?;
        let bytes = self.range("a size of", 1, i128::from(OBJECT_BYTES))?;
        self.scan.expect(")")?;
        Ok((Address { base, offset }, u32::try_from(bytes).unwrap_or(OBJECT_BYTES)))
    }

    /// An operand that is a value and no name.
    pub(super) fn value(&mut self, what: &str, hint: &str) -> Parsed<Operand> {
        match self.operand()? {
            Operand::Address(_) => {
                self.fail(format!("a name is no {what}"), Some(format!("write {hint}, or use a register")))
            }
            operand => Ok(operand),
        }
    }

    /// `desc(x+offset, bytes)`, a register or a number.
    pub(super) fn descriptor(&mut self) -> Parsed<Descriptor> {
        if self.call("desc") {
            let (addr, bytes) = self.bytes_of()?;
            return Ok(Descriptor::Range { addr, bytes });
        }
        Ok(Descriptor::Packed(self.value("descriptor", "desc(name, bytes)")?))
    }

    /// A vector in braces, of registers.
    pub(super) fn vector(&mut self) -> Parsed<Vec<Reg>> {
        if !self.scan.peek("{") {
            return Err(self.scan.expected("a vector such as `{r0, r1}`"));
        }
        self.list(Self::reg)
    }

    fn allocation(&mut self, w: &mut Words<'_>) -> Parsed<Tcgen05> {
        self.need(w, &["sync", "aligned", "b32"])?;
        let (exclusive, group) = (w.take("exclusive"), self.group(w)?);
        let space = w.space().unwrap_or(Space::Generic);
        if matches!(space, Space::SharedCluster | Space::Global) {
            let hint = "use .shared::cta".to_owned();
            return self.fail("tcgen05.alloc writes to the shared memory of its CTA".into(), Some(hint));
        }
        self.done(w)?;
        let dst = self.address()?;
        self.scan.expect(",")?;
        let columns = self.value("number of columns", "a number")?;
        Ok(Tcgen05::Alloc { exclusive, group, space, dst, columns })
    }

    fn deallocation(&mut self, w: &mut Words<'_>) -> Parsed<Tcgen05> {
        self.need(w, &["sync", "aligned", "b32"])?;
        let (exclusive, group) = (w.take("exclusive"), self.group(w)?);
        self.done(w)?;
        let addr = self.operand()?;
        self.scan.expect(",")?;
        let columns = self.value("number of columns", "a number")?;
        Ok(Tcgen05::Dealloc { exclusive, group, addr, columns })
    }

    /// Shape and repetition of a load or a store.
    fn moved(&self, w: &mut Words<'_>) -> Parsed<(MoveShape, u8)> {
        let Some(shape) = w.pick(&MOVE_SHAPES) else {
            let known: Vec<&str> = MOVE_SHAPES.iter().map(|(s, _)| *s).collect();
            return self
                .fail(format!("{} needs a shape", w.name()), Some(format!("one of {}", known.join(", "))));
        };
        let times = w.find(|word| {
            let n: u8 = word.strip_prefix('x')?.parse().ok()?;
            (n.is_power_of_two() && !word.starts_with("x0")).then_some(n)
        });
        match times {
            Some(times) => Ok((shape, times)),
            None => self.fail(format!("{} needs .x1 to .x128", w.name()), Some("a power of two".into())),
        }
    }

    /// The number after the address of `.16x32bx2`.
    fn split(&mut self, shape: MoveShape) -> Parsed<Option<i32>> {
        if shape != MoveShape::L16x32bx2 {
            return Ok(None);
        }
        self.scan.expect(",")?;
        let n = self.range("columns of", i128::from(i32::MIN), i128::from(i32::MAX))?;
        Ok(i32::try_from(n).ok())
    }

    fn tensor_load(&mut self, w: &mut Words<'_>) -> Parsed<Tcgen05> {
        self.need(w, &["sync", "aligned"])?;
        let reduced = w.take("red");
        let (shape, times) = self.moved(w)?;
        let pack = w.take("pack::16b");
        let mut reduce = None;
        if reduced {
            let max = w.pick(&[("max", true), ("min", false)]);
            let ty = w.pick(&[("f32", Ty::F(32)), ("u32", Ty::U(32)), ("s32", Ty::S(32))]);
            let (Some(max), Some(ty)) = (max, ty) else {
                let hint = "for example `.max.f32`".to_owned();
                return self.fail("tcgen05.ld.red needs an operation and a type".into(), Some(hint));
            };
            reduce = Some((max, w.take("abs"), w.take("NaN"), ty));
        } else {
            self.need(w, &["b32"])?;
        }
        self.done(w)?;
        let dst = self.vector()?;
        self.scan.expect(",")?;
        let reduce = match reduce {
            Some((max, abs, nan, ty)) => {
                let dst = self.reg()?;
                self.scan.expect(",")?;
                Some(TensorReduction { max, abs, nan, ty, dst })
            }
            None => None,
        };
        let addr = self.tensor_address()?;
        let split = self.split(shape)?;
        Ok(Tcgen05::Load(TensorLoad { shape, times, pack, dst, reduce, addr, split }))
    }

    fn tensor_store(&mut self, w: &mut Words<'_>) -> Parsed<Tcgen05> {
        self.need(w, &["sync", "aligned", "b32"])?;
        let (shape, times) = self.moved(w)?;
        let unpack = w.take("unpack::16b");
        self.done(w)?;
        let addr = self.tensor_address()?;
        let split = self.split(shape)?;
        self.scan.expect(",")?;
        let src = self.vector()?;
        Ok(Tcgen05::Store(TensorStore { shape, times, unpack, addr, split, src }))
    }

    fn tensor_copy(&mut self, w: &mut Words<'_>) -> Parsed<Tcgen05> {
        let group = self.group(w)?;
        let shape = COPY_SHAPES.iter().find(|(words, _)| words.split('.').all(|word| w.has(word)));
        let Some((words, shape)) = shape else {
            let known: Vec<&str> = COPY_SHAPES.iter().map(|(s, _)| *s).collect();
            let hint = format!("one of {}", known.join(", "));
            return self.fail("tcgen05.cp needs a shape, with the warps that receive it".into(), Some(hint));
        };
        for word in words.split('.') {
            w.take(word);
        }
        let widen = if w.take("b8x16") {
            let from = w.pick(&[("b6x16_p32", Widening::Six), ("b4x16_p64", Widening::Four)]);
            if from.is_none() {
                let hint = "add .b6x16_p32 or .b4x16_p64".to_owned();
                return self.fail("`.b8x16` needs the format it comes from".into(), Some(hint));
            }
            from
        } else {
            None
        };
        self.done(w)?;
        let dst = self.tensor_address()?;
        self.scan.expect(",")?;
        let src = self.descriptor()?;
        Ok(Tcgen05::Copy { group, shape: *shape, widen, dst, src })
    }

    fn commit(&mut self, w: &mut Words<'_>) -> Parsed<Tcgen05> {
        self.need(w, &["mbarrier::arrive::one", "b64"])?;
        let group = self.group(w)?;
        let reads_only = w.take("sync_restrict::shared::read::mma::a");
        let space = w.space().unwrap_or(Space::Generic);
        if matches!(space, Space::SharedCta | Space::Global) {
            let hint = "use .shared::cluster or no space".to_owned();
            return self.fail("tcgen05.commit takes an mbarrier of the cluster".into(), Some(hint));
        }
        let cast = self.multicast_words(w);
        self.done(w)?;
        let addr = self.address()?;
        let multicast = self.multicast(cast)?;
        Ok(Tcgen05::Commit(Commit { group, reads_only, space, addr, multicast }))
    }

    /// `.multicast::cluster` and whether its mask has 32 bits.
    pub(super) fn multicast_words(&self, w: &mut Words<'_>) -> Option<bool> {
        w.pick(&[
            ("multicast::cluster", false),
            ("multicast::cluster::16b", false),
            ("multicast::cluster::32b", true),
        ])
    }

    /// `, mask`
    pub(super) fn multicast(&mut self, words: Option<bool>) -> Parsed<Option<Multicast>> {
        let Some(wide) = words else { return Ok(None) };
        self.scan.expect(",")?;
        Ok(Some(Multicast { wide, mask: self.value("mask of CTAs", "a number")? }))
    }
}
