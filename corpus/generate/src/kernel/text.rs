//! The text of a kernel, line by line, with what may be weakened in each line.

use crate::numbers::Choose;
use crate::protocol::Mutation;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A weaker form of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Weaker {
    /// Another text. None: the line is gone.
    Text(Option<String>),
    /// The line stands behind the next one.
    Later,
    /// The line stands in front of the one before.
    Earlier,
}

/// A line, and its weaker forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) weaker: Vec<(Mutation, Weaker)>,
}

/// How a kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// CTAs.
    pub(super) grid: u32,
    /// Threads of a CTA.
    pub(super) block: u32,
}

/// A kernel as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    /// The names of its phases.
    pub(super) phases: Vec<&'static str>,
    pub(super) shape: Shape,
    /// The least architecture that has its instructions.
    pub(super) least: u32,
    /// Declarations of shared memory.
    pub(super) shared: Vec<String>,
    pub(super) lines: Vec<Line>,
    /// How its barriers are written: instruction, first barrier, whether they name the number of threads.
    barrier: (&'static str, u32, bool),
    /// How its waits for mbarriers are written.
    wait: &'static str,
    labels: usize,
}

/// Bytes between the memories of two phases.
pub(super) const FAR: u32 = 1 << 20;

/// The kinds of registers: first letter of the name, and type.
const CLASSES: [(char, &str); 5] = [('p', "pred"), ('h', "b16"), ('r', "b32"), ('f', "f32"), ('d', "b64")];

impl Script {
    /// A kernel with parameters `in` and `out` that knows its thread (`r_tid`), lane, warp and CTA.
    pub(super) fn new(shape: Shape, d: &mut dyn Choose) -> Script {
        let barrier = (
            d.pick(&["bar.sync", "barrier.sync.aligned", "barrier.sync", "bar.cta.sync"]),
            d.pick(&[0, 0, 1, 2, 3]),
            d.chance(40),
        );
        let wait = d.pick(&["try_wait.parity", "try_wait.parity", "test_wait.parity"]);
        let (phases, shared, lines) = (Vec::new(), Vec::new(), Vec::new());
        let mut out = Script { phases, shape, least: 80, shared, lines, barrier, wait, labels: 0 };
        out.all(&[
            "ld.param.u64 d_in, [in];",
            "ld.param.u64 d_out, [out];",
            "cvta.to.global.u64 d_in, d_in;",
            "cvta.to.global.u64 d_out, d_out;",
            "mov.u32 r_tid, %tid.x;",
            "and.b32 r_lane, r_tid, 31;",
            "shr.u32 r_warp, r_tid, 5;",
            "mov.u32 r_cta, %ctaid.x;",
            "setp.eq.u32 p_first, r_tid, 0;",
        ]);
        out
    }

    /// Starts a phase: memory of its own, or with `chained` the output of the phase before as input.
    pub(super) fn phase(&mut self, name: &'static str, chained: bool) {
        if !self.phases.is_empty() {
            let from = if chained {
                "mov.u64 d_in, d_out;".to_owned()
            } else {
                format!("add.u64 d_in, d_in, {FAR};")
            };
            self.line(from);
            self.line(format!("add.u64 d_out, d_out, {FAR};"));
        }
        self.phases.push(name);
    }

    /// Adds a line that nothing weakens.
    pub(super) fn line(&mut self, text: impl Into<String>) {
        self.lines.push(Line { text: text.into(), weaker: Vec::new() });
    }

    /// Adds such lines.
    pub(super) fn all(&mut self, lines: &[&str]) {
        lines.iter().for_each(|line| self.line(*line));
    }

    /// Adds a line with weaker texts.
    pub(super) fn weak(&mut self, text: impl Into<String>, weaker: &[(Mutation, &str)]) {
        let text_of = |(mutation, text): &(Mutation, &str)| {
            (*mutation, Weaker::Text((!text.is_empty()).then(|| (*text).to_owned())))
        };
        self.lines.push(Line { text: text.into(), weaker: weaker.iter().map(text_of).collect() });
    }

    /// The last line may stand elsewhere, too.
    pub(super) fn or(&mut self, place: Weaker) {
        if let Some(line) = self.lines.last_mut() {
            line.weaker.push((Mutation::Move, place));
        }
    }

    /// Declares shared memory of so many bytes for this phase; its address is in `r_NAME`.
    pub(super) fn memory(&mut self, name: &str, bytes: u32, align: u32) {
        let own = format!("{name}{}", self.phases.len());
        self.shared.push(format!(".shared .align {align} .b8 {own}[{bytes}];"));
        self.line(format!("mov.u32 r_{name}, {own};"));
    }

    /// A name that no other label has.
    pub(super) fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    /// A barrier of all threads of the CTA.
    pub(super) fn sync(&mut self) {
        let (word, number, counted) = self.barrier;
        let count = if counted { format!(", {}", self.shape.block) } else { String::new() };
        self.weak(format!("{word} {number}{count};"), &[(Mutation::Drop, "")]);
        self.or(Weaker::Later);
    }

    /// Initialises an mbarrier at an address for so many arrivals.
    pub(super) fn init(&mut self, at: &str, count: u32) {
        let text = |count: u32| format!("@p_first mbarrier.init.shared::cta.b64 [{at}], {count};");
        let (more, fewer) = (text(count + 1), text(count.saturating_sub(1)));
        let mut weaker = vec![(Mutation::Count, more.as_str()), (Mutation::Drop, "")];
        if count > 1 {
            weaker.push((Mutation::Count, fewer.as_str()));
        }
        self.weak(text(count), &weaker);
    }

    /// Lets those whose predicate holds wait for a phase of an mbarrier. `parity` is a register or a number.
    pub(super) fn wait(&mut self, at: &str, parity: &str, order: &str) {
        let label = self.label();
        let word = self.wait;
        let text = |order: &str, before: &str, parity: &str| {
            format!(
                "{before}{label}: mbarrier.{word}{order}.shared::cta.b64 p_over, [{at}], {parity}; @!p_over bra {label};"
            )
        };
        let flipped = text(order, &format!("xor.b32 r_flip, {parity}, 1; "), "r_flip");
        let relaxed = text(".relaxed.cta", "", parity);
        self.weak(
            text(order, "", parity),
            &[(Mutation::Drop, ""), (Mutation::Parity, &flipped), (Mutation::Weaken, &relaxed)],
        );
    }

    /// Lets a thread, where a guard holds, arrive at an mbarrier.
    pub(super) fn arrive(&mut self, guard: &str, at: &str, order: &str) {
        let text = |order: &str| format!("{guard}mbarrier.arrive{order}.shared::cta.b64 _, [{at}];");
        let once = text(order);
        let relaxed = text(".relaxed.cta");
        let twice = format!("{once} {once}");
        self.weak(once, &[(Mutation::Drop, ""), (Mutation::Weaken, &relaxed), (Mutation::Duplicate, &twice)]);
        self.or(Weaker::Earlier);
    }

    /// How many ways to weaken it there are.
    pub(super) fn weakenings(&self) -> usize {
        self.lines.iter().map(|line| line.weaker.len()).sum()
    }

    /// Weakening number `n`: the line, and which of its forms.
    fn weakening(&self, n: usize) -> Option<(usize, usize)> {
        let of =
            |(at, line): (usize, &Line)| (0..line.weaker.len()).map(move |way| (at, way)).collect::<Vec<_>>();
        self.lines.iter().enumerate().flat_map(of).nth(n)
    }

    /// The kernel with weakening number `n`, its kind, and the line as it was.
    pub(super) fn weakened(&self, n: usize) -> Option<(Script, Mutation, String)> {
        let (at, way) = self.weakening(n)?;
        let mut out = self.clone();
        let was = self.lines[at].text.clone();
        let (mutation, form) = self.lines[at].weaker[way].clone();
        match form {
            Weaker::Text(Some(text)) => out.lines[at].text = text,
            Weaker::Text(None) => drop(out.lines.remove(at)),
            Weaker::Later if at + 1 < out.lines.len() => out.lines.swap(at, at + 1),
            Weaker::Earlier if at > 0 => out.lines.swap(at, at - 1),
            Weaker::Later | Weaker::Earlier => return None,
        }
        Some((out, mutation, was))
    }

    /// The module for an architecture.
    pub(super) fn module(&self, target: &str) -> String {
        let (block, name) = (self.shape.block, self.phases.join("_"));
        let mut out = format!(
            ".version 8.8\n.target {target}\n.address_size 64\n\n.visible .entry {name}(\n    .param .u64 in,\n    .param .u64 out\n)\n.reqntid {block}\n{{\n"
        );
        let used = self.registers();
        for (class, of) in CLASSES {
            let names: Vec<&str> = used.iter().filter(|n| n.starts_with(class)).map(String::as_str).collect();
            if !names.is_empty() {
                let _ = writeln!(out, "    .reg .{of} {};", names.join(", "));
            }
        }
        self.shared.iter().for_each(|line| {
            let _ = writeln!(out, "    {line}");
        });
        self.lines.iter().for_each(|line| {
            let _ = writeln!(out, "    {}", line.text);
        });
        out + "    ret;\n}\n"
    }

    /// The registers that its lines name: a letter of [`CLASSES`], `_` and a word.
    fn registers(&self) -> BTreeSet<String> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = self.lines.iter().flat_map(|line| line.text.split(move |c| !word(c)));
        let is = |w: &&str| {
            CLASSES.iter().any(|(class, _)| w.strip_prefix(*class).is_some_and(|r| r.starts_with('_')))
        };
        words.filter(is).map(str::to_owned).collect()
    }
}
