//! Parameters from which addresses of global memory are computed, such as the length of a row.

use super::flow::effects;
use crate::ptx::{self, Kernel, Sort, Statement, Sum, Updated, Variable, What, sort};
use moire_isa::kinds::Space as In;
use moire_isa::{Value, operand};
use moire_program::ir::{Address, Op, Operand, Reg, Space};
use std::collections::{BTreeMap, BTreeSet};

/// Most passes over the kernel. A longer chain of registers, each written before the statement that writes the one it
/// depends on, is not followed.
const PASSES: usize = 64;
/// Most fields of parameters that are told apart.
const FIELDS: usize = 128;

/// Parameters and the first byte of the field, for fields from which some address is computed. Pointers are among them.
pub(crate) fn strides(kernel: &Kernel) -> BTreeSet<(u16, u32)> {
    let mut numbers: BTreeMap<(u16, u32), usize> = BTreeMap::new();
    let mut from = vec![0u128; kernel.types.len()];
    for statement in &kernel.body {
        let Some(field) = loaded(kernel, statement) else { continue };
        let next = numbers.len();
        let number = *numbers.entry(field).or_insert(next);
        if number < FIELDS {
            for r in effects(statement).0 {
                add(&mut from, r, 1 << number);
            }
        }
    }
    let moves: Vec<(Vec<Reg>, Vec<Reg>)> = kernel.body.iter().filter(|s| computes(s)).map(effects).collect();
    for _ in 0..PASSES {
        let mut changed = false;
        for (writes, reads) in &moves {
            let all = reads.iter().fold(0, |all, r| all | from.get(r.index()).copied().unwrap_or(0));
            for r in writes {
                changed |= add(&mut from, *r, all);
            }
        }
        if !changed {
            break;
        }
    }
    let used = kernel.body.iter().filter_map(base);
    let used = used.fold(0, |all, r| all | from.get(r.index()).copied().unwrap_or(0));
    let of =
        |(field, number): ((u16, u32), usize)| (number < FIELDS && used >> number & 1 == 1).then_some(field);
    numbers.into_iter().filter_map(of).collect()
}

fn add(from: &mut [u128], reg: Reg, more: u128) -> bool {
    let Some(known) = from.get_mut(reg.index()) else { return false };
    let new = *known | more != *known;
    *known |= more;
    new
}

/// The field of a parameter that a statement loads.
pub(super) fn loaded(kernel: &Kernel, statement: &Statement) -> Option<(u16, u32)> {
    let What::Plain(instr) = &statement.what else { return None };
    let Sort::Load(ld) = sort(instr) else { return None };
    let operand::Address { base: Value::Symbol(symbol, more), offset, home: _ } = ld.addr.address else {
        return None;
    };
    if ld.space != In::Param {
        return None;
    }
    let at = offset.checked_add(more)?;
    let Variable::Param(n) = kernel.variables.get(symbol as usize)? else { return None };
    Some((u16::try_from(*n).ok()?, u32::try_from(at).ok()?))
}

/// Whether a statement computes registers from registers.
fn computes(statement: &Statement) -> bool {
    match &statement.what {
        What::Plain(instr) => !matches!(
            sort(instr),
            Sort::Load(_) | Sort::Uniform(_) | Sort::LoadMatrix(_) | Sort::Computes(Sum::Setp(_))
        ),
        What::Core(op) => matches!(op, Op::Mov { .. } | Op::Alu { .. } | Op::Selp { .. }),
        _ => false,
    }
}

/// The register in the address of an access of global memory.
pub(crate) fn base(statement: &Statement) -> Option<Reg> {
    let (shared, reg) = address(statement)?;
    (!shared).then_some(reg)
}

/// The register in the address of an ordinary or atomic access, and whether the access is of shared memory.
pub(crate) fn address(statement: &Statement) -> Option<(bool, Reg)> {
    let reg = |address: &Address| if let Operand::Reg(r) = address.base { Some(r) } else { None };
    match &statement.what {
        What::Core(op) => {
            let plain = matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. });
            let (space, addr) = op.place().filter(|_| plain)?;
            Some((!matches!(space, Space::Global | Space::Generic), reg(&addr)?))
        }
        What::Plain(instr) => {
            let (space, base) = match sort(instr) {
                Sort::Load(ld) => (ld.space, ld.addr.address.base),
                Sort::Uniform(ldu) => (ldu.space.into(), ldu.addr.base),
                Sort::Store(st) => (st.space, st.addr.base),
                Sort::Update(Updated::Atom(i)) => (i.space, i.addr.base),
                Sort::Update(Updated::Red(i)) => (i.space, i.addr.base),
                _ => return None,
            };
            Some((!matches!(space, In::Generic | In::Global | In::Const), ptx::reg(&base)?))
        }
        _ => None,
    }
}
