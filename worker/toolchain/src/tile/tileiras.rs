//! `tileiras`: PTX and machine code of a file of bytecode.
//!
//! It needs the wheels `nvidia-cuda-tileiras`, `nvidia-cuda-nvcc` and `nvidia-nvvm` of one release. Each run has a
//! deadline, a bound on the memory of each of its processes, and a folder of its own. The compiler's exit codes are told
//! apart: 1 a bad command line, 2 an unknown target, 3 no bytecode or not verified, 5 not compiled.

use super::bay::{ASSEMBLER, Bay, PTX};
use crate::find::{Candidate, candidates, environment};
use crate::run::{Limits, Output, RunError, run};
use crate::version::Version;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;

/// Lines of a refusal that are kept.
const LINES: usize = 8;
/// Bytes of address space for each process.
const MEMORY: u64 = 8 << 30;
/// Bytes of PTX that are read.
const PTX_BYTES: u64 = 64 << 20;

/// A compiler that has answered for its version.
#[derive(Clone, Debug)]
pub struct Tileiras {
    path: PathBuf,
    version: Version,
    limits: Limits,
    memory: u64,
    bay: Arc<Bay>,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Only the PTX; the assembler is not run.
    Ptx,
    /// The object too.
    Object,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// As it was given to the assembler.
    pub ptx: String,
    /// What the assembler made of it, at [`Stage::Object`].
    pub object: Option<Vec<u8>>,
}

/// Why nothing came out.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The compiler could not be run, or not to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It does not understand how it was called.
    #[error("command line: {}", .0.join("; "))]
    Usage(Vec<String>),
    /// It does not know the target.
    #[error("target: {}", .0.join("; "))]
    Target(Vec<String>),
    /// It does not take the program.
    #[error("refused: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// It takes the program and cannot compile it; here it also ends when the assembler fails.
    #[error("not compiled: {}", .0.join("; "))]
    Compile(Vec<String>),
    /// It ran out of memory.
    #[error("out of memory")]
    Memory,
    /// It ended by a signal, or in a way that is not known.
    #[error("{status}: {}", .said.join("; "))]
    Crashed {
        /// How.
        status: ExitStatus,
        /// What it said before.
        said: Vec<String>,
    },
    /// It says that all is well, but the PTX is missing.
    #[error("no PTX: {0}")]
    NoPtx(String),
}

impl Failure {
    /// Whether other programs would fail in the same way.
    pub fn of_the_call(&self) -> bool {
        matches!(self, Failure::Usage(_) | Failure::Target(_) | Failure::Run(RunError::Start(_)))
    }
}

impl Tileiras {
    /// The first that works of the places of [`candidates`].
    ///
    /// # Errors
    /// The places tried, each with what was wrong; empty where no file was found at all.
    pub fn find(venv: Option<&Path>) -> Result<Tileiras, Vec<String>> {
        let mut tried = Vec::new();
        for Candidate { path, why } in candidates("tileiras", venv, &environment) {
            match Self::at(&path) {
                Ok(found) => return Ok(found),
                Err(wrong) => tried.push(format!("{} ({why}): {wrong}", path.display())),
            }
        }
        Err(tried)
    }

    /// One of each release that is found, newest first.
    pub fn all(venv: Option<&Path>) -> Vec<Tileiras> {
        let places = candidates("tileiras", venv, &environment);
        let mut found: Vec<Tileiras> = places.iter().filter_map(|c| Self::at(&c.path).ok()).collect();
        found.sort_by_key(|t| std::cmp::Reverse(t.version));
        found.dedup_by_key(|t| t.version);
        found
    }

    /// The compiler in that file.
    ///
    /// # Errors
    /// It does not run, prints no version, or lacks a part that it needs.
    pub fn at(path: &Path) -> Result<Tileiras, String> {
        let mut command = Command::new(path);
        command.arg("--version");
        let out = run(command, Limits::default()).map_err(|e| e.to_string())?;
        let version = Version::parse(&out.stdout).ok_or("it prints no version")?;
        let path = fs::canonicalize(path).map_err(|e| e.to_string())?;
        let beside = |what: &str| path.parent().and_then(Path::parent).map(|home| home.join(what));
        for (what, wheel) in [("bin/ptxas", "nvidia-cuda-nvcc"), ("lib/libnvvm.so.4", "nvidia-nvvm")] {
            if !beside(what).is_some_and(|p| p.is_file()) {
                return Err(format!("`{what}` is not beside it: pip install {wheel} of the same release"));
            }
        }
        let bay = Arc::new(Bay::new(&path).map_err(|e| format!("no folder for runs: {e}"))?);
        Ok(Tileiras { path, version, limits: Limits::default(), memory: MEMORY, bay })
    }

    /// With other limits on each run: of time and output, and of memory in bytes.
    #[must_use]
    pub fn with_limits(self, limits: Limits, memory: u64) -> Tileiras {
        Tileiras { limits, memory, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The newest bytecode it reads.
    pub fn bytecode(&self) -> super::Bytecode {
        let minor = u8::try_from(self.version.minor).unwrap_or(u8::MAX);
        let newest = super::Bytecode::V13_5;
        if self.version.major > 13 { newest } else { super::Bytecode::of(13, minor).unwrap_or(newest) }
    }

    /// Compiles a file of bytecode for a target such as `sm_90`, at a level of optimisation from 0 to 3.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn compile(
        &self,
        bytecode: &[u8],
        target: &str,
        level: u8,
        stage: Stage,
    ) -> Result<Compiled, Failure> {
        let folder = self.bay.run().map_err(RunError::Start)?;
        let at = |name: &str| folder.path().join(name);
        fs::write(at("module.tileirbc"), bytecode).map_err(RunError::Start)?;
        let out = run(self.command(folder.path(), target, level, stage), self.limits)?;
        judge(&out)?;
        let text = fs::metadata(at("module.ptx")).and_then(|m| {
            if m.len() > PTX_BYTES {
                return Err(std::io::Error::other(format!("{} bytes", m.len())));
            }
            fs::read_to_string(at("module.ptx"))
        });
        let ptx = text.map_err(|e| Failure::NoPtx(e.to_string()))?;
        let object = match stage {
            Stage::Ptx => None,
            Stage::Object => Some(fs::read(at("module.cubin")).map_err(RunError::Start)?),
        };
        Ok(Compiled { ptx, object })
    }

    fn command(&self, folder: &Path, target: &str, level: u8, stage: Stage) -> Command {
        // The shell sets the bound for itself and what it becomes.
        let mut command = Command::new("sh");
        let kibibytes = (self.memory / 1024).to_string();
        command.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &kibibytes]).arg(self.bay.compiler());
        command.arg(format!("--opt-level={level}")).arg("--gpu-name").arg(target);
        command.arg("-o").arg("module.cubin").arg("module.tileirbc");
        command.current_dir(folder).env("TMPDIR", folder).env(PTX, folder.join("module.ptx"));
        let real = match stage {
            Stage::Ptx => OsStr::new("").to_owned(),
            Stage::Object => self.path.with_file_name("ptxas").into_os_string(),
        };
        command.env(ASSEMBLER, real);
        command
    }
}

/// What the end of a run means.
fn judge(out: &Output) -> Result<(), Failure> {
    if out.status.success() {
        return Ok(());
    }
    let said = out.stderr.lines().chain(out.stdout.lines()).map(str::trim).filter(|l| !l.is_empty());
    let lines: Vec<String> = said.take(LINES).map(str::to_owned).collect();
    let memory = ["out of memory", "bad_alloc", "Cannot allocate memory", "allocation failed"];
    if lines.iter().any(|line| memory.iter().any(|m| line.to_lowercase().contains(&m.to_lowercase()))) {
        return Err(Failure::Memory);
    }
    Err(match out.status.code() {
        Some(1) => Failure::Usage(lines),
        Some(2) => Failure::Target(lines),
        Some(3) => Failure::Refused(lines),
        Some(5) => Failure::Compile(lines),
        _ => Failure::Crashed { status: out.status, said: lines },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn ends_are_told_apart() {
        let end = |raw: i32, stderr: &str| {
            let status = ExitStatus::from_raw(raw);
            judge(&Output { status, stdout: String::new(), stderr: stderr.into(), cut: false })
        };
        assert!(end(0, "warning: x").is_ok());
        assert!(matches!(end(1 << 8, "unknown argument"), Err(Failure::Usage(_))));
        assert!(matches!(end(2 << 8, "error: sm_1 is not supported"), Err(Failure::Target(_))));
        assert!(matches!(end(3 << 8, "error: x\n\nerror: y"), Err(Failure::Refused(l)) if l.len() == 2));
        assert!(matches!(end(5 << 8, ""), Err(Failure::Compile(_))));
        assert!(matches!(end(5 << 8, "LLVM ERROR: out of memory"), Err(Failure::Memory)));
        assert!(matches!(end(11, ""), Err(Failure::Crashed { .. })));
        assert!(Failure::Target(Vec::new()).of_the_call() && !Failure::Memory.of_the_call());
    }
}
