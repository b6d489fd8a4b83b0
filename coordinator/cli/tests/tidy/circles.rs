//! Files of a crate that need one another: no circle of imports is larger than a reader can hold in mind.
//!
//! A file needs another if code outside tests names something in it: by `use`, or by a path such as
//! `crate::state::State`. A name that is re-exported counts for the file where it is defined; the re-export itself
//! counts for nothing. Two measures: the largest circle (strongly connected component) of each crate, and the number
//! of files over which the methods of one type are spread, because a method needs no import to be called.
//!
//! There are no exceptions. Run with `--nocapture` to see the sizes of all circles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files a circle of imports may have.
const MAX_CIRCLE: usize = 4;

/// Files over which the methods of one type may be spread.
const MAX_SPREAD: usize = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

/// A word or a mark of the program text; comments and literals are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Mark(char),
    PathSep,
}

impl Token {
    pub(super) fn is(&self, mark: char) -> bool {
        *self == Token::Mark(mark)
    }

    pub(super) fn word(&self) -> Option<&str> {
        if let Token::Word(word) = self { Some(word) } else { None }
    }
}

/// Position behind a string literal that starts at `at`, raw or not, if one does.
fn behind_string(text: &[u8], at: usize) -> Option<usize> {
    let raw = text[at] == b'r';
    let quote = if raw { at + 1 + text[at + 1..].iter().take_while(|c| **c == b'#').count() } else { at };
    if text.get(quote) != Some(&b'"') {
        return None;
    }
    if raw {
        let end: Vec<u8> = std::iter::once(b'"').chain(text[at + 1..quote].iter().copied()).collect();
        let found = text[quote + 1..].windows(end.len()).position(|w| w == end)?;
        return Some(quote + 1 + found + end.len());
    }
    let mut i = quote + 1;
    while text.get(i).is_some_and(|c| *c != b'"') {
        i += if text[i] == b'\\' { 2 } else { 1 };
    }
    Some(i + 1)
}

/// Position behind a character literal that starts at `at`; a lifetime is none.
fn behind_char(text: &[u8], at: usize) -> Option<usize> {
    if text[at] != b'\'' {
        return None;
    }
    if text.get(at + 1) == Some(&b'\\') {
        return text[at + 3..].iter().position(|c| *c == b'\'').map(|p| at + 4 + p);
    }
    let width = std::str::from_utf8(&text[at + 1..(at + 5).min(text.len())])
        .map_or_else(|e| e.valid_up_to(), str::len)
        .min(4);
    let end = (1..=width).find(|n| text.get(at + 1 + n) == Some(&b'\''));
    let one =
        end.filter(|n| std::str::from_utf8(&text[at + 1..at + 1 + n]).is_ok_and(|s| s.chars().count() == 1));
    one.map(|n| at + 2 + n)
}

fn lex(source: &str) -> Vec<Token> {
    let text = source.as_bytes();
    let word = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c >= 128;
    let (mut out, mut i) = (Vec::new(), 0);
    while i < text.len() {
        let rest = &text[i..];
        if rest.starts_with(b"//") {
            i += rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            i += rest.windows(2).position(|w| w == b"*/").map_or(rest.len(), |p| p + 2);
        } else if let Some(end) = behind_string(text, i).or_else(|| behind_char(text, i)) {
            i = end;
        } else if rest.starts_with(b"::") {
            out.push(Token::PathSep);
            i += 2;
        } else if word(rest[0]) {
            let length = rest.iter().take_while(|c| word(**c)).count();
            out.push(Token::Word(source[i..i + length].to_owned()));
            i += length;
        } else {
            if !rest[0].is_ascii_whitespace() {
                out.push(Token::Mark(rest[0] as char));
            }
            i += 1;
        }
    }
    out
}

/// Position behind the bracket that closes the one at `at`.
pub(super) fn behind_brackets(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

/// Position behind the item that starts at `at`: its `;`, or its body.
fn behind_item(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at] {
            Token::Mark(';') => return at + 1,
            Token::Mark('{') => return behind_brackets(tokens, at),
            Token::Mark('(' | '[') => at = behind_brackets(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Leaves out what is compiled for tests only.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let (mut out, mut i) = (Vec::new(), 0);
    let cfg_test = lex("#[cfg(test)]");
    while i < tokens.len() {
        if !tokens[i..].starts_with(&cfg_test) {
            out.push(tokens[i].clone());
            i += 1;
            continue;
        }
        let end = if tokens.get(i + cfg_test.len()).is_some_and(|t| t.word() == Some("use")) {
            i + tokens[i..].iter().position(|t| t.is(';')).map_or(tokens.len() - i, |p| p + 1)
        } else {
            behind_item(tokens, i + cfg_test.len())
        };
        i = end;
    }
    out
}

/// A name brought into a module, by which path; `*` for all.
pub(super) struct Import {
    pub(super) path: Vec<String>,
    pub(super) name: String,
    public: bool,
}

/// All paths of the tree of a `use` behind `prefix`.
fn use_tree(tokens: &[Token], at: &mut usize, prefix: &[String], public: bool, out: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    loop {
        match tokens.get(*at) {
            Some(Token::Word(word)) if word == "as" => {
                let name = tokens.get(*at + 1).and_then(Token::word).unwrap_or("_").to_owned();
                *at += 2;
                out.push(Import { path, name, public });
                return;
            }
            Some(Token::Word(word)) => {
                path.push(word.clone());
                *at += 1;
            }
            Some(Token::PathSep) => *at += 1,
            Some(Token::Mark('*')) => {
                *at += 1;
                out.push(Import { path, name: "*".to_owned(), public });
                return;
            }
            Some(Token::Mark('{')) => {
                *at += 1;
                while tokens.get(*at).is_some_and(|t| !t.is('}')) {
                    if tokens[*at].is(',') {
                        *at += 1;
                    } else {
                        use_tree(tokens, at, &path, public, out);
                    }
                }
                *at += 1;
                return;
            }
            _ => {
                if path.last().is_some_and(|l| l == "self") {
                    path.pop();
                }
                let name = path.last().cloned().unwrap_or_default();
                out.push(Import { path, name, public });
                return;
            }
        }
    }
}

/// One file: the module it holds, what it defines, imports and names.
pub(super) struct Source {
    pub(super) file: String,
    module: Vec<String>,
    pub(super) tokens: Vec<Token>,
    pub(super) imports: Vec<Import>,
    pub(super) defines: BTreeSet<String>,
}

impl Source {
    fn new(file: String, module: Vec<String>, tokens: Vec<Token>) -> Source {
        let (mut imports, mut rest, mut i) = (Vec::new(), Vec::new(), 0);
        while i < tokens.len() {
            if tokens[i].word() == Some("use") {
                let public = rest.last().is_some_and(|t: &Token| t.word() == Some("pub") || t.is(')'));
                i += 1;
                use_tree(&tokens, &mut i, &[], public, &mut imports);
            } else {
                rest.push(tokens[i].clone());
                i += 1;
            }
        }
        let keywords =
            ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules", "mod"];
        let defines = rest
            .windows(3)
            .filter(|w| w[0].word().is_some_and(|k| keywords.contains(&k)))
            .filter_map(|w| w[1].word().or_else(|| w[2].word()).map(str::to_owned))
            .collect();
        Source { file, module, tokens: rest, imports, defines }
    }

    /// Types that have methods here: names behind `impl`, unless of a trait.
    fn inherent(&self) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        for (i, token) in self.tokens.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| &self.tokens[i]);
            let item = before.is_none_or(|t| {
                t.is('}') || t.is(';') || t.is('{') || t.is(']') || t.word() == Some("unsafe")
            });
            if token.word() != Some("impl") || !item {
                continue;
            }
            let Some(length) = self.tokens[i..].iter().position(|t| t.is('{')) else { continue };
            let head = &self.tokens[i + 1..i + length];
            let (mut depth, mut name, mut of_trait) = (0, None, false);
            for token in head {
                match token {
                    Token::Mark('<') => depth += 1,
                    Token::Mark('>') => depth -= 1,
                    Token::Word(word) if depth == 0 && word == "for" => of_trait = true,
                    Token::Word(word) if depth == 0 && word == "where" => break,
                    Token::Word(word) if depth == 0 => name = Some(word.clone()),
                    _ => {}
                }
            }
            out.extend(name.filter(|_| !of_trait));
        }
        out
    }
}

/// One crate: its files by module.
pub(super) struct Crate {
    pub(super) sources: Vec<Source>,
    by_module: BTreeMap<Vec<String>, usize>,
}

impl Crate {
    /// The crate whose root is this file; `None` if there is none.
    fn read(text: &dyn Fn(&str) -> Option<String>, top: &str) -> Option<Crate> {
        let mut found = Crate { sources: Vec::new(), by_module: BTreeMap::new() };
        found.enter(text, top.to_owned(), Vec::new());
        (!found.sources.is_empty()).then_some(found)
    }

    /// Reads a module and those it declares.
    fn enter(&mut self, text: &dyn Fn(&str) -> Option<String>, file: String, module: Vec<String>) {
        let Some(content) = text(&file) else { return };
        let tokens = without_tests(&lex(&content));
        let (folder, name) =
            file.rsplit_once('/').map_or(("", file.as_str()), |(f, n)| (&file[..=f.len()], n));
        let beside = match name {
            "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
            name => format!("{folder}{}/", name.trim_end_matches(".rs")),
        };
        let declared: Vec<String> = tokens
            .windows(3)
            .filter(|w| w[0].word() == Some("mod") && w[2].is(';'))
            .filter_map(|w| w[1].word().map(str::to_owned))
            .collect();
        self.by_module.insert(module.clone(), self.sources.len());
        self.sources.push(Source::new(file, module.clone(), tokens));
        for name in declared {
            let inner: Vec<String> = module.iter().cloned().chain([name.clone()]).collect();
            self.enter(text, format!("{beside}{name}.rs"), inner.clone());
            self.enter(text, format!("{beside}{name}/mod.rs"), inner);
        }
    }

    /// The file in which the item at the end of a path is defined, the path seen from `module`.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<usize> {
        let (mut at, mut rest): (Vec<String>, &[String]) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (module.to_vec(), &path[1..]),
            "super" => (module.to_vec(), path),
            first => {
                let inner: Vec<String> = module.iter().cloned().chain([first.to_owned()]).collect();
                self.by_module.get(&inner)?;
                (inner, &path[1..])
            }
        };
        while rest.first().is_some_and(|s| s == "super") {
            at.pop()?;
            rest = &rest[1..];
        }
        while let Some(name) = rest.first() {
            let inner: Vec<String> = at.iter().cloned().chain([name.clone()]).collect();
            if !self.by_module.contains_key(&inner) {
                break;
            }
            (at, rest) = (inner, &rest[1..]);
        }
        let here = *self.by_module.get(&at)?;
        let Some(name) = rest.first() else { return Some(here) };
        let source = &self.sources[here];
        if source.defines.contains(name) || depth == 0 {
            return Some(here);
        }
        let named = source.imports.iter().filter(|i| i.public && i.name == *name);
        let all = source.imports.iter().filter(|i| i.public && i.name == "*");
        let through_glob = |i: &Import| {
            let to = self.resolve(&at, &i.path, depth - 1)?;
            let mut full = i.path.clone();
            full.push(name.clone());
            let found = self.resolve(&at, &full, depth - 1)?;
            (self.sources[to].defines.contains(name) || found != to).then_some(found)
        };
        let found = named.filter_map(|i| self.resolve(&at, &i.path, depth - 1)).next();
        found.or_else(|| all.filter_map(through_glob).next()).or(Some(here))
    }

    /// Files a file needs.
    fn needs(&self, source: &Source) -> BTreeSet<usize> {
        let mut out = BTreeSet::new();
        for import in source.imports.iter().filter(|i| !i.public) {
            out.extend(self.resolve(&source.module, &import.path, 8));
        }
        for (i, token) in source.tokens.iter().enumerate() {
            let before = &source.tokens[..i];
            // Who sees an item, `pub(in crate::a)`, is no need of it.
            let visibility = before.ends_with(&lex("(in"));
            let starts = token.word().is_some() && before.last() != Some(&Token::PathSep) && !visibility;
            if !starts || source.tokens.get(i + 1) != Some(&Token::PathSep) {
                continue;
            }
            let mut path = Vec::new();
            for pair in source.tokens[i..].chunks(2) {
                let Some(word) = pair[0].word() else { break };
                path.push(word.to_owned());
                if pair.get(1) != Some(&Token::PathSep) {
                    break;
                }
            }
            out.extend(self.resolve(&source.module, &path, 8));
        }
        let own = self.by_module[&source.module];
        out.remove(&own);
        out
    }

    /// Groups of files that need one another, largest first.
    fn circles(&self) -> Vec<Vec<&str>> {
        let direct: Vec<BTreeSet<usize>> = self.sources.iter().map(|s| self.needs(s)).collect();
        let reached: Vec<BTreeSet<usize>> = (0..direct.len())
            .map(|from| {
                let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
                while let Some(at) = left.pop() {
                    left.extend(direct[at].iter().copied().filter(|to| seen.insert(*to)));
                }
                seen
            })
            .collect();
        let mut out: BTreeSet<Vec<usize>> = BTreeSet::new();
        for a in 0..direct.len() {
            let circle: Vec<usize> =
                reached[a].iter().copied().filter(|b| reached[*b].contains(&a)).collect();
            if circle.len() > 1 {
                out.insert(circle);
            }
        }
        let name = |i: usize| self.sources[i].file.as_str();
        let mut out: Vec<Vec<&str>> = out.into_iter().map(|c| c.into_iter().map(name).collect()).collect();
        out.sort_by_key(|c| std::cmp::Reverse(c.len()));
        out
    }

    /// Types by the files that hold methods of theirs. Types of one name in different modules are told apart by where
    /// a file has the name from.
    fn spreads(&self) -> BTreeMap<(String, String), BTreeSet<&str>> {
        let mut out: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
        for source in &self.sources {
            for name in source.inherent() {
                let import = source.imports.iter().find(|i| i.name == name);
                let globs = source.imports.iter().filter(|i| i.name == "*");
                let own = self.by_module[&source.module];
                let home = if source.defines.contains(&name) {
                    Some(own)
                } else if let Some(import) = import {
                    self.resolve(&source.module, &import.path, 8)
                } else {
                    let found = |i: &Import| self.resolve(&source.module, &i.path, 8);
                    globs.filter_map(found).find(|to| self.sources[*to].defines.contains(&name))
                };
                let home = home.map_or("", |i| self.sources[i].file.as_str());
                out.entry((home.to_owned(), name)).or_default().insert(source.file.as_str());
            }
        }
        out
    }
}

/// Folders of the packages of this workspace, with the roots of their crates.
pub(super) fn crates() -> Vec<(String, Crate)> {
    let out = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*Cargo.toml"])
        .current_dir(root())
        .output()
        .expect("git runs");
    let text = String::from_utf8(out.stdout).expect("names are UTF-8");
    let folders = text.lines().filter_map(|l| l.strip_suffix("/Cargo.toml"));
    let mut found = Vec::new();
    for folder in folders {
        for top in ["lib.rs", "main.rs"] {
            let src = root().join(folder).join("src");
            if let Some(read) = Crate::read(&|file| std::fs::read_to_string(src.join(file)).ok(), top) {
                found.push((folder.to_owned(), read));
            }
        }
    }
    assert!(found.len() > 5, "the crates of the workspace are not found: is this a checkout?");
    found
}

#[test]
fn circles_of_imports_stay_small() {
    let mut wrong = Vec::new();
    for (folder, read) in crates() {
        let circles = read.circles();
        let sizes: Vec<usize> = circles.iter().map(Vec::len).collect();
        println!("{folder}: {} files, circles {sizes:?}", read.sources.len());
        for circle in circles.iter().filter(|circle| circle.len() > MAX_CIRCLE) {
            wrong.push(format!("{folder}: a circle of {} files: {}", circle.len(), circle.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "at most {MAX_CIRCLE} files\n{}", wrong.join("\n"));
}

#[test]
fn methods_of_a_type_stay_together() {
    let mut wrong = Vec::new();
    for (folder, read) in crates() {
        for ((home, name), files) in read.spreads() {
            if files.len() > MAX_SPREAD {
                let (count, list) = (files.len(), files.into_iter().collect::<Vec<_>>().join(", "));
                wrong.push(format!("{folder}/src/{home}: methods of {name} in {count} files: {list}"));
            }
        }
    }
    assert!(wrong.is_empty(), "at most {MAX_SPREAD} files\n{}", wrong.join("\n"));
}

/// A crate of files given by name and text.
pub(super) fn made(files: &[(&str, &str)]) -> Crate {
    let text = |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
    Crate::read(&text, "lib.rs").expect("there is a lib.rs")
}

#[test]
fn a_circle_is_found() {
    let found = made(&[
        ("lib.rs", "mod a; mod b; mod c; pub use c::Third;"),
        ("a/mod.rs", "mod inner; pub use inner::Deep; use crate::b::f;"),
        ("a/inner.rs", "pub struct Deep; // use crate::c;"),
        ("b.rs", "pub fn f() { crate::Third::g(\"use crate::a::Nothing\", '{') }"),
        ("c.rs", "use crate::a; pub struct Third; #[cfg(test)] mod tests { use crate::a::Deep; }"),
    ]);
    assert_eq!(found.circles(), [["a/mod.rs", "b.rs", "c.rs"]]);
}

#[test]
fn what_is_exported_again_counts_where_it_is_defined() {
    let found = made(&[
        ("lib.rs", "mod a; mod b; pub struct Top;"),
        ("a/mod.rs", "mod inner; mod other; pub use inner::*; pub use other::Other;"),
        ("a/inner.rs", "pub(in crate::a) fn f() {} pub struct Deep;"),
        ("a/other.rs", "use super::Deep; pub struct Other;"),
        (
            "b.rs",
            "use crate::a::{Deep as Low, Other}; use crate::Top; impl<'a, T: Into<Low>> Other { } impl Clone for Low {}",
        ),
    ]);
    assert!(found.circles().is_empty(), "{:?}", found.circles());
    let b = found.sources.iter().find(|s| s.file == "b.rs").expect("it is there");
    let names: Vec<&str> = found.needs(b).into_iter().map(|i| found.sources[i].file.as_str()).collect();
    assert_eq!(names, ["lib.rs", "a/inner.rs", "a/other.rs"]);
    let spread = found.spreads();
    assert_eq!(spread.keys().collect::<Vec<_>>(), [&("a/other.rs".to_owned(), "Other".to_owned())]);
}
