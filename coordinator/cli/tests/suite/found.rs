//! The page of what Moiré has found in other people's work is made from `deploy/found`, and what it says holds.
//!
//! A file of that folder is a program. The comments in front say who made the mistake, what is claimed, and which versions
//! were asked: `// by:`, `// claim:`, `// class:`, `// has:`, `// right:`, `// says:`; of a program without a compiler
//! `// title:` and `// check:`, the verdict. `BLESS=1` writes the page.

use crate::cli::moire;
use moire_coordinator::line::{Line, Side};
use moire_worker::job::{Cancel, Claim, Engine, Verification};
use moire_worker::oracle::{Oracles, mistake};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HEAD: &str = "# Found in other people's work

Each program is as small as the mistake allows. `BLESS=1 cargo test -p moire-cli --test suite found` makes this page from `deploy/found`, where
the programs are. Versions named here were asked by `moire bisect` with this program, `ptxas` before 13.5 by hand; no others were. A line below a program asks again, where that
compiler is; `moire findings export LINE issue.md --issue` makes a report of it for the people who keep the compiler.
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the folder.
struct Found {
    file: String,
    notes: Vec<(String, String)>,
    program: String,
}

impl Found {
    fn read(path: &Path) -> Found {
        let text = std::fs::read_to_string(path).unwrap();
        let note = |line: &str| {
            let (key, value) = line.strip_prefix("// ")?.split_once(": ")?;
            let known = ["by", "title", "claim", "class", "has", "right", "says", "check"].contains(&key);
            known.then(|| (key.to_owned(), value.to_owned()))
        };
        let notes: Vec<_> = text.lines().map_while(note).collect();
        let program = text.lines().skip(notes.len()).flat_map(|l| [l, "\n"]).collect();
        Found { file: path.file_name().unwrap().to_str().unwrap().to_owned(), notes, program }
    }

    fn note(&self, key: &str) -> Option<&str> {
        self.notes.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The class: words of the claim's checks.
    fn class(&self) -> Vec<Vec<String>> {
        let words = self.note("class").unwrap_or_default();
        let parts: Vec<&str> = match words.split_once(" + ") {
            Some((class, name)) => vec![class, name],
            None => words.split(' ').collect(),
        };
        parts.into_iter().map(|w| vec![w.to_owned()]).collect()
    }

    /// The line that replays the claim.
    fn line(&self) -> Option<String> {
        let words: Vec<&str> = self.note("claim")?.split(' ').collect();
        let [oracle, direction, verdict, sides @ ..] = words.as_slice() else {
            panic!("{}: a claim", self.file)
        };
        let side = |spec: &&str| {
            let side = moire_worker::job::Side::of(spec);
            Side { name: side.name, variants: side.variants, fingerprint: String::new() }
        };
        let line = Line {
            oracle: (*oracle).to_owned(),
            direction: (*direction).to_owned(),
            models: sides.iter().map(side).collect(),
            program: self.program.clone(),
            verdict: (*verdict).to_owned(),
            axioms: self.class(),
        };
        Some(line.encode())
    }

    fn title(&self) -> String {
        self.note("title").map_or_else(|| mistake(&self.class()).title, str::to_owned)
    }

    fn section(&self) -> String {
        let note = |key| self.note(key).unwrap_or_default();
        let mut out = format!("\n## {}: {}\n\n{}\n", note("by"), self.title(), note("says"));
        if let Some(has) = self.note("has") {
            let right = self
                .note("right")
                .map_or(String::new(), |right| format!("; right: {}", right.replace(' ', ", ")));
            let _ = writeln!(out, "\nHas it: {}{right}.", has.replace(' ', ", "));
        }
        let _ = write!(out, "\n```moire deploy/found/{}\n{}```\n", self.file, self.program);
        let _ = match (self.line(), self.note("check")) {
            (Some(line), _) => write!(out, "\n```sh\nmoire replay {line}\n```\n"),
            (None, Some(verdict)) => {
                write!(
                    out,
                    "\n```text\n$ moire check deploy/found/{0}\ndeploy/found/{0}: {verdict}\n```\n",
                    self.file
                )
            }
            (None, None) => panic!("{}: neither claim nor verdict", self.file),
        };
        out
    }
}

/// The files, by who made the mistake.
fn all() -> Vec<Found> {
    let files = std::fs::read_dir(root().join("deploy/found")).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<Found> = files.map(|path| Found::read(&path)).collect();
    all.sort_by_key(|f| (f.note("by").unwrap().to_owned(), f.file.clone()));
    all
}

#[test]
fn the_page_is_made_from_the_folder() {
    let page = HEAD.to_owned() + &all().iter().map(Found::section).collect::<String>();
    let file = root().join("deploy/guide/found.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), page, "BLESS=1 writes it");
}

/// With the compiler of the release the mistake is there, and without it no line says anything.
#[test]
fn each_line_is_reproduced_where_its_compiler_is() {
    let engine = Oracles::new();
    for found in all() {
        let Some(line) = found.line() else { continue };
        match engine.verify(&claim(&line), &Cancel::new()) {
            Verification::Confirmed => {}
            Verification::Abstained(why) => eprintln!("skipped: {}: {why}", found.file),
            Verification::Refuted(why) => panic!("{}: {why}", found.file),
        }
    }
}

/// The claim that a line carries.
fn claim(line: &str) -> Claim {
    let line = Line::decode(line).unwrap();
    let side = |s: Side| moire_worker::job::Side { name: s.name, variants: s.variants, fingerprint: [0; 32] };
    Claim {
        oracle: line.oracle,
        direction: line.direction.parse().unwrap(),
        models: line.models.into_iter().map(side).collect(),
        verdict: line.verdict,
        program: line.program,
        witness: String::new(),
        axioms: line.axioms,
    }
}

/// What needs no compiler is checked.
#[test]
fn each_program_without_a_compiler_has_its_verdict() {
    let checked: Vec<Found> = all().into_iter().filter(|f| f.note("check").is_some()).collect();
    assert!(!checked.is_empty());
    for found in checked {
        let file = format!("deploy/found/{}", found.file);
        let out = moire(&root(), &["check", &file]);
        let said = String::from_utf8(out.stdout).unwrap();
        let first = format!("{file}: {}", found.note("check").unwrap());
        assert_eq!(said.lines().next(), Some(first.as_str()), "{said}");
    }
}
