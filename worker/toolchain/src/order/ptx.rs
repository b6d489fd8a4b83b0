//! PTX of one kernel as a code of steps: what it asks of the machine.
//!
//! An acquire is an invalidation of the cache behind the access, a release is a fence in front of it. At the scope of a
//! CTA there is nothing to invalidate: its threads share one cache.

use super::paths::{Code, Flow};
use super::step::{Access, Act, Scope, Step};
use super::text::{Instr, number};
use super::told;
use super::unread::Unread;
use super::value::{Base, State, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Operations on registers alone.
const PURE: &[&str] = &[
    "mov",
    "add",
    "sub",
    "mul",
    "mad",
    "fma",
    "div",
    "rem",
    "and",
    "or",
    "xor",
    "not",
    "shl",
    "shr",
    "cvt",
    "cvta",
    "setp",
    "selp",
    "set",
    "min",
    "max",
    "neg",
    "abs",
    "popc",
    "clz",
    "brev",
    "bfe",
    "bfi",
    "prmt",
    "lop3",
    "shf",
    "slct",
    "mapa",
    "isspacep",
    "cnot",
    "sad",
    "bfind",
    "mul24",
    "mad24",
    "addc",
    "subc",
    "szext",
    "bmsk",
    "dp4a",
    "getctarank",
];

/// A kernel.
pub(super) struct Ptx<'a> {
    instrs: Vec<Instr>,
    labels: BTreeMap<String, usize>,
    registers: BTreeSet<String>,
    /// Names of shared memory of the CTA.
    shared: &'a [String],
}

impl<'a> Ptx<'a> {
    /// The kernel whose body this text holds: what is between its outer braces.
    pub(super) fn read(body: &str, shared: &'a [String]) -> Self {
        let mut out = Ptx { instrs: Vec::new(), labels: BTreeMap::new(), registers: BTreeSet::new(), shared };
        let plain: Vec<&str> = body.lines().map(|l| l.split("//").next().unwrap_or_default()).collect();
        for statement in plain.join("\n").split(';') {
            out.statement(statement);
        }
        out
    }

    fn statement(&mut self, text: &str) {
        let mut rest =
            text.trim_start_matches(|c: char| c.is_whitespace() || c == '{' || c == '}').trim_end();
        while let Some((label, behind)) = rest.split_once(':').filter(|(label, behind)| {
            !behind.starts_with(':') && !label.contains(|c: char| c.is_whitespace() || ".,[".contains(c))
                || label.starts_with("$L")
        }) {
            self.labels.insert(label.trim().to_owned(), self.instrs.len());
            rest = behind.trim_start_matches(|c: char| c.is_whitespace() || c == '{' || c == '}');
        }
        match rest.strip_prefix(".reg") {
            Some(names) => {
                let names = names.trim_start().split_once(char::is_whitespace).map_or("", |(_, names)| names);
                self.registers.extend(names.split(',').map(|name| name.trim().to_owned()));
            }
            None if rest.is_empty() || rest.starts_with('.') => {}
            None => {
                let line = rest.split_whitespace().collect::<Vec<_>>().join(" ");
                self.instrs.push(Instr::read(&line));
            }
        }
    }

    /// The instruction, as a class of instructions: its first word, the memory, the width. Shared memory has one instruction of the
    /// machine for `atom` and `red`.
    pub(super) fn class(&self, at: usize) -> String {
        let Some(instr) = self.instrs.get(at) else { return String::new() };
        let named = |name: &String| {
            instr.operands.iter().any(|o| o.trim_matches(['[', ']']).split('+').next() == Some(name))
        };
        let space = match space(instr) {
            Some(false) => Some("global".to_owned()),
            Some(true) if instr.has("shared::cluster") => Some("shared::cluster".to_owned()),
            Some(true) => Some("shared".to_owned()),
            None => self.shared.iter().any(named).then(|| "shared".to_owned()),
        };
        let access = ["ld", "st", "atom", "red"].contains(&instr.words[0].as_str());
        let bits = access.then(|| (bytes(instr) * 8).to_string());
        let word = match &space {
            Some(space) if instr.is("red") && space == "shared" => "atom".to_owned(),
            _ => instr.words[0].clone(),
        };
        let words = [Some(word), space, bits];
        words.into_iter().flatten().collect::<Vec<_>>().join(".")
    }

    fn is_register(&self, name: &str) -> bool {
        name.starts_with('%') || self.registers.contains(name)
    }

    /// The value of an operand, or of the inside of an address.
    fn value(&self, text: &str, state: &mut State) -> Value {
        if let Some(number) = number(text) {
            return Value::number(number);
        }
        if text.starts_with(['{', '[', '(']) {
            let inside = text.trim_matches(|c| "{}[]()".contains(c));
            let parts: Vec<Value> = inside.split(',').map(|part| self.value(part.trim(), state)).collect();
            return Value::of("vector", &parts);
        }
        match text.rsplit_once('+') {
            Some((base, offset)) => self.value(base.trim(), state).plus(self.value(offset.trim(), state)),
            None if self.is_register(text) => state.get(text),
            None => Value::name(text),
        }
    }

    /// The value in a register that holds an address, in `[base+offset]`.
    fn address(&self, text: &str, state: &mut State) -> Value {
        let inside = text.trim_start_matches('[').trim_end_matches(']');
        self.value(inside.trim(), state)
    }

    /// An operation on registers.
    fn compute(&self, instr: &Instr, state: &mut State) {
        let from: Vec<Value> = instr.operands.iter().skip(1).map(|o| self.value(o, state)).collect();
        let integer = !instr.words.iter().any(|w| w.starts_with('f') || w.starts_with("bf"));
        let one = |n: usize| from.get(n).copied().unwrap_or(Value::number(0));
        let value = match instr.words[0].as_str() {
            "mov" | "cvta" if !instr.operand(1).starts_with('{') => one(0),
            "add" if integer => one(0).plus(one(1)),
            "sub" if integer && one(1).base == Base::Number => one(0).plus(Value::number(-one(1).add)),
            "xor" if one(0) == one(1) => Value::number(0),
            "not" if instr.has("pred") => one(0).not(),
            "setp" if instr.words.len() == 3 && integer => compared(&instr.words[1], one(0), one(1), state),
            _ => Value::of(&instr.name(), &from),
        };
        self.give(instr.operand(0), value, state);
    }

    /// Writes a register, or several of one result.
    fn give(&self, to: &str, value: Value, state: &mut State) {
        let names: Vec<&str> = to.trim_matches(['{', '}']).split([',', '|']).map(str::trim).collect();
        for (n, name) in names.iter().enumerate() {
            state.set(name, value.part(n));
        }
    }

    /// An instruction of [`told`]. Two loads of one place in tensor memory may be one, which is not read.
    fn told(&self, instr: &Instr, mut steps: Vec<Step>, state: &mut State) -> Result<Vec<Step>, Unread> {
        let from: Vec<Value> = instr.operands.iter().skip(1).map(|o| self.value(o, state)).collect();
        if instr.is("tcgen05.ld") && state.is_again(Value::of("tensor", &from)) {
            return Err(Unread::Instruction("tcgen05.ld of one place twice".to_owned()));
        }
        let result = instr.operands.first().filter(|o| !o.starts_with('['));
        let fresh = state.fresh();
        result.into_iter().for_each(|to| self.give(to, fresh, state));
        let waits = |step: &Step| matches!(step.act, Act::Invalidate | Act::Named("LDTM" | "SYNCS.PHASECHK"));
        steps.iter_mut().filter(|s| waits(s)).for_each(|step| step.value = Some(fresh));
        Ok(steps)
    }

    /// A load, a store, an atomic or a reduction.
    fn memory(&self, instr: &Instr, state: &mut State) -> Result<Vec<Step>, Unread> {
        let multi = usize::from(instr.is("multimem"));
        let (reads, writes, at) = match instr.words[multi].as_str() {
            "ld" | "ld_reduce" => (true, false, 1),
            "st" => (false, true, 0),
            "atom" => (true, true, 1),
            _ => (true, true, 0),
        };
        if ["nc", "const"].iter().any(|word| instr.has(word)) {
            return Err(Unread::of(instr));
        }
        let value = self.address(instr.operand(at), state);
        instr.operands.iter().skip(at + 1).for_each(|operand| {
            self.value(operand, state);
        });
        let access = Access {
            reads,
            writes,
            shared: space(instr)
                .or_else(|| self.shared.iter().any(|n| value.base == Value::name(n).base).then_some(true)),
            place: value.place(),
            bytes: bytes(instr),
            scope: strength(instr),
            mmio: instr.has("mmio"),
            counted: instr.has("mmio") || instr.has("volatile"),
        };
        let mut step = Step::new(Act::Access(access));
        if at == 1 {
            let fresh = state.fresh();
            self.give(instr.operand(0), fresh, state);
            step.value = Some(fresh);
        }
        Ok(ordered(instr, step, access.scope.unwrap_or(Scope::Gpu)))
    }
}

/// An access with what its order asks for around it. Only threads of the CTA find its own shared memory: a fence of their
/// scope is enough there, and there is nothing to invalidate.
fn ordered(instr: &Instr, access: Step, scope: Scope) -> Vec<Step> {
    let own = access.access().is_some_and(|a| a.shared == Some(true)) && !instr.has("shared::cluster");
    let scope = if own { Scope::Cta } else { scope };
    let mut out = vec![access];
    if instr.has("release") || instr.has("acq_rel") {
        out[0].before = true;
        out.insert(0, Step::new(Act::Fence { scope, sc: false }).before());
    }
    if instr.has("acquire") || instr.has("acq_rel") {
        out.iter_mut().last().into_iter().for_each(|step| step.after = true);
        out.extend((scope > Scope::Cta).then(|| Step::new(Act::Invalidate).after()));
    }
    out
}

/// Equality of two values; others are conditions of their own.
fn compared(word: &str, a: Value, b: Value, state: &mut State) -> Value {
    match word {
        "eq" => state.equal(a, b),
        "ne" => state.equal(a, b).not(),
        _ => Value::of(word, &[a, b]),
    }
}

fn space(instr: &Instr) -> Option<bool> {
    let shared = instr.words.iter().any(|w| w.starts_with("shared"));
    (shared || instr.has("global")).then_some(shared)
}

fn scope(instr: &Instr) -> Option<Scope> {
    let word = |w: &String| match w.as_str() {
        "cta" => Some(Scope::Cta),
        "cluster" | "gpu" | "gl" => Some(Scope::Gpu),
        "sys" => Some(Scope::Sys),
        _ => None,
    };
    instr.words.iter().find_map(word)
}

/// The scope of a strong access. A volatile one has that of the system; an atomic without words that of the device.
fn strength(instr: &Instr) -> Option<Scope> {
    let strong = ["relaxed", "acquire", "release", "acq_rel"].iter().any(|w| instr.has(w));
    let atomic = instr.is("atom") || instr.is("red") || instr.is("multimem.red");
    match () {
        () if instr.has("volatile") || instr.has("mmio") => Some(Scope::Sys),
        () if strong || atomic => Some(scope(instr).unwrap_or(Scope::Gpu)),
        () => None,
    }
}

fn bytes(instr: &Instr) -> u32 {
    let elements = instr.words.iter().find_map(|w| w.strip_prefix('v')?.parse().ok()).unwrap_or(1);
    let bits = |w: &String| {
        let digits = w.trim_start_matches("bf").trim_start_matches(['b', 'u', 's', 'f']);
        (digits.len() < w.len()).then(|| digits.trim_end_matches("x2").parse::<u32>().ok()).flatten()
    };
    let packed = if instr.words.iter().any(|w| w.ends_with("16x2")) { 2 } else { 1 };
    instr.words.iter().rev().find_map(bits).map_or(0, |bits| bits / 8 * elements * packed)
}

/// A fence of the generic proxy.
fn fence(instr: &Instr) -> Result<Vec<Step>, Unread> {
    if instr
        .words
        .iter()
        .any(|w| ["proxy", "mbarrier_init"].contains(&w.as_str()) || w.starts_with("sync_restrict"))
    {
        return Err(Unread::of(instr));
    }
    let scope = scope(instr).unwrap_or(Scope::Sys);
    let sc = instr.has("sc") || instr.is("membar");
    let invalidate = || (scope > Scope::Cta).then(|| Step::new(Act::Invalidate).before().after());
    let order = Step::new(if instr.has("acquire") { Act::Order } else { Act::Fence { scope, sc } });
    let behind = if instr.has("release") { None } else { invalidate() };
    Ok([order.before().after()].into_iter().chain(behind).collect())
}

/// A barrier of the CTA or of a cluster.
fn barrier(instr: &Instr) -> Vec<Step> {
    let whole = |name| vec![Step::new(Act::Named(name)).before().after()];
    match () {
        () if instr.has("warp") => vec![Step::new(Act::Order).before().after()],
        () if instr.has("cluster") && instr.has("arrive") => {
            let fence = Step::new(Act::Fence { scope: Scope::Gpu, sc: false }).before();
            let arrive = Step::new(Act::Named("UCGABAR_ARV"));
            if instr.has("relaxed") { vec![arrive] } else { vec![fence, arrive.before()] }
        }
        () if instr.has("cluster") => {
            vec![Step::new(Act::Named("UCGABAR_WAIT")).after(), Step::new(Act::Invalidate).after()]
        }
        () if instr.has("arrive") => vec![Step::new(Act::Named("BAR.ARV")).before()],
        () if instr.has("red") => whole("BAR.RED"),
        () => whole("BAR.SYNC"),
    }
}

impl Code for Ptx<'_> {
    fn len(&self) -> usize {
        self.instrs.len()
    }

    fn guard(&self, at: usize, state: &mut State) -> Option<Value> {
        self.instrs[at].holds(state)
    }

    fn go(&self, at: usize, state: &mut State, steps: &mut Vec<Step>) -> Result<Flow, Unread> {
        let instr = &self.instrs[at];
        match instr.words[0].as_str() {
            "ret" | "exit" => return Ok(Flow::End),
            "bra" => {
                let to = self.labels.get(instr.operand(0)).ok_or_else(|| Unread::of(instr))?;
                return Ok(Flow::To(*to));
            }
            "ld" if instr.has("param") => {
                let value = self.address(instr.operand(1), state);
                self.give(instr.operand(0), value, state);
            }
            "ld" | "st" | "atom" | "red" | "multimem" if !instr.has("async") => {
                steps.extend(self.memory(instr, state)?)
            }
            "fence" | "membar" if !instr.has("proxy") && !instr.has("mbarrier_init") => {
                steps.extend(fence(instr)?)
            }
            "bar" | "barrier" => {
                steps.extend(barrier(instr));
                if instr.has("red") {
                    let fresh = state.fresh();
                    self.give(instr.operand(0), fresh, state);
                }
            }
            word if PURE.contains(&word) => self.compute(instr, state),
            _ => {
                let told = told::steps(instr).ok_or_else(|| Unread::of(instr))??;
                steps.extend(self.told(instr, told, state)?);
            }
        }
        Ok(Flow::Next)
    }
}
