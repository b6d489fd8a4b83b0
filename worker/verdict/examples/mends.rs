//! A table of advice: for each program its verdicts, the edits, and what the text with these edits is judged to be, as it
//! stands and under each contested reading.
//!
//! `cargo run --release -p moire-verdict --example mends -- [--redundant] FILES`. One line a program, columns apart by tabs.

use anyhow::{Context, Result};
use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{Judgement, Questions, judge};
use moire_explore::search::Sample;
use moire_verdict::answer::Answer;
use moire_verdict::asked::Asked;
use moire_verdict::input::{File, Source};
use moire_verdict::judging::Judge;
use moire_verdict::kernel::{Wanted, is_compiled};
use moire_verdict::question::{Host, Library, Question};
use rustix::time::{ClockId, clock_gettime};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// Processor time for the explanations of one program.
const TIME: Duration = Duration::from_secs(20);

struct Here(Duration);

/// Processor time of this thread.
fn used() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

impl Host for Here {
    fn judge(
        &self,
        source: &Source,
        (_, model): (&str, &Model),
        limits: &Limits,
        questions: Questions,
        _: bool,
    ) -> Result<(Judgement, Option<Sample>)> {
        Ok((judge(&source.program, model, limits, questions), None))
    }

    fn more(&self) -> bool {
        used().saturating_sub(self.0) < TIME
    }

    fn doubt(&self, _: bool) {}

    fn forget(&self) {}
}

fn load(name: &str, switches: &Variants) -> Result<Model> {
    moire_models::load(name, switches).with_context(|| format!("the model {name}"))
}

fn beside(_: &Path) -> Option<String> {
    None
}

fn answer(file: &File, question: &Question) -> Result<Answer> {
    let library = Library { load, beside };
    let asked = Asked::new(question, "ptx", is_compiled(file), library)?;
    let launch = Wanted::default();
    Ok(Judge { question, launch, asked: &asked, host: &Here(used()) }.file(file))
}

/// The file with a patch of unified form, whose lines of context are those of the file.
fn patched(text: &str, patch: &str) -> Option<String> {
    let old: Vec<&str> = text.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::new(), 0);
    for line in patch.split_inclusive('\n').skip(2) {
        if let Some(range) = line.strip_prefix("@@ -") {
            let start: usize = range.split([',', ' ']).next()?.parse().ok()?;
            let start = start.saturating_sub(1);
            out.extend(old.get(at..start)?.iter().copied());
            at = start;
        } else if let Some(new) = line.strip_prefix('+') {
            out.push_str(new);
        } else if line.starts_with('-') {
            at += 1;
        } else if line.starts_with(' ') {
            out.push_str(old.get(at)?);
            at += 1;
        }
    }
    out.extend(old.get(at..)?.iter().copied());
    Some(out)
}

fn main() -> Result<()> {
    let mut question = Question { after_finding: Duration::from_secs(10), ..Question::default() };
    for name in std::env::args().skip(1) {
        if name == "--redundant" {
            question.redundant = true;
            continue;
        }
        let bytes = std::fs::read(&name).with_context(|| name.clone())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let file = File::new(Path::new(&name), &name, bytes, None);
        let first = answer(&file, &question)?;
        let mut cells = vec![name.clone(), first.verdicts.words().join(", ")];
        let advice = first.parts.iter().find_map(|p| p.advice.as_ref());
        if let Some(advice) = advice {
            let weakest = if advice.weakest { "weakest: " } else { "" };
            cells
                .push(advice.none.clone().unwrap_or_else(|| format!("{weakest}{}", advice.edits.join("; "))));
        }
        if let Some(fixed) = advice.and_then(|a| a.patch.as_ref()).and_then(|p| patched(&text, p)) {
            let contest = Question { contest: true, redundant: false, ..question.clone() };
            let again = answer(&file.with(&fixed), &contest)?;
            cells.push(again.verdicts.words().join(", "));
            let readings =
                again.contested.iter().map(|c| format!("{}: {}", c.setting, c.verdicts.words().join(", ")));
            cells.push(readings.collect::<Vec<_>>().join("; "));
        }
        for spare in first.parts.iter().filter_map(|p| p.redundant.as_ref()) {
            cells.push(format!("alone: {:?}; together: {:?}; {:?}", spare.alone, spare.together, spare.none));
        }
        writeln!(std::io::stdout(), "{}", cells.join("\t"))?;
    }
    Ok(())
}
