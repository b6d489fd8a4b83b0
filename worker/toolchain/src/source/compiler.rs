//! One compiler: where it is, which release it is of, and a run of it.

use super::library;
use crate::crash::death;
use crate::failure::Failure;
use crate::find::{Candidate, ToolError, Unusable, candidates, environment, interpreters, libraries};
use crate::run::{Limits, Output, RunError, run};
use crate::version::Version;
use moire_source::{Source, cuda, llvm, nvvm, triton};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `opt` makes of a text.
const OPTIMISED: &str = "optimised.ll";
/// Most lines of a message that are kept.
const MAX_LINES: usize = 6;
/// Most lines that are kept of a compiler that died.
const MAX_SAID: usize = 64;
/// Most lines of a text that are refused at once.
const MAX_REFUSED: usize = 1 << 12;
/// Most bytes of address space of each process.
const MAX_MEMORY: u64 = 8 << 30;
/// Most bytes of PTX that are read.
const MAX_PTX_BYTES: u64 = 64 << 20;
/// What Triton is called with.
const KERNELS: &str = include_str!("kernels.py");
/// The level of `opt` that is usual.
const OPT: u8 = 2;
/// The first target for which libNVVM is made of a newer LLVM.
const NEWER: &str = "sm_100";
/// Releases of `llc` that are looked for by number. Before 15 pointers have types.
const RELEASES: std::ops::RangeInclusive<u32> = 15..=30;

/// A kind of compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `llc`, for LLVM IR.
    Llvm,
    /// `nvcc`, for CUDA C++.
    Nvcc,
    /// libNVVM, for NVVM IR: a library, which a process of its own calls.
    Libnvvm,
    /// Triton, for kernels in Python.
    Triton,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Llvm, Kind::Nvcc, Kind::Libnvvm, Kind::Triton];

    /// Its name in sides of claims, and as a capability.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Llvm => "llvm",
            Kind::Nvcc => "nvcc",
            Kind::Libnvvm => "libnvvm",
            Kind::Triton => "triton",
        }
    }

    /// The text that it compiles, with the kernels of all programs. Program `n` has the number `n`.
    pub fn text(self, programs: &[&Source], options: &Options) -> String {
        match self {
            Kind::Llvm => llvm::module(programs, 0),
            Kind::Nvcc => cuda::unit(programs, 0),
            Kind::Libnvvm => nvvm::module(programs, 0, &options.target),
            Kind::Triton => triton::module(programs, 0),
        }
    }

    /// Whether it has levels of optimisation.
    pub fn has_levels(self) -> bool {
        self != Kind::Triton
    }

    /// Whether it names all that it refuses of a text, and not the first alone.
    pub fn names_all(self) -> bool {
        matches!(self, Kind::Nvcc | Kind::Triton)
    }

    /// The most programs of one text.
    pub fn most(self) -> usize {
        // It takes a tenth of a second a kernel.
        if self == Kind::Triton { 16 } else { usize::MAX }
    }

    /// The name of the command.
    pub fn command(self) -> &'static str {
        match self {
            Kind::Llvm => "llc",
            Kind::Nvcc => "nvcc",
            Kind::Libnvvm => "moire library libnvvm.so.4",
            Kind::Triton => "python kernels.py",
        }
    }

    /// The commands that compile [`Kind::file`] to `module.ptx`, as a person types them.
    pub fn line(self, options: &Options) -> String {
        let first = options.opt.map(|level| format!("opt -O{level} -S -o {OPTIMISED} {} && ", self.file()));
        format!("{}{} {}", first.unwrap_or_default(), self.command(), self.arguments(options).join(" "))
    }

    /// The arguments of the compiler, behind `opt` if that goes first.
    fn arguments(self, options: &Options) -> Vec<String> {
        let (target, level) = (&options.target, options.level);
        let mut all = match self {
            Kind::Llvm => vec!["-mtriple=nvptx64-nvidia-cuda".to_owned(), format!("-mcpu={target}")],
            Kind::Nvcc => vec!["-ptx".to_owned(), format!("-arch={target}"), format!("-Xcicc=-O{level}")],
            Kind::Libnvvm => {
                vec![format!("-arch={}", target.replace("sm_", "compute_")), format!("-opt={level}")]
            }
            Kind::Triton => vec![format!("-arch={target}")],
        };
        if self == Kind::Llvm {
            all.extend(options.ptx.map(|n| format!("-mattr=+ptx{n}")));
            all.push(format!("-O{level}"));
        }
        let file = if options.opt.is_some() { OPTIMISED } else { self.file() };
        all.extend(["-o", "module.ptx", file].map(str::to_owned));
        all
    }

    /// The name of the text that it compiles.
    pub fn file(self) -> &'static str {
        match self {
            Kind::Llvm | Kind::Libnvvm => "module.ll",
            Kind::Triton => "module.py",
            Kind::Nvcc => "module.cu",
        }
    }

    /// The files that may be such a compiler, best first.
    fn candidates(self, environment: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Candidate> {
        match self {
            Kind::Nvcc => candidates("nvcc", None, environment),
            Kind::Libnvvm => libraries("libnvvm", environment),
            Kind::Triton => interpreters("triton", environment),
            Kind::Llvm => {
                let mut all = candidates("llc", None, environment);
                for release in RELEASES.rev() {
                    all.extend(candidates(&format!("llc-{release}"), None, environment));
                }
                all.extend(rustup(environment));
                all
            }
        }
    }
}

/// `lib/rustlib/*/bin/llc` of each toolchain.
fn rustup(environment: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<Candidate> {
    let inside = |folder: PathBuf| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut all: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
        all.sort();
        all
    };
    let home = environment("RUSTUP_HOME").or_else(|| environment("HOME").map(|h| h.join(".rustup")));
    let toolchains = home.map(|h| inside(h.join("toolchains"))).unwrap_or_default();
    let targets = toolchains.into_iter().flat_map(|t| inside(t.join("lib/rustlib")));
    let files = targets.map(|t| t.join("bin/llc")).filter(|p| p.is_file());
    files.map(|path| Candidate { path, why: "rustup".into() }).collect()
}

/// How to compile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The target, such as `sm_90`.
    pub target: String,
    /// The version of PTX without its point, such as 86. `nvcc` has one version a release.
    pub ptx: Option<u32>,
    /// The level of optimisation, 0 to 3.
    pub level: u8,
    /// The level of `opt`, the optimiser of LLVM, if it goes first.
    pub opt: Option<u8>,
}

/// A compiler whose release is known.
#[derive(Clone, Debug)]
pub struct Compiler {
    kind: Kind,
    path: PathBuf,
    version: Version,
    limits: Limits,
    memory: u64,
}

impl Compiler {
    /// One of each release that is found, newest first.
    pub fn all(kind: Kind) -> Vec<Compiler> {
        Self::look(kind).0
    }

    /// One of each release that is found, newest first, and what cannot be used.
    pub fn look(kind: Kind) -> (Vec<Compiler>, Vec<Unusable>) {
        let (mut found, mut unusable) = (Vec::new(), Vec::new());
        for candidate in kind.candidates(&environment) {
            match Self::at(kind, &candidate.path) {
                Ok(compiler) => found.push(compiler),
                Err(why) => unusable.push(Unusable { candidate, why }),
            }
        }
        found.sort_by_key(|t| std::cmp::Reverse(t.version));
        found.dedup_by_key(|t| t.version);
        (found, unusable)
    }

    /// The compiler in that file.
    ///
    /// # Errors
    /// It does not run, prints no version, or does not compile for GPUs of NVIDIA. `nvcc` without its headers is no compiler.
    pub fn at(kind: Kind, path: &Path) -> Result<Compiler, ToolError> {
        let mut command = caller(kind, path)?;
        command.arg("--version");
        let out = run(command, Limits::default())?;
        if matches!(kind, Kind::Libnvvm | Kind::Triton) {
            judge(&out)?;
        }
        let version = match kind {
            Kind::Nvcc | Kind::Libnvvm | Kind::Triton => Version::parse(&out.stdout),
            Kind::Llvm => release(&out.stdout),
        };
        let version = version.ok_or(ToolError::NoVersion)?;
        if kind == Kind::Llvm && (!out.stdout.contains("nvptx64") || version.major < *RELEASES.start()) {
            return Err(ToolError::NoTarget);
        }
        let folder = |source| ToolError::Folder { what: "its path", source };
        // The interpreter of an environment is a link to one that is not.
        let real = if kind == Kind::Triton { std::path::absolute(path) } else { fs::canonicalize(path) };
        let path = real.map_err(folder)?;
        let out = Compiler { kind, path, version, limits: Limits::default(), memory: MAX_MEMORY };
        if kind == Kind::Nvcc {
            out.has_headers()?;
        }
        Ok(out)
    }

    /// Whether it reads its own headers, which come in wheels of their own.
    fn has_headers(&self) -> Result<(), Failure> {
        let folder = tempfile::Builder::new().prefix("moire-source").tempdir().map_err(RunError::Start)?;
        fs::write(folder.path().join(self.kind.file()), "").map_err(RunError::Start)?;
        let mut command = Command::new(&self.path);
        command.args(["-E", "-o", "module.ii", self.kind.file()]).current_dir(folder.path());
        judge(&run(command, self.limits)?)
    }

    /// The same compiler with other limits on each run; `memory` is in bytes.
    #[must_use]
    pub fn with_limits(self, limits: Limits, memory: u64) -> Compiler {
        Compiler { limits, memory, ..self }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `opt` of the same release, which stands beside `llc`.
    pub fn optimiser(&self) -> Option<PathBuf> {
        let file = self.path.file_name()?.to_str()?.strip_prefix("llc").map(|end| format!("opt{end}"))?;
        Some(self.path.with_file_name(file)).filter(|path| path.is_file())
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The name of its release: `22` of LLVM, `13.4` of CUDA.
    pub fn release(&self) -> String {
        match self.kind {
            Kind::Llvm => self.version.major.to_string(),
            Kind::Nvcc | Kind::Libnvvm | Kind::Triton => {
                format!("{}.{}", self.version.major, self.version.minor)
            }
        }
    }

    /// The newest target and version of PTX of the model's age that the release knows. Code for `sm_90` has one-sided
    /// fences from PTX 8.6 on.
    pub fn usual(&self) -> Options {
        let (target, ptx) = match (self.kind, self.version.major) {
            (Kind::Nvcc | Kind::Libnvvm | Kind::Triton, _) => ("sm_90", None),
            (Kind::Llvm, ..=15) => ("sm_80", Some(72)),
            (Kind::Llvm, 16) => ("sm_90", Some(78)),
            (Kind::Llvm, 17 | 18) => ("sm_90", Some(80)),
            (Kind::Llvm, 19) => ("sm_90", Some(85)),
            (Kind::Llvm, _) => ("sm_90", Some(86)),
        };
        Options { target: target.to_owned(), ptx, level: 2, opt: None }
    }

    /// Another way to call it, which goes through other passes: with `opt` in front, if it is there; libNVVM for the first target
    /// of its newer half.
    pub fn unusual(&self) -> Option<Options> {
        let usual = self.usual();
        match self.kind {
            Kind::Llvm => self.optimiser().map(|_| Options { opt: Some(OPT), ..usual }),
            Kind::Nvcc | Kind::Triton => None,
            Kind::Libnvvm => Some(Options { target: NEWER.to_owned(), ..usual }),
        }
    }

    /// Compiles a text to PTX.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn compile(&self, text: &str, options: &Options) -> Result<String, Failure> {
        let folder = tempfile::Builder::new().prefix("moire-source").tempdir().map_err(RunError::Start)?;
        let at = |name: &str| folder.path().join(name);
        fs::write(at(self.kind.file()), text).map_err(RunError::Start)?;
        let out = run(self.command(folder.path(), options)?, self.limits)?;
        judge(&out)?;
        let text = fs::metadata(at("module.ptx")).and_then(|m| {
            if m.len() > MAX_PTX_BYTES {
                return Err(std::io::Error::other(format!("{} bytes", m.len())));
            }
            fs::read_to_string(at("module.ptx"))
        });
        text.map_err(|e| Failure::NoPtx(e.to_string()))
    }

    fn command(&self, folder: &Path, options: &Options) -> Result<Command, RunError> {
        // The shell sets the limit for itself and for the process it becomes.
        let mut command = Command::new("sh");
        let kibibytes = (self.memory / 1024).to_string();
        let opt = options.opt.zip(self.optimiser());
        let first = if opt.is_some() { "\"$1\" \"$2\" -S -o \"$3\" \"$4\" && shift 4 && " } else { "" };
        command.args(["-c", &format!("ulimit -v \"$0\" && {first}exec \"$@\""), &kibibytes]);
        if let Some((level, path)) = opt {
            command.arg(path).arg(format!("-O{level}")).args([OPTIMISED, self.kind.file()]);
        }
        let called = caller(self.kind, &self.path)?;
        command.arg(called.get_program()).args(called.get_args());
        command.args(self.kind.arguments(options));
        // `llc` would spend most of its time on the names of a stack trace.
        command.env("LLVM_DISABLE_SYMBOLIZATION", "1");
        command.current_dir(folder).env("TMPDIR", folder);
        Ok(command)
    }
}

/// The start of each call of a compiler. What is no library, or no interpreter, is called as one: it takes the same arguments.
fn caller(kind: Kind, path: &Path) -> Result<Command, RunError> {
    let is_python = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
    if kind == Kind::Triton && is_python {
        let mut command = Command::new(path);
        command.args(["-I", "-c", KERNELS]);
        return Ok(command);
    }
    let is_library = path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
    if kind != Kind::Libnvvm || !is_library {
        return Ok(Command::new(path));
    }
    let none = || RunError::Start(std::io::Error::other("this program calls no libraries"));
    let program = library::caller().ok_or_else(none)?;
    let mut command = Command::new(program);
    command.arg(library::WORD).arg(path);
    Ok(command)
}

/// The version in `LLVM version 22.1.8-rust-1.95.0-stable`.
fn release(text: &str) -> Option<Version> {
    let rest = &text[text.find("LLVM version ")? + "LLVM version ".len()..];
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).take(3).map(|n| n.parse().ok());
    let mut next = || numbers.next().flatten();
    Some(Version { major: next()?, minor: next()?, build: next()? })
}

/// Tells the ends of a run apart.
fn judge(out: &Output) -> Result<(), Failure> {
    let said: Vec<&str> =
        out.stderr.lines().chain(out.stdout.lines()).map(str::trim).filter(|l| !l.is_empty()).collect();
    let unknown = [
        "is not a recognized",
        "not a recognized processor",
        "Unsupported gpu architecture",
        "is an unsupported option",
    ];
    let strange: Vec<String> = said
        .iter()
        .filter(|l| unknown.iter().any(|u| l.contains(u)))
        .take(MAX_LINES)
        .map(|l| (*l).to_owned())
        .collect();
    if !strange.is_empty() {
        return Err(Failure::Target(strange));
    }
    if out.status.success() {
        return Ok(());
    }
    let first: Vec<String> = said.iter().take(MAX_LINES).map(|l| (*l).to_owned()).collect();
    let memory = ["out of memory", "bad_alloc", "memoryerror", "cannot allocate memory", "allocation failed"];
    if first.iter().any(|line| memory.iter().any(|m| line.to_lowercase().contains(m))) {
        return Err(Failure::Memory);
    }
    if death(out.status, said.iter().copied()).is_some() {
        let said = said.iter().take(MAX_SAID).map(|l| (*l).to_owned()).collect();
        return Err(Failure::Crashed { status: out.status, said });
    }
    // `nvcc` names every line that it refuses, `kernels.py` every kernel.
    let lines: Vec<String> =
        said.iter().filter(|l| l.contains("): error")).take(MAX_REFUSED).map(|l| (*l).to_owned()).collect();
    if !lines.is_empty() {
        return Err(Failure::Refused(lines));
    }
    // `llc` aborts where it has no code for an instruction, after it has said so.
    let refused = said.iter().find(|l| l.contains("LLVM ERROR") || l.contains("error:"));
    let named = said.iter().find(|l| l.starts_with("In function: ")).map(|l| (*l).to_owned());
    // Of a symbol that it lacks it says in the dump of its stack alone where.
    let dumped = || said.iter().find_map(|l| l.rsplit_once("on function '@")?.1.strip_suffix('\''));
    let named = named.or_else(|| Some(format!("In function: {}", dumped()?)));
    match (refused, out.status.code()) {
        (Some(line), _) => {
            Err(Failure::Refused([Some((*line).to_owned()), named].into_iter().flatten().collect()))
        }
        (None, Some(_)) => Err(Failure::Refused(first)),
        (None, None) => Err(Failure::Crashed { status: out.status, said: first }),
    }
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
        let ignored = "'+ptx99' is not a recognized feature for this target (ignoring feature)";
        assert!(matches!(end(0, ignored), Err(Failure::Target(l)) if l.len() == 1));
        assert!(
            matches!(end(6, "LLVM ERROR: Cannot select: t3\nStack dump:"), Err(Failure::Refused(l)) if l.len() == 1)
        );
        let blamed = "LLVM ERROR: Cannot select: t3\nIn function: moire_3_0_\nStack dump:";
        assert_eq!(end(6, blamed).unwrap_err().blamed(), Some("moire_3_0_"));
        let dumped = "LLVM ERROR: Undefined external symbol \"x\"\nStack dump:\n1.\tRunning pass 'A' on module 'm.ll'.\n\
                      2.\tRunning pass 'B' on function '@moire_3_0_'\n";
        assert_eq!(end(6, dumped).unwrap_err().blamed(), Some("moire_3_0_"));
        let two = end(1 << 8, "x.cu(3): error: bad\n  code\n\nx.cu(17): error: worse\nx.cu(3): error: more")
            .unwrap_err();
        let blamed = [(3, "x.cu(3): error: bad"), (17, "x.cu(17): error: worse")];
        assert_eq!(two.blamed_lines(), blamed.into());
        assert_eq!(two.without_places().to_string(), "refused: bad; worse; more");
        assert!(matches!(end(1 << 8, "std::bad_alloc"), Err(Failure::Memory)));
        assert_eq!(end(11, "").unwrap_err().death().as_deref(), Some("signal 11"));
        assert!(end(139 << 8, "'cicc' died due to signal 11").unwrap_err().death().is_some());
        assert!(end(9, "").unwrap_err().death().is_none());
        assert!(Failure::Target(Vec::new()).of_the_call() && !Failure::Memory.of_the_call());
    }

    #[test]
    fn releases_are_read_from_what_llc_prints() {
        let text = "LLVM (http://llvm.org/):\n  LLVM version 21.1.8-rust-1.93.0-stable\n  Optimized build.\n";
        assert_eq!(release(text), Some(Version { major: 21, minor: 1, build: 8 }));
        assert_eq!(release("Debian LLVM version 15.0.6\n").map(|v| v.major), Some(15));
        for bad in ["", "LLVM version", "LLVM version x.1.2"] {
            assert_eq!(release(bad), None, "{bad}");
        }
    }
}
