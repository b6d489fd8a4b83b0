//! Drafts: small kernels of Tile IR as data (instructions of tile blocks, their tokens and masks), and their text.
//!
//! Contract: a draft is printed as one kernel that [`moire_tile_ir::text`] reads; each block is an arm of an `if`.
//! Stored values are numbered by location, so no two stores of a draft write the same value there.

use std::fmt::Write as _;

/// Kinds of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Reads.
    Load,
    /// Writes a value of its own.
    Store,
    /// Writes what was read last.
    Copy,
    /// Adds one.
    Add,
    /// Exchanges for a value of its own.
    Exchange,
    /// A comparison that never holds.
    Fail,
}

/// The location of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A word.
    X,
    /// Another word.
    Y,
    /// The low half of the first word.
    Low,
    /// The first word, by both elements of a tile.
    Twice,
}

/// An instruction without its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// What it does.
    pub what: What,
    /// Order and scope, as Tile IR writes them.
    pub order: &'static str,
    /// The location of an access.
    pub place: Place,
}

/// The token that an instruction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// None.
    Nothing,
    /// That of the instruction before it.
    Last,
    /// Those of all instructions before it, joined.
    All,
    /// What an `if` yields: the arm that runs a new token, the other one that of the instruction before it.
    Either,
}

/// The mask of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Never.
    Never,
    /// If the value read last is this one.
    Read(u32),
}

/// An instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftStep {
    /// What and where.
    pub form: Form,
    /// Token.
    pub wait: Wait,
    /// Mask.
    pub when: When,
}

impl Form {
    fn reads(self) -> bool {
        !matches!(self.what, What::Store | What::Copy)
    }

    /// Reads a number that stores and masks of other words can use.
    fn gives(self) -> bool {
        self.reads() && matches!(self.place, Place::X | Place::Y)
    }

    /// Whether it writes under some reading: under one, a failed comparison also writes.
    fn writes(self) -> bool {
        self.what != What::Load
    }
}

impl DraftStep {
    /// Memory events.
    pub fn events(self) -> usize {
        let halves = match self.form.what {
            What::Load | What::Store | What::Copy => 1,
            What::Add | What::Exchange | What::Fail => 2,
        };
        let elements = if self.form.place == Place::Twice { 2 } else { 1 };
        if self.when == When::Never { 0 } else { halves * elements }
    }

    /// Whether it can come behind these in a block.
    pub fn follows(self, before: &[DraftStep]) -> bool {
        let given = before.last().is_some() && before.iter().rev().any(|s| s.form.gives());
        let waits = match self.wait {
            Wait::Nothing => true,
            Wait::Last | Wait::Either => !before.is_empty(),
            Wait::All => before.len() > 1,
        };
        let atomic = !matches!(self.form.what, What::Load | What::Store | What::Copy);
        let masked = match self.when {
            When::Always => true,
            When::Never => !atomic,
            When::Read(_) => given && !atomic && self.form.place != Place::Twice,
        };
        waits && masked && (self.form.what != What::Copy || given)
    }
}

/// A kernel: what each block does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft(pub Vec<Vec<DraftStep>>);

impl Draft {
    /// Blocks, memory events, instructions.
    pub fn size(&self) -> super::Size {
        let steps = self.0.iter().flatten();
        (self.0.len(), steps.clone().map(|s| s.events()).sum(), steps.count())
    }

    /// Whether each word is written and accessed twice, and the word that is accessed first is called x.
    pub fn is_normal(&self) -> bool {
        let steps = || self.0.iter().flatten();
        let first = steps().next().is_none_or(|s| s.form.place != Place::Y);
        let touched = |y: bool| {
            let own = || steps().filter(move |s| (s.form.place == Place::Y) == y && s.when != When::Never);
            let written = own().any(|s| s.form.writes());
            own().next().is_none() || (written && own().map(|s| s.events()).sum::<usize>() > 1)
        };
        first && touched(false) && touched(true)
    }

    /// The text as Tile IR, and for each block the names of the values that are read, in order.
    pub fn text(&self) -> (String, Vec<Vec<String>>) {
        let mut writer = DraftNames::default();
        let bodies: Vec<String> = self.0.iter().map(|steps| writer.block(steps)).collect();
        let uses = |place: Place| self.0.iter().flatten().any(|s| s.form.place == place);
        let mut params = vec!["%x: tile<ptr<i32>>"];
        params.extend(uses(Place::Y).then_some("%y: tile<ptr<i32>>"));
        let mut out = format!("entry @k({}) {{\n", params.join(", "));
        let words = ["zero", "one", "two", "three", "four", "five", "six", "seven"];
        let compared = self.0.len() > 1;
        for (n, word) in words.iter().enumerate() {
            let used = bodies.iter().any(|b| {
                b.split(|c: char| !c.is_alphanumeric() && c != '%').any(|w| w.strip_prefix('%') == Some(word))
            });
            if used || (compared && n + 1 < self.0.len()) {
                let _ = writeln!(out, "  %{word} = constant <i32: {n}> : tile<i32>");
            }
        }
        self.views(&mut out);
        if compared {
            out.push_str("  %block, %block_y, %block_z = get_tile_block_id : tile<i32>\n");
        }
        arms(&bodies, 0, 1, &mut out);
        out.push_str("  return\n}\n");
        (out, writer.reads)
    }

    /// Pointers made from parameters, and masks.
    fn views(&self, out: &mut String) {
        let steps = || self.0.iter().flatten();
        if steps().any(|s| s.form.place == Place::Low) {
            out.push_str("  %low = ptr_to_ptr %x : tile<ptr<i32>> -> tile<ptr<i16>>\n");
        }
        if steps().any(|s| s.form.place == Place::Twice) {
            out.push_str("  %row = reshape %x : tile<ptr<i32>> -> tile<1xptr<i32>>\n");
            out.push_str("  %twice = broadcast %row : tile<1xptr<i32>> -> tile<2xptr<i32>>\n");
        }
        if steps().any(|s| s.when == When::Never) {
            out.push_str("  %never = constant <i1: 0> : tile<i1>\n");
        }
        if steps().any(|s| s.wait == Wait::Either) {
            out.push_str("  %always = constant <i1: 1> : tile<i1>\n");
        }
    }
}

/// The blocks as arms.
fn arms(bodies: &[String], number: usize, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    let indented = |body: &str| body.lines().map(|l| format!("{pad}{l}\n")).collect::<String>();
    match bodies {
        [] => {}
        [last] => out.push_str(&indented(last)),
        [first, rest @ ..] => {
            let word = ["zero", "one", "two", "three"].get(number).copied().unwrap_or("zero");
            let _ = writeln!(
                out,
                "{pad}%is_{word} = cmpi equal %block, %{word}, signed : tile<i32> -> tile<i1>\n{pad}if %is_{word} {{"
            );
            out.push_str(&first.lines().map(|l| format!("{pad}  {l}\n")).collect::<String>());
            let _ = writeln!(out, "{pad}}} else {{");
            arms(rest, number + 1, depth + 1, out);
            let _ = writeln!(out, "{pad}}}");
        }
    }
}

/// Numbers values and names.
#[derive(Default)]
struct DraftNames {
    stored: [usize; 2],
    name: usize,
    reads: Vec<Vec<String>>,
}

/// Values and tokens that the instructions of a block have made so far.
#[derive(Default)]
struct Past {
    tokens: Vec<String>,
    read: Option<String>,
}

impl DraftNames {
    fn fresh(&mut self, kind: &str) -> String {
        self.name += 1;
        format!("%{kind}{}", self.name)
    }

    fn block(&mut self, steps: &[DraftStep]) -> String {
        self.reads.push(Vec::new());
        let (mut out, mut past) = (String::new(), Past::default());
        for step in steps {
            self.step(*step, &mut past, &mut out);
        }
        out
    }

    /// A value that no earlier store writes to that word.
    fn value(&mut self, place: Place) -> String {
        let stored = &mut self.stored[usize::from(place == Place::Y)];
        *stored += 1;
        let words = ["zero", "one", "two", "three", "four", "five", "six", "seven"];
        format!("%{}", words.get(*stored).copied().unwrap_or("seven"))
    }

    fn token(&mut self, wait: Wait, past: &Past, out: &mut String) -> String {
        let last = past.tokens.last().cloned().unwrap_or_default();
        let name = match wait {
            Wait::Nothing => return String::new(),
            Wait::Last => last,
            Wait::All => {
                let joined = self.fresh("j");
                let _ = writeln!(out, "{joined} = join_tokens {} : token", past.tokens.join(", "));
                joined
            }
            Wait::Either => {
                let (new, got) = (self.fresh("n"), self.fresh("e"));
                let _ = writeln!(
                    out,
                    "{new} = make_token : token\n{got} = if %always -> (token) {{\n  yield {new} : token\n}} else {{\n  \
                     yield {last} : token\n}}"
                );
                got
            }
        };
        format!(" token={name}")
    }

    fn mask(&mut self, when: When, past: &Past, out: &mut String) -> Option<String> {
        match when {
            When::Always => None,
            When::Never => Some("%never".into()),
            When::Read(value) => {
                let name = self.fresh("p");
                let word = ["zero", "one", "two"].get(value as usize).copied().unwrap_or("zero");
                let read = past.read.clone().unwrap_or_default();
                let _ = writeln!(out, "{name} = cmpi equal {read}, %{word}, signed : tile<i32> -> tile<i1>");
                Some(name)
            }
        }
    }

    fn step(&mut self, step: DraftStep, past: &mut Past, out: &mut String) {
        let DraftStep { form: Form { what, order, place }, wait, when } = step;
        let token = self.token(wait, past, out);
        let mask = self.mask(when, past, out);
        let (at, shape, elem) = match place {
            Place::X => ("%x", "", "i32"),
            Place::Y => ("%y", "", "i32"),
            Place::Low => ("%low", "", "i16"),
            Place::Twice => ("%twice", "2x", "i32"),
        };
        let (pointers, tile) = (format!("tile<{shape}ptr<{elem}>>"), format!("tile<{shape}{elem}>"));
        let (list, types) = match &mask {
            Some(mask) => (format!(", {mask}"), format!(", tile<{shape}i1>")),
            None => (String::new(), String::new()),
        };
        let read = step.form.reads().then(|| self.fresh("r"));
        let made = self.fresh("t");
        let target = read.clone().unwrap_or_default();
        let _ = match what {
            What::Load => {
                let (left, ty) = match mask {
                    Some(_) => (format!("{list}, %zero"), format!("{types}, {tile}")),
                    None => (String::new(), String::new()),
                };
                writeln!(
                    out,
                    "{target}, {made} = load_ptr_tko {order} {at}{left}{token} : {pointers}{ty} -> {tile}, token"
                )
            }
            What::Store | What::Copy => {
                let value = match (what, place, &past.read) {
                    (What::Copy, _, Some(read)) => read.clone(),
                    (_, Place::Twice, _) => {
                        let name = self.fresh("v");
                        let _ = writeln!(out, "{name} = iota : tile<2xi32>");
                        name
                    }
                    (_, Place::Low, _) => {
                        let name = self.fresh("v");
                        let _ = writeln!(out, "{name} = constant <i16: 9> : tile<i16>");
                        name
                    }
                    _ => self.value(place),
                };
                writeln!(
                    out,
                    "{made} = store_ptr_tko {order} {at}, {value}{list}{token} : {pointers}, {tile}{types} -> token"
                )
            }
            What::Add | What::Exchange => {
                let (mode, value) = match what {
                    What::Add => ("add", "%one".to_owned()),
                    _ => ("xchg", self.value(place)),
                };
                writeln!(
                    out,
                    "{target}, {made} = atomic_rmw_tko {order} {at}, {mode}, {value}{token} : {pointers}, {tile} -> {tile}, token"
                )
            }
            What::Fail => {
                writeln!(
                    out,
                    "{target}, {made} = atomic_cas_tko {order} {at}, %seven, %one{token} : {pointers}, {tile} -> {tile}, token"
                )
            }
        };
        if let Some(name) = read {
            if let (Some(names), true) = (self.reads.last_mut(), when != When::Never) {
                match place {
                    Place::Twice => names.extend([format!("{name}[0]"), format!("{name}[1]")]),
                    _ => names.push(name.clone()),
                }
            }
            if step.form.gives() {
                past.read = Some(name);
            }
        }
        past.tokens.push(made);
    }
}
