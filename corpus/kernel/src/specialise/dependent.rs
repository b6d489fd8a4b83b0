//! What a warp does before `griddepcontrol.wait`.
//!
//! Of the first grid that is judged. Behind the wait the grids ahead of it are complete (PTX ISA 9.2, 9.7.13.16). Before it
//! they may still run, so an access to global memory is right only if they leave those bytes alone. Nothing here can tell, so
//! each such line is named as an assumption. Grids behind the first are judged together with it (`queue`).

use super::item::{Item, Note, Placed};
use super::queue::is_wait;
use super::touch::{Kind, Mem, Touch};
use std::collections::BTreeSet;

/// The lines that access global memory before the first wait of a warp.
pub(super) fn assumed(items: &[Placed]) -> BTreeSet<Note> {
    let Some(wait) = items.iter().position(is_wait) else { return BTreeSet::new() };
    let global = |t: &Touch| {
        t.kind != Kind::Map
            && matches!(
                t.mem,
                Mem::Absolute | Mem::Param(_) | Mem::Along(..) | Mem::Variable(_) | Mem::Boxes(_)
            )
    };
    let touches = |p: &Placed| match &p.item {
        Item::Op { touches, .. } => touches.iter().any(global),
        Item::Data { touch, .. } => global(touch),
        _ => false,
    };
    let behind = items[wait].line;
    let note = |p: &Placed| {
        let text = format!(
            "global memory is accessed before griddepcontrol.wait (line {behind}): it is assumed that no grid ahead of this one touches it"
        );
        Note::new(p.line, text)
    };
    items[..wait].iter().filter(|p| touches(p)).map(note).collect()
}
