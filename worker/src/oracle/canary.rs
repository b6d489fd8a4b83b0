//! Canaries: planted bugs the oracles must see, on the campaign's own items.
//!
//! Each is the shipped `ptx` model with one thing wrong in its text. A canary is caught on an item when the explorer
//! under the wrong text and under the right one do not tell the same.

use super::answer::explored;
use crate::job::CanaryResult;
use moire_cat::{Library, Model, Variants, builtin};
use moire_program::ir::Program;
use std::sync::OnceLock;

/// A planted bug: in `file`, `from` (which stands there once) is read as `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Its name.
    pub name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const fn canary(name: &'static str, file: &'static str, from: &'static str, to: &'static str) -> Canary {
    Canary { name, file, from, to }
}

/// All planted bugs.
pub const CANARIES: [Canary; 12] = [
    canary("release-fence-dropped", "lib-ptx", "  | [MF & (REL | ACQ_REL)]; po; [strong-write]", ""),
    canary("acquire-fence-dropped", "lib-ptx", "  | [strong-read]; po; [MF & (ACQ | ACQ_REL)]", ""),
    canary("acquire-load-dropped", "lib-ptx", "    [strong-read & ACQ]\n", "    0\n"),
    canary("rmw-chain-dropped", "lib-ptx", "observed; (rmw; observed)*", "observed"),
    canary("red-heads-acquire", "lib-ptx", "let strong-read = (R \\ RED) &", "let strong-read = R &"),
    canary(
        "scopes-ignored",
        "lib-ptx",
        "((po | po^-1) | sr)",
        "((po | po^-1) | sr | ([strong]; (_ * _); [strong]))",
    ),
    canary("barrier-without-order", "lib-ptx", "sync_fence | syncbar |", "sync_fence |"),
    canary(
        "atomicity-dropped",
        "lib-ptx",
        "empty rmw & ((morally-strong & fr); (morally-strong & co)) as Atomicity-2",
        "",
    ),
    canary(
        "thin-air-allowed",
        "lib-ptx",
        "acyclic rf | dependency as NoThinAir",
        "acyclic rf | rmw-dependency as NoThinAir",
    ),
    canary(
        "coherence-dropped",
        "lib-ptx-axioms",
        "empty (cause & overlapping-writes) \\ co as Coherence",
        "",
    ),
    canary("read-before-write-dropped", "lib-ptx-axioms", "irreflexive fr; cause as CausalityFR", ""),
    canary(
        "sc-fence-as-acq-rel",
        "lib-ptx",
        "let sync = sync-pattern | sync_fence |",
        "let sync = sync-pattern |",
    ),
];

impl Canary {
    /// The `ptx` model with this bug.
    pub fn model(&self) -> Result<Model, String> {
        struct Mutant<'a>(&'a Canary);
        impl Library for Mutant<'_> {
            fn open(&self, name: &str) -> Option<String> {
                let text = builtin::Shipped.open(name)?;
                let mine = name.strip_suffix(".cat").unwrap_or(name) == self.0.file;
                Some(if mine { self.0.plant(&text) } else { text })
            }
        }
        let text = builtin::FILES.iter().find(|(n, _)| *n == "ptx").map_or("", |(_, t)| *t);
        moire_cat::load("ptx", text, &Mutant(self), &Variants::new())
            .map_err(|e| format!("{}: {e}", self.name))
    }

    fn plant(&self, text: &str) -> String {
        let strong = if self.to.contains("[strong]") { "let strong = (M \\ WEAK) | MF\n" } else { "" };
        let (head, tail) = text.split_once("let ").unwrap_or((text, ""));
        let text = if strong.is_empty() { text.to_owned() } else { format!("{head}{strong}let {tail}") };
        text.replacen(self.from, self.to, 1)
    }
}

/// The right model and all wrong ones, loaded once.
fn models() -> &'static (Result<Model, String>, Vec<Result<Model, String>>) {
    static MODELS: OnceLock<(Result<Model, String>, Vec<Result<Model, String>>)> = OnceLock::new();
    MODELS.get_or_init(|| {
        let right = builtin::load("ptx", &Variants::new()).map_err(|e| e.to_string());
        (right, CANARIES.iter().map(Canary::model).collect())
    })
}

/// Runs one canary on one item; nothing when an engine abstains.
pub(super) fn run(program: &Program, canary: &Canary) -> Option<CanaryResult> {
    let (right, wrong) = models();
    let wrong = CANARIES.iter().position(|c| c == canary).and_then(|i| wrong.get(i))?;
    let right = explored(program, right.as_ref().ok()?).ok()?;
    let wrong = explored(program, wrong.as_ref().ok()?).ok()?;
    Some(CanaryResult { name: canary.name.into(), caught: right.leaves != wrong.leaves })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_canary_stands_in_the_text_once_and_loads() {
        for canary in &CANARIES {
            let text = builtin::FILES.iter().find(|(n, _)| *n == canary.file).expect("a shipped file").1;
            assert_eq!(text.matches(canary.from).count(), 1, "{}", canary.name);
            canary.model().expect("loads");
        }
    }
}
