//! `elect`, `griddepcontrol`, `clusterlaunchcontrol`, `wgmma`, and instructions that are read and ignored.

use super::words::Words;
use super::*;
use crate::text::print::WGMMA_TYPES;

impl Reader<'_, '_> {
    /// `elect.sync d|p, mask`
    pub(super) fn elect(&mut self, words: &[&str]) -> Parsed<()> {
        if words != ["sync"] {
            return self.fail("elect has the one form elect.sync".into(), None);
        }
        let dst = if self.scan.keyword("_") { None } else { Some(self.reg()?) };
        self.scan.expect("|")?;
        let pred = self.reg()?;
        self.scan.expect(",")?;
        let mask = self.value("mask of lanes", "a number")?;
        self.push(Op::Control(Control::Elect { dst, pred, mask }))
    }

    pub(super) fn grid_dependency(&mut self, words: &[&str]) -> Parsed<()> {
        let op = match words {
            ["launch_dependents"] => Control::LaunchDependents,
            ["wait"] => Control::WaitDependencies,
            _ => {
                let hint = "known are griddepcontrol.launch_dependents and griddepcontrol.wait".to_owned();
                return self.fail("this is not a form of griddepcontrol".into(), Some(hint));
            }
        };
        self.push(Op::Control(op))
    }

    pub(super) fn cluster_launch(&mut self, words: &[&str]) -> Parsed<()> {
        let op = match words {
            ["try_cancel", rest @ ..] => {
                let mut w = Words::new("clusterlaunchcontrol.try_cancel", rest);
                self.need(&mut w, &["async", "mbarrier::complete_tx::bytes", "b128"])?;
                let multicast = w.take("multicast::cluster::all");
                let space = w.space().unwrap_or(Space::Generic);
                if matches!(space, Space::SharedCluster | Space::Global) {
                    return self.fail("it writes to its own CTA".into(), Some("use .shared::cta".into()));
                }
                self.done(&w)?;
                let addr = self.address()?;
                self.scan.expect(",")?;
                Control::TryCancel { multicast, space, addr, mbarrier: self.address()? }
            }
            ["query_cancel", "is_canceled", "pred", "b128"] => self.query(CancelQuery::IsCanceled, 1)?,
            ["query_cancel", "get_first_ctaid", "v4", "b32", "b128"] => {
                self.query(CancelQuery::FirstCta, 4)?
            }
            ["query_cancel", "get_first_ctaid::x", "b32", "b128"] => {
                self.query(CancelQuery::FirstCtaAxis(0), 1)?
            }
            ["query_cancel", "get_first_ctaid::y", "b32", "b128"] => {
                self.query(CancelQuery::FirstCtaAxis(1), 1)?
            }
            ["query_cancel", "get_first_ctaid::z", "b32", "b128"] => {
                self.query(CancelQuery::FirstCtaAxis(2), 1)?
            }
            _ => {
                let hint = "known are .try_cancel.async, .query_cancel.is_canceled.pred.b128 and \
                            .query_cancel.get_first_ctaid";
                return self.fail("this is not a form of clusterlaunchcontrol".into(), Some(hint.into()));
            }
        };
        self.push(Op::Control(op))
    }

    fn query(&mut self, ask: CancelQuery, count: usize) -> Parsed<Control> {
        let dst = self.list(Self::reg_or_sink)?;
        if dst.len() != count || (count == 1 && dst[0].is_none()) {
            return self.fail(format!("{count} destinations are wanted here"), None);
        }
        self.scan.expect(",")?;
        let src = Operand::Reg(self.reg()?);
        Ok(Control::QueryCancel { ask, dst, src })
    }

    fn reg_or_sink(&mut self) -> Parsed<Option<Reg>> {
        if self.scan.keyword("_") { Ok(None) } else { self.reg().map(Some) }
    }

    /// `setmaxnreg`, `nanosleep`, `pmevent`, `prefetch`: read, kept, without a meaning.
    pub(super) fn ignored(&mut self, name: &str, words: &[&str]) -> Parsed<()> {
        let what = match (name, words) {
            ("setmaxnreg", [way @ ("inc" | "dec"), "sync", "aligned", "u32"]) => {
                let count = self.range("registers a thread of", 24, 256)?;
                if count % 8 != 0 {
                    return self.fail(format!("{count} is no multiple of 8"), None);
                }
                let count = u16::try_from(count).expect("within the range");
                Ignored::SetMaxRegisters { inc: *way == "inc", count }
            }
            ("nanosleep", ["u32"]) => Ignored::Nanosleep(self.value("time", "a number")?),
            ("pmevent", []) => {
                let n = self.range("an event of", 0, 15)?;
                Ignored::PerformanceEvent(u8::try_from(n).expect("within the range"))
            }
            ("prefetch", ["tensormap"] | ["param", "tensormap"]) => {
                Ignored::PrefetchTensormap(self.address()?)
            }
            ("prefetch", ["global", "L1" | "L2"] | ["L1" | "L2"]) | ("prefetchu", ["L1"]) => {
                Ignored::Prefetch(self.address()?)
            }
            _ => {
                let hint = "known are setmaxnreg.inc.sync.aligned.u32, setmaxnreg.dec.sync.aligned.u32, \
                            nanosleep.u32, pmevent, prefetch.global.L2, prefetch.tensormap";
                return self.fail(format!("this is not a form of {name}"), Some(hint.into()));
            }
        };
        self.push(Op::Control(Control::Ignored(what)))
    }

    pub(super) fn wgmma(&mut self, words: &[&str]) -> Parsed<()> {
        let (form, rest) = words.split_first().map_or(("", &words[..0]), |(f, rest)| (*f, rest));
        let mut w = Words::new(&format!("wgmma.{form}"), rest);
        self.need(&mut w, &["sync", "aligned"])?;
        let op = match form {
            "fence" => Wgmma::Fence,
            "commit_group" => Wgmma::Commit,
            "wait_group" => {
                let groups = self.range("a number of groups of", 0, i128::from(u32::MAX))?;
                Wgmma::Wait(u32::try_from(groups).expect("within the range"))
            }
            "mma_async" => self.warpgroup_product(&mut w)?,
            _ => {
                let hint = "known are fence, commit_group, wait_group, mma_async".to_owned();
                return self.fail(format!("`wgmma.{form}` is not known"), Some(hint));
            }
        };
        self.done(&w)?;
        self.push(Op::Wgmma(op))
    }

    fn warpgroup_product(&mut self, w: &mut Words<'_>) -> Parsed<Wgmma> {
        let shape = w.find(|word| {
            let (n, k) = word.strip_prefix("m64n")?.split_once('k')?;
            Some((n.parse::<u16>().ok()?, k.parse::<u16>().ok()?))
        });
        let mut types = Vec::new();
        let known = |word: &str| WGMMA_TYPES.iter().find(|(t, _)| *t == word).map(|(_, t)| *t);
        while let Some(ty) = w.find(known) {
            types.push(ty);
        }
        let (Some((n, k)), &[d_ty, a_ty, b_ty]) = (shape, &types[..]) else {
            let hint = "for example .m64n8k16.f32.f16.f16".to_owned();
            return self.fail("wgmma.mma_async needs a shape and three types".into(), Some(hint));
        };
        if a_ty == WgmmaType::B1 {
            self.need(w, &["and", "popc"])?;
        }
        self.done(w)?;
        let d = self.vector()?;
        self.scan.expect(",")?;
        let a = if self.scan.peek("{") {
            WgmmaFactor::Registers(self.vector()?)
        } else {
            WgmmaFactor::Shared(self.descriptor()?)
        };
        self.scan.expect(",")?;
        let b = self.descriptor()?;
        self.scan.expect(",")?;
        let input = self.enable_input()?;
        let mut immediates = Vec::new();
        while immediates.len() < 4 && self.scan.take(",") {
            let n = self.range("an immediate of", -1, 1)?;
            immediates.push(i8::try_from(n).expect("within the range"));
        }
        let types = [d_ty, a_ty, b_ty];
        Ok(Wgmma::Product(Box::new(WgmmaProduct { n, k, types, d, a, b, input, immediates })))
    }
}
