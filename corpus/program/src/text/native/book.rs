//! Instructions that the book reads, which are all but those with operands of their own in litmus texts: it resolves their names
//! in the thread and in the memory declared before it, and adds what only litmus texts say.

use super::notation::Notes;
use super::qualifiers::parse_type;
use super::reader::Reader;
use crate::bridge;
use crate::ir::{AtomOp, Book, LoadOrder, Op, Proxy, RmwOrder, Space, StoreOrder, Ty};
use crate::text::ParseError;
use crate::text::build::{Builder, ThreadBuilder};
use crate::text::scan::{Parsed, Scan};
use moire_isa::kinds::Space as Home;
use moire_isa::operand::{Class, Known, Reg};
use moire_isa::{Env, Instr};

/// Reads an instruction from its name on. `text` is the name with its qualifiers, behind which the cursor is.
pub(super) fn book(r: &mut Reader<'_, '_>, text: &str) -> Parsed<()> {
    let mut notes = Notes::default();
    let (instr, own) = read(r, text, &mut notes)?;
    let name = instr.name();
    let op = bridge::op(&instr).or_else(|| Book::new(instr).map(Op::Book));
    match op.and_then(|mut op| (own.add(&mut op) && notes.restore(&mut op)).then_some(op)) {
        Some(op) => r.push(op),
        None => r.fail(
            format!("litmus texts have no meaning for this form of {name}"),
            Some("a module of PTX may have it: `moire check FILE.ptx` reads those, too".into()),
        ),
    }
}

/// Reads an instruction, and what is not said in the book's words.
pub(super) fn read(r: &mut Reader<'_, '_>, text: &str, notes: &mut Notes) -> Parsed<(Instr, Own)> {
    let behind = r.scan.at;
    let operands = notes.read(r)?;
    let (head, own) = Own::of(text);
    let operands = if own.discards { format!("_, {operands}") } else { operands };
    let mut names = Thread { scan: r.scan, builder: r.builder, thread: r.thread, notes, refused: None };
    let read = Instr::read(&format!("{head} {operands}"), &mut names);
    if let Some(refused) = names.refused {
        return Err(refused);
    }
    // A remark about the name stands at the name, as it is in the text.
    let place = |at: usize| at.checked_sub(head.len() + 1).map_or(r.at, |past| behind + past);
    let own_names = |message: &str| {
        let hint = "an address goes into a register with mov; a matrix is desc(name, bytes), a box tile(name, bytes)";
        message.ends_with("a register stands here").then(|| hint.to_owned())
    };
    let instr = read.map_err(|no| {
        let hint = no.hint.or_else(|| own_names(&no.message));
        r.scan.error_at(place(no.at), no.message, hint)
    })?;
    Ok((instr, own))
}

/// What only litmus texts say of an access: its proxy, the strongest order of source languages, a type that PTX has no such
/// access of, a subtraction, a reduction that acquires.
#[derive(Default, PartialEq)]
pub(super) struct Own {
    proxy: Option<Proxy>,
    seq_cst: bool,
    /// Halves of a register, or numbers with a sign where PTX has bits or none.
    ty: Option<Ty>,
    subtracts: bool,
    discards: bool,
}

impl Own {
    /// The name as the book has it, and what it does not say.
    fn of(text: &str) -> (String, Own) {
        let mut own = Own::default();
        let mut words: Vec<&str> = text.split('.').collect();
        let plain = match words[0] {
            "tld" => Some(("ld", Proxy::Texture)),
            "ldc" => Some(("ld", Proxy::Constant)),
            "suld" => Some(("ld", Proxy::Surface)),
            "sust" => Some(("st", Proxy::Surface)),
            "suatom" => Some(("atom", Proxy::Surface)),
            "sured" => Some(("red", Proxy::Surface)),
            _ => None,
        };
        if let Some((plain, proxy)) = plain {
            (words[0], own.proxy) = (plain, Some(proxy));
        }
        let acquires = words.iter().any(|word| matches!(*word, "acquire" | "acq_rel" | "seq_cst"));
        if words[0] == "red" && acquires && !words.contains(&"async") {
            (words[0], own.discards) = ("atom", true);
        }
        let (first, rest) = words.split_first_mut().expect("a name has a word");
        let updates = matches!(*first, "atom" | "red") && !rest.contains(&"async");
        let has = |words: &[&str]| rest.iter().any(|word| words.contains(word));
        let (usual, legal): (&str, &[&str]) = match () {
            () if has(&["exch", "cas"]) => ("b32", &["b16", "b32", "b64", "b128"]),
            () if has(&["and", "or", "xor"]) => ("b32", &["b32", "b64"]),
            () if has(&["min", "max"]) => ("u32", &["u32", "u64", "s32", "s64"]),
            () => ("u32", &["u32", "u64", "s32"]),
        };
        for word in rest {
            let known = match (*first, *word) {
                ("ld" | "st", "f16x2" | "bf16x2") => "b32",
                _ if updates && integer(word) && !legal.contains(word) => usual,
                _ if updates && *word == "sub" => {
                    own.subtracts = true;
                    "add"
                }
                ("ld", "seq_cst") => "acquire",
                ("st", "seq_cst") => "release",
                ("atom", "seq_cst") => "acq_rel",
                _ => continue,
            };
            own.seq_cst |= *word == "seq_cst";
            own.ty = parse_type(word).or(own.ty);
            *word = known;
        }
        (words.join("."), own)
    }

    /// What PTX does not have of an access that is no notation of litmus texts.
    pub(super) fn beyond(&self) -> Option<&'static str> {
        if self.ty.is_some() {
            return Some("the operation does not take this type");
        }
        self.discards.then_some("red is relaxed or release; atom acquires")
    }

    /// Adds to the operation what the text says beyond the book. Returns whether all of it has a place there.
    fn add(&self, to: &mut Op) -> bool {
        let mut added = Own::default();
        if let Op::Load { proxy, ty, .. } | Op::Store { proxy, ty, .. } | Op::Rmw { proxy, ty, .. } = to {
            (added.proxy, added.ty) = (self.proxy, self.ty);
            *proxy = self.proxy.unwrap_or(*proxy);
            *ty = self.ty.unwrap_or(*ty);
        }
        added.seq_cst = self.seq_cst && strongest(to);
        if let Op::Rmw { op, red, .. } = to {
            if self.subtracts && *op == AtomOp::Add {
                (*op, added.subtracts) = (AtomOp::Sub, true);
            }
            (*red, added.discards) = (*red || self.discards, self.discards);
        }
        added == *self
    }
}

/// Whether a word is a type of integers or bits.
fn integer(word: &str) -> bool {
    matches!(parse_type(word), Some(Ty::B(_) | Ty::U(_) | Ty::S(_)))
}

/// Makes an access that both orders and publishes one of the source languages' strongest order. Returns whether it is one.
fn strongest(op: &mut Op) -> bool {
    if let Op::Load { order, .. } = op
        && let LoadOrder::Acquire(scope) = *order
    {
        *order = LoadOrder::SeqCst(scope);
    } else if let Op::Store { order, .. } = op
        && let StoreOrder::Release(scope) = *order
    {
        *order = StoreOrder::SeqCst(scope);
    } else if let Op::Rmw { order: order @ RmwOrder::AcqRel, .. } = op {
        *order = RmwOrder::SeqCst;
    } else {
        return false;
    }
    true
}

/// The names of a thread. Registers need no declaration here.
struct Thread<'r, 's> {
    scan: &'r mut Scan<'s>,
    builder: &'r Builder,
    thread: &'r mut ThreadBuilder,
    notes: &'r mut Notes,
    refused: Option<ParseError>,
}

impl Env for Thread<'_, '_> {
    fn resolve(&mut self, name: &str) -> Option<Known> {
        let index = |n: usize| u32::try_from(n).expect("tables of a program have less than 2^16 entries");
        let of_litmus = |c: char| c.is_ascii_alphanumeric() || "_$%".contains(c);
        if !name.chars().all(of_litmus) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if let Some(register) = self.notes.register(name) {
            return Some(Known::Reg(Reg { index: index(register), class: Class::default() }));
        }
        if let Some(symbol) = self.builder.symbol(name) {
            let object = self.builder.program.symbols[symbol.index()].object;
            let home = match self.builder.program.objects[object.index()].space {
                Space::Global => Some(Home::Global),
                Space::SharedCta => Some(Home::SharedCta),
                Space::Generic | Space::SharedCluster => None,
                Space::Tensor => {
                    let index = index(self.notes.columns(symbol));
                    return Some(Known::Reg(Reg { index, class: Class::default() }));
                }
            };
            return Some(Known::Symbol(index(symbol.index()), home));
        }
        match self.thread.reg(self.scan, name) {
            Ok(reg) => {
                let predicate = Class { bits: 1, ..Class::default() };
                let class = if self.notes.is_predicate(name) { predicate } else { Class::default() };
                Some(Known::Reg(Reg { index: index(reg.index()), class }))
            }
            Err(refused) => {
                self.refused = Some(refused);
                None
            }
        }
    }

    fn label(&mut self, _: &str) -> u32 {
        u32::MAX
    }
}
