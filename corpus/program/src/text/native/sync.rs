//! Fences and barriers.

use super::*;

impl Reader<'_, '_> {
    pub(super) fn fence(&mut self, words: &[&str]) -> Parsed<()> {
        match words {
            ["mbarrier_init", "release", "cluster"] => return self.push(Op::MbarrierInitFence),
            ["mbarrier_init", ..] => {
                let hint = "its one form is fence.mbarrier_init.release.cluster".to_owned();
                return self.fail("this is not a form of fence.mbarrier_init".into(), Some(hint));
            }
            _ => {}
        }
        if self.proxy_order(words)? {
            return Ok(());
        }
        if let ["proxy", kinds @ ..] = words {
            let mut out = Vec::new();
            for kind in kinds {
                out.push(match *kind {
                    "alias" => ProxyFence::Alias,
                    "texture" => ProxyFence::Of(Proxy::Texture),
                    "surface" => ProxyFence::Of(Proxy::Surface),
                    "constant" => ProxyFence::Of(Proxy::Constant),
                    "generic" => ProxyFence::Of(Proxy::Generic),
                    "async" => ProxyFence::Of(Proxy::Async),
                    "tensormap" => ProxyFence::Of(Proxy::Tensormap),
                    other => {
                        return self.fail(
                            format!("`fence.proxy.{other}` is not known"),
                            Some("known are alias, async, texture, surface, constant, generic".into()),
                        );
                    }
                });
            }
            if out.is_empty() {
                return self.fail(
                    "fence.proxy needs a proxy".into(),
                    Some("for example `fence.proxy.alias`".into()),
                );
            }
            return self.push(Op::ProxyFence(out));
        }
        let (mut order, mut scope) = (None, None);
        for word in words {
            let old = match (*word, scope_of(word)) {
                (_, Some(s)) => scope.replace(s).is_some(),
                ("sc", _) => order.replace(FenceOrder::Sc).is_some(),
                ("acq_rel", _) => order.replace(FenceOrder::AcqRel).is_some(),
                ("acquire", _) => order.replace(FenceOrder::Acquire).is_some(),
                ("release", _) => order.replace(FenceOrder::Release).is_some(),
                (other, _) => {
                    let known =
                        ["sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys", "proxy"];
                    let hint = closest(other, &known).map(|k| format!("did you mean `.{k}`?"));
                    return self.fail(format!("`.{other}` is not a qualifier of fence"), hint);
                }
            };
            if old {
                return self.fail(format!("`.{word}` comes on top of another of its kind"), None);
            }
        }
        let order = order.unwrap_or(FenceOrder::AcqRel);
        match scope {
            Some(scope) => self.push(Op::Fence { order, scope }),
            None => {
                self.fail("a fence needs a scope".into(), Some("add .cta, .cluster, .gpu or .sys".into()))
            }
        }
    }

    pub(super) fn membar(&mut self, words: &[&str]) -> Parsed<()> {
        let scope = match words {
            ["cta"] => Scope::Cta,
            ["gl"] => Scope::Gpu,
            ["sys"] => Scope::Sys,
            _ => return self.fail("expected membar.cta, membar.gl or membar.sys".into(), None),
        };
        self.push(Op::Fence { order: FenceOrder::Sc, scope })
    }

    pub(super) fn barrier(&mut self, words: &[&str]) -> Parsed<()> {
        let words: Vec<&str> = words.iter().copied().filter(|w| *w != "cta").collect();
        let instance = words.first().and_then(|w| w.strip_prefix("instance")).and_then(|n| n.parse().ok());
        let words = if instance.is_some() { &words[1..] } else { &words[..] };
        match words {
            ["cluster", "arrive"] | ["cluster", "arrive", "release"] => self.push(Op::ClusterArrive { relaxed: false }),
            ["cluster", "arrive", "relaxed"] => self.push(Op::ClusterArrive { relaxed: true }),
            ["cluster", "wait"] | ["cluster", "wait", "acquire"] => self.push(Op::ClusterWait),
            ["warp", "sync"] => {
                let mask = self.operand()?;
                self.push(Op::WarpSync { mask })
            }
            ["sync"] | ["arrive"] => {
                let id = self.operand()?;
                let count = if self.scan.take(",") { Some(self.operand()?) } else { None };
                let kind = if words[0] == "sync" { BarKind::Sync } else { BarKind::Arrive };
                self.push(Op::Bar { kind, id, count, instance })
            }
            ["red", op, ty] => {
                let op = match (*op, *ty) {
                    ("popc", "u32") => BarRed::Popc,
                    ("and", "pred") => BarRed::And,
                    ("or", "pred") => BarRed::Or,
                    _ => {
                        let hint = "it is .popc.u32, .and.pred or .or.pred".to_owned();
                        return self.fail("bar.red has no such form".into(), Some(hint));
                    }
                };
                self.reduction(op, instance)
            }
            _ => self.fail("this is not a barrier instruction".into(), Some("known are bar.sync, bar.arrive, bar.red, bar.warp.sync, barrier.cluster.arrive, barrier.cluster.wait".into())),
        }
    }

    fn reduction(&mut self, op: BarRed, instance: Option<u32>) -> Parsed<()> {
        let dst = self.reg()?;
        self.scan.expect(",")?;
        let id = self.operand()?;
        self.scan.expect(",")?;
        let mut negated = self.scan.take("!");
        let mut second = self.operand()?;
        let mut count = None;
        if self.scan.take(",") {
            count = Some(second);
            negated = self.scan.take("!");
            second = self.operand()?;
        }
        let Operand::Reg(reg) = second else {
            return self.fail("the last operand of bar.red is a predicate".into(), None);
        };
        let kind = BarKind::Red { op, dst, pred: Guard { reg, negated } };
        self.push(Op::Bar { kind, id, count, instance })
    }
}
