//! Slots: one or more words of a name, as they stand in the text and in canonical bytes.

mod shape;
mod types;

pub use shape::Mnk;
pub use types::Types;

use crate::kind::{Kind, Lattice, Since};
use crate::kinds::Scope;
use crate::text::{Bag, Refusal, dotted};

/// Words to print, each with its first version.
pub type Words = Vec<(&'static str, Since)>;

/// A value of a slot, whatever its type.
pub trait Worded {
    /// Appends its words; `spelled` are those of the text where there is a choice.
    fn put(&self, spelled: &[&'static str], out: &mut Words);
    /// Appends its canonical bytes.
    fn canon(&self, out: &mut Vec<u8>);
    /// Whether it is more than what is meant without a word.
    fn is_said(&self) -> bool;
    /// Becomes the `n`th of the other values, or of those one step weaker. Says whether there is one.
    fn step(&mut self, weaker: bool, n: usize) -> bool;
}

/// A type of slots.
pub trait Slot: Worded + Copy + PartialEq {
    /// All its words.
    fn words() -> Vec<&'static str>;
    /// The kinds that it is made of.
    fn kinds() -> Vec<&'static str>;
    /// Takes its words out of the bag.
    ///
    /// # Errors
    /// A word that must stand does not.
    fn take(bag: &mut Bag<'_>, name: &str) -> Result<Self, Refusal>;
}

/// The word that stands for a value: as written, or the usual one, or none for what is meant without a word.
fn put(kind: &'static Kind, tag: u8, spelled: &[&'static str], out: &mut Words) {
    let said = kind.rows.iter().find(|row| row.tag == tag && spelled.contains(&row.word));
    let usual = if kind.default == Some(tag) { None } else { kind.usual(tag) };
    out.extend(said.or(usual).map(|row| (row.word, row.since)));
}

impl<L: Lattice> Worded for L {
    fn put(&self, spelled: &[&'static str], out: &mut Words) {
        put(L::KIND, self.tag(), spelled, out);
    }
    fn canon(&self, out: &mut Vec<u8>) {
        out.push(self.tag());
    }
    fn is_said(&self) -> bool {
        L::KIND.default != Some(self.tag())
    }
    fn step(&mut self, weaker: bool, n: usize) -> bool {
        let next = L::KIND.steps(self.tag(), weaker).get(n).copied();
        next.is_some_and(|tag| {
            *self = L::of(tag);
            true
        })
    }
}

impl<L: Lattice> Slot for L {
    fn words() -> Vec<&'static str> {
        L::KIND.words().collect()
    }
    fn kinds() -> Vec<&'static str> {
        vec![L::NAME]
    }
    fn take(bag: &mut Bag<'_>, name: &str) -> Result<L, Refusal> {
        bag.word(L::KIND, name).map(L::of)
    }
}

/// Tag of "no word" in canonical bytes.
const NONE: u8 = u8::MAX;

impl<L: Lattice> Worded for Option<L> {
    fn put(&self, spelled: &[&'static str], out: &mut Words) {
        if let Some(value) = self {
            put(L::KIND, value.tag(), spelled, out);
        }
    }
    fn canon(&self, out: &mut Vec<u8>) {
        out.push(self.map_or(NONE, Lattice::tag));
    }
    fn is_said(&self) -> bool {
        self.is_some()
    }
    fn step(&mut self, weaker: bool, n: usize) -> bool {
        let mut others: Vec<Option<L>> = L::KIND
            .steps(self.map_or(NONE, Lattice::tag), weaker)
            .into_iter()
            .map(|tag| Some(L::of(tag)))
            .collect();
        if self.is_some() && !weaker {
            others.push(None);
        }
        others.get(n).is_some_and(|next| {
            *self = *next;
            true
        })
    }
}

impl<L: Lattice> Slot for Option<L> {
    fn words() -> Vec<&'static str> {
        L::KIND.words().collect()
    }
    fn kinds() -> Vec<&'static str> {
        vec![L::NAME]
    }
    fn take(bag: &mut Bag<'_>, _: &str) -> Result<Self, Refusal> {
        Ok(bag.take(L::KIND, 0).map(|(_, tag)| L::of(tag)))
    }
}

/// An order with the scope it needs, or without one: what `.relaxed.gpu` or `.weak` say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Strong<O> {
    /// The order.
    pub order: O,
    /// Its scope, if it needs one.
    pub scope: Option<Scope>,
}

/// Orders, of which some need a scope and the others have none.
pub trait Scoped: Lattice {
    /// Those that have none.
    const LOOSE: &'static [Self];
}

impl<O: Scoped> Strong<O> {
    fn new(order: O, scope: Scope) -> Self {
        Strong { order, scope: (!O::LOOSE.contains(&order)).then_some(scope) }
    }

    fn steps(self, weaker: bool) -> Vec<Self> {
        let scope = self.scope.unwrap_or(Scope::Sys);
        let orders =
            O::KIND.steps(self.order.tag(), weaker).into_iter().map(|tag| Self::new(O::of(tag), scope));
        let scopes = if self.scope.is_some() { Scope::KIND.steps(scope.tag(), weaker) } else { Vec::new() };
        orders.chain(scopes.into_iter().map(|tag| Self::new(self.order, Scope::of(tag)))).collect()
    }
}

impl<O: Scoped> Worded for Strong<O> {
    fn put(&self, spelled: &[&'static str], out: &mut Words) {
        self.order.put(spelled, out);
        self.scope.put(spelled, out);
    }
    fn canon(&self, out: &mut Vec<u8>) {
        self.order.canon(out);
        self.scope.canon(out);
    }
    fn is_said(&self) -> bool {
        self.order.is_said()
    }
    fn step(&mut self, weaker: bool, n: usize) -> bool {
        become_nth(self, &self.steps(weaker), n)
    }
}

impl<O: Scoped> Slot for Strong<O> {
    fn words() -> Vec<&'static str> {
        O::KIND.words().chain(Scope::KIND.words()).collect()
    }
    fn kinds() -> Vec<&'static str> {
        vec![O::NAME, Scope::NAME]
    }
    fn take(bag: &mut Bag<'_>, name: &str) -> Result<Self, Refusal> {
        let order = O::take(bag, name)?;
        let loose = O::LOOSE.contains(&order);
        let scope = if loose { None } else { Some(Scope::take(bag, name)?) };
        Ok(Strong { order, scope })
    }
}

/// An order and a scope that stand together or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair<O> {
    /// The order.
    pub order: O,
    /// Absent: neither was said, and the scope is `.cta`.
    pub scope: Option<Scope>,
}

impl<O: Lattice> Pair<O> {
    /// The scope that holds.
    #[must_use]
    pub fn reach(self) -> Scope {
        self.scope.unwrap_or(Scope::Cta)
    }

    fn steps(self, weaker: bool) -> Vec<Self> {
        let scope = Some(self.reach());
        let orders = O::KIND.steps(self.order.tag(), weaker).into_iter();
        let orders = orders.map(|tag| Pair { order: O::of(tag), scope });
        let scopes = Scope::KIND.steps(self.reach().tag(), weaker).into_iter();
        orders.chain(scopes.map(|tag| Pair { scope: Some(Scope::of(tag)), ..self })).collect()
    }
}

impl<O: Lattice> Worded for Pair<O> {
    fn put(&self, spelled: &[&'static str], out: &mut Words) {
        if self.scope.is_some() {
            out.extend(O::KIND.usual(self.order.tag()).map(|row| (row.word, row.since)));
        }
        self.scope.put(spelled, out);
    }
    fn canon(&self, out: &mut Vec<u8>) {
        self.order.canon(out);
        self.reach().canon(out);
    }
    fn is_said(&self) -> bool {
        self.scope.is_some()
    }
    fn step(&mut self, weaker: bool, n: usize) -> bool {
        become_nth(self, &self.steps(weaker), n)
    }
}

impl<O: Lattice> Slot for Pair<O> {
    fn words() -> Vec<&'static str> {
        O::KIND.words().chain(Scope::KIND.words()).collect()
    }
    fn kinds() -> Vec<&'static str> {
        vec![O::NAME, Scope::NAME]
    }
    fn take(bag: &mut Bag<'_>, name: &str) -> Result<Self, Refusal> {
        let before = bag.words.len();
        let order = O::take(bag, name)?;
        let said = bag.words.len() < before;
        let scope = if said { Some(Scope::take(bag, name)?) } else { None };
        Ok(Pair { order, scope })
    }
}

/// Two qualifiers whose order in the text matters: the spaces of destination and source, two types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Then<A, B> {
    /// The one that stands first.
    pub first: A,
    /// The one behind it.
    pub second: B,
}

impl<A: Lattice, B: Lattice> Then<A, B> {
    fn steps(self, weaker: bool) -> Vec<Self> {
        let firsts = A::KIND.steps(self.first.tag(), weaker).into_iter();
        let seconds = B::KIND.steps(self.second.tag(), weaker).into_iter();
        firsts
            .map(|tag| Then { first: A::of(tag), ..self })
            .chain(seconds.map(|tag| Then { second: B::of(tag), ..self }))
            .collect()
    }
}

impl<A: Lattice, B: Lattice> Worded for Then<A, B> {
    fn put(&self, spelled: &[&'static str], out: &mut Words) {
        self.first.put(spelled, out);
        self.second.put(spelled, out);
    }
    fn canon(&self, out: &mut Vec<u8>) {
        self.first.canon(out);
        self.second.canon(out);
    }
    fn is_said(&self) -> bool {
        true
    }
    fn step(&mut self, weaker: bool, n: usize) -> bool {
        become_nth(self, &self.steps(weaker), n)
    }
}

impl<A: Lattice, B: Lattice> Slot for Then<A, B> {
    fn words() -> Vec<&'static str> {
        A::KIND.words().chain(B::KIND.words()).collect()
    }
    fn kinds() -> Vec<&'static str> {
        vec![A::NAME, B::NAME]
    }
    fn take(bag: &mut Bag<'_>, name: &str) -> Result<Self, Refusal> {
        let first = bag.take(A::KIND, 0);
        let from = first.map_or(0, |(at, _)| at);
        let second = bag.take(B::KIND, from);
        let second = second.map(|(_, tag)| tag).or(B::KIND.default);
        let (Some((_, first)), Some(second)) = (first, second) else {
            let words = |kind: &'static Kind| dotted(&kind.words().collect::<Vec<_>>());
            let message = format!("{name} needs {} and behind it {}", words(A::KIND), words(B::KIND));
            return Err(Refusal { at: bag.end, message, hint: None });
        };
        Ok(Then { first: A::of(first), second: B::of(second) })
    }
}

fn become_nth<T: Copy>(value: &mut T, others: &[T], n: usize) -> bool {
    others.get(n).is_some_and(|next| {
        *value = *next;
        true
    })
}
