//! The text of a program with edits: what was read, with as few changes as possible.
//!
//! Contract of [`native`]: the result reads back as the edited program, register numbers aside; otherwise there is none. The
//! columns of the other litmus dialects leave no room for an instruction. The result of [`ptx`] has to be lowered and
//! explored again.

use crate::Step;
use moire_program::edit::{Added, Edit};
use moire_program::ir::{FenceOrder, Instr, Op, Operand, Parts, Program, Thread};
use moire_program::mutate::synchronises;
use moire_program::text::{Format, instruction, parse, print};
use std::collections::BTreeSet;

/// A change of a text: these bytes become that text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cut {
    pub(crate) from: usize,
    pub(crate) until: usize,
    pub(crate) text: String,
}

/// `text`, from which `program` was read, with the edits that lead to `edited`.
pub fn native(text: &str, program: &Program, edits: &[Edit], edited: &Program) -> Option<String> {
    let mut cuts = Vec::new();
    for (t, (old, new)) in program.threads.iter().zip(&edited.threads).enumerate() {
        let own: Vec<&Edit> = edits.iter().filter(|e| e.thread() == t).collect();
        if !own.is_empty() {
            let body = Body { text, program: edited, old, new };
            cuts.extend(body.cuts(&own)?);
        }
    }
    let out = cut(text, cuts)?;
    let again = parse(&out, Format::Native).ok()?;
    (shape(&again) == shape(edited)).then_some(out)
}

/// The text with all these changes. None if two of them overlap.
pub(crate) fn cut(text: &str, mut cuts: Vec<Cut>) -> Option<String> {
    cuts.sort_by_key(|c| (c.from, c.until));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for cut in cuts {
        out.push_str(text.get(at..cut.from)?);
        out.push_str(&cut.text);
        at = cut.until;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// A program without what edits of a text renumber: the order of registers.
fn shape(program: &Program) -> String {
    let text = print(program);
    text.lines().filter(|l| !l.starts_with("  .reg ")).collect::<Vec<_>>().join("\n")
}

/// The offset of a line and a column, both counted from 1, the column in bytes.
pub(crate) fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let start = if line == 0 { 0 } else { text.match_indices('\n').nth(line - 1)?.0 + 1 };
    Some(start + usize::try_from(column).ok()?.checked_sub(1)?).filter(|at| text.is_char_boundary(*at))
}

/// The offset behind the `;` that ends the statement at `from`.
pub(crate) fn end(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b';' => return Some(at + 1),
            b'/' if bytes.get(at + 1) == Some(&b'/') => at += text[at..].find('\n')?,
            b'/' if bytes.get(at + 1) == Some(&b'*') => at += text[at..].find("*/")? + 2,
            b'}' | b'{' if bytes[from..at].iter().all(u8::is_ascii_whitespace) => return None,
            _ => at += 1,
        }
    }
    None
}

/// The start of the line of an offset, and the white space there.
pub(crate) fn line_start(text: &str, at: usize) -> (usize, &str) {
    let start = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let rest = &text[start..];
    let indent = &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()];
    (start, indent)
}

/// `text`, the PTX module from which `program` was lowered, with edits that each stand for one line of it; new instructions as
/// [`place`] says. None for edits that name registers or memory, because these have other names there.
pub fn ptx(text: &str, program: &Program, steps: &[Step], late: bool) -> Option<String> {
    let mut cuts = Vec::new();
    for step in steps {
        let first = step.first()?;
        let thread = program.threads.get(first.thread())?;
        match first {
            Edit::Insert { .. } => cuts.push(ptx_insert(text, program, step, late)?),
            Edit::Replace { at, op, .. } => {
                let old = thread.body.get(*at)?;
                cuts.push(ptx_replace(text, program, thread, (old, op))?);
            }
            Edit::Delete { at, .. } => {
                let (from, until) = statement(text, thread.body.get(*at)?.line)?;
                cuts.push(Cut { from, until, text: String::new() });
            }
        }
    }
    cut(text, cuts)
}

/// The same edits with each fence right behind what it acquires from, or right in front of what it releases to: in all launches, all accesses
/// that a kernel has behind the one or in front of the other are on the same side of it. None if no fence moves.
pub fn apart(program: &Program, steps: &[Step]) -> Option<Vec<Step>> {
    let one = |edit: &Edit| {
        let Edit::Insert { thread, at, what: Added::Plain(op @ Op::Fence { order, .. }) } = edit else {
            return edit.clone();
        };
        let meets = |i: &Instr| synchronises(&i.op);
        let body = &program.threads[*thread].body;
        let to = match order {
            FenceOrder::Acquire => body[..*at].iter().rposition(meets).map(|pc| pc + 1),
            FenceOrder::Release => body[*at..].iter().position(meets).map(|pc| at + pc),
            FenceOrder::AcqRel | FenceOrder::Sc => None,
        };
        Edit::Insert { thread: *thread, at: to.unwrap_or(*at), what: Added::Plain(op.clone()) }
    };
    let moved: Vec<Step> = steps.iter().map(|step| step.iter().map(one).collect()).collect();
    (moved != steps).then_some(moved)
}

/// The first statement of a line, its guard and its `;` included.
fn statement(text: &str, line: u32) -> Option<(usize, usize)> {
    let start = offset(text, line, 1)?;
    let from = start + text[start..].find(|c: char| !c.is_whitespace())?;
    Some((from, end(text, from)?))
}

/// The line behind which all edits of a step stand, or in front of which, and whether it is behind. Between the two lines of a launch the
/// module has others: where both are one line, `late` says which.
pub fn place(program: &Program, step: &Step, late: bool) -> Option<(u32, bool)> {
    let line = |edit: &Edit, at: Option<usize>| {
        at.and_then(|at| program.threads.get(edit.thread())?.body.get(at)).map_or(0, |i| i.line)
    };
    let one = |lines: BTreeSet<u32>| lines.first().copied().filter(|l| lines.len() == 1 && *l > 0);
    let behind = one(step.iter().map(|e| line(e, e.at().checked_sub(1))).collect()).map(|l| (l, true));
    let front = one(step.iter().map(|e| line(e, Some(e.at()))).collect()).map(|l| (l, false));
    if late { front.or(behind) } else { behind.or(front) }
}

/// Puts instructions at the place of the step.
fn ptx_insert(text: &str, program: &Program, step: &Step, late: bool) -> Option<Cut> {
    let mut ops = Vec::new();
    for edit in step {
        let Edit::Insert { thread, what: Added::Plain(op), .. } = edit else { return None };
        if !Parts::sources(op).iter().all(|o| matches!(o, Operand::Imm(_))) || !written(op).is_empty() {
            return None;
        }
        let words = instruction(program, program.threads.get(*thread)?, &Instr::new(op.clone())) + ";";
        if !ops.contains(&words) {
            ops.push(words);
        }
    }
    let (line, behind) = place(program, step, late)?;
    let (from, until) = statement(text, line)?;
    let (start, indent) = line_start(text, from);
    let code: Vec<String> = ops.iter().map(|op| format!("{indent}{op}")).collect();
    let code = code.join("\n");
    Some(match behind {
        true => Cut { from: until, until, text: format!("\n{code}") },
        false => Cut { from: start, until: start, text: format!("{code}\n") },
    })
}

/// Rewrites the words of an instruction that differ, and a number that differs.
fn ptx_replace(text: &str, program: &Program, thread: &Thread, (old, op): (&Instr, &Op)) -> Option<Cut> {
    let words = |op: &Op| instruction(program, thread, &Instr::new(op.clone()));
    let (before, after) = (words(&old.op), words(op));
    let (name_before, rest_before) = before.split_once(' ').unwrap_or((&before, ""));
    let (name_after, rest_after) = after.split_once(' ').unwrap_or((&after, ""));
    let (from, until) = statement(text, old.line)?;
    let mut out = text[from..until].to_owned();
    let parts = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
    let (p, q) = (parts(name_before), parts(name_after));
    if p.len() == q.len() {
        for (a, b) in p.iter().zip(&q).filter(|(a, b)| a != b) {
            out = only(&out, &format!(".{a}"), &format!(".{b}"))?;
        }
    } else {
        // A qualifier that is new or goes: it is named with the word in front of it.
        let same = p.iter().zip(&q).take_while(|(a, b)| a == b).count();
        let rest = p[same..].iter().rev().zip(q[same..].iter().rev()).take_while(|(a, b)| a == b).count();
        let from = same.checked_sub(1)?;
        let (a, b) = (p[from..p.len() - rest].join("."), q[from..q.len() - rest].join("."));
        out = only(&out, &a, &b)?;
    }
    if rest_before != rest_after {
        let number = |rest: &str| rest.rsplit([',', ' ']).next().map(str::to_owned);
        let (a, b) = (number(rest_before)?, number(rest_after)?);
        let at = out.rfind(&a)?;
        out.replace_range(at..at + a.len(), &b);
    }
    Some(Cut { from, until, text: out })
}

/// The text with `b` for `a`, which it has once.
fn only(text: &str, a: &str, b: &str) -> Option<String> {
    (text.matches(a).count() == 1).then(|| text.replacen(a, b, 1))
}

/// Registers that an instruction writes.
fn written(op: &Op) -> Vec<moire_program::ir::Reg> {
    let mut out = Vec::new();
    moire_program::registers::written(op, &mut |reg| out.push(reg));
    out
}

struct Body<'a> {
    text: &'a str,
    /// The edited program.
    program: &'a Program,
    old: &'a Thread,
    new: &'a Thread,
}

impl Body<'_> {
    fn cuts(&self, edits: &[&Edit]) -> Option<Vec<Cut>> {
        let mut out = Vec::new();
        let mut run: Vec<usize> = Vec::new();
        for (at, instr) in self.new.body.iter().enumerate() {
            if instr.line == 0 {
                run.push(at);
                continue;
            }
            let before = self.old.body.iter().find(|i| (i.line, i.column) == (instr.line, instr.column))?;
            if before.op != instr.op {
                let (from, until) = self.span(before)?;
                out.push(Cut { from, until, text: instruction(self.program, self.new, instr) + ";" });
            }
            if !run.is_empty() {
                out.push(self.insert(&run, Some(instr))?);
                run.clear();
            }
        }
        if !run.is_empty() {
            out.push(self.insert(&run, None)?);
        }
        for edit in edits {
            if let Edit::Delete { at, .. } = edit {
                out.push(self.gone(*at)?);
            }
        }
        Some(out)
    }

    /// The text of an instruction, its guard and its `;` included.
    fn span(&self, instr: &Instr) -> Option<(usize, usize)> {
        let from = offset(self.text, instr.line, instr.column)?;
        Some((from, end(self.text, from)?))
    }

    /// Takes an instruction out.
    fn gone(&self, at: usize) -> Option<Cut> {
        let (from, until) = self.span(self.old.body.get(at)?)?;
        Some(self.whole(from, until))
    }

    /// Takes bytes out, with their line if nothing else is on it.
    fn whole(&self, from: usize, until: usize) -> Cut {
        let (start, _) = line_start(self.text, from);
        let rest = &self.text[until..];
        let stop = rest.find('\n').map_or(self.text.len(), |n| until + n + 1);
        let alone = self.text[start..from].trim().is_empty() && self.text[until..stop].trim().is_empty();
        let (from, until) = if alone { (start, stop) } else { (from, until) };
        Cut { from, until, text: String::new() }
    }

    /// Where the label in front of an instruction stands.
    fn label(&self, name: &str, instr: &Instr) -> Option<(usize, usize)> {
        let until = offset(self.text, instr.line, instr.column)?;
        self.label_before(name, until)
    }

    fn label_before(&self, name: &str, until: usize) -> Option<(usize, usize)> {
        let before = &self.text[..until];
        let word = |at: usize| {
            let free = !before[..at].ends_with(|c: char| c.is_alphanumeric() || "_$%.".contains(c));
            let rest = before[at + name.len()..].trim_start();
            (free && rest.starts_with(':')).then(|| before.len() - rest.len() + 1)
        };
        before.rmatch_indices(name).find_map(|(at, _)| Some((at, word(at)?)))
    }

    /// Puts instructions in front of one that stays, or at the end of the thread.
    fn insert(&self, run: &[usize], next: Option<&Instr>) -> Option<Cut> {
        let first = *run.first()?;
        let here = |l: &&moire_program::ir::Label| self.old.labels.iter().any(|o| o.name == l.name);
        let label_at = |at: usize| self.new.labels.iter().filter(here).find(|l| l.at == at);
        let (at, block) = match next {
            Some(instr) => {
                let start = offset(self.text, instr.line, instr.column)?;
                // A label behind the new code stays behind it.
                let own = run.last().and_then(|last| label_at(last + 1));
                match own {
                    Some(label) => (self.label(&label.name, instr)?.0, true),
                    None => (start, true),
                }
            }
            None => {
                let last = self.new.body[..first].iter().rev().find(|i| i.line > 0)?;
                let (_, mut until) = self.span(last)?;
                let close = until + self.text[until..].find('}')?;
                if let Some(label) = label_at(first) {
                    until = self.label_before(&label.name, close)?.1;
                }
                (until, false)
            }
        };
        let (start, indent) = line_start(self.text, at);
        let alone = self.text[start..at].trim().is_empty();
        let code = if indent.is_empty() { "  " } else { indent };
        let mut lines = Vec::new();
        for pc in run {
            lines.extend(
                self.new.labels.iter().filter(|l| l.at == *pc && !here(l)).map(|l| format!("{}:", l.name)),
            );
            lines.push(format!("{code}{};", instruction(self.program, self.new, &self.new.body[*pc])));
        }
        let text = match (block, alone) {
            (true, true) => lines.join("\n") + "\n",
            (true, false) => lines.iter().map(|l| l.trim()).collect::<Vec<_>>().join(" ") + " ",
            (false, _) => format!("\n{}", lines.join("\n")),
        };
        let at = if block && alone { start } else { at };
        Some(Cut { from: at, until: at, text })
    }
}
