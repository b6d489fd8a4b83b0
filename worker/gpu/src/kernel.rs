//! A litmus program as a kernel with many instances.
//!
//! Contract: the kernel has one entry, `run`. A CTA of the grid plays one CTA of the program for 32 instances, or makes
//! memory traffic; a table that the host shuffles says which. A warp plays one thread, each of its lanes for another
//! instance. CTAs that play together need not be neighbours, and the host also chooses the order in which their lanes are
//! matched. Each instance has its own copy of each object, `stride` bytes after the copy before. The instructions are those
//! of the program in the same order; only names of objects are replaced by addresses.

use crate::takes::{not_run, observed, takes};
use moire_program::Refusal;
use moire_program::ir::{Address, Op, Operand, Program, Reg, RegDecl, RegInit, Thread};
use moire_program::text::instruction;
use moire_program::validate::classes;
use std::fmt::Write;

/// Instances that a CTA plays for: one for each lane.
pub const LANES: u32 = 32;
/// The version of PTX of the kernels: the first with all fences.
pub const PTX_VERSION: &str = "8.6";

/// A kernel, and the facts about it that the host needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its PTX.
    pub text: String,
    /// CTAs of the program.
    pub ctas: u32,
    /// Threads of a CTA of the grid.
    pub threads: u32,
    /// Registers that it returns for each instance, 8 bytes each, in the order of [`observed`].
    pub slots: u32,
    /// Size and first content of each object.
    pub objects: Vec<Vec<u8>>,
}

/// `program` for devices of the architecture `target`, such as `sm_90`.
///
/// # Errors
/// The lane does not run it.
pub fn kernel(program: &Program, target: &str) -> Result<Kernel, Refusal> {
    takes(program)?;
    let count = |of: fn(&moire_program::ir::Placement) -> u16| {
        program.threads.iter().map(|t| u32::from(of(&t.place)) + 1).max().unwrap_or(1)
    };
    let (ctas, warps) = (count(|p| p.cta), count(|p| p.warp));
    let seen = observed(program);
    let slots = u32::try_from(seen.len()).expect("registers are numbered with 16 bits");
    let mut text = head(target, ctas);
    for (t, thread) in program.threads.iter().enumerate() {
        let own = seen
            .iter()
            .enumerate()
            .filter(|(_, (id, _))| id.index() == t)
            .map(|(slot, (_, reg))| (slot, *reg));
        play(&mut text, program, t, thread, &own.collect::<Vec<_>>(), slots)?;
    }
    text.push_str("  ret;\n");
    stress(&mut text);
    text.push_str("}\n");
    let objects = program.objects.iter().map(|o| o.init.bytes(o.bytes)).collect();
    Ok(Kernel { text, ctas, threads: warps * LANES, slots, objects })
}

/// The start of the kernel, which computes the role of the CTA, the warp and the number of the instance.
fn head(target: &str, ctas: u32) -> String {
    format!(
        ".version {PTX_VERSION}\n.target {target}\n.address_size 64\n\n\
         .visible .entry run(\n  .param .u64 memory, .param .u64 results, .param .u64 roles, .param .u64 scratch,\n  \
         .param .u32 instances, .param .u32 stride, .param .u32 turn, .param .u32 rounds\n)\n{{\n  \
         .reg .b32 role, cta, group, warp, lane, instance, one, two;\n  .reg .b64 base, size, address, wide;\n  \
         .reg .pred other;\n  ld.param.u64 address, [roles];\n  mov.u32 one, %ctaid.x;\n  mul.wide.u32 wide, one, 4;\n  \
         add.u64 address, address, wide;\n  ld.global.u32 role, [address];\n  mov.u32 one, %tid.x;\n  \
         shr.u32 warp, one, 5;\n  and.b32 lane, one, 31;\n  setp.eq.u32 other, role, 0xffffffff;\n  @other bra STRESS;\n  \
         div.u32 group, role, {ctas};\n  mul.lo.u32 cta, group, {ctas};\n  sub.u32 cta, role, cta;\n  \
         // an odd number of steps, and a start that depends on the CTA: lanes of two CTAs meet in another order\n  \
         ld.param.u32 one, [turn];\n  or.b32 two, one, 1;\n  mul.lo.u32 two, two, lane;\n  mul.lo.u32 one, one, cta;\n  \
         add.u32 two, two, one;\n  and.b32 two, two, 31;\n  shl.b32 instance, group, 5;\n  add.u32 instance, instance, two;\n  \
         ld.param.u32 one, [instances];\n  ld.param.u32 two, [stride];\n  mul.wide.u32 size, one, two;\n  \
         mul.wide.u32 wide, instance, two;\n  ld.param.u64 base, [memory];\n  add.u64 base, base, wide;\n"
    )
}

/// One thread of the program.
fn play(
    out: &mut String,
    program: &Program,
    t: usize,
    thread: &Thread,
    seen: &[(usize, Reg)],
    slots: u32,
) -> Result<(), Refusal> {
    let mut thread = addressed(program, thread);
    for (n, reg) in thread.regs.iter_mut().enumerate() {
        reg.name = format!("r{n}");
    }
    let widths = classes(&thread).map_err(|_| not_run("a register of several widths"))?;
    let (cta, warp) = (thread.place.cta, thread.place.warp);
    let _ = write!(
        out,
        "  setp.ne.u32 other, cta, {cta};\n  @other bra E{t};\n  setp.ne.u32 other, warp, {warp};\n  @other bra E{t};\n  \
         {{ // {}\n",
        thread.name
    );
    let objects = program.objects.len();
    for (reg, bits) in thread.regs.iter().zip(&widths) {
        let _ = writeln!(out, "    .reg .b{bits} {};", reg.name);
    }
    let first = thread.regs.len() - objects;
    for (n, (reg, bits)) in thread.regs.iter().zip(&widths).enumerate() {
        let _ = match n.checked_sub(first) {
            Some(object) => {
                writeln!(out, "    mul.lo.u64 wide, size, {object};\n    add.u64 {}, base, wide;", reg.name)
            }
            None => writeln!(out, "    mov.b{bits} {}, 0;", reg.name),
        };
    }
    for instr in &thread.body {
        let _ = writeln!(out, "    {};", instruction(program, &thread, instr));
    }
    let _ = writeln!(
        out,
        "    ld.param.u64 address, [results];\n    mul.wide.u32 wide, instance, {};",
        slots * 8
    );
    out.push_str("    add.u64 address, address, wide;\n");
    for (slot, reg) in seen {
        let (name, bits) = (&thread.regs[reg.index()].name, widths[reg.index()]);
        let _ = match bits {
            64 => writeln!(out, "    st.global.u64 [address+{}], {name};", slot * 8),
            _ => writeln!(
                out,
                "    cvt.u64.u32 wide, {name};\n    st.global.u64 [address+{}], wide;",
                slot * 8
            ),
        };
    }
    let _ = write!(out, "    ret;\n  }}\nE{t}:\n");
    Ok(())
}

/// The thread with addresses in registers in place of names of objects. These registers come after its own.
fn addressed(program: &Program, thread: &Thread) -> Thread {
    let mut next = thread.clone();
    let first = next.regs.len();
    let start = || RegDecl { name: String::new(), init: RegInit::Value(0) };
    next.regs.extend(program.objects.iter().map(|_| start()));
    let register = |symbol: usize| {
        let number = first + program.symbols[symbol].object.index();
        Reg(u16::try_from(number).expect("programs have at most some hundred registers and objects"))
    };
    for instr in &mut next.body {
        let (Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Rmw { addr, .. }) = &mut instr.op else {
            continue;
        };
        if let Operand::Address(symbol) = addr.base {
            *addr = Address { base: Operand::Reg(register(symbol.index())), offset: addr.offset };
        }
    }
    next
}

/// The code of a CTA without a role: stores and loads in the scratch memory, for a number of rounds.
fn stress(out: &mut String) {
    out.push_str(
        "STRESS:\n  {\n    .reg .b32 left, at, value;\n    .reg .b64 place;\n    .reg .pred more;\n    \
         ld.param.u32 left, [rounds];\n    ld.param.u64 address, [scratch];\n    mov.u32 one, %ctaid.x;\n    \
         mov.u32 two, %tid.x;\n    mad.lo.u32 at, one, 97, two;\nAGAIN:\n    setp.eq.u32 more, left, 0;\n    \
         @more bra OVER;\n    and.b32 one, at, 0x3fff;\n    mul.wide.u32 place, one, 4;\n    \
         add.u64 place, address, place;\n    st.volatile.global.u32 [place], left;\n    \
         ld.volatile.global.u32 value, [place];\n    add.u32 at, at, 33;\n    sub.u32 left, left, 1;\n    \
         bra AGAIN;\nOVER:\n    ret;\n  }\n",
    );
}
