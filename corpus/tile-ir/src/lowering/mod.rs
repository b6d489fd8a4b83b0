//! The reference lowering: turns a launched Tile IR kernel into ordinary PTX, each tile block into a CTA of a few threads.
//!
//! It is deliberately plain:
//!
//! - Element `i` of an instruction is accessed by thread `(s + i) mod n` of its CTA. The start `s` advances by one with
//!   each memory instruction.
//! - Orders stay. Scope `tl_blk` becomes `.cta`, `device` becomes `.gpu`, `sys` becomes `.sys`. Masks become predicates.
//! - A token edge between accesses of different threads becomes a `bar.sync` of the CTA, unless one is there already.
//! - Each element is read once. The thread that read it hands the value through shared memory to the threads that need
//!   it, with a barrier before they read it. If the block has branches, another barrier follows, before the place is
//!   used again.
//! - Each thread computes the registers that it needs. All threads take all branches.
//!
//! *Contract.* If the source has no race under the default reading of `tile-ir.cat`, every final memory of the lowered
//! program under `ptx.cat` is one of the source. The argument: take an execution of the lowered program, and keep the
//! events that stand for elements and the relations between them.
//!
//! - *Events.* There is one event for each element that the masks let through, with equal values.
//! - *Tokens.* Two elements related by tokens are related by base causality: they are in one thread, or a barrier of the
//!   CTA stands between them, and barriers synchronise.
//! - *Synchronisation.* Release and acquire keep order and scope, and a read-modify-write stays one instruction. So every
//!   synchronisation of the source is one in PTX. Happens-before is therefore part of causality, and PTX requires of more
//!   pairs what the source requires of reads and writes. Two accesses it does not order are morally strong, or they race.
//! - *Coherence.* For morally strong accesses it is an axiom of PTX; for accesses in token order it follows from causality
//!   and observation.
//! - *Atomicity.* In PTX too, no write comes between the halves of an atomic.
//! - *Thin air.* The existence of an element and the value it stores depend on registers and shared memory, so on
//!   dependencies and reads-from. Chosen tokens are predicates (`choice.rs`).
//!
//! Source: Tile IR specification 7.11, and the observed output of NVIDIA's compiler for scopes, orders and tokens.
//!
//! Not lowered, and refused by name: threads that are not tile blocks, two tile blocks in one CTA, memory that is not
//! global.

mod block;
mod choice;
mod planted;

pub use planted::Weakening;

use block::Block;
use moire_program::Refusal;
use moire_program::ir::{
    Content, Object, ObjectId, Program, Proxy, Reg, RegDecl, RegInit, Space, Symbol, SymbolId,
};

/// Most threads of a tile block.
pub const THREADS: u16 = 32;
/// Bytes of one value handed over in shared memory.
const SLOT: u32 = 8;

/// How tile blocks become CTAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lowering {
    /// Threads of each CTA, 1 to [`THREADS`].
    pub threads: u16,
    /// Whether the first element of each memory instruction goes to the next thread, so that scalars are spread over the
    /// CTA too. Otherwise it goes to the first thread.
    pub turns: bool,
    /// The obligation left out, for tests.
    pub weakened: Option<Weakening>,
}

impl Default for Lowering {
    fn default() -> Self {
        Lowering { threads: 2, turns: true, weakened: None }
    }
}

/// A refusal that names an operation or property and its line, or line 0 if no single line is the reason.
fn not_lowered(what: &str, line: u32) -> Refusal {
    Refusal::Abstained { what: format!("{what} is not lowered"), line }
}

type Done<T> = Result<T, Refusal>;

/// Declares a new register.
fn fresh(regs: &mut Vec<RegDecl>, kind: &str) -> Done<Reg> {
    let number = regs.len();
    let reg = u16::try_from(number).ok().filter(|_| number < moire_program::limits::REGISTERS);
    let reg = reg.ok_or_else(|| not_lowered("a tile block with so many registers", 0))?;
    regs.push(RegDecl { name: format!("{kind}{number}"), init: RegInit::Value(0) });
    Ok(Reg(reg))
}

/// Lowers a program to ordinary instructions. The objects and symbols of the source keep their numbers.
///
/// # Errors
/// Something is not lowered; the refusal names it and its line.
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
            init: Content::default(),
        });
        out.symbols.push(Symbol { name, object, virt: handed, proxy: Proxy::Generic, multimem: Vec::new() });
    }
    Ok(out)
}
