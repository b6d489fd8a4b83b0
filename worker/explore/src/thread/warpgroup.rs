//! Warpgroup products as events: issue, reads of shared memory, groups; and the registers they hold meanwhile.
//!
//! PTX ISA 9.2, 9.7.15 (wgmma): shared memory is read through the async proxy, and comes after what the thread did before
//! only behind a `wgmma.fence` (8.9.1). Between a product and the wait for its group its registers may be touched by
//! products with the same accumulator only; what others did to them needs a `wgmma.fence` before a product uses them.

use super::busy::{BusyRegisters, factor};
use super::collective;
use super::copies;
use super::event::Kind;
use super::event::labels::labels;
use super::machine::Machine;
use super::trace::{TraceEnd, View};

use moire_cat::vocabulary::sets;
use moire_execution::leaf::flag;
use moire_program::ir::*;

/// Looks at the registers of an instruction about to be executed.
pub(crate) fn guard_registers<V: View>(m: &mut Machine<'_, V>, instr: &Instr) {
    let Some(busy) = &mut m.busy else { return };
    if busy.disturbed(instr) {
        m.flags.insert((flag::REGISTERS, instr.line));
    }
    busy.touch(instr);
}

pub(crate) fn wgmma<V: View>(
    m: &mut Machine<'_, V>,
    op: &Wgmma,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    collective::aligned(m, op.name(), instr, pc)?;
    match op {
        Wgmma::Fence => {
            let all = 0..m.regs.len();
            busy(m).fenced = Some(
                all.map(|r| Reg(u16::try_from(r).expect("registers are numbered by 16 bits"))).collect(),
            );
            copies::copy_issue(m, &[sets::WGMMA_FENCE], instr, pc);
        }
        Wgmma::Commit => m.copies.products.commit(),
        Wgmma::Wait(groups) => {
            let units = m.copies.products.complete(*groups);
            busy(m).products.retain(|p| !units.contains(&p.0));
            copies::copy_wait(m, units, false, instr, pc);
        }
        Wgmma::Product(product) => return multiply(m, product, instr, pc),
    }
    Ok(())
}

fn multiply<V: View>(
    m: &mut Machine<'_, V>,
    product: &WgmmaProduct,
    instr: &Instr,
    pc: usize,
) -> Result<(), TraceEnd> {
    let mut matrices = vec![&product.b];
    if let WgmmaFactor::Shared(a) = &product.a {
        matrices.insert(0, a);
    }
    let mut ranges = Vec::new();
    for matrix in matrices {
        let Descriptor::Range { addr, bytes } = matrix else {
            let what = "a matrix descriptor in a register";
            return Err(TraceEnd::Unsupported(what.into(), instr.line));
        };
        ranges.push((m.address_now(addr)?, *bytes));
    }
    let event = m.blank(instr, pc, Kind::Fence, labels(&[sets::WGMMA_ISSUE]), None);
    m.events.push(Some(event));
    for range in ranges {
        copies::copy_read(m, range, sets::ASYNC, instr, pc)?;
    }
    m.copies.products.add(m.unit);
    let unit = m.unit;
    busy(m).products.push((unit, product.d.clone(), factor(product)));
    m.forget(product.d.iter().copied());
    Ok(())
}

/// The registers of products; there are some in a thread with an instruction of this family.
fn busy<'m, V>(m: &'m mut Machine<'_, V>) -> &'m mut BusyRegisters {
    m.busy.get_or_insert_default()
}
