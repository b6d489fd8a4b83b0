//! Programs with another word in an instruction: what the book says may stand there, whether a drawer knows it or not.
//!
//! Contract: a word is replaced, added or left out in one slot of the instruction's entry, or its name by another one of the
//! entry; or all words are those of a form in the census. A program that the reader or the rules refuse is none.

use crate::numbers::Choose;
use moire_isa::census::{Form, OWN};
use moire_isa::entry_of;
use moire_program::ir::Program;
use moire_program::text::{Format, instruction, parse, print};
use moire_program::validate::is_illegal;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Most names that are tried for one change.
const TRIES: usize = 8;

/// Names with qualifiers that the census of the book has, by the entry that reads them.
static HEADS: LazyLock<BTreeMap<u16, Vec<&'static str>>> = LazyLock::new(|| {
    let mut out: BTreeMap<u16, BTreeSet<&str>> = BTreeMap::new();
    for form in OWN.lines().filter_map(Form::of).filter(Form::accepted) {
        if let Some((_, entry)) = entry_of(head(form.text)) {
            out.entry(entry.tag).or_default().insert(head(form.text));
        }
    }
    out.into_iter().map(|(tag, heads)| (tag, heads.into_iter().collect())).collect()
});

/// The program of a drawn text. `None` if it is refused.
pub(crate) fn read(text: &str) -> Option<Program> {
    parse(text, Format::Native).ok()
}

/// An instruction without its guard.
pub fn bare(text: &str) -> &str {
    if text.starts_with('@') { text.split_once(' ').map_or("", |(_, rest)| rest) } else { text }
}

/// The name of an instruction, with its qualifiers.
pub fn head(text: &str) -> &str {
    bare(text).split(' ').next().unwrap_or_default()
}

/// The names with qualifiers that differ from this one in one slot, or in the name.
pub fn others(head: &str) -> BTreeSet<String> {
    let Some((name, entry)) = entry_of(head) else { return BTreeSet::new() };
    let said: Vec<&str> = head[name.len()..].split('.').skip(1).collect();
    let written = |name: &str, words: &[&str]| [&[name], words].concat().join(".");
    let mut out: BTreeSet<String> = (entry.names)().into_iter().map(|name| written(name, &said)).collect();
    for slot in entry.slots {
        let words = (slot.words)();
        let at: Vec<usize> = (0..said.len()).filter(|n| words.contains(&said[*n])).collect();
        for n in &at {
            out.extend(words.iter().map(|word| written(name, &replaced(&said, *n, &[word]))));
            out.insert(written(name, &replaced(&said, *n, &[])));
        }
        if at.is_empty() {
            out.extend(words.iter().map(|word| written(name, &[&said[..], &[word]].concat())));
        }
    }
    out.remove(head);
    out
}

fn replaced<'t>(said: &[&'t str], n: usize, new: &[&'t str]) -> Vec<&'t str> {
    [&said[..n], new, &said[n + 1..]].concat()
}

/// The program with another head of one instruction, if that is a program.
pub fn with_head(program: &Program, (thread, at): (usize, usize), new: &str) -> Option<Program> {
    let text = print(program);
    let own = read(&text)?;
    let line = own.threads.get(thread)?.body.get(at)?.line;
    let old = instruction(&own, &own.threads[thread], &own.threads[thread].body[at]);
    let changed = |n: u32, text: &str| {
        if n == line { text.replacen(head(&old), new, 1) } else { text.to_owned() }
    };
    let lines: Vec<String> = (1..).zip(text.lines()).map(|(n, text)| changed(n, text)).collect();
    read(&(lines.join("\n") + "\n")).filter(|p| !is_illegal(p))
}

/// The program with another word in some instruction, or as it is where none of those tried may stand.
pub(crate) fn reworded(program: Program, d: &mut dyn Choose) -> Program {
    for _ in 0..TRIES {
        let thread = d.below(program.threads.len());
        let Some(column) = program.threads.get(thread).filter(|t| !t.body.is_empty()) else { continue };
        let at = d.below(column.body.len());
        let text = instruction(&program, column, &column.body[at]);
        let Some(new) = another(head(&text), d) else { continue };
        if let Some(other) = with_head(&program, (thread, at), &new).filter(|other| *other != program) {
            return other;
        }
    }
    program
}

/// Another name for an instruction, which may not fit its operands. A word that few names have is as likely as one that many have.
fn another(head: &str, d: &mut dyn Choose) -> Option<String> {
    let (_, entry) = entry_of(head)?;
    let known = HEADS.get(&entry.tag).filter(|_| d.chance(50));
    let mut all: Vec<String> = match known {
        Some(known) => known.iter().map(|known| (*known).to_owned()).collect(),
        None => others(head).into_iter().collect(),
    };
    let own: BTreeSet<&str> = head.split('.').collect();
    let new: BTreeSet<&str> =
        all.iter().flat_map(|name| name.split('.')).filter(|w| !own.contains(w)).collect();
    if !new.is_empty() && d.chance(75) {
        let at = d.below(new.len());
        let word = new.into_iter().nth(at)?.to_owned();
        all.retain(|name| name.split('.').any(|w| w == word));
    }
    let at = d.below(all.len());
    all.into_iter().nth(at)
}
