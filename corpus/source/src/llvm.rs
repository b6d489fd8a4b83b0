//! Prints source programs as LLVM IR for `nvptx64`: each thread is a kernel.
//!
//! The parameters of a kernel are the global objects in their order, then a result for each register of each thread. A
//! kernel ends by storing its registers to its results. Objects in shared memory are variables of the module.
//!
//! NVVM IR ([`crate::nvvm`]) is the same language in older dialects.

use crate::slots::Slots;
use crate::syntax::{Access, Order, Source, Space, Step, Value};
use moire_program::ir::{AtomOp, Scope};
use std::fmt::Write;

/// The start of a module.
const HEAD: &str = "target triple = \"nvptx64-nvidia-cuda\"\n\n";

/// The kernel of a thread, as named in modules.
pub use crate::slots::kernel_name;

/// How pointers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointers {
    /// `ptr`
    Opaque,
    /// `i32*`, as releases before 15 write them. There updates name no alignment.
    Typed,
}

/// One module with the kernels of all these programs. Program `n` has the number `first + n`.
pub fn module(programs: &[&Source], first: usize) -> String {
    HEAD.to_owned() + &kernels(programs, first, Pointers::Opaque)
}

/// The variables and the kernels of these programs.
pub(crate) fn kernels(programs: &[&Source], first: usize, pointers: Pointers) -> String {
    let mut out = String::new();
    for (n, source) in programs.iter().enumerate() {
        for (o, object) in source.objects.iter().enumerate() {
            if object.space == Space::Shared {
                // Not internal: of such one `opt` knows every store.
                let (ty, align) = (ty(object.bits), object.bits / 8);
                let name = shared(first + n, o);
                let _ = writeln!(out, "@{name} = addrspace(3) global {ty} undef, align {align}");
            }
        }
        for t in 0..source.threads.len() {
            Printer::new(source, first + n, t, pointers).kernel(&mut out);
        }
    }
    out
}

/// The name of an object in shared memory.
fn shared(program: usize, object: usize) -> String {
    format!("moire_s{program}_{object}")
}

fn ty(bits: u8) -> String {
    format!("i{bits}")
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "syncscope(\"block\") ",
        Scope::Cluster => "syncscope(\"cluster\") ",
        Scope::Gpu => "syncscope(\"device\") ",
        Scope::Sys => "",
    }
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Relaxed => "monotonic",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::SeqCst => "seq_cst",
    }
}

/// A value that an operand names: a number or the result of an instruction.
type Name = String;

struct Printer<'s> {
    source: &'s Source,
    program: usize,
    thread: usize,
    pointers: Pointers,
    /// The value of each register.
    held: Vec<Name>,
    /// The next number of a value, and of a block.
    next: usize,
    /// The block that is printed.
    block: String,
    body: String,
}

impl<'s> Printer<'s> {
    fn new(source: &'s Source, program: usize, thread: usize, pointers: Pointers) -> Self {
        let registers = source.threads.get(thread).map_or(0, |t| t.registers.len());
        let (held, block) = (vec!["0".to_owned(); registers], "start".to_owned());
        Printer { source, program, thread, pointers, held, next: 0, block, body: String::new() }
    }

    /// The type of a pointer to memory of this width.
    fn pointer_type(&self, bits: u8, space: Space) -> String {
        match self.pointers {
            Pointers::Opaque => format!("ptr{}", address_space(space)),
            Pointers::Typed => format!("{}{}*", ty(bits), address_space(space)),
        }
    }

    /// The alignment at the end of an update.
    fn aligned(&self, align: u8) -> String {
        if self.pointers == Pointers::Typed { String::new() } else { format!(", align {align}") }
    }

    fn kernel(mut self, out: &mut String) {
        let Some(thread) = self.source.threads.get(self.thread) else { return };
        self.steps(&thread.body);
        let slots = Slots::of(self.source);
        let objects = &self.source.objects;
        let pointer = |o: &usize| self.pointer_type(objects[*o].bits, objects[*o].space) + &format!(" %x{o}");
        let bits = |t: usize, r: usize| self.source.threads[t].registers[r].bits;
        let result =
            |(t, r): &(usize, usize)| self.pointer_type(bits(*t, *r), Space::Global) + &format!(" %o{t}_{r}");
        let parameters: Vec<String> =
            slots.objects.iter().map(pointer).chain(slots.results.iter().map(result)).collect();
        for (r, register) in thread.registers.iter().enumerate() {
            let (ty, align, held) = (ty(register.bits), register.bits / 8, &self.held[r]);
            let to = self.pointer_type(register.bits, Space::Global) + &format!(" %o{}_{r}", self.thread);
            let _ = writeln!(self.body, "  store {ty} {held}, {to}, align {align}");
        }
        let name = kernel_name(self.program, self.thread);
        let _ = writeln!(out, "define ptx_kernel void @{name}({}) {{", parameters.join(", "));
        let _ = writeln!(out, "start:\n{}  ret void\n}}\n", self.body);
    }

    fn value(&mut self) -> Name {
        self.next += 1;
        format!("%v{}", self.next)
    }

    /// The pointer to an object, its type and its alignment.
    fn pointer(&self, object: usize) -> (String, String, u8) {
        let Some(o) = self.source.objects.get(object) else { return (String::new(), String::new(), 1) };
        let name = match o.space {
            Space::Shared => format!("@{}", shared(self.program, object)),
            Space::Global | Space::Generic => format!("%x{object}"),
        };
        (self.pointer_type(o.bits, o.space) + " " + &name, ty(o.bits), o.bits / 8)
    }

    fn operand(&self, value: Value) -> Name {
        match value {
            Value::Number(n) => n.to_string(),
            Value::Register(r) => self.held.get(r).cloned().unwrap_or_default(),
        }
    }

    fn hold(&mut self, register: usize, value: Name) {
        if let Some(slot) = self.held.get_mut(register) {
            *slot = value;
        }
    }

    fn steps(&mut self, all: &[Step]) {
        all.iter().for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Load { dst, object, access } => {
                let (pointer, ty, align) = self.pointer(*object);
                let (value, (atomic, orders)) = (self.value(), how(*access));
                let _ =
                    writeln!(self.body, "  {value} = load{atomic} {ty}, {pointer}{orders}, align {align}");
                self.hold(*dst, value);
            }
            Step::Store { object, value, access } => {
                let (pointer, ty, align) = self.pointer(*object);
                let (value, (atomic, orders)) = (self.operand(*value), how(*access));
                let _ = writeln!(self.body, "  store{atomic} {ty} {value}, {pointer}{orders}, align {align}");
            }
            Step::Update(u) => {
                let (pointer, ty, align) = self.pointer(u.object);
                let (operand, value) = (self.operand(u.value), self.value());
                let (op, scope, order) = (update(u.op), scope(u.scope), order(u.order));
                let aligned = self.aligned(align);
                let _ = writeln!(
                    self.body,
                    "  {value} = atomicrmw {op} {pointer}, {ty} {operand} {scope}{order}{aligned}"
                );
                if let Some(dst) = u.dst {
                    self.hold(dst, value);
                }
            }
            Step::Cas(c) => {
                let (pointer, ty, align) = self.pointer(c.object);
                let (pair, value, new) = (self.value(), self.value(), self.operand(c.desired));
                let orders = format!("{}{} {}", scope(c.scope), order(c.success), order(c.failure));
                let (aligned, old) = (self.aligned(align), c.expected);
                let _ = writeln!(
                    self.body,
                    "  {pair} = cmpxchg {pointer}, {ty} {old}, {ty} {new} {orders}{aligned}"
                );
                let _ = writeln!(self.body, "  {value} = extractvalue {{ {ty}, i1 }} {pair}, 0");
                self.hold(c.dst, value);
            }
            Step::Fence { order: o, scope: s } => {
                let _ = writeln!(self.body, "  fence {}{}", scope(*s), order(*o));
            }
            Step::If { register, equals, then } => self.arm(*register, *equals, then),
        }
    }

    fn arm(&mut self, register: usize, equals: u64, then: &[Step]) {
        let bits = self.source.threads[self.thread].registers.get(register).map_or(32, |r| r.bits);
        let (test, number) = (self.value(), self.next);
        let held = self.held.get(register).cloned().unwrap_or_default();
        let (inside, after) = (format!("then{number}"), format!("join{number}"));
        let _ = writeln!(self.body, "  {test} = icmp eq {} {held}, {equals}", ty(bits));
        let _ = writeln!(self.body, "  br i1 {test}, label %{inside}, label %{after}\n{inside}:");
        let (from, before) = (std::mem::replace(&mut self.block, inside), self.held.clone());
        self.steps(then);
        let _ = writeln!(self.body, "  br label %{after}\n{after}:");
        let end = std::mem::replace(&mut self.block, after);
        for (r, old) in before.into_iter().enumerate() {
            if self.held[r] != old {
                let bits = self.source.threads[self.thread].registers[r].bits;
                let (joined, new) = (self.value(), self.held[r].clone());
                let arms = format!("[ {old}, %{from} ], [ {new}, %{end} ]");
                let _ = writeln!(self.body, "  {joined} = phi {} {arms}", ty(bits));
                self.held[r] = joined;
            }
        }
    }
}

fn address_space(space: Space) -> &'static str {
    match space {
        Space::Global => " addrspace(1)",
        Space::Generic => "",
        Space::Shared => " addrspace(3)",
    }
}

/// What stands behind the mnemonic of an access, and behind its pointer.
fn how(access: Access) -> (&'static str, String) {
    match access {
        Access::Plain => ("", String::new()),
        Access::Atomic { order: o, scope: s, volatile } => {
            (if volatile { " atomic volatile" } else { " atomic" }, format!(" {}{}", scope(s), order(o)))
        }
    }
}

fn update(op: AtomOp) -> &'static str {
    match op {
        AtomOp::Add => "add",
        AtomOp::And => "and",
        AtomOp::Or => "or",
        AtomOp::Xor => "xor",
        AtomOp::Min => "umin",
        AtomOp::Max => "umax",
        _ => "xchg",
    }
}
