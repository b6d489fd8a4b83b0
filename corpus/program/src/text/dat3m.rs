//! The PTX litmus dialect of Dat3M (its ANTLR grammar `LitmusPTX`): one column of instructions for each thread.
//!
//! The dialect's meaning is kept. Accesses are 8-byte signed numbers; registers and memory start at 0. The operands of a
//! bar are a static instance, the barrier number (-1 here if it is absent) and a count. A branch on two values becomes
//! `setp` and `@p bra` with a new register.
//!
//! A barrier count is a minimum without phases, as published. In native text it is PTX's count, with phases.

use super::ParseError;
use super::build::{Builder, ThreadBuilder, constant, expr};
use super::scan::{Comments, Parsed, Scan, Spot, closest};
use crate::ir::*;
use crate::limits::{REGISTERS, THREADS};

const TY: Ty = Ty::S(64);

/// Reads one file.
pub fn parse(source: &str) -> Result<Program, ParseError> {
    let mut scan = Scan::new(source, Comments::Litmus);
    let start = scan.at;
    if !(scan.keyword("PTX") || scan.keyword("ptx")) {
        return Err(scan.expected("`PTX` and a title"));
    }
    let open = find_brace(source, scan.at).ok_or_else(|| {
        ParseError::at(source, start, "there is no `{ .. }` with the initial state".into(), None)
    })?;
    let title = source[scan.at..open].split('"').next().unwrap_or_default();
    let mut builder = Builder::new(title.split_whitespace().next().unwrap_or("litmus"));
    scan.at = open + 1;
    let registers = init(&mut scan, &mut builder)?;
    let mut threads = header(&mut scan)?;
    rows(&mut scan, &mut builder, &mut threads)?;
    for (thread, name, value, at) in registers {
        let Some(t) = threads.iter_mut().find(|t| t.thread.name == thread) else {
            return Err(scan.error_at(at, format!("`{thread}` is not in the header"), None));
        };
        let reg = t.reg(&mut scan, &name)?;
        t.thread.regs[reg.index()].init = value;
    }
    for t in threads {
        let thread = t.finish(source)?;
        builder.thread(&mut scan, thread)?;
    }
    conditions(&mut scan, &mut builder)?;
    Ok(builder.separated())
}

/// The first `{` outside quotes and comments.
fn find_brace(source: &str, from: usize) -> Option<usize> {
    let (mut quoted, mut at) = (false, from);
    while at < source.len() {
        let rest = &source[at..];
        if rest.starts_with('"') {
            quoted = !quoted;
        } else if !quoted && rest.starts_with("(*") {
            at += rest.find("*)")?;
            continue;
        } else if !quoted && rest.starts_with('{') {
            return Some(at);
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    None
}

type InitialRegister = (String, String, RegInit, usize);

fn init(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<Vec<InitialRegister>> {
    let mut registers = Vec::new();
    while !scan.take("}") {
        if scan.take(";") {
            continue;
        }
        let at = scan.at;
        let name = scan.name("a location, a register `P0:r1`, or `}`")?.to_owned();
        if scan.take(":") {
            let reg = scan.name("a register")?.to_owned();
            scan.expect("=")?;
            let value = match initial_value(scan, builder)? {
                Ok(v) => RegInit::Value(pattern(v)),
                Err(symbol) => RegInit::Address(symbol),
            };
            registers.push((name, reg, value, at));
        } else if scan.take("@") {
            let proxy = proxy(scan)?;
            if !scan.keyword("aliases") {
                return Err(scan.expected("`aliases`"));
            }
            let target = scan.name("a location")?.to_owned();
            let of = location(scan, builder, &target)?;
            builder.alias(scan, &name, of, proxy)?;
        } else {
            let symbol = location(scan, builder, &name)?;
            if scan.take("=") {
                match initial_value(scan, builder)? {
                    Ok(v) => builder.set_initial(symbol, v),
                    Err(_) => {
                        return Err(scan.error_at(
                            at,
                            "memory that holds an address is not supported".into(),
                            None,
                        ));
                    }
                }
            }
        }
    }
    scan.take(";");
    Ok(registers)
}

fn initial_value(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<Result<i128, SymbolId>> {
    if scan.take("&") {
        let name = scan.name("a location")?.to_owned();
        return Ok(Err(location(scan, builder, &name)?));
    }
    if scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return Ok(Ok(scan.number()?));
    }
    let name = scan.name("a number or a location")?.to_owned();
    Ok(Err(location(scan, builder, &name)?))
}

fn location(scan: &mut Scan<'_>, builder: &mut Builder, name: &str) -> Parsed<SymbolId> {
    match builder.symbol(name) {
        Some(symbol) => Ok(symbol),
        None => builder.object(scan, name, Space::Global, 8, Content::default()),
    }
}

fn proxy(scan: &mut Scan<'_>) -> Parsed<Proxy> {
    for (word, proxy) in PROXIES {
        if scan.keyword(word) {
            return Ok(proxy);
        }
    }
    Err(scan.expected("generic, surface, texture or constant"))
}

const PROXIES: [(&str, Proxy); 4] = [
    ("generic", Proxy::Generic),
    ("surface", Proxy::Surface),
    ("texture", Proxy::Texture),
    ("constant", Proxy::Constant),
];

fn header(scan: &mut Scan<'_>) -> Parsed<Vec<ThreadBuilder>> {
    let mut threads = Vec::new();
    loop {
        let name = scan.name("a thread such as `P0`")?.to_owned();
        scan.expect("@")?;
        let mut place = Placement::default();
        for (i, (word, field)) in [("cta", &mut place.cta), ("gpu", &mut place.gpu)].into_iter().enumerate() {
            if i > 0 {
                scan.expect(",")?;
            }
            if !scan.keyword(word) {
                return Err(scan.expected(&format!("`{word}` and a number")));
            }
            let n = scan.number()?;
            *field = u16::try_from(n).map_err(|_| scan.error(format!("{word} {n} is out of range"), None))?;
        }
        if threads.len() == THREADS {
            return Err(scan.error(format!("a program may have at most {THREADS} threads"), None));
        }
        threads.push(ThreadBuilder::new(&name, place));
        if !scan.take("|") {
            scan.expect(";")?;
            return Ok(threads);
        }
    }
}

fn rows(scan: &mut Scan<'_>, builder: &mut Builder, threads: &mut [ThreadBuilder]) -> Parsed<()> {
    loop {
        let over = ["exists", "~", "forall", "not", "filter", "locations"].iter().any(|w| scan.peek(w));
        if over || scan.done() {
            return Ok(());
        }
        let mut column = 0;
        loop {
            if !(scan.peek("|") || scan.peek(";")) {
                let Some(thread) = threads.get_mut(column) else {
                    return Err(scan.error("this row has more columns than the header".into(), None));
                };
                instruction(scan, builder, thread)?;
            }
            if scan.take(";") {
                break;
            }
            if !scan.take("|") {
                return Err(scan.expected("`|` or `;`"));
            }
            column += 1;
        }
    }
}

/// A register or a number.
fn value(scan: &mut Scan<'_>, thread: &mut ThreadBuilder) -> Parsed<Operand> {
    if scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return Ok(Operand::Imm(scan.number()?));
    }
    let name = scan.name("a register or a number")?;
    Ok(Operand::Reg(thread.reg(scan, name)?))
}

fn instruction(scan: &mut Scan<'_>, builder: &mut Builder, thread: &mut ThreadBuilder) -> Parsed<()> {
    let spot = scan.spot();
    let start = scan.at;
    let word = scan.word("an instruction", ".")?;
    if scan.take(":") {
        return thread.label(scan, word);
    }
    let parts: Vec<&str> = word.split('.').collect();
    match parts[0] {
        "goto" => jump(scan, thread, spot, None),
        "beq" | "bne" | "blt" | "bgt" | "ble" | "bge" => branch(scan, thread, spot, &parts[0][1..]),
        "add" | "sub" | "mul" | "div" => arithmetic(scan, thread, spot, parts[0]),
        "fence" => fence(scan, thread, spot, start, &parts),
        "bar" => barrier(scan, thread, spot, start, &parts),
        _ => memory(scan, builder, thread, spot, start, &parts),
    }
}

fn jump(scan: &mut Scan<'_>, thread: &mut ThreadBuilder, spot: Spot, guard: Option<Guard>) -> Parsed<()> {
    scan.rest();
    let at = scan.at;
    let label = scan.word("a label", "")?.to_owned();
    thread.jumps.push((thread.thread.body.len(), label, at));
    thread.push(scan, spot, guard, Op::Bra { target: 0 })
}

fn branch(scan: &mut Scan<'_>, thread: &mut ThreadBuilder, spot: Spot, cmp: &str) -> Parsed<()> {
    let op = match cmp {
        "eq" => CmpOp::Eq,
        "ne" => CmpOp::Ne,
        "lt" => CmpOp::Lt,
        "gt" => CmpOp::Gt,
        "le" => CmpOp::Le,
        _ => CmpOp::Ge,
    };
    let a = value(scan, thread)?;
    scan.expect(",")?;
    let b = value(scan, thread)?;
    scan.expect(",")?;
    let dst = thread.fresh(scan, "p")?;
    thread.push(scan, spot, None, Op::Setp { op, ty: TY, dst, a, b })?;
    jump(scan, thread, spot, Some(Guard { reg: dst, negated: false }))
}

fn arithmetic(scan: &mut Scan<'_>, thread: &mut ThreadBuilder, spot: Spot, word: &str) -> Parsed<()> {
    let op = match word {
        "add" => AluOp::Add,
        "sub" => AluOp::Sub,
        "mul" => AluOp::Mul,
        _ => AluOp::Div,
    };
    let name = scan.name("a register")?;
    let dst = thread.reg(scan, name)?;
    scan.expect(",")?;
    let a = value(scan, thread)?;
    scan.expect(",")?;
    let b = value(scan, thread)?;
    thread.push(scan, spot, None, Op::Alu { op, ty: TY, dst, a, b })
}

fn scope_word(scan: &Scan<'_>, at: usize, word: &str) -> Parsed<Scope> {
    match word {
        "cta" => Ok(Scope::Cta),
        "gpu" => Ok(Scope::Gpu),
        "sys" => Ok(Scope::Sys),
        "cluster" => Ok(Scope::Cluster),
        _ => {
            let hint =
                closest(word, &["cta", "cluster", "gpu", "sys"]).map(|w| format!("did you mean `{w}`?"));
            Err(scan.error_at(at, format!("`{word}` is not a scope; expected one of cta, gpu, sys"), hint))
        }
    }
}

fn fence(
    scan: &mut Scan<'_>,
    thread: &mut ThreadBuilder,
    spot: Spot,
    at: usize,
    parts: &[&str],
) -> Parsed<()> {
    let op = match parts {
        ["fence", "proxy", "alias"] => Op::ProxyFence(vec![ProxyFence::Alias]),
        ["fence", "proxy", name] => {
            let Some((_, proxy)) = PROXIES.iter().find(|(n, _)| n == name) else {
                return Err(scan.error_at(at, format!("`{name}` is not a proxy"), None));
            };
            Op::ProxyFence(vec![ProxyFence::Of(*proxy)])
        }
        ["fence", order, scope] => {
            let order = match *order {
                "acq_rel" => FenceOrder::AcqRel,
                "sc" => FenceOrder::Sc,
                // One-sided fences are newer than the dialect, but unambiguous.
                "acquire" => FenceOrder::Acquire,
                "release" => FenceOrder::Release,
                _ => {
                    return Err(scan.error_at(
                        at,
                        format!("`{order}` is not a fence; expected acq_rel or sc"),
                        None,
                    ));
                }
            };
            Op::Fence { order, scope: scope_word(scan, at, scope)? }
        }
        _ => {
            return Err(scan.error_at(
                at,
                "expected `fence.sc.SCOPE`, `fence.acq_rel.SCOPE` or `fence.proxy.NAME`".into(),
                None,
            ));
        }
    };
    thread.push(scan, spot, None, op)
}

fn barrier(
    scan: &mut Scan<'_>,
    thread: &mut ThreadBuilder,
    spot: Spot,
    at: usize,
    parts: &[&str],
) -> Parsed<()> {
    let kind = match parts {
        ["bar", "cta", "sync"] => BarKind::Sync,
        ["bar", "cta", "arrive"] => BarKind::Arrive,
        _ => return Err(scan.error_at(at, "expected `bar.cta.sync` or `bar.cta.arrive`".into(), None)),
    };
    let number = scan.number()?;
    let instance =
        u32::try_from(number).map_err(|_| scan.error("a barrier instance is a small number".into(), None))?;
    let id = if scan.take(",") { value(scan, thread)? } else { Operand::Imm(-1) };
    let count = if scan.take(",") { Some(value(scan, thread)?) } else { None };
    thread.push(scan, spot, None, Op::Bar { kind, id, count, instance: Some(instance) })
}

fn memory(
    scan: &mut Scan<'_>,
    builder: &mut Builder,
    thread: &mut ThreadBuilder,
    spot: Spot,
    at: usize,
    parts: &[&str],
) -> Parsed<()> {
    let (stem, proxy) = match parts[0] {
        "ld" | "st" | "atom" | "red" => (parts[0], Proxy::Generic),
        "tld" => ("ld", Proxy::Texture),
        "cold" => ("ld", Proxy::Constant),
        "suld" => ("ld", Proxy::Surface),
        "sust" => ("st", Proxy::Surface),
        "suatom" => ("atom", Proxy::Surface),
        "sured" => ("red", Proxy::Surface),
        other => {
            let known = [
                "ld", "st", "atom", "red", "fence", "bar", "add", "sub", "goto", "beq", "bne", "tld", "suld",
                "sust",
            ];
            let hint = closest(other, &known).map(|w| format!("did you mean `{w}`?"));
            return Err(scan.error_at(at, format!("`{other}` is not an instruction of this dialect"), hint));
        }
    };
    let quals = &parts[1..];
    match stem {
        "ld" if quals.is_empty() => {
            let name = scan.name("a register")?;
            let dst = thread.reg(scan, name)?;
            scan.expect(",")?;
            let src = value(scan, thread)?;
            thread.push(scan, spot, None, Op::Mov { ty: TY, dst, src })
        }
        "ld" => {
            let order = load_order(scan, at, quals)?;
            let name = scan.name("a register")?;
            let dst = vec![thread.reg(scan, name)?];
            scan.expect(",")?;
            let addr = address(scan, builder)?;
            thread.push(scan, spot, None, Op::Load { order, proxy, space: Space::Generic, ty: TY, dst, addr })
        }
        "st" => {
            let order = store_order(scan, at, quals)?;
            let addr = address(scan, builder)?;
            scan.expect(",")?;
            let src = vec![value(scan, thread)?];
            thread.push(
                scan,
                spot,
                None,
                Op::Store { order, proxy, space: Space::Generic, ty: TY, addr, src },
            )
        }
        _ => update(scan, builder, thread, spot, at, stem == "red", proxy, quals),
    }
}

#[expect(clippy::too_many_arguments, reason = "the pieces of one instruction")]
fn update(
    scan: &mut Scan<'_>,
    builder: &mut Builder,
    thread: &mut ThreadBuilder,
    spot: Spot,
    at: usize,
    red: bool,
    proxy: Proxy,
    quals: &[&str],
) -> Parsed<()> {
    let &[order, scope, op] = quals else {
        return Err(scan.error_at(
            at,
            "expected an order, a scope and an operation, as in `atom.relaxed.gpu.add`".into(),
            None,
        ));
    };
    let order = match order {
        "relaxed" => RmwOrder::Relaxed,
        "acquire" => RmwOrder::Acquire,
        "release" => RmwOrder::Release,
        "acq_rel" => RmwOrder::AcqRel,
        _ => return Err(scan.error_at(at, format!("`{order}` is not an order of atom or red"), None)),
    };
    let scope = scope_word(scan, at, scope)?;
    let op = match op {
        "add" => AtomOp::Add,
        "sub" => AtomOp::Sub,
        "and" => AtomOp::And,
        "or" => AtomOp::Or,
        "xor" => AtomOp::Xor,
        "exch" => AtomOp::Exch,
        "cas" => AtomOp::Cas,
        _ => return Err(scan.error_at(at, format!("`{op}` is not an operation of atom or red"), None)),
    };
    let dst = if red {
        None
    } else {
        let name = scan.name("a register")?;
        let dst = thread.reg(scan, name)?;
        scan.expect(",")?;
        Some(dst)
    };
    let addr = address(scan, builder)?;
    scan.expect(",")?;
    let a = value(scan, thread)?;
    let b = if op == AtomOp::Cas {
        scan.expect(",")?;
        Some(value(scan, thread)?)
    } else {
        None
    };
    let op =
        Op::Rmw { red, order, scope, proxy, space: Space::Generic, op, ty: rmw_type(op), dst, addr, a, b };
    thread.push(scan, spot, None, op)
}

/// The 64-bit type for which PTX has this operation. Signedness makes no difference to the operation.
pub(super) fn rmw_type(op: AtomOp) -> Ty {
    match op {
        AtomOp::Sub => TY,
        AtomOp::Add => Ty::U(64),
        _ => Ty::B(64),
    }
}

fn load_order(scan: &Scan<'_>, at: usize, quals: &[&str]) -> Parsed<LoadOrder> {
    match quals {
        ["weak"] => Ok(LoadOrder::Weak),
        ["relaxed", scope] => Ok(LoadOrder::Relaxed(scope_word(scan, at, scope)?)),
        ["acquire", scope] => Ok(LoadOrder::Acquire(scope_word(scan, at, scope)?)),
        _ => Err(scan.error_at(at, "expected `.weak`, `.relaxed.SCOPE` or `.acquire.SCOPE`".into(), None)),
    }
}

fn store_order(scan: &Scan<'_>, at: usize, quals: &[&str]) -> Parsed<StoreOrder> {
    match quals {
        ["weak"] => Ok(StoreOrder::Weak),
        ["relaxed", scope] => Ok(StoreOrder::Relaxed(scope_word(scan, at, scope)?)),
        ["release", scope] => Ok(StoreOrder::Release(scope_word(scan, at, scope)?)),
        _ => Err(scan.error_at(at, "expected `.weak`, `.relaxed.SCOPE` or `.release.SCOPE`".into(), None)),
    }
}

fn address(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<Address> {
    let bracket = scan.take("[");
    let name = scan.name("a location")?;
    if bracket {
        scan.expect("]")?;
    }
    let symbol = location(scan, builder, name)?;
    Ok(Address { base: Operand::Address(symbol), offset: 0 })
}

fn conditions(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    if scan.keyword("locations") {
        scan.expect("[")?;
        while !scan.take("]") {
            scan.name("a location")?;
            scan.take(";");
        }
    }
    if scan.keyword("filter") {
        builder.program.filter = Some(condition(scan, builder)?);
        scan.take(";");
    }
    let negated = scan.take("~") || scan.keyword("not");
    let quantifier = if scan.keyword("exists") {
        if negated { Quantifier::NotExists } else { Quantifier::Exists }
    } else if !negated && scan.keyword("forall") {
        Quantifier::ForAll
    } else {
        return Err(scan.expected("`exists`, `~exists` or `forall`"));
    };
    let expr = condition(scan, builder)?;
    if !scan.done() {
        return Err(scan.expected("the end of the text"));
    }
    builder.condition(scan, Condition { name: String::new(), quantifier, expr })
}

fn condition<'a>(scan: &mut Scan<'a>, builder: &mut Builder) -> Parsed<Expr> {
    expr(scan, &mut |scan: &mut Scan<'a>| term(scan, builder))
}

fn term(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<Term> {
    let bracket = scan.take("[");
    if !bracket && scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let start = scan.at;
        let value = constant(scan)?;
        if !scan.take(":") {
            return Ok(value);
        }
        scan.at = start;
        let number = scan.number()?;
        scan.expect(":")?;
        return register(scan, builder, &format!("P{number}"));
    }
    let name = scan.name("a location, a register or a number")?;
    if bracket {
        scan.expect("]")?;
    } else if scan.take(":") {
        return register(scan, builder, name);
    }
    let symbol = location(scan, builder, name)?;
    Ok(Term::Mem { symbol, offset: 0, bytes: 8, thread: None })
}

fn register(scan: &mut Scan<'_>, builder: &mut Builder, thread: &str) -> Parsed<Term> {
    let name = scan.name("a register")?;
    let Some(t) = builder.program.threads.iter().position(|t| t.name == thread) else {
        return Err(scan.error(format!("there is no thread `{thread}`"), None));
    };
    let found = &mut builder.program.threads[t];
    let known = found.regs.iter().position(|r| r.name == name);
    if known.is_none() && (found.regs.len() == REGISTERS || name == "_") {
        return Err(scan.error(format!("`{name}` is not a register of `{thread}`"), None));
    }
    let at = known.unwrap_or_else(|| {
        found.regs.push(RegDecl { name: name.to_owned(), init: RegInit::Value(0) });
        found.regs.len() - 1
    });
    Ok(Term::Reg(ThreadId::at(t), Reg::at(at)))
}

/// A number as the bit pattern of a 64-bit register.
pub(super) fn pattern(value: i128) -> Value {
    #[expect(clippy::cast_sign_loss, reason = "a bit pattern is wanted")]
    let bits = value as Value;
    bits & Value::from(u64::MAX)
}
