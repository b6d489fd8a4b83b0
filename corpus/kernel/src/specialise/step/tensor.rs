//! Runs tensor-core instructions: resolves their operands, and turns descriptors into footprints.

use super::loaded::{loaded, waited};
use super::matrix::matrix_at;
use super::{Executing, Made, Then};
use crate::Refusal;
use crate::specialise::columns::FIRST_COLUMN;
use crate::specialise::item::Content;
use crate::specialise::known::value::{Base, Val, Why};
use crate::specialise::touch::{Kind, Mem};
use moire_program::ir::*;
use moire_program::tensor::{InstructionDescriptor, copied_extent, factor_extent};

/// Resolves an address in tensor memory. A number is one in an allocation of all columns (`columns`).
fn in_tensor(step: &mut Executing<'_, '_>, addr: &Address) -> Result<Address, Refusal> {
    let value = step.address(addr);
    if let Some(at) = value.known().and_then(|l| l.one(step.mask)) {
        return Ok(Address { base: Operand::Imm(numbered(step, at)), offset: 0 });
    }
    if let Val::Based(Base::Register(r), l) = &value
        && let Some(offset) = l.one(step.mask)
    {
        #[expect(clippy::cast_possible_truncation, reason = "32 bits wrap")]
        let offset = (offset as u32).cast_signed();
        return Ok(Address { base: Operand::Reg(Reg(*r)), offset });
    }
    step.abstain(format!("an address in tensor memory that depends on {}", step.warp.reason(&value)))
}

/// An address that is a number, as a residual program has it.
fn numbered(step: &mut Executing<'_, '_>, at: u64) -> i128 {
    let line = step.line();
    step.warp.out.numbered.get_or_insert(line);
    step.note("an address in tensor memory is a number: the only allocation of the CTA has all columns and starts at 0");
    i128::from(at & 0xffff_ffff) + FIRST_COLUMN
}

pub(super) fn tensor(step: &mut Executing<'_, '_>, op: &Tcgen05) -> Result<Then, Refusal> {
    let mut made = Made::default();
    let mut new = op.clone();
    match &mut new {
        Tcgen05::Alloc { space, dst, columns, .. } => {
            step.state.behind.wait(false);
            let address = step.address(dst);
            let touch = step.shared(*space, &address, 4, Kind::Word)?;
            if let Mem::Shared(cta) = touch.mem {
                step.stored(cta, touch.ranges[0].0, 4, Content::Allocation)?;
            }
            *dst = made.touch(touch);
            *columns = step.number(*columns, "a number of columns")?;
        }
        Tcgen05::Dealloc { addr, columns, .. } => {
            let value = step.value(*addr);
            *addr = match step.operand_of(&value) {
                Some(Operand::Imm(at)) => Operand::Imm(numbered(step, u64::try_from(at).unwrap_or(0))),
                Some(register) => register,
                None => {
                    let why = step.warp.reason(&value);
                    return step.abstain(format!("an address in tensor memory that depends on {why}"));
                }
            };
            *columns = step.number(*columns, "a number of columns")?;
        }
        Tcgen05::Load(load) => {
            load.addr = in_tensor(step, &load.addr)?;
            let line = step.line();
            let stands = step.slot(0)?;
            let mut registers = Vec::new();
            for r in load.dst.iter_mut().chain(load.reduce.iter_mut().map(|r| &mut r.dst)) {
                step.set(*r, Val::Unknown(Why::Loaded(line)));
                registers.push(std::mem::replace(r, stands));
            }
            loaded(step, registers, stands);
        }
        Tcgen05::Store(store) => {
            store.addr = in_tensor(step, &store.addr)?;
            let zero = step.warp.spare(0)?;
            store.src.iter_mut().for_each(|r| *r = zero);
        }
        Tcgen05::Copy { shape, dst, src, .. } => {
            *dst = in_tensor(step, dst)?;
            let extent = copied_extent(*shape);
            *src = matrix_at(step, src, extent, &mut made)?;
        }
        Tcgen05::Shift { addr, .. } => *addr = in_tensor(step, addr)?,
        Tcgen05::Mma(mma) => product(step, mma, &mut made)?,
        Tcgen05::Commit(commit) => {
            let address = step.address(&commit.addr);
            let touch = step.shared(commit.space, &address, MBARRIER_BYTES, Kind::Barrier)?;
            commit.addr = made.touch(touch);
            if let Some(multicast) = &mut commit.multicast {
                multicast.mask = step.number(multicast.mask, "a mask of CTAs")?;
            }
        }
        Tcgen05::WaitLoad => waited(step),
        Tcgen05::Relinquish { .. } | Tcgen05::WaitStore | Tcgen05::FenceBefore | Tcgen05::FenceAfter => {}
    }
    step.leave(Op::Tcgen05(new), made)
}

/// The mask of the lanes of `d` that a product leaves alone. If it is not known, the product is taken to write all lanes: what
/// conflicts with fewer of them conflicts with all, and nothing is ordered by the mask.
fn lanes_off(step: &mut Executing<'_, '_>, mma: &mut Mma) -> Result<(), Refusal> {
    let known = |r: &Reg| step.state.env[r.index()].known()?.one(step.mask);
    let all: Option<Vec<u64>> = mma.lanes_off.iter().map(known).collect();
    let all = all.unwrap_or_else(|| {
        step.note("which lanes a product leaves alone is not known: it is taken to write all");
        Vec::new()
    });
    if all.iter().all(|v| *v == 0) {
        let zero = step.warp.spare(0)?;
        mma.lanes_off.iter_mut().for_each(|r| *r = zero);
        return Ok(());
    }
    for (n, (reg, value)) in mma.lanes_off.iter_mut().zip(all).enumerate() {
        *reg = step.slot(n)?;
        let src = Operand::Imm(i128::from(value & 0xffff_ffff));
        step.leave_op(Op::Mov { ty: Ty::B(32), dst: *reg, src })?;
    }
    Ok(())
}

fn product(step: &mut Executing<'_, '_>, mma: &mut Mma, made: &mut Made) -> Result<(), Refusal> {
    mma.d = in_tensor(step, &mma.d)?;
    let ProductShape::Packed(word) = mma.shape else {
        return step.abstain("a shape that is not an instruction descriptor");
    };
    let Operand::Imm(word) = step.number(word, "an instruction descriptor")? else {
        return Ok(());
    };
    let word =
        u32::try_from(word).or_else(|_| step.abstain("an instruction descriptor wider than 32 bits"))?;
    let shape = InstructionDescriptor::decode(word, mma.kind);
    mma.shape = ProductShape::Tile { m: shape.m, n: shape.n };
    // In a CTA pair, each CTA holds half of the rows of A and half of the columns of B.
    let share = |n: u16| u32::from(n / mma.group.ctas());
    let sparse = mma.metadata.is_some();
    let rows = factor_extent(mma.kind, share(shape.m), false, shape.a_major);
    let columns = factor_extent(mma.kind, share(shape.n), sparse, shape.b_major);
    mma.a = match mma.a {
        Factor::Shared(a) => Factor::Shared(matrix_at(step, &a, rows, made)?),
        Factor::Tensor(a) => Factor::Tensor(in_tensor(step, &a)?),
    };
    mma.b = matrix_at(step, &mma.b, columns, made)?;
    if let Some(metadata) = &mut mma.metadata {
        *metadata = in_tensor(step, metadata)?;
    }
    if let Some(scales) = &mut mma.scales {
        scales.a = in_tensor(step, &scales.a)?;
        scales.b = in_tensor(step, &scales.b)?;
    }
    lanes_off(step, mma)?;
    if let EnableInput::When(guard) = mma.input {
        let value = &step.state.env[guard.reg.index()];
        let Some(on) = value.known().and_then(|l| l.one(step.mask)) else {
            return step
                .abstain(format!("a product whose `enable-input-d` depends on {}", step.warp.reason(value)));
        };
        mma.input = EnableInput::Always((on != 0) != guard.negated);
    }
    if mma.zero_columns.is_some() {
        mma.zero_columns = Some(Operand::Imm(0));
    }
    Ok(())
}
