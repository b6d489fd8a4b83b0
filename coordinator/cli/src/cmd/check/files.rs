//! What `moire check` is asked about: files, the files below folders, each kernel of a module that has several, and the launches
//! of records.

use super::recorded;
use anyhow::{Context, Result, bail};
use moire_console::input::{File, read_file};
use moire_verdict::kernel::{self, Wanted};
use std::path::{Path, PathBuf};

/// Endings of the files of a folder that are checked.
const ENDINGS: [&str; 5] = ["litmus", "ptx", "tile", "mlir", "src"];
/// Most files below a folder.
const FILES: usize = 1 << 16;
/// Most folders inside each other.
const DEPTH: usize = 64;

/// A program, or one kernel of a module.
pub(super) struct Task {
    pub(super) path: PathBuf,
    pub(super) file: Result<File>,
    /// The launch: the kernel, where the module has several and none was named; all that a record says.
    pub(super) wanted: Wanted,
}

/// Everything to check.
#[derive(Default)]
pub(super) struct Tasks {
    /// In the order of the command line.
    pub(super) tasks: Vec<Task>,
    /// Whether that is more than the words of the command line say.
    pub(super) many: bool,
    /// What records say they have not.
    pub(super) notes: Vec<String>,
}

/// Everything to check.
pub(super) fn tasks(paths: &[PathBuf], entry: Option<&str>) -> Result<Tasks> {
    let mut files = Vec::new();
    let mut all = Tasks { many: paths.iter().any(|p| p.is_dir()), ..Tasks::default() };
    for path in paths {
        if recorded::is_record(path) {
            let (launches, notes) = recorded::launches(path)?;
            all.notes.extend(notes.iter().map(|note| format!("{}: not recorded: {note}", path.display())));
            files.extend(launches);
        } else if path.is_dir() {
            let before = files.len();
            walk(path, &mut files, 0)?;
            if files.len() == before {
                bail!("{} holds no file that ends in .litmus, .ptx, .tile, .mlir or .src", path.display());
            }
        } else {
            files.push(path.clone());
        }
    }
    for path in files {
        if recorded::is_launch(&path) {
            launched(path, entry, &mut all);
            continue;
        }
        let mut own = tasks_of(&path, read_file(&path), entry);
        all.many |= own.len() > 1;
        all.tasks.append(&mut own);
    }
    Ok(all)
}

/// The tasks of a file: one for each kernel, if it is a module with several and none is asked for.
pub(super) fn tasks_of(path: &Path, file: Result<File>, entry: Option<&str>) -> Vec<Task> {
    let entries = match &file {
        Ok(file) if entry.is_none() => kernel::entries(file),
        _ => Vec::new(),
    };
    let task =
        |file, entry| Task { path: path.to_owned(), file, wanted: Wanted { entry, ..Wanted::default() } };
    match file {
        Ok(file) if entries.len() > 1 => {
            entries.into_iter().map(|e| task(Ok(file.clone()), Some(e))).collect()
        }
        file => vec![task(file, None)],
    }
}

/// A file with this text, which may not be saved yet.
pub(super) fn opened(path: &Path, text: &str) -> Result<File> {
    match read_file(path) {
        Ok(file) => Ok(file.with(text)),
        Err(_) => Ok(File::new(path, &path.display().to_string(), text.as_bytes().to_vec(), None)),
    }
}

/// Adds a launch of a record, if it is one of the kernel that is asked for.
fn launched(path: PathBuf, entry: Option<&str>, all: &mut Tasks) {
    match recorded::read(&path) {
        Ok(Some((_, wanted))) if entry.is_some_and(|e| wanted.entry.as_deref() != Some(e)) => {}
        Ok(Some((file, wanted))) => all.tasks.push(Task { path, file: Ok(file), wanted }),
        Ok(None) => all.notes.push(format!(
            "{}: not judged: the record has no PTX of its module, only what is made from it",
            path.display()
        )),
        Err(error) => all.tasks.push(Task { path, file: Err(error), wanted: Wanted::default() }),
    }
}

/// The files below a folder, sorted by name.
fn walk(folder: &Path, out: &mut Vec<PathBuf>, depth: usize) -> Result<()> {
    if depth > DEPTH {
        bail!("{}: folders are nested more than {DEPTH} deep", folder.display());
    }
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut all: Vec<PathBuf> = entries.map(|e| Ok(e?.path())).collect::<Result<_>>()?;
    all.sort();
    for path in all {
        if path.is_dir() && !path.is_symlink() {
            walk(&path, out, depth + 1)?;
        } else if path.extension().is_some_and(|e| ENDINGS.iter().any(|known| e == *known)) {
            out.push(path);
            if out.len() > FILES {
                bail!("{}: more than {FILES} files", folder.display());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("inner")).unwrap();
        for name in ["b.litmus", "a.ptx", "inner/c.tile", "notes.txt"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let Tasks { tasks, many, .. } = tasks(&[folder.path().to_owned()], None).unwrap();
        let found: Vec<PathBuf> = tasks.into_iter().map(|t| t.path).collect();
        assert!(many);
        assert_eq!(found, [at("a.ptx"), at("b.litmus"), at("inner/c.tile")]);
        std::fs::create_dir(at("none")).unwrap();
        assert!(super::tasks(&[at("none")], None).is_err());
    }
}
