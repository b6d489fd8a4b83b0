//! Executions that decide a verdict, as pages, as pictures and as Graphviz files.

use anyhow::{Context, Result};
use moire_shown::picture::drawn;
use moire_verdict::answer::Answer;
use std::path::Path;

/// Writes each execution of an answer into files of its own, named after what it shows: `.html`, `.svg` and `.dot`.
pub(super) fn write(folder: &Path, answer: &Answer) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let stem = Path::new(&answer.file).file_stem();
    let stem = stem.map_or("program".into(), |s| s.to_string_lossy().into_owned());
    for drawn in drawn(answer) {
        for (form, content) in [("html", drawn.html), ("svg", drawn.svg), ("dot", drawn.dot)] {
            let path = folder.join(format!("{stem}.{}.{form}", drawn.name));
            std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}
