//! Printing a program as native litmus. Reading it back gives the same program.

mod control;
mod copy;
mod mbarrier;
mod proxy;
mod tensor;
mod tile;

pub(super) use control::WGMMA_TYPES;
pub(super) use copy::TILE_MODES;
pub(super) use proxy::{RESTRICTIONS, TENSORMAP_FIELDS};
pub(super) use tensor::{COLLECTOR_USES, COPY_SHAPES, MMA_KINDS, MOVE_SHAPES, SCALE_SIZES};

use crate::ir::*;
use std::fmt::Write;

/// The native text of `program`.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    let name = program.name.replace(['"', '\n'], "'");
    let _ = writeln!(out, "moire \"{name}\"\n");
    if program.launched {
        out.push_str(".launch;\n");
    }
    for (i, symbol) in program.symbols.iter().enumerate() {
        declaration(&mut out, program, i, symbol);
    }
    for thread in &program.threads {
        print_thread(&mut out, program, thread);
    }
    if let Some(filter) = &program.filter {
        let _ = writeln!(out, "\nfilter {}", expression(program, filter, true));
    }
    for condition in &program.conditions {
        let quantifier = match condition.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::ForAll => "forall",
        };
        let name = if condition.name.is_empty() { String::new() } else { format!(" as {}", condition.name) };
        let _ = writeln!(out, "\n{quantifier} {}{name}", expression(program, &condition.expr, true));
    }
    out
}

fn declaration(out: &mut String, program: &Program, i: usize, symbol: &Symbol) {
    let object = &program.objects[symbol.object.index()];
    let base = |virt: SymbolId| &program.symbols[virt.index()].name;
    if object.space == Space::Tensor {
        let _ = writeln!(out, ".tmem {}[{}];", symbol.name, object.bytes / 4);
        return;
    }
    if symbol.name == object.name
        && symbol.proxy == Proxy::Generic
        && symbol.virt.index() == i
        && symbol.multimem.is_empty()
    {
        let space = if object.space == Space::SharedCta { ".shared" } else { ".global" };
        let zero = object.init.iter().all(|b| *b == 0);
        if matches!(object.bytes, 1 | 2 | 4 | 8) {
            let value = object.init.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
            let init = if zero { String::new() } else { format!(" = {value}") };
            let _ = writeln!(out, "{space} .b{} {}{init};", object.bytes * 8, symbol.name);
        } else {
            let used = object.init.iter().rposition(|b| *b != 0).map_or(0, |p| p + 1);
            let bytes: Vec<String> = object.init[..used].iter().map(u8::to_string).collect();
            let init = if zero { String::new() } else { format!(" = {{{}}}", bytes.join(", ")) };
            let _ = writeln!(out, "{space} .b8 {}[{}]{init};", symbol.name, object.bytes);
        }
    } else if !symbol.multimem.is_empty() {
        let names: Vec<&str> = std::iter::once(&symbol.object)
            .chain(&symbol.multimem)
            .map(|o| program.objects[o.index()].name.as_str())
            .collect();
        let _ = writeln!(out, ".multimem {} = {};", symbol.name, names.join(", "));
    } else {
        let (word, of) = match symbol.proxy {
            Proxy::Texture => (".texture", base(symbol.virt)),
            Proxy::Surface => (".surface", base(symbol.virt)),
            Proxy::Constant => (".constant", base(symbol.virt)),
            _ => (".alias", &object.name),
        };
        let _ = writeln!(out, "{word} {} = {of};", symbol.name);
    }
}

fn print_thread(out: &mut String, program: &Program, thread: &Thread) {
    let _ = writeln!(out, "\n{} ({}) {{", thread.name, placement(&thread.place));
    if !thread.regs.is_empty() {
        let one = |r: &RegDecl| match &r.init {
            RegInit::Value(0) => r.name.clone(),
            RegInit::Value(v) => format!("{} = {v}", r.name),
            RegInit::Address(s) => format!("{} = {}", r.name, program.symbols[s.index()].name),
            RegInit::Lane => format!("{} = %laneid", r.name),
        };
        let regs: Vec<String> = thread.regs.iter().map(one).collect();
        let _ = writeln!(out, "  .reg {};", regs.join(", "));
    }
    let mut labels: Vec<&Label> = thread.labels.iter().collect();
    labels.sort_by_key(|l| l.at);
    let mut labels = labels.into_iter().peekable();
    for pc in 0..=thread.body.len() {
        while let Some(label) = labels.next_if(|l| l.at == pc) {
            let _ = writeln!(out, "{}:", label.name);
        }
        if let Some(instr) = thread.body.get(pc) {
            let _ = writeln!(out, "  {};", instruction(program, thread, instr));
        }
    }
    out.push_str("}\n");
}

fn placement(place: &Placement) -> String {
    if place.host {
        return "host".into();
    }
    let mut parts = vec![format!("gpu {}", place.gpu)];
    for (word, value) in [("stream", place.stream), ("grid", place.grid), ("cluster", place.cluster)] {
        if value != 0 {
            parts.push(format!("{word} {value}"));
        }
    }
    parts.push(format!("cta {}", place.cta));
    if place.warp != 0 {
        parts.push(format!("warp {}", place.warp));
    }
    parts.extend(place.lane.map(|l| match place.more_lanes {
        0 => format!("lane {l}"),
        more => format!("lanes {l}-{}", u32::from(l) + u32::from(more)),
    }));
    parts.join(", ")
}

/// One instruction as PTX.
pub fn instruction(program: &Program, thread: &Thread, instr: &Instr) -> String {
    let p = Printer { program, thread };
    let guard = instr
        .guard
        .map_or(String::new(), |g| format!("@{}{} ", if g.negated { "!" } else { "" }, p.reg(g.reg)));
    format!("{guard}{}", p.op(&instr.op))
}

struct Printer<'a> {
    program: &'a Program,
    thread: &'a Thread,
}

pub(super) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => "cta",
        Scope::Cluster => "cluster",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

fn load_order(order: LoadOrder) -> String {
    match order {
        LoadOrder::Weak => ".weak".into(),
        LoadOrder::Relaxed(s) => format!(".relaxed.{}", scope(s)),
        LoadOrder::Acquire(s) => format!(".acquire.{}", scope(s)),
        LoadOrder::Volatile => ".volatile".into(),
        LoadOrder::MmioRelaxed => ".mmio.relaxed.sys".into(),
        LoadOrder::MmioAcquire => ".mmio.acquire.sys".into(),
    }
}

fn store_order(order: StoreOrder) -> String {
    match order {
        StoreOrder::Weak => ".weak".into(),
        StoreOrder::Relaxed(s) => format!(".relaxed.{}", scope(s)),
        StoreOrder::Release(s) => format!(".release.{}", scope(s)),
        StoreOrder::Volatile => ".volatile".into(),
        StoreOrder::MmioRelaxed => ".mmio.relaxed.sys".into(),
        StoreOrder::MmioRelease => ".mmio.release.sys".into(),
    }
}

fn rmw_order(order: RmwOrder) -> &'static str {
    match order {
        RmwOrder::Relaxed => ".relaxed",
        RmwOrder::Acquire => ".acquire",
        RmwOrder::Release => ".release",
        RmwOrder::AcqRel => ".acq_rel",
    }
}

pub(super) fn space(space: Space) -> &'static str {
    match space {
        Space::Generic | Space::Tensor => "",
        Space::Global => ".global",
        Space::SharedCta => ".shared::cta",
        Space::SharedCluster => ".shared::cluster",
    }
}

/// A type as PTX writes it, with its dot.
pub(crate) fn type_name(ty: Ty) -> String {
    match ty {
        Ty::Pred => ".pred".into(),
        Ty::B(n) => format!(".b{n}"),
        Ty::U(n) => format!(".u{n}"),
        Ty::S(n) => format!(".s{n}"),
        Ty::F(n) => format!(".f{n}"),
        Ty::F16x2 => ".f16x2".into(),
        Ty::Bf16x2 => ".bf16x2".into(),
    }
}

pub(super) const ATOM_OPS: [(&str, AtomOp); 11] = [
    ("add", AtomOp::Add),
    ("sub", AtomOp::Sub),
    ("and", AtomOp::And),
    ("or", AtomOp::Or),
    ("xor", AtomOp::Xor),
    ("min", AtomOp::Min),
    ("max", AtomOp::Max),
    ("inc", AtomOp::Inc),
    ("dec", AtomOp::Dec),
    ("exch", AtomOp::Exch),
    ("cas", AtomOp::Cas),
];

pub(super) const ALU_OPS: [(&str, AluOp); 12] = [
    ("add", AluOp::Add),
    ("sub", AluOp::Sub),
    ("mul", AluOp::Mul),
    ("div", AluOp::Div),
    ("rem", AluOp::Rem),
    ("and", AluOp::And),
    ("or", AluOp::Or),
    ("xor", AluOp::Xor),
    ("shl", AluOp::Shl),
    ("shr", AluOp::Shr),
    ("min", AluOp::Min),
    ("max", AluOp::Max),
];

pub(super) const CMP_OPS: [(&str, CmpOp); 6] = [
    ("eq", CmpOp::Eq),
    ("ne", CmpOp::Ne),
    ("lt", CmpOp::Lt),
    ("le", CmpOp::Le),
    ("gt", CmpOp::Gt),
    ("ge", CmpOp::Ge),
];

fn word<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, v)| v == value).map_or("", |(w, _)| w)
}

/// Prefix of a mnemonic that goes through another proxy.
fn stem(proxy: Proxy, plain: &str) -> String {
    match (proxy, plain) {
        (Proxy::Texture, _) => format!("t{plain}"),
        (Proxy::Surface, _) => format!("su{plain}"),
        (Proxy::Constant, _) => format!("{plain}c"),
        _ => plain.to_owned(),
    }
}

impl Printer<'_> {
    fn reg(&self, reg: Reg) -> &str {
        &self.thread.regs[reg.index()].name
    }

    fn operand(&self, operand: Operand) -> String {
        match operand {
            Operand::Reg(r) => self.reg(r).to_owned(),
            Operand::Imm(v) => v.to_string(),
            Operand::Address(s) => self.program.symbols[s.index()].name.clone(),
        }
    }

    fn address(&self, address: &Address) -> String {
        let base = self.operand(address.base);
        match address.offset {
            0 => format!("[{base}]"),
            n => format!("[{base}+{n}]"),
        }
    }

    fn vector<T: Copy>(&self, items: &[T], show: impl Fn(T) -> String) -> (String, String) {
        let all: Vec<String> = items.iter().map(|i| show(*i)).collect();
        if all.len() == 1 {
            (String::new(), all[0].clone())
        } else {
            (format!(".v{}", all.len()), format!("{{{}}}", all.join(", ")))
        }
    }

    fn op(&self, op: &Op) -> String {
        match op {
            Op::Mov { ty: t, dst, src } => {
                format!("mov{} {}, {}", type_name(*t), self.reg(*dst), self.operand(*src))
            }
            Op::Alu { op, ty: t, dst, a, b } => {
                let lo = if *op == AluOp::Mul { ".lo" } else { "" };
                let name = word(&ALU_OPS, op);
                format!(
                    "{name}{lo}{} {}, {}, {}",
                    type_name(*t),
                    self.reg(*dst),
                    self.operand(*a),
                    self.operand(*b)
                )
            }
            Op::Setp { op, ty: t, dst, a, b } => {
                format!(
                    "setp.{}{} {}, {}, {}",
                    word(&CMP_OPS, op),
                    type_name(*t),
                    self.reg(*dst),
                    self.operand(*a),
                    self.operand(*b)
                )
            }
            Op::Selp { ty: t, dst, a, b, p } => {
                format!(
                    "selp{} {}, {}, {}, {}",
                    type_name(*t),
                    self.reg(*dst),
                    self.operand(*a),
                    self.operand(*b),
                    self.reg(*p)
                )
            }
            Op::Bra { target } => {
                let label = self.thread.labels.iter().find(|l| l.at == *target);
                format!("bra {}", label.map_or("?", |l| &l.name))
            }
            Op::Exit => "exit".into(),
            Op::Fence { order, scope: s } => {
                let order = match order {
                    FenceOrder::Acquire => "acquire",
                    FenceOrder::Release => "release",
                    FenceOrder::AcqRel => "acq_rel",
                    FenceOrder::Sc => "sc",
                };
                format!("fence.{order}.{}", scope(*s))
            }
            Op::ProxyFence(kinds) => {
                let name = |k: &ProxyFence| match k {
                    ProxyFence::Alias => ".alias",
                    ProxyFence::Of(Proxy::Texture) => ".texture",
                    ProxyFence::Of(Proxy::Surface) => ".surface",
                    ProxyFence::Of(Proxy::Constant) => ".constant",
                    ProxyFence::Of(Proxy::Async) => ".async",
                    ProxyFence::Of(Proxy::Tensormap) => ".tensormap",
                    ProxyFence::Of(Proxy::Generic) => ".generic",
                };
                format!("fence.proxy{}", kinds.iter().map(name).collect::<String>())
            }
            Op::Bar { .. } | Op::ClusterArrive { .. } | Op::ClusterWait | Op::WarpSync { .. } => {
                self.barrier(op)
            }
            Op::Mbarrier(m) => self.mbarrier(m),
            Op::MbarrierInitFence => "fence.mbarrier_init.release.cluster".into(),
            Op::Mapa { ty: t, shared, dst, src, rank } => {
                let shared = if *shared { ".shared::cluster" } else { "" };
                let (dst, src, rank) = (self.reg(*dst), self.operand(*src), self.operand(*rank));
                format!("mapa{shared}{} {dst}, {src}, {rank}", type_name(*t))
            }
            Op::Tcgen05(op) => self.tcgen05(op),
            Op::AsyncCopy(op) => self.copy(op),
            Op::Wgmma(op) => self.wgmma(op),
            Op::ProxyOrder(op) => self.proxy_order(op),
            Op::Control(op) => self.control(op),
            _ => self.memory(op),
        }
    }

    fn barrier(&self, op: &Op) -> String {
        match op {
            Op::Bar { kind, id, count, instance } => {
                let instance = instance.map_or(String::new(), |i| format!(".instance{i}"));
                let id = self.operand(*id);
                let count = count.map_or(String::new(), |c| format!(", {}", self.operand(c)));
                match kind {
                    BarKind::Sync => format!("bar{instance}.sync {id}{count}"),
                    BarKind::Arrive => format!("bar{instance}.arrive {id}{count}"),
                    BarKind::Red { op, dst, pred } => {
                        let (op, ty) = match op {
                            BarRed::Popc => ("popc", "u32"),
                            BarRed::And => ("and", "pred"),
                            BarRed::Or => ("or", "pred"),
                        };
                        let not = if pred.negated { "!" } else { "" };
                        format!(
                            "bar{instance}.red.{op}.{ty} {}, {id}{count}, {not}{}",
                            self.reg(*dst),
                            self.reg(pred.reg)
                        )
                    }
                }
            }
            Op::ClusterArrive { relaxed } => {
                format!("barrier.cluster.arrive{}", if *relaxed { ".relaxed" } else { "" })
            }
            Op::ClusterWait => "barrier.cluster.wait".into(),
            Op::WarpSync { mask } => format!("bar.warp.sync {}", self.operand(*mask)),
            _ => String::new(),
        }
    }

    fn memory(&self, op: &Op) -> String {
        match op {
            Op::Load { order, proxy, space: s, ty: t, dst, addr } => {
                let (v, dst) = self.vector(dst, |r| self.reg(r).to_owned());
                format!(
                    "{}{}{}{v}{} {dst}, {}",
                    stem(*proxy, "ld"),
                    load_order(*order),
                    space(*s),
                    type_name(*t),
                    self.address(addr)
                )
            }
            Op::Store { order, proxy, space: s, ty: t, addr, src } => {
                let (v, src) = self.vector(src, |o| self.operand(o));
                format!(
                    "{}{}{}{v}{} {}, {src}",
                    stem(*proxy, "st"),
                    store_order(*order),
                    space(*s),
                    type_name(*t),
                    self.address(addr)
                )
            }
            Op::Rmw { red, order, scope: sc, proxy, space: s, op, ty: t, dst, addr, a, b } => {
                let name = stem(*proxy, if *red { "red" } else { "atom" });
                let dst = dst.map_or(String::new(), |d| format!("{}, ", self.reg(d)));
                let dst = if !red && dst.is_empty() { "_, ".to_owned() } else { dst };
                let b = b.map_or(String::new(), |b| format!(", {}", self.operand(b)));
                let (order, scope, space, op, t) =
                    (rmw_order(*order), scope(*sc), space(*s), word(&ATOM_OPS, op), type_name(*t));
                format!(
                    "{name}{order}.{scope}{space}.{op}{t} {dst}{}, {}{b}",
                    self.address(addr),
                    self.operand(*a)
                )
            }
            Op::MultimemLoad { order, op, ty: t, dst, addr } => {
                format!(
                    "multimem.ld_reduce{}.{}{} {}, {}",
                    load_order(*order),
                    word(&ATOM_OPS, op),
                    type_name(*t),
                    self.reg(*dst),
                    self.address(addr)
                )
            }
            Op::MultimemStore { order, ty: t, addr, src } => {
                format!(
                    "multimem.st{}{} {}, {}",
                    store_order(*order),
                    type_name(*t),
                    self.address(addr),
                    self.operand(*src)
                )
            }
            Op::MultimemRed { order, scope: sc, op, ty: t, addr, src } => {
                let (order, scope, op, t) =
                    (rmw_order(*order), scope(*sc), word(&ATOM_OPS, op), type_name(*t));
                format!("multimem.red{order}.{scope}.{op}{t} {}, {}", self.address(addr), self.operand(*src))
            }
            Op::Tile(op) => self.tile(op),
            _ => String::new(),
        }
    }
}

/// A condition; the outermost always in parentheses.
fn expression(program: &Program, expr: &Expr, outer: bool) -> String {
    let join = |es: &[Expr], word: &str| {
        let all: Vec<String> = es.iter().map(|e| expression(program, e, false)).collect();
        format!("({})", all.join(word))
    };
    let text = match expr {
        Expr::Bool(b) => b.to_string(),
        Expr::Not(e) => return format!("not {}", expression(program, e, true)),
        Expr::And(es) => return join(es, " /\\ "),
        Expr::Or(es) => return join(es, " \\/ "),
        Expr::Cmp(op, a, b) => {
            let op = match op {
                CmpOp::Eq => "==",
                CmpOp::Ne => "!=",
                CmpOp::Lt => "<",
                CmpOp::Le => "<=",
                CmpOp::Gt => ">",
                CmpOp::Ge => ">=",
            };
            format!("{} {op} {}", term_text(program, *a), term_text(program, *b))
        }
    };
    if outer { format!("({text})") } else { text }
}

/// A leaf of a condition.
pub(crate) fn term_text(program: &Program, term: Term) -> String {
    match term {
        Term::Const(c) => c.to_string(),
        Term::Reg(t, r) => {
            let thread = &program.threads[t.index()];
            format!("{}:{}", thread.name, thread.regs[r.index()].name)
        }
        Term::Mem { symbol, offset, bytes, thread } => {
            let name = &program.symbols[symbol.index()].name;
            let owner = thread.map_or(String::new(), |t| format!("{}:", program.threads[t.index()].name));
            let offset = if offset == 0 { String::new() } else { format!("+{offset}") };
            format!("[{owner}{name}{offset}].b{}", u32::from(bytes) * 8)
        }
    }
}
