//! `moire record -- CMD`: runs a program with the recorder loaded, and says what was seen.
//!
//! Contract: the exit code is that of the program; nothing of the program changes but the environment. The libraries are
//! in this binary, so that they fit it; they are written into a folder for the time of the run.

use anyhow::{Context, Result, bail};
use clap::Args;
use moire_console::exit;
use moire_record::{FOLDER, FORMAT, LAUNCHES, Launch, MARK, MODULES, NOTES, hash, layouts};
use moire_verdict::kernel::quoted;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

const PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));
const STANDIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/standin.so"));
/// Where compilers keep their PTX, below the record.
const KEPT: &str = "compiled";
/// Where PTX goes that was compiled and not launched.
const UNLAUNCHED: &str = "unlaunched";
/// The variables that tell compilers where to keep what they make, and folders for it.
const FRONT_ENDS: [(&str, &str); 3] =
    [("TRITON_CACHE_DIR", "triton"), ("CUTE_DSL_DUMP_DIR", "cute"), ("TILELANG_CACHE_DIR", "tilelang")];
/// Most files of compilers that are searched, and folders inside each other.
const FILES: usize = 1 << 14;
const DEPTH: usize = 8;

#[derive(Debug, Args)]
#[command(
    after_help = "The program is run as it is, with a library loaded before it that sees what it asks of CUDA's driver (libcuda.so.1).\n\
    Recorded are PTX texts, launches with their parameters, tensor maps and the allocations that pointers point into.\n\
    Not seen: programs that do not load shared libraries or that drop LD_PRELOAD; kernels launched by kernels; tensor maps\n\
    made on the device; what lies behind pointers in memory. Kernels that exist only as machine code have no PTX: they are\n\
    named, not checked. The PTX of Triton and CuTe is taken from what they keep."
)]
pub(crate) struct Record {
    /// The folder that is written; it must not exist or be empty
    #[arg(long, value_name = "DIR", default_value = "moire-record")]
    pub(crate) out: PathBuf,
    /// Without a device: run over a stand-in of the driver that accepts everything and computes nothing. 90 and 100 are
    /// described here, others by a file with a line for each attribute: its number and its value
    #[arg(long, value_name = "SM|FILE")]
    pub(crate) target: Option<String>,
    /// Only take what compilers have kept so far into a record that is being written
    #[arg(long, hide = true)]
    pub(crate) settle: bool,
    /// The program and its arguments, after `--`
    #[arg(required_unless_present = "settle", last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

pub(crate) fn run(args: &Record) -> Result<u8> {
    if PRELOAD.is_empty() {
        bail!("this binary has no recorder: it is for Linux with glibc on x86_64 and aarch64");
    }
    if args.settle {
        matched(&args.out)?;
        return Ok(exit::CLEAN);
    }
    let record = prepared(&args.out)?;
    let libraries =
        tempfile::Builder::new().prefix("moire-record-").tempdir().context("no folder for the recorder")?;
    let preload = libraries.path().join("libmoire_preload.so");
    std::fs::write(&preload, PRELOAD).with_context(|| format!("cannot write {}", preload.display()))?;
    if preload.to_string_lossy().contains([' ', ':']) {
        bail!(
            "{}: LD_PRELOAD takes no path with a blank or a colon; set TMPDIR to another folder",
            preload.display()
        );
    }
    let (program, words) = args.command.split_first().context("no program is named; write it after `--`")?;
    let mut command = Command::new(program);
    command.args(words).env(FOLDER, &record).env("LD_PRELOAD", joined(&preload, "LD_PRELOAD"));
    keep(&mut command, &record);
    if let Some(target) = &args.target {
        stand_in(&mut command, target, libraries.path())?;
    }
    let status = command.status().with_context(|| format!("cannot run {}", program.to_string_lossy()))?;
    let found = matched(&record)?;
    std::fs::remove_dir_all(record.join(KEPT)).ok();
    eprint!("{}", said(&args.out, &record, &found)?);
    Ok(code(status))
}

/// Makes the folder of the record; its absolute path.
fn prepared(out: &Path) -> Result<PathBuf> {
    let cannot = || format!("cannot write {}", out.display());
    if std::fs::read_dir(out).is_ok_and(|mut all| all.next().is_some()) {
        bail!("{} is not empty: remove it, or name another folder with --out", out.display());
    }
    [MODULES, LAUNCHES].iter().try_for_each(|f| std::fs::create_dir_all(out.join(f))).with_context(cannot)?;
    std::fs::write(out.join(MARK), FORMAT).with_context(cannot)?;
    out.canonicalize().with_context(cannot)
}

/// A path before those that a variable has.
fn joined(path: &Path, variable: &str) -> OsString {
    let mut out = path.as_os_str().to_owned();
    if let Some(more) = std::env::var_os(variable).filter(|m| !m.is_empty()) {
        out.push(":");
        out.push(more);
    }
    out
}

/// Lets compilers that pass only machine code to the driver keep their PTX, unless they are told where to keep it.
fn keep(command: &mut Command, record: &Path) {
    let folders =
        [("TRITON_CACHE_DIR", "triton"), ("CUTE_DSL_DUMP_DIR", "cute"), ("TILELANG_CACHE_DIR", "tilelang")];
    for (variable, name) in folders {
        if std::env::var_os(variable).is_none() {
            let folder = record.join(KEPT).join(name);
            if std::fs::create_dir_all(&folder).is_ok() {
                command.env(variable, folder);
            }
        }
    }
    command.env("CUTE_DSL_KEEP_PTX", "1").env("CUTE_DSL_KEEP_CUBIN", "1");
}

/// Puts the stand-in in the place of the driver.
fn stand_in(command: &mut Command, target: &str, folder: &Path) -> Result<()> {
    let known = target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_ascii_lowercase());
    let device = match known {
        "90" | "100" => known.to_owned(),
        _ => {
            let path = Path::new(target).canonicalize();
            let path = path.with_context(|| {
                format!("{target}: give 90, 100, or a file with the attributes of a device")
            })?;
            path.to_string_lossy().into_owned()
        }
    };
    let driver = folder.join("libcuda.so.1");
    std::fs::write(&driver, STANDIN).context("cannot write the stand-in")?;
    // One library under all its names.
    for name in ["libcuda.so", "libcudart.so.12", "libcudart.so.13"] {
        std::fs::hard_link(&driver, folder.join(name)).context("cannot link the stand-in")?;
    }
    command.env("MOIRE_DEVICE", device).env("LD_LIBRARY_PATH", joined(folder, "LD_LIBRARY_PATH"));
    command.env("TRITON_LIBCUDA_PATH", folder);
    Ok(())
}

/// The exit code of a program as a shell says it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|n| 128 + n);
    #[cfg(not(unix))]
    let signal = None;
    status.code().or(signal).and_then(|n| u8::try_from(n).ok()).unwrap_or(exit::INTERNAL)
}

/// A launch of the record, with its file.
type Found = (PathBuf, Launch);

/// The launches; those of machine code with the PTX that a compiler has kept for it, where there is one. What was kept below the
/// record and not launched gets a place of its own.
fn matched(record: &Path) -> Result<Vec<Found>> {
    let kept = FRONT_ENDS.iter().filter_map(|f| std::env::var_os(f.0)).map(PathBuf::from);
    let mut files = Vec::new();
    kept.chain([record.join(KEPT)]).for_each(|folder| walk(&folder, &mut files, 0));
    let mut out = Vec::new();
    let folder = record.join(LAUNCHES);
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let Ok(mut launch) =
            std::fs::read_to_string(&path).map_err(|e| e.to_string()).and_then(|t| Launch::read(&t))
        else {
            continue;
        };
        if let Some(text) = launch.module.ends_with(".cubin").then(|| text(record, &launch, &files)).flatten()
        {
            launch.module = format!("{MODULES}/{}.ptx", hash(&text));
            std::fs::write(record.join(&launch.module), text).context("cannot write a module")?;
            std::fs::write(&path, launch.write()).context("cannot write a launch")?;
        }
        out.push((path, launch));
    }
    std::fs::remove_dir_all(record.join(UNLAUNCHED)).ok();
    let launched: BTreeSet<&str> = out.iter().map(|f| f.1.entry.as_str()).collect();
    for path in files.iter().filter(|p| p.starts_with(record) && p.extension().is_some_and(|e| e == "ptx")) {
        let Ok(text) = std::fs::read(path) else { continue };
        let kernels = layouts(&String::from_utf8_lossy(&text));
        let to = record.join(UNLAUNCHED);
        if !kernels.is_empty() && !kernels.keys().any(|k| launched.contains(k.as_str())) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{}-{}.ptx", name.chars().take(80).collect::<String>(), &hash(&text)[..16]);
            std::fs::create_dir_all(&to)
                .and_then(|()| std::fs::write(to.join(name), text))
                .context("cannot write a module")?;
        }
    }
    Ok(out)
}

/// The files below a folder.
fn walk(folder: &Path, out: &mut Vec<PathBuf>, depth: usize) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()) {
        if path.is_dir() && !path.is_symlink() && depth < DEPTH {
            walk(&path, out, depth + 1);
        } else if out.len() < FILES {
            out.push(path);
        }
    }
}

/// The text that a compiler has kept for the machine code of a launch: beside equal machine code, or the only one that has a
/// kernel of this name. Its parameters must be those of the launch.
fn text(record: &Path, launch: &Launch, files: &[PathBuf]) -> Option<Vec<u8>> {
    let code = std::fs::read(record.join(&launch.module)).ok()?;
    let ends = |path: &&PathBuf, end: &str| path.extension().is_some_and(|e| e == end);
    let fits = |text: &Vec<u8>| {
        let all = layouts(&String::from_utf8_lossy(text));
        let sizes = |fields: &Vec<_>| {
            fields.iter().map(|f: &moire_record::Field| f.size).eq(launch.params.iter().map(|p| p.size))
        };
        all.get(&launch.entry).is_some_and(sizes)
    };
    let equal =
        files.iter().filter(|p| ends(p, "cubin")).filter(|p| std::fs::read(p).is_ok_and(|b| b == code));
    let beside = equal.filter_map(|p| std::fs::read(p.with_extension("ptx")).ok()).find(|text| fits(text));
    beside.or_else(|| {
        let named = files.iter().filter(|p| ends(p, "ptx")).filter_map(|p| std::fs::read(p).ok());
        let all: BTreeSet<Vec<u8>> = named.filter(fits).collect();
        (all.len() == 1).then(|| all.into_iter().next()).flatten()
    })
}

/// What was seen, and what to do next.
fn said(out: &Path, record: &Path, found: &[Found]) -> Result<String> {
    let notes = std::fs::read_to_string(record.join(NOTES)).unwrap_or_default();
    let mut text = String::new();
    for line in notes.lines().collect::<BTreeSet<_>>() {
        text += &format!("not recorded: {line}\n");
    }
    let bare: BTreeSet<&str> =
        found.iter().filter(|f| !f.1.module.ends_with(".ptx")).map(|f| f.1.entry.as_str()).collect();
    for entry in &bare {
        text += &format!(
            "{entry}: no PTX, only machine code: build with PTX (nvcc -arch=sm_90, or code=compute_90), or let the compiler keep it\n"
        );
    }
    let apart = std::fs::read_dir(record.join(UNLAUNCHED)).map_or(0, Iterator::count);
    if apart > 0 {
        let folder = out.join(UNLAUNCHED).display().to_string();
        text += &format!("{apart} compiled and not launched; check with: moire check {}\n", quoted(&folder));
    }
    let kernels: BTreeSet<(&str, &str)> =
        found.iter().map(|f| (f.1.module.as_str(), f.1.entry.as_str())).collect();
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    text += &match found.len() {
        0 => "no launch was seen: the program launched nothing, failed before, or does not use libcuda.so.1 as a shared library\n".into(),
        n => format!(
            "recorded {} of {} in {}\ncheck them with: moire check {}\n",
            count(n, "shape"),
            count(kernels.len(), "kernel"),
            out.display(),
            quoted(&out.display().to_string())
        ),
    };
    Ok(text)
}
