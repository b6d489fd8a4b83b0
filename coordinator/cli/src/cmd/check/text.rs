//! One answer for people, printed.

use moire_console::{exit, output};
use moire_shown::text::body;
use moire_verdict::answer::Answer;

/// Verdict and executions to stdout, or to stderr beside a patch; errors and advice of the static rules to stderr.
pub(super) fn print(answer: &Answer, beside_patch: bool) {
    answer.remarks.iter().for_each(|r| eprintln!("{r}"));
    let words = answer.verdicts.line();
    if answer.parts.is_empty() {
        return;
    }
    if beside_patch {
        eprint!("{}: {words}\n{}", answer.title(), body(answer));
    } else {
        print!("{}: ", answer.title());
        output::verdicts(exit::worst(answer.verdicts.codes()), &words);
        print!("\n{}", body(answer));
    }
}
