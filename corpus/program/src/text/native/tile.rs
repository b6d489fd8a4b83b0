//! Memory instructions of tile blocks, and tokens.
//!
//! ```text
//! tile.st.release.gpu.u32 {[f], 1} after t1 gives t2
//! tile.ld.weak.u32 {@p [x] -> r0, 7; [x+4] -> r1} gives t3
//! tile.atom.relaxed.gpu.cas.u32 {[x] -> r2, 0, 1}
//! tile.join t4, {t2, t3}
//! tile.choose t5, p, t3, t4
//! ```
//!
//! An element is `@mask [address] -> register, operands`: what is stored, added or compared with and put there, and the
//! padding of a load. `.cta` is the tile block, `.gpu` the device.

use super::*;

/// What the dotted words of a tile access may say: order and scope, and what an atomic does.
const TILE: Takes = Takes { access: true, mmio: false, vector: false, op: false, lo: false };

impl Reader<'_, '_> {
    pub(super) fn tile_block(&mut self, words: &[&str]) -> Parsed<()> {
        let op = match words {
            ["join"] => TileOp::Token(self.joined()?),
            ["choose"] => TileOp::Token(self.chosen()?),
            [kind @ ("ld" | "st" | "atom"), rest @ ..] => {
                TileOp::Access(Box::new(self.tile_access(kind, rest)?))
            }
            _ => {
                let hint = "one of tile.ld, tile.st, tile.atom, tile.join, tile.choose".to_owned();
                return self.fail("this is no instruction of a tile block".into(), Some(hint));
            }
        };
        self.push(Op::Tile(op))
    }

    fn joined(&mut self) -> Parsed<TileToken> {
        let dst = self.reg()?;
        self.scan.expect(",")?;
        self.scan.expect("{")?;
        let mut from = Vec::new();
        while !self.scan.take("}") {
            if !from.is_empty() {
                self.scan.expect(",")?;
            }
            from.push(self.reg()?);
        }
        Ok(TileToken::Join { dst, from })
    }

    fn chosen(&mut self) -> Parsed<TileToken> {
        let dst = self.reg()?;
        self.scan.expect(",")?;
        let when = self.reg()?;
        self.scan.expect(",")?;
        let yes = self.reg()?;
        self.scan.expect(",")?;
        Ok(TileToken::Choose { dst, when, yes, no: self.reg()? })
    }

    fn tile_access(&mut self, kind: &str, words: &[&str]) -> Parsed<TileAccess> {
        let q = self.qualifiers(words, Takes { op: kind == "atom", ..TILE })?;
        let ty = self.ty(&q)?;
        if q.space.is_some() || q.order == Some("volatile") {
            return self.fail("an access of a tile has no state space and is not volatile".into(), None);
        }
        if ty == Ty::Pred || ty.packed() || ty.bytes() > 8 {
            return self.fail("an element of a tile has one to eight bytes and is not packed".into(), None);
        }
        let kind = match (kind, q.op) {
            ("ld", _) => TileKind::Load(self.load_order(&q)?),
            ("st", _) => TileKind::Store(self.store_order(&q)?),
            (_, None | Some(AtomOp::Sub | AtomOp::Inc | AtomOp::Dec)) => {
                let hint = Some("one of add, and, or, xor, min, max, exch, cas".to_owned());
                return self.fail("an atomic of a tile needs an operation".into(), hint);
            }
            (_, Some(op)) => TileKind::Rmw { op, order: self.rmw_order(&q, false)?, scope: self.scope(&q)? },
        };
        self.scan.expect("{")?;
        let mut elements = Vec::new();
        while !self.scan.take("}") {
            if !elements.is_empty() {
                self.scan.expect(";")?;
            }
            elements.push(self.tile_element(kind)?);
        }
        let after = if self.scan.keyword("after") { Some(self.reg()?) } else { None };
        let token = if self.scan.keyword("gives") { Some(self.reg()?) } else { None };
        Ok(TileAccess { kind, ty, elements, after, token })
    }

    fn tile_element(&mut self, kind: TileKind) -> Parsed<TileElement> {
        let mask = if self.scan.take("@") { Some(self.reg()?) } else { None };
        let addr = self.address()?;
        let dst = if self.scan.take("->") { Some(self.reg()?) } else { None };
        let mut operands = Vec::new();
        while self.scan.take(",") {
            operands.push(self.operand()?);
        }
        let fits = match kind {
            TileKind::Load(_) => operands.len() <= 1,
            TileKind::Store(_) => operands.len() == 1 && dst.is_none(),
            TileKind::Rmw { op, .. } => operands.len() == if op == AtomOp::Cas { 2 } else { 1 },
        };
        if !fits {
            let hint = "`[x], 1` of a store, `[x] -> r` of a load, `[x] -> r, 0, 1` of a cas".to_owned();
            return self.fail("this is no element of such an access".into(), Some(hint));
        }
        let mut operands = operands.into_iter();
        Ok(TileElement { addr, mask, dst, a: operands.next(), b: operands.next() })
    }
}
