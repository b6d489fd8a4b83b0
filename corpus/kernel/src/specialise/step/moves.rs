//! Runs loads and stores that litmus texts do not have: of parameters, constants, local memory and matrices, and with
//! cache operators.

use super::access::{Access, data, load, store};
use super::place::Place;
use super::remote::remote_of;
use super::{Step, Then};
use crate::Refusal;
use crate::ptx::{Arg, Plain, Statement};
use crate::specialise::known::alu::Int;
use crate::specialise::known::flow::effects;
use crate::specialise::known::map::{LOCALS, PARAMS};
use crate::specialise::known::value::{Base, Lanes, Val, Why, lanes};
use moire_program::ir::{Address, Operand, Reg, RemoteOrder, RemoteWrite, Space, Ty};

pub(super) fn plain_load(
    step: &mut Step<'_, '_>,
    statement: &Statement,
    words: &[&str],
    plain: &Plain,
) -> Result<Then, Refusal> {
    let (dst, _) = effects(statement);
    if words.iter().any(|w| w.starts_with("param")) {
        step.mask = step.guarded(statement.guard)?;
        return load_parameter(step, &dst, words, plain);
    }
    step.mask = step.guarded(statement.guard)?;
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    if words.contains(&"const") || words.contains(&"local") {
        for r in &dst {
            step.set(*r, Val::Unknown(Why::Loaded(statement.line)));
        }
        return Ok(Then::Next);
    }
    let address = plain.args.get(1).map(|a| step.arg(a));
    let Some(address) = address else { return Ok(Then::Next) };
    let access = shape(words, dst.len().max(1));
    if access.strong {
        return step.abstain("a load with this combination of qualifiers");
    }
    if words[0] == "ldu" || words.contains(&"nc") {
        promised(step, &access, &address)?;
    }
    load(step, &access, &dst, &address)
}

/// Notes what a load reads that is right only for memory that nothing writes while the kernel runs.
fn promised(step: &mut Step<'_, '_>, access: &Access, address: &Val) -> Result<(), Refusal> {
    let Place::In(mem, at) = step.place(access.space, address)? else { return Ok(()) };
    let (line, bytes) = (step.line(), u64::from(access.bytes(step)?));
    for lane in lanes(step.mask) {
        step.warp.out.promised.insert((mem, at.get(lane), at.get(lane).saturating_add(bytes), line));
    }
    Ok(())
}

pub(super) fn plain_store(
    step: &mut Step<'_, '_>,
    statement: &Statement,
    words: &[&str],
    plain: &Plain,
) -> Result<Then, Refusal> {
    step.mask = step.guarded(statement.guard)?;
    if step.mask == 0 || words.contains(&"local") || words.iter().any(|w| w.starts_with("param")) {
        return Ok(Then::Next);
    }
    if words.get(1) == Some(&"async") && words.contains(&"mbarrier::complete_tx::bytes") {
        return vector_away(step, words, plain);
    }
    if words.contains(&"bulk") || words.contains(&"async") {
        return step.abstain(format!("`{}` is not interpreted", words.join(".")));
    }
    let (Some(at), Some(data)) = (plain.args.first(), plain.args.get(1)) else { return Ok(Then::Next) };
    let address = step.arg(at);
    let values: Vec<Val> = match data {
        Arg::Vector(all) => all.iter().map(|a| step.arg(a)).collect(),
        one => vec![step.arg(one)],
    };
    let access = shape(words, values.len());
    store(step, &access, &values, &address)?;
    Ok(Then::Next)
}

/// Runs `st.async` of a vector in one register. Its elements count as unknown.
fn vector_away(step: &mut Step<'_, '_>, words: &[&str], plain: &Plain) -> Result<Then, Refusal> {
    let address = |arg: Option<&Arg>| match arg {
        Some(Arg::Address(base, offset)) => match **base {
            Arg::Reg(reg) => Some(Address { base: Operand::Reg(reg), offset: i32::try_from(*offset).ok()? }),
            _ => None,
        },
        _ => None,
    };
    let (Some(addr), Some(mbarrier)) = (address(plain.args.first()), address(plain.args.get(2))) else {
        return step.abstain(format!("`{}` is not interpreted", words.join(".")));
    };
    let count = [("v2", 2), ("v4", 4)].into_iter().find(|c| words.contains(&c.0)).map_or(1, |c| c.1);
    let shape = shape(words, count);
    let order = RemoteOrder::Mbarrier(mbarrier);
    let write = RemoteWrite { op: None, space: shape.space, ty: shape.ty, addr, src: Vec::new(), order };
    let values = vec![Val::Unknown(Why::Computed(step.line())); count];
    remote_of(step, &write, &values)
}

fn shape(words: &[&str], count: usize) -> Access {
    let space = words.iter().find_map(|w| match *w {
        "shared" | "shared::cta" => Some(Space::SharedCta),
        "shared::cluster" => Some(Space::SharedCluster),
        "global" => Some(Space::Global),
        _ => None,
    });
    let ty = words.last().and_then(|w| crate::ptx::type_of(w)).unwrap_or(Ty::B(32));
    let strong = ["relaxed", "acquire", "release", "volatile", "mmio"].iter().any(|w| words.contains(w));
    Access { space: space.unwrap_or(Space::Generic), ty, count, strong }
}

fn load_parameter(
    step: &mut Step<'_, '_>,
    dst: &[Reg],
    words: &[&str],
    plain: &Plain,
) -> Result<Then, Refusal> {
    let line = step.line();
    let size = u64::from(words.last().and_then(|w| crate::ptx::type_of(w)).map_or(4, Ty::bytes));
    let at = plain.args.get(1).map(|a| step.arg(a));
    let at = at.as_ref().and_then(Val::known).and_then(|l| l.one(step.mask));
    for (i, r) in (0u64..).zip(dst) {
        let value =
            at.map(|at| parameter(step, at + i * size, size)).unwrap_or(Val::Unknown(Why::Loaded(line)));
        step.set(*r, value);
    }
    Ok(Then::Next)
}

fn parameter(step: &Step<'_, '_>, at: u64, size: u64) -> Val {
    let found =
        step.round().map.params.iter().rposition(|p| *p <= at).filter(|_| (PARAMS..LOCALS).contains(&at));
    let Some(n) = found else { return Val::Unknown(Why::Computed(0)) };
    let Ok(index) = u16::try_from(n) else { return Val::Unknown(Why::Computed(0)) };
    let inside = at - step.round().map.params[n];
    let cut = Int { bits: u32::try_from(8 * size).unwrap_or(64).clamp(1, 64), signed: false };
    let within = u32::try_from(inside).unwrap_or(u32::MAX);
    if let Some(v) = step.round().launch.fields.get(&(index, within)) {
        return Val::same(cut.cut(*v));
    }
    match step.round().launch.params.get(&index) {
        Some(v) => Val::same(if inside >= 8 { 0 } else { cut.cut(v >> (8 * inside)) }),
        None if step.round().kernel.params[n].pointer && inside == 0 && size == 8 => {
            Val::Based(Base::Param(index), Lanes::Same(0))
        }
        None => Val::Unknown(Why::Param(index, within)),
    }
}

/// Runs `ldmatrix` and `stmatrix`, which move matrices of eight rows between shared memory and registers.
pub(super) fn matrix(
    step: &mut Step<'_, '_>,
    statement: &Statement,
    words: &[&str],
    plain: &Plain,
) -> Result<Then, Refusal> {
    step.mask = step.guarded(statement.guard)?;
    if step.mask == 0 {
        return Ok(Then::Next);
    }
    let load = words[0] == "ldmatrix";
    let address = plain.args.iter().find(|a| matches!(a, Arg::Address(..))).map(|a| step.arg(a));
    let Some(address) = address else { return Ok(Then::Next) };
    let count = if words.contains(&"x4") {
        4
    } else if words.contains(&"x2") {
        2
    } else {
        1
    };
    // Lane `height * m + r` has the address of row r of matrix m (PTX ISA 9.2, 9.7.14.5.15). Every row has 16 bytes.
    let height = if words.contains(&"m16n16") { 16 } else { 8 };
    let rows = if height * count >= 32 { u32::MAX } else { (1 << (height * count)) - 1 };
    let space = if words.iter().any(|w| w.starts_with("shared")) { Space::SharedCta } else { Space::Generic };
    if let Place::In(mem, at) = step.place(space, &address)? {
        let mask = step.mask & rows;
        data(&mut step.only(mask), !load, mem, &at, 16)?;
    }
    if load {
        let (written, _) = effects(statement);
        let line = statement.line;
        written.iter().for_each(|r| step.set(*r, Val::Unknown(Why::Loaded(line))));
    }
    Ok(Then::Next)
}
