//! `moire generate`: programs of the pinned stream, or the histogram of what it makes.

use crate::args::Generate;
use crate::exit;
use anyhow::{Context, Result, anyhow};
use moire_program::generate::{Histogram, Profile, Stream, features};
use moire_program::text::print;

pub(crate) fn run(args: &Generate) -> Result<u8> {
    let profile: Profile = args.profile.parse().map_err(|e| anyhow!("{e}"))?;
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
        let (name, text) = match stream.kernel(index) {
            Some(kernel) => (format!("{profile}-{}-{index}.tile", args.seed), kernel.text()),
            None => {
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
