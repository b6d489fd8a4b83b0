//! `ptxas`: does it take a module?

use crate::find::{Candidate, candidates, environment};
use crate::run::{Limits, RunError, run};
use crate::version::Version;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Release whose answers the static rules repeat.
const RULES: (u32, u32) = (13, 5);
/// Lines of a refusal that are kept.
const LINES: usize = 8;

/// An assembler that has answered for its version.
#[derive(Clone, Debug)]
pub struct Ptxas {
    path: PathBuf,
    version: Version,
    limits: Limits,
}

/// What the assembler says of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is assembled.
    Accepted,
    /// It is not; the first diagnostics.
    Refused(Vec<String>),
    /// Neither: the assembler ended without a diagnostic or by a signal.
    Failed(String),
}

impl Answer {
    /// Whether the module was taken; nothing where the assembler gave no answer.
    pub fn accepted(&self) -> Option<bool> {
        match self {
            Answer::Accepted => Some(true),
            Answer::Refused(_) => Some(false),
            Answer::Failed(_) => None,
        }
    }
}

impl Ptxas {
    /// The first that works of the places of [`candidates`]; where there is none, each place with what was wrong.
    ///
    /// # Errors
    /// The places tried, in words; empty where no file was found at all.
    pub fn find(venv: Option<&Path>) -> Result<Ptxas, Vec<String>> {
        let mut tried = Vec::new();
        for Candidate { path, why } in candidates("ptxas", venv, &environment) {
            match Self::at(&path) {
                Ok(ptxas) => return Ok(ptxas),
                Err(wrong) => tried.push(format!("{} ({why}): {wrong}", path.display())),
            }
        }
        Err(tried)
    }

    /// The assembler in that file.
    ///
    /// # Errors
    /// It does not run, or prints no version.
    pub fn at(path: &Path) -> Result<Ptxas, String> {
        let mut command = Command::new(path);
        command.arg("--version");
        let out = run(command, Limits::default()).map_err(|e| e.to_string())?;
        let version = Version::parse(&out.stdout).ok_or("it prints no version")?;
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
        (self.version.major, self.version.minor) >= RULES
    }

    /// Gives it the text of a module for an architecture such as `sm_100a`, without optimisation.
    ///
    /// # Errors
    /// It could not be run, or not to the end.
    pub fn assemble(&self, module: &str, target: &str) -> Result<Answer, RunError> {
        let folder = tempfile::tempdir()?;
        Ok(self.object(folder.path(), module, target, "-O0")?.0)
    }

    /// The same at a level of optimisation, in a folder of the caller's; with the path of the object made.
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
        let lines: Vec<String> = said.filter(wrong).take(LINES).map(diagnostic).collect();
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

/// A line without the name of the file, which is in a folder that is gone.
fn diagnostic(line: &str) -> String {
    match line.split_once("module.ptx, ") {
        Some((_, rest)) => rest.to_owned(),
        None => line.to_owned(),
    }
}
