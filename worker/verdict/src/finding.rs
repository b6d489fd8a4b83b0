//! Findings as an answer holds them: the rule, what the instructions do, and where.

use crate::naming::accesses;
use crate::told;
use moire_execution::leaf;
use moire_explore::judge::{Verdict, flag_verdict};
use moire_program::ir::Program;
use schemars::JsonSchema;
use serde::Serialize;

/// Something that is wrong in some execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The rule that is broken.
    pub kind: String,
    /// The word of the verdict.
    pub verdict: &'static str,
    /// What the instructions do, and to which memory, where it is known.
    pub accesses: Option<String>,
    /// The instructions, in order. None if the rule names no events.
    pub places: Vec<Place>,
    /// The order that is missing, of a race between two instructions. What is to do, of another rule.
    pub missing: Option<String>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Place {
    /// The thread.
    pub thread: String,
    /// The line, from 1; 0 when generated.
    pub line: u32,
}

impl Finding {
    pub(crate) fn new(program: &Program, finding: &leaf::Finding) -> Self {
        let name = |t: u16| program.threads.get(usize::from(t)).map_or("?", |t| t.name.as_str());
        let place = |p: &leaf::Place| Place { thread: name(p.thread).to_owned(), line: p.line };
        Finding {
            kind: finding.flag.clone(),
            verdict: flag_verdict(&finding.flag).word(),
            accesses: accesses(program, finding),
            places: finding.places.iter().map(place).collect(),
            missing: missing(finding),
        }
    }

    /// The lines, in order; a line that two of the instructions have stands twice.
    pub fn lines(&self) -> Vec<u32> {
        let mut out: Vec<u32> = self.places.iter().map(|p| p.line).collect();
        out.sort_unstable();
        out
    }
}

/// The order that is missing between the two accesses of a race, and what is to do where another rule is broken.
fn missing(finding: &leaf::Finding) -> Option<String> {
    if flag_verdict(&finding.flag) != Verdict::Race {
        return told::rule(&finding.flag).map(|rule| rule.mend.to_owned());
    }
    let [a, b] = finding.places.as_slice() else { return None };
    let (first, last) = (a.line.min(b.line), a.line.max(b.line));
    Some(match first == last {
        true => format!("an order between two runs of line {first}"),
        false => format!("an order between line {first} and line {last}"),
    })
}
