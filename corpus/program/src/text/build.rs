//! Builds a program while it is read: resolves names, declares registers on first use; and the shared grammar of
//! conditions.

use super::ParseError;
use super::scan::{Parsed, Scan, Spot};
use crate::ir::*;
use crate::limits::*;
use std::collections::{BTreeMap, BTreeSet};

/// A thread under construction.
#[derive(Clone, Debug)]
pub struct ThreadBuilder {
    /// The thread so far.
    pub thread: Thread,
    /// All branches, resolved at the end of the thread: instruction, label, byte offset of the label.
    pub jumps: Vec<(usize, String, usize)>,
    /// The declared type of each register.
    pub types: Vec<Ty>,
    regs: BTreeMap<String, Reg>,
    labels: BTreeMap<String, usize>,
    fresh: usize,
    /// The declarations, if registers must be declared before use.
    declared: Option<Declared>,
}

/// Declarations of registers in nested braces.
#[derive(Clone, Debug, Default)]
struct Declared {
    /// Families such as `.reg .b32 %r<10>;`: prefix, count, type.
    families: Vec<(String, u32, Ty)>,
    /// For each open brace: the number of families before it, and the former registers of names redeclared inside it.
    open: Vec<(usize, Vec<(String, Option<Reg>)>)>,
}

/// Words that cannot name a thread, because they start something else.
const RESERVED: [&str; 6] = ["exists", "forall", "filter", "not", "true", "false"];

impl ThreadBuilder {
    /// An empty thread with this name and place.
    pub fn new(name: &str, place: Placement) -> Self {
        let thread =
            Thread { name: name.into(), place, regs: Vec::new(), labels: Vec::new(), body: Vec::new() };
        ThreadBuilder {
            thread,
            jumps: Vec::new(),
            types: Vec::new(),
            regs: BTreeMap::new(),
            labels: BTreeMap::new(),
            fresh: 0,
            declared: None,
        }
    }

    /// A thread whose registers are known by their names.
    pub fn of(thread: Thread) -> Self {
        let named = thread.regs.iter().enumerate().map(|(n, reg)| (reg.name.clone(), Reg::at(n))).collect();
        let new = Self::new(&thread.name, thread.place);
        ThreadBuilder { thread, regs: named, ..new }
    }

    /// The register with this name, if it is visible here.
    pub fn known(&self, name: &str) -> Option<Reg> {
        self.regs.get(name).copied()
    }

    /// Requires from here on that registers are declared before use.
    pub fn declare_first(&mut self) {
        self.declared = Some(Declared::default());
    }

    /// Enters braces: names declared from here on are local to them.
    pub fn open(&mut self) {
        if let Some(d) = &mut self.declared {
            d.open.push((d.families.len(), Vec::new()));
        }
    }

    /// Leaves braces: restores the names from before them.
    pub fn close(&mut self) {
        let Some((families, hidden)) = self.declared.as_mut().and_then(|d| d.open.pop()) else { return };
        for (name, was) in hidden.into_iter().rev() {
            match was {
                Some(reg) => drop(self.regs.insert(name, reg)),
                None => drop(self.regs.remove(&name)),
            }
        }
        if let Some(d) = &mut self.declared {
            d.families.truncate(families);
        }
    }

    /// Declares `.reg .ty name;`, or with `count` the family `name0`, `name1`, ..
    pub fn declare(&mut self, scan: &mut Scan<'_>, name: &str, count: Option<u32>, ty: Ty) -> Parsed<()> {
        if let Some(count) = count {
            if let Some(d) = &mut self.declared {
                if d.families.len() == REGISTERS {
                    return Err(scan.error(format!("a thread may have at most {REGISTERS} registers"), None));
                }
                d.families.push((name.to_owned(), count, ty));
                self.hide(name, count);
            }
            return Ok(());
        }
        self.enter(scan, name, ty).map(drop)
    }

    /// Hides the registers of a family from outside the braces in which it is declared again.
    fn hide(&mut self, stem: &str, count: u32) {
        let number = |name: &str| name.strip_prefix(stem).and_then(|n| n.parse::<u32>().ok());
        let same = self.regs.range(stem.to_owned()..).take_while(|(name, _)| name.starts_with(stem));
        let outer = same.filter(|(name, _)| number(name).is_some_and(|n| n < count));
        let outer: Vec<(String, Reg)> = outer.map(|(name, reg)| (name.clone(), *reg)).collect();
        let Some((_, hidden)) = self.declared.as_mut().and_then(|d| d.open.last_mut()) else { return };
        for (name, reg) in outer {
            self.regs.remove(&name);
            hidden.push((name, Some(reg)));
        }
    }

    fn enter(&mut self, scan: &mut Scan<'_>, name: &str, ty: Ty) -> Parsed<Reg> {
        if self.thread.regs.len() == REGISTERS {
            return Err(scan.error(format!("a thread may have at most {REGISTERS} registers"), None));
        }
        let reg = Reg::at(self.thread.regs.len());
        self.thread.regs.push(RegDecl { name: name.into(), init: RegInit::Value(0) });
        self.types.push(ty);
        let was = self.regs.insert(name.to_owned(), reg);
        if let Some((_, hidden)) = self.declared.as_mut().and_then(|d| d.open.last_mut()) {
            hidden.push((name.to_owned(), was));
        }
        Ok(reg)
    }

    /// Declares a register of a family at its first use, in the braces of the family.
    fn of_family(&mut self, scan: &mut Scan<'_>, name: &str) -> Parsed<Option<Reg>> {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let families = self.declared.as_ref().map(|d| d.families.as_slice()).unwrap_or_default();
        let found = (1..=digits).rev().find_map(|n| {
            let (stem, number) = name.split_at(name.len() - n);
            let number: u32 = number.parse().ok().filter(|_| n == 1 || !number.starts_with('0'))?;
            let family = families.iter().rposition(|f| f.0 == stem && number < f.1)?;
            Some((family, families[family].2))
        });
        let Some((family, ty)) = found else { return Ok(None) };
        let reg = self.enter(scan, name, ty)?;
        // The register is visible as long as its family, possibly beyond the innermost braces.
        if let Some(d) = &mut self.declared {
            let home = d.open.iter().filter(|(families, _)| *families <= family).count();
            if let Some(entry) = d.open.last_mut().and_then(|(_, hidden)| hidden.pop())
                && let Some((_, hidden)) = home.checked_sub(1).and_then(|h| d.open.get_mut(h))
            {
                hidden.push(entry);
            }
        }
        Ok(Some(reg))
    }

    /// The register with this name, if it is declared.
    pub fn find(&mut self, scan: &mut Scan<'_>, name: &str) -> Parsed<Option<Reg>> {
        match self.regs.get(name) {
            Some(reg) => Ok(Some(*reg)),
            None => self.of_family(scan, name),
        }
    }

    /// The register with this name; declares it if it is new.
    pub fn reg(&mut self, scan: &mut Scan<'_>, name: &str) -> Parsed<Reg> {
        if let Some(reg) = self.find(scan, name)? {
            return Ok(reg);
        }
        if self.declared.is_some() {
            let known: Vec<&str> = self.regs.keys().map(String::as_str).collect();
            let hint = super::scan::closest(name, &known).map(|k| format!("did you mean `{k}`?"));
            return Err(scan.error(format!("the register `{name}` is not declared"), hint));
        }
        if self.thread.regs.len() == REGISTERS {
            return Err(scan.error(format!("a thread may have at most {REGISTERS} registers"), None));
        }
        if name == "_" {
            let hint = "`_` means no register, and only where atom allows it".to_owned();
            return Err(scan.error("`_` names no register".into(), Some(hint)));
        }
        let reg = Reg::at(self.thread.regs.len());
        self.thread.regs.push(RegDecl { name: name.into(), init: RegInit::Value(0) });
        self.regs.insert(name.to_owned(), reg);
        self.types.push(Ty::B(64));
        Ok(reg)
    }

    /// A new register whose name does not occur so far.
    pub fn fresh(&mut self, scan: &mut Scan<'_>, stem: &str) -> Parsed<Reg> {
        loop {
            let name = format!("{stem}{}", self.fresh);
            self.fresh += 1;
            if !self.regs.contains_key(&name) {
                return self.reg(scan, &name);
            }
        }
    }

    /// Adds an instruction.
    ///
    /// # Errors
    /// If the thread has the maximal number of instructions.
    pub fn push(&mut self, scan: &mut Scan<'_>, spot: Spot, guard: Option<Guard>, op: Op) -> Parsed<()> {
        if self.thread.body.len() == INSTRUCTIONS {
            return Err(scan.error(format!("a thread may have at most {INSTRUCTIONS} instructions"), None));
        }
        self.thread.body.push(Instr { guard, op, line: spot.line, column: spot.column });
        Ok(())
    }

    /// Defines a label here.
    ///
    /// # Errors
    /// If the thread has a label with this name, or the name cannot be a label.
    pub fn label(&mut self, scan: &mut Scan<'_>, name: &str) -> Parsed<()> {
        // A word with dots is an instruction: no branch could name it.
        if name.contains('.') || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(scan.error(format!("`{name}` is not a name of a label"), None));
        }
        if self.thread.labels.len() > INSTRUCTIONS {
            return Err(scan.error(format!("a thread may have at most {INSTRUCTIONS} labels"), None));
        }
        if self.labels.insert(name.to_owned(), self.thread.body.len()).is_some() {
            return Err(scan.error(format!("label `{name}` is defined twice in this thread"), None));
        }
        self.thread.labels.push(Label { name: name.into(), at: self.thread.body.len() });
        Ok(())
    }

    /// Resolves the branches and returns the thread.
    pub fn finish(mut self, source: &str) -> Parsed<Thread> {
        for (instr, label, at) in std::mem::take(&mut self.jumps) {
            let Some(target) = self.labels.get(&label).copied() else {
                let known: Vec<&str> = self.thread.labels.iter().map(|l| l.name.as_str()).collect();
                let hint = match known.as_slice() {
                    [] => "this thread has no labels".to_owned(),
                    _ => format!("its labels are {}", known[..known.len().min(8)].join(", ")),
                };
                return Err(ParseError::at(
                    source,
                    at,
                    format!("label `{label}` is not in this thread"),
                    Some(hint),
                ));
            };
            if let Op::Bra { target: t } = &mut self.thread.body[instr].op {
                *t = target;
            }
        }
        Ok(self.thread)
    }
}

/// A program under construction.
#[derive(Clone, Debug)]
pub struct Builder {
    /// The program so far.
    pub program: Program,
    names: BTreeMap<String, SymbolId>,
}

impl Builder {
    /// An empty program with this name.
    pub fn new(name: &str) -> Self {
        Builder { program: Program { name: name.into(), ..Program::default() }, names: BTreeMap::new() }
    }

    /// A program whose memory is known by its names.
    pub fn of(program: Program) -> Self {
        let name = |(n, symbol): (usize, &Symbol)| (symbol.name.clone(), SymbolId::at(n));
        let names = program.symbols.iter().enumerate().map(name).collect();
        Builder { program, names }
    }

    /// The symbol with this name.
    pub fn symbol(&self, name: &str) -> Option<SymbolId> {
        self.names.get(name).copied()
    }

    /// Adds an object and the name that defines it.
    pub fn object(
        &mut self,
        scan: &mut Scan<'_>,
        name: &str,
        space: Space,
        bytes: u32,
        init: Content,
    ) -> Parsed<SymbolId> {
        if self.program.objects.len() == OBJECTS || self.program.symbols.len() == SYMBOLS {
            return Err(scan.error(format!("a program may have at most {OBJECTS} memory objects"), None));
        }
        let object = ObjectId::at(self.program.objects.len());
        let id = SymbolId::at(self.program.symbols.len());
        self.program.objects.push(Object { name: name.into(), space, bytes, init });
        let symbol = Symbol { name: name.into(), object, virt: id, proxy: Proxy::Generic, multimem: vec![] };
        self.program.symbols.push(symbol);
        self.names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Adds another name: a virtual alias, or the same address through another proxy.
    pub fn alias(&mut self, scan: &mut Scan<'_>, name: &str, of: SymbolId, proxy: Proxy) -> Parsed<SymbolId> {
        if self.symbol(name).is_some() {
            return Err(scan.error(format!("`{name}` is declared twice"), None));
        }
        if self.program.symbols.len() == SYMBOLS {
            return Err(scan.error(format!("a program may have at most {SYMBOLS} names"), None));
        }
        let id = SymbolId::at(self.program.symbols.len());
        let target = &self.program.symbols[of.index()];
        let virt = if proxy == Proxy::Generic { id } else { target.virt };
        let symbol = Symbol { name: name.into(), object: target.object, virt, proxy, multimem: vec![] };
        self.program.symbols.push(symbol);
        self.names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Sets the first 16 bytes of a symbol's object to a value.
    pub fn set_initial(&mut self, symbol: SymbolId, value: i128) {
        let object = &mut self.program.objects[self.program.symbols[symbol.index()].object.index()];
        #[expect(clippy::cast_sign_loss, reason = "a bit pattern is wanted")]
        object.init.put_value(0, object.bytes, value as Value);
    }

    /// Adds a thread that has been read.
    pub fn thread(&mut self, scan: &mut Scan<'_>, thread: Thread) -> Parsed<()> {
        if self.program.threads.len() == THREADS {
            return Err(scan.error(format!("a program may have at most {THREADS} threads"), None));
        }
        if RESERVED.contains(&thread.name.as_str()) {
            return Err(scan.error(format!("`{}` cannot name a thread", thread.name), None));
        }
        if self.program.threads.iter().any(|t| t.name == thread.name) {
            return Err(scan.error(format!("thread `{}` is defined twice", thread.name), None));
        }
        self.program.threads.push(thread);
        Ok(())
    }

    /// Adds a condition that has been read.
    pub fn condition(&mut self, scan: &mut Scan<'_>, condition: Condition) -> Parsed<()> {
        if self.program.conditions.len() == CONDITIONS {
            return Err(scan.error(format!("a program may have at most {CONDITIONS} conditions"), None));
        }
        self.program.conditions.push(condition);
        Ok(())
    }

    /// The program, after renaming every register that has the name of memory: native text has one name space.
    pub fn separated(mut self) -> Program {
        for thread in &mut self.program.threads {
            let mut taken: BTreeSet<String> = thread.regs.iter().map(|r| r.name.clone()).collect();
            let mut number = 0;
            for reg in &mut thread.regs {
                while self.names.contains_key(&reg.name) {
                    let name = format!("r_{number}");
                    number += 1;
                    if !self.names.contains_key(&name) && taken.insert(name.clone()) {
                        reg.name = name;
                    }
                }
            }
        }
        self.program
    }
}

/// The words for the connectives.
#[derive(Clone, Copy, Debug)]
pub struct Connectives {
    /// Words for a conjunction.
    pub and: &'static [&'static str],
    /// Words for a disjunction.
    pub or: &'static [&'static str],
}

/// Either `/\ \/` or `&& ||`; negation is `not`, `~` or `!`.
pub const CONNECTIVES: Connectives = Connectives { and: &["/\\", "&&"], or: &["\\/", "||"] };

/// Deepest nesting of parentheses and negations in a text; a printed condition has at most two for each level.
const NESTING: usize = 2 * EXPRESSION_DEPTH + 8;

/// Parses a condition; `term` reads a leaf.
pub fn expr<'a>(scan: &mut Scan<'a>, term: &mut dyn FnMut(&mut Scan<'a>) -> Parsed<Term>) -> Parsed<Expr> {
    let mut nodes = 0;
    let found = disjunction(scan, term, 0, &mut nodes)?;
    if depth(&found) > EXPRESSION_DEPTH {
        return Err(too_deep(scan));
    }
    Ok(found)
}

fn too_deep(scan: &mut Scan<'_>) -> ParseError {
    scan.error("this condition is nested too deep or too long".into(), None)
}

fn depth(expr: &Expr) -> usize {
    match expr {
        Expr::Bool(_) | Expr::Cmp(..) => 1,
        Expr::Not(e) => 1 + depth(e),
        Expr::And(es) | Expr::Or(es) => 1 + es.iter().map(depth).max().unwrap_or(0),
    }
}

type TermReader<'r, 'a> = &'r mut dyn FnMut(&mut Scan<'a>) -> Parsed<Term>;

fn disjunction<'a>(
    scan: &mut Scan<'a>,
    term: TermReader<'_, 'a>,
    depth: usize,
    nodes: &mut usize,
) -> Parsed<Expr> {
    let mut members = vec![conjunction(scan, term, depth, nodes)?];
    while CONNECTIVES.or.iter().any(|o| scan.take(o)) {
        members.push(conjunction(scan, term, depth, nodes)?);
    }
    Ok(if members.len() == 1 { members.remove(0) } else { Expr::Or(members) })
}

fn conjunction<'a>(
    scan: &mut Scan<'a>,
    term: TermReader<'_, 'a>,
    depth: usize,
    nodes: &mut usize,
) -> Parsed<Expr> {
    let mut members = vec![atom(scan, term, depth, nodes)?];
    while CONNECTIVES.and.iter().any(|o| scan.take(o)) {
        members.push(atom(scan, term, depth, nodes)?);
    }
    Ok(if members.len() == 1 { members.remove(0) } else { Expr::And(members) })
}

fn atom<'a>(scan: &mut Scan<'a>, term: TermReader<'_, 'a>, depth: usize, nodes: &mut usize) -> Parsed<Expr> {
    if depth > NESTING {
        return Err(too_deep(scan));
    }
    if scan.keyword("not") || scan.take("~") || (!scan.peek("!=") && scan.take("!")) {
        return Ok(Expr::Not(Box::new(atom(scan, term, depth + 1, nodes)?)));
    }
    if scan.keyword("true") {
        return Ok(Expr::Bool(true));
    }
    if scan.keyword("false") {
        return Ok(Expr::Bool(false));
    }
    if scan.take("(") {
        let inner = disjunction(scan, term, depth + 1, nodes)?;
        scan.expect(")")?;
        return Ok(inner);
    }
    *nodes += 1;
    if *nodes > EXPRESSION_NODES {
        return Err(too_deep(scan));
    }
    let left = term(scan)?;
    let operators = [
        ("==", CmpOp::Eq),
        ("!=", CmpOp::Ne),
        ("<=", CmpOp::Le),
        (">=", CmpOp::Ge),
        ("<", CmpOp::Lt),
        (">", CmpOp::Gt),
        ("=", CmpOp::Eq),
    ];
    let found = operators.iter().find(|(text, _)| scan.take(text));
    let Some((_, op)) = found else { return Err(scan.expected("a comparison (== != < <= > >=)")) };
    Ok(Expr::Cmp(*op, left, term(scan)?))
}

/// A number as a condition's constant.
pub fn constant(scan: &mut Scan<'_>) -> Parsed<Term> {
    let value = scan.number()?;
    #[expect(clippy::cast_possible_truncation, reason = "numbers above i64::MAX wrap to their bit pattern")]
    let value = value as i64;
    Ok(Term::Const(value))
}
