//! `moire generate`: prints programs of the pinned stream, or a histogram of their features.

use anyhow::{Context, Result, anyhow};
use clap::Args;
use moire_console::exit;
use moire_generate::{Profile, Stream};
use moire_program::features::Histogram;
use moire_program::features::features;
use moire_program::text::print;
use std::path::PathBuf;

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
    /// What is drawn: random, shapes, mixed, tensor, tile-ir, source
    #[arg(long, default_value = "mixed")]
    pub(crate) stream: String,
    /// Count what the programs exercise instead of printing them
    #[arg(long)]
    pub(crate) histogram: bool,
    /// Write one file a program into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

pub(crate) fn run(args: &Generate) -> Result<u8> {
    let profile: Profile = args.stream.parse().map_err(|e| anyhow!("{e}"))?;
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
        let (name, text) = match (stream.kernel(index), stream.source(index)) {
            (_, Some(source)) => {
                (format!("{profile}-{}-{index}.src", args.seed), moire_source::text::print(&source))
            }
            (Some(kernel), None) => (format!("{profile}-{}-{index}.tile", args.seed), kernel.text()),
            (None, None) => {
                let program = stream.item(index);
                (format!("{}.litmus", program.name), print(&program))
            }
        };
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
