//! What every instruction of the book can do, and how one is found by its name.

use crate::book::{BOOK, Instr, read_entry};
use crate::entry::{Entry, Seen};
use crate::kind::Since;
use crate::operand::{Piece, Role, Value};
use crate::slot::Words;
use crate::text::{Bag, Cursor, Env, Names, Refusal, nearest};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Entries by the first word of their names; the longest name stands first.
type Index = HashMap<&'static str, Vec<(&'static str, &'static Entry)>>;

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut index = Index::new();
    for entry in BOOK {
        for name in (entry.names)() {
            index.entry(first(name)).or_default().push((name, *entry));
        }
    }
    index.values_mut().for_each(|names| names.sort_by_key(|n| std::cmp::Reverse(n.0.len())));
    index
});

fn first(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The entry that an instruction with this name and these qualifiers is read by: `cp.async.bulk.tensor.2d` has that of
/// `cp.async.bulk.tensor`, because the longest name wins.
#[must_use]
pub fn entry_of(head: &str) -> Option<(&'static str, &'static Entry)> {
    let whole = |name: &str| matches!(head.as_bytes().get(name.len()), None | Some(b'.'));
    INDEX.get(first(head))?.iter().find(|(name, _)| head.starts_with(name) && whole(name)).copied()
}

/// The name with its qualifiers, each word with its byte.
fn words<'t>(at: &mut Cursor<'t, '_>) -> Vec<(&'t str, usize)> {
    let mut out = Vec::with_capacity(8);
    at.rest();
    loop {
        // Blanks stand before a dot, and not behind it.
        let rest = &at.text[at.at..];
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_:$".contains(c))).unwrap_or(rest.len());
        out.push((&rest[..end], at.at));
        at.at += end;
        if !at.eat(".") {
            return out;
        }
    }
}

fn unknown(head: &str) -> Refusal {
    let names: Vec<&str> = INDEX.values().flatten().map(|(name, _)| *name).collect();
    let prefixes = head.match_indices('.').map(|(i, _)| &head[..i]).chain([head]);
    let near = prefixes.rev().find_map(|prefix| nearest(prefix, &names));
    let message = format!("`{head}` is no instruction of PTX");
    Refusal { at: 0, message, hint: near.map(|near| format!("did you mean `{near}`?")) }
}

impl Instr {
    /// Reads one instruction, without its guard, up to a semicolon or the end of the text.
    ///
    /// # Errors
    /// The text is no instruction, or one of which ptxas says that there is no such form.
    pub fn read(text: &str, env: &mut dyn Env) -> Result<Instr, Refusal> {
        let mut at = Cursor::new(text, env);
        let mut words = words(&mut at);
        let (start, end) = (words[0].1, words.last().map_or(0, |(word, start)| start + word.len()));
        let head: Cow<'_, str> = match text[start..end].contains(|c: char| c.is_whitespace() || c == '/') {
            false => text[start..end].into(),
            true => words.iter().map(|w| w.0).collect::<Vec<_>>().join(".").into(),
        };
        let Some((name, entry)) = entry_of(&head) else { return Err(unknown(&head)) };
        words.drain(..=name.matches('.').count());
        let mut bag = Bag { words, spelled: Vec::new(), end };
        read_entry(entry.tag, &mut bag, &mut at, name)
    }

    /// The entry.
    #[must_use]
    pub fn entry(&self) -> &'static Entry {
        self.told().entry()
    }

    /// The name as it is printed.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.told().name().0
    }

    /// Qualifiers as they are printed.
    #[must_use]
    pub fn words(&self) -> Words {
        self.told().words()
    }

    /// The text, without a semicolon.
    #[must_use]
    pub fn print(&self, names: &dyn Names) -> String {
        self.told().print(names)
    }

    /// Each demand on version and target.
    #[must_use]
    pub fn since(&self) -> Vec<Since> {
        self.told().since()
    }

    /// The least `.version`: 83 is 8.3.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.since().iter().map(|since| since.0).max().unwrap_or(0)
    }

    /// Whether a target, such as 90 for `sm_90a`, has it.
    #[must_use]
    pub fn on(&self, sm: u16) -> bool {
        self.since().iter().all(|since| since.1.has(sm))
    }

    /// Appends the canonical bytes: tag, slots that mean something, operands that are no hints.
    pub fn canon(&self, out: &mut Vec<u8>) {
        self.told().canon(out);
    }

    /// Slots that no engine has a meaning for and that are said.
    #[must_use]
    pub fn abstained(&self) -> Vec<&'static str> {
        self.told().abstained()
    }

    /// Calls `see` with each value of the operands, in the order of the text.
    pub fn each(&self, see: &mut dyn FnMut(Seen<'_>)) {
        self.told().each(see);
    }

    /// Calls `see` with each piece of the operands, in the order of the text, and with the number of its operand.
    pub fn pieces(&self, see: &mut dyn FnMut(usize, Piece<'_>)) {
        self.told().pieces(see);
    }

    /// Calls `change` with each value of the operands: how registers are renamed.
    pub fn each_mut(&mut self, change: &mut dyn FnMut(Role, &mut Value)) {
        self.told_mut().each_mut(change);
    }

    /// The rule that a form breaks, for forms that were made and not read.
    #[must_use]
    pub fn illegal(&self) -> Option<&'static str> {
        self.told().broken()
    }

    /// Whether its operands are those that the qualifiers ask for: registers of other classes may have been put in.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.told().agrees()
    }

    /// Legal forms that are one step weaker in one slot.
    #[must_use]
    pub fn weaker(&self) -> Vec<Instr> {
        let mut out = self.steps(true);
        out.retain(|next| next.illegal().is_none());
        out
    }

    /// Forms that differ in one slot and whose operands fit, legal or not: what generators, mutators and tests of refusals
    /// draw from.
    #[must_use]
    pub fn others(&self) -> Vec<Instr> {
        self.steps(false)
    }

    fn steps(&self, weaker: bool) -> Vec<Instr> {
        let mut out = Vec::new();
        for slot in 0..self.told().slots() {
            for n in 0.. {
                let mut next = self.clone();
                match next.told_mut().step(slot, weaker, n) {
                    Some(true) => out.push(next),
                    Some(false) => {}
                    None => break,
                }
            }
        }
        out
    }
}
