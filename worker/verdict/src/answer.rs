//! The answer of a judge for one file.

use crate::exit;
use crate::input::{Rejected, Source};
use crate::kernel::{Launched, Taken};
use crate::notes::Notes;
use crate::proof::Proof;
use crate::verdicts::{undecided, union, words_of};
use anyhow::Error;
use moire_cat::Model;
use moire_explore::judge::{Judgement, Verdict};
use moire_explore::search::Sample;

/// The answer for one file.
pub enum Answer<'m> {
    /// No program, or one that is statically illegal: every error.
    Rejected(Vec<Rejected>),
    /// Not read at all.
    Unread(String, Error),
    /// Explored, or not modelled.
    Judged(Box<Judged<'m>>),
}

/// A file that has verdicts.
pub struct Judged<'m> {
    /// The file.
    pub name: String,
    /// The model that it is judged under.
    pub model: &'m Model,
    /// Advice of the static rules.
    pub advice: Vec<Rejected>,
    /// Never none. The clusters of a launch that have nothing in common are explored apart.
    pub parts: Vec<Part>,
    /// Of a kernel.
    pub launch: Option<Launched>,
    /// What a litmus text leaves open, and is taken for granted.
    pub taken: Option<Taken>,
    /// What the command line says beside the launch, for the command that repeats the verdict.
    pub options: String,
    /// The settings of switches that change the verdicts.
    pub contested: Vec<Contest>,
    /// Of the operational engine, for a text with free loops.
    pub proof: Option<Box<Proof>>,
}

/// A program that was explored on its own.
pub struct Part {
    /// The program.
    pub source: Source,
    /// What is true of its executions.
    pub judgement: Judgement,
    /// The notes beside it.
    pub notes: Notes,
    /// Of random descents.
    pub sample: Option<Sample>,
    /// The command of the smaller launch that shows it, if it is none of the launch that the answer is about.
    pub launch: Option<String>,
}

/// A setting of one switch, and the verdicts it gives instead.
pub struct Contest {
    /// `SWITCH=VALUE`.
    pub setting: String,
    /// In words.
    pub verdicts: Vec<String>,
}

impl<'m> Answer<'m> {
    /// A verdict that no engine was asked for.
    pub fn unasked(source: Source, model: &'m Model, launch: Option<Launched>, verdict: Verdict) -> Self {
        Self::untried(source, model, launch, undecided(verdict))
    }

    /// A judgement on a program that was not explored.
    pub fn untried(source: Source, model: &'m Model, launch: Option<Launched>, judgement: Judgement) -> Self {
        let name = source.name.clone();
        let part = Part { source, judgement, notes: Notes::default(), sample: None, launch: None };
        Answer::Judged(Box::new(Judged {
            name,
            model,
            advice: Vec::new(),
            parts: vec![part],
            launch,
            taken: None,
            options: String::new(),
            contested: Vec::new(),
            proof: None,
        }))
    }

    /// The answer for a file that is no program.
    pub fn failed(file: &str, error: Error) -> Self {
        match error.downcast::<Rejected>() {
            Ok(rejected) => Answer::Rejected(vec![rejected]),
            Err(error) => Answer::Unread(file.to_owned(), error),
        }
    }

    /// The exit codes of the answer; with `strict`, what is wrong by the letter only counts.
    pub fn codes(&self, strict: bool) -> Vec<u8> {
        match self {
            Answer::Judged(judged) => {
                let letter = strict && judged.parts.iter().any(|p| p.notes.letter_only());
                let contested = (letter || !judged.contested.is_empty()).then_some(exit::FINDING);
                judged.verdicts().iter().map(Verdict::exit_code).chain(contested).collect()
            }
            _ => vec![exit::USAGE],
        }
    }
}

impl Answer<'_> {
    /// The verdicts, and the name of what they are about.
    pub fn row(&self) -> (String, String) {
        match self {
            Answer::Judged(judged) => {
                let words: Vec<&str> = judged.verdicts().iter().map(Verdict::word).collect();
                (words.join(", "), judged.title())
            }
            Answer::Rejected(errors) => {
                ("rejected".to_owned(), errors.first().map_or(String::new(), |e| e.file.clone()))
            }
            Answer::Unread(file, _) => ("rejected".to_owned(), file.clone()),
        }
    }
}

impl Judged<'_> {
    /// The file, with the kernel where the module has several.
    pub fn title(&self) -> String {
        match &self.launch {
            Some(launch) if launch.several => format!("{} ({})", self.name, launch.entry),
            _ => self.name.clone(),
        }
    }

    /// The verdicts of all parts. What the launch does not run bounds a clean answer, and that of a launch that was refused.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let all = union(self.parts.iter().map(|p| &p.judgement));
        let coverage = [Verdict::Bounded("coverage".to_owned())];
        let missed = self.launch.as_ref().filter(|l| !l.uncovered.is_empty());
        match missed.map(|launch| launch.coverage_of.is_some()) {
            Some(_) if matches!(all[..], [Verdict::Clean(_)]) => coverage.into(),
            Some(true) if all.iter().all(|v| v.exit_code() != exit::FINDING) => {
                all.into_iter().chain(coverage).collect()
            }
            _ => all,
        }
    }

    /// The same in words.
    pub fn words(&self) -> Vec<String> {
        words_of(&self.verdicts())
    }

    /// The clusters of a part, where there are several parts, or the smaller launch that it belongs to.
    pub fn part_title(&self, part: usize) -> Option<String> {
        if let Some(command) = self.parts.get(part).and_then(|p| p.launch.as_ref()) {
            return Some(format!("in a smaller launch, {command}"));
        }
        let clusters = self.launch.as_ref()?.parts.get(part).filter(|_| self.parts.len() > 1)?;
        let one = |c: &Vec<u32>| c.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
        Some(format!("clusters {}", clusters.iter().map(one).collect::<Vec<_>>().join(", ")))
    }
}
