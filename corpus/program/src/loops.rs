//! Loops of litmus texts, `repeat N { .. }`: where they are, and programs with so many copies of their bodies.

use crate::Refusal;
use crate::ir::{Control, Instr, Label, Op, Program, Thread, Trips};
use crate::limits::INSTRUCTIONS;
use std::collections::BTreeMap;

/// Deepest nesting.
const DEPTH: usize = 8;

/// One loop of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// How often.
    pub trips: Trips,
    /// Position of the `repeat`.
    pub start: usize,
    /// Position of the closing brace.
    pub end: usize,
    /// Position, in the list, of the loop around it.
    pub inside: Option<usize>,
}

impl Loop {
    fn holds(&self, pc: usize) -> bool {
        self.start < pc && pc <= self.end
    }
}

/// Whether a program has loops.
pub fn has_loops(program: &Program) -> bool {
    let mut all = program.threads.iter().flat_map(|t| &t.body);
    all.any(|i| matches!(i.op, Op::Control(Control::Repeat(_) | Control::EndRepeat)))
}

/// The names of free numbers, with the least value of each, in the order of the text.
pub fn free(program: &Program) -> Vec<(String, u32)> {
    let mut out: Vec<(String, u32)> = Vec::new();
    for instr in program.threads.iter().flat_map(|t| &t.body) {
        let Op::Control(Control::Repeat(Trips::Free { name, least, .. })) = &instr.op else { continue };
        match out.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = (*known).max(*least),
            None => out.push((name.clone(), *least)),
        }
    }
    out
}

/// The name of a free number.
fn name(trips: &Trips) -> Option<&str> {
    match trips {
        Trips::Free { name, .. } => Some(name),
        Trips::Number(_) => None,
    }
}

/// The loops of a thread in the order of their starts.
///
/// # Errors
/// A brace without its other half, or a branch that leaves or enters a loop.
pub fn loops(thread: &Thread) -> Result<Vec<Loop>, Refusal> {
    let refuse = |what: &str, instr: &Instr| Refusal::Abstained { what: what.to_owned(), line: instr.line };
    let (mut out, mut open): (Vec<Loop>, Vec<usize>) = (Vec::new(), Vec::new());
    for (pc, instr) in thread.body.iter().enumerate() {
        let closes = instr.op == Op::Control(Control::EndRepeat);
        let opens = if let Op::Control(Control::Repeat(trips)) = &instr.op { Some(trips) } else { None };
        if instr.guard.is_some() && (closes || opens.is_some()) {
            return Err(refuse("a loop with a guard", instr));
        }
        if let Some(trips) = opens {
            let itself = name(trips).is_some() && open.iter().any(|l| name(&out[*l].trips) == name(trips));
            if open.len() == DEPTH || itself {
                return Err(refuse("a loop in itself, or loops nested too deeply", instr));
            }
            open.push(out.len());
            let inside = open.iter().rev().nth(1).copied();
            out.push(Loop { trips: trips.clone(), start: pc, end: pc, inside });
        }
        if closes {
            let last = open.pop().ok_or_else(|| refuse("the end of no loop", instr))?;
            out[last].end = pc;
        }
    }
    if let Some(left) = open.last() {
        return Err(refuse("a loop without an end", &thread.body[out[*left].start]));
    }
    for (pc, instr) in thread.body.iter().enumerate() {
        let crosses = |target: usize| out.iter().any(|l| l.holds(pc) != l.holds(target));
        if matches!(instr.op, Op::Bra { target } if crosses(target)) {
            return Err(refuse("a branch into a loop or out of it", instr));
        }
    }
    Ok(out)
}

/// The program with each loop replaced by copies of its body. `trips` has, by name, the number of each execution of a loop
/// with that name by one thread; the last number stands for all later ones, and without any the least is taken.
///
/// # Errors
/// Loops that are not well formed, or a thread that gets too long.
pub fn unroll(program: &Program, trips: &BTreeMap<String, Vec<u32>>) -> Result<Program, Refusal> {
    let least: BTreeMap<String, u32> = free(program).into_iter().collect();
    let mut out = program.clone();
    for thread in &mut out.threads {
        let loops = loops(thread)?;
        if loops.is_empty() {
            continue;
        }
        let mut unrolling = Unrolling {
            thread,
            loops: &loops,
            trips,
            least: &least,
            entered: BTreeMap::new(),
            body: Vec::new(),
            jumps: Vec::new(),
        };
        let end = unrolling.thread.body.len();
        unrolling.copy(0..end)?;
        let (body, mut targets) = (unrolling.body, BTreeMap::new());
        let jumps = unrolling.jumps;
        thread.body = body;
        for (at, to) in jumps {
            thread.body[at].op = Op::Bra { target: to };
            targets.insert(to, format!("U{to}"));
        }
        thread.labels = targets.into_iter().map(|(at, name)| Label { name, at }).collect();
    }
    Ok(out)
}

struct Unrolling<'a> {
    thread: &'a Thread,
    loops: &'a [Loop],
    trips: &'a BTreeMap<String, Vec<u32>>,
    least: &'a BTreeMap<String, u32>,
    /// By name: how often such a loop was entered.
    entered: BTreeMap<String, usize>,
    body: Vec<Instr>,
    /// Branches of the result and their targets.
    jumps: Vec<(usize, usize)>,
}

impl Unrolling<'_> {
    fn number(&mut self, trips: &Trips) -> u32 {
        match trips {
            Trips::Number(number) => *number,
            Trips::Free { name, less, .. } => {
                let nth = self.entered.entry(name.clone()).or_insert(0);
                let given = self.trips.get(name).and_then(|all| all.get(*nth).or(all.last()));
                *nth += 1;
                let least = self.least.get(name).copied().unwrap_or(0);
                given.copied().unwrap_or(least).saturating_sub(*less)
            }
        }
    }

    /// Appends the instructions of a range that starts and ends at the same depth.
    fn copy(&mut self, range: std::ops::Range<usize>) -> Result<(), Refusal> {
        let (mut places, mut branches) = (BTreeMap::new(), Vec::new());
        let mut pc = range.start;
        while pc < range.end {
            places.insert(pc, self.body.len());
            if let Some(is) = self.loops.iter().find(|l| l.start == pc) {
                for _ in 0..self.number(&is.trips) {
                    self.copy(is.start + 1..is.end)?;
                }
                pc = is.end + 1;
                continue;
            }
            let instr = &self.thread.body[pc];
            if let Op::Bra { target } = instr.op {
                branches.push((self.body.len(), target));
            }
            self.body.push(instr.clone());
            if self.body.len() > INSTRUCTIONS {
                return Err(Refusal::Bounded(format!("a thread of more than {INSTRUCTIONS} instructions")));
            }
            pc += 1;
        }
        places.insert(range.end, self.body.len());
        self.jumps.extend(branches.into_iter().filter_map(|(at, to)| Some((at, *places.get(&to)?))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, parse, print};

    const RING: &str = "moire \"ring\"\n.shared .b64 b;\nP0 (gpu 0, cta 0) {\n  .reg i, p;\n  repeat N >= 1 {\n\
        L:\n    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [b], i;\n    @!p bra L;\n    repeat 2 { xor.b32 i, i, 1; }\n  }\n}\n";

    fn ring() -> Program {
        parse(RING, Format::Native).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn loops_print_and_read_back() {
        let program = ring();
        let again = parse(&print(&program), Format::Native).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(program, again);
        let loops = loops(&program.threads[0]).unwrap_or_else(|e| panic!("{e}"));
        let places: Vec<_> = loops.iter().map(|l| (l.start, l.end, l.inside)).collect();
        assert_eq!(places, [(0, 6, None), (3, 5, Some(0))]);
        assert_eq!(free(&program), [("N".to_owned(), 1)]);
    }

    #[test]
    fn unrolled_programs_have_copies_with_their_own_branches() {
        let program = ring();
        let three =
            unroll(&program, &BTreeMap::from([("N".to_owned(), vec![3])])).unwrap_or_else(|e| panic!("{e}"));
        let body = &three.threads[0].body;
        assert_eq!(body.len(), 12);
        let targets: Vec<usize> = body
            .iter()
            .filter_map(|i| if let Op::Bra { target } = i.op { Some(target) } else { None })
            .collect();
        assert_eq!(targets, [0, 4, 8]);
        assert!(!has_loops(&three));
        // Without a number the least one is taken.
        let least = unroll(&program, &BTreeMap::new()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(least.threads[0].body.len(), 4);
        let again = parse(&print(&three), Format::Native).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(again, three);
    }

    #[test]
    fn a_loop_of_fewer_rounds_raises_the_least_number() {
        let text = "moire \"x\"\nP0 (gpu 0, cta 0) { repeat N { exit; } }\nP1 (gpu 0, cta 1) { repeat N-2 >= 1 { exit; } }\n";
        let program = parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}"));
        assert!(print(&program).contains("repeat N - 2 >= 1 {"), "{}", print(&program));
        assert_eq!(parse(&print(&program), Format::Native).as_ref(), Ok(&program));
        assert_eq!(free(&program), [("N".to_owned(), 3)]);
        let copies = |n| {
            let out = unroll(&program, &BTreeMap::from([("N".to_owned(), vec![n])]));
            out.unwrap_or_else(|e| panic!("{e}")).threads.iter().map(|t| t.body.len()).collect::<Vec<_>>()
        };
        assert_eq!((copies(3), copies(5)), (vec![3, 1], vec![5, 3]));
    }

    #[test]
    fn loops_that_are_not_well_formed_are_refused() {
        for text in
            ["bra L; repeat N { L: exit; }", "repeat N { bra L; } L: exit;", "repeat N { repeat N - 1 { } }"]
        {
            let text = format!("moire \"x\"\nP0 (gpu 0, cta 0) {{ {text} }}\n");
            let program = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert!(loops(&program.threads[0]).is_err(), "{text}");
        }
        let text = "moire \"x\"\nP0 (gpu 0, cta 0) { repeat N { exit; }\n";
        assert!(parse(text, Format::Native).is_err());
        let text = "moire \"x\"\nP0 (gpu 0, cta 0) { repeat 99999999999 { } }\n";
        assert!(parse(text, Format::Native).is_err());
    }
}
