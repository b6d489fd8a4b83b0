//! Prints a program as a PTX module. NVIDIA's assembler accepts it if the `ptxas-equal` rules accept the program.
//!
//! The threads of one launch (device, stream, grid) become one `.entry`. Each thread is a block in it, which the warp of
//! its position runs. Memory is named `m0`, `m1` .., registers `r0`, `r1` .., declared with the width that their uses
//! need. Instructions are printed as in native text, after `lower` has replaced our own notation. An instruction that PTX
//! cannot express is left out and named in a comment. The module shows instructions, their order and their operands: it
//! is meant to be assembled, not to be launched.

mod lower;

use crate::Refusal;
use lower::{Lowered, lower};
use moire_program::ir::*;
use moire_program::loops::has_loops;
use moire_program::registers::written;
use moire_program::text::instruction;
use moire_program::validate::{Target, classes};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The PTX version of the module. The recorded answers of the assembler are for this version.
pub const PTX_VERSION: &str = "9.5";
/// Most bytes of shared memory that a module may declare without `.extern`.
const STATIC_SHARED: u32 = 48 << 10;

/// A module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The text.
    pub text: String,
    /// The number of instructions, not counting those that prepare operands.
    pub instructions: usize,
    /// The number of instructions left out because PTX cannot express them.
    pub left_out: usize,
}

/// Prints `program` as a module for `target`.
///
/// # Errors
/// The uses of a register fit no single declaration, a name of tensor memory is used where PTX has no word for it, or there are
/// loops of litmus texts.
pub fn module(program: &Program, target: Target) -> Result<Module, Refusal> {
    if has_loops(program) {
        return Err(Refusal::about("a loop of a litmus text"));
    }
    let renamed = rename(program, "");
    let mut out = Module { text: String::new(), instructions: 0, left_out: 0 };
    let _ =
        write!(out.text, "// {}\n{}", program.name.replace(['\n', '\r'], " "), header(PTX_VERSION, target));
    memory(&mut out.text, program, &renamed);
    let mut kernels: Vec<(Launch, Vec<usize>)> = Vec::new();
    for (i, thread) in program.threads.iter().enumerate() {
        let launch = launch(&thread.place);
        match kernels.iter_mut().find(|(l, _)| *l == launch) {
            Some((_, threads)) => threads.push(i),
            None => kernels.push((launch, vec![i])),
        }
    }
    for (n, (_, threads)) in kernels.iter().enumerate() {
        kernel(&mut out, program, &renamed, n, threads)?;
    }
    Ok(out)
}

/// The lines in front of a module of a version of PTX.
pub fn header(version: &str, target: Target) -> String {
    format!(".version {version}\n.target {}\n.address_size 64\n", target.name())
}

/// Prints each thread as a kernel of its own, `PREFIXk0`, `PREFIXk1` .., for one thread that runs all of it. Its last
/// instructions store every register that it writes, so that no value is dead. The text has no [`header`]: programs whose
/// prefixes differ fit into one module.
///
/// # Errors
/// As for [`module`].
pub fn kernels(program: &Program, prefix: &str) -> Result<Module, Refusal> {
    if has_loops(program) {
        return Err(Refusal::about("a loop of a litmus text"));
    }
    let renamed = rename(program, prefix);
    let mut out = Module { text: String::new(), instructions: 0, left_out: 0 };
    memory(&mut out.text, program, &renamed);
    let most = program.threads.iter().map(|t| t.regs.len()).max().unwrap_or(0);
    let _ = writeln!(out.text, ".global .align 128 .b8 {prefix}{SINK}[{}];", (most + 1) * SLOT);
    for (t, thread) in program.threads.iter().enumerate() {
        let lowered = lower(&renamed, thread)?;
        let stores = sink(&lowered.thread, prefix);
        let _ = writeln!(out.text, ".visible .entry {prefix}k{t}()\n{{");
        body(&mut out, &renamed, t, lowered)?;
        let _ = writeln!(out.text, "{stores}  ret;\n}}");
    }
    Ok(out)
}

/// Where a kernel of [`kernels`] leaves its registers, and the bytes of each.
const SINK: &str = "sink";
const SLOT: usize = 16;

/// Stores of the registers that a thread writes. Predicates are not stored.
fn sink(thread: &Thread, prefix: &str) -> String {
    let mut seen = BTreeSet::new();
    thread.body.iter().for_each(|instr| {
        written(&instr.op, &mut |reg| {
            seen.insert(reg.index());
        });
    });
    let Ok(classes) = classes(thread) else { return String::new() };
    let wide = seen.into_iter().filter(|r| classes.get(*r).is_some_and(|bits| *bits > 1));
    wide.map(|r| format!("    st.global.b{} [{prefix}{SINK}+{}], r{r};\n", classes[r], r * SLOT)).collect()
}

/// The launch a thread belongs to: host, device, stream, grid.
type Launch = (bool, u16, u16, u16);

fn launch(place: &Placement) -> Launch {
    (place.host, place.gpu, place.stream, place.grid)
}

/// Renames memory, so the assembler cannot mistake a name for a word of its own.
fn rename(program: &Program, prefix: &str) -> Program {
    let mut renamed = program.clone();
    for (i, symbol) in renamed.symbols.iter_mut().enumerate() {
        symbol.name = format!("{prefix}m{i}");
    }
    renamed
}

/// Declares each name as its own array, because the assembler does not know that two names may be one memory.
fn memory(out: &mut String, program: &Program, renamed: &Program) {
    let object = |s: &Symbol| &program.objects[s.object.index()];
    let shared = |s: &&Symbol| object(s).space == Space::SharedCta;
    let total: u64 = program.symbols.iter().filter(shared).map(|s| u64::from(object(s).bytes)).sum();
    let outside = total > u64::from(STATIC_SHARED);
    for (symbol, new) in program.symbols.iter().zip(&renamed.symbols) {
        let object = object(symbol);
        let (start, size) = match object.space {
            Space::Tensor => continue,
            Space::SharedCta | Space::SharedCluster if outside => (".extern .shared", String::new()),
            Space::SharedCta | Space::SharedCluster => (".shared", object.bytes.to_string()),
            Space::Global | Space::Generic => (".global", object.bytes.to_string()),
        };
        let init = if object.init.is_zero() || !start.ends_with("global") {
            String::new()
        } else {
            let bytes = object.init.bytes(object.bytes);
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            format!(" = {{{}}}", bytes.join(", "))
        };
        let _ = writeln!(out, "{start} .align 128 .b8 {}[{size}]{init}; // {}", new.name, symbol.name);
    }
}

fn kernel(
    out: &mut Module,
    program: &Program,
    renamed: &Program,
    n: usize,
    threads: &[usize],
) -> Result<(), Refusal> {
    let _ = write!(
        out.text,
        ".visible .entry k{n}()\n{{\n  .reg .b32 warp;\n  .reg .pred other;\n  mov.u32 warp, %tid.x;\n  shr.u32 warp, warp, 5;\n"
    );
    for (position, t) in threads.iter().enumerate() {
        let thread = &program.threads[*t];
        let _ = write!(
            out.text,
            "  setp.ne.u32 other, warp, {position};\n  @other bra E{t};\n  {{ // {}\n",
            thread.name
        );
        body(out, renamed, *t, lower(renamed, thread)?)?;
        let _ = write!(out.text, "    ret;\n  }}\nE{t}:\n");
    }
    out.text.push_str("  ret;\n}\n");
    Ok(())
}

/// Prints declarations, start values and code of one thread.
fn body(out: &mut Module, program: &Program, t: usize, lowered: Lowered) -> Result<(), Refusal> {
    let Lowered { mut thread, origin, left_out } = lowered;
    for (i, reg) in thread.regs.iter_mut().enumerate() {
        reg.name = format!("r{i}");
    }
    let classes = classes(&thread).map_err(|reg| {
        let (reg, name) = (reg.index(), &thread.name);
        Refusal::about(&format!("the uses of register {reg} in {name} need different widths"))
    })?;
    for (reg, bits) in thread.regs.iter().zip(&classes) {
        let class = if *bits == 1 { "pred".to_owned() } else { format!("b{bits}") };
        let _ = writeln!(out.text, "    .reg .{class} {};", reg.name);
    }
    for (reg, bits) in thread.regs.iter().zip(&classes) {
        start(&mut out.text, program, reg, *bits);
    }
    thread.labels = origin
        .iter()
        .enumerate()
        .filter(|(pc, _)| thread.body.iter().any(|i| matches!(i.op, Op::Bra { target } if target == *pc)))
        .map(|(pc, _)| Label { name: format!("L{t}_{pc}"), at: pc })
        .collect();
    for (pc, instr) in thread.body.iter().enumerate() {
        for label in thread.labels.iter().filter(|l| l.at == pc) {
            let _ = writeln!(out.text, "{}:", label.name);
        }
        let _ = writeln!(out.text, "    {};", worded(instruction(program, &thread, instr), &instr.op));
    }
    for label in thread.labels.iter().filter(|l| l.at == thread.body.len()) {
        let _ = writeln!(out.text, "{}:", label.name);
    }
    for what in &left_out {
        let _ = writeln!(out.text, "    // left out: {what}");
    }
    out.left_out += left_out.len();
    out.instructions += origin.iter().filter(|o| o.is_some()).count();
    Ok(())
}

/// Adjusts the text of an instruction from native text to PTX.
fn worded(text: String, op: &Op) -> String {
    // In PTX the predicate that ignores the source of a copy has no mark.
    if matches!(op, Op::AsyncCopy(AsyncCopy::Small(_))) { text.replacen(", @", ", ", 1) } else { text }
}

/// Prints the start value of a register, so that no register is undefined.
fn start(out: &mut String, program: &Program, reg: &RegDecl, bits: u32) {
    let name = &reg.name;
    let _ = match &reg.init {
        RegInit::Value(v) if bits == 1 => {
            writeln!(out, "    setp.eq.u32 {name}, {}, 1;", u32::from(*v != 0))
        }
        RegInit::Value(v) if bits == 128 => {
            let half = |n: u128| n & u128::from(u64::MAX);
            let (low, high) = (half(*v), half(*v >> 64));
            writeln!(
                out,
                "    {{ .reg .b64 low, high; mov.b64 low, {low}U; mov.b64 high, {high}U; mov.b128 {name}, {{low, high}}; }}"
            )
        }
        RegInit::Lane if bits == 32 => writeln!(out, "    mov.u32 {name}, %laneid;"),
        RegInit::Lane => writeln!(out, "    mov.b{bits} {name}, 0;"),
        RegInit::Value(v) => {
            let mask = (1u128 << bits) - 1;
            writeln!(out, "    mov.b{bits} {name}, {};", v & mask)
        }
        RegInit::Address(symbol) => {
            let space = program.objects[program.symbols[symbol.index()].object.index()].space;
            let of = &program.symbols[symbol.index()].name;
            if space == Space::Tensor || !matches!(bits, 32 | 64) {
                writeln!(out, "    mov.b{bits} {name}, 0;")
            } else {
                writeln!(out, "    mov.u{bits} {name}, {of};")
            }
        }
    };
}
