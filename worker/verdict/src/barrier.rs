//! Barriers that a kernel lacks, put into its text.
//!
//! Contract: a barrier stands in front of a statement that all threads of a CTA come to equally often, whatever the data and the
//! launch are ([`moire_kernel::meeting`]). So it adds order as the text has it. Places on each way from one access of a race to the other
//! are tried first. The module with the barriers is judged as a file is, and each of them is needed.

use moire_explore::judge::Verdict;
use moire_kernel::meeting::Meetings;
use moire_kernel::ptx;
use moire_program::ir::{AsyncCopy, BarKind, Op, Program, StoreOrder};
use moire_program::{barrier_op, fence_op, jump_op, multimem_op, register_op};
use std::collections::BTreeSet;

/// Most barriers that a kernel is given.
const BARRIERS: usize = 8;
/// Most pairs of accesses that are looked at for one barrier.
const PAIRS: usize = 64;
/// Most places that are tried for one barrier.
const PLACES: usize = 12;
/// The barrier of all threads of a CTA.
const CTA: &str = "bar.sync 0";
/// The barrier of all lanes of a warp.
const WARP: &str = "bar.warp.sync 0xffffffff";

/// What is wrong with a module: the words of verdicts and lines.
pub(crate) type Left = BTreeSet<(&'static str, Vec<u32>)>;
/// An instruction of a launch: its thread and its line.
pub(crate) type Place = (usize, u32);

/// Barriers that make a module clean.
pub(crate) struct Found {
    /// One sentence for each.
    pub(crate) edits: Vec<String>,
    /// Whether a weaker one is not enough.
    pub(crate) weakest: bool,
    /// How many modules were judged.
    pub(crate) judged: u32,
    /// The module with them.
    pub(crate) text: String,
}

/// Barriers that make the module in `text` clean. `program` is a launch of it, and `wrong` has the instructions of what is wrong there. `judged`
/// says what is wrong with a module; None if it is not known, or there is no time.
pub(crate) fn barriers(
    (text, program): (&str, &Program),
    wrong: &[Vec<Place>],
    judged: &dyn Fn(&str) -> Option<Left>,
) -> Option<Found> {
    let module = ptx::parse(text).ok()?;
    let within = within(program, wrong)?;
    let alone =
        !program.threads.iter().flat_map(|t| &t.body).any(|i| is_whole(&i.op)) || is_one_warp(program);
    let op = if within == Whom::Warp && alone { WARP } else { CTA };
    let meetings = module.kernels.iter().map(Meetings::new).collect();
    let mut search = Search { text, meetings, op, judged, count: 0 };
    let mut done = Vec::new();
    let mut left: Left = wrong.iter().map(|places| (Verdict::Race.word(), lines(places))).collect();
    while !left.is_empty() {
        let (line, less) = search.next(&done, &left).filter(|_| done.len() < BARRIERS)?;
        done.push(line);
        left = less;
    }
    done.sort_unstable();
    for line in done.clone() {
        let fewer: Vec<u32> = done.iter().copied().filter(|l| *l != line).collect();
        if !fewer.is_empty() && search.judged(&fewer).is_some_and(|left| left.is_empty()) {
            done = fewer;
        }
    }
    let edits =
        done.iter().map(|line| format!("add `{op}` in front of line {line} for all threads")).collect();
    let weakest = op == WARP || within == Whom::Cta && !search.is_wide(&done);
    Some(Found { edits, weakest, judged: search.count, text: with(text, &done, op, "\n")? })
}

/// Whether all threads of a CTA come equally often to the front of a line of a module, or to its end.
pub(crate) fn is_level(text: &str, line: u32, behind: bool) -> bool {
    let Ok(module) = ptx::parse(text) else { return false };
    module
        .kernels
        .iter()
        .map(Meetings::new)
        .filter(|m| m.has(line))
        .all(|m| if behind { m.behind(line) } else { m.front(line) })
}

struct Search<'a> {
    text: &'a str,
    meetings: Vec<Meetings<'a>>,
    op: &'static str,
    judged: &'a dyn Fn(&str) -> Option<Left>,
    count: u32,
}

impl Search<'_> {
    /// What is wrong with barriers in front of these lines.
    fn judged(&mut self, lines: &[u32]) -> Option<Left> {
        self.count += 1;
        (self.judged)(&with(self.text, lines, self.op, " ")?)
    }

    /// Whether a barrier of each warp is enough in front of one of these lines.
    fn is_wide(&mut self, done: &[u32]) -> bool {
        done.len() > 1
            && done.iter().any(|line| {
                let rest: Vec<u32> = done.iter().copied().filter(|l| l != line).collect();
                let text = with(self.text, &rest, CTA, " ").and_then(|text| with(&text, &[*line], WARP, " "));
                self.count += 1;
                text.and_then(|text| (self.judged)(&text)).is_some_and(|left| left.is_empty())
            })
    }

    /// A line for one more barrier, and what is wrong then: nothing, or less, or something else. Accesses of one place between two
    /// barriers are one, with the line of the first, so a barrier may show what was behind it.
    fn next(&mut self, done: &[u32], left: &Left) -> Option<(u32, Left)> {
        let mut other = None;
        for line in self.places(left).into_iter().filter(|line| !done.contains(line)).take(PLACES) {
            match self.judged(&[done, &[line]].concat()) {
                Some(less) if less.len() < left.len() => return Some((line, less)),
                Some(moved) if other.is_none() && moved != *left => {
                    other = Some((line, moved));
                }
                Some(_) | None => {}
            }
        }
        other
    }

    /// Lines for a barrier: those that part most accesses first, and behind them the others.
    fn places(&self, left: &Left) -> Vec<u32> {
        let pair = |lines: &[u32]| if let [x, y] = lines { Some((*x, *y)) } else { None };
        let pairs: BTreeSet<(u32, u32)> = left.iter().filter_map(|(_, lines)| pair(lines)).collect();
        let mut out: Vec<(u32, usize)> = Vec::new();
        for m in &self.meetings {
            for (x, y) in pairs.iter().filter(|(x, y)| m.has(*x) && m.has(*y)).take(PAIRS) {
                let lines = [m.between(*x, *y), m.between(*y, *x)].map(from_both_ends);
                for line in lines.concat() {
                    match out.iter_mut().find(|(l, _)| *l == line) {
                        Some((_, parted)) => *parted += 1,
                        None => out.push((line, 1)),
                    }
                }
            }
        }
        out.sort_by_key(|(_, parted)| std::cmp::Reverse(*parted));
        let near = |m: &&Meetings<'_>| pairs.iter().any(|(x, y)| m.has(*x) && m.has(*y));
        let others = self.meetings.iter().filter(near).flat_map(Meetings::lines);
        let mut all: Vec<u32> = out.into_iter().map(|(line, _)| line).collect();
        all.extend(others.filter(|line| !all.contains(line)).collect::<Vec<_>>());
        all
    }
}

/// The first, the last, the second, the last but one, ..
fn from_both_ends(lines: Vec<u32>) -> Vec<u32> {
    let half = lines.len().div_ceil(2);
    let pairs = lines.iter().zip(lines.iter().rev()).take(half);
    let mut out: Vec<u32> = pairs.flat_map(|(a, b)| [*a, *b]).collect();
    out.dedup();
    out
}

/// Which threads race.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Warp,
    Cta,
}

/// Whether all findings that name two instructions are of threads of one CTA, or even of one warp, and none of two stores: between these a barrier
/// would only choose which one is lost.
fn within(program: &Program, wrong: &[Vec<Place>]) -> Option<Whom> {
    let mut out = Whom::Warp;
    let pairs: Vec<&Vec<Place>> = wrong.iter().filter(|places| places.len() == 2).collect();
    for places in &pairs {
        let [x, y] = places[..] else { return None };
        let thread = |p: Place| program.threads.get(p.0);
        let all = |p: Place, is: &dyn Fn(&Op) -> bool| {
            thread(p).is_some_and(|t| t.body.iter().filter(|i| i.line == p.1).all(|i| is(&i.op)))
        };
        // Updates of places that data decides are strong stores here.
        let stores = |p: Place| all(p, &|op| matches!(op, Op::Store { order: StoreOrder::Weak, .. }));
        let (p, q) = (&thread(x)?.place, &thread(y)?.place);
        if !p.same_cta(q) || !all(x, &acts_at_once) || !all(y, &acts_at_once) || stores(x) && stores(y) {
            return None;
        }
        if p.warp != q.warp {
            out = Whom::Cta;
        }
    }
    (!pairs.is_empty()).then_some(out)
}

/// Whether what an instruction does is done behind it, or is copied by threads and waited for by them.
fn acts_at_once(op: &Op) -> bool {
    match op {
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) | Op::Book(_) => true,
        Op::AsyncCopy(copy) => matches!(copy, AsyncCopy::Small(_)),
        multimem_op!() | register_op!() | fence_op!() | barrier_op!() | jump_op!() => true,
        Op::Wgmma(_) | Op::Tcgen05(_) | Op::Tile(_) | Op::Control(_) => false,
    }
}

fn is_whole(op: &Op) -> bool {
    matches!(op, Op::Bar { kind: BarKind::Sync, count: None, .. })
}

fn is_one_warp(program: &Program) -> bool {
    program
        .threads
        .iter()
        .all(|t| program.threads.iter().all(|u| !t.place.same_cta(&u.place) || t.place.warp == u.place.warp))
}

/// The lines of instructions, in order.
pub(crate) fn lines(places: &[Place]) -> Vec<u32> {
    let mut out: Vec<u32> = places.iter().map(|p| p.1).collect();
    out.sort_unstable();
    out
}

/// The text with an instruction in front of the statements of these lines, and `between` behind it: a line break, or nothing that moves a
/// line. None if a line starts with a label.
fn with(text: &str, lines: &[u32], op: &str, between: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let start = line.len() - line.trim_start().len();
        let (indent, rest) = line.split_at(start);
        if lines.contains(&number) {
            let word =
                rest.find(|c: char| !(c.is_alphanumeric() || "_$%.@!".contains(c))).unwrap_or(rest.len());
            let behind = rest[word..].trim_start();
            if behind.starts_with(':') && !behind.starts_with("::") {
                return None;
            }
            out.push_str(indent);
            out.push_str(op);
            out.push(';');
            out.push_str(between);
            if between == " " {
                out.push_str(rest);
                continue;
            }
        }
        out.push_str(line);
    }
    Some(out)
}
