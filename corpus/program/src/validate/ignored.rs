//! Lints about instructions that the model ignores, and about tensor memory and matrices that exceed their bounds.

use super::report::Report;
use crate::ir::*;
use crate::tensor;

pub(super) fn check(report: &mut Report<'_>) {
    let program = report.program;
    for thread in &program.threads {
        for instr in &thread.body {
            if let Op::Control(Control::Ignored(what)) = &instr.op {
                let note = format!("{} has no effect in the model", what.name());
                report.at("ignored-instruction", thread, instr, &note, None);
            }
            if let Op::Tcgen05(op) = &instr.op {
                for (address, cells) in tensor::cells(op).unwrap_or_default() {
                    within(report, thread, instr, &address, &cells);
                }
                if matches!(op, Tcgen05::Load(_) | Tcgen05::Store(_)) {
                    quarter(report, thread, instr, op);
                }
            }
            for (address, bytes) in ranges(&instr.op) {
                range(report, thread, instr, &address, bytes);
            }
        }
    }
}

/// Checks that cells lie within the columns that their name declares.
fn within(
    report: &mut Report<'_>,
    thread: &Thread,
    instr: &Instr,
    address: &Address,
    cells: &[tensor::Cells],
) {
    let Operand::Address(symbol) = address.base else { return };
    let object = &report.program.objects[report.program.symbols[symbol.index()].object.index()];
    if object.space != Space::Tensor {
        return;
    }
    let columns = i64::from(object.bytes / 4);
    let base = i64::from(address.offset & 0xffff);
    let reach = cells.iter().map(|c| base + i64::from(c.columns.end)).max().unwrap_or(0);
    let deep = cells.iter().map(|c| i64::from(c.lanes.end)).max().unwrap_or(0);
    if reach > columns {
        let what = format!("reaches column {} of a name with {columns} columns", reach - 1);
        report.at("tensor-address", thread, instr, &what, None);
    } else if deep > i64::from(TENSOR_LANES) {
        let what = format!("reaches lane {} of {TENSOR_LANES} lanes", deep - 1);
        report.at("tensor-address", thread, instr, &what, None);
    }
}

/// Checks that a load or a store accesses only the lanes of the warp's quarter.
fn quarter(report: &mut Report<'_>, thread: &Thread, instr: &Instr, op: &Tcgen05) {
    let (Tcgen05::Load(TensorLoad { addr: address, .. }) | Tcgen05::Store(TensorStore { addr: address, .. })) =
        op
    else {
        return;
    };
    let Operand::Address(_) = address.base else { return };
    let own = i32::from(thread.place.warp % 4);
    let lane = address.offset >> 16;
    if (0..128).contains(&lane) && lane / 32 != own {
        let what = format!("warp {} cannot access lane {lane}", thread.place.warp);
        let hint = format!("its lanes are {} to {}", own * 32, own * 32 + 31);
        report.at("tensor-address", thread, instr, &what, Some(hint));
    }
}

/// Ranges of bytes that the operands of an instruction spell out.
fn ranges(op: &Op) -> Vec<(Address, u32)> {
    let matrix = |d: &Descriptor| match d {
        Descriptor::Range { addr, bytes } => Some((*addr, *bytes)),
        Descriptor::Packed(_) => None,
    };
    let tile = |end: &BulkEnd| match end {
        BulkEnd::Tensor(tensor) => tensor.tile.map(|t| (t.addr, t.bytes)),
        BulkEnd::Bytes { .. } => None,
    };
    let ends = if let Op::AsyncCopy(copy) = op { copy.ends() } else { Vec::new() };
    op.matrices().into_iter().filter_map(matrix).chain(ends.into_iter().filter_map(tile)).collect()
}

fn range(report: &mut Report<'_>, thread: &Thread, instr: &Instr, address: &Address, bytes: u32) {
    let Operand::Address(symbol) = address.base else { return };
    let object = &report.program.objects[report.program.symbols[symbol.index()].object.index()];
    let (from, to) = (i64::from(address.offset), i64::from(address.offset) + i64::from(bytes));
    if from < 0 || to > i64::from(object.bytes) {
        let what = format!("bytes {from} to {} of an object with {} bytes", to - 1, object.bytes);
        report.at("static-address", thread, instr, &what, None);
    }
}
