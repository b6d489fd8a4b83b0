//! A litmus program as a kernel with many instances.
//!
//! Contract: the kernel has one entry, `run`. A CTA of the grid plays one CTA of the program for 32 instances, or makes
//! memory traffic; a table that the host shuffles says which. A warp plays one thread, each of its lanes for another
//! instance. CTAs that play together need not be neighbours, unless they are one cluster, and the host also chooses the order
//! in which their lanes are matched. Each instance has its own copy of each object, `stride` bytes after the copy before, and
//! one of 32 places in shared memory. The instructions are those of the program in the same order; only names of objects are
//! replaced by addresses. A barrier of a program is one of all lanes of its warps, so of all instances of the CTA.
//!
//! Shared memory gets its first content before any thread begins, and what is left in it goes where a global object of the
//! instance would be, after all have ended. Both are separated from the program by barriers. A thread ends when its copies
//! have, or, where an mbarrier learns of that, after a pause; CTAs of one cluster end together.

use crate::reach::addresses;
use crate::takes::{BARRIERS, clustered, copies, not_run, observed, takes};
use moire_program::Refusal;
use moire_program::ir::{Instr, Label, Op, Operand, Program, Reg, RegDecl, RegInit, Space, Thread};
use moire_program::text::instruction;
use moire_program::validate::classes;
use std::fmt::Write;

/// Instances that a CTA plays for: one for each lane.
pub const LANES: u32 = 32;
/// The version of PTX of the kernels: the first with all fences.
pub const PTX_VERSION: &str = "8.6";
/// Bytes of a word of a result.
const WORD: u32 = 8;
/// Shared memory is copied in pieces of so many bytes.
const PIECE: u32 = 4;
/// The first architecture with clusters, and with all of mbarriers and bulk copies.
const CLUSTERS: u32 = 90;
/// Pause behind copies that report to an mbarrier, in nanoseconds.
const PAUSE: u32 = 50_000;

/// A kernel, and the facts about it that the host needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its PTX.
    pub text: String,
    /// CTAs of the program.
    pub ctas: u32,
    /// Whether they are one cluster, and so are neighbours.
    pub cluster: bool,
    /// Threads of a CTA of the grid.
    pub threads: u32,
    /// Words that it returns for each instance, 8 bytes each.
    pub slots: u32,
    /// Words of each register, in the order of [`observed`].
    pub words: Vec<u32>,
    /// Size and first content of each object, of shared memory for each CTA ([`copies`]).
    pub objects: Vec<Vec<u8>>,
}

/// A register whose value is returned, and its first word.
type Returned = (u32, Reg);

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
    let cluster = clustered(program).is_some();
    let digits: String = target.chars().filter(char::is_ascii_digit).collect();
    let new =
        cluster || has(program, |op| matches!(op, Op::Mbarrier(_) | Op::AsyncCopy(_) | Op::ClusterWait));
    if new && digits.parse::<u32>().is_ok_and(|number| number < CLUSTERS) {
        return Err(not_run("clusters, mbarriers and copies on a device of this architecture"));
    }
    let (seen, words) = (observed(program), words(program)?);
    let slots = words.iter().sum();
    let mut text = head(program, target, ctas, cluster);
    for (t, thread) in program.threads.iter().enumerate() {
        let start = |n: usize| words[..n].iter().sum();
        let own = seen.iter().enumerate().filter(|(_, (id, _))| id.index() == t);
        let own: Vec<Returned> = own.map(|(n, (_, reg))| (start(n), *reg)).collect();
        play(&mut text, program, t, thread, &own, slots)?;
    }
    end(&mut text, program);
    stress(&mut text);
    text.push_str("}\n");
    let first = |(n, _): (usize, _)| program.objects[n].init.bytes(program.objects[n].bytes);
    let objects = copies(program).into_iter().map(first).collect();
    Ok(Kernel { text, ctas, cluster, threads: warps * LANES, slots, words, objects })
}

fn has(program: &Program, which: impl Fn(&Op) -> bool) -> bool {
    program.threads.iter().flat_map(|t| &t.body).any(|i| which(&i.op))
}

/// The words of each observed register.
fn words(program: &Program) -> Result<Vec<u32>, Refusal> {
    let all: Result<Vec<_>, _> = program.threads.iter().map(classes).collect();
    let all = all.map_err(|_| not_run("a register of several widths"))?;
    Ok(observed(program).into_iter().map(|(t, r)| all[t.index()][r.index()].div_ceil(8 * WORD)).collect())
}

/// The objects in shared memory.
fn shared(program: &Program) -> impl Iterator<Item = (usize, u32)> {
    let all = program.objects.iter().enumerate();
    all.filter(|(_, o)| o.space == Space::SharedCta).map(|(n, o)| (n, o.bytes.next_multiple_of(16)))
}

/// The barrier that the kernel itself uses.
const BARRIER: i128 = BARRIERS;

/// The start of the kernel, which computes the role of the CTA, the warp and the number of the instance, and fills shared
/// memory.
fn head(program: &Program, target: &str, ctas: u32, cluster: bool) -> String {
    let neighbours =
        if cluster { format!("\n.explicitcluster\n.reqnctapercluster {ctas}, 1, 1") } else { String::new() };
    let mut out = format!(
        ".version {PTX_VERSION}\n.target {target}\n.address_size 64\n\n\
         .visible .entry run(\n  .param .u64 memory, .param .u64 results, .param .u64 roles, .param .u64 scratch,\n  \
         .param .u32 instances, .param .u32 stride, .param .u32 turn, .param .u32 rounds\n){neighbours}\n{{\n  \
         .reg .b32 role, cta, group, warp, lane, instance, one, two;\n  .reg .b64 base, size, address, wide, high;\n  \
         .reg .pred other;\n"
    );
    for (n, bytes) in shared(program) {
        let _ = writeln!(out, "  .shared .align 16 .b8 s{n}[{}];", bytes * LANES);
    }
    let _ = write!(
        out,
        "  ld.param.u64 address, [roles];\n  mov.u32 one, %ctaid.x;\n  mul.wide.u32 wide, one, 4;\n  \
         add.u64 address, address, wide;\n  ld.global.u32 role, [address];\n  mov.u32 one, %tid.x;\n  \
         shr.u32 warp, one, 5;\n  and.b32 lane, one, 31;\n  setp.eq.u32 other, role, 0xffffffff;\n  @other bra STRESS;\n  \
         div.u32 group, role, {ctas};\n  mul.lo.u32 cta, group, {ctas};\n  sub.u32 cta, role, cta;\n  \
         // an odd number of steps, and a start that depends on the CTA: lanes of two CTAs meet in another order\n  \
         ld.param.u32 one, [turn];\n  or.b32 two, one, 1;\n  mul.lo.u32 two, two, lane;\n  mul.lo.u32 one, one, cta;\n  \
         add.u32 two, two, one;\n  and.b32 two, two, 31;\n  shl.b32 instance, group, 5;\n  add.u32 instance, instance, two;\n  \
         ld.param.u32 one, [instances];\n  ld.param.u32 two, [stride];\n  mul.wide.u32 size, one, two;\n  \
         mul.wide.u32 wide, instance, two;\n  ld.param.u64 base, [memory];\n  add.u64 base, base, wide;\n"
    );
    if shared(program).next().is_some() {
        fill(&mut out, program);
    }
    out
}

/// Fills shared memory: the first warp, each lane the place of its instance.
fn fill(out: &mut String, program: &Program) {
    out.push_str("  setp.ne.u32 other, warp, 0;\n  @other bra FILLED;\n");
    for (n, bytes) in shared(program) {
        place(out, n, bytes, "one");
        let content = program.objects[n].init.bytes(bytes);
        for (at, piece) in (0..).step_by(PIECE as usize).zip(content.chunks_exact(PIECE as usize)) {
            let word = piece.iter().rev().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
            let _ = writeln!(out, "  st.shared.u32 [one+{at}], {word};");
        }
    }
    let _ = write!(out, "FILLED:\n  barrier.sync {BARRIER};\n");
}

/// The place of an instance in the shared memory of an object, into a register of 32 bits.
fn place(out: &mut String, object: usize, bytes: u32, register: &str) {
    let _ = writeln!(
        out,
        "  and.b32 two, instance, 31;\n  mov.u32 {register}, s{object};\n  mad.lo.u32 {register}, two, {bytes}, {register};"
    );
}

/// The end of the kernel. What is left in shared memory goes to global memory.
fn end(out: &mut String, program: &Program) {
    out.push_str("END:\n");
    drain(out, program);
    if shared(program).next().is_some() {
        let _ = write!(out, "  barrier.sync {BARRIER};\n  setp.ne.u32 other, warp, 0;\n  @other bra LEFT;\n");
        for (area, (n, cta)) in copies(program).into_iter().enumerate() {
            let Some(cta) = cta else { continue };
            let _ = writeln!(out, "  setp.ne.u32 other, cta, {cta};\n  @other bra C{area};");
            left(out, n, area, program.objects[n].bytes.next_multiple_of(16));
            let _ = writeln!(out, "C{area}:");
        }
        out.push_str("LEFT:\n");
    }
    out.push_str("  ret;\n");
}

/// Waits for what is still under way, and for the CTAs of the cluster, which may reach into this one until then.
fn drain(out: &mut String, program: &Program) {
    if has(program, |op| matches!(op, Op::AsyncCopy(_))) {
        out.push_str("  cp.async.wait_all;\n  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n");
    }
    if has(program, |op| matches!(op, Op::AsyncCopy(_)) && op.clone().mbarrier_mut().is_some()) {
        let _ = writeln!(out, "  nanosleep.u32 {PAUSE};");
    }
    if clustered(program).is_some() {
        out.push_str("  barrier.cluster.arrive;\n  barrier.cluster.wait;\n");
    }
}

/// Copies what is left in the shared memory of an object to its area of global memory.
fn left(out: &mut String, object: usize, area: usize, bytes: u32) {
    place(out, object, bytes, "one");
    let _ = writeln!(out, "  mul.lo.u64 wide, size, {area};\n  add.u64 address, base, wide;");
    for at in (0..bytes).step_by(PIECE as usize) {
        let _ = writeln!(out, "  ld.shared.u32 two, [one+{at}];\n  st.global.u32 [address+{at}], two;");
    }
}

/// One thread of the program.
fn play(
    out: &mut String,
    program: &Program,
    t: usize,
    thread: &Thread,
    seen: &[Returned],
    slots: u32,
) -> Result<(), Refusal> {
    let mut thread = addressed(program, thread);
    for (n, reg) in thread.regs.iter_mut().enumerate() {
        reg.name = format!("r{n}");
    }
    thread.labels.push(Label { name: String::new(), at: thread.body.len() });
    for (n, label) in thread.labels.iter_mut().enumerate() {
        label.name = format!("L{t}_{n}");
    }
    let widths = classes(&thread).map_err(|_| not_run("a register of several widths"))?;
    let (cta, warp) = (thread.place.cta, thread.place.warp);
    let _ = write!(
        out,
        "  setp.ne.u32 other, cta, {cta};\n  @other bra E{t};\n  setp.ne.u32 other, warp, {warp};\n  @other bra E{t};\n  \
         {{ // {}\n",
        thread.name
    );
    registers(out, program, &thread, &widths);
    let mates = program.threads.iter().filter(|other| other.place.same_cta(&thread.place)).count();
    for (at, instr) in thread.body.iter().enumerate() {
        labels(out, &thread, at);
        let _ = if let Op::Bar { id: Operand::Imm(id), .. } = &instr.op {
            writeln!(out, "    barrier.sync {id}, {};", mates * LANES as usize)
        } else if instr.op == Op::Exit {
            let exit = Instr { op: Op::Bra { target: thread.body.len() }, ..instr.clone() };
            writeln!(out, "    {};", instruction(program, &thread, &exit))
        } else {
            writeln!(out, "    {};", instruction(program, &thread, instr))
        };
    }
    labels(out, &thread, thread.body.len());
    let _ = writeln!(
        out,
        "    ld.param.u64 address, [results];\n    mul.wide.u32 wide, instance, {};",
        slots * WORD
    );
    out.push_str("    add.u64 address, address, wide;\n");
    for (slot, reg) in seen {
        returned(out, &thread.regs[reg.index()].name, widths[reg.index()], slot * WORD);
    }
    let _ = write!(out, "    bra END;\n  }}\nE{t}:\n");
    Ok(())
}

/// The labels in front of an instruction, or behind the last one.
fn labels(out: &mut String, thread: &Thread, at: usize) {
    for label in thread.labels.iter().filter(|l| l.at == at) {
        let _ = writeln!(out, "{}:", label.name);
    }
}

/// Declares the registers of a thread. Its own start with zero, those behind them with addresses of objects.
fn registers(out: &mut String, program: &Program, thread: &Thread, widths: &[u32]) {
    let objects = program.objects.len();
    let first = thread.regs.len() - 2 * objects;
    let areas = copies(program);
    let area = |object: usize| areas.iter().position(|(n, _)| *n == object).unwrap_or(0);
    for (n, (reg, bits)) in thread.regs.iter().zip(widths).enumerate() {
        let name = &reg.name;
        let kind = if *bits == 1 { "pred".to_owned() } else { format!("b{bits}") };
        let _ = writeln!(out, "    .reg .{kind} {name};");
        let _ = match (n.checked_sub(first), bits) {
            (None, 1) => writeln!(out, "    setp.ne.u32 {name}, lane, lane;"),
            (None, 128) => writeln!(out, "    mov.b64 wide, 0;\n    mov.b128 {name}, {{wide, wide}};"),
            (None, _) => writeln!(out, "    mov.b{bits} {name}, 0;"),
            (Some(object), _) if object < objects => {
                writeln!(out, "    mul.lo.u64 wide, size, {};\n    add.u64 {name}, base, wide;", area(object))
            }
            (Some(_), _) => Ok(()),
        };
    }
    for (object, bytes) in shared(program) {
        let name = |at: usize| &thread.regs[at].name;
        place(out, object, bytes, "one");
        // An address in shared memory has 32 or 64 bits, as the instructions of the thread want it.
        let (window, bits) = (name(first + objects + object), widths[first + objects + object]);
        let generic = name(first + object);
        let _ = writeln!(
            out,
            "    cvt.u{bits}.u32 {window}, one;\n    cvt.u64.u32 wide, one;\n    cvta.shared.u64 {generic}, wide;"
        );
    }
}

/// Returns a register.
fn returned(out: &mut String, name: &str, bits: u32, at: u32) {
    let _ = match bits {
        128 => writeln!(
            out,
            "    mov.b128 {{wide, high}}, {name};\n    st.global.u64 [address+{at}], wide;\n    st.global.u64 [address+{}], high;",
            at + WORD
        ),
        64 => writeln!(out, "    st.global.u64 [address+{at}], {name};"),
        _ => writeln!(out, "    cvt.u64.u{bits} wide, {name};\n    st.global.u64 [address+{at}], wide;"),
    };
}

/// The thread with addresses in registers in place of names of objects. These registers come after its own: first those of
/// generic addresses, which are those of global memory, then those in shared memory.
fn addressed(program: &Program, thread: &Thread) -> Thread {
    let mut next = thread.clone();
    let (first, objects) = (next.regs.len(), program.objects.len());
    let start = || RegDecl { name: String::new(), init: RegInit::Value(0) };
    next.regs.extend((0..2 * objects).map(|_| start()));
    let register = |symbol: usize, space: Space| {
        let window = if matches!(space, Space::SharedCta | Space::SharedCluster) { objects } else { 0 };
        let number = first + window + program.symbols[symbol].object.index();
        Reg(u16::try_from(number).expect("programs have at most some hundred registers and objects"))
    };
    let replace = |base: &mut Operand, space| {
        if let Operand::Address(symbol) = base {
            *base = Operand::Reg(register(symbol.index(), space));
        }
    };
    for instr in &mut next.body {
        addresses(&mut instr.op).into_iter().for_each(|(addr, space, _)| replace(&mut addr.base, space));
        if let Op::Mapa { shared, src, .. } = &mut instr.op {
            replace(src, if *shared { Space::SharedCta } else { Space::Generic });
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
