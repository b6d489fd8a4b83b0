//! Which forms ([`moire_source::form`]) a compiler refuses, and in which words.
//!
//! A compiler is asked about a form once. Its answers are kept in a file of the user's cache, `$MOIRE_CACHE`,
//! `$XDG_CACHE_HOME/moire` or `~/.cache/moire`, named by the compiler's file, its size and age, its version, and the options. A
//! row is found by the text that was compiled, so a printer that changes asks again. A file that is missing, damaged or cannot
//! be written costs time only.

use super::{Compiler, Options, batch};
use crate::failure::Failure;
use moire_source::Source;
use moire_source::form::{Forms, plainer, stand_ins};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Most forms of one text, where the compiler names the first that it refuses.
const TOGETHER: usize = 64;
/// Most bytes of a kept table that are read.
const MOST: u64 = 16 << 20;

/// The name of a form, and what the compiler says if it refuses it.
type Row = (String, Option<String>);

/// Which forms one compiler refuses, as far as it was asked.
#[derive(Debug)]
pub struct Table {
    compiler: Compiler,
    options: Options,
    file: Option<PathBuf>,
    /// By the hash of the text that was compiled.
    rows: BTreeMap<u64, Row>,
}

impl Table {
    /// The table of a compiler, with the answers that are kept in a folder.
    pub fn open(compiler: &Compiler, options: &Options, folder: Option<&Path>) -> Table {
        let file = folder.map(|folder| folder.join(name(compiler, options)));
        let small = |p: &PathBuf| fs::metadata(p).is_ok_and(|m| m.len() <= MOST);
        let text = file.as_ref().filter(|p| small(p)).and_then(|p| fs::read_to_string(p).ok());
        let rows = text.map(|text| text.lines().filter_map(read).collect()).unwrap_or_default();
        Table { compiler: compiler.clone(), options: options.clone(), file, rows }
    }

    /// Which of these forms the compiler refuses. It is asked about those that it was not asked about before, some dozens at a
    /// time; `beat` is called before each time. A form counts as refused if a plainer one is ([`plainer`]), and as taken if the
    /// compiler says nothing of it, because its time was up.
    pub fn refused(&mut self, forms: &Forms, beat: &dyn Fn()) -> BTreeSet<String> {
        let unknown = |table: &Table, (_, one): &(String, Source)| !table.rows.contains_key(&table.key(one));
        let new: Forms = forms.clone().into_iter().filter(|form| unknown(self, form)).collect();
        let names_all = self.compiler.kind().names_all();
        // The plainest first: a compiler that refuses a text says so of one form of it. One that names all is asked once.
        let later = new.values().filter(|_| names_all).flat_map(stand_ins);
        let wanted: Forms = later.chain(new.clone()).collect();
        let mut all: BTreeMap<usize, Forms> = BTreeMap::new();
        for (name, one) in wanted.values().flat_map(plainer).chain(wanted.clone()) {
            let level = if names_all { 0 } else { plainer(&one).len() };
            all.entry(level).or_default().insert(name, one);
        }
        for some in all.into_values() {
            let mut open: Forms = some.clone().into_iter().filter(|form| unknown(self, form)).collect();
            open.retain(|name, one| !self.inherits(name, one));
            self.ask(&open, beat);
            some.iter().for_each(|(name, one)| _ = self.inherits(name, one));
        }
        if !new.is_empty() {
            self.keep();
        }
        forms.iter().filter(|(_, one)| self.words(one).is_some()).map(|(name, _)| name.clone()).collect()
    }

    /// Notes that a form is refused because a plainer one is. False: none is, as far as is known.
    fn inherits(&mut self, name: &str, one: &Source) -> bool {
        let words = plainer(one).values().find_map(|like| self.words(like));
        let row = words.filter(|_| self.words(one).is_none()).map(|words| (name.to_owned(), Some(words)));
        row.map(|row| self.rows.insert(self.key(one), row)).is_some()
    }

    /// Asks the compiler about forms.
    fn ask(&mut self, forms: &Forms, beat: &dyn Fn()) {
        let all: Vec<(&String, &Source)> = forms.iter().collect();
        let together = if self.compiler.kind().names_all() { 4 * TOGETHER } else { TOGETHER };
        for some in all.chunks(together) {
            let programs: Vec<&Source> = some.iter().map(|(_, one)| *one).collect();
            let answers = batch::compile(&self.compiler, &programs, &self.options, together, beat);
            for ((name, one), answer) in some.iter().zip(answers) {
                let refusal = match answer.as_ref().map_err(AsRef::as_ref) {
                    Ok(_) => None,
                    Err(why @ (Failure::Refused(_) | Failure::Compile(_) | Failure::Crashed { .. })) => {
                        let words = why.to_string();
                        let words = words.trim_start_matches("refused: ").chars();
                        Some(words.filter(|c| !c.is_control()).take(300).collect())
                    }
                    Err(_) => continue,
                };
                self.rows.insert(self.key(one), ((*name).clone(), refusal));
            }
        }
    }

    /// The first of these forms that the compiler refuses. Of a compiler that takes none at all, its words.
    pub fn refusal(&self, forms: &Forms) -> Option<Failure> {
        let blind = self.rows.values().all(|(_, refusal)| refusal.is_some());
        forms.iter().find_map(|(name, one)| match self.rows.get(&self.key(one)) {
            // A text with a form of which the compiler dies shows that itself.
            Some((_, Some(words))) if died(words) => None,
            Some((_, Some(words))) if blind => Some(Failure::Refused(vec![words.clone()])),
            Some((_, Some(_))) => Some(Failure::Refused(vec![name.clone()])),
            _ => None,
        })
    }

    /// In which words the compiler refuses a form.
    pub fn words(&self, form: &Source) -> Option<String> {
        self.rows.get(&self.key(form)).and_then(|row| row.1.clone())
    }

    /// The first of these forms of which the compiler dies, as it seemed when it was asked.
    pub fn deadly<'f>(&self, forms: &'f Forms) -> Option<&'f Source> {
        let dies =
            |one: &&Source| matches!(self.rows.get(&self.key(one)), Some((_, Some(words))) if died(words));
        forms.values().find(dies)
    }

    fn key(&self, form: &Source) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.compiler.kind().text(&[form], &self.options).hash(&mut hasher);
        hasher.finish()
    }

    /// Writes the table, whole or not at all. Another process may have done so meanwhile: then its rows are asked for again.
    fn keep(&self) {
        let Some((file, folder)) = self.file.as_ref().and_then(|f| Some((f, f.parent()?))) else { return };
        let text: String = self.rows.iter().map(|(key, row)| written(*key, row)).collect();
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(folder)?;
            let mut new = tempfile::NamedTempFile::new_in(folder)?;
            new.write_all(text.as_bytes())?;
            new.persist(file)?;
            Ok(())
        };
        // A table that is not kept is made again.
        drop(write());
    }
}

/// Whether these words are those of a compiler that ended as none should ([`Failure::Crashed`]).
fn died(words: &str) -> bool {
    ["signal: ", "exit status: "].iter().any(|start| words.starts_with(start))
}

/// The user's folder for tables.
pub fn folder() -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = || named("HOME").map(|h| h.join(".cache"));
    named("MOIRE_CACHE").or_else(|| Some(named("XDG_CACHE_HOME").or_else(home)?.join("moire")))
}

fn name(compiler: &Compiler, options: &Options) -> String {
    let mut hasher = DefaultHasher::new();
    (compiler.path(), options).hash(&mut hasher);
    if let Ok(about) = fs::metadata(compiler.path()) {
        (about.len(), about.modified().ok()).hash(&mut hasher);
    }
    format!("forms-{}-{}-{:016x}", compiler.kind().name(), compiler.version(), hasher.finish())
}

/// `3f..  -  fence.acquire.gpu  LLVM ERROR: ..`, with tabs; `+` and nothing behind the name of a form that is taken
fn written(key: u64, (name, refusal): &Row) -> String {
    let sign = if refusal.is_some() { '-' } else { '+' };
    format!("{key:016x}\t{sign}\t{name}\t{}\n", refusal.as_deref().unwrap_or_default())
}

fn read(line: &str) -> Option<(u64, Row)> {
    let mut parts = line.splitn(4, '\t');
    let key = u64::from_str_radix(parts.next()?, 16).ok()?;
    let (sign, name, words) = (parts.next()?, parts.next()?.to_owned(), parts.next()?);
    match sign {
        "+" => Some((key, (name, None))),
        "-" => Some((key, (name, Some(words.to_owned())))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let taken = ("r = load.relaxed.gpu x of .global .b32".to_owned(), None);
        let refused = ("fence.acquire.gpu".to_owned(), Some("refused: no".to_owned()));
        for row in [taken, refused] {
            assert_eq!(read(written(7, &row).trim_end_matches('\n')), Some((7, row)));
        }
        for damaged in ["", "7", "7\t+\tx", "x\t+\tx\ty", "7\t?\tx\ty"] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
    }
}
