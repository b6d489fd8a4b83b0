//! The reference lowering: a launched kernel of Tile IR, each tile block as a CTA of a few threads of ordinary PTX.
//!
//! It is deliberately plain. Element `i` of an instruction is accessed by thread `i mod n` of its CTA, counted from one that
//! goes around from instruction to instruction; orders stay, `tl_blk` is `.cta`, device `.gpu`, `sys` `.sys`; masks are
//! predicates. A token edge between accesses of different threads is a `bar.sync` of the CTA between them, unless one
//! is there already. What was read is one read: the thread that read it hands it to those that need it through shared
//! memory, a barrier before they look and, where code is repeated, one before the place is used again. Arithmetic
//! on registers is done by each thread that needs it, branches are taken by all.
//!
//! *Contract.* Where the source has no race under the default reading of `tile-ir.cat`, every final memory of what is made
//! under `ptx.cat` is one of the source. The argument: take an execution of what is made, and of its events those that
//! stand for elements, with the relations between them. There is one for each element that the masks let through, with
//! equal values. Two elements related by tokens are related by base causality: they are in one thread, or a barrier
//! of the CTA stands between them, and barriers synchronise. Release and acquire keep order and scope, and one
//! read-modify-write stays one, so whatever synchronises in the source does so in PTX. Happens-before is therefore
//! part of causality, and what the source asks of reads and writes PTX asks of more. An access that is not ordered
//! by it is strong and includes the other, or races. Coherence of one location: of morally strong accesses it is an axiom of PTX,
//! and of accesses in token order it is causality with observation. Between the halves of an atomic nothing comes in either.
//! Values out of thin air: what decides whether an element exists, and what it stores, reaches it through registers
//! and shared memory, dependencies and reads-from; tokens that were chosen are predicates (`choice.rs`).
//! Source: Tile IR specification 7.11, and what NVIDIA's compiler was seen to make of scopes, orders and tokens.
//!
//! Not lowered, and refused by name: threads that are no tile blocks, two of them in one CTA, memory that is not global.

mod block;
mod choice;
mod planted;

pub use planted::Weakening;

use block::Block;
use moire_program::Refusal;
use moire_program::ir::{Object, ObjectId, Program, Proxy, Reg, RegDecl, RegInit, Space, Symbol, SymbolId};

/// Threads that a tile block may have.
pub const THREADS: u16 = 32;
/// Bytes of a value that is handed over.
const SLOT: u32 = 8;

/// How tile blocks become CTAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lowering {
    /// Threads of each, 1 to [`THREADS`].
    pub threads: u16,
    /// The first element of an instruction goes to the thread behind that of the instruction before, so that scalars
    /// are spread over the CTA too. Otherwise it goes to the first thread.
    pub turns: bool,
    /// What is left out, for tests.
    pub weakened: Option<Weakening>,
}

impl Default for Lowering {
    fn default() -> Self {
        Lowering { threads: 2, turns: true, weakened: None }
    }
}

/// A refusal of something that is not lowered: the operation or property, and its line; 0 if no single line is the reason.
fn not_lowered(what: &str, line: u32) -> Refusal {
    Refusal::Abstained { what: format!("{what} is not lowered"), line }
}

type Done<T> = Result<T, Refusal>;

/// A new register.
fn fresh(regs: &mut Vec<RegDecl>, kind: &str) -> Done<Reg> {
    let number = regs.len();
    let reg = u16::try_from(number).ok().filter(|_| number < moire_program::limits::REGISTERS);
    let reg = reg.ok_or_else(|| not_lowered("a tile block with so many registers", 0))?;
    regs.push(RegDecl { name: format!("{kind}{number}"), init: RegInit::Value(0) });
    Ok(Reg(reg))
}

/// The program of ordinary instructions; its first objects and symbols are those of the source.
///
/// # Errors
/// What is not lowered, by name and line.
pub fn lower(source: &Program, how: &Lowering) -> Done<Program> {
    if how.threads == 0 || how.threads > THREADS {
        return Err(not_lowered(&format!("a tile block of {} threads", how.threads), 0));
    }
    if source.objects.iter().any(|o| o.space != Space::Global) || source.filter.is_some() {
        return Err(not_lowered("memory that is not global, or a filter", 0));
    }
    let mut out = Program {
        name: source.name.clone(),
        objects: source.objects.clone(),
        symbols: source.symbols.clone(),
        ..Program::default()
    };
    let small = |n: usize| u16::try_from(n).map_err(|_| not_lowered("so many objects", 0));
    let (object, handed) = (ObjectId(small(out.objects.len())?), SymbolId(small(out.symbols.len())?));
    let mut slots = 0;
    for (n, block) in source.threads.iter().enumerate() {
        if source.threads.iter().take(n).any(|other| other.place.same_cta(&block.place)) {
            return Err(not_lowered("a CTA with two tile blocks", 0));
        }
        let (threads, used) = Block::lowered(block, how, handed)?;
        out.threads.extend(threads);
        slots = slots.max(used);
    }
    if slots > 0 {
        let mut name = "handed".to_owned();
        while out.symbols.iter().any(|s| s.name == name) {
            name.push('_');
        }
        let bytes = slots * SLOT;
        out.objects.push(Object {
            name: name.clone(),
            space: Space::SharedCta,
            bytes,
            init: vec![0; bytes as usize],
        });
        out.symbols.push(Symbol { name, object, virt: handed, proxy: Proxy::Generic, multimem: Vec::new() });
    }
    Ok(out)
}
