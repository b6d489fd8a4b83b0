//! Statements of a kernel: braces, declarations, labels, instructions.
//!
//! Labels and registers are local to their braces (PTX ISA 9.2, 4.4 and 9.7.14.1).

use super::function::Functions;
use super::inline::Calls;
use super::module::{Kernel, NESTING, Statement, What};
use super::variable::{small, type_of, variable};
use moire_isa::Instr;
use moire_program::ir::{Control, Guard, Op, Reg};
use moire_program::limits::INSTRUCTIONS;
use moire_program::text::build::{Builder, ThreadBuilder};
use moire_program::text::scan::{Parsed, Scan, Spot, closest};
use std::collections::{BTreeMap, BTreeSet};

/// The braces that are open while a body is read.
#[derive(Default)]
pub(super) struct Scope {
    /// Parameters of calls, by name.
    pub(super) params: BTreeMap<String, usize>,
    labels: BTreeMap<String, usize>,
    /// Branches to labels not seen yet.
    jumps: Vec<(Goal, Jump)>,
}

/// A label as written, and its position.
#[derive(Clone)]
pub(super) struct Jump {
    label: String,
    at: usize,
}

/// The entry that a label resolves: a branch, or an entry of a table.
#[derive(Clone, Copy)]
enum Goal {
    Branch(usize),
    Entry(usize, usize),
}

pub(super) struct Body<'b, 's> {
    pub(super) scan: &'b mut Scan<'s>,
    pub(super) builder: &'b mut Builder,
    pub(super) thread: &'b mut ThreadBuilder,
    pub(super) kernel: &'b mut Kernel,
    pub(super) functions: &'b Functions,
    pub(super) calls: Calls,
    pub(super) scopes: Vec<Scope>,
    /// Tables of branch targets by name.
    pub(super) tables: BTreeMap<String, usize>,
    /// Indexed branches and the names of their tables.
    pub(super) indexed: Vec<(usize, Jump)>,
    /// Where the variables of functions are declared: a function has them once, however often it is inlined.
    declared: BTreeSet<usize>,
    /// Numbers of labels, functions and names that the kernel does not declare.
    pub(super) named: BTreeMap<String, usize>,
    /// The label directly before this statement.
    label: Option<String>,
}

/// Reads from the opening brace of a kernel to its closing one.
pub(super) fn body(
    scan: &mut Scan<'_>,
    builder: &mut Builder,
    thread: &mut ThreadBuilder,
    kernel: &mut Kernel,
    functions: &Functions,
) -> Parsed<()> {
    let mut b = Body {
        scan,
        builder,
        thread,
        kernel,
        functions,
        calls: Calls::default(),
        scopes: Vec::new(),
        tables: BTreeMap::new(),
        indexed: Vec::new(),
        declared: BTreeSet::new(),
        named: BTreeMap::new(),
        label: None,
    };
    b.block(BTreeMap::new())
}

impl Body<'_, '_> {
    /// Reads from an opening brace to its closing one, with these parameters of a call.
    pub(super) fn block(&mut self, params: BTreeMap<String, usize>) -> Parsed<()> {
        self.scan.expect("{")?;
        self.thread.open();
        self.scopes = vec![Scope { params, ..Scope::default() }];
        self.label = None;
        while !self.scopes.is_empty() {
            if self.scan.take("}") {
                self.close()?;
            } else if self.scan.take("{") {
                if self.scopes.len() == NESTING {
                    let message = format!("braces are nested more than {NESTING} deep");
                    return Err(self.scan.error(message, None));
                }
                self.thread.open();
                self.scopes.push(Scope::default());
            } else {
                self.statement()?;
            }
        }
        for (index, jump) in std::mem::take(&mut self.indexed) {
            let found = self.tables.get(&jump.label).copied();
            let (Some(found), What::Table { table, .. }) = (found, &mut self.kernel.body[index].what) else {
                let hint = Some("write `name: .branchtargets label, ..;`".to_owned());
                let message = format!("`{}` is not a list of branch targets", jump.label);
                return Err(self.scan.error_at(jump.at, message, hint));
            };
            *table = found;
        }
        Ok(())
    }

    /// Resolves the jumps to labels of the closing scope, and hands the others to the scope around it.
    fn close(&mut self) -> Parsed<()> {
        self.thread.close();
        let Some(scope) = self.scopes.pop() else { return Ok(()) };
        for (goal, jump) in scope.jumps {
            if let Some(at) = scope.labels.get(&jump.label).copied() {
                match goal {
                    Goal::Branch(index) => self.kernel.body[index].what = What::Branch { target: at },
                    Goal::Entry(table, entry) => self.kernel.tables[table][entry] = at,
                }
            } else if let Some(outer) = self.scopes.last_mut() {
                outer.jumps.push((goal, jump));
            } else {
                let known: Vec<&str> = scope.labels.keys().map(String::as_str).collect();
                let hint = closest(&jump.label, &known).map(|k| format!("did you mean `{k}`?"));
                let message = format!("label `{}` is not in this kernel", jump.label);
                return Err(self.scan.error_at(jump.at, message, hint));
            }
        }
        Ok(())
    }

    fn statement(&mut self) -> Parsed<()> {
        if self.scan.done() {
            return Err(self.scan.expected("`}`: the kernel is never closed"));
        }
        if self.scan.take(";") {
            return Ok(());
        }
        if self.scan.peek(".") {
            return self.directive();
        }
        let spot = self.scan.spot();
        let guard = if self.scan.take("@") {
            let negated = self.scan.take("!");
            let start = self.scan.at;
            let name = self.scan.name("a predicate register")?.to_owned();
            let end = std::mem::replace(&mut self.scan.at, start);
            let reg = self.thread.reg(self.scan, &name)?;
            self.scan.at = end;
            Some(Guard { reg, negated })
        } else {
            None
        };
        self.scan.rest();
        let at = self.scan.at;
        let word = self.scan.word("an instruction, a label or `}`", ".")?;
        if guard.is_none() && !self.scan.peek("::") && self.scan.take(":") {
            return self.new_label(word, at);
        }
        if self.kernel.body.len() >= INSTRUCTIONS {
            return Err(self
                .scan
                .error(format!("a kernel may have at most {INSTRUCTIONS} instructions"), None));
        }
        if word.split('.').next() == Some("call") {
            self.mnemonic(word)?;
            if self.call(guard, spot) {
                self.label = None;
                return self.scan.expect(";");
            }
        }
        let instr = self.by_the_book(at)?;
        let all = match self.moves(&instr)? {
            Some(moves) => moves,
            None => vec![self.instruction(&instr, at, spot, guard)?],
        };
        let statement = |what| Statement { guard, line: spot.line, what };
        self.kernel.body.extend(all.into_iter().map(statement));
        self.label = None;
        self.scan.expect(";")
    }

    /// The rest of a mnemonic. The assembler accepts blanks before a `.suffix`, and no operand begins with a dot.
    fn mnemonic(&mut self, word: &str) -> Parsed<String> {
        let mut text = word.to_owned();
        loop {
            if self.scan.source[self.scan.at..].starts_with("::") {
                self.scan.at += 2;
                text.push_str("::");
            } else if !self.scan.peek(".") {
                return Ok(text);
            }
            text.push_str(self.scan.word("the rest of a mnemonic", ".")?);
        }
    }

    fn new_label(&mut self, name: &str, at: usize) -> Parsed<()> {
        if name.starts_with(|c: char| c == '.' || c.is_ascii_digit()) {
            return Err(self.scan.error_at(at, format!("`{name}` is not a name of a label"), None));
        }
        let here = self.kernel.body.len();
        if let Some(scope) = self.scopes.last_mut()
            && scope.labels.insert(name.to_owned(), here).is_some()
        {
            return Err(self.scan.error_at(
                at,
                format!("label `{name}` is defined twice in these braces"),
                None,
            ));
        }
        self.label = Some(name.to_owned());
        Ok(())
    }

    fn directive(&mut self) -> Parsed<()> {
        self.scan.expect(".")?;
        let at = self.scan.at;
        match self.scan.word("a directive", ":")? {
            "reg" => self.registers(),
            "shared" | "shared::cta" => self.variable("shared"),
            "local" => self.variable("local"),
            "global" => self.variable("global"),
            "const" => self.variable("const"),
            "branchtargets" => self.branch_targets(),
            "loc" => {
                let line = self.scan.rest().find('\n').unwrap_or(self.scan.source.len() - self.scan.at);
                self.scan.at += line;
                Ok(())
            }
            "param" => self.parameter(),
            "pragma" | "callprototype" | "calltargets" => {
                let end = self.scan.rest().find(';').unwrap_or(0);
                self.scan.at += end;
                self.scan.expect(";")
            }
            word => {
                let known = ["reg", "shared", "local", "global", "const", "branchtargets", "pragma", "loc"];
                let hint = closest(word, &known).map(|k| format!("did you mean `.{k}`?"));
                Err(self.scan.error_at(
                    at,
                    format!("unknown directive `.{word}` in the body of a kernel"),
                    hint,
                ))
            }
        }
    }

    fn variable(&mut self, space: &str) -> Parsed<()> {
        if self.calls.inside() && !self.declared.insert(self.scan.at) {
            let end = self.scan.rest().find(';').unwrap_or(0);
            self.scan.at += end;
            return self.scan.expect(";");
        }
        variable(self.scan, self.builder, &mut self.kernel.variables, space)
    }

    /// `.reg .b32 %r<10>, x;`
    fn registers(&mut self) -> Parsed<()> {
        let (mut ty, mut parts) = (None, "");
        while self.scan.take(".") {
            let at = self.scan.at;
            let word = self.scan.word("a type", "")?;
            match type_of(word) {
                Some(found) => ty = Some(found),
                None if matches!(word, "v2" | "v4") => parts = if word == "v2" { "xy" } else { "xyzw" },
                None => {
                    let hint = Some("for example .b32, .b64, .pred".to_owned());
                    return Err(self.scan.error_at(
                        at,
                        format!("`.{word}` is not a type of a register"),
                        hint,
                    ));
                }
            }
        }
        let Some(ty) = ty else { return Err(self.scan.expected("a type such as .b32")) };
        loop {
            let name = self.scan.name("a register")?.to_owned();
            let mut count = None;
            if self.scan.take("<") {
                count = Some(small(self.scan)?);
                self.scan.expect(">")?;
            }
            self.thread.declare(self.scan, &name, count, ty)?;
            for part in parts.chars() {
                self.thread.declare(self.scan, &format!("{name}.{part}"), None, ty)?;
            }
            if !self.scan.take(",") {
                return self.scan.expect(";");
            }
        }
    }

    fn branch_targets(&mut self) -> Parsed<()> {
        let Some(name) = self.label.take() else {
            return Err(self.scan.error("a list of branch targets needs a label".into(), None));
        };
        let table = self.kernel.tables.len();
        if table == INSTRUCTIONS {
            return Err(self.scan.error("too many lists of branch targets".into(), None));
        }
        self.kernel.tables.push(Vec::new());
        self.tables.insert(name, table);
        loop {
            self.scan.rest();
            let at = self.scan.at;
            let label = self.scan.name("a label")?.to_owned();
            let entries = &mut self.kernel.tables[table];
            entries.push(usize::MAX);
            if entries.len() > INSTRUCTIONS {
                return Err(self.scan.error("too many branch targets".into(), None));
            }
            let goal = Goal::Entry(table, entries.len() - 1);
            if let Some(scope) = self.scopes.last_mut() {
                scope.jumps.push((goal, Jump { label, at }));
            }
            if !self.scan.take(",") {
                return self.scan.expect(";");
            }
        }
    }

    fn instruction(&mut self, instr: &Instr, at: usize, spot: Spot, guard: Option<Guard>) -> Parsed<What> {
        if let Instr::Bra(bra) = instr {
            let jump = self.jump(bra.target.0, at);
            let goal = Goal::Branch(self.kernel.body.len());
            if let Some(scope) = self.scopes.last_mut() {
                scope.jumps.push((goal, jump));
            }
            return Ok(What::Branch { target: usize::MAX });
        }
        if let Instr::Brx(brx) = instr {
            let jump = self.jump(brx.table.0, at);
            self.indexed.push((self.kernel.body.len(), jump));
            let index = brx.index.reg().and_then(|reg| u16::try_from(reg.index).ok()).map(Reg);
            let index = index.ok_or_else(|| self.scan.error_at(at, "too many registers".into(), None))?;
            return Ok(What::Table { index, table: usize::MAX });
        }
        if matches!(instr, Instr::Ret(_)) && self.calls.returns(self.kernel.body.len()) {
            return Ok(What::Branch { target: usize::MAX });
        }
        if matches!(instr, Instr::Ret(_) | Instr::Exit(_)) {
            return Ok(What::Exit);
        }
        // The run ahead computes exchanges between lanes itself.
        let of_litmus = |op: &Op| !matches!(op, Op::Control(Control::Collective(_)));
        let Some(op) = moire_program::bridge::op(instr).filter(of_litmus) else {
            return Ok(What::Plain(Box::new(instr.clone())));
        };
        self.thread.push(self.scan, spot, guard, op.clone())?;
        Ok(What::Core(op))
    }

    /// A jump of the instruction at `at` to a label.
    fn jump(&self, label: u32, at: usize) -> Jump {
        let label = self.name_of(label).to_owned();
        let text = &self.scan.source[at..self.scan.at];
        Jump { at: at + text.rfind(&label).unwrap_or(0), label }
    }
}
