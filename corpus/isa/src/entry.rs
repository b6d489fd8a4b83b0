//! The language of entries, and what follows from an entry.
//!
//! ```text
//! entry    := #[doc = "What it does."] Id = ( "name" | form: Form ), section "anchor", since (PTX, ON);
//!             [begins ["word", ..]] [ends ["word", ..]]     words that must stand and mean nothing, printed first or last
//!             slots { (standing field: Kind;)* }            in the order in which they are printed
//!             operands { (role field: Part = spec;)* }      in the order of the text
//!             rules [it] { (condition => refuse("why") | since(PTX, ON);)* }
//! standing := keep | speed | abstain                        a slot without one does not compile
//! role     := known | data | opaque | hint | write | update
//! Kind     := a `words!` type | Option<..> of it | Strong<Order> | Pair<Order> | Then<Kind, Kind>
//! Part     := Value | Source | Register | Number | Label | Address | Unified | List | Tensor | Sampled | Args | Pred
//!             | Answer | Factor | SizeOrPred | OrSink<Part> | Option<Part> | Maybe<Part> | Early<Part>
//! ON       := Any | Sm(90) | Only(&[100, 103])
//! ```
//!
//! The tag of an entry stands in the list of `book.rs`. A spec is an expression over the slots and over the operands before
//! it; a condition is one over slots and operands. In both, fields are locals with their types, and `it` is the instruction.
//! The least version of a form is the greatest of all that it says; its targets are those that all of them name.

use crate::kind::{Kind, Lattice, Since};
use crate::operand::{self, Piece, Role, Shown, Value};
use crate::slot::{Worded, Words};
use crate::text::{Bag, Cursor, Names, Refusal};

/// What we do with a qualifier. A slot without one of these is no slot: nobody can forget a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Part of the meaning; stands in canonical bytes.
    Keep,
    /// Speed only; printed, and not in canonical bytes.
    Speed,
    /// Has a meaning that no engine has: an instruction that says it is named as not judged.
    Abstain,
}

/// A slot as data.
#[derive(Debug)]
pub struct SlotInfo {
    /// The field.
    pub name: &'static str,
    /// What we do with it.
    pub standing: Standing,
    /// All its words.
    pub words: fn() -> Vec<&'static str>,
    /// The kinds that it is made of.
    pub kinds: fn() -> Vec<&'static str>,
}

/// An operand as data.
#[derive(Debug)]
pub struct PartInfo {
    /// The field.
    pub name: &'static str,
    /// What the instruction does with it.
    pub role: Role,
    /// The type of the field.
    pub part: &'static str,
}

/// An entry as data: for documentation, completion and generators.
#[derive(Debug)]
pub struct Entry {
    /// Number on disk; never changes.
    pub tag: u16,
    /// The type of the instruction.
    pub id: &'static str,
    /// Names that it is read from.
    pub names: fn() -> Vec<&'static str>,
    /// What it does.
    pub about: &'static str,
    /// Section of the PTX ISA, by its anchor.
    pub section: &'static str,
    /// Who has it at all.
    pub since: Since,
    /// Words that must stand and mean nothing.
    pub fixed: [&'static [&'static str]; 2],
    /// Slots in the order in which they are printed.
    pub slots: &'static [SlotInfo],
    /// Operands in the order of the text.
    pub operands: &'static [PartInfo],
}

impl Entry {
    /// All words that may stand behind the name.
    #[must_use]
    pub fn words(&self) -> Vec<&'static str> {
        let fixed = self.fixed.iter().flat_map(|words| words.iter().copied());
        fixed.chain(self.slots.iter().flat_map(|slot| (slot.words)())).collect()
    }
}

/// The consequence of a condition.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// There is no such form.
    Refuse(&'static str),
    /// The form needs a version or a target.
    Since(Since),
}

/// There is no such form, and why.
#[must_use]
pub(crate) const fn refuse(message: &'static str) -> Rule {
    Rule::Refuse(message)
}

/// The form needs a version and a target.
#[must_use]
pub(crate) const fn since(ptx: u16, on: crate::kind::On) -> Rule {
    Rule::Since((ptx, on))
}

/// How an instruction was written, where the text has more than one way. Equal to every other, so that equality and
/// canonical bytes are about the meaning.
#[derive(Clone, Debug, Default)]
pub struct Spelling(Option<Box<Said>>);

#[derive(Clone, Debug)]
struct Said {
    name: Option<&'static str>,
    words: Vec<&'static str>,
}

impl Spelling {
    pub(crate) fn new(name: Option<&'static str>, words: Vec<&'static str>) -> Spelling {
        let plain = name.is_none() && words.is_empty();
        Spelling((!plain).then(|| Box::new(Said { name, words })))
    }

    /// Whether a word stands that could be left out, or that is not the usual one.
    #[must_use]
    pub fn says(&self, word: &str) -> bool {
        self.words().contains(&word)
    }

    pub(crate) fn words(&self) -> &[&'static str] {
        self.0.as_ref().map_or(&[], |said| &said.words)
    }

    fn name(&self) -> Option<&'static str> {
        self.0.as_ref().and_then(|said| said.name)
    }
}

impl PartialEq for Spelling {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Spelling {}

/// An operand, or the base of an address, with its role.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// What the instruction does with it.
    pub role: Role,
    /// The value.
    pub value: &'a Value,
}

/// The stable number of an entry; written by `book!`.
pub trait Tagged {
    /// Number on disk.
    const TAG: u16;
}

/// What each instruction can do. The first part is written by `instructions!`, the rest follows.
pub trait Instruction: Clone + PartialEq + Tagged {
    /// The entry.
    const ENTRY: &'static Entry;
    /// Reads slots and operands.
    ///
    /// # Errors
    /// The text is not such an instruction.
    fn read(bag: &mut Bag<'_>, at: &mut Cursor<'_, '_>, name: &'static str) -> Result<Self, Refusal>;
    /// The name that is a slot, if the entry has several.
    fn form(&self) -> Option<(&'static Kind, u8)>;
    /// Its slots in the order of the entry; a name that is a slot stands first.
    fn slots(&self) -> Vec<&dyn Worded>;
    /// The same, to change them.
    fn slots_mut(&mut self) -> Vec<&mut dyn Worded>;
    /// Its operands in the order of the entry.
    fn parts(&self) -> Vec<&dyn Shown>;
    /// The same, to change them.
    fn parts_mut(&mut self) -> Vec<&mut dyn Shown>;
    /// Whether the operands are those that the qualifiers ask for.
    fn fits(&self) -> bool;
    /// Calls `see` with the consequence of each rule whose condition holds.
    fn rules(&self, see: &mut dyn FnMut(Rule));
    /// How it was written.
    fn spelling(&self) -> &Spelling;

    /// The form that it breaks a rule with, and the rule.
    fn illegal(&self) -> Option<&'static str> {
        let mut broken = None;
        self.rules(&mut |rule| match rule {
            Rule::Refuse(why) => broken = broken.or(Some(why)),
            Rule::Since(_) => {}
        });
        broken.or_else(|| misplaced(Self::ENTRY, &self.parts()))
    }
}

/// What is written is registers or the sink `_`, and not the sink alone; the sink stands nowhere else.
fn misplaced(entry: &Entry, parts: &[&dyn Shown]) -> Option<&'static str> {
    let mut wrong = None;
    for (part, info) in parts.iter().zip(entry.operands) {
        let (mut sinks, mut others) = (false, false);
        part.pieces(&mut |piece| match (piece, info.role) {
            (Piece::Value(Value::Sink), Role::Write | Role::Loose) => sinks = true,
            (Piece::Value(Value::Sink), _) => wrong = Some("the sink `_` is no source"),
            (Piece::Value(Value::Reg(_)), _) => others = true,
            (Piece::Value(Value::Symbol(..)), Role::Write) if info.part.starts_with("Early") => others = true,
            (Piece::Value(_), Role::Write | Role::Update) => wrong = Some("a result is a register"),
            (Piece::Mark(_) | Piece::Label(_) | Piece::Value(_), _) => {}
        });
        wrong = wrong.or((sinks && !others && info.role == Role::Write).then_some("a result is wanted"));
    }
    wrong
}

/// An instruction of whatever type: what readers of [`crate::Instr`] call.
pub(crate) trait Told {
    fn entry(&self) -> &'static Entry;
    fn name(&self) -> (&'static str, Since);
    fn words(&self) -> Words;
    fn since(&self) -> Vec<Since>;
    fn print(&self, names: &dyn Names) -> String;
    fn canon(&self, out: &mut Vec<u8>);
    fn abstained(&self) -> Vec<&'static str>;
    fn each(&self, see: &mut dyn FnMut(Seen<'_>));
    fn pieces(&self, see: &mut dyn FnMut(usize, Piece<'_>));
    fn each_mut(&mut self, change: &mut dyn FnMut(Role, &mut Value));
    fn broken(&self) -> Option<&'static str>;
    fn agrees(&self) -> bool;
    fn slots(&self) -> usize;
    /// Becomes the `n`th other form that differs in that slot. `None`: there is none; `false`: its operands do not fit.
    fn step(&mut self, slot: usize, weaker: bool, n: usize) -> Option<bool>;
}

impl<I: Instruction> Told for I {
    fn entry(&self) -> &'static Entry {
        I::ENTRY
    }
    fn name(&self) -> (&'static str, Since) {
        name(I::ENTRY, self.form(), self.spelling())
    }
    fn words(&self) -> Words {
        words(I::ENTRY, &Instruction::slots(self), self.form().is_some(), self.spelling())
    }
    fn since(&self) -> Vec<Since> {
        let mut out = vec![I::ENTRY.since, Told::name(self).1];
        out.extend(Told::words(self).iter().map(|word| word.1));
        self.rules(&mut |rule| match rule {
            Rule::Since(since) => out.push(since),
            Rule::Refuse(_) => {}
        });
        out
    }
    fn print(&self, names: &dyn Names) -> String {
        print(Told::name(self).0, &Told::words(self), &self.parts(), names)
    }
    fn canon(&self, out: &mut Vec<u8>) {
        canon(I::ENTRY, &Instruction::slots(self), self.form().is_some(), &self.parts(), out);
    }
    fn abstained(&self) -> Vec<&'static str> {
        abstained(I::ENTRY, &Instruction::slots(self), self.form().is_some())
    }
    fn each(&self, see: &mut dyn FnMut(Seen<'_>)) {
        for (part, info) in self.parts().iter().zip(I::ENTRY.operands) {
            part.pieces(&mut |piece| {
                if let Piece::Value(value) = piece {
                    see(Seen { role: info.role, value });
                }
            });
        }
    }
    fn pieces(&self, see: &mut dyn FnMut(usize, Piece<'_>)) {
        for (n, part) in self.parts().iter().enumerate() {
            part.pieces(&mut |piece| see(n, piece));
        }
    }
    fn each_mut(&mut self, change: &mut dyn FnMut(Role, &mut Value)) {
        for (part, info) in self.parts_mut().into_iter().zip(I::ENTRY.operands) {
            part.values(&mut |value| change(info.role, value));
        }
    }
    fn broken(&self) -> Option<&'static str> {
        self.illegal()
    }
    fn agrees(&self) -> bool {
        self.fits()
    }
    fn slots(&self) -> usize {
        Instruction::slots(self).len()
    }
    fn step(&mut self, slot: usize, weaker: bool, n: usize) -> Option<bool> {
        self.slots_mut()[slot].step(weaker, n).then(|| self.fits())
    }
}

fn name(entry: &Entry, form: Option<(&'static Kind, u8)>, spelling: &Spelling) -> (&'static str, Since) {
    let Some((kind, tag)) = form else { return ((entry.names)()[0], crate::kind::EVER) };
    let said = |row: &&crate::kind::Row| row.tag == tag && Some(row.word) == spelling.name();
    let row = kind.rows.iter().find(said).or_else(|| kind.usual(tag));
    row.map(|row| (row.word, row.since)).expect("each form has a name")
}

fn words(entry: &Entry, slots: &[&dyn Worded], form: bool, spelling: &Spelling) -> Words {
    let ever = |word: &&'static str| (*word, crate::kind::EVER);
    let mut out: Words = entry.fixed[0].iter().map(ever).collect();
    slots[usize::from(form)..].iter().for_each(|slot| slot.put(spelling.words(), &mut out));
    out.extend(entry.fixed[1].iter().map(ever));
    out
}

fn print(name: &str, words: &Words, parts: &[&dyn Shown], names: &dyn Names) -> String {
    let mut text = name.to_owned();
    for (word, _) in words {
        text.push('.');
        text.push_str(word);
    }
    let mut separator = " ";
    for part in parts {
        if operand::print(*part, names, separator, &mut text) {
            separator = ", ";
        }
    }
    text
}

fn canon(entry: &Entry, slots: &[&dyn Worded], form: bool, parts: &[&dyn Shown], out: &mut Vec<u8>) {
    out.extend(entry.tag.to_be_bytes());
    let (form, slots) = slots.split_at(usize::from(form));
    form.iter().for_each(|form| form.canon(out));
    for (slot, _) in slots.iter().zip(entry.slots).filter(|(_, info)| info.standing != Standing::Speed) {
        slot.canon(out);
    }
    for (part, _) in parts.iter().zip(entry.operands).filter(|(_, info)| info.role != Role::Hint) {
        operand::canon(*part, out);
    }
}

fn abstained(entry: &Entry, slots: &[&dyn Worded], form: bool) -> Vec<&'static str> {
    let slots = slots[usize::from(form)..].iter().zip(entry.slots);
    let named = slots.filter(|(slot, info)| info.standing == Standing::Abstain && slot.is_said());
    named.map(|(_, info)| info.name).collect()
}

/// What a name says, where an entry has several.
pub(crate) fn form<L: Lattice>(name: &str) -> L {
    L::of(L::KIND.row(name).expect("the name was found in these rows").tag)
}

/// Spelling of what was read.
pub(crate) fn spelling(bag: &mut Bag<'_>, form: Option<(&'static Kind, u8)>, name: &'static str) -> Spelling {
    let usual = form.is_none_or(|(kind, tag)| kind.usual(tag).is_some_and(|row| row.word == name));
    Spelling::new((!usual).then_some(name), std::mem::take(&mut bag.spelled))
}

/// What is read is a form of the book.
pub(crate) fn legal<I: Instruction>(read: I) -> Result<I, Refusal> {
    match read.illegal() {
        Some(why) => Err(Refusal { at: 0, message: why.into(), hint: None }),
        None => Ok(read),
    }
}

/// The words of the language of entries for standings.
#[allow(non_upper_case_globals, reason = "they are words of the language of entries")]
pub(crate) mod standing {
    use super::Standing;
    pub(crate) const keep: Standing = Standing::Keep;
    pub(crate) const speed: Standing = Standing::Speed;
    pub(crate) const abstain: Standing = Standing::Abstain;
}

/// Declares instructions; the grammar stands in the header.
macro_rules! instructions {
    ($(
        #[doc = $about:literal]
        $id:ident = $($name:literal)? $($form:ident: $form_ty:ty)?, section $section:literal, since $since:expr;
        $(begins $begins:tt)? $(ends $ends:tt)?
        slots { $($standing:ident $slot:ident: $slot_ty:ty;)* }
        operands { $($role:ident $operand:ident: $part:ty = $spec:expr;)* }
        rules $($it:ident)? { $($condition:expr => $rule:expr;)* }
    )+) => { $(
        #[doc = $about]
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "slots and operands are told by the entry")]
        pub struct $id {
            $(pub $form: $form_ty,)?
            $(pub $slot: $slot_ty,)*
            $(pub $operand: $part,)*
            pub spelling: $crate::entry::Spelling,
        }

        #[allow(unused_mut, unused_variables, clippy::nonminimal_bool, reason = "an entry need not use all that it may")]
        impl $crate::entry::Instruction for $id {
            const ENTRY: &'static $crate::entry::Entry = &$crate::entry::Entry {
                tag: <$id as $crate::entry::Tagged>::TAG,
                id: stringify!($id),
                names: || names!($($name)? $($form_ty)?),
                about: $about,
                section: $section,
                since: $since,
                fixed: [fixed_words!($($begins)?), fixed_words!($($ends)?)],
                slots: &[$($crate::entry::SlotInfo {
                    name: stringify!($slot),
                    standing: $crate::entry::standing::$standing,
                    words: <$slot_ty as $crate::slot::Slot>::words,
                    kinds: <$slot_ty as $crate::slot::Slot>::kinds,
                }),*],
                operands: &[$($crate::entry::PartInfo {
                    name: stringify!($operand),
                    role: $crate::operand::role::$role,
                    part: stringify!($part),
                }),*],
            };
            fn read(
                bag: &mut $crate::text::Bag<'_>,
                at: &mut $crate::text::Cursor<'_, '_>,
                name: &'static str,
            ) -> Result<Self, $crate::text::Refusal> {
                $crate::entry::fixed(bag, name, Self::ENTRY)?;
                $(let $form = $crate::entry::form::<$form_ty>(name);)?
                $(let $slot = <$slot_ty as $crate::slot::Slot>::take(bag, name)?;)*
                bag.finish(name, || Self::ENTRY.words())?;
                $(let $operand: $part = $crate::operand::Part::read(at, $spec)?;)*
                $crate::entry::end(at, name)?;
                let mut read = Self { $($form,)? $($slot,)* $($operand,)* spelling: $crate::entry::Spelling::default() };
                read.spelling = $crate::entry::spelling(bag, read.form(), name);
                $crate::entry::legal(read)
            }
            fn form(&self) -> Option<(&'static $crate::kind::Kind, u8)> {
                form!(self $(, $form: $form_ty)?)
            }
            fn slots(&self) -> Vec<&dyn $crate::slot::Worded> {
                vec![$(&self.$form,)? $(&self.$slot),*]
            }
            fn slots_mut(&mut self) -> Vec<&mut dyn $crate::slot::Worded> {
                vec![$(&mut self.$form,)? $(&mut self.$slot),*]
            }
            fn parts(&self) -> Vec<&dyn $crate::operand::Shown> {
                vec![$(&self.$operand),*]
            }
            fn parts_mut(&mut self) -> Vec<&mut dyn $crate::operand::Shown> {
                vec![$(&mut self.$operand),*]
            }
            fn fits(&self) -> bool {
                $(let $form = self.$form;)?
                $(let $slot = self.$slot;)*
                $(let $operand = &self.$operand;)*
                true $(&& $crate::operand::Part::fits($operand, $spec))*
            }
            fn rules(&self, see: &mut dyn FnMut($crate::entry::Rule)) {
                $(let $it = self;)?
                $(let $form = self.$form;)?
                $(let $slot = self.$slot;)*
                $(let $operand = &self.$operand;)*
                $(if $condition { see($rule); })*
            }
            fn spelling(&self) -> &$crate::entry::Spelling {
                &self.spelling
            }
        }
    )+ };
}

/// The names of an entry: one word, or the words of a kind.
macro_rules! names {
    ($name:literal) => {
        vec![$name]
    };
    ($form:ty) => {
        <$form as $crate::slot::Slot>::words()
    };
}

/// The slot that is a name.
macro_rules! form {
    ($self:ident) => {
        None
    };
    ($self:ident, $form:ident: $form_ty:ty) => {
        Some((<$form_ty as $crate::kind::Lattice>::KIND, $crate::kind::Lattice::tag($self.$form)))
    };
}

/// The words that must stand.
pub(crate) fn fixed(bag: &mut Bag<'_>, name: &str, entry: &Entry) -> Result<(), Refusal> {
    entry.fixed.iter().flat_map(|words| words.iter()).try_for_each(|word| bag.fixed(word, name))
}

/// Nothing stands behind the last operand.
pub(crate) fn end(at: &mut Cursor<'_, '_>, name: &str) -> Result<(), Refusal> {
    if at.done() { Ok(()) } else { at.fail(format!("{name} takes no further operand")) }
}

/// Words that must stand, as a slice.
macro_rules! fixed_words {
    () => {
        &[]
    };
    ($words:tt) => {
        &$words
    };
}
