//! Prints memory instructions of tile blocks, and tokens. An element is `@mask [address] -> register, operands`; `after`
//! and `gives` name tokens.

use super::operands::Printer;
use super::words::{ATOM_OPS, load_order, rmw_order, scope, store_order, type_name, word};
use crate::ir::{TileAccess, TileElement, TileKind, TileOp, TileToken};

pub(super) fn tile(p: &Printer<'_>, op: &TileOp) -> String {
    match op {
        TileOp::Access(access) => tile_access(p, access),
        TileOp::Token(TileToken::Join { dst, from }) => {
            let from: Vec<&str> = from.iter().map(|r| p.reg(*r)).collect();
            format!("tile.join {}, {{{}}}", p.reg(*dst), from.join(", "))
        }
        TileOp::Token(TileToken::Choose { dst, when, yes, no }) => {
            let [dst, when, yes, no] = [*dst, *when, *yes, *no].map(|r| p.reg(r));
            format!("tile.choose {dst}, {when}, {yes}, {no}")
        }
    }
}

fn tile_access(p: &Printer<'_>, access: &TileAccess) -> String {
    let kind = match &access.kind {
        TileKind::Load(order) => format!("ld{}", load_order(*order)),
        TileKind::Store(order) => format!("st{}", store_order(*order)),
        TileKind::Rmw { op, order, scope: s } => {
            format!("atom{}.{}.{}", rmw_order(*order), scope(*s), word(&ATOM_OPS, op))
        }
    };
    let elements: Vec<String> = access.elements.iter().map(|e| tile_element(p, e)).collect();
    let after = access.after.map_or(String::new(), |r| format!(" after {}", p.reg(r)));
    let gives = access.token.map_or(String::new(), |r| format!(" gives {}", p.reg(r)));
    format!("tile.{kind}{} {{{}}}{after}{gives}", type_name(access.ty), elements.join("; "))
}

fn tile_element(p: &Printer<'_>, element: &TileElement) -> String {
    let mask = element.mask.map_or(String::new(), |r| format!("@{} ", p.reg(r)));
    let dst = element.dst.map_or(String::new(), |r| format!(" -> {}", p.reg(r)));
    let operands = element.a.iter().chain(&element.b).map(|o| format!(", {}", p.operand(*o)));
    format!("{mask}{}{dst}{}", p.address(&element.addr), operands.collect::<String>())
}
