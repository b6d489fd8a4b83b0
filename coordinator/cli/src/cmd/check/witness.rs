//! Executions that decide a verdict, as Graphviz files.

use crate::show;
use anyhow::{Context, Result};
use moire_console::input::Source;
use moire_explore::judge::Judgement;
use std::path::Path;

/// Writes each witness of a judgement into a file of its own. `part` tells the programs of one file apart.
pub(super) fn write(
    folder: &Path,
    source: &Source,
    part: Option<usize>,
    judgement: &Judgement,
) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let stem =
        Path::new(&source.name).file_stem().map_or("program".into(), |s| s.to_string_lossy().into_owned());
    let stem = part.map_or(stem.clone(), |part| format!("{stem}.part-{part}"));
    let conditions = judgement
        .conditions
        .iter()
        .enumerate()
        .filter_map(|(i, c)| Some((format!("condition-{i}"), c.witness.as_ref()?)));
    let hang = judgement.hang.iter().map(|(_, w)| ("hang".to_owned(), w));
    let race = judgement.race.iter().map(|(_, w)| ("race".to_owned(), w));
    let broken = judgement.broken.iter().map(|(flag, w)| (flag.clone(), w));
    for (kind, witness) in conditions.chain(hang).chain(race).chain(broken) {
        let path = folder.join(format!("{stem}.{kind}.dot"));
        std::fs::write(&path, show::dot(&source.program, witness))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
