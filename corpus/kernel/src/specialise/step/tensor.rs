//! Runs tensor-core instructions: resolves their operands, and turns descriptors into footprints.

use super::loaded::{loaded, waited};
use super::matrix::matrix_at;
use super::{Executing, Made, Then};
use crate::Refusal;
use crate::ptx::{self, Sort, Statement, Sum, What, sort, sources};
use crate::specialise::columns::FIRST_COLUMN;
use crate::specialise::item::Content;
use crate::specialise::known::flow::effects;
use crate::specialise::known::value::{Base, Val, Why};
use crate::specialise::touch::{Kind, Mem};
use moire_isa::Value;
use moire_isa::kinds::BinaryForm;
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
    if matches!(value, Val::Based(Base::Register(_), _)) {
        return step.abstain("an address in tensor memory that differs from lane to lane");
    }
    step.abstain(format!("an address in tensor memory that depends on {}", step.warp.reason(&value)))
}

/// Number of the register of a product that holds the address of its first scale factors.
const SCALES: usize = 7_000;

/// Resolves the address of scale factors. CUTLASS keeps the number of the factor in a column, which the instruction descriptor
/// repeats, in its two highest bits.
fn scale_in_tensor(step: &mut Executing<'_, '_>, addr: &Address, n: usize) -> Result<Address, Refusal> {
    let Address { base, offset } = in_tensor(step, addr)?;
    let Operand::Reg(_) = base else { return Ok(Address { base, offset }) };
    let (dst, ty) = (step.slot(n)?, Ty::B(32));
    // All lanes compute it, so that it does not differ among them.
    let all = step.warp.together;
    let and = Op::Alu { op: AluOp::And, ty, dst, a: base, b: Operand::Imm(0x3fff_ffff) };
    step.only(all).leave_op(and)?;
    step.note("the two highest bits of the address of scale factors are their number in a column, and no part of the address");
    Ok(Address { base: Operand::Reg(dst), offset: offset & 0x3fff_ffff })
}

/// An address that is a number, as a residual program has it.
fn numbered(step: &mut Executing<'_, '_>, at: u64) -> i128 {
    let line = step.line();
    step.warp.out.numbered.get_or_insert(line);
    step.note("an address in tensor memory is a number: the only allocation of the CTA starts at 0, because no other CTA has columns beside it");
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

/// Most statements behind one another that are followed for the bits of a value.
const DEPTH: u32 = 8;

/// A value of 32 bits of which some are open.
#[derive(Clone, Copy)]
struct Bits {
    known: u32,
    open: u32,
}

/// The bits of a value that is put together by `and` and `or`: descriptors have bits from addresses in tensor memory that tell
/// which scale factors of a column are meant.
fn bits(step: &Executing<'_, '_>, operand: Operand, depth: u32) -> Bits {
    let low = |v: u64| u32::try_from(v & 0xffff_ffff).unwrap_or(0);
    if let Some(v) = step.value(operand).known().and_then(|l| l.one(step.mask)) {
        return Bits { known: low(v), open: 0 };
    }
    let open = Bits { known: 0, open: u32::MAX };
    let (Operand::Reg(reg), Some(depth)) = (operand, depth.checked_sub(1)) else { return open };
    let mut writers = step.round().kernel.body.iter().filter(|s| effects(s).0.contains(&reg));
    let (Some(Statement { what: What::Plain(instr), guard: None, .. }), None) =
        (writers.next(), writers.next())
    else {
        return open;
    };
    let (Sort::Computes(Sum::Binary(sum)), [a, b]) = (sort(instr), &sources(instr)[..]) else { return open };
    let part = |value: &Value| match value {
        Value::Imm(n) => Bits { known: low(n.cast_unsigned()), open: 0 },
        value => ptx::reg(value).map_or(open, |r| bits(step, Operand::Reg(r), depth)),
    };
    let (a, b) = (part(a), part(b));
    match sum.form {
        BinaryForm::And => {
            let may = (a.known | a.open) & (b.known | b.open);
            Bits { known: a.known & b.known & !(a.open | b.open), open: may & (a.open | b.open) }
        }
        BinaryForm::Or => {
            let known = a.known & !a.open | b.known & !b.open;
            Bits { known, open: (a.open | b.open) & !known }
        }
        _ => open,
    }
}

fn product(step: &mut Executing<'_, '_>, mma: &mut Mma, made: &mut Made) -> Result<(), Refusal> {
    mma.d = in_tensor(step, &mma.d)?;
    let ProductShape::Packed(word) = mma.shape else {
        return step.abstain("a shape that is not an instruction descriptor");
    };
    let word = match bits(step, word, DEPTH) {
        Bits { known, open } if open & InstructionDescriptor::SHAPE == 0 => known,
        _ => {
            let Operand::Imm(word) = step.number(word, "an instruction descriptor")? else {
                return Ok(());
            };
            u32::try_from(word).or_else(|_| step.abstain("an instruction descriptor wider than 32 bits"))?
        }
    };
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
        scales.a = scale_in_tensor(step, &scales.a, SCALES)?;
        scales.b = scale_in_tensor(step, &scales.b, SCALES + 1)?;
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
