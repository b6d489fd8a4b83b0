//! Notes on what running ahead takes for granted about a whole launch. Notes about single statements come from `step`.

use super::item::{Item, Note, Placed};
use super::need::placed;
use super::queue::{self, Grid};
use super::touch::Mem;
use crate::ptx::What;
use moire_program::ir::{Control, Op};
use std::collections::BTreeSet;

/// The assumptions that the items of the warps rely on.
pub(super) fn taken(grids: &[Grid<'_>], items: &[Vec<Placed>]) -> Vec<Note> {
    let touched = |placed: &Placed| -> Vec<Mem> {
        match &placed.item {
            Item::Op { touches, .. } => touches.iter().map(|t| t.mem).collect(),
            Item::Data { touch, .. } => vec![touch.mem],
            _ => Vec::new(),
        }
    };
    let memories: BTreeSet<Mem> = items.iter().flatten().flat_map(touched).collect();
    let mut out = Vec::new();
    let elects = |w: &What| matches!(w, What::Core(Op::Control(Control::Elect { .. })));
    let statement = grids.iter().flat_map(|g| &g.kernel.body).find(|s| elects(&s.what));
    out.extend(statement.map(|s| Note::new(s.line, "elect.sync elects the first active lane")));
    let place = |memory: u16| match (grids, queue::owner(grids, memory)) {
        ([one], _) => placed(one.launch.pointer(memory).0),
        (_, Some((grid, n))) => format!("{grid}:{n}"),
        (_, None) => memory.to_string(),
    };
    let pointers = memories.iter().filter_map(|m| if let Mem::Param(n) = m { Some(place(*n)) } else { None });
    let pointers: Vec<String> = pointers.collect();
    if pointers.len() > 1 {
        let text = format!("the pointers in parameters {} point to different memory", pointers.join(", "));
        out.push(Note::new(0, text));
    }
    let reads = |placed: &Placed| -> Vec<Mem> {
        let Item::Op { op, touches } = &placed.item else { return Vec::new() };
        let reads = matches!(**op, Op::Load { .. } | Op::Rmw { .. });
        touches.iter().filter(|_| reads).map(|t| t.mem).collect()
    };
    let read: BTreeSet<Mem> = items.iter().flatten().flat_map(reads).collect();
    let zero: Vec<String> =
        read.iter().filter_map(|m| if let Mem::Param(n) = m { Some(place(*n)) } else { None }).collect();
    if !zero.is_empty() {
        let text = format!(
            "words that are read with an order or atomically, behind parameter {}, are 0 at the start",
            zero.join(", ")
        );
        out.push(Note::new(0, text));
    }
    if memories.iter().any(|m| matches!(m, Mem::Boxes(_))) {
        let text = "boxes of a tensor map at different coordinates are different memory, and have as many bytes as \
                    their mbarrier expects, or as threads store at the start of a stored one";
        out.push(Note::new(0, text));
    }
    out
}
