//! Parameters without a value that the run ahead depends on, and what they decide.

use crate::Refusal;
use crate::ptx::{Kernel, Param, What};

/// A parameter, or a field of one, whose value the kernel cannot be run ahead without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its place in the list of parameters.
    pub index: u16,
    /// First byte of the field; 0 for a whole parameter.
    pub at: u32,
    /// What its value decides first.
    pub decides: String,
}

/// The refusal of a launch, and the way on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) refusal: Refusal,
    /// The parameter whose value would lead on.
    pub(super) need: Option<Need>,
}

/// A parameter as a reason names it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    index: u16,
    at: u32,
    pub(super) text: String,
}

impl Named {
    pub(super) fn new(param: Option<&Param>, index: u16, at: u32) -> Self {
        let name = param.map_or("", |p| p.name.as_str());
        // The end of it, because compilers put the name of the kernel in front.
        let start = name.char_indices().rev().nth(39).map_or(0, |(at, _)| at);
        let place = if at == 0 { index.to_string() } else { format!("{index}+{at}") };
        let text = format!("parameter {place} ({}); give it with --param {place}=VALUE", &name[start..]);
        Named { index, at, text }
    }

    /// The need of a refusal that names this parameter.
    pub(super) fn need(&self, kernel: &Kernel, refusal: &Refusal) -> Option<Need> {
        let Refusal::Abstained { what, line } = refusal else { return None };
        let (before, _) = what.split_once(&self.text)?;
        Some(Need { index: self.index, at: self.at, decides: decides(kernel, *line, before) })
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
