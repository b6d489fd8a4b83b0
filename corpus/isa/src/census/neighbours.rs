//! Texts that differ from a form in one thing: a slot, or an operand. Most of them are no forms; that is what they ask.

use super::{Declared, Form};
use crate::book::Instr;
use std::collections::{BTreeMap, HashSet};

/// Every text that differs in one slot of the entry, or in one operand, in a fixed order.
#[must_use]
pub fn neighbours(form: &str) -> Vec<String> {
    let mut names = Declared::default();
    let mut out: Vec<String> = match Instr::read(form, &mut names) {
        Ok(instr) => instr.others().iter().map(|other| other.print(&names)).collect(),
        Err(_) => Vec::new(),
    };
    let (head, tail) = form.split_once(' ').unwrap_or((form, ""));
    out.extend(
        operands(tail)
            .into_iter()
            .map(|tail| if tail.is_empty() { head.to_owned() } else { format!("{head} {tail}") }),
    );
    out.retain(|other| other != form);
    out
}

/// Draws `count` neighbours of the accepted forms of a census, each with its mnemonic: as many of each mnemonic, and of
/// these half of what the book reads and half of what it refuses, as far as there are so many. A function of its arguments.
#[must_use]
pub fn draw<'t>(table: &'t str, seed: u64, count: usize) -> Vec<(&'t str, String)> {
    let forms: Vec<Form<'t>> = table.lines().filter_map(Form::of).collect();
    let mut seen: HashSet<String> = forms.iter().map(|form| form.text.to_owned()).collect();
    let mut by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for form in forms.iter().filter(|form| form.accepted()) {
        by.entry(form.mnemonic).or_default().push(form.text);
    }
    let share = count.div_ceil(by.len().max(1)).div_ceil(2);
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut out = Vec::new();
    for (mnemonic, forms) in by {
        let mut wanted = [share, share];
        for _ in 0..share * 40 {
            let all = neighbours(dice.of::<&str>(&forms));
            let Some(text) = (!all.is_empty()).then(|| dice.of::<String>(&all)) else { continue };
            let read = usize::from(Instr::read(text, &mut Declared::default()).is_ok());
            if wanted[read] > 0 && seen.insert(text.clone()) {
                wanted[read] -= 1;
                out.push((mnemonic, text.clone()));
            }
        }
    }
    out
}

/// A small generator of numbers (xorshift), so that a seed draws the same everywhere.
struct Dice(u64);

impl Dice {
    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let at = (self.0 >> 20) % u64::try_from(all.len()).unwrap_or(u64::MAX);
        &all[usize::try_from(at).unwrap_or(0)]
    }
}

/// Operands with one of them changed, left out or added.
fn operands(tail: &str) -> Vec<String> {
    let parts = split(tail);
    let joined = |parts: &[String]| parts.join(", ");
    let mut out = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        for other in changed(part) {
            let mut parts = parts.clone();
            parts[i] = other;
            out.push(joined(&parts));
        }
        let mut fewer = parts.clone();
        fewer.remove(i);
        out.push(joined(&fewer));
    }
    for more in ["%r30", "%d30", "%p5", "1"] {
        out.push(joined(&[parts.as_slice(), &[more.to_owned()]].concat()));
    }
    out
}

/// The operands of a form: split at the commas outside of braces.
fn split(tail: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut depth = 0i32;
    for c in tail.chars() {
        depth += i32::from("[{(".contains(c)) - i32::from("]})".contains(c));
        match (c, out.last_mut()) {
            (',', _) if depth == 0 => out.push(String::new()),
            (c, Some(last)) => last.push(c),
            (_, None) => {}
        }
    }
    let trimmed = out.into_iter().map(|part| part.trim().to_owned());
    trimmed.filter(|part| !part.is_empty()).collect()
}

/// What may stand instead of a value.
const VALUES: [&str; 14] =
    ["%p6", "%b6", "%h6", "%r6", "%f6", "%d6", "%g6", "%q6", "0", "1", "-1", "128", "1.0", "_"];
/// What may stand in an address.
const PLACES: [&str; 12] =
    ["%r7", "%d7", "%d7+8", "%d7+-8", "%r7+16", "sm", "sm+8", "lm", "cm", "gm", "p0", "4"];

fn changed(part: &str) -> Vec<String> {
    let texts = |all: &[&str]| all.iter().map(|t| (*t).to_owned()).collect::<Vec<String>>();
    if let Some(inside) = part.strip_prefix('[').and_then(|p| p.strip_suffix(']')) {
        let mut out: Vec<String> = if inside.contains(',') { operands(inside) } else { texts(&PLACES) };
        out.iter_mut().for_each(|place| *place = format!("[{place}]"));
        out.extend([inside.to_owned(), format!("{part}.unified")]);
        return out;
    }
    if let Some(inside) = part.strip_prefix('{').and_then(|p| p.strip_suffix('}')) {
        return listed(inside);
    }
    let mut out = texts(&VALUES);
    out.extend([format!("{{{part}}}"), format!("[{part}]"), format!("{part}|%p7"), "sm".into()]);
    if part.starts_with("%p") {
        out.push(format!("!{part}"));
    }
    out
}

/// Lists with one element changed, more, or fewer, and no list.
fn listed(inside: &str) -> Vec<String> {
    let items = split(inside);
    let braced = |items: &[String]| format!("{{{}}}", items.join(", "));
    let mut out = vec![
        items[0].clone(),
        braced(&items[1..]),
        braced(&[items.clone(), vec![items[0].clone()]].concat()),
    ];
    for value in VALUES {
        let mut first = items.clone();
        value.clone_into(&mut first[0]);
        out.push(braced(&first));
        out.push(braced(&vec![value.to_owned(); items.len()]));
    }
    out
}
