//! The shipped models, by name. A leaf crate: an edit of a model rebuilds none of the engines.
//!
//! Documents beside the models are held to them by tests. `SOURCES.md`: section of the PTX ISA, definitions, programs.
//! `TRACE.md` and `TRACE-TILE.md`: each rule of tcgen05 and of Tile IR. `ATLAS.md`: the least tensor-core program that
//! separates each reading. `DIFFERENCES.md` and `DIFFERENCES-TILE.md`: the least program that separates each switch and
//! each version.

use moire_cat::{Library, LoadError, Model, Source, Variants, closest};
use std::path::{Component, Path};

/// Name and text of every shipped file; files that only hold shared definitions start with `lib-`.
pub const FILES: &[(&str, &str)] = &[
    ("any", include_str!("../any.cat")),
    ("sc", include_str!("../sc.cat")),
    ("ptx-6.0", include_str!("../ptx-6.0.cat")),
    ("ptx-7.5", include_str!("../ptx-7.5.cat")),
    ("ptx", include_str!("../ptx.cat")),
    ("tile-ir", include_str!("../tile-ir.cat")),
    ("rc11-scoped", include_str!("../rc11-scoped.cat")),
    ("lib-ptx", include_str!("../lib-ptx.cat")),
    ("lib-ptx-axioms", include_str!("../lib-ptx-axioms.cat")),
    ("lib-copies", include_str!("../lib-copies.cat")),
    ("lib-proxy-halves", include_str!("../lib-proxy-halves.cat")),
    ("lib-early", include_str!("../lib-early.cat")),
    ("lib-tcgen05", include_str!("../lib-tcgen05.cat")),
    ("lib-ptx-proxies", include_str!("../lib-ptx-proxies.cat")),
];

/// What stands in for the library that herd's models include. Herd's own is in a larger language, so these come first.
pub const HERD: &[(&str, &str)] = &[
    ("lib-herd", include_str!("../herd/lib-herd.cat")),
    ("cos", include_str!("../herd/cos.cat")),
    ("c11_cos", include_str!("../herd/c11_cos.cat")),
    ("x86fences", include_str!("../herd/x86fences.cat")),
    ("fences", include_str!("../herd/fences.cat")),
    ("filters", include_str!("../herd/filters.cat")),
];

/// Models a user can name.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name).filter(|name| !name.starts_with("lib-"))
}

/// The text of a shipped file, with or without `.cat` behind its name.
pub fn text(name: &str) -> Option<&'static str> {
    found(FILES, name)
}

fn found(files: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let stem = name.strip_suffix(".cat").unwrap_or(name);
    files.iter().find(|(n, _)| *n == stem).map(|(_, text)| *text)
}

/// The shipped files as a library for `include "NAME.cat"`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shipped;

impl Library for Shipped {
    fn open(&self, _: &Source, path: &str) -> Option<(Source, String)> {
        let (name, text) = match found(HERD, path) {
            Some(text) => (format!("what stands in for herd's {path}"), text),
            None => (path.to_owned(), text(path)?),
        };
        Some((Source { name, shipped: true }, text.to_owned()))
    }
}

/// Files of a user, read by path, and a shipped file where there is none beside the one that includes it. What a shipped
/// file includes is shipped, and so is the library of herd. A path that leads out of the folder names no file.
pub struct Beside<F>(pub F);

impl<F: Fn(&Path) -> Option<String>> Library for Beside<F> {
    fn open(&self, from: &Source, path: &str) -> Option<(Source, String)> {
        let plain = Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
        let near = Path::new(&from.name).parent().unwrap_or(Path::new("")).join(path);
        let own = if plain && !from.shipped && found(HERD, path).is_none() { (self.0)(&near) } else { None };
        match own {
            Some(text) => Some((Source { name: near.display().to_string(), shipped: false }, text)),
            None => Shipped.open(from, path),
        }
    }
}

/// Loads a shipped model.
pub fn load(name: &str, variants: &Variants) -> Result<Model, LoadError> {
    let Some((_, text)) = FILES.iter().find(|(n, _)| *n == name && !n.starts_with("lib-")) else {
        let known: Vec<&str> = names().collect();
        let hint = match closest(name, names()) {
            Some(near) => format!("did you mean `{near}`? shipped are {}", known.join(", ")),
            None => format!("shipped are {}; a file is named with its .cat", known.join(", ")),
        };
        return Err(LoadError::at_start(name, format!("there is no shipped model `{name}`")).hint(hint));
    };
    moire_cat::load_from(Source { name: name.to_owned(), shipped: true }, text, &Shipped, variants)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a user's file can miss a file beside it.
    #[test]
    fn shipped_models_include_shipped_files_without_a_note() {
        for name in names() {
            let model = load(name, &Variants::new()).unwrap_or_else(|e| panic!("{e}"));
            assert!(!model.includes().iter().any(|i| i.falls_back()), "{name}");
        }
    }
}
