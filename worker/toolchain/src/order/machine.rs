//! Machine code of one kernel as a code of steps, for one thread that is alone in its warp: where the assembler has a warp
//! elect a lane, it is this one.
//!
//! Registers hold the lower halves of addresses; an upper half is a value of its own.

use super::paths::{Code, Flow};
use super::step::{Access, Act, Scope, Step};
use super::text::{Instr, number, truth};
use super::told;
use super::unread::Unread;
use super::value::{Base, State, Value};
use std::collections::BTreeMap;

/// Names of instructions that touch memory or wait begin so. Those that are in no table here are not read.
const FAMILIES: &[&str] = &[
    "LD",
    "ST",
    "AT",
    "RED",
    "SYNCS",
    "MEMBAR",
    "FENCE",
    "CCTL",
    "BAR",
    "UCGA",
    "UBLK",
    "UTM",
    "UTC",
    "UST",
    "ULD",
    "ARRIVES",
    "ACQ",
    "SU",
    "TEX",
    "TLD",
    "HGMMA",
    "QGMMA",
    "IGMMA",
    "BGMMA",
    "WARPGROUP",
    "CALL",
    "BRX",
    "JMP",
    "JMX",
    "RET",
    "UVIRT",
];
/// Of these families, those that do neither.
const NEITHER: &[&str] = &["ULDC", "LDC", "LDCU", "LDL", "STL", "REDUX", "LDTRAM", "BAR_"];

/// A kernel.
pub(super) struct Machine<'a> {
    instrs: Vec<Instr>,
    labels: BTreeMap<String, usize>,
    /// Names in the bank of constants that holds addresses, eight bytes each.
    slots: &'a [String],
    /// Names of parameters, by where they are in the bank of parameters.
    params: &'a BTreeMap<i64, String>,
}

impl<'a> Machine<'a> {
    pub(super) fn read(lines: &[String], slots: &'a [String], params: &'a BTreeMap<i64, String>) -> Self {
        let mut out = Machine { instrs: Vec::new(), labels: BTreeMap::new(), slots, params };
        for line in lines {
            match line.strip_suffix(':') {
                Some(label) => {
                    out.labels.insert(label.to_owned(), out.instrs.len());
                }
                None => out.instrs.push(Instr::read(line)),
            }
        }
        out
    }

    fn label(&self, instr: &Instr) -> Result<usize, Unread> {
        let name = instr.operands.iter().find_map(|o| o.strip_prefix("`(")?.strip_suffix(')'));
        name.and_then(|name| self.labels.get(name)).copied().ok_or_else(|| Unread::of(instr))
    }

    /// The condition of a branch: its guard, and the truth value among its operands.
    fn taken(&self, instr: &Instr, state: &mut State) -> Option<Value> {
        let word = instr.operands.first().filter(|o| is_truth(o.trim_start_matches('!')))?;
        (instr.words[0] == "BRA").then(|| truth(word, state))
    }

    fn value(&self, text: &str, state: &mut State) -> Value {
        let plain = text.split(['.', '_']).next().unwrap_or_default();
        if let Some(number) = number(text) {
            return Value::number(number);
        }
        if let Some(bank) = text.strip_prefix("c[") {
            return self.constant(bank);
        }
        match plain {
            "RZ" | "URZ" | "SRZ" => Value::number(0),
            _ if is_truth(text.trim_start_matches('!')) => truth(text, state),
            _ if is_register(plain) => state.get(plain),
            _ if text.starts_with("SR_") => Value::of(text, &[]),
            _ => match text.trim_start_matches(['-', '|', '~', '!']).split(['.', '|']).next() {
                Some(inner) if is_register(inner) => {
                    let value = state.get(inner);
                    Value::of(&text[..1], &[value])
                }
                _ => Value::of(text, &[]),
            },
        }
    }

    /// `0x4][0x8]`
    fn constant(&self, text: &str) -> Value {
        let Some((bank, at)) = text.trim_end_matches(']').split_once("][") else {
            return Value::of(text, &[]);
        };
        let at = if matches!(at, "RZ" | "URZ") { Some(0) } else { number(at) };
        // The launch has clusters.
        if bank == "0x0" && matches!(at, Some(0x140 | 0x36c)) {
            return Value::number(1);
        }
        let name = match (bank, at) {
            ("0x4", Some(at)) if at % 8 == 0 => usize::try_from(at / 8).ok().and_then(|n| self.slots.get(n)),
            ("0x0", Some(at)) => self.params.get(&at),
            _ => None,
        };
        name.map_or_else(|| Value::of(text, &[]), |name| Value::name(name))
    }

    /// The address in `desc[UR4][R2.64+UR6+0x10]` or `[R2]`.
    fn address(&self, operand: &str, state: &mut State) -> Value {
        let inside = operand.rsplit_once('[').map_or(operand, |(_, inside)| inside).trim_end_matches(']');
        let terms = inside.replace("+-", "+ -");
        let parts: Vec<Value> = terms.split('+').map(|t| self.value(t.trim(), state)).collect();
        let scaled = inside.contains(".X");
        let sum = parts.into_iter().reduce(Value::plus).unwrap_or(Value::number(0));
        if scaled { Value::of(inside, &[sum]) } else { sum }
    }

    fn compute(&self, instr: &Instr, state: &mut State) {
        let dests = dests(instr);
        let from: Vec<Value> = instr.operands[dests..].iter().map(|o| self.value(o, state)).collect();
        let value = self.result(instr, &from, state);
        for (n, name) in instr.operands[..dests].iter().enumerate() {
            let one = match n {
                0 => value,
                _ if is_truth(name) && is_truth(instr.operand(0)) => value.not(),
                _ => value.part(n),
            };
            give(name, one, more(instr), state);
        }
    }

    fn result(&self, instr: &Instr, from: &[Value], state: &mut State) -> Value {
        let one = |n: usize| from.get(n).copied().unwrap_or(Value::number(0));
        let zero = |n: usize| one(n) == Value::number(0);
        let lane = Value::of("SR_LANEID", &[]);
        match instr.words[0].as_str() {
            "MOV" | "UMOV" | "R2UR" | "S2R" | "S2UR" | "CS2R" | "LDC" | "ULDC" | "LDCU" => one(0),
            "IMAD" if instr.has("MOV") || instr.words.len() == 1 && zero(0) => one(2),
            "IADD3" | "UIADD3" if !instr.has("X") => one(0).plus(one(1)).plus(one(2)),
            "IADD" | "UIADD" | "VIADD" if !instr.has("X") => one(0).plus(one(1)),
            "LEA" | "ULEA"
                if from.first() == Some(&Value::of("SR_CgaCtaId", &[])) && one(2) == Value::number(0x18) =>
            {
                one(1)
                    .is_number()
                    .map_or_else(|| Value::of(&instr.name(), from), |add| Value { base: Base::Window, add })
            }
            "VOTE" | "VOTEU" if instr.has("ANY") && one(0) == Value::number(1) => Value::of("here", &[]),
            "FLO" | "UFLO" if one(0) == Value::of("here", &[]) => lane,
            "POPC" | "UPOPC" if one(0) == Value::of("here", &[]) => Value::number(1),
            "ELECT" => Value::number(1),
            "PLOP3" | "UPLOP3" => looked_up(from).unwrap_or_else(|| Value::of(&instr.name(), from)),
            "ISETP" | "UISETP" if !instr.has("EX") && one(2) == Value::number(1) && instr.has("AND") => {
                compared(instr, one(0), one(1), state)
            }
            _ => Value::of(&instr.name(), from),
        }
    }

    /// Values of their own for the results of an instruction, which stand before its address.
    fn results(&self, instr: &Instr, state: &mut State) {
        let at = instr.operands.iter().position(|o| o.contains('[')).unwrap_or(0);
        for name in &instr.operands[..at] {
            let fresh = state.fresh();
            give(name, fresh, more(instr), state);
        }
    }

    fn memory(&self, instr: &Instr, what: (bool, bool, Option<bool>), state: &mut State) -> Step {
        let at = instr.operands.iter().position(|o| o.contains('[')).unwrap_or(0);
        let place = self.address(instr.operand(at), state).place();
        self.results(instr, state);
        let (reads, writes, shared) = what;
        let strong = instr.has("STRONG") || instr.has("MMIO");
        let scope = scope(instr).filter(|_| strong);
        let access = Access {
            reads,
            writes,
            shared,
            place,
            bytes: bytes(instr),
            scope,
            mmio: instr.has("MMIO"),
            counted: false,
        };
        Step { may_fail: instr.has("CAS") || instr.has("CAST"), ..Step::new(Act::Access(access)) }
    }
}

/// What an access does, and where.
fn access(word: &str) -> Option<(bool, bool, Option<bool>)> {
    Some(match word {
        "LD" => (true, false, None),
        "LDG" | "LDGMC" => (true, false, Some(false)),
        "LDS" => (true, false, Some(true)),
        "ST" => (false, true, None),
        "STG" => (false, true, Some(false)),
        "STS" => (false, true, Some(true)),
        "ATOM" | "RED" => (true, true, None),
        "ATOMG" | "REDG" => (true, true, Some(false)),
        "ATOMS" | "REDS" => (true, true, Some(true)),
        _ => return None,
    })
}

fn is_register(text: &str) -> bool {
    let digits = text.strip_prefix("UR").or_else(|| text.strip_prefix('R'));
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

fn is_truth(text: &str) -> bool {
    let digits = text.strip_prefix("UP").or_else(|| text.strip_prefix('P'));
    digits.is_some_and(|d| d == "T" || !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

/// The truth value in a table of three.
fn looked_up(from: &[Value]) -> Option<Value> {
    let bit = |n: usize| from.get(n)?.is_number().map(|n| i64::from(n != 0));
    let at = bit(0)? * 4 + bit(1)? * 2 + bit(2)?;
    Some(Value::number(from.get(3)?.is_number()? >> at & 1))
}

/// How many of the first operands are results: one, and the truth values behind it.
fn dests(instr: &Instr) -> usize {
    let more = instr.operands.iter().skip(1).take_while(|o| is_truth(o)).count();
    let most = instr.operands.len();
    let dests = match instr.words[0].as_str() {
        "SEL" | "USEL" | "FSEL" => 1,
        "SHFL" => 2,
        "VOTE" | "VOTEU" => 1 + usize::from(!is_truth(instr.operand(0))),
        _ if is_truth(instr.operand(0)) => 1 + more.min(1),
        _ => 1 + more.min(2),
    };
    dests.min(most)
}

/// How many registers behind the first hold the rest of a result.
fn more(instr: &Instr) -> u16 {
    let word = instr.words[0].as_str();
    let has = |words: &[&str]| words.iter().any(|w| instr.has(w));
    let times = |w: &String| w.strip_prefix('x')?.parse::<u16>().ok();
    match () {
        () if word == "LDTM" => instr.words.iter().find_map(times).unwrap_or(1).saturating_sub(1),
        () if has(&["128", "256"]) => 3,
        () if has(&["64", "S64", "U64", "F64", "WIDE", "TRANS64"])
            || word == "CS2R"
            || word.starts_with('D') =>
        {
            1
        }
        () => 0,
    }
}

/// Writes a register, and those behind it.
fn give(name: &str, value: Value, more: u16, state: &mut State) {
    let plain = name.split('.').next().unwrap_or_default();
    state.set(plain, value);
    let (letters, digits) = plain.split_at(plain.find(|c: char| c.is_ascii_digit()).unwrap_or(plain.len()));
    let Some(first) = digits.parse::<u16>().ok().filter(|_| is_register(plain)) else { return };
    for n in 1..=more {
        let zero = value == Value::number(0);
        let upper = if zero { value } else { Value::of("upper", &[value, Value::number(n.into())]) };
        state.set(&format!("{letters}{}", first.saturating_add(n)), upper);
    }
}

fn compared(instr: &Instr, a: Value, b: Value, state: &mut State) -> Value {
    match () {
        () if instr.has("EQ") => state.equal(a, b),
        () if instr.has("NE") => state.equal(a, b).not(),
        () => Value::of(&instr.name(), &[a, b]),
    }
}

fn scope(instr: &Instr) -> Option<Scope> {
    instr.words.iter().find_map(|word| match word.as_str() {
        "SM" | "CTA" => Some(Scope::Cta),
        "GPU" => Some(Scope::Gpu),
        "SYS" => Some(Scope::Sys),
        _ => None,
    })
}

fn bytes(instr: &Instr) -> u32 {
    let width = |word: &String| match word.as_str() {
        "U8" | "S8" => Some(1),
        "U16" | "S16" => Some(2),
        "64" | "S64" | "U64" | "F64" => Some(8),
        "128" => Some(16),
        "256" => Some(32),
        _ => None,
    };
    instr.words.iter().filter_map(width).max().unwrap_or(4)
}

impl Code for Machine<'_> {
    fn len(&self) -> usize {
        self.instrs.len()
    }

    fn guard(&self, at: usize, state: &mut State) -> Option<Value> {
        let instr = &self.instrs[at];
        instr.holds(state).or_else(|| self.taken(instr, state))
    }

    fn go(&self, at: usize, state: &mut State, steps: &mut Vec<Step>) -> Result<Flow, Unread> {
        let instr = &self.instrs[at];
        let word = instr.words[0].as_str();
        if let Some(what) = access(word) {
            steps.push(self.memory(instr, what, state));
            return Ok(Flow::Next);
        }
        if let Some(name) = told::named(instr) {
            steps.push(Step::new(Act::Named(name)));
            self.results(instr, state);
            return Ok(Flow::Next);
        }
        match word {
            "EXIT" => return Ok(Flow::End),
            "BRA" if instr.has("DIV") || instr.has("CONV") => {}
            "BRA" => return Ok(Flow::To(self.label(instr)?)),
            "MEMBAR" => {
                let scope = scope(instr).ok_or_else(|| Unread::of(instr))?;
                steps.push(Step::new(Act::Fence { scope, sc: instr.has("SC") }));
            }
            "UBLKPF" | "UTMAPF" => {}
            "CCTL" if instr.words.iter().any(|w| w.starts_with("PF")) => {}
            "CCTL" if instr.has("IVALL") => steps.push(Step::new(Act::Invalidate)),
            _ if FAMILIES.iter().any(|f| word.starts_with(f)) && !NEITHER.contains(&word) => {
                return Err(Unread::of(instr));
            }
            _ => self.compute(instr, state),
        }
        Ok(Flow::Next)
    }
}
