//! `moire bench genmc`: the families beside GenMC, in one run and in turns.
//!
//! Contract: both sides explore the same program; the C text is made of the litmus text. The numbers are seconds of processor
//! time of whole processes, less what the same process takes for the least size of the family, so that neither reading a
//! model nor compiling C counts. Where the numbers of executions differ, the run is a finding.

use crate::cost;
use anyhow::{Context, Result, bail, ensure};
use moire_console::exit;
use moire_generate::families::{FAMILIES, Family};
use moire_program::ir::{
    Address, AluOp, AtomOp, CmpOp, FenceOrder, Instr, LoadOrder, Op, Operand, Program, Reg, RegInit,
    RmwOrder, StoreOrder, SymbolId, Thread,
};
use moire_program::text::{Format, parse};
use moire_program::{barrier_op, fence_op, multimem_op, register_op, unit_op};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The families that C11 can say, each with the sizes at which it is compared.
const SIZES: [(&str, &[usize]); 16] = [
    ("sb", &[18]),
    ("lb", &[18]),
    ("lbf", &[16]),
    ("nw1r", &[9]),
    ("readers", &[18]),
    ("ainc", &[9]),
    ("casrot", &[11]),
    ("lastzero", &[14]),
    ("lbawait", &[12]),
    ("iriw", &[4]),
    ("ttas", &[4, 5]),
    ("ticket", &[6, 7]),
    ("mcs", &[3, 4]),
    ("seqlock", &[7]),
    ("mpmc", &[8]),
    ("lbticket", &[5]),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Genmc {
    /// The folder of a built GenMC, which holds the program `genmc`
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Only these families (repeatable)
    #[arg(long, value_name = "FAMILY")]
    only: Vec<String>,
    /// Another size than those at which the families are compared
    #[arg(long, value_name = "N")]
    size: Option<usize>,
    /// How often each side runs, in turns
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=99))]
    rounds: u8,
    /// Keep the C texts in this folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// What one side took for one size: seconds of processor time and the executions it counted.
struct Took {
    seconds: f64,
    executions: u64,
}

/// The program in C11, with a function for each thread.
///
/// # Errors
/// An instruction or an operand has no counterpart here.
fn c_text(program: &Program) -> Result<String> {
    let mut out = String::from("#include <pthread.h>\n#include <stdatomic.h>\n\n");
    let strong: BTreeSet<SymbolId> =
        program.threads.iter().flat_map(|t| &t.body).filter_map(strong).collect();
    for (n, symbol) in program.symbols.iter().enumerate() {
        let ty = if strong.contains(&SymbolId::at(n)) { "atomic_uint" } else { "unsigned" };
        writeln!(out, "static {ty} {}_;", symbol.name)?;
    }
    for (n, thread) in program.threads.iter().enumerate() {
        function(&mut out, program, &strong, n, thread)?;
    }
    let n = program.threads.len();
    writeln!(out, "\nint main(void) {{\n  pthread_t t[{n}];")?;
    (0..n).try_for_each(|i| writeln!(out, "  pthread_create(&t[{i}], 0, P{i}, 0);"))?;
    (0..n).try_for_each(|i| writeln!(out, "  pthread_join(t[{i}], 0);"))?;
    Ok(out + "  return 0;\n}\n")
}

/// The location of a strong access.
fn strong(instr: &Instr) -> Option<SymbolId> {
    let (_, address) =
        instr.op.place().filter(|_| instr.op.access().is_some_and(|access| access.is_strong()))?;
    if let Operand::Address(symbol) = address.base { Some(symbol) } else { None }
}

fn function(
    out: &mut String,
    program: &Program,
    strong: &BTreeSet<SymbolId>,
    n: usize,
    thread: &Thread,
) -> Result<()> {
    writeln!(out, "\nstatic void *P{n}(void *unused) {{\n  (void)unused;")?;
    for reg in &thread.regs {
        let RegInit::Value(value) = reg.init else { bail!("`{}` starts with an address", reg.name) };
        writeln!(out, "  unsigned {}_ = {value}; (void){}_;", reg.name, reg.name)?;
    }
    let c = InC { program, strong, thread };
    for (pc, instr) in thread.body.iter().enumerate() {
        thread.labels.iter().filter(|l| l.at == pc).try_for_each(|l| writeln!(out, "L_{}:;", l.name))?;
        let guard = instr.guard.map_or(String::new(), |g| {
            format!("if ({}{}) ", if g.negated { "!" } else { "" }, c.reg(g.reg.index()))
        });
        writeln!(out, "  {guard}{{ {} }}", c.statement(&instr.op)?)?;
    }
    thread
        .labels
        .iter()
        .filter(|l| l.at == thread.body.len())
        .try_for_each(|l| writeln!(out, "L_{}:;", l.name))?;
    writeln!(out, "  return 0;\n}}")?;
    Ok(())
}

/// Writes the statements of a thread.
struct InC<'a> {
    program: &'a Program,
    strong: &'a BTreeSet<SymbolId>,
    thread: &'a Thread,
}

impl InC<'_> {
    fn reg(&self, index: usize) -> String {
        format!("{}_", self.thread.regs[index].name)
    }

    fn operand(&self, operand: Operand) -> Result<String> {
        Ok(match operand {
            Operand::Reg(reg) => self.reg(reg.index()),
            Operand::Imm(n) => format!("{n}u"),
            Operand::Address(_) => bail!("an address is no value here"),
        })
    }

    /// The name of a location, and whether it is atomic.
    fn location(&self, address: &Address) -> Result<(String, bool)> {
        let Operand::Address(symbol) = address.base else { bail!("an address in a register") };
        ensure!(address.offset == 0, "a part of a variable");
        Ok((format!("{}_", self.program.symbols[symbol.index()].name), self.strong.contains(&symbol)))
    }

    fn statement(&self, op: &Op) -> Result<String> {
        Ok(match op {
            Op::Load { order, dst, addr, .. } => {
                let (name, atomic) = self.location(addr)?;
                let dst = self.reg(dst.first().context("a load without a register")?.index());
                let order = match order {
                    LoadOrder::Weak if !atomic => return Ok(format!("{dst} = {name};")),
                    LoadOrder::Acquire(_) => "acquire",
                    LoadOrder::Relaxed(_) => "relaxed",
                    other => bail!("{other:?} is not written in C"),
                };
                format!("{dst} = atomic_load_explicit(&{name}, memory_order_{order});")
            }
            Op::Store { order, addr, src, .. } => {
                let (name, atomic) = self.location(addr)?;
                let src = self.operand(*src.first().context("a store without a value")?)?;
                let order = match order {
                    StoreOrder::Weak if !atomic => return Ok(format!("{name} = {src};")),
                    StoreOrder::Release(_) => "release",
                    StoreOrder::Relaxed(_) => "relaxed",
                    other => bail!("{other:?} is not written in C"),
                };
                format!("atomic_store_explicit(&{name}, {src}, memory_order_{order});")
            }
            Op::Rmw { order, op, dst, addr, a, b, .. } => {
                self.update(*order, *op, (dst.map(|d| self.reg(d.index())), addr), (*a, *b))?
            }
            Op::Fence { order: FenceOrder::AcqRel, .. } => {
                "atomic_thread_fence(memory_order_acq_rel);".to_owned()
            }
            Op::Mov { dst, src, .. } => format!("{} = {};", self.reg(dst.index()), self.operand(*src)?),
            Op::Alu { op, dst, a, b, .. } => {
                let sign = match op {
                    AluOp::Add => "+",
                    AluOp::And => "&",
                    other => bail!("{other:?} is not written in C"),
                };
                self.computed(*dst, *a, sign, *b)?
            }
            Op::Setp { op, dst, a, b, .. } => {
                let sign = match op {
                    CmpOp::Eq => "==",
                    CmpOp::Ne => "!=",
                    other => bail!("{other:?} is not written in C"),
                };
                self.computed(*dst, *a, sign, *b)?
            }
            Op::Bra { target } => {
                let label =
                    self.thread.labels.iter().find(|l| l.at == *target).context("a jump to nowhere")?;
                format!("goto L_{};", label.name)
            }
            Op::Exit => "return 0;".to_owned(),
            register_op!() | fence_op!() | barrier_op!() | multimem_op!() | unit_op!() => {
                bail!("{op:?} is not written in C")
            }
            Op::Mbarrier(_) | Op::Tile(_) | Op::Control(_) | Op::Book(_) => {
                bail!("{op:?} is not written in C")
            }
        })
    }

    fn computed(&self, dst: Reg, a: Operand, sign: &str, b: Operand) -> Result<String> {
        Ok(format!("{} = {} {sign} {};", self.reg(dst.index()), self.operand(a)?, self.operand(b)?))
    }

    fn update(
        &self,
        order: RmwOrder,
        op: AtomOp,
        (dst, addr): (Option<String>, &Address),
        (a, b): (Operand, Option<Operand>),
    ) -> Result<String> {
        let (name, _) = self.location(addr)?;
        let (order, read) = match order {
            RmwOrder::Relaxed => ("relaxed", "relaxed"),
            RmwOrder::Acquire => ("acquire", "acquire"),
            RmwOrder::Release => ("release", "relaxed"),
            RmwOrder::AcqRel => ("acq_rel", "acquire"),
            RmwOrder::SeqCst => ("seq_cst", "seq_cst"),
        };
        let (a, dst) = (self.operand(a)?, dst.map_or(String::new(), |dst| format!("{dst} = ")));
        Ok(match (op, b) {
            (AtomOp::Add, None) => {
                format!("{dst}atomic_fetch_add_explicit(&{name}, {a}, memory_order_{order});")
            }
            (AtomOp::Exch, None) => {
                format!("{dst}atomic_exchange_explicit(&{name}, {a}, memory_order_{order});")
            }
            (AtomOp::Cas, Some(b)) => format!(
                "unsigned e = {a}; atomic_compare_exchange_strong_explicit(&{name}, &e, {}, memory_order_{order}, \
                 memory_order_{read}); {dst}e;",
                self.operand(b)?
            ),
            (other, _) => bail!("{other:?} is not written in C"),
        })
    }
}

/// Runs a command to its end: what it printed, and its seconds of processor time.
fn timed(command: &mut Command) -> Result<(String, f64)> {
    let before = cost::processor_time()?.1;
    let ran = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {:?}", command.get_program()))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "{command:?} ended with {}:\n{}", ran.status, said.trim_end());
    Ok((said, cost::processor_time()?.1 - before))
}

fn ours(family: &Family, size: usize) -> Result<Took> {
    let size = size.to_string();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "families", "--only", family.name, "--size", &size, "--format", "json"]);
    let (said, seconds) = timed(&mut command)?;
    let told: serde_json::Value = serde_json::from_str(&said)?;
    let row = &told["families"][0];
    let count = |key: &str| row[key].as_u64().with_context(|| format!("no `{key}` in {said}"));
    Ok(Took { seconds, executions: count("complete")? + count("blocked")? })
}

fn theirs(genmc: &Path, text: &Path) -> Result<Took> {
    let (said, seconds) = timed(Command::new(genmc).args(["--imm", "--disable-estimation", "--"]).arg(text))?;
    let count = said.lines().find_map(|l| l.strip_prefix("Number of complete executions explored: "));
    let executions = count
        .and_then(|n| n.trim().parse().ok())
        .with_context(|| format!("no number of executions in\n{said}"))?;
    Ok(Took { seconds, executions })
}

/// Writes the family's program of a size in C.
fn written(folder: &Path, family: &Family, size: usize) -> Result<PathBuf> {
    let program =
        parse(&family.text(size), Format::Native).with_context(|| format!("{}({size})", family.name))?;
    let path = folder.join(format!("{}-{size}.c", family.name));
    let text = c_text(&program).with_context(|| format!("{}({size})", family.name))?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// How many times faster we are, in each round.
struct Compared {
    factors: Vec<f64>,
    agree: bool,
}

fn compared(args: &Genmc, folder: &Path, family: &Family, size: usize) -> Result<Compared> {
    let genmc = args.dir.join("genmc");
    let [least, text] = [family.least, size].map(|size| written(folder, family, size));
    let (least, text) = (least?, text?);
    let (mut factors, mut agree) = (Vec::new(), true);
    for round in 0..args.rounds {
        let [our_start, their_start] = [ours(family, family.least)?, theirs(&genmc, &least)?];
        let [our, their] = [ours(family, size)?, theirs(&genmc, &text)?];
        agree &= our.executions == their.executions;
        // A hundredth of a second is the least that is measured.
        let net = |took: &Took, start: &Took| (took.seconds - start.seconds).max(0.01);
        let [own, other] = [net(&our, &our_start), net(&their, &their_start)];
        factors.push(other / own);
        println!(
            "{:14} {:>5} {:>12} {:>12} {own:>9.2} {other:>9.2} {:>8.2}",
            format!("{}({size})", family.name),
            round + 1,
            our.executions,
            their.executions,
            other / own
        );
    }
    Ok(Compared { factors, agree })
}

#[expect(clippy::cast_precision_loss, reason = "a number of families")]
fn geometric_mean(factors: &[f64]) -> f64 {
    (factors.iter().map(|f| f.ln()).sum::<f64>() / factors.len() as f64).exp()
}

pub(crate) fn run(args: &Genmc) -> Result<u8> {
    let known = |name: &str| SIZES.iter().any(|(family, _)| *family == name);
    if let Some(name) = args.only.iter().find(|name| !known(name)) {
        bail!("`{name}` is not compared; there are {}", SIZES.map(|(name, _)| name).join(", "));
    }
    let version = Command::new(args.dir.join("genmc")).arg("--version").output().with_context(|| {
        format!("no program `genmc` in {}; give the folder in which GenMC was built", args.dir.display())
    })?;
    let version = String::from_utf8_lossy(&version.stdout);
    println!(
        "{}",
        version.lines().map(str::trim).find(|line| line.contains(" v")).unwrap_or("GenMC, unknown version")
    );
    println!(
        "{:14} {:>5} {:>12} {:>12} {:>9} {:>9} {:>8}",
        "family", "round", "executions", "GenMC", "seconds", "GenMC", "times"
    );
    let folder = args.keep.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut all = Vec::new();
    for family in FAMILIES {
        let chosen = args.only.is_empty() || args.only.iter().any(|name| name == family.name);
        let sizes =
            SIZES.iter().find(|(name, _)| *name == family.name && chosen).map_or(&[][..], |(_, sizes)| sizes);
        let one = args.size.map(|size| [size.max(family.least)]);
        let sizes = if sizes.is_empty() { sizes } else { one.as_ref().map_or(sizes, |one| &one[..]) };
        for size in sizes {
            all.push(compared(args, &folder, family, *size)?);
        }
    }
    for round in 0..usize::from(args.rounds) {
        let factors: Vec<f64> = all.iter().map(|c| c.factors[round]).collect();
        println!("round {}: geometric mean {:.2}", round + 1, geometric_mean(&factors));
    }
    Ok(if all.iter().all(|c| c.agree) { exit::CLEAN } else { exit::FINDING })
}
