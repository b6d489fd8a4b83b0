//! Executions that decide a verdict, as pages, as pictures and as Graphviz files.

use super::text;
use crate::picture::{Picture, page, svg};
use crate::show;
use anyhow::{Context, Result};
use moire_verdict::answer::{Answer, Part};
use std::path::Path;

/// Writes each execution of an answer into files of its own, named after what it shows: `.html`, `.svg` and `.dot`.
pub(super) fn write(folder: &Path, answer: &Answer) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let stem = Path::new(&answer.file).file_stem();
    let stem = stem.map_or("program".into(), |s| s.to_string_lossy().into_owned());
    for (n, part) in answer.parts.iter().enumerate() {
        let stem = if answer.parts.len() > 1 { format!("{stem}.part-{n}") } else { stem.clone() };
        write_part(folder, &stem, answer, part)?;
    }
    Ok(())
}

fn write_part(folder: &Path, stem: &str, answer: &Answer, part: &Part) -> Result<()> {
    let conditions = part.conditions.iter().enumerate();
    let conditions = conditions.filter_map(|(i, c)| Some((format!("condition-{i}"), c.execution.as_ref()?)));
    // A race has always the same name: the first that was found.
    let name = |shows: &String| if shows.ends_with("-race") { "race".to_owned() } else { shows.clone() };
    let shown = part.executions.iter().flat_map(|e| e.shows.iter().map(move |s| (name(s), &e.execution)));
    for (kind, execution) in conditions.chain(shown) {
        let picture = Picture::new(&part.threads, execution, &part.findings);
        let title = format!("{}: {kind}", answer.title());
        let hang = part.hang.as_ref().filter(|_| kind == "hang");
        let files = [
            ("html", page(&title, &text::wrong(answer, part), hang, &picture)),
            ("svg", svg(&title, &picture)),
            ("dot", show::dot(&part.threads, execution)),
        ];
        for (form, content) in files {
            let path = folder.join(format!("{stem}.{kind}.{form}"));
            std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}
