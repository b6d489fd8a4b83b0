//! Runs loads and stores that litmus texts do not have: of parameters, constants, local memory and matrices, vectors of
//! updates, and ranges.

use super::access::{Access, data, load, loose, moved, store};
use super::place::Place;
use super::remote::remote_of;
use super::{Executing, Then};
use crate::Refusal;
use crate::ptx::{self, Statement, Updated};
use crate::specialise::item::Manner;
use crate::specialise::known::alu::Int;
use crate::specialise::known::flow::effects;
use crate::specialise::known::line::Line;
use crate::specialise::known::map::{LOCALS, PARAMS};
use crate::specialise::known::value::{Base, Lanes, Val, Why, lanes};
use moire_isa::kinds::{self, MatrixShape, StoreOrder};
use moire_isa::operand::Address as At;
use moire_isa::{Ld, LdMatrix, Ldu, St, StAsync, StBulk, StMatrix};
use moire_program::ir::{Address, Operand, Reg, RemoteOrder, RemoteWrite, Scope, Space};

pub(super) fn plain_load(
    step: &mut Executing<'_, '_>,
    statement: &Statement,
    ld: &Ld,
) -> Result<Then, Refusal> {
    let (dst, _) = effects(statement);
    step.mask = step.guarded(statement.guard)?;
    if ld.space == kinds::Space::Param {
        return load_parameter(step, &dst, ld);
    }
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    let Some(space) = ptx::space(ld.space) else {
        dst.iter().for_each(|r| step.set(*r, Val::Unknown(Why::Loaded(statement.line))));
        return Ok(Then::Next);
    };
    let strong = ld.order.order != kinds::LoadOrder::Weak || ld.mmio.is();
    if strong {
        return step.abstain("a load with this combination of qualifiers");
    }
    let address = step.at(&ld.addr.address);
    let Some(ty) = ptx::ty(ld.ty) else { return step.abstain("a load of halves") };
    let access = Access { space, ty, count: dst.len().max(1), strong };
    if ld.nc.is() || ld.readonly.is() {
        promised(step, &access, &address)?;
    }
    load(step, &access, &dst, &address)
}

/// Runs `ldu`, which reads what nobody writes.
pub(super) fn uniform_load(
    step: &mut Executing<'_, '_>,
    statement: &Statement,
    ldu: &Ldu,
) -> Result<Then, Refusal> {
    step.mask = step.guarded(statement.guard)?;
    let (dst, _) = effects(statement);
    let (Some(space), Some(ty)) = (ptx::space(ldu.space.into()), ptx::ty(ldu.ty)) else {
        return step.abstain("a load of halves");
    };
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    let (access, address) =
        (Access { space, ty, count: dst.len().max(1), strong: false }, step.at(&ldu.addr));
    promised(step, &access, &address)?;
    load(step, &access, &dst, &address)
}

/// Notes what a load reads that is right only for memory that nothing writes while the kernel runs.
fn promised(step: &mut Executing<'_, '_>, access: &Access, address: &Val) -> Result<(), Refusal> {
    let (line, bytes) = (step.line(), u64::from(access.bytes(step)?));
    if let Some((mem, start, end)) = step.somewhere(address) {
        step.warp.out.promised.insert((mem, start, end, line));
        return Ok(());
    }
    let Place::In(mem, at) = step.place(access.space, address)? else { return Ok(()) };
    for lane in lanes(step.mask) {
        step.warp.out.promised.insert((mem, at.get(lane), at.get(lane).saturating_add(bytes), line));
    }
    Ok(())
}

/// Runs a store of values that no operation has, such as special registers. Private memory is seen by no other lane.
pub(super) fn plain_store(step: &mut Executing<'_, '_>, st: &St) -> Result<Then, Refusal> {
    let (Some(space), Some(ty)) = (ptx::space(st.space), ptx::ty(st.ty)) else { return Ok(Then::Next) };
    if st.src.has_sink() {
        return step.abstain(format!("`{}` of some elements is not interpreted", step.mnemonic()));
    }
    let address = step.at(&st.addr);
    let values: Vec<Val> = st.src.items.iter().map(|value| step.real(value, st.ty.bits())).collect();
    let strong = st.order.order != StoreOrder::Weak || st.mmio.is();
    let access = Access { space, ty, count: values.len(), strong };
    let regs: Vec<Option<Reg>> = st.src.items.iter().map(ptx::reg).collect();
    store(step, &access, (&values, &regs), &address)?;
    Ok(Then::Next)
}

/// Runs `atom` and `red` of vectors and of halves. Their values are not followed: as accesses they write these bytes.
pub(super) fn updated(
    step: &mut Executing<'_, '_>,
    statement: &Statement,
    update: Updated<'_>,
) -> Result<Then, Refusal> {
    let (relaxed, scope, space, addr, bits) = match update {
        Updated::Atom(i) => {
            let relaxed = i.order == kinds::AtomOrder::Relaxed;
            (relaxed, i.scope, i.space, &*i.addr, i.vec.count() * usize::from(i.ty.bits()))
        }
        Updated::Red(i) => {
            let relaxed = i.order == kinds::RedOrder::Relaxed;
            (relaxed, i.scope, i.space, &i.addr, i.vec.count() * usize::from(i.ty.bits()))
        }
    };
    let (Some(space), Ok(bytes), true) = (ptx::space(space), u32::try_from(bits / 8), relaxed) else {
        return step.abstain(format!("`{}` is not interpreted", step.mnemonic()));
    };
    let scope = scope.map_or(Scope::Gpu, ptx::scope);
    let address = step.at(addr);
    if !loose(step, true, Some(scope), &address)?
        && let Place::In(mem, at) = step.place(space, &address)?
    {
        moved(step, (true, Manner::Relaxed(scope)), mem, &at, bytes)?;
    }
    let unknown = Val::Unknown(Why::Loaded(statement.line));
    effects(statement).0.iter().for_each(|r| step.set(*r, unknown.clone()));
    Ok(Then::Next)
}

/// Runs `st.bulk`: a weak store of zeros to a range, as long as all lanes agree (PTX ISA 9.2, 9.7.9.14).
pub(super) fn range(step: &mut Executing<'_, '_>, st: &StBulk) -> Result<Then, Refusal> {
    let (address, size) = (step.at(&st.addr), step.read(&st.bytes));
    let bytes = size.known().and_then(|l| l.one(step.mask)).and_then(|n| u32::try_from(n).ok());
    let (Some(bytes), Some(space)) = (bytes, ptx::space(st.space.into())) else {
        return step.abstain(format!("the size of a range that depends on {}", step.warp.reason(&size)));
    };
    if bytes > 0
        && let Place::In(mem, at) = step.place(space, &address)?
    {
        data(step, true, mem, &at, bytes)?;
    }
    Ok(Then::Next)
}

/// Runs `st.async` of a vector in one register. Its elements count as unknown.
pub(super) fn vector_away(step: &mut Executing<'_, '_>, st: &StAsync) -> Result<Then, Refusal> {
    let address = |at: &At| {
        let base = Operand::Reg(ptx::reg(&at.base)?);
        Some(Address { base, offset: i32::try_from(at.offset).ok()? })
    };
    let (addr, mbarrier) = (address(&st.addr), st.mbarrier.as_ref().and_then(address));
    let (Some(addr), Some(mbarrier), Some(space), Some(ty)) =
        (addr, mbarrier, ptx::space(st.space.into()), ptx::ty(st.ty))
    else {
        return step.abstain(format!("`{}` is not interpreted", step.mnemonic()));
    };
    let order = RemoteOrder::Mbarrier(mbarrier);
    let write = RemoteWrite { op: None, space, ty, addr, src: Vec::new(), order };
    let values = vec![Val::Unknown(Why::Computed(step.line())); st.vec.count()];
    remote_of(step, &write, &values)
}

fn load_parameter(step: &mut Executing<'_, '_>, dst: &[Reg], ld: &Ld) -> Result<Then, Refusal> {
    let (line, size) = (step.line(), u64::from(ld.ty.bits() / 8));
    let at = step.at(&ld.addr.address);
    let at = at.known().and_then(|l| l.one(step.mask));
    for (i, r) in (0u64..).zip(dst) {
        let value =
            at.map(|at| parameter(step, at + i * size, size)).unwrap_or(Val::Unknown(Why::Loaded(line)));
        step.set(*r, value);
    }
    Ok(Then::Next)
}

fn parameter(step: &Executing<'_, '_>, at: u64, size: u64) -> Val {
    let found = step
        .round()
        .kernel
        .map()
        .params
        .iter()
        .rposition(|p| *p <= at)
        .filter(|_| (PARAMS..LOCALS).contains(&at));
    let Some(n) = found else { return Val::Unknown(Why::Computed(0)) };
    let Ok(index) = u16::try_from(n) else { return Val::Unknown(Why::Computed(0)) };
    let inside = at - step.round().kernel.map().params[n];
    let cut = Int { bits: u32::try_from(8 * size).unwrap_or(64).clamp(1, 64), signed: false };
    let within = u32::try_from(inside).unwrap_or(u32::MAX);
    let number = |v: u64| grown(step, (index, within), size, v);
    if let Some(v) = step.round().launch.fields.get(&(index, within)) {
        return number(cut.cut(*v));
    }
    let actual = &step.round().launch.actual;
    if let Some((memory, offset)) = actual.pointers.get(&(index, within)).filter(|_| size == 8) {
        return Val::Based(Base::Param(*memory), Lanes::Same(*offset));
    }
    match step.round().launch.params.get(&index) {
        Some(v) => number(if inside >= 8 { 0 } else { cut.cut(v >> (8 * inside)) }),
        None if actual.points(index, within, size) => Val::Unknown(Why::Computed(step.line())),
        None if actual.bytes.contains_key(&index) => {
            actual.number(index, within, size).map_or(Val::Unknown(Why::Param(index, within)), Val::same)
        }
        None if step.round().kernel.params[n].pointer && inside == 0 && size == 8 => {
            Val::Based(Base::Param(step.round().launch.queued.memory(index)), Lanes::Same(0))
        }
        None => Val::Unknown(Why::Param(index, within)),
    }
}

/// The number in so many bytes of a parameter, which may be that of a launch of any size.
fn grown(step: &Executing<'_, '_>, (index, within): (u16, u32), bytes: u64, v: u64) -> Val {
    let Some(plan) = step.round().plan.filter(|p| p.place.0 == index && p.place.1 <= within) else {
        return Val::same(v);
    };
    let (line, below) = (Line { turn: 0, size: plan.step }, within - plan.place.1);
    if below == 0 {
        let bits = u32::try_from(8 * bytes).unwrap_or(64).clamp(1, 64);
        plan.reach.note(step.warp.cone, line, i128::from(v), bits);
        return Val::Based(Base::Line(line), Lanes::Same(v));
    }
    // The number does not reach the bytes above it.
    if below < 8 {
        plan.reach.note(step.warp.cone, line, i128::from(plan.base), 8 * below);
    }
    Val::same(v)
}

/// The matrices that a warp loads or stores.
#[derive(Clone, Copy)]
pub(super) struct Matrices {
    write: bool,
    at: At,
    space: kinds::SharedSpace,
    /// Rows of a matrix, and matrices.
    rows: (usize, usize),
}

impl From<&LdMatrix> for Matrices {
    fn from(ld: &LdMatrix) -> Matrices {
        let height = if ld.shape == MatrixShape::M16n16 { 16 } else { 8 };
        Matrices { write: false, at: ld.addr, space: ld.space, rows: (height, ld.count.count()) }
    }
}

impl From<&StMatrix> for Matrices {
    fn from(st: &StMatrix) -> Matrices {
        Matrices { write: true, at: st.addr, space: st.space, rows: (8, st.count.count()) }
    }
}

/// Runs `ldmatrix` and `stmatrix`, which move matrices between shared memory and registers.
pub(super) fn matrix(
    step: &mut Executing<'_, '_>,
    statement: &Statement,
    of: Matrices,
) -> Result<Then, Refusal> {
    step.mask = step.guarded(statement.guard)?;
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    let Matrices { write, at, space, rows: (height, count) } = of;
    let address = step.at(&at);
    // Lane `height * m + r` has the address of row r of matrix m (PTX ISA 9.2, 9.7.14.5.15). Every row has 16 bytes.
    let rows = if height * count >= 32 { u32::MAX } else { (1 << (height * count)) - 1 };
    let space = ptx::space(space.into()).unwrap_or(Space::Generic);
    if let Place::In(mem, at) = step.place(space, &address)? {
        let mask = step.mask & rows;
        data(&mut step.only(mask), write, mem, &at, 16)?;
    }
    if !write {
        let (written, _) = effects(statement);
        written.iter().for_each(|r| step.set(*r, Val::Unknown(Why::Loaded(statement.line))));
    }
    Ok(Then::Next)
}
