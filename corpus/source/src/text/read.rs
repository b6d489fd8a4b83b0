//! Reads the text of a source program.

use super::condition;
use crate::limits::{NESTING, OBJECTS, PLACE, REGISTERS, STEPS, THREADS};
use crate::syntax::{Access, Exchange, Object, Order, Register, Source, Space, Step, Thread, Update, Value};
use crate::validate;
use moire_program::ir::{AtomOp, Placement, Scope};
use moire_program::text::ParseError;
use moire_program::text::scan::{Parsed, Scan, closest};

/// The updates with their names.
pub(super) const UPDATES: [(&str, AtomOp); 7] = [
    ("add", AtomOp::Add),
    ("and", AtomOp::And),
    ("or", AtomOp::Or),
    ("xor", AtomOp::Xor),
    ("min", AtomOp::Min),
    ("max", AtomOp::Max),
    ("exch", AtomOp::Exch),
];
/// The spaces with their names.
pub(super) const SPACES: [(&str, Space); 3] =
    [(".global", Space::Global), (".generic", Space::Generic), (".shared", Space::Shared)];
/// The scopes with their names.
pub(super) const SCOPES: [(&str, Scope); 4] =
    [("cta", Scope::Cta), ("cluster", Scope::Cluster), ("gpu", Scope::Gpu), ("sys", Scope::Sys)];
/// Words that are no names.
pub(super) const KEYWORDS: [&str; 6] = ["if", "fence", "store", "load", "cas", "source"];

/// A cursor, with the program read so far.
struct Reader<'s, 't> {
    scan: &'s mut Scan<'t>,
    source: Source,
    /// Registers of the current thread.
    registers: Vec<Register>,
    steps: usize,
}

pub(super) fn program(scan: &mut Scan<'_>) -> Result<Source, ParseError> {
    if !scan.keyword("source") {
        return Err(scan.expected("`source \"NAME\"`"));
    }
    let mut r = Reader { scan, source: Source::default(), registers: Vec::new(), steps: 0 };
    r.source.name = r.title()?;
    while r.scan.peek(".") {
        r.objects()?;
    }
    while r.scan.peek("P") {
        r.thread()?;
    }
    r.source.condition = condition::condition(r.scan, &r.source)?;
    if !r.scan.done() {
        return Err(r.scan.expected("an object, a thread, a condition or the end"));
    }
    if let Some(fault) = validate::faults(&r.source).into_iter().next() {
        return Err(r.scan.error_at(0, fault.to_string(), None));
    }
    Ok(r.source)
}

impl Reader<'_, '_> {
    fn fail<T>(&mut self, message: String, hint: Option<&str>) -> Parsed<T> {
        Err(self.scan.error(message, hint.map(str::to_owned)))
    }

    /// `"NAME"`
    fn title(&mut self) -> Parsed<String> {
        self.scan.expect("\"")?;
        let rest = &self.scan.source[self.scan.at..];
        let Some(end) = rest.find(['"', '\n']).filter(|e| rest[*e..].starts_with('"')) else {
            return self.fail("the name of the program is not closed".into(), Some("write \"NAME\""));
        };
        let name = rest[..end].to_owned();
        self.scan.at += end + 1;
        Ok(name)
    }

    /// `.global .b32 x, y = 1;`
    fn objects(&mut self) -> Parsed<()> {
        let word = self.scan.word("a state space", ".")?;
        let Some((_, space)) = SPACES.iter().find(|(name, _)| *name == word) else {
            return self.fail(format!("`{word}` is no state space"), Some("one of .global .generic .shared"));
        };
        let word = self.scan.word("a width", ".")?;
        let bits = word.strip_prefix(".b").and_then(|n| n.parse::<u8>().ok());
        let Some(bits) = bits.filter(|n| validate::WIDTHS.contains(n)) else {
            return self.fail(format!("`{word}` is no width"), Some("one of .b8 .b16 .b32 .b64 .b128"));
        };
        loop {
            let name = self.scan.name("the name of an object")?.to_owned();
            let init = if self.scan.take("=") { self.number()? } else { 0 };
            if self.source.objects.len() >= OBJECTS {
                return self.fail(format!("a source program has at most {OBJECTS} objects"), None);
            }
            self.source.objects.push(Object { name, space: *space, bits, init });
            if !self.scan.take(",") {
                return self.scan.expect(";");
            }
        }
    }

    fn number(&mut self) -> Parsed<u64> {
        let n = self.scan.number()?;
        match u64::try_from(n) {
            Ok(n) => Ok(n),
            Err(_) => self.fail("a number is not negative".into(), None),
        }
    }

    /// `P0 (gpu 0, cluster 0, cta 0) { .. }`
    fn thread(&mut self) -> Parsed<()> {
        let name = self.scan.word("the name of a thread", "")?;
        let wanted = format!("P{}", self.source.threads.len());
        if name != wanted {
            return self.fail(format!("this thread is named {wanted}, not `{name}`"), None);
        }
        if self.source.threads.len() >= THREADS {
            return self.fail(format!("a source program has at most {THREADS} threads"), None);
        }
        let mut place = Placement::default();
        if self.scan.take("(") {
            loop {
                let word = self.scan.name("gpu, cluster or cta")?;
                let n = self.number()?;
                let Some(n) = u16::try_from(n).ok().filter(|n| *n <= PLACE) else {
                    return self.fail(format!("a place is numbered 0 to {PLACE}"), None);
                };
                match word {
                    "gpu" => place.gpu = n,
                    "cluster" => place.cluster = n,
                    "cta" => place.cta = n,
                    _ => return self.fail(format!("`{word}` is no place"), Some("gpu, cluster or cta")),
                }
                if !self.scan.take(",") {
                    break;
                }
            }
            self.scan.expect(")")?;
        }
        self.registers = Vec::new();
        let body = self.block(0)?;
        let registers = std::mem::take(&mut self.registers);
        self.source.threads.push(Thread { place, registers, body });
        Ok(())
    }

    fn block(&mut self, depth: usize) -> Parsed<Vec<Step>> {
        if depth > NESTING {
            return self.fail(format!("`if` may be nested {NESTING} deep"), None);
        }
        self.scan.expect("{")?;
        let mut out = Vec::new();
        while !self.scan.take("}") {
            if self.steps >= STEPS {
                return self.fail(format!("a source program has at most {STEPS} steps"), None);
            }
            self.steps += 1;
            out.push(self.step(depth)?);
        }
        Ok(out)
    }

    fn step(&mut self, depth: usize) -> Parsed<Step> {
        if self.scan.keyword("if") {
            let register = self.register_read()?;
            self.scan.expect("==")?;
            let equals = self.number()?;
            return Ok(Step::If { register, equals, then: self.block(depth + 1)? });
        }
        let word = self.scan.word("a step", ".")?;
        let step = match word.split('.').collect::<Vec<_>>().as_slice() {
            ["fence", order, scope] => Step::Fence { order: self.order(order)?, scope: self.scope(scope)? },
            ["store", rest @ ..] => {
                let access = self.access(rest)?;
                let object = self.object()?;
                self.scan.expect(",")?;
                Step::Store { object, value: self.value()?, access }
            }
            [op, order, scope] if update(op).is_some() => self.update(None, op, order, scope)?,
            [name] if !KEYWORDS.contains(name) && self.scan.take("=") => self.assignment(name)?,
            [first, ..] => return self.stranger(first),
            [] => return Err(self.scan.expected("a step")),
        };
        self.scan.expect(";")?;
        Ok(step)
    }

    /// What follows `r =`.
    fn assignment(&mut self, name: &str) -> Parsed<Step> {
        let word = self.scan.word("load, cas or an update", ".")?;
        match word.split('.').collect::<Vec<_>>().as_slice() {
            ["load", rest @ ..] => {
                let access = self.access(rest)?;
                let object = self.object()?;
                Ok(Step::Load { dst: self.register_written(name, object)?, object, access })
            }
            ["cas", success, failure, scope] => {
                let (success, failure) = (self.order(success)?, self.order(failure)?);
                let scope = self.scope(scope)?;
                let object = self.object()?;
                self.scan.expect(",")?;
                let expected = self.number()?;
                self.scan.expect(",")?;
                let desired = self.value()?;
                let dst = self.register_written(name, object)?;
                Ok(Step::Cas(Exchange { dst, object, expected, desired, success, failure, scope }))
            }
            [op, order, scope] if update(op).is_some() => self.update(Some(name), op, order, scope),
            [first, ..] => self.stranger(first),
            [] => Err(self.scan.expected("load, cas or an update")),
        }
    }

    fn update(&mut self, dst: Option<&str>, op: &str, order: &str, scope: &str) -> Parsed<Step> {
        let (order, scope) = (self.order(order)?, self.scope(scope)?);
        let op = update(op).unwrap_or(AtomOp::Exch);
        let object = self.object()?;
        self.scan.expect(",")?;
        let value = self.value()?;
        let dst = dst.map(|name| self.register_written(name, object)).transpose()?;
        Ok(Step::Update(Update { dst, op, object, value, order, scope }))
    }

    fn stranger<T>(&mut self, word: &str) -> Parsed<T> {
        let known: Vec<&str> =
            ["load", "store", "cas", "fence", "if"].into_iter().chain(UPDATES.map(|u| u.0)).collect();
        let hint = closest(word, &known).map(|k| format!("did you mean `{k}`?"));
        let hint = hint.or(Some("an access has an order and a scope, as in `load.acquire.gpu`".into()));
        Err(self.scan.error(format!("`{word}` begins no step here"), hint))
    }

    fn order(&mut self, word: &str) -> Parsed<Order> {
        match Order::ALL.into_iter().find(|o| o.word() == word) {
            Some(order) => Ok(order),
            None => {
                let hint = "one of relaxed acquire release acq_rel seq_cst";
                self.fail(format!("`{word}` is no order"), Some(hint))
            }
        }
    }

    fn scope(&mut self, word: &str) -> Parsed<Scope> {
        match SCOPES.iter().find(|(name, _)| *name == word) {
            Some((_, scope)) => Ok(*scope),
            None => self.fail(format!("`{word}` is no scope"), Some("one of cta cluster gpu sys")),
        }
    }

    /// `plain`, `relaxed.gpu`, `volatile.relaxed.sys`
    fn access(&mut self, words: &[&str]) -> Parsed<Access> {
        let (volatile, words) = match words {
            ["volatile", rest @ ..] => (true, rest),
            all => (false, all),
        };
        match words {
            ["plain"] if !volatile => Ok(Access::Plain),
            [order, scope] => {
                Ok(Access::Atomic { order: self.order(order)?, scope: self.scope(scope)?, volatile })
            }
            _ => {
                let hint = "write .plain, or an order and a scope as in .relaxed.gpu";
                self.fail("this is no kind of access".into(), Some(hint))
            }
        }
    }

    fn object(&mut self) -> Parsed<usize> {
        let name = self.scan.name("an object")?;
        match self.source.objects.iter().position(|o| o.name == name) {
            Some(at) => Ok(at),
            None => {
                self.fail(format!("there is no object `{name}`"), Some("declare it as in `.global .b32 x;`"))
            }
        }
    }

    fn value(&mut self) -> Parsed<Value> {
        if self.scan.rest().starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Value::Number(self.number()?));
        }
        Ok(Value::Register(self.register_read()?))
    }

    fn register_read(&mut self) -> Parsed<usize> {
        let name = self.scan.name("a register")?;
        match self.registers.iter().position(|r| r.name == name) {
            Some(at) => Ok(at),
            None => self.fail(format!("no earlier step of this thread writes `{name}`"), None),
        }
    }

    /// The register of that name, new if nothing has written it yet.
    fn register_written(&mut self, name: &str, object: usize) -> Parsed<usize> {
        let bits = self.source.objects.get(object).map_or(32, |o| o.bits);
        if let Some(at) = self.registers.iter().position(|r| r.name == name) {
            return Ok(at);
        }
        if self.registers.len() >= REGISTERS {
            return self.fail(format!("a thread has at most {REGISTERS} registers"), None);
        }
        self.registers.push(Register { name: name.to_owned(), bits });
        Ok(self.registers.len() - 1)
    }
}

fn update(word: &str) -> Option<AtomOp> {
    UPDATES.iter().find(|(name, _)| *name == word).map(|(_, op)| *op)
}
