//! Prints memory instructions of tile blocks and tokens.
//!
//! `@mask [address] -> register, operands` an element; `after` and `gives` name tokens.

use super::{ATOM_OPS, Printer, load_order, rmw_order, scope, store_order, type_name, word};
use crate::ir::{TileAccess, TileElement, TileKind, TileOp, TileToken};

impl Printer<'_> {
    pub(super) fn tile(&self, op: &TileOp) -> String {
        match op {
            TileOp::Access(access) => self.tile_access(access),
            TileOp::Token(TileToken::Join { dst, from }) => {
                let from: Vec<&str> = from.iter().map(|r| self.reg(*r)).collect();
                format!("tile.join {}, {{{}}}", self.reg(*dst), from.join(", "))
            }
            TileOp::Token(TileToken::Choose { dst, when, yes, no }) => {
                let [dst, when, yes, no] = [*dst, *when, *yes, *no].map(|r| self.reg(r));
                format!("tile.choose {dst}, {when}, {yes}, {no}")
            }
        }
    }

    fn tile_access(&self, access: &TileAccess) -> String {
        let kind = match &access.kind {
            TileKind::Load(order) => format!("ld{}", load_order(*order)),
            TileKind::Store(order) => format!("st{}", store_order(*order)),
            TileKind::Rmw { op, order, scope: s } => {
                format!("atom{}.{}.{}", rmw_order(*order), scope(*s), word(&ATOM_OPS, op))
            }
        };
        let elements: Vec<String> = access.elements.iter().map(|e| self.tile_element(e)).collect();
        let after = access.after.map_or(String::new(), |r| format!(" after {}", self.reg(r)));
        let gives = access.token.map_or(String::new(), |r| format!(" gives {}", self.reg(r)));
        format!("tile.{kind}{} {{{}}}{after}{gives}", type_name(access.ty), elements.join("; "))
    }

    fn tile_element(&self, element: &TileElement) -> String {
        let mask = element.mask.map_or(String::new(), |r| format!("@{} ", self.reg(r)));
        let dst = element.dst.map_or(String::new(), |r| format!(" -> {}", self.reg(r)));
        let operands = element.a.iter().chain(&element.b).map(|o| format!(", {}", self.operand(*o)));
        format!("{mask}{}{dst}{}", self.address(&element.addr), operands.collect::<String>())
    }
}
