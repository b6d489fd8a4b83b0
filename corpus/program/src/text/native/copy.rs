//! `cp.async`, `cp.async.bulk`, `cp.reduce.async.bulk`, `st.async`, `red.async`.
//!
//! ```text
//! cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 128, [bar];
//! cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [tile(g, 128), {0, 0}], [bar];
//! ```
//!
//! A box of a tensor is `[map, {coordinates}]` as in PTX, or says itself which bytes it is: `tile(name+offset, bytes)`,
//! or `[map as tile(name, bytes), {..}]` where the tensor map is an object of its own. Cache hints are read and not
//! kept, with their operand. The predicate of `cp.async` is written `@p` or `!p`: a bare register there is a size.

use super::words::Words;
use super::*;
use crate::text::print::TILE_MODES;

/// Words of a bulk copy.
struct Form {
    dims: Option<u8>,
    mode: TileMode,
    spaces: Vec<Space>,
    to_mbarrier: bool,
    multicast: Option<bool>,
    group: Option<CtaGroup>,
    hint: bool,
    relaxed: Option<Scope>,
    byte_mask: bool,
    ignores: bool,
    reduce: Option<(AtomOp, Option<Ty>)>,
}

impl Reader<'_, '_> {
    /// `cp.*`
    pub(super) fn copy(&mut self, words: &[&str]) -> Parsed<()> {
        match words {
            ["async", "bulk", rest @ ..] => self.bulk(false, rest),
            ["reduce", "async", "bulk", rest @ ..] => self.bulk(true, rest),
            ["async", "commit_group"] => self.push(Op::AsyncCopy(AsyncCopy::Commit)),
            ["async", "wait_all"] => self.push(Op::AsyncCopy(AsyncCopy::WaitAll)),
            ["async", "wait_group"] => {
                let groups = self.pending_groups()?;
                self.push(Op::AsyncCopy(AsyncCopy::Wait(groups)))
            }
            ["async", "mbarrier", "arrive", rest @ ..] => self.copy_arrive(rest),
            ["async", rest @ ..] => self.small_copy(rest),
            _ => {
                let hint = "known are cp.async, cp.async.bulk and cp.reduce.async.bulk".to_owned();
                self.fail("this is not a copy".into(), Some(hint))
            }
        }
    }

    fn pending_groups(&mut self) -> Parsed<u32> {
        let n = self.range("a number of groups of", 0, i128::from(u32::MAX))?;
        Ok(u32::try_from(n).expect("within the range"))
    }

    fn copy_arrive(&mut self, words: &[&str]) -> Parsed<()> {
        let mut w = Words::new("cp.async.mbarrier.arrive", words);
        self.need(&mut w, &["b64"])?;
        let (noinc, space) = (w.take("noinc"), w.space().unwrap_or(Space::Generic));
        if matches!(space, Space::SharedCluster | Space::Global) {
            return self.fail("it takes an mbarrier of its own CTA".into(), Some("use .shared::cta".into()));
        }
        self.done(&w)?;
        let addr = self.address()?;
        self.push(Op::AsyncCopy(AsyncCopy::Arrive { noinc, space, addr }))
    }

    fn small_copy(&mut self, words: &[&str]) -> Parsed<()> {
        let mut w = Words::new("cp.async", words);
        let Some(all_levels) = w.pick(&[("ca", true), ("cg", false)]) else {
            return self.fail("cp.async needs .ca or .cg".into(), None);
        };
        if self.spaces(&mut w) != [Space::SharedCta, Space::Global] {
            let hint = "write .shared::cta.global".to_owned();
            return self.fail("cp.async copies from global to shared memory".into(), Some(hint));
        }
        self.prefetch_size(&mut w);
        let cached = w.take("L2::cache_hint");
        self.done(&w)?;
        let dst = self.address()?;
        self.scan.expect(",")?;
        let src = self.address()?;
        self.scan.expect(",")?;
        let bytes = self.range("a size of", 0, 255)?;
        let mut part = SmallPart::All;
        if cached {
            self.policy(true)?;
        } else if self.scan.take(",") {
            part = self.small_part()?;
        }
        let bytes = u8::try_from(bytes).expect("within the range");
        self.push(Op::AsyncCopy(AsyncCopy::Small(SmallCopy { all_levels, dst, src, bytes, part })))
    }

    /// A size, or after `@` or `!` a predicate; PTX tells the two apart by the declaration of the register.
    fn small_part(&mut self) -> Parsed<SmallPart> {
        let marked = self.scan.take("@");
        let negated = self.scan.take("!");
        if marked || negated {
            return Ok(SmallPart::IgnoredWhen(Guard { reg: self.reg()?, negated }));
        }
        Ok(SmallPart::Bytes(self.value("size", "a number")?))
    }

    fn prefetch_size(&self, w: &mut Words<'_>) {
        let _ = w.take("L2::64B") || w.take("L2::128B") || w.take("L2::256B");
    }

    /// All state spaces in the order of the text.
    fn spaces(&self, w: &mut Words<'_>) -> Vec<Space> {
        let space = |word: &str| match word {
            "shared" | "shared::cta" => Some(Space::SharedCta),
            "shared::cluster" => Some(Space::SharedCluster),
            "global" => Some(Space::Global),
            _ => None,
        };
        std::iter::from_fn(|| w.find(space)).collect()
    }

    fn bulk(&mut self, reduce: bool, words: &[&str]) -> Parsed<()> {
        match words {
            ["commit_group"] if !reduce => return self.push(Op::AsyncCopy(AsyncCopy::BulkCommit)),
            ["wait_group", rest @ ..] if !reduce && matches!(rest, [] | ["read"]) => {
                let groups = self.pending_groups()?;
                let reads_only = !rest.is_empty();
                return self.push(Op::AsyncCopy(AsyncCopy::BulkWait { groups, reads_only }));
            }
            ["prefetch", rest @ ..] if !reduce => return self.bulk_prefetch(rest),
            _ => {}
        }
        let mut w = Words::new(if reduce { "cp.reduce.async.bulk" } else { "cp.async.bulk" }, words);
        let form = self.bulk_form(&mut w, reduce)?;
        self.done(&w)?;
        let copy = match form.spaces[..] {
            [dst @ (Space::SharedCta | Space::SharedCluster), src] => self.bulk_load(&form, dst, src)?,
            [Space::Global, Space::SharedCta] => self.bulk_store(&form)?,
            _ => {
                let hint = "for example .shared::cluster.global or .global.shared::cta".to_owned();
                return self.fail(format!("{} names where to and where from", w.name()), Some(hint));
            }
        };
        self.push(Op::AsyncCopy(AsyncCopy::Bulk(Box::new(copy))))
    }

    fn bulk_form(&self, w: &mut Words<'_>, reduce: bool) -> Parsed<Form> {
        let dims = self.dimensions(w)?;
        let mode = w.pick(&TILE_MODES).unwrap_or(TileMode::Tile);
        let spaces = self.spaces(w);
        let to_mbarrier = w.take("mbarrier::complete_tx::bytes");
        let to_group = w.take("bulk_group");
        if to_mbarrier == to_group {
            let hint = "either .mbarrier::complete_tx::bytes or .bulk_group".to_owned();
            return self.fail(format!("{} needs one way to say that it is complete", w.name()), Some(hint));
        }
        let (multicast, group, hint) = (self.multicast_words(w), w.group(), w.take("L2::cache_hint"));
        let relaxed = if w.take("relaxed") { w.scope() } else { None };
        let _ = w.take("weak");
        if relaxed.is_some() {
            self.need(w, &["b128"])?;
        }
        let (byte_mask, ignores) = (w.take("cp_mask"), w.take("ignore_oob"));
        let reduce = if reduce {
            let op = ATOM_OPS.iter().find(|(word, _)| w.take(word)).map(|(_, op)| *op);
            let noftz = w.take("noftz");
            let ty = w.find(|word| if word == "bf16" { Some(Ty::F(16)) } else { parse_type(word) });
            if op == Some(AtomOp::Add) && ty == Some(Ty::F(16)) && !noftz {
                return self.fail("an addition of 16-bit floating point needs .noftz".into(), None);
            }
            match (op, ty) {
                (Some(op), Some(_)) if dims.is_none() => Some((op, ty)),
                (Some(op), None) if dims.is_some() => Some((op, None)),
                (None, _) => return self.fail(format!("{} needs an operation", w.name()), None),
                _ => return self.fail("a type stands where no tensor map gives one".into(), None),
            }
        } else {
            None
        };
        Ok(Form {
            dims,
            mode,
            spaces,
            to_mbarrier,
            multicast,
            group,
            hint,
            relaxed,
            byte_mask,
            ignores,
            reduce,
        })
    }

    /// `.tensor.Nd`
    fn dimensions(&self, w: &mut Words<'_>) -> Parsed<Option<u8>> {
        if !w.take("tensor") {
            return Ok(None);
        }
        match w.pick(&[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)]) {
            Some(dims) => Ok(Some(dims)),
            None => self.fail("a tensor has .1d to .5d".into(), None),
        }
    }

    fn bulk_load(&mut self, form: &Form, to: Space, from: Space) -> Parsed<BulkCopy> {
        if !form.to_mbarrier {
            let hint = "use .mbarrier::complete_tx::bytes".to_owned();
            return self.fail("a copy into shared memory completes at an mbarrier".into(), Some(hint));
        }
        let dst = BulkEnd::Bytes { space: to, addr: self.address()? };
        self.scan.expect(",")?;
        let (mut src, bytes) = self.bulk_source(form, from)?;
        let mut ignored = None;
        if form.ignores {
            self.scan.expect(",")?;
            let left = self.value("size", "a number")?;
            self.scan.expect(",")?;
            ignored = Some([left, self.value("size", "a number")?]);
        }
        self.scan.expect(",")?;
        let done = BulkDone::Mbarrier(self.address()?);
        if let BulkEnd::Tensor(tensor) = &mut src {
            let mut ahead = self.scan.clone();
            if ahead.take(",") && ahead.peek("{") {
                self.scan.expect(",")?;
                tensor.offsets = self.list(Self::operand)?;
            }
        }
        let multicast = self.multicast(form.multicast)?;
        self.policy(form.hint)?;
        let Form { group, relaxed, reduce, .. } = *form;
        if form.byte_mask {
            return self.fail("`.cp_mask` is for copies to global memory".into(), None);
        }
        Ok(BulkCopy { dst, src, bytes, reduce, done, multicast, group, relaxed, byte_mask: None, ignored })
    }

    /// The source of a load and its size.
    fn bulk_source(&mut self, form: &Form, space: Space) -> Parsed<(BulkEnd, Option<Operand>)> {
        if let Some(dims) = form.dims {
            let tensor = self.tensor_box(dims, form.mode)?;
            return Ok((BulkEnd::Tensor(tensor), None));
        }
        let addr = self.address()?;
        self.scan.expect(",")?;
        let bytes = self.value("size", "a number")?;
        Ok((BulkEnd::Bytes { space, addr }, Some(bytes)))
    }

    fn bulk_store(&mut self, form: &Form) -> Parsed<BulkCopy> {
        if form.to_mbarrier || form.multicast.is_some() || form.group.is_some() || form.ignores {
            let hint = "use .bulk_group, and no multicast or CTA group".to_owned();
            return self.fail("a copy into global memory completes with its group".into(), Some(hint));
        }
        let dst = match form.dims {
            Some(dims) => BulkEnd::Tensor(self.tensor_box(dims, form.mode)?),
            None => BulkEnd::Bytes { space: Space::Global, addr: self.address()? },
        };
        self.scan.expect(",")?;
        let src = BulkEnd::Bytes { space: Space::SharedCta, addr: self.address()? };
        let bytes = if form.dims.is_none() {
            self.scan.expect(",")?;
            Some(self.value("size", "a number")?)
        } else {
            None
        };
        self.policy(form.hint)?;
        let byte_mask = if form.byte_mask {
            self.scan.expect(",")?;
            Some(self.value("mask of bytes", "a number")?)
        } else {
            None
        };
        let (done, reduce, relaxed) = (BulkDone::Group, form.reduce, form.relaxed);
        Ok(BulkCopy {
            dst,
            src,
            bytes,
            reduce,
            done,
            multicast: None,
            group: None,
            relaxed,
            byte_mask,
            ignored: None,
        })
    }

    /// The operand of `.L2::cache_hint`.
    fn policy(&mut self, hint: bool) -> Parsed<()> {
        if hint {
            self.scan.expect(",")?;
            self.operand()?;
        }
        Ok(())
    }

    fn bulk_prefetch(&mut self, words: &[&str]) -> Parsed<()> {
        let mut w = Words::new("cp.async.bulk.prefetch", words);
        self.need(&mut w, &["L2", "global"])?;
        let dims = self.dimensions(&mut w)?;
        let mode = w.pick(&TILE_MODES).unwrap_or(TileMode::Tile);
        let hint = w.take("L2::cache_hint");
        self.done(&w)?;
        let (src, bytes) = match dims {
            Some(dims) => {
                let mut tensor = self.tensor_box(dims, mode)?;
                let mut ahead = self.scan.clone();
                if ahead.take(",") && ahead.peek("{") {
                    self.scan.expect(",")?;
                    tensor.offsets = self.list(Self::operand)?;
                }
                (BulkEnd::Tensor(tensor), None)
            }
            None => {
                let addr = self.address()?;
                self.scan.expect(",")?;
                let bytes = self.value("size", "a number")?;
                (BulkEnd::Bytes { space: Space::Global, addr }, Some(bytes))
            }
        };
        self.policy(hint)?;
        self.push(Op::AsyncCopy(AsyncCopy::Prefetch(Box::new(BulkPrefetch { src, bytes }))))
    }

    /// `[map, {..}]`, `[tile(x, bytes), {..}]`, `[map as tile(x, bytes), {..}]`
    fn tensor_box(&mut self, dims: u8, mode: TileMode) -> Parsed<TensorBox> {
        self.scan.expect("[")?;
        let (mut map, mut tile) = (None, self.tile()?);
        if tile.is_none() {
            let base = self.operand()?;
            if matches!(base, Operand::Imm(_)) {
                let hint = "use a name or a register".to_owned();
                return self.fail("a number is no address of a tensor map".into(), Some(hint));
            }
            let signed = self.scan.peek("-");
            let offset = if self.scan.take("+") || signed { self.scan.number()? } else { 0 };
            let Ok(offset) = i32::try_from(offset) else {
                return self.fail(format!("the offset {offset} does not fit 32 bits"), None);
            };
            map = Some(Address { base, offset });
            if self.scan.keyword("as") {
                tile = self.tile()?;
                if tile.is_none() {
                    return Err(self.scan.expected("`tile(name, bytes)`"));
                }
            }
        }
        self.scan.expect(",")?;
        if !self.scan.peek("{") {
            return Err(self.scan.expected("coordinates such as `{0, 0}`"));
        }
        let coordinates = self.list(Self::coordinate)?;
        self.scan.expect("]")?;
        Ok(TensorBox { map, tile, dims, mode, coordinates, offsets: Vec::new() })
    }

    fn coordinate(&mut self) -> Parsed<Operand> {
        self.value("coordinate", "a number")
    }

    fn tile(&mut self) -> Parsed<Option<Tile>> {
        if !self.call("tile") {
            return Ok(None);
        }
        let (addr, bytes) = self.bytes_of()?;
        Ok(Some(Tile { addr, bytes }))
    }

    /// `st.async`, `red.async`
    pub(super) fn remote(&mut self, update: bool, words: &[&str]) -> Parsed<()> {
        let mut w = Words::new(if update { "red.async" } else { "st.async" }, words);
        let reported = w.take("mbarrier::complete_tx::bytes");
        let mmio = w.take("mmio");
        let release = w.take("release");
        let relaxed = update && w.take("relaxed");
        let _ = !update && w.take("weak");
        let space = w.space().unwrap_or(Space::Generic);
        let scope = w.scope();
        let vector = w.pick(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
        let op = if update {
            let found = ATOM_OPS.iter().find(|(word, _)| w.take(word));
            let Some((_, op)) = found else {
                return self.fail("red.async needs an operation such as `.add`".into(), None);
            };
            Some(*op)
        } else {
            None
        };
        let Some(ty) = w.find(parse_type) else {
            return self.fail(format!("{} needs a type", w.name()), Some("for example `.u32`".into()));
        };
        let taken = if reported {
            !release && !mmio && relaxed == update && scope == update.then_some(Scope::Cluster)
        } else {
            release && !relaxed && (!mmio || scope == Some(Scope::Sys))
        };
        if !taken {
            let hint = if update {
                ".relaxed.cluster with .mbarrier::complete_tx::bytes, or .release.gpu or .release.sys"
            } else {
                ".mbarrier::complete_tx::bytes and no order, or .release.gpu or .release.sys"
            };
            let message = format!("{} has no such order", w.name());
            return self.fail(message, Some(hint.into()));
        }
        self.done(&w)?;
        let addr = self.address()?;
        self.scan.expect(",")?;
        let src = self.list(Self::remote_value)?;
        if src.len() != vector {
            return self.fail(format!("{} operands do not match the vector qualifier", src.len()), None);
        }
        let order = if reported {
            self.scan.expect(",")?;
            RemoteOrder::Mbarrier(self.address()?)
        } else if mmio {
            RemoteOrder::MmioRelease
        } else {
            match scope {
                Some(scope) => RemoteOrder::Release(scope),
                None => return self.fail("a release needs a scope".into(), Some("add .gpu or .sys".into())),
            }
        };
        self.push(Op::AsyncCopy(AsyncCopy::Remote(Box::new(RemoteWrite { op, space, ty, addr, src, order }))))
    }

    fn remote_value(&mut self) -> Parsed<Operand> {
        self.value("value", "a number")
    }
}
