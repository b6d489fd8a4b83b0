//! `ptxas`: whether it accepts a module.

use crate::crash::death;
use crate::find::{ToolError, Unusable, candidates, environment, first};
use crate::run::{Limits, RunError, run};
use crate::version::Version;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The release whose answers the static rules repeat.
const RULES_RELEASE: (u32, u32) = (13, 5);
/// Most lines of a refusal that are kept.
const MAX_LINES: usize = 8;

/// An assembler whose version is known.
#[derive(Clone, Debug)]
pub struct Ptxas {
    path: PathBuf,
    version: Version,
    limits: Limits,
}

/// The assembler's answer about a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The module is assembled.
    Accepted,
    /// The module is refused; the first diagnostics.
    Refused(Vec<String>),
    /// No judgement: the assembler ended without a diagnostic, or by a signal.
    Failed(String),
    /// The assembler died, and the name of its death ([`death`]).
    Died(String),
}

/// What the assembler says about a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, from 1; 0: of no line of the module.
    pub line: usize,
    /// Whether nothing behind it was read.
    pub fatal: bool,
    /// What is wrong.
    pub message: String,
}

impl Diagnostic {
    /// `ptxas module.ptx, line 19; error   : message`
    fn of(line: &str) -> Option<Diagnostic> {
        let (at, message) = line.split_once(" : ").map(|(at, message)| (at.trim_end(), message))?;
        let error = at.ends_with("error") || at.ends_with("fatal");
        let number = at.split_once("module.ptx, line ").and_then(|(_, rest)| rest.split_once(';'));
        let line = number.map_or(Some(0), |(number, _)| number.parse().ok())?;
        let fatal = at.ends_with("fatal") || message.starts_with("Parsing error");
        (error && !message.contains("aborted")).then(|| Diagnostic {
            line,
            fatal,
            message: message.to_owned(),
        })
    }
}

impl Answer {
    /// Whether the module was accepted; `None` if the assembler gave no judgement.
    pub fn accepted(&self) -> Option<bool> {
        match self {
            Answer::Accepted => Some(true),
            Answer::Refused(_) => Some(false),
            Answer::Failed(_) | Answer::Died(_) => None,
        }
    }
}

impl Ptxas {
    /// The first assembler that works, of the places of [`crate::find::candidates`].
    ///
    /// # Errors
    /// The places that were tried; none where no file was found at all.
    pub fn find(venv: Option<&Path>) -> Result<Ptxas, Vec<Unusable>> {
        first("ptxas", venv, Self::at)
    }

    /// Every assembler that works, one of each release, newest first.
    pub fn all() -> Vec<Ptxas> {
        let found =
            candidates("ptxas", None, &environment).into_iter().filter_map(|c| Ptxas::at(&c.path).ok());
        let all: BTreeMap<Version, Ptxas> = found.map(|p| (p.version(), p)).collect();
        all.into_values().rev().collect()
    }

    /// The assembler in that file.
    ///
    /// # Errors
    /// It does not run, or prints no version.
    pub fn at(path: &Path) -> Result<Ptxas, ToolError> {
        let mut command = Command::new(path);
        command.arg("--version");
        let out = run(command, Limits::default())?;
        let version = Version::parse(&out.stdout).ok_or(ToolError::NoVersion)?;
        Ok(Ptxas { path: path.to_owned(), version, limits: Limits::default() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether it is at least the release whose answers the static rules repeat.
    pub fn answers_for_the_rules(&self) -> bool {
        (self.version.major, self.version.minor) >= RULES_RELEASE
    }

    /// Assembles the text of a module for an architecture such as `sm_100a`, without optimisation.
    ///
    /// # Errors
    /// The assembler could not be run, or not to its end.
    pub fn assemble(&self, module: &str, target: &str) -> Result<Answer, RunError> {
        let folder = tempfile::tempdir()?;
        Ok(self.object(folder.path(), module, target, "-O0")?.0)
    }

    /// Every diagnostic of a module, with its line; none if it is assembled. A crash has one without a line.
    ///
    /// # Errors
    /// The assembler could not be run, or not to its end.
    pub fn diagnostics(&self, module: &str, target: &str) -> Result<Vec<Diagnostic>, RunError> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("module.ptx"), module)?;
        let mut command = Command::new(&self.path);
        command.current_dir(folder.path()).args(["-O0", &format!("-arch={target}"), "-o", "module.cubin"]);
        command.arg("module.ptx");
        let out = run(command, Limits { output: 4 << 20, ..self.limits })?;
        if out.status.success() {
            return Ok(Vec::new());
        }
        let said = out.stderr.lines().chain(out.stdout.lines());
        let found: Vec<Diagnostic> = said.filter_map(Diagnostic::of).collect();
        let crash = || vec![Diagnostic { line: 0, fatal: true, message: out.status.to_string() }];
        Ok(if found.is_empty() { crash() } else { found })
    }

    /// Assembles at a level of optimisation, in the caller's folder; also returns the path of the object.
    pub(crate) fn object(
        &self,
        folder: &Path,
        module: &str,
        target: &str,
        level: &str,
    ) -> Result<(Answer, PathBuf), RunError> {
        let (source, object) = (folder.join("module.ptx"), folder.join("module.cubin"));
        std::fs::write(&source, module)?;
        let mut command = Command::new(&self.path);
        command.current_dir(folder).arg(level).arg(format!("-arch={target}"));
        command.arg("-o").arg(&object).arg(&source);
        let out = run(command, self.limits)?;
        if out.status.success() && object.is_file() {
            return Ok((Answer::Accepted, object));
        }
        let said = out.stderr.lines().chain(out.stdout.lines());
        let wrong = |l: &&str| ["error", "fatal"].iter().any(|w| l.contains(w)) && !l.contains("aborted");
        let lines: Vec<String> = said.filter(wrong).take(MAX_LINES).map(diagnostic).collect();
        if let Some(name) = death(out.status, out.stderr.lines().chain(out.stdout.lines())) {
            return Ok((Answer::Died(name), object));
        }
        let answer = match out.status.code() {
            // A crash of the assembler is no judgement of the module.
            Some(_) if !lines.is_empty() && !lines[0].contains("Internal") => Answer::Refused(lines),
            _ => {
                let first = lines.into_iter().next().unwrap_or_default();
                Answer::Failed(format!("{}: {first}", out.status))
            }
        };
        Ok((answer, object))
    }
}

/// The line without the name of the file, whose folder is gone by then.
fn diagnostic(line: &str) -> String {
    match line.split_once("module.ptx, ") {
        Some((_, rest)) => rest.to_owned(),
        None => line.to_owned(),
    }
}
