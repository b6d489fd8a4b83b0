//! A folder in which the compiler finds our stand-in for `ptxas` instead of NVIDIA's.
//!
//! `tileiras` looks for `ptxas` beside itself and for its libraries beside its folder, wherever it was started from. So
//! the folder holds the same file under another path (a second name of it where the file system allows that, else a
//! copy), names for the libraries, and a script that copies the PTX it is given. The script then runs the real
//! assembler, or pretends that it did: the compiler does not look at what comes back.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where the script puts the PTX.
pub(super) const PTX: &str = "MOIRE_TILE_PTX";
/// The assembler that the script then runs; none where it pretends.
pub(super) const ASSEMBLER: &str = "MOIRE_TILE_PTXAS";

/// What the compiler gives is `-arch A IN -o OUT ..`; `IN` is the only word that ends like PTX.
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

/// See the module header. Gone when dropped.
#[derive(Debug)]
pub(super) struct Bay {
    folder: TempDir,
}

impl Bay {
    /// For the compiler in that file.
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
        // Whatever else lies beside the compiler's folder is found through names.
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
