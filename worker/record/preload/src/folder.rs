//! Writes into the folder of the record. Each file appears whole, once, whichever process is first.

use moire_record::{FOLDER, LAUNCHES, Launch, MODULES, NOTES, hash};
use std::io::Write;
use std::path::PathBuf;

/// The folder of the record, if this process is recorded.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from).filter(|p| p.is_dir())
}

/// Writes a file that nobody sees before it is whole.
fn put(name: &str, content: &[u8]) -> Option<()> {
    let folder = folder()?;
    let to = folder.join(name);
    if to.exists() {
        return Some(());
    }
    let own = folder.join(format!(".{}-{}", std::process::id(), hash(name.as_bytes())));
    std::fs::write(&own, content).and_then(|()| std::fs::rename(&own, &to)).ok()
}

/// Writes a module; its name in the record.
pub(crate) fn module(content: &[u8], ending: &str) -> Option<String> {
    let name = format!("{MODULES}/{}.{ending}", hash(content));
    put(&name, content)?;
    Some(name)
}

/// Writes a launch.
pub(crate) fn launch(launch: &Launch) -> Option<()> {
    let text = launch.write();
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let kernel: String = launch.entry.chars().map(|c| if known(c) { c } else { '_' }).take(80).collect();
    let hash = hash(text.as_bytes());
    put(&format!("{LAUNCHES}/{kernel}-{}.json", hash.get(..16)?), text.as_bytes())
}

/// Adds a line on what was not recorded.
pub(crate) fn note(line: &str) {
    let Some(folder) = folder() else { return };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(folder.join(NOTES));
    let line = line.replace(['\n', '\r'], " ") + "\n";
    // Nothing in the recorded program can take this error.
    let _lost = file.and_then(|mut f| f.write_all(line.as_bytes()));
}
