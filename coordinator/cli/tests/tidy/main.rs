//! The rules of the house that no other tool checks: arrows between crates, headers, sizes, words, paths in documents.

mod catchall;
mod circles;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

/// Files git knows or would add, with the given ending; bindings made by the compiler left out.
fn files(ending: &str) -> Vec<PathBuf> {
    let out = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .expect("git runs");
    let text = String::from_utf8(out.stdout).expect("names are UTF-8");
    let keep = |name: &&str| name.ends_with(ending) && !name.contains("/gen/");
    let found: Vec<PathBuf> =
        text.lines().filter(keep).map(|n| root().join(n)).filter(|p| p.is_file()).collect();
    assert!(!found.is_empty(), "no {ending} files found: is this a checkout?");
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Everything each crate may depend on outside its tests. Anything else is a design change.
const ARROWS: &[(&str, &[&str])] = &[
    ("corpus/isa", &["strsim"]),
    ("corpus/program", &["moire-isa", "blake3", "thiserror"]),
    ("corpus/kernel", &["moire-isa", "moire-program", "thiserror"]),
    ("corpus/tile-ir", &["moire-program", "thiserror"]),
    (
        "corpus/generate",
        &[
            "moire-isa",
            "moire-program",
            "moire-kernel",
            "moire-tile-ir",
            "moire-source",
            "arbitrary",
            "blake3",
            "rand_chacha",
            "thiserror",
        ],
    ),
    ("corpus/source", &["moire-program", "moire-kernel", "arbitrary", "thiserror"]),
    ("worker/cat", &["strsim", "thiserror"]),
    ("worker/models", &["moire-cat"]),
    ("worker/execution", &["moire-program", "moire-cat"]),
    (
        "worker/naive",
        &["moire-program", "moire-cat", "moire-execution", "rustc-hash", "smallvec", "thiserror"],
    ),
    (
        "worker/explore",
        &[
            "moire-program",
            "moire-cat",
            "moire-execution",
            "fixedbitset",
            "rustc-hash",
            "smallvec",
            "stacker",
            "thiserror",
        ],
    ),
    ("worker/mend", &["moire-program", "moire-cat", "moire-execution", "moire-explore"]),
    (
        "worker/verdict",
        &[
            "moire-program",
            "moire-kernel",
            "moire-tile-ir",
            "moire-source",
            "moire-cat",
            "moire-models",
            "moire-execution",
            "moire-explore",
            "moire-operate",
            "moire-mend",
            "anyhow",
            "blake3",
            "schemars",
            "serde",
            "serde_json",
            "similar",
        ],
    ),
    ("worker/operate", &["moire-program", "rustc-hash"]),
    ("worker/toolchain", &["moire-tile-ir", "moire-source", "libloading", "rustix", "tempfile", "thiserror"]),
    ("worker/gpu", &["moire-program", "libloading", "serde", "serde_json", "thiserror"]),
    ("worker/record", &["lz4_flex", "ruzstd", "serde", "serde_json"]),
    ("worker/record/preload", &["moire-record"]),
    ("worker/record/standin", &["moire-record"]),
    ("proto", &["prost", "tonic", "tonic-prost"]),
];

/// Crates of this workspace a crate may never depend on, directly or not.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("corpus", &["moire-cat", "moire-explore", "moire-worker", "moire-coordinator"]),
    ("coordinator", &["moire-cat", "moire-explore", "moire-console", "moire-bench"]),
    ("coordinator/console", &["moire-lab", "moire-bench", "moire-cli"]),
    ("coordinator/lab", &["moire-cli"]),
    ("worker", &["moire-lab", "moire-coordinator", "moire-console", "moire-bench", "moire-corpus", "sled"]),
];

/// Names in the `[dependencies]` table of a manifest.
fn dependencies(folder: &str) -> Vec<String> {
    let text = read(&root().join(folder).join("Cargo.toml"));
    let table = text.split("\n[").find(|t| t.starts_with("dependencies]")).unwrap_or_default();
    let names = table.lines().skip(1).filter(|l| l.contains('=') && !l.starts_with('#'));
    names.filter_map(|l| l.split(['.', '=', ' ']).next()).map(str::to_owned).collect()
}

#[test]
fn arrows_point_one_way() {
    for (folder, allowed) in ARROWS {
        for name in dependencies(folder) {
            assert!(allowed.contains(&name.as_str()), "{folder} may not depend on {name}");
        }
    }
    for (folder, forbidden) in FORBIDDEN {
        for name in dependencies(folder) {
            assert!(!forbidden.contains(&name.as_str()), "{folder} may not depend on {name}");
        }
    }
}

/// Both engines read a model with `moire-cat`; the enumerator evaluates it with its own code.
#[test]
fn witnesses_share_no_evaluator() {
    let enumerator = root().join("worker/naive/src");
    let sources: Vec<PathBuf> = files(".rs").into_iter().filter(|p| p.starts_with(&enumerator)).collect();
    assert!(sources.iter().any(|p| p.ends_with("judge.rs")), "the enumerator has moved");
    for path in sources {
        let text = read(&path);
        for (at, _) in text.match_indices("moire_cat::") {
            let rest = &text[at..];
            let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let end = if rest.starts_with("moire_cat::{") { rest.find(';') } else { rest.find(|c| !part(c)) };
            let names = rest[..end.unwrap_or(rest.len())].split(|c: char| !c.is_alphanumeric() && c != '_');
            for name in names {
                assert!(
                    !["eval", "bits", "licence"].contains(&name),
                    "{} uses moire_cat::{name}",
                    short(&path)
                );
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    for path in files(".rs") {
        let text = read(&path);
        let first = text.lines().find(|l| !l.trim().is_empty() && !l.starts_with("#!")).unwrap_or_default();
        assert!(first.starts_with("//!"), "{} has no `//!` header", short(&path));
    }
}

#[test]
fn nothing_is_left_unfinished() {
    let marks = [
        "FIX".to_owned() + "ME",
        "XX".to_owned() + "X",
        "dbg".to_owned() + "!(",
        "todo".to_owned() + "!(",
        "#[ig".to_owned() + "nore",
    ];
    for path in files(".rs") {
        for (i, line) in read(&path).lines().enumerate() {
            let mark = marks.iter().find(|m| line.contains(m.as_str()));
            assert!(mark.is_none(), "{}:{}: {}", short(&path), i + 1, line.trim());
        }
    }
}

/// Lines between `fn` and its closing brace at the same indentation.
fn function_lengths(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let starts =
            ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "async fn ", "pub async fn ", "const fn "]
                .iter()
                .any(|s| code.starts_with(s));
        if !starts || line.trim_end().ends_with(';') {
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent));
        if let Some(length) = lines[i..].iter().position(|l| *l == closing) {
            out.push((i + 1, length + 1));
        }
    }
    out
}

#[test]
fn functions_stay_small() {
    for path in files(".rs") {
        for (line, length) in function_lengths(&read(&path)) {
            assert!(length <= 80, "{}:{line}: a function of {length} lines", short(&path));
        }
    }
}

#[test]
fn files_stay_small() {
    for path in files(".rs") {
        let lines = read(&path).lines().count();
        assert!(lines <= 900, "{} has {lines} lines: which single idea is it about?", short(&path));
    }
}

#[test]
fn documents_name_what_exists() {
    let guide = files(".md").into_iter().filter(|p| p.to_string_lossy().contains("deploy/guide"));
    let pages =
        ["README.md", "ARCHITECTURE.md", "BENCHMARKS.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    for page in pages.into_iter().chain(guide) {
        let name = short(&page);
        for word in read(&page).split(['`', ' ', '\n', '(', ')']) {
            let word = word.trim_matches([',', '.', ':', ';']);
            let top = ["proto/", "corpus/", "worker/", "coordinator/", "deploy/", ".ci/"]
                .iter()
                .any(|t| word.starts_with(t));
            if top && !word.contains(['*', '<', '{']) {
                assert!(root().join(word).exists(), "{name} names {word}, which is not there");
            }
        }
    }
}

#[test]
fn no_machine_paths() {
    let marks = ["/ho".to_owned() + "me/", "/ro".to_owned() + "ot/", "/wo".to_owned() + "rk/"];
    for ending in [".rs", ".md", ".toml", ".cat", ".proto", "run"] {
        for path in files(ending) {
            for (i, line) in read(&path).lines().enumerate() {
                assert!(
                    !marks.iter().any(|m| line.contains(m.as_str())),
                    "{}:{}: {}",
                    short(&path),
                    i + 1,
                    line.trim()
                );
            }
        }
    }
}

/// Phrases that a reader has to decode, or that cite what is not in the repository, each with what to write instead. They
/// are pieced together, so that this file does not contain them.
fn unclear() -> Vec<(String, &'static str)> {
    let pieces = [
        ("hangs", " on", "depends on"),
        ("how ", "manieth", "the number or the position"),
        ("nobody ", "looks at", "unobserved, or not used"),
        ("goes on ", "where it", "resumes from"),
        ("any", "body waits", "a worker, thread or client waits"),
        ("some", "body waits", "a worker, thread or client waits"),
        ("who", "ever ", "the worker, thread, client or access that acts"),
        ("now ", "and then", "sometimes, or from time to time"),
        ("tests of ", "the tests", "a planted bug, to test that the tests find it"),
        ("see the module ", "header", "a noun phrase or a verb that says what the item is"),
        ("/// ", "what.", "what the text is about"),
        ("whatever is ", "chosen", "for every choice"),
        ("text drawn ", "is not read", "if the drawn text is refused"),
        ("factorial in ", "them", "they are few, because their orders are factorial in number"),
        ("// .", "..", "the name of the program that this one differs from"),
        ("design ", "section", "the section of the published document"),
        ("exploration", ".md", "the header of the module"),
        ("digest `", "tcgen05", "the section of the published document"),
    ];
    pieces.map(|(a, b, instead)| (format!("{a}{b}"), instead)).to_vec()
}

#[test]
fn words_are_plain() {
    let unclear = unclear();
    for ending in [".rs", ".md", ".cat", ".proto", ".html", ".litmus", ".ptx", ".src", ".tile"] {
        for path in files(ending) {
            for (i, line) in read(&path).lines().enumerate() {
                let line = line.to_lowercase();
                if let Some((phrase, instead)) = unclear.iter().find(|(phrase, _)| line.contains(phrase)) {
                    panic!("{}:{}: `{phrase}`; write: {instead}", short(&path), i + 1);
                }
            }
        }
    }
}

#[test]
fn every_dependency_comes_from_the_registry() {
    let lock = read(&root().join("Cargo.lock"));
    let mut sources: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lock.lines().filter_map(|l| l.strip_prefix("source = ")) {
        *sources.entry(line).or_insert(0) += 1;
    }
    for (source, count) in sources {
        assert!(source.starts_with("\"registry+"), "{count} packages come from {source}");
    }
    assert!(lock.contains("name = \"sled\"\nversion = \"0.34.7\""), "sled is pinned to 0.34.7");
}
