//! What a compiler makes of each operation that it can be asked for, and whether it keeps its order, scope and atomicity.
//!
//! Each cell ([`moire_source::cell`]) stands in a few programs that tell whether it is kept; these are compiled and judged like drawn
//! ones. A partner that the compiler refuses has something else in its place, as in drawn programs. What is lost in a program may be
//! lost in a partner. It is not the cell's if it is there once the other threads have stronger instructions; and where a partner
//! stands in its own thread, if the cell emits none of the instructions that the class of the verdict names. Sizes are mixed by
//! the cell whose accesses have another width than its object, and a weak access is lost by the cell that emits it.
//!
//! Of a cell that is kept it is also said what is more than needed (`surplus`).

use super::super::abstention::Abstention;
use super::super::case::Context;
use super::cell::Cell as Compiles;
use super::surplus::{self, Least};
use super::turns::SIZE;
use super::{Found, Sources, all, blame, judge, written};
use crate::direction::Direction;
use crate::job::Cancel;
use crate::oracle::models::Models;
use moire_source::cell::{Cell, Told};
use moire_source::form::{Forms, settled};
use moire_source::{Source, cell};
use std::collections::{BTreeMap, BTreeSet};

/// A cell, and what a compiler makes of it.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The cell.
    pub cell: Cell,
    /// The accesses and fences that are emitted for it, without operands; empty where it is refused.
    pub emitted: Vec<String>,
    /// Whether it is kept.
    pub kept: Kept,
    /// The least of what is emitted that would do, if less would: each instruction, in a weaker form or gone.
    pub least: Option<Least>,
}

/// A program that told that a cell is kept, with the thread of the cell, if it is one.
struct Telling {
    source: Source,
    ptx: Vec<String>,
    thread: Option<usize>,
}

/// Whether a compiler keeps what a cell says.
#[derive(Clone, Debug)]
pub enum Kept {
    /// It does, in so many programs.
    Sound(usize),
    /// It does not.
    Lost {
        /// What is lost, and by which instructions.
        class: Vec<String>,
        /// The rule that is broken.
        direction: Direction,
        /// The program that shows it, with the PTX of its threads.
        program: String,
    },
    /// The compiler refuses it, in these words.
    Refused(String),
    /// No program says anything, for this reason.
    Open(String),
}

/// The compilers that are here, or those that are named: as `llvm:release=19`, `nvcc`.
///
/// # Errors
/// A name that cannot be read, or of a compiler that is not here.
pub fn compilers(named: &[String]) -> Result<Vec<String>, Abstention> {
    if named.iter().any(|spec| Compiles::parse(spec).is_none()) {
        return Err(Abstention::Unusable(
            "a compiler is named as `llvm`, `llvm:release=19`, `nvcc` or `libnvvm:target=sm_100`",
        ));
    }
    let mut out = Vec::new();
    for sources in all().filter(|s| !s.mixes()) {
        out.extend(sources.cells(named, super::Unusual::Never)?.iter().map(ToString::to_string));
    }
    Ok(out)
}

/// Judges cells as one compiler compiles them. `progress` is called with the number of cells that are done.
///
/// # Errors
/// The compiler is not here.
pub fn certify(
    compiler: &str,
    cells: &[Cell],
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Certified>, Abstention> {
    let by = Compiles::parse(compiler).ok_or(super::NO_COMPILER)?.map_err(Abstention::SourceCell)?;
    let sources = all().find(|s| !s.mixes() && s.kinds.contains(&by.kind)).ok_or(super::NO_COMPILER)?;
    let (models, cancel) = (Models::default(), Cancel::default());
    let context = Context { models: &models, cancel: &cancel, planted: None };
    let asked = Asked { sources: &sources, by: vec![by], context };
    let mut out = Vec::new();
    for some in cells.chunks(SIZE) {
        out.extend(asked.some(some)?);
        progress(out.len());
    }
    Ok(out)
}

/// Of a cell about which nothing is known.
const NONE: &str = "no program that the compiler takes tells whether it is kept";

struct Asked<'a> {
    sources: &'a Sources,
    by: Vec<Compiles>,
    context: Context<'a>,
}

impl Asked<'_> {
    fn some(&self, cells: &[Cell]) -> Result<Vec<Certified>, Abstention> {
        let alone: Vec<(String, Source)> = cells.iter().filter_map(Cell::alone).collect();
        let texts =
            self.sources.compiled(&self.by, &alone.iter().map(|a| &a.1).collect::<Vec<_>>(), self.context)?;
        let mut out = Vec::new();
        let mut programs = Vec::new();
        for ((cell, (_, form)), text) in cells.iter().zip(&alone).zip(texts) {
            let (emitted, kept) = match text {
                Ok(text) => (emitted(text.first().map_or("", |t| t), form), Kept::Open(NONE.into())),
                Err(why) => (Vec::new(), Kept::Refused(self.words(form).unwrap_or_else(|| why.to_string()))),
            };
            if matches!(kept, Kept::Open(_)) {
                programs.extend(cell.programs().into_iter().map(|told| (out.len(), told)));
            }
            out.push(Certified { cell: *cell, emitted, kept, least: None });
        }
        self.judge(&mut out, programs)?;
        Ok(out)
    }

    /// Why the compiler refuses a form, in its words.
    fn words(&self, form: &Source) -> Option<String> {
        let called = self.sources.called(&self.by).ok()?;
        called.into_iter().find_map(|one| self.sources.answers.words(one, form))
    }

    /// Judges programs, each of a row.
    fn judge(&self, rows: &mut [Certified], programs: Vec<(usize, Told)>) -> Result<(), Abstention> {
        let called = self.sources.called(&self.by)?;
        let beat = || self.context.cancel.tick();
        let mut refused =
            |forms: &Forms| -> BTreeSet<String> { self.sources.answers.refused(&called, forms, &beat) };
        let drawn: Vec<Source> = programs.iter().map(|(_, told)| told.source.clone()).collect();
        let sources = settled(&drawn, &mut refused);
        let texts = self.sources.compiled(&self.by, &sources.iter().collect::<Vec<_>>(), self.context)?;
        let mut telling: BTreeMap<usize, Vec<Telling>> = BTreeMap::new();
        for (((at, told), source), ptx) in programs.into_iter().zip(sources).zip(texts) {
            let row = &mut rows[at];
            if matches!(row.kept, Kept::Lost { .. }) {
                continue;
            }
            let counted = ptx.and_then(|ptx| {
                let verdict = judge::judge(&source, &ptx, self.sources.desk(self.context))?;
                let found = Found { source, ptx: ptx.to_vec(), verdict };
                let tells = self.count(row, &told, &found)?;
                Ok(tells.then_some(Telling { source: found.source, ptx: found.ptx, thread: told.thread }))
            });
            match (counted, &mut row.kept) {
                (Ok(tells), _) => telling.entry(at).or_default().extend(tells),
                (Err(why), Kept::Open(open)) => *open = why.to_string(),
                (Err(_), _) => {}
            }
        }
        for (at, programs) in telling {
            let row = &mut rows[at];
            row.least = matches!(row.kept, Kept::Sound(_)).then(|| self.least(row, &programs)).flatten();
        }
        Ok(())
    }

    /// What would do of what a cell emits, if less would.
    fn least(&self, row: &Certified, programs: &[Telling]) -> Option<Least> {
        let one_sided = surplus::is_one_sided(programs.first()?.ptx.first()?);
        let mut right = |least: &Least| programs.iter().all(|told| self.is_right(row, told, least));
        let least = surplus::least(&row.cell, &row.emitted, one_sided, &mut right)?;
        (!least.iter().flatten().eq(&row.emitted)).then_some(least)
    }

    /// Whether a program is right with this in the place of what the cell emits.
    fn is_right(&self, row: &Certified, told: &Telling, least: &Least) -> bool {
        let mut ptx = told.ptx.clone();
        let mut is_there = false;
        for (t, text) in ptx.iter_mut().enumerate() {
            if told.thread.is_none_or(|own| own == t)
                && let Some(new) = surplus::replaced(text, &row.emitted, least, &word)
            {
                (*text, is_there) = (new, true);
            }
        }
        let right = |v: judge::Verdict| v.compiled.is_some() && v.judged.direction().is_none();
        is_there && judge::judge(&told.source, &ptx, self.sources.desk(self.context)).is_ok_and(right)
    }

    /// Counts a program; whether it tells that the cell is kept.
    fn count(&self, row: &mut Certified, told: &Told, found: &Found) -> Result<bool, Abstention> {
        let desk = self.sources.desk(self.context);
        let Some(direction) = found.verdict.judged.direction() else {
            // A program with a race may do anything.
            let mut tells = found.verdict.compiled.is_some();
            if told.has_order() {
                let relaxed = told.relaxed(&found.source);
                let more = |relaxed: Source| judge::means_more(&relaxed, &found.source, desk);
                tells &= relaxed.map(more).transpose()?.unwrap_or(false);
            }
            if tells {
                let before = if let Kept::Sound(n) = row.kept { n } else { 0 };
                row.kept = Kept::Sound(before + 1);
            }
            return Ok(tells);
        };
        let class = found.verdict.class.clone();
        let emits = match class.as_slice() {
            [what] if what == blame::MIXED => {
                row.emitted.iter().any(|w| width(w).is_some_and(|n| n != row.cell.bits))
            }
            [what] if what == blame::WEAK => row.emitted.iter().any(|word| is_weak(word)),
            [_, kind] if told.partner => blames(kind, &row.emitted),
            _ => true,
        };
        let elsewhere = |thread| judge::lost_elsewhere(&found.source, &found.ptx, thread, desk);
        if !emits || told.thread.map(elsewhere).transpose()?.unwrap_or(false) {
            return Ok(false);
        }
        row.kept = Kept::Lost { class, direction, program: written(&found.source, &self.by, &found.ptx) };
        Ok(false)
    }
}

/// The width of an access in bits, from its type; none of a fence.
fn width(word: &str) -> Option<u8> {
    word.rsplit('.').next()?.strip_prefix(['b', 'u', 's'])?.parse().ok()
}

/// Whether an instruction is a weak access.
fn is_weak(word: &str) -> bool {
    let strong = ["relaxed", "acquire", "release", "volatile", "mmio"];
    (word.starts_with("ld.") || word.starts_with("st."))
        && !word.split('.').any(|part| strong.contains(&part))
}

/// Whether the kind of instruction that is to blame, such as `atom.exch`, is among those that are emitted.
fn blames(kind: &str, emitted: &[String]) -> bool {
    let is = |word: &String| {
        let parts: Vec<&str> = word.split('.').collect();
        kind.split('.').all(|part| parts.contains(&part))
    };
    // Of all accesses together, where a fence before each would help.
    kind == "seq_cst" || (kind == "fence" && emitted.is_empty()) || emitted.iter().any(is)
}

/// The accesses and fences of the PTX of a form, without operands.
fn emitted(text: &str, form: &Source) -> Vec<String> {
    let body = text.split_once('{').map_or(text, |(_, body)| body);
    let mut out: Vec<String> = body.lines().filter_map(word).collect();
    // The kernel ends with a store of the result.
    let results = form.threads.iter().map(|t| t.registers.len()).sum::<usize>();
    (0..results).for_each(|_| drop(out.pop()));
    out
}

/// The access or the fence of a line of PTX, without operands.
fn word(line: &str) -> Option<String> {
    let words = ["ld.", "st.", "atom.", "red.", "fence.", "membar.", "bar.", "cp."];
    let line = line.trim().trim_start_matches('{');
    let word = line.split_whitespace().find(|word| !word.starts_with('@'))?.trim_end_matches(';');
    let is = words.iter().any(|w| word.starts_with(w)) && !word.starts_with("ld.param");
    is.then(|| word.to_owned())
}

/// All cells, or those whose name holds one of these words.
pub fn cells(words: &[String]) -> Vec<Cell> {
    let mut all = cell::all();
    let named = |cell: &Cell| cell.alone().map(|form| form.0).unwrap_or_default();
    all.retain(|cell| words.is_empty() || words.iter().any(|word| named(cell).contains(word.as_str())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_program::ir::{AtomOp, Scope};
    use moire_source::cell::Operation;
    use moire_source::{Access, Order, Space, Step, Value};

    /// The PTX of a step by the published mapping, without order if it is `weak`.
    fn mapped(step: &Step, weak: bool) -> String {
        let fence = |order: Order| if order == Order::SeqCst && !weak { "fence.sc.gpu;\n" } else { "" };
        let word = |order: Order, strongest: &str| match order {
            Order::Relaxed => "relaxed".to_owned(),
            Order::SeqCst if !weak => strongest.to_owned(),
            other if !weak => other.word().to_owned(),
            _ => "relaxed".to_owned(),
        };
        let access =
            |access: &Access| if let Access::Atomic { order, .. } = access { *order } else { Order::Relaxed };
        let number = |value: &Value| if let Value::Number(n) = value { *n } else { 0 };
        match step {
            Step::Load { dst, object, access: a } => {
                let order = access(a);
                format!(
                    "{}ld.{}.gpu.global.b32 %r{dst}, [%o{object}];\n",
                    fence(order),
                    word(order, "acquire")
                )
            }
            Step::Store { object, value, access: a } => {
                let (order, value) = (access(a), number(value));
                format!(
                    "{}st.{}.gpu.global.b32 [%o{object}], {value};\n",
                    fence(order),
                    word(order, "release")
                )
            }
            Step::Update(u) => {
                let (op, ty) = match u.op {
                    AtomOp::Exch => ("exch", "b32"),
                    AtomOp::And => ("and", "b32"),
                    AtomOp::Or => ("or", "b32"),
                    AtomOp::Xor => ("xor", "b32"),
                    AtomOp::Min => ("min", "u32"),
                    AtomOp::Max => ("max", "u32"),
                    _ => ("add", "u32"),
                };
                let (order, dst) = (word(u.order, "acq_rel"), u.dst.unwrap_or(9));
                let (fence, object, value) = (fence(u.order), u.object, number(&u.value));
                format!("{fence}atom.{order}.gpu.global.{op}.{ty} %r{dst}, [%o{object}], {value};\n")
            }
            Step::Cas(c) => {
                let acquires = c.success.acquires() || c.failure.acquires();
                let joined = match (acquires, c.success.releases()) {
                    (true, true) => Order::AcqRel,
                    (true, false) => Order::Acquire,
                    (false, true) => Order::Release,
                    (false, false) => Order::Relaxed,
                };
                let fences = [c.success, c.failure].contains(&Order::SeqCst);
                let fence = if fences { fence(Order::SeqCst) } else { "" };
                let (order, old, new) = (word(joined, "acq_rel"), c.expected, number(&c.desired));
                let (dst, object) = (c.dst, c.object);
                format!("{fence}atom.{order}.gpu.global.cas.b32 %r{dst}, [%o{object}], {old}, {new};\n")
            }
            Step::Fence { .. } if weak => String::new(),
            Step::Fence { order: Order::SeqCst, .. } => "fence.sc.gpu;\n".to_owned(),
            Step::Fence { .. } => "fence.acq_rel.gpu;\n".to_owned(),
            Step::If { .. } => unreachable!("cells have none"),
        }
    }

    /// The kernels of a program, with this step without order.
    fn kernels(source: &Source, weak: Option<&Step>) -> Vec<String> {
        let results: usize = source.threads.iter().map(|t| t.registers.len()).sum();
        let (objects, mut first) = (source.objects.len(), source.objects.len());
        let mut out = Vec::new();
        for (t, thread) in source.threads.iter().enumerate() {
            let name = format!("moire_0_{t}_");
            let all = objects + results;
            let params: Vec<String> = (0..all).map(|n| format!(".param .u64 {name}_param_{n}")).collect();
            let loads: String =
                (0..all).map(|n| format!("ld.param.u64 %o{n}, [{name}_param_{n}];\n")).collect();
            let body: String = thread.body.iter().map(|s| mapped(s, weak == Some(s))).collect();
            let own = first..first + thread.registers.len();
            let stores: String = own
                .clone()
                .zip(0..)
                .map(|(n, r): (usize, usize)| format!("st.global.b32 [%o{n}], %r{r};\n"))
                .collect();
            first = own.end;
            out.push(format!(
                ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry {name}({})\n{{\n.reg .b32 %r<10>;\n\
                 .reg .b64 %o<{all}>;\n{loads}{body}{stores}ret;\n}}\n",
                params.join(", ")
            ));
        }
        out
    }

    /// What the programs of a cell say of the published mapping, or of one that loses the order of the cell; `then` is given those
    /// that tell.
    fn kept<T>(cell: &Cell, weak: bool, then: &dyn Fn(&Asked<'_>, &Certified, &[Telling]) -> T) -> (Kept, T) {
        let sources = all().next().expect("an oracle");
        let (models, cancel) = (Models::default(), Cancel::default());
        let context = Context { models: &models, cancel: &cancel, planted: None };
        let by = vec![Compiles::parse("llvm:release=20").expect("a cell").expect("reads")];
        let (asked, mut telling) = (Asked { sources: &sources, by, context }, Vec::new());
        let alone = cell.alone().expect("a form").1;
        let text = mapped(&alone.threads[0].body[0], weak);
        let words = text.lines().filter_map(word);
        let mut row =
            Certified { cell: *cell, emitted: words.collect(), kept: Kept::Open(NONE.into()), least: None };
        for told in cell.programs() {
            let step = told.step().filter(|_| weak);
            let ptx = kernels(&told.source, step);
            let verdict = judge::judge(&told.source, &ptx, sources.desk(context)).expect("a verdict");
            let found = Found { source: told.source.clone(), ptx, verdict };
            if asked.count(&mut row, &told, &found).expect("an answer") {
                telling.push(Telling { source: found.source, ptx: found.ptx, thread: told.thread });
            }
            if matches!(row.kept, Kept::Lost { .. }) {
                break;
            }
        }
        let then = then(&asked, &row, &telling);
        (row.kept, then)
    }

    fn usual() -> impl Iterator<Item = Cell> {
        let usual = |cell: &Cell| cell.scope == Scope::Gpu && cell.bits == 32 && cell.space == Space::Global;
        cells(&[]).into_iter().filter(usual)
    }

    #[test]
    fn what_the_published_mapping_has_more_than_it_needs_is_told() {
        let mut seen = 0;
        for cell in usual() {
            let (_, least) = kept(&cell, false, &|asked, row, telling| asked.least(row, telling));
            let left = least.map(|least| least.into_iter().flatten().collect::<Vec<_>>().join(" "));
            let expected = match cell.operation {
                Operation::Store(Order::SeqCst) => Some("fence.sc.gpu st.relaxed.gpu.global.b32"),
                Operation::Load(_)
                | Operation::Store(_)
                | Operation::Fence(Order::SeqCst | Order::AcqRel) => None,
                Operation::Fence(Order::Acquire) => Some("fence.acquire.gpu"),
                Operation::Update(..) => None,
                _ => continue,
            };
            assert_eq!(left.as_deref(), expected, "{:?}", cell.operation);
            seen += 1;
        }
        assert!(seen > 20, "{seen}");
    }

    /// The programs alone see that a load needs the fence in front of it.
    #[test]
    fn what_is_needed_is_seen_by_the_programs_too() {
        let cell = usual().find(|cell| cell.operation == Operation::Load(Order::SeqCst)).expect("a cell");
        let (_, (kept, gone)) = kept(&cell, false, &|asked, row, telling| {
            let whole: Least = row.emitted.iter().cloned().map(Some).collect();
            let gone: Least = [None].into_iter().chain(whole[1..].iter().cloned()).collect();
            let all = |least| telling.iter().all(|told| asked.is_right(row, told, least));
            (all(&whole), all(&gone))
        });
        assert!(kept && !gone);
    }

    #[test]
    fn the_published_mapping_is_sound_and_each_order_that_it_loses_is_found() {
        for cell in usual() {
            let name = cell.alone().map(|form| form.0);
            // An unused result: nobody sees what an acquiring update has read.
            let seen = !matches!(cell.operation, Operation::Update(_, Order::Acquire, false));
            let right = kept(&cell, false, &|_, _, _| ()).0;
            assert!(matches!(right, Kept::Sound(_)) || !seen, "{name:?}: {right:?}");
            if seen && cell.programs().iter().any(moire_source::cell::Told::has_order) {
                let wrong = kept(&cell, true, &|_, _, _| ()).0;
                assert!(matches!(wrong, Kept::Lost { .. }), "{name:?}: {wrong:?}");
            }
        }
    }
}
