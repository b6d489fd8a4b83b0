//! A census compared with the book: each row is a form and what ptxas says of it, target by target.
//!
//! Columns, separated by tabs: mnemonic, form, origin, one letter a target of [`TARGETS`] (`A`: accepted at the newest version),
//! least version. Lines that begin with `#` are comments. Registers are declared by their first letter ([`Declared`]).

mod module;
mod neighbours;

pub use module::{NEWEST, POISON, VERSIONS, alone, introduced, module, target};
pub use neighbours::{draw, neighbours};

use crate::book::Instr;
use crate::kinds::Space;
use crate::operand::{Class, Known, Reg};
use crate::text::{Env, Names, Refusal};
use std::borrow::Cow;

/// A census of our own: drawn neighbours of forms of the book, with the answers of ptxas 13.5.
pub const OWN: &str = include_str!("../../forms.tsv");

/// The targets of a census.
pub const TARGETS: [u16; 7] = [80, 90, 100, 103, 107, 110, 120];

/// A form, and what ptxas says.
#[derive(Clone, Copy, Debug)]
pub struct Form<'t> {
    /// What it is counted under.
    pub mnemonic: &'t str,
    /// The instruction.
    pub text: &'t str,
    /// Which of [`TARGETS`] accept it.
    pub targets: [bool; 7],
    /// The least version that does: 83 is 8.3. 0: not known.
    pub version: u16,
}

impl<'t> Form<'t> {
    /// Reads a line. `None`: a comment, or no row.
    #[must_use]
    pub fn of(line: &'t str) -> Option<Form<'t>> {
        let mut columns = line.split('\t').filter(|_| !line.starts_with('#'));
        let (mnemonic, text, _) = (columns.next()?, columns.next()?, columns.next()?);
        let letters = columns.next()?.as_bytes();
        let version = columns.next().map(|v| v.replace('.', "")).and_then(|v| v.parse().ok()).unwrap_or(0);
        let targets = std::array::from_fn(|i| letters.get(i) == Some(&b'A'));
        Some(Form { mnemonic, text, targets, version })
    }

    /// Whether any target accepts it.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.targets.contains(&true)
    }

    /// Whether a version is the least one: that of the form, or one that the census did not ask before it.
    #[must_use]
    pub fn dated(&self, version: u16) -> bool {
        const NOT_ASKED: [(u16, u16); 6] = [(72, 74), (73, 74), (76, 78), (77, 78), (82, 83), (85, 86)];
        self.version == version || NOT_ASKED.contains(&(version, self.version))
    }

    /// Reads it with the book, and compares.
    #[must_use]
    pub fn compare(&self) -> Compared {
        let mut names = Declared::default();
        let read = Instr::read(self.text, &mut names);
        let Ok(instr) = &read else { return Compared { read, ..Compared::default() } };
        let printed = instr.print(&names);
        let targets = TARGETS.map(|sm| instr.on(sm));
        Compared {
            printed: same(&printed, self.text) && Instr::read(&printed, &mut names).as_ref() == Ok(instr),
            targets,
            version: instr.version(),
            text: printed,
            read,
        }
    }
}

/// What the book says of a form.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What was read.
    pub read: Result<Instr, Refusal>,
    /// What is printed.
    pub text: String,
    /// Whether that has the same words and operands, and is read as the same instruction.
    pub printed: bool,
    /// The targets that have it.
    pub targets: [bool; 7],
    /// Its least version.
    pub version: u16,
}

impl Default for Compared {
    fn default() -> Self {
        let refusal = Refusal { at: 0, message: String::new(), hint: None };
        Compared { read: Err(refusal), text: String::new(), printed: false, targets: [false; 7], version: 0 }
    }
}

impl Compared {
    /// Whether it is an instruction of some target.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.read.is_ok() && self.targets.contains(&true)
    }
}

/// Whether two texts have the same words in any order, and the same operands in theirs.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    let parts = |text: &str| {
        let (head, tail) = text.split_once(' ').unwrap_or((text, ""));
        let mut words: Vec<String> = head.split('.').map(str::to_owned).collect();
        words.sort_unstable();
        (words, operands(tail))
    };
    parts(a) == parts(b)
}

/// Operands as tokens, numbers by value.
fn operands(text: &str) -> Vec<String> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "_%.$-".contains(c);
    let mut out = Vec::new();
    let mut token = String::new();
    for c in text.chars().chain([' ']) {
        if inside(c) {
            token.push(c);
            continue;
        }
        if !token.is_empty() {
            out.push(number(&std::mem::take(&mut token)));
        }
        if !c.is_whitespace() {
            out.push(c.to_string());
        }
    }
    out
}

fn number(token: &str) -> String {
    let hex = token.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
    hex.map_or_else(|| token.to_owned(), |n| n.cast_signed().to_string())
}

/// The declarations of a census: `%p1` is a predicate, `%b1` has 8 bits, `%h1` 16, `%r1` 32, `%f1` is `.f32`, `%d1` has 64,
/// `%g1` is `.f64`, `%q1` has 128; `sm`, `lm`, `cm`, `gm` and `p0` are variables. Indices are given in the order of the text.
#[derive(Clone, Debug, Default)]
pub struct Declared(pub Vec<String>);

impl Declared {
    fn index(&mut self, name: &str) -> u32 {
        let at = self.0.iter().position(|n| n == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        });
        u32::try_from(at).expect("a form is short")
    }

    fn name(&self, index: u32) -> Cow<'_, str> {
        self.0[index as usize].as_str().into()
    }
}

fn class(name: &str) -> Option<Class> {
    let (bits, float) = match name.strip_prefix('%')?.chars().next()? {
        'p' => (1, false),
        'b' => (8, false),
        'h' => (16, false),
        'r' => (32, false),
        'f' => (32, true),
        'd' => (64, false),
        'g' => (64, true),
        'q' => (128, false),
        _ => return None,
    };
    Some(Class { bits, float, integer: false })
}

impl Env for Declared {
    fn resolve(&mut self, name: &str) -> Option<Known> {
        let space = match name {
            "sm" => Space::SharedCta,
            "lm" => Space::Local,
            "cm" => Space::Const,
            "gm" => Space::Global,
            "p0" => Space::Param,
            "tx" | "sf" | "sp" => return Some(Known::Symbol(self.index(name), None)),
            _ => {
                let class = class(name)?;
                return Some(Known::Reg(Reg { index: self.index(name), class }));
            }
        };
        Some(Known::Symbol(self.index(name), Some(space)))
    }
    fn label(&mut self, name: &str) -> u32 {
        self.index(name)
    }
}

impl Names for Declared {
    fn register(&self, index: u32) -> Cow<'_, str> {
        self.name(index)
    }
    fn symbol(&self, index: u32) -> Cow<'_, str> {
        self.name(index)
    }
    fn label(&self, index: u32) -> Cow<'_, str> {
        self.name(index)
    }
}
