//! Drops reads and fences of tensor maps that are never written, because no race can involve them.

use crate::specialise::item::{Item, Placed};
use crate::specialise::touch::{Kind, Touch};
use moire_program::ir::*;

/// Drops reads and fences of constant tensor maps from all traces.
pub(super) fn drop_constant_maps(traces: &mut [Vec<Placed>]) {
    let touches = |item: &Item| match item {
        Item::Op { touches, .. } => touches.clone(),
        Item::Data { write: true, touch, .. } => vec![touch.clone()],
        _ => Vec::new(),
    };
    let written: Vec<Touch> =
        traces.iter().flatten().flat_map(|p| touches(&p.item)).filter(|t| t.kind.may_write()).collect();
    let meets = |t: &Touch, w: &Touch| {
        t.mem == w.mem && t.ranges.iter().any(|r| w.ranges.iter().any(|s| r.0 < s.1 && s.0 < r.1))
    };
    let constant = |t: &Touch| t.kind == Kind::Map && !written.iter().any(|w| meets(t, w));
    let mut kept = false;
    for placed in traces.iter_mut().flatten() {
        let Item::Op { op, touches } = &mut placed.item else { continue };
        let gone = |a: &Address| matches!(a.base, Operand::Imm(n) if usize::try_from(n).ok().and_then(|n| touches.get(n)).is_some_and(constant));
        if let Op::AsyncCopy(AsyncCopy::Bulk(copy)) = &mut **op {
            for end in [&mut copy.dst, &mut copy.src] {
                if let BulkEnd::Tensor(tensor) = end {
                    tensor.map = tensor.map.filter(|map| !gone(map));
                    kept |= tensor.map.is_some();
                }
            }
            touches.iter_mut().filter(|t| constant(t)).for_each(|t| t.ranges.clear());
        }
    }
    let fence = |p: &Placed| match &p.item {
        Item::Op { op, touches } => {
            let acquires = matches!(**op, Op::ProxyOrder(ProxyOrder::TensormapAcquire { .. }));
            let releases = matches!(**op, Op::ProxyOrder(ProxyOrder::TensormapRelease { .. }));
            (acquires && touches.iter().all(constant)) || (releases && !kept)
        }
        _ => false,
    };
    traces.iter_mut().for_each(|t| t.retain(|p| !fence(p)));
}
