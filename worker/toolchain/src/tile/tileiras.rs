//! `tileiras`: compiles a file of bytecode to PTX and machine code.
//!
//! It needs the wheels `nvidia-cuda-tileiras`, `nvidia-cuda-nvcc` and `nvidia-nvvm` of one release. Each run has a
//! deadline, a limit on the memory of each of its processes, and its own folder. The compiler's exit codes are: 1 a bad
//! command line, 2 an unknown target, 3 not bytecode or not verified, 5 not compiled.

use super::bay::{ASSEMBLER, Bay, PTX};
use crate::crash::death;
use crate::failure::Failure;
use crate::find::{ToolError, Unusable, candidates, environment, first};
use crate::run::{Limits, Output, RunError, run};
use crate::version::Version;
use moire_tile_ir::bytecode::Bytecode;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Most lines of a refusal that are kept.
const MAX_LINES: usize = 8;
/// Most lines that are kept of a compiler that died.
const MAX_SAID: usize = 64;
/// Most bytes of address space of each process.
const MAX_MEMORY: u64 = 8 << 30;
/// Most bytes of PTX that are read.
const MAX_PTX_BYTES: u64 = 64 << 20;

/// A compiler whose version is known.
#[derive(Clone, Debug)]
pub struct Tileiras {
    path: PathBuf,
    version: Version,
    limits: Limits,
    memory: u64,
    bay: Arc<Bay>,
}

/// The last stage of a compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Only the PTX; the assembler is not run.
    Ptx,
    /// PTX and object.
    Object,
}

/// The result of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The PTX that the compiler gave to its assembler.
    pub ptx: String,
    /// The object, at [`Stage::Object`].
    pub object: Option<Vec<u8>>,
}

impl Tileiras {
    /// The first compiler that works, of the places of [`candidates`].
    ///
    /// # Errors
    /// The places that were tried; none where no file was found at all.
    pub fn find(venv: Option<&Path>) -> Result<Tileiras, Vec<Unusable>> {
        first("tileiras", venv, Self::at)
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
    pub fn at(path: &Path) -> Result<Tileiras, ToolError> {
        let mut command = Command::new(path);
        command.arg("--version");
        let out = run(command, Limits::default())?;
        let version = Version::parse(&out.stdout).ok_or(ToolError::NoVersion)?;
        let folder = |what| move |source| ToolError::Folder { what, source };
        let path = fs::canonicalize(path).map_err(folder("its path"))?;
        let beside = |what: &str| path.parent().and_then(Path::parent).map(|home| home.join(what));
        for (what, wheel) in [("bin/ptxas", "nvidia-cuda-nvcc"), ("lib/libnvvm.so.4", "nvidia-nvvm")] {
            if !beside(what).is_some_and(|p| p.is_file()) {
                return Err(ToolError::Incomplete { what, wheel });
            }
        }
        let bay = Arc::new(Bay::new(&path).map_err(folder("no folder for runs"))?);
        Ok(Tileiras { path, version, limits: Limits::default(), memory: MAX_MEMORY, bay })
    }

    /// The same compiler with other limits on each run; `memory` is in bytes.
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
    pub fn bytecode(&self) -> Bytecode {
        // A release newer than this build reads the newest bytecode that this build writes.
        let known = u8::try_from(self.version.minor).ok().filter(|_| self.version.major <= 13);
        known.and_then(|minor| Bytecode::of(13, minor)).unwrap_or(Bytecode::V13_5)
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
            if m.len() > MAX_PTX_BYTES {
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

    /// Its arguments: it compiles `module.tileirbc` to `module.cubin`.
    pub fn arguments(target: &str, level: u8) -> Vec<String> {
        let level = format!("--opt-level={level}");
        [&level, "--gpu-name", target, "-o", "module.cubin", "module.tileirbc"].map(str::to_owned).to_vec()
    }

    fn command(&self, folder: &Path, target: &str, level: u8, stage: Stage) -> Command {
        // The shell sets the limit for itself and for the process it becomes.
        let mut command = Command::new("sh");
        let kibibytes = (self.memory / 1024).to_string();
        command.args(["-c", "ulimit -v \"$0\" && exec \"$@\"", &kibibytes]).arg(self.bay.compiler());
        command.args(Self::arguments(target, level));
        command.current_dir(folder).env("TMPDIR", folder).env(PTX, folder.join("module.ptx"));
        let real = match stage {
            Stage::Ptx => OsStr::new("").to_owned(),
            Stage::Object => self.path.with_file_name("ptxas").into_os_string(),
        };
        command.env(ASSEMBLER, real);
        command
    }
}

/// Tells the ends of a run apart.
fn judge(out: &Output) -> Result<(), Failure> {
    if out.status.success() {
        return Ok(());
    }
    let said = out.stderr.lines().chain(out.stdout.lines()).map(str::trim).filter(|l| !l.is_empty());
    let died = death(out.status, said.clone()).is_some();
    let lines: Vec<String> = said.take(if died { MAX_SAID } else { MAX_LINES }).map(str::to_owned).collect();
    let memory = ["out of memory", "bad_alloc", "Cannot allocate memory", "allocation failed"];
    if lines.iter().any(|line| memory.iter().any(|m| line.to_lowercase().contains(&m.to_lowercase()))) {
        return Err(Failure::Memory);
    }
    Err(match out.status.code() {
        _ if died => Failure::Crashed { status: out.status, said: lines },
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
            let status = std::process::ExitStatus::from_raw(raw);
            judge(&Output { status, stdout: String::new(), stderr: stderr.into(), cut: false })
        };
        assert!(end(0, "warning: x").is_ok());
        assert!(matches!(end(1 << 8, "unknown argument"), Err(Failure::Usage(_))));
        assert!(matches!(end(2 << 8, "error: sm_1 is not supported"), Err(Failure::Target(_))));
        assert!(matches!(end(3 << 8, "error: x\n\nerror: y"), Err(Failure::Refused(l)) if l.len() == 2));
        assert!(matches!(end(5 << 8, ""), Err(Failure::Compile(_))));
        assert!(matches!(end(5 << 8, "LLVM ERROR: out of memory"), Err(Failure::Memory)));
        assert_eq!(end(11, "").unwrap_err().death().as_deref(), Some("signal 11"));
        assert_eq!(
            end(5 << 8, "internal error: x").unwrap_err().death().as_deref(),
            Some("internal error: x")
        );
        assert!(Failure::Target(Vec::new()).of_the_call() && !Failure::Memory.of_the_call());
    }
}
