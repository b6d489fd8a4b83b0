//! Answers as they come: printed, written into files, counted for the exit code.
//!
//! Contract: text and JSON are printed answer by answer, SARIF and JUnit once at the end, and so are the files of `--report`. What is
//! known of a problem is set before anything is printed.

use super::args::Check;
use super::files::Task;
use super::known::Known;
use super::{junit, sarif, text, witness};
use anyhow::{Context, Result};
use moire_console::exit;
use moire_console::output::Format;
use moire_coordinator::clock::unix_ms;
use moire_shown::text as shown;
use moire_verdict::answer::Answer;
use moire_verdict::mending::Advice;
use moire_verdict::problems::problems;

pub(super) struct Output<'a> {
    args: &'a Check,
    known: Known,
    /// A table of all answers is printed behind them.
    many: bool,
    kept: Vec<Answer>,
    rows: Vec<(String, String)>,
    codes: Vec<u8>,
    patches: String,
}

impl<'a> Output<'a> {
    /// # Errors
    /// The baseline cannot be read.
    pub(super) fn new(args: &'a Check, many: bool) -> Result<Self> {
        let known = Known::new(args.baseline.as_deref(), unix_ms())?;
        let (kept, rows, codes, patches) = (Vec::new(), Vec::new(), Vec::new(), String::new());
        Ok(Output { args, known, many, kept, rows, codes, patches })
    }

    /// How many answers were taken.
    pub(super) fn taken(&self) -> usize {
        self.rows.len()
    }

    /// # Errors
    /// Something cannot be written.
    pub(super) fn take(&mut self, task: &Task, mut answer: Answer) -> Result<()> {
        answer.problems = problems(&answer);
        if let Ok(file) = &task.file {
            let text = str::from_utf8(&file.bytes).unwrap_or_default();
            let (said, code) = self.known.about(&mut answer, &file.path, text);
            said.iter().for_each(|line| eprintln!("{line}"));
            self.codes.extend(code);
        }
        self.codes.extend(answer.codes(self.args.strict));
        self.rows.push((shown::kinds(&answer), answer.title()));
        if let Some(folder) = &self.args.witness {
            witness::write(folder, &answer)?;
        }
        if self.args.fix.is_some() {
            // Parts of one launch have one text.
            let mut advice = answer.parts.iter().filter_map(|p| p.advice.as_ref());
            match advice.find_map(|a| a.patch.as_ref()) {
                Some(patch) => self.patches += patch,
                None => unpatched(&answer),
            }
        }
        match self.args.format {
            Format::Text => text::print(&answer, self.args.patch_to_stdout()),
            Format::Json => println!("{}", serde_json::to_string(&answer)?),
            Format::Sarif | Format::Junit => {}
        }
        if matches!(self.args.format, Format::Sarif | Format::Junit) || !self.args.report.is_empty() {
            self.kept.push(answer);
        }
        Ok(())
    }

    /// Prints and writes what has all answers; the exit code. `left` tasks were not judged, and `notes` say what a record has not.
    ///
    /// # Errors
    /// Something cannot be written.
    pub(super) fn end(mut self, left: usize, notes: &[String]) -> Result<u8> {
        self.codes.extend(interrupted(left));
        self.known.unused().iter().chain(notes).for_each(|note| eprintln!("{note}"));
        self.codes.extend((!notes.is_empty()).then_some(exit::INCOMPLETE));
        match &self.args.fix {
            Some(_) if self.args.patch_to_stdout() => print!("{}", self.patches),
            Some(to) => {
                std::fs::write(to, &self.patches).with_context(|| format!("cannot write {}", to.display()))?
            }
            None => {}
        }
        match self.args.format {
            Format::Text if self.args.patch_to_stdout() || !self.many => {}
            Format::Text => print!("{}", shown::table(&self.rows)),
            Format::Json => {}
            Format::Sarif | Format::Junit => println!("{}", self.document(self.args.format)?),
        }
        for report in &self.args.report {
            let file = &report.file;
            let text = self.document(report.format)?;
            std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(exit::worst(self.codes))
    }

    /// All answers in one format.
    fn document(&self, format: Format) -> Result<String> {
        Ok(match format {
            Format::Text => {
                let table = if self.many { shown::table(&self.rows) } else { String::new() };
                self.kept.iter().map(shown::page).collect::<String>() + &table
            }
            Format::Json => {
                let line = |a: &Answer| serde_json::to_string(a).map(|line| line + "\n");
                self.kept.iter().map(line).collect::<serde_json::Result<String>>()?
            }
            Format::Sarif => sarif::sarif(&self.kept, self.args.baseline.is_some()).to_string(),
            Format::Junit => junit::junit(&self.kept, self.args.strict)?,
        })
    }
}

/// Says how many tasks an interrupt left, and the exit code of that.
fn interrupted(left: usize) -> Option<u8> {
    let left = Some(left).filter(|left| *left > 0)?;
    eprintln!("interrupted: {} not judged", moire_coordinator::many(left, "file or kernel"));
    Some(exit::INCOMPLETE)
}

/// Says why there is no patch.
fn unpatched(answer: &Answer) {
    let why = match answer.parts.iter().find_map(|part| part.advice.as_ref()) {
        None => "nothing that edits of the synchronisation could mend was found".to_owned(),
        Some(Advice { none: Some(why), .. }) => why.clone(),
        Some(mended) => format!("the edits cannot be written into this text: {}", mended.edits.join("; ")),
    };
    eprintln!("{}: no patch: {why}", answer.file);
}
