//! The bay: a folder in which the compiler finds our stand-in for `ptxas` instead of NVIDIA's.
//!
//! `tileiras` looks for `ptxas` beside itself and for its libraries beside its folder, wherever it was started from. So the
//! bay holds the compiler's file under another path (a hard link where the file system allows one, else a copy), links to
//! the libraries, and a script in place of `ptxas`. The script copies the PTX it is given. Then it runs the real assembler,
//! or writes an empty object: the compiler does not look at the object.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Variable with the path to which the script copies the PTX.
pub(super) const PTX: &str = "MOIRE_TILE_PTX";
/// Variable with the assembler that the script then runs; empty if it only pretends.
pub(super) const ASSEMBLER: &str = "MOIRE_TILE_PTXAS";

/// The script. It is called with `-arch A IN -o OUT ..`; `IN` is the only word that ends in `.ptx`.
const SCRIPT: &str = r#"#!/bin/sh
before= in= out=
for word in "$@"; do
    case $word in *.ptx) in=$word ;; esac
    [ "$before" = -o ] && out=$word
    before=$word
done
[ -n "$MOIRE_TILE_PTX" ] && [ -n "$in" ] && cp "$in" "$MOIRE_TILE_PTX"
[ -n "$MOIRE_TILE_PTXAS" ] && exec "$MOIRE_TILE_PTXAS" "$@"
[ -n "$out" ] && : > "$out"
"#;

/// A folder with the compiler and our stand-in for `ptxas`. The folder is removed on drop.
#[derive(Debug)]
pub(super) struct Bay {
    folder: TempDir,
}

impl Bay {
    /// A bay for the compiler in that file.
    pub(super) fn new(compiler: &Path) -> io::Result<Bay> {
        let compiler = fs::canonicalize(compiler)?;
        let home = compiler.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let folder = tempfile::Builder::new().prefix("moire-tile").tempdir()?;
        let bin = folder.path().join("bin");
        fs::create_dir(&bin)?;
        let own = bin.join("tileiras");
        if fs::hard_link(&compiler, &own).is_err() {
            fs::copy(&compiler, &own)?;
        }
        // Everything else beside the compiler's folder is found through links.
        for entry in fs::read_dir(home)? {
            let entry = entry?;
            if entry.file_name() != "bin" {
                symlink(entry.path(), folder.path().join(entry.file_name()))?;
            }
        }
        let script = bin.join("ptxas");
        fs::write(&script, SCRIPT)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        Ok(Bay { folder })
    }

    /// The compiler to start.
    pub(super) fn compiler(&self) -> PathBuf {
        self.folder.path().join("bin/tileiras")
    }

    /// A folder for one run.
    pub(super) fn run(&self) -> io::Result<TempDir> {
        tempfile::tempdir_in(self.folder.path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_stand_in_copies_and_pretends_or_goes_on() {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(home.path().join("lib")).unwrap();
        let compiler = bin.join("tileiras");
        fs::write(&compiler, "").unwrap();
        let bay = Bay::new(&compiler).unwrap();
        assert!(bay.compiler().is_file());
        assert!(bay.folder.path().join("lib").is_dir());
        let run = bay.run().unwrap();
        let at = |name: &str| run.path().join(name);
        fs::write(at("in.ptx"), "// text").unwrap();
        let assemble = |real: &str| {
            let mut command = Command::new(bay.folder.path().join("bin/ptxas"));
            command.arg("-arch").arg("sm_90a").arg(at("in.ptx")).arg("-o").arg(at("out.bin"));
            command.arg("--opt-level").arg("3").env(PTX, at("copy")).env(ASSEMBLER, real);
            command.status().unwrap().success()
        };
        assert!(assemble(""));
        assert_eq!(fs::read_to_string(at("copy")).unwrap(), "// text");
        assert_eq!(fs::read(at("out.bin")).unwrap(), b"");
        assert!(!assemble("/bin/false"));
    }
}
