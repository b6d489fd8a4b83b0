//! What `moire check` is asked about: files, the files below folders, and each kernel of a module that has several.

use anyhow::{Context, Result, bail};
use moire_console::input::{File, read_file};
use moire_verdict::kernel;
use std::path::{Path, PathBuf};

/// Endings of the files of a folder that are checked.
const ENDINGS: [&str; 4] = ["litmus", "ptx", "tile", "mlir"];
/// Most files below a folder.
const FILES: usize = 1 << 16;
/// Most folders inside each other.
const DEPTH: usize = 64;

/// A program, or one kernel of a module.
pub(super) struct Task {
    pub(super) path: PathBuf,
    pub(super) file: Result<File>,
    /// The kernel, where the module has several and none was named.
    pub(super) entry: Option<String>,
}

/// Everything to check, in the order of the command line, and whether that is more than its words say.
pub(super) fn tasks(paths: &[PathBuf], entry: Option<&str>) -> Result<(Vec<Task>, bool)> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            walk(path, &mut files, 0)?;
            if files.len() == before {
                bail!("{} holds no file that ends in .litmus, .ptx, .tile or .mlir", path.display());
            }
        } else {
            files.push(path.clone());
        }
    }
    let mut out = Vec::new();
    let mut many = paths.iter().any(|p| p.is_dir());
    for path in files {
        let file = read_file(&path);
        let entries = match &file {
            Ok(file) if entry.is_none() => kernel::entries(file),
            _ => Vec::new(),
        };
        many |= entries.len() > 1;
        match file {
            Ok(file) if entries.len() > 1 => out.extend(entries.into_iter().map(|entry| Task {
                path: path.clone(),
                file: Ok(file.clone()),
                entry: Some(entry),
            })),
            file => out.push(Task { path, file, entry: None }),
        }
    }
    Ok((out, many))
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
        let (tasks, many) = tasks(&[folder.path().to_owned()], None).unwrap();
        let found: Vec<PathBuf> = tasks.into_iter().map(|t| t.path).collect();
        assert!(many);
        assert_eq!(found, [at("a.ptx"), at("b.litmus"), at("inner/c.tile")]);
        std::fs::create_dir(at("none")).unwrap();
        assert!(super::tasks(&[at("none")], None).is_err());
    }
}
