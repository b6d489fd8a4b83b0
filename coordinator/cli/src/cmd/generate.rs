//! `moire generate`: prints programs of the pinned stream, or a histogram of their features.

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use moire_console::exit;
use moire_console::streams::StreamName;
use moire_generate::{Profile, Stream};
use moire_program::features::Histogram;
use moire_program::features::features;
use moire_program::text::print;
use moire_source::Source;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// Number of programs
    #[arg(long, default_value_t = 10)]
    pub(crate) count: u64,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Position of the first program in the stream
    #[arg(long, default_value_t = 0)]
    pub(crate) first: u64,
    /// What is drawn
    #[arg(long, value_parser = StreamName, default_value_t = Profile::Core)]
    pub(crate) stream: Profile,
    /// Count what the programs exercise instead of printing them
    #[arg(long)]
    pub(crate) histogram: bool,
    /// Print source programs in this language
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) print: Form,
    /// Print this source program instead of drawing any
    #[arg(value_name = "FILE", conflicts_with_all = ["count", "seed", "first", "stream", "histogram", "out"])]
    pub(crate) file: Option<PathBuf>,
    /// Write one file a program into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// A language of source programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Our own text
    Text,
    /// LLVM IR, as `llc` takes it
    Llvm,
    /// NVVM IR, as libNVVM takes it for `sm_90`
    Nvvm,
    /// Kernels of Triton
    Triton,
    /// CUDA C++, as `nvcc` takes it
    Cuda,
}

impl Form {
    /// The program in this language, and the ending of its file.
    fn of(self, source: &Source) -> (String, &'static str) {
        match self {
            Form::Text => (moire_source::text::print(source), "src"),
            Form::Llvm => (moire_source::llvm::module(&[source], 0), "ll"),
            Form::Nvvm => (moire_source::nvvm::module(&[source], 0, "sm_90"), "ll"),
            Form::Triton => (moire_source::triton::module(&[source], 0), "py"),
            Form::Cuda => (moire_source::cuda::unit(&[source], 0), "cu"),
        }
    }
}

/// Prints a source program that a file holds.
fn printed(file: &Path, form: Form) -> Result<u8> {
    let bytes =
        moire_console::bounded::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let name = file.display().to_string();
    let text =
        super::replay::source(&name, &bytes)?.ok_or_else(|| anyhow!("{name} holds no source program"))?;
    print!("{}", form.of(&moire_source::text::parse(&text).map_err(|e| anyhow!("{e}"))?).0);
    Ok(exit::CLEAN)
}

pub(crate) fn run(args: &Generate) -> Result<u8> {
    if let Some(file) = &args.file {
        return printed(file, args.print);
    }
    let profile = args.stream;
    if args.print != Form::Text && profile != Profile::Source {
        bail!("--print is about source programs: add --stream source, or name a file");
    }
    let stream = Stream::new(args.seed, profile);
    let mut histogram = Histogram::default();
    if let Some(dir) = &args.out {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    for index in args.first..args.first.saturating_add(args.count) {
        if args.histogram {
            histogram.add(&features(&stream.item(index)));
            continue;
        }
        let (text, ending) = text(&stream, index, args.print);
        let name = format!("{profile}-{}-{index}.{ending}", args.seed);
        match &args.out {
            Some(dir) => {
                let path = dir.join(name);
                std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            }
            None => println!("{text}"),
        }
    }
    if args.histogram {
        print!("{histogram}");
    }
    Ok(exit::CLEAN)
}

/// What stands at an index of a stream, and the ending of its file.
fn text(stream: &Stream, index: u64, form: Form) -> (String, &'static str) {
    let source = stream.source(index).map(|source| form.of(&source));
    let kernel = || stream.kernel(index).map(|kernel| (kernel.text(), "tile"));
    let module = || stream.module(index).map(|module| (module.text(), "ptx"));
    source.or_else(kernel).or_else(module).unwrap_or_else(|| (print(&stream.item(index)), "litmus"))
}
