//! Parameters without a value that the run ahead depends on, and what they decide.

use super::word::Pointer;
use crate::Refusal;
use crate::ptx::{Kernel, What};

/// A parameter, or a field of one, whose value the kernel cannot be run ahead without, or the words behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its place in the list of parameters.
    pub index: u16,
    /// First byte of the field; 0 for a whole parameter.
    pub at: u32,
    /// The words behind it, all that have no number of their own.
    pub behind: bool,
    /// What its value decides first.
    pub decides: String,
}

impl Need {
    /// A parameter, or a field of one.
    pub fn of((index, at): (u16, u32)) -> Need {
        Need { index, at, behind: false, decides: String::new() }
    }

    /// The words behind a pointer.
    pub fn behind((index, at): Pointer) -> Need {
        Need { behind: true, ..Need::of((index, at)) }
    }

    /// Whether it is the same, whatever it decides.
    pub(super) fn is(&self, other: &Need) -> bool {
        (self.index, self.at, self.behind) == (other.index, other.at, other.behind)
    }

    /// As the option takes it.
    pub fn place(&self) -> String {
        placed((self.index, self.at)) + if self.behind { "[]" } else { "" }
    }
}

/// A parameter, or a field of one, as the option takes it.
pub fn placed((index, at): (u16, u32)) -> String {
    if at == 0 { index.to_string() } else { format!("{index}+{at}") }
}

/// The refusal of a launch, and the way on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) refusal: Refusal,
    /// The parameter whose value would lead on.
    pub(super) need: Option<Need>,
}

/// What has no value as a reason names it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    need: Need,
    pub(super) text: String,
}

impl Named {
    pub(super) fn new(kernel: &Kernel, need: Need) -> Self {
        let name = kernel.params.get(usize::from(need.index)).map_or("", |p| p.name.as_str());
        // The end of it, because compilers put the name of the kernel in front.
        let start = name.char_indices().rev().nth(39).map_or(0, |(at, _)| at);
        let (what, place) = (if need.behind { "a word behind " } else { "" }, placed((need.index, need.at)));
        let text = format!(
            "{what}parameter {place} ({}); give it with --param {}=VALUE",
            &name[start..],
            need.place()
        );
        Named { need, text }
    }

    /// The need of a refusal that names this parameter.
    pub(super) fn need(&self, kernel: &Kernel, refusal: &Refusal) -> Option<Need> {
        let Refusal::Abstained { what, line } = refusal else { return None };
        let (before, _) = what.split_once(&self.text)?;
        Some(Need { decides: decides(kernel, *line, before), ..self.need.clone() })
    }
}

/// What a value decides that the statement in this line depends on. `before` are the words that lead to the parameter.
fn decides(kernel: &Kernel, line: u32, before: &str) -> String {
    let mut here = kernel.body.iter().enumerate().filter(|(_, s)| s.line == line);
    let place = |pc: usize| kernel.body.get(pc).map_or(line, |s| s.line);
    let branch = here.find_map(|(pc, s)| match s.what {
        What::Branch { target } if s.guard.is_some() => Some((pc, target)),
        _ => None,
    });
    match branch {
        Some((pc, target)) if target <= pc => {
            format!("how often the loop in lines {} to {line} runs", place(target))
        }
        Some((_, target)) => format!("whether line {line} branches to line {}", place(target)),
        None => {
            let words = before.trim_end().trim_end_matches("that depends on").trim_end();
            format!("{words} (line {line})")
        }
    }
}
