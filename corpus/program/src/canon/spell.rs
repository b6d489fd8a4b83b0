//! Spellings: texts from which digests of answers are computed.
//!
//! Contract: a spelling is written out word by word in a table. It does not follow the name of a type, a variant or a field,
//! so renaming one changes no id. Two values that differ have different spellings, unless the table says otherwise. Words
//! that stand in a table never change, because findings of older releases are known by them.

use crate::ir::Content;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroU64;

/// What has a spelling.
pub trait Spell {
    /// Appends the spelling.
    fn spell(&self, out: &mut String);

    /// The spelling alone.
    fn spelling(&self) -> String {
        let mut out = String::new();
        self.spell(&mut out);
        out
    }
}

/// BLAKE3 of the spelling.
pub fn hash(value: &impl Spell) -> [u8; 32] {
    *blake3::hash(value.spelling().as_bytes()).as_bytes()
}

/// A word and what belongs to it, each under a key: `word { key: value, key: value }`.
pub fn record(out: &mut String, word: &str, fields: &[(&str, &dyn Spell)]) {
    out.push_str(word);
    for (n, (key, value)) in fields.iter().enumerate() {
        out.push_str(if n == 0 { " { " } else { ", " });
        out.push_str(key);
        out.push_str(": ");
        value.spell(out);
    }
    out.push_str(if fields.is_empty() { "" } else { " }" });
}

/// A word and what belongs to it: `word(value, value)`, or the word alone.
pub fn tuple(out: &mut String, word: &str, members: &[&dyn Spell]) {
    out.push_str(word);
    if !members.is_empty() {
        listed(out, ["(", ")"], members.iter().copied());
    }
}

/// Values between brackets.
fn listed<'v>(out: &mut String, [open, close]: [&str; 2], values: impl Iterator<Item = &'v dyn Spell>) {
    out.push_str(open);
    for (n, value) in values.enumerate() {
        out.push_str(if n == 0 { "" } else { ", " });
        value.spell(out);
    }
    out.push_str(close);
}

/// Writes the table of a type: a line for each variant with its word, and its parts in brackets. A part that a pattern leaves
/// out does not compile, unless the pattern says `..`.
#[macro_export]
macro_rules! spells {
    ($($of:ty { $($pattern:pat => $word:literal $parts:tt),+ $(,)? })+) => { $(
        impl $crate::canon::spell::Spell for $of {
            fn spell(&self, out: &mut String) {
                match self { $($pattern => $crate::spells!(@ out $word $parts),)+ }
            }
        }
    )+ };
    (@ $out:ident $word:literal { $($key:literal: $value:expr),* $(,)? }) => {
        $crate::canon::spell::record($out, $word, &[$(($key, $value)),*])
    };
    (@ $out:ident $word:literal ( $($value:expr),* )) => {
        $crate::canon::spell::tuple($out, $word, &[$($value),*])
    };
}

macro_rules! numbers {
    ($($of:ty)+) => { $(
        impl Spell for $of {
            fn spell(&self, out: &mut String) {
                _ = write!(out, "{self}");
            }
        }
    )+ };
}
numbers!(bool u8 u16 u32 u64 u128 i8 i32 i64 NonZeroU64);

impl Spell for Content {
    fn spell(&self, out: &mut String) {
        let blocks: Vec<_> = self.blocks().map(|(number, bytes)| (number, *bytes)).collect();
        record(out, "Content", &[("blocks", &blocks)]);
    }
}

impl Spell for str {
    fn spell(&self, out: &mut String) {
        out.push('"');
        for c in self.chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\0' => out.push_str("\\0"),
                c if c.is_ascii_control() => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

impl Spell for String {
    fn spell(&self, out: &mut String) {
        self.as_str().spell(out);
    }
}

impl<T: Spell + ?Sized> Spell for &T {
    fn spell(&self, out: &mut String) {
        (**self).spell(out);
    }
}

impl<T: Spell> Spell for Box<T> {
    fn spell(&self, out: &mut String) {
        (**self).spell(out);
    }
}

impl<T: Spell> Spell for Option<T> {
    fn spell(&self, out: &mut String) {
        match self {
            Some(value) => tuple(out, "Some", &[value]),
            None => tuple(out, "None", &[]),
        }
    }
}

impl<T: Spell> Spell for [T] {
    fn spell(&self, out: &mut String) {
        listed(out, ["[", "]"], self.iter().map(|v| v as &dyn Spell));
    }
}

impl<T: Spell, const N: usize> Spell for [T; N] {
    fn spell(&self, out: &mut String) {
        self.as_slice().spell(out);
    }
}

impl<T: Spell> Spell for Vec<T> {
    fn spell(&self, out: &mut String) {
        self.as_slice().spell(out);
    }
}

impl<T: Spell> Spell for BTreeSet<T> {
    fn spell(&self, out: &mut String) {
        listed(out, ["{", "}"], self.iter().map(|v| v as &dyn Spell));
    }
}

impl<K: Spell, V: Spell> Spell for BTreeMap<K, V> {
    fn spell(&self, out: &mut String) {
        out.push('{');
        for (n, (key, value)) in self.iter().enumerate() {
            out.push_str(if n == 0 { "" } else { ", " });
            key.spell(out);
            out.push_str(": ");
            value.spell(out);
        }
        out.push('}');
    }
}

macro_rules! tuples {
    ($(($($name:ident)+))+) => { $(
        impl<$($name: Spell),+> Spell for ($($name,)+) {
            #[expect(non_snake_case, reason = "members are named as their types")]
            fn spell(&self, out: &mut String) {
                let ($($name,)+) = self;
                tuple(out, "", &[$($name),+]);
            }
        }
    )+ };
}
tuples!((A B) (A B C D) (A B C D E));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_plain_values_are_known() {
        let text = "a\"b\\c\n\u{7}'é";
        let map = BTreeMap::from([("Q1".to_owned(), vec![1u8, 2]), ("Q2".to_owned(), vec![])]);
        let all = (text, &map, Some(BTreeSet::from([true, false])), (7u64, -1i64));
        let told = "(\"a\\\"b\\\\c\\n\\u{7}'é\", {\"Q1\": [1, 2], \"Q2\": []}, Some({false, true}), (7, -1))";
        assert_eq!(all.spelling(), told);
    }
}
