//! Loads, stores, atomics and multimem.

use super::*;

impl Reader<'_, '_> {
    pub(super) fn ty(&self, q: &Qualifiers<'_>) -> Parsed<Ty> {
        match q.ty {
            Some(ty) => Ok(ty),
            None => self.fail("this instruction needs a type".into(), Some("for example `.u32`".into())),
        }
    }

    pub(super) fn scope(&self, q: &Qualifiers<'_>) -> Parsed<Scope> {
        match q.scope {
            Some(scope) => Ok(scope),
            None => {
                self.fail("this order needs a scope".into(), Some("add .cta, .cluster, .gpu or .sys".into()))
            }
        }
    }

    pub(super) fn load_order(&self, q: &Qualifiers<'_>) -> Parsed<LoadOrder> {
        let no_scope = q.scope.is_none();
        if q.mmio && q.scope != Some(Scope::Sys) {
            return self.fail("mmio is for the system scope".into(), Some("write .sys".into()));
        }
        Ok(match (q.order, q.mmio) {
            (Some("relaxed"), true) => LoadOrder::MmioRelaxed,
            (Some("acquire"), true) => LoadOrder::MmioAcquire,
            (Some("relaxed"), false) => LoadOrder::Relaxed(self.scope(q)?),
            (Some("acquire"), false) => LoadOrder::Acquire(self.scope(q)?),
            (Some("volatile"), false) if no_scope => LoadOrder::Volatile,
            (None | Some("weak"), false) if no_scope => LoadOrder::Weak,
            (None | Some("weak" | "volatile"), false) => {
                return self.fail("a weak or volatile access takes no scope".into(), None);
            }
            _ => {
                return self.fail(
                    "this is not an order of a load".into(),
                    Some("use .weak, .relaxed, .acquire or .volatile".into()),
                );
            }
        })
    }

    pub(super) fn store_order(&self, q: &Qualifiers<'_>) -> Parsed<StoreOrder> {
        let no_scope = q.scope.is_none();
        if q.mmio && q.scope != Some(Scope::Sys) {
            return self.fail("mmio is for the system scope".into(), Some("write .sys".into()));
        }
        Ok(match (q.order, q.mmio) {
            (Some("relaxed"), true) => StoreOrder::MmioRelaxed,
            (Some("release"), true) => StoreOrder::MmioRelease,
            (Some("relaxed"), false) => StoreOrder::Relaxed(self.scope(q)?),
            (Some("release"), false) => StoreOrder::Release(self.scope(q)?),
            (Some("volatile"), false) if no_scope => StoreOrder::Volatile,
            (None | Some("weak"), false) if no_scope => StoreOrder::Weak,
            (None | Some("weak" | "volatile"), false) => {
                return self.fail("a weak or volatile access takes no scope".into(), None);
            }
            _ => {
                return self.fail(
                    "this is not an order of a store".into(),
                    Some("use .weak, .relaxed, .release or .volatile".into()),
                );
            }
        })
    }

    pub(super) fn rmw_order(&self, q: &Qualifiers<'_>, red: bool) -> Parsed<RmwOrder> {
        Ok(match q.order {
            None | Some("relaxed") => RmwOrder::Relaxed,
            Some("release") => RmwOrder::Release,
            Some("acquire") if !red => RmwOrder::Acquire,
            Some("acq_rel") if !red => RmwOrder::AcqRel,
            _ if red => {
                return self.fail("red is relaxed or release".into(), Some("use atom for an acquire".into()));
            }
            _ => return self.fail("this is not an order of atom".into(), None),
        })
    }

    fn check_vector(&self, q: &Qualifiers<'_>, count: usize) -> Parsed<()> {
        if q.vector.unwrap_or(1) != count {
            return self.fail(format!("{count} operands do not match the vector qualifier"), None);
        }
        Ok(())
    }

    pub(super) fn load(&mut self, proxy: Proxy, words: &[&str]) -> Parsed<()> {
        let q = self.qualifiers(words, ACCESS)?;
        let (order, ty, space) = (self.load_order(&q)?, self.ty(&q)?, q.space.unwrap_or(Space::Generic));
        let dst = self.list(Self::reg)?;
        self.check_vector(&q, dst.len())?;
        self.scan.expect(",")?;
        let addr = self.address()?;
        self.push(Op::Load { order, proxy, space, ty, dst, addr })
    }

    pub(super) fn store(&mut self, proxy: Proxy, words: &[&str]) -> Parsed<()> {
        let q = self.qualifiers(words, ACCESS)?;
        let (order, ty, space) = (self.store_order(&q)?, self.ty(&q)?, q.space.unwrap_or(Space::Generic));
        let addr = self.address()?;
        self.scan.expect(",")?;
        let src = self.list(Self::operand)?;
        self.check_vector(&q, src.len())?;
        self.push(Op::Store { order, proxy, space, ty, addr, src })
    }

    pub(super) fn update(&mut self, proxy: Proxy, red: bool, words: &[&str]) -> Parsed<()> {
        let q = self.qualifiers(words, UPDATE)?;
        let (order, ty, space) = (
            self.rmw_order(&q, red && q.order != Some("acquire") && q.order != Some("acq_rel"))?,
            self.ty(&q)?,
            q.space.unwrap_or(Space::Generic),
        );
        let Some(op) = q.op else {
            return self.fail("this instruction needs an operation such as `.add`".into(), None);
        };
        let dst = if red {
            None
        } else {
            let dst = if self.scan.keyword("_") { None } else { Some(self.reg()?) };
            self.scan.expect(",")?;
            dst
        };
        let addr = self.address()?;
        self.scan.expect(",")?;
        let a = self.operand()?;
        let b = if op == AtomOp::Cas {
            self.scan.expect(",")?;
            Some(self.operand()?)
        } else {
            None
        };
        let scope = q.scope.unwrap_or(Scope::Gpu);
        self.push(Op::Rmw { red, order, scope, proxy, space, op, ty, dst, addr, a, b })
    }

    pub(super) fn multimem(&mut self, words: &[&str]) -> Parsed<()> {
        let (Some(kind), rest) = (words.first(), words.get(1..).unwrap_or_default()) else {
            return self.fail("expected multimem.ld_reduce, multimem.st or multimem.red".into(), None);
        };
        let takes = if *kind == "st" { Takes { access: true, ..PLAIN } } else { UPDATE };
        let q = self.qualifiers(rest, takes)?;
        let ty = self.ty(&q)?;
        match *kind {
            "ld_reduce" => {
                let order = self.load_order(&q)?;
                let Some(op) = q.op else {
                    return self.fail("ld_reduce needs an operation such as `.add`".into(), None);
                };
                let dst = self.reg()?;
                self.scan.expect(",")?;
                let addr = self.address()?;
                self.push(Op::MultimemLoad { order, op, ty, dst, addr })
            }
            "st" => {
                let order = self.store_order(&q)?;
                let addr = self.address()?;
                self.scan.expect(",")?;
                let src = self.operand()?;
                self.push(Op::MultimemStore { order, ty, addr, src })
            }
            "red" => {
                let order = self.rmw_order(&q, true)?;
                let Some(op) = q.op else {
                    return self.fail("red needs an operation such as `.add`".into(), None);
                };
                let scope = q.scope.unwrap_or(Scope::Gpu);
                let addr = self.address()?;
                self.scan.expect(",")?;
                let src = self.operand()?;
                self.push(Op::MultimemRed { order, scope, op, ty, addr, src })
            }
            other => self.fail(format!("`multimem.{other}` is not known"), None),
        }
    }
}
