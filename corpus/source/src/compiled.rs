//! Puts compiled threads together again: each thread of a source program was a kernel of its own, and the kernels may
//! come from different compilers.
//!
//! A kernel is run ahead as one thread (`moire_kernel::simt`), and put where the thread of the source stands. Its
//! parameters are those that the printers gave it, so the objects of all kernels are the same.
//!
//! A kernel that is compiled for a CTA of several threads, which it names, is run for all of them. Its first thread stands for the
//! thread of the source. Of the others those are kept, behind all first threads, that access global memory or write shared
//! memory. The rest only wait at barriers, at which all threads of the CTA meet, and nobody sees what they read.

use crate::lower::warp;
use crate::slots::Slots;
use crate::state::{State, number};
use crate::syntax::{Source, Space};
use moire_kernel::ptx::Kernel;
use moire_kernel::simt;
use moire_program::Refusal;
use moire_program::ir;
use moire_program::ir::{
    Content, ObjectId, Op, Operand, Placement, Program, Proxy, RegInit, Symbol, SymbolId, Thread,
};
use moire_program::registers;

/// Objects have so many bytes at least: where PTX has no operation of their width, compilers use one of the whole word, with
/// the bytes around the object as they were.
const WORD: u32 = 4;

/// Compiled threads as one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// The program: the global objects of the source, a result for each register, the shared objects.
    pub program: Program,
    /// The thread of the source that each thread is, or is a part of.
    pub parts: Vec<usize>,
    globals: usize,
    results: usize,
}

/// Puts the kernels of the threads of a program together, one for each thread, in their order.
///
/// # Errors
/// A kernel has other parameters, or something in it is not interpreted.
pub fn assemble(source: &Source, kernels: &[&Kernel]) -> Result<Compiled, Refusal> {
    let slots = Slots::of(source);
    if kernels.len() != source.threads.len() {
        return Err(Refusal::about("another number of kernels than of threads"));
    }
    let (mut program, mut others) = (objects(source, &slots)?, Vec::new());
    for (t, kernel) in kernels.iter().enumerate() {
        let mut all = threads(source, &slots, kernel, &mut program)?.into_iter();
        let mut first = all.next().ok_or_else(|| Refusal::about("a kernel without a thread"))?;
        first.name = format!("P{t}");
        first.place = Placement { warp: warp(source, t), ..source.threads[t].place };
        program.threads.push(first);
        others.extend(all.map(|mut other| {
            other.name = format!("P{t}.{}", other.name);
            let (warp, mask) = (other.place.warp, other.place.mask);
            other.place = Placement { warp, mask, ..source.threads[t].place };
            (t, other)
        }));
    }
    let mut parts: Vec<usize> = (0..kernels.len()).collect();
    for (t, other) in others {
        parts.push(t);
        program.threads.push(other);
    }
    Ok(Compiled { program, parts, globals: slots.objects.len(), results: slots.results.len() })
}

/// The program without threads.
fn objects(source: &Source, slots: &Slots) -> Result<Program, Refusal> {
    let mut program = Program { name: source.name.clone(), ..Program::default() };
    let mut add = |name: String, space: ir::Space, bytes: u32, init: u64| {
        let mut content = Content::default();
        content.put_value(0, bytes, init.into());
        let (object, virt) = (ObjectId::at(program.objects.len()), SymbolId::at(program.symbols.len()));
        program.objects.push(ir::Object { name: name.clone(), space, bytes, init: content });
        program.symbols.push(Symbol { name, object, virt, proxy: Proxy::Generic, multimem: Vec::new() });
    };
    for o in &slots.objects {
        let object = source.objects.get(*o).ok_or_else(|| Refusal::about("an object that is not there"))?;
        add(object.name.clone(), ir::Space::Global, u32::from(object.bits / 8).max(WORD), object.init);
    }
    for (t, r) in &slots.results {
        let register = &source.threads[*t].registers[*r];
        add(format!("P{t}.{}", register.name), ir::Space::Global, u32::from(register.bits / 8), 0);
    }
    for object in source.objects.iter().filter(|o| o.space == Space::Shared) {
        add(object.name.clone(), ir::Space::SharedCta, u32::from(object.bits / 8).max(WORD), 0);
    }
    Ok(program)
}

/// One kernel as threads of the program.
fn threads(
    source: &Source,
    slots: &Slots,
    kernel: &Kernel,
    program: &mut Program,
) -> Result<Vec<Thread>, Refusal> {
    let mut sizes = slots.sizes(source);
    let width = if let Some([width, 1, 1]) = kernel.threads { width } else { 1 };
    if width > 1 {
        // Memory that the compiler asks for itself. What uses it is refused below.
        sizes.resize(kernel.params.len().max(sizes.len()), WORD);
    }
    if kernel.params.len() != sizes.len() {
        return Err(Refusal::about("a kernel with other parameters than it was given"));
    }
    let mut alone = kernel.clone();
    alone.threads = Some([width, 1, 1]);
    let ran = simt::threads(&alone, 1, &sizes)?;
    let used = |n: usize| ran.threads.iter().any(|thread| names(thread, SymbolId::at(n)));
    let mut places = Vec::new();
    for (n, symbol) in ran.symbols.iter().enumerate() {
        let bytes = ran.objects[symbol.object.index()].bytes;
        places.push(match scratch(symbol) {
            _ if n >= slots.objects.len() + slots.results.len() && !used(n) => SymbolId::at(0),
            Some(thread) if width > 1 => own(program, thread, bytes),
            _ => place(source, slots, program, n, symbol)?,
        });
    }
    let is_seen = |(n, thread): &(usize, Thread)| *n == 0 || thread.body.iter().any(|i| reaches(&i.op, &ran));
    let kept = ran.threads.iter().cloned().enumerate().filter(is_seen);
    Ok(kept.map(|(_, thread)| renamed(thread, &places)).collect())
}

/// Whether a thread names a symbol.
fn names(thread: &Thread, symbol: SymbolId) -> bool {
    let is = |operand: Operand| operand == Operand::Address(symbol);
    let initial =
        |register: &moire_program::ir::RegDecl| matches!(register.init, RegInit::Address(s) if s == symbol);
    thread.regs.iter().any(initial)
        || thread.body.iter().any(|instr| {
            let mut found = false;
            registers::rewrite(&mut instr.op.clone(), &mut |r| r, &mut |o| {
                found |= is(o);
                o
            });
            found
        })
}

/// Whether others see an access: to memory that is not shared, or a write.
fn reaches(op: &Op, ran: &Program) -> bool {
    let shared =
        |s: SymbolId| ran.objects[ran.symbols[s.index()].object.index()].space == ir::Space::SharedCta;
    op.place().is_some_and(|(_, address)| {
        let is_shared = matches!(address.base, Operand::Address(s) if shared(s));
        !(is_shared && matches!(op, Op::Load { .. }))
    })
}

/// The thread whose kernel has this variable for itself, by the end of its name.
fn scratch(symbol: &Symbol) -> Option<usize> {
    symbol.name.rsplit('_').next()?.strip_prefix('t')?.parse().ok()
}

/// A shared variable of one kernel.
fn own(program: &mut Program, thread: usize, bytes: u32) -> SymbolId {
    let (object, virt) = (ObjectId::at(program.objects.len()), SymbolId::at(program.symbols.len()));
    let (name, space) = (format!("P{thread}.shared"), ir::Space::SharedCta);
    program.objects.push(ir::Object { name: name.clone(), space, bytes, init: Content::default() });
    program.symbols.push(Symbol { name, object, virt, proxy: Proxy::Generic, multimem: Vec::new() });
    virt
}

/// A thread with the symbols of the program.
fn renamed(mut thread: Thread, places: &[SymbolId]) -> Thread {
    let to = |s: SymbolId| places.get(s.index()).copied().unwrap_or(s);
    for instr in &mut thread.body {
        registers::rewrite(&mut instr.op, &mut |r| r, &mut |o| match o {
            Operand::Address(s) => Operand::Address(to(s)),
            other => other,
        });
    }
    for register in &mut thread.regs {
        if let RegInit::Address(s) = &mut register.init {
            *s = to(*s);
        }
    }
    thread
}

/// The symbol of the program that a symbol of a kernel stands for: a parameter by its position, a shared variable by the
/// number of the object at the end of its name.
fn place(
    source: &Source,
    slots: &Slots,
    program: &Program,
    position: usize,
    symbol: &Symbol,
) -> Result<SymbolId, Refusal> {
    let parameters = slots.objects.len() + slots.results.len();
    if position < parameters {
        return Ok(SymbolId::at(position));
    }
    let object = symbol.name.rsplit('_').next().and_then(|n| n.parse::<usize>().ok());
    let shared = |o: &usize| source.objects.get(*o).is_some_and(|o| o.space == Space::Shared);
    let Some(object) = object.filter(shared) else {
        return Err(Refusal::about("a shared variable that is none of the source"));
    };
    let before = source.objects[..object].iter().filter(|o| o.space == Space::Shared).count();
    let at = parameters + before;
    let bytes = program.objects.get(at).map(|o| o.bytes);
    bytes.map(|_| SymbolId::at(at)).ok_or_else(|| Refusal::about("a shared variable without memory"))
}

impl Compiled {
    /// The state at the end of an execution, from its memory: globals stand first, in the order of the source.
    pub fn state(&self, all: &[Content]) -> State {
        let results = all.iter().skip(self.globals).take(self.results);
        State {
            registers: results.map(number).collect(),
            memory: all[..self.globals.min(all.len())].to_vec(),
        }
    }
}
