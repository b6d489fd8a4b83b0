//! Compares both engines with an outside witness: `tile-lab/refmodel.py`, a literal evaluation of the Tile IR memory
//! model.
//!
//! Drawn programs of scalar accesses, with tokens, conditions and data, are written in the form of the script. They are
//! judged under random settings of its six switches, with total coherence. Final states and the presence of a race must
//! be equal. If there is no race, partial coherence must give the same answer.
//!
//! `MOIRE_TILEREF_PROGRAMS=N` sets the number of programs, `MOIRE_TILEREF_SEED` the first seed. If python3 or the suite
//! is missing, the test says so and is skipped.

use moire_cat::{Model, Variants};
use moire_execution::leaf::{LeafFacts, Outcome, observed_registers};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::numbers::Draw;
use moire_naive::NaiveLimits;
use moire_naive::leaves as naive_leaves;
use moire_program::ir::*;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The switches of the script, with their values.
const SWITCHES: &[(&str, &[&str])] = &[
    ("RPO", &["A", "B", "C"]),
    ("SW", &["A", "B"]),
    ("OBS", &["A", "B"]),
    ("HB", &["A", "B", "C"]),
    ("SCL", &["0", "A", "B"]),
    ("NTA", &["0", "2"]),
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn script() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|a| a.join("shared/tile-lab/refmodel.py")).find(|p| p.is_file())
}

/// The operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Load,
    /// Stores a value, or the value that this earlier instruction of the block read.
    Store(Result<i128, usize>),
    /// Adds a value atomically.
    Update(i128),
}

/// An instruction of a block. It refers to earlier instructions of the block by number.
#[derive(Clone, Debug)]
struct Step {
    what: What,
    /// The location: 0 or 1.
    place: usize,
    order: &'static str,
    scope: &'static str,
    /// The instructions whose tokens it waits for.
    after: Vec<usize>,
    /// Executed only if this instruction read this value.
    guard: Option<(usize, i128)>,
}

fn step(d: &mut Draw, before: &[Step]) -> Step {
    let reads = |s: &Step| !matches!(s.what, What::Store(_)) && s.guard.is_none();
    let read: Vec<usize> = (0..before.len()).filter(|i| reads(&before[*i])).collect();
    let what = match d.below(8) {
        0..3 => What::Load,
        3..5 => What::Store(Ok(1 + d.below(2) as i128)),
        5 if !read.is_empty() => What::Store(Err(d.pick(&read))),
        5 | 6 => What::Store(Ok(1)),
        _ => What::Update(1 + d.below(2) as i128),
    };
    let order = match what {
        What::Load => d.pick(&["weak", "relaxed", "relaxed", "acquire", "acquire"]),
        What::Store(_) => d.pick(&["weak", "relaxed", "relaxed", "release", "release"]),
        What::Update(_) => d.pick(&["relaxed", "relaxed", "acquire", "release", "acq_rel"]),
    };
    let scope = d.pick(&["device", "device", "device", "device", "tl_blk", "sys"]);
    let after = (0..before.len()).filter(|_| d.chance(50)).collect();
    let guarded = !matches!(what, What::Update(_)) && !read.is_empty() && d.chance(25);
    let guard = guarded.then(|| (d.pick(&read), d.below(3) as i128));
    Step { what, place: d.below(2), order, scope, after, guard }
}

fn blocks(d: &mut Draw) -> Vec<Vec<Step>> {
    let count = d.pick(&[1, 2, 2, 2, 2, 3]);
    let (mut budget, mut out) = (d.pick(&[4, 5, 6]), Vec::new());
    for n in 0..count {
        let mut body: Vec<Step> = Vec::new();
        let most = if n + 1 == count { 4 } else { 3 };
        for _ in 0..=d.below(most) {
            if budget > 0 {
                let next = step(d, &body);
                budget -= if matches!(next.what, What::Update(_)) { 2.min(budget) } else { 1 };
                body.push(next);
            }
        }
        out.push(body);
    }
    out
}

/// Writes a program and switches as a line for the script.
fn line(blocks: &[Vec<Step>], switches: &Variants) -> String {
    let one = |(n, s): (usize, &Step)| {
        let place = ["x", "y"][s.place];
        let scope = if s.order == "weak" { "None".to_owned() } else { format!("{:?}", s.scope) };
        let (kind, more) = match s.what {
            What::Load => ("R", format!("r='r{n}'")),
            What::Store(Ok(v)) => ("W", format!("v={v}")),
            What::Store(Err(from)) => ("W", format!("v='r{from}'")),
            What::Update(by) => ("U", format!("v=lambda o: o + {by}, r='r{n}'")),
        };
        let after: String = s.after.iter().map(|a| format!("{a},")).collect();
        let guard = s.guard.map_or("None".to_owned(), |(from, value)| format!("('r{from}', {value})"));
        format!("I('{kind}', '{place}', '{}', {scope}, {more}, tok=({after}), g={guard})", s.order)
    };
    let threads: Vec<String> = blocks
        .iter()
        .map(|b| format!("[{}]", b.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")))
        .collect();
    let switches: Vec<String> = switches
        .iter()
        .filter(|(name, _)| *name != "CO")
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    format!("[{}], dict({})", threads.join(", "), switches.join(", "))
}

fn scope(word: &str) -> Scope {
    match word {
        "tl_blk" => Scope::Cta,
        "device" => Scope::Gpu,
        _ => Scope::Sys,
    }
}

fn kind(s: &Step) -> TileKind {
    let scope = scope(s.scope);
    match (s.what, s.order) {
        (What::Load, "weak") => TileKind::Load(LoadOrder::Weak),
        (What::Load, "relaxed") => TileKind::Load(LoadOrder::Relaxed(scope)),
        (What::Load, _) => TileKind::Load(LoadOrder::Acquire(scope)),
        (What::Store(_), "weak") => TileKind::Store(StoreOrder::Weak),
        (What::Store(_), "relaxed") => TileKind::Store(StoreOrder::Relaxed(scope)),
        (What::Store(_), _) => TileKind::Store(StoreOrder::Release(scope)),
        (What::Update(_), order) => {
            let order = match order {
                "relaxed" => RmwOrder::Relaxed,
                "acquire" => RmwOrder::Acquire,
                "release" => RmwOrder::Release,
                _ => RmwOrder::AcqRel,
            };
            TileKind::Rmw { op: AtomOp::Add, order, scope }
        }
    }
}

/// Makes a thread for the engines from a block.
fn thread(number: usize, steps: &[Step]) -> Thread {
    let number = u16::try_from(number).expect("few blocks");
    let place = Placement { cluster: number, cta: number, ..Placement::default() };
    let name = format!("B{number}");
    let mut thread = Thread { name, place, regs: Vec::new(), labels: Vec::new(), body: Vec::new() };
    let fresh = |thread: &mut Thread, name: String| {
        thread.regs.push(RegDecl { name, init: RegInit::Value(0) });
        Reg(u16::try_from(thread.regs.len() - 1).expect("few registers"))
    };
    let (mut read, mut tokens): (BTreeMap<usize, Reg>, Vec<Reg>) = (BTreeMap::new(), Vec::new());
    for (n, s) in steps.iter().enumerate() {
        let after = match s.after.as_slice() {
            [] => None,
            [one] => Some(tokens[*one]),
            several => {
                let dst = fresh(&mut thread, format!("j{n}"));
                let from = several.iter().map(|t| tokens[*t]).collect();
                thread.body.push(Instr::new(Op::Tile(TileOp::Token(TileToken::Join { dst, from }))));
                Some(dst)
            }
        };
        let mask = s.guard.map(|(from, value)| {
            let dst = fresh(&mut thread, format!("p{n}"));
            let (a, b) = (Operand::Reg(read[&from]), Operand::Imm(value));
            thread.body.push(Instr::new(Op::Setp { op: CmpOp::Eq, ty: Ty::U(32), dst, a, b }));
            dst
        });
        let dst = match s.what {
            What::Store(_) => None,
            _ => Some(fresh(&mut thread, format!("r{n}"))),
        };
        read.extend(dst.map(|r| (n, r)));
        let a = match s.what {
            What::Load => Operand::Imm(0),
            What::Store(Ok(value)) | What::Update(value) => Operand::Imm(value),
            What::Store(Err(from)) => Operand::Reg(read[&from]),
        };
        let token = fresh(&mut thread, format!("t{n}"));
        tokens.push(token);
        let symbol = SymbolId(u16::try_from(s.place).expect("two places"));
        let addr = Address { base: Operand::Address(symbol), offset: 0 };
        let elements = vec![TileElement { addr, mask, dst, a: Some(a), b: None }];
        let access = TileAccess { kind: kind(s), ty: Ty::U(32), elements, after, token: Some(token) };
        thread.body.push(Instr::new(Op::Tile(TileOp::Access(Box::new(access)))));
    }
    thread
}

fn program(seed: u64, blocks: &[Vec<Step>]) -> Program {
    let mut program = Program { name: format!("ref{seed}"), ..Program::default() };
    program.threads = blocks.iter().enumerate().map(|(n, b)| thread(n, b)).collect();
    for (n, name) in (0u16..).zip(["x", "y"]) {
        let (object, name) = (ObjectId(n), name.to_owned());
        program.objects.push(Object {
            name: name.clone(),
            space: Space::Global,
            bytes: 4,
            init: Content::default(),
        });
        let (virt, proxy, multimem) = (SymbolId(n), Proxy::Generic, Vec::new());
        program.symbols.push(Symbol { name, object, virt, proxy, multimem });
    }
    program
}

/// An answer: whether there is a race, and the final states in the script's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Answer {
    race: bool,
    states: BTreeSet<String>,
}

impl Answer {
    fn note(&mut self, facts: &LeafFacts) {
        self.race |= !facts.flags.is_empty();
        let words = |o: &Outcome| {
            let memory = o.memory.iter().map(|content| content.value(0, 16));
            let all: Vec<String> = o.regs.iter().copied().chain(memory).map(|v| v.to_string()).collect();
            all.join(" ")
        };
        self.states.extend(facts.outcomes.iter().map(words));
    }

    fn read(line: &str) -> Answer {
        let mut parts = line.split(';');
        let race = parts.next() == Some("race");
        Answer { race, states: parts.filter(|s| !s.is_empty()).map(str::to_owned).collect() }
    }
}

fn explorer(p: &Program, model: &Model) -> Option<Answer> {
    let mut answer = Answer::default();
    let limits = Limits { leaves: 50_000, ..Limits::default() };
    let summary = explore(p, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        answer.note(&leaf.facts());
        ControlFlow::Continue(())
    });
    summary.ok().filter(|s| s.bounded.is_none()).map(|_| answer)
}

fn enumerator(p: &Program, model: &Model) -> Option<Answer> {
    let limits = NaiveLimits { candidates: 20_000, ..NaiveLimits::default() };
    let (leaves, summary) = naive_leaves(p, model, &limits).ok()?;
    let mut answer = Answer::default();
    leaves.values().for_each(|facts| answer.note(facts));
    (!summary.cut).then_some(answer)
}

struct Case {
    program: Program,
    model: Model,
    /// The same model with partial coherence.
    partial: Model,
    line: String,
}

impl Case {
    fn new(seed: u64, blocks: &[Vec<Step>], switches: &Variants) -> Self {
        let load = |v: &Variants| moire_models::load("tile-ir", v).unwrap_or_else(|e| panic!("{e}"));
        let mut less = switches.clone();
        less.remove("CO");
        let (model, partial) = (load(switches), load(&less));
        Case { program: program(seed, blocks), model, partial, line: line(blocks, switches) }
    }
}

fn case(seed: u64) -> Option<Case> {
    let mut d = Draw::new(seed);
    let blocks = blocks(&mut d);
    let mut switches = Variants::from([("CO".to_owned(), "total".to_owned())]);
    for (name, values) in SWITCHES {
        if d.chance(40) {
            switches.insert((*name).to_owned(), d.pick(values).to_owned());
        }
    }
    let case = Case::new(seed, &blocks, &switches);
    // The script enumerates all sources of all reads and all orders of all writes, so writes must be few.
    let writes = |place: usize| {
        let at = |s: &&Step| s.place == place && s.what != What::Load;
        blocks.iter().flatten().filter(at).count()
    };
    (writes(0) < 5 && writes(1) < 5 && !observed_registers(&case.program).is_empty()).then_some(case)
}

/// The shapes of the suite's own table. `|` separates blocks, `;` instructions. An instruction is kind, location, order
/// and scope, value, `@` and the instructions it waits for, `?` and the instruction and value that it depends on.
const SHAPES: &[&str] = &[
    "W x weak 1; W y release 1 @0 | R y acquire; R x weak @0 ?0=1",
    "W x weak 1; W y release 1 | R y acquire; R x weak ?0=1",
    "W x relaxed 1; W y release 1 @0 | R y acquire; R x relaxed @0 ?0=1",
    "W x relaxed 1; W y release 1 | R y acquire; R x relaxed ?0=1",
    "W x weak 1; W y release 1 @0 | R y acquire; R x weak @0",
    "W x weak 1; W y release/tl_blk 1 @0 | R y acquire/tl_blk; R x weak @0 ?0=1",
    "W x relaxed 1; R y relaxed @0 | W y relaxed 1; R x relaxed @0",
    "W x relaxed 1; R y relaxed | W y relaxed 1; R x relaxed",
    "W x release 1; R y acquire @0 | W y release 1; R x acquire @0",
    "W x release 1; R y acquire | W y release 1; R x acquire",
    "R x relaxed; W y relaxed 1 @0 | R y relaxed; W x relaxed 1 @0",
    "R x relaxed; W y relaxed 1 | R y relaxed; W x relaxed 1",
    "R x acquire; W y release 1 @0 | R y acquire; W x release 1 @0",
    "R x acquire; W y release 1 | R y acquire; W x release 1",
    "W x relaxed 1 | R x relaxed; R x relaxed @0",
    "W x relaxed 1 | R x relaxed; R x relaxed",
    "W x relaxed 1; R x relaxed @0",
    "W x relaxed 1; R x relaxed",
    "W x weak 1; R x weak @0",
    "W x weak 1; R x weak",
    "W x relaxed 1; W x relaxed 2 @0",
    "W x relaxed 1; W x relaxed 2",
    "W x weak 1; W x weak 2",
    "U x relaxed 1 | U x relaxed 1",
    "U x relaxed/tl_blk 1 | U x relaxed/tl_blk 1",
    "W x weak 1; W y release 1 @0 | U y relaxed 1 | R y acquire; R x weak @0 ?0=2",
    "W x weak 1; W y release 1 @0; W y relaxed 2 @1 | R y acquire; R x weak @0 ?0=2",
    "W x relaxed 1 | R x relaxed; W y release 1 @0 | R y acquire; R x relaxed @0",
];

fn shape(text: &str) -> Vec<Vec<Step>> {
    let step = |text: &str| {
        let mut words = text.split_whitespace();
        let mut word = || words.next().expect("a kind, a place and an order");
        let (kind, place) = (word(), usize::from(word() == "y"));
        let (order, scope) = match word() {
            "release/tl_blk" => ("release", "tl_blk"),
            "acquire/tl_blk" => ("acquire", "tl_blk"),
            "relaxed/tl_blk" => ("relaxed", "tl_blk"),
            "release" => ("release", "device"),
            "acquire" => ("acquire", "device"),
            "relaxed" => ("relaxed", "device"),
            _ => ("weak", "device"),
        };
        let (mut value, mut after, mut guard) = (0, Vec::new(), None);
        let number = |w: &str| w.parse::<i128>().expect("a number");
        for word in words {
            match (word.strip_prefix('@'), word.strip_prefix('?').and_then(|w| w.split_once('='))) {
                (Some(n), _) => after.extend(n.parse::<usize>()),
                (_, Some((from, wanted))) => guard = Some((from.parse().expect("a number"), number(wanted))),
                _ => value = number(word),
            }
        }
        let what = match kind {
            "R" => What::Load,
            "W" => What::Store(Ok(value)),
            _ => What::Update(value),
        };
        Step { what, place, order, scope, after, guard }
    };
    text.split('|').map(|block| block.split(';').map(step).collect()).collect()
}

/// Lists all settings of the six switches.
fn settings() -> Vec<Variants> {
    let mut out = vec![Variants::from([("CO".to_owned(), "total".to_owned())])];
    for (name, values) in SWITCHES {
        let with = |v: &Variants, value: &str| {
            let mut v = v.clone();
            v.insert((*name).to_owned(), value.to_owned());
            v
        };
        out = out.iter().flat_map(|v| values.iter().map(move |value| with(v, value))).collect();
    }
    out
}

/// Asks the script. Returns its answers in order.
fn ask(script: &Path, cases: &[Case]) -> Vec<Answer> {
    let mut child = Command::new("python3")
        .args(["-c", include_str!("tile_ref/driver.py")])
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 ran before");
    let mut input = child.stdin.take().expect("a pipe");
    let lines: String = cases.iter().map(|c| c.line.clone() + "\n").collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("the script ends");
    assert!(writer.join().is_ok_and(|w| w.is_ok()) && output.status.success(), "the script failed");
    String::from_utf8_lossy(&output.stdout).lines().map(Answer::read).collect()
}

/// Finds the script. `None`, with a printed line, if something is missing.
fn witness() -> Option<PathBuf> {
    let found = script();
    if found.is_none() {
        eprintln!("skipped: no shared/tile-lab/refmodel.py beside this checkout");
    } else if !Command::new("python3").arg("--version").output().is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: python3 does not run");
        return None;
    }
    found
}

/// Compares all cases. Returns the number of programs with a race and the number that the enumerator answered.
fn agree(script: &Path, cases: &[Case]) -> (usize, usize) {
    let theirs = ask(script, cases);
    assert_eq!(theirs.len(), cases.len(), "an answer for each program");
    let (mut races, mut enumerated, mut wrong) = (0, 0, Vec::new());
    for (case, theirs) in cases.iter().zip(&theirs) {
        races += usize::from(theirs.race);
        let found = explorer(&case.program, &case.model);
        let naive = enumerator(&case.program, &case.model);
        enumerated += usize::from(naive.is_some());
        if found.as_ref() != Some(theirs) || naive.as_ref().is_some_and(|n| n != theirs) {
            wrong.push(format!(
                "{}\n  theirs {theirs:?}\n  explorer {found:?}\n  enumerator {naive:?}",
                case.line
            ));
        }
        // Without a race, partial coherence also relates all writes.
        let partial = explorer(&case.program, &case.partial);
        if !theirs.race && partial.as_ref() != Some(theirs) {
            wrong.push(format!("{}\n  theirs {theirs:?}\n  partial coherence {partial:?}", case.line));
        }
    }
    eprintln!("{} programs compared, {enumerated} with the enumerator, {races} with a race", cases.len());
    assert!(wrong.is_empty(), "{} programs judged differently, first: {}", wrong.len(), wrong[0]);
    (races, enumerated)
}

#[test]
fn refmodel_agrees() {
    let Some(script) = witness() else { return };
    let count = usize::try_from(number("MOIRE_TILEREF_PROGRAMS").unwrap_or(1_000)).expect("a number");
    let seed = number("MOIRE_TILEREF_SEED").unwrap_or(1);
    let cases: Vec<Case> = (seed..).filter_map(case).take(count).collect();
    let (races, enumerated) = agree(&script, &cases);
    assert!(races * 10 > count && races * 10 < count * 9 && enumerated * 2 > count, "too much of one kind");
}

#[test]
fn refmodel_agrees_on_its_own_table_under_every_setting() {
    let Some(script) = witness() else { return };
    let settings = settings();
    assert_eq!(settings.len(), 216);
    let mut cases = Vec::new();
    for switches in &settings {
        for (seed, text) in (0u64..).zip(SHAPES) {
            cases.push(Case::new(seed, &shape(text), switches));
        }
    }
    let (races, enumerated) = agree(&script, &cases);
    assert!(races > 500 && enumerated == cases.len());
}
