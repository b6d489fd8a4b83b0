//! Builds a program piece by piece and keeps objects, names, threads, registers and labels consistent.
//!
//! Contract: every program built satisfies the index invariants of [`moire_program::ir`]; names are unique.

use moire_program::canon::names;
use moire_program::ir::{
    Address, Content, Guard, Instr, Label, LoadOrder, Object, ObjectId, Op, Operand, Placement, Program,
    Proxy, Reg, RegDecl, RegInit, Space, StoreOrder, Symbol, SymbolId, Thread, ThreadId, Ty,
};

/// A program under construction.
#[derive(Clone, Debug)]
pub struct Builder {
    program: Program,
}

impl Builder {
    /// An empty program called `name`.
    pub fn new(name: &str) -> Self {
        Builder { program: Program { name: name.to_owned(), ..Program::default() } }
    }

    /// A zero-initialised object and its defining symbol.
    pub fn object(&mut self, space: Space, bytes: u32) -> SymbolId {
        let object = ObjectId(small(self.program.objects.len()));
        let symbol = SymbolId(small(self.program.symbols.len()));
        let name = names::location(self.program.objects.len());
        self.program.objects.push(Object { name: name.clone(), space, bytes, init: Content::default() });
        self.program.symbols.push(Symbol {
            name,
            object,
            virt: symbol,
            proxy: Proxy::Generic,
            multimem: Vec::new(),
        });
        symbol
    }

    /// Adds a second name for the object of `of`: a virtual alias (generic), or a texture, surface or constant reference.
    /// Repeating a call returns the same symbol.
    pub fn name_through(&mut self, of: SymbolId, proxy: Proxy) -> SymbolId {
        let id = SymbolId(small(self.program.symbols.len()));
        let base = self.program.symbols[of.index()].clone();
        let virt = if proxy == Proxy::Generic { id } else { base.virt };
        let known = self.program.symbols.iter().position(|s| {
            s.object == base.object
                && s.proxy == proxy
                && (proxy != Proxy::Generic || s.virt != base.virt)
                && (proxy == Proxy::Generic || s.virt == virt)
        });
        if let Some(at) = known {
            return SymbolId(small(at));
        }
        let name = names::symbol(&self.program.objects[base.object.index()].name, proxy, 1);
        self.program.symbols.push(Symbol { name, object: base.object, virt, proxy, multimem: Vec::new() });
        id
    }

    /// A thread with an empty body.
    pub fn thread(&mut self, place: Placement) -> ThreadId {
        let id = ThreadId(small(self.program.threads.len()));
        self.program.threads.push(Thread {
            name: format!("P{}", id.0),
            place,
            regs: Vec::new(),
            labels: Vec::new(),
            body: Vec::new(),
        });
        id
    }

    /// A fresh register of `thread`, zero at the start.
    pub fn reg(&mut self, thread: ThreadId) -> Reg {
        let regs = &mut self.program.threads[thread.index()].regs;
        let id = Reg(small(regs.len()));
        regs.push(RegDecl { name: format!("r{}", id.0), init: RegInit::Value(0) });
        id
    }

    /// Appends an instruction and returns its index.
    pub fn push(&mut self, thread: ThreadId, op: Op) -> usize {
        self.push_guarded(thread, None, op)
    }

    /// Appends an instruction under a guard and returns its index.
    pub fn push_guarded(&mut self, thread: ThreadId, guard: Option<Guard>, op: Op) -> usize {
        let body = &mut self.program.threads[thread.index()].body;
        body.push(Instr { guard, ..Instr::new(legal(op)) });
        body.len() - 1
    }

    /// The index that the next instruction of `thread` gets.
    pub fn here(&self, thread: ThreadId) -> usize {
        self.program.threads[thread.index()].body.len()
    }

    /// Puts a label at position `at` of `thread` as the target of a branch. A position gets at most one label.
    pub fn label(&mut self, thread: ThreadId, at: usize) {
        let labels = &mut self.program.threads[thread.index()].labels;
        if labels.iter().all(|l| l.at != at) {
            let name = format!("L{}", labels.len());
            labels.push(Label { name, at });
        }
    }

    /// Redirects the branch at `from` of `thread` to `to` and labels `to`.
    pub fn patch(&mut self, thread: ThreadId, from: usize, to: usize) {
        self.label(thread, to);
        if let Op::Bra { target } = &mut self.program.threads[thread.index()].body[from].op {
            *target = to;
        }
    }

    /// The program so far.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The program so far, for adding conditions and other details.
    pub fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// The finished program; labels are in the order of the body.
    pub fn finish(mut self) -> Program {
        for thread in &mut self.program.threads {
            thread.labels.sort_by_key(|l| l.at);
            for (n, label) in thread.labels.iter_mut().enumerate() {
                label.name = format!("L{n}");
            }
        }
        self.program
    }
}

/// `[symbol + offset]`.
pub fn at(symbol: SymbolId, offset: i32) -> Address {
    Address { base: Operand::Address(symbol), offset }
}

/// A generic-proxy load of one element.
pub fn load(order: LoadOrder, space: Space, ty: Ty, dst: Reg, addr: Address) -> Op {
    Op::Load { order, proxy: Proxy::Generic, space, ty, dst: vec![dst], addr }
}

/// A generic-proxy store of one element.
pub fn store(order: StoreOrder, space: Space, ty: Ty, addr: Address, src: Operand) -> Op {
    Op::Store { order, proxy: Proxy::Generic, space, ty, addr, src: vec![src] }
}

/// An index or a count as 16 bits. Programs built here stay far below [`moire_program::limits`], which fit 16 bits.
fn small(n: usize) -> u16 {
    u16::try_from(n).expect("builders stay far below 2^16")
}

/// Turns an mmio access to shared memory or of a vector into a volatile one: PTX has no such mmio access.
fn legal(mut op: Op) -> Op {
    let shared = |space: Space| matches!(space, Space::SharedCta | Space::SharedCluster);
    if let Op::Load { order: order @ (LoadOrder::MmioRelaxed | LoadOrder::MmioAcquire), space, dst, .. } =
        &mut op
        && (shared(*space) || dst.len() > 1)
    {
        *order = LoadOrder::Volatile;
    }
    if let Op::Store {
        order: order @ (StoreOrder::MmioRelaxed | StoreOrder::MmioRelease), space, src, ..
    } = &mut op
        && (shared(*space) || src.len() > 1)
    {
        *order = StoreOrder::Volatile;
    }
    op
}
