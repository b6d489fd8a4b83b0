//! The text of a claim about a kernel of Tile IR.
//!
//! The text reads as the kernel: its launch stands in front and its lowered form behind it, both as comments, so that the
//! text alone says everything.

use super::abstention::Abstention;
use super::refine::Source;
use moire_tile_ir::Module;
use moire_tile_ir::reduce::tile_smaller;
use moire_tile_ir::run::TileLaunch;
use moire_tile_ir::text;

/// A kernel and its launch.
pub(super) type Kernel = (Module, TileLaunch);

/// The text of a claim: kernel, launch, and what `by` made of the kernel.
pub(super) fn written(module: &Module, launch: &TileLaunch, by: &str, lowered: &str) -> String {
    let mut out = launch.note() + text::print(module).trim_end();
    out.push_str(&format!("\n// {by} makes of it:\n"));
    for line in lowered.lines().filter(|l| !l.trim().is_empty()) {
        out.push_str("// ");
        out.push_str(&line.replace('\t', "  "));
        out.push('\n');
    }
    out
}

/// The kernel and launch of [`written`].
pub(super) fn read(program: &str) -> Result<Kernel, Abstention> {
    let launch = TileLaunch::noted(program)
        .ok_or(Abstention::Unusable("the text does not say `// tile blocks: N`"))?;
    Ok((text::parse(program)?, launch))
}

impl Source for Kernel {
    fn read(text: &str) -> Result<Self, Abstention> {
        read(text)
    }

    fn smaller(&self) -> Box<dyn Iterator<Item = Self> + '_> {
        Box::new(tile_smaller(self))
    }
}
