//! The dialect of NVlabs/mixedproxy: declarations, `dN.bN.tN { .. }` blocks and named commands.
//!
//! `permit(c)` and `check(c)` ask whether some execution satisfies c, `assert(c)` whether all do. `== k` after a read
//! restricts the executions for every command: it becomes part of the filter.

use super::ParseError;
use super::build::{Builder, ThreadBuilder, constant, expr};
use super::scan::{Comments, Parsed, Scan};
use crate::ir::*;
use crate::limits::EXPRESSION_NODES;

const TY: Ty = Ty::S(64);

/// Reads one file.
pub fn parse(source: &str) -> Result<Program, ParseError> {
    let mut scan = Scan::new(source, Comments::C);
    let mut builder = Builder::new("mixedproxy");
    let mut wanted = Vec::new();
    while scan.peek(".") {
        declaration(&mut scan, &mut builder)?;
    }
    while scan.rest().starts_with('d') {
        let thread = thread(&mut scan, &mut builder, &mut wanted)?;
        builder.thread(&mut scan, thread)?;
    }
    if builder.program.threads.is_empty() {
        return Err(scan.expected("a thread such as `d0.b0.t0 { .. }`"));
    }
    if wanted.len() > EXPRESSION_NODES {
        return Err(scan.error(format!("at most {EXPRESSION_NODES} reads may have `== VALUE`"), None));
    }
    if !wanted.is_empty() {
        let exprs: Vec<Expr> =
            wanted.into_iter().map(|(t, r, v)| Expr::Cmp(CmpOp::Eq, Term::Reg(t, r), v)).collect();
        builder.program.filter = Some(if exprs.len() == 1 {
            exprs.into_iter().next().unwrap_or(Expr::Bool(true))
        } else {
            Expr::And(exprs)
        });
    }
    while !scan.done() {
        command(&mut scan, &mut builder)?;
    }
    Ok(builder.separated())
}

fn declaration(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    scan.expect(".")?;
    let kind = scan.word("global, shared, texref or surfref", "")?;
    let proxy = match kind {
        "global" | "shared" => Proxy::Generic,
        "texref" => Proxy::Texture,
        "surfref" => Proxy::Surface,
        "constref" => Proxy::Constant,
        _ => {
            return Err(scan.error(
                format!("`.{kind}` is not a known declaration"),
                Some("use .global, .shared, .texref or .surfref".into()),
            ));
        }
    };
    let name = scan.name("a name")?.to_owned();
    if scan.keyword("physically") || scan.keyword("virtually") {
        if !scan.keyword("aliases") {
            return Err(scan.expected("`aliases`"));
        }
        let target = scan.name("a name")?.to_owned();
        let Some(of) = builder.symbol(&target) else {
            return Err(scan.error(format!("`{target}` is not declared before this"), None));
        };
        builder.alias(scan, &name, of, proxy)?;
    } else {
        if builder.symbol(&name).is_some() {
            return Err(scan.error(format!("`{name}` is declared twice"), None));
        }
        // The dialect has no copies per CTA: every name is one location.
        builder.object(scan, &name, Space::Global, 8, Content::default())?;
    }
    scan.expect(";")
}

type Wanted = (ThreadId, Reg, Term);

fn thread(scan: &mut Scan<'_>, builder: &mut Builder, wanted: &mut Vec<Wanted>) -> Parsed<Thread> {
    let name = scan.word("a thread such as `d0.b0.t0`", ".")?.to_owned();
    let numbers: Vec<Option<u16>> = name
        .split('.')
        .zip(["d", "b", "t"])
        .map(|(part, letter)| part.strip_prefix(letter)?.parse().ok())
        .collect();
    let [Some(gpu), Some(cta), Some(_)] = numbers[..] else {
        return Err(scan.error(format!("`{name}` is not of the form `dN.bN.tN`"), None));
    };
    let id = ThreadId::at(builder.program.threads.len());
    let mut thread =
        ThreadBuilder::new(&name.replace('.', "_"), Placement { gpu, cta, ..Placement::default() });
    scan.expect("{")?;
    while !scan.take("}") {
        instruction(scan, builder, &mut thread, id, wanted)?;
    }
    thread.finish(scan.source)
}

fn scope(word: &str) -> Option<Scope> {
    Some(match word {
        "cta" => Scope::Cta,
        "cluster" => Scope::Cluster,
        "gpu" => Scope::Gpu,
        "sys" => Scope::Sys,
        _ => return None,
    })
}

fn instruction(
    scan: &mut Scan<'_>,
    builder: &mut Builder,
    thread: &mut ThreadBuilder,
    id: ThreadId,
    wanted: &mut Vec<Wanted>,
) -> Parsed<()> {
    let spot = scan.spot();
    let at = scan.at;
    let word = scan.word("an instruction", ".")?;
    let parts: Vec<&str> = word.split('.').collect();
    let mnemonic = Mnemonic { word, at, scope: parts.iter().find_map(|p| scope(p)) };
    if parts[0] == "fence" {
        let op = fence(&parts).ok_or_else(|| mnemonic.error(scan, "not a fence of this dialect"))?;
        thread.push(scan, spot, None, op)?;
        return scan.expect(";");
    }
    let (stem, proxy) = match parts[0] {
        "ld" | "st" | "atom" | "red" => (parts[0], Proxy::Generic),
        "tld" => ("ld", Proxy::Texture),
        "ldc" => ("ld", Proxy::Constant),
        "suld" => ("ld", Proxy::Surface),
        "sust" => ("st", Proxy::Surface),
        "suatom" => ("atom", Proxy::Surface),
        "sured" => ("red", Proxy::Surface),
        _ => return Err(mnemonic.error(scan, "not an instruction of this dialect")),
    };
    let sem = parts[1..].iter().copied().find(|p| scope(p).is_none() && *p != "add").unwrap_or("weak");
    let space = Space::Generic;
    let op = match stem {
        "ld" => {
            let order = mnemonic.load_order(scan, sem)?;
            let dst = register(scan, thread)?;
            scan.expect(",")?;
            let addr = address(scan, builder)?;
            want(scan, id, dst, wanted)?;
            Op::Load { order, proxy, space, ty: TY, dst: vec![dst], addr }
        }
        "st" => {
            let order = mnemonic.store_order(scan, sem)?;
            let addr = address(scan, builder)?;
            scan.expect(",")?;
            let src = vec![value(scan, thread)?];
            Op::Store { order, proxy, space, ty: TY, addr, src }
        }
        _ => {
            let order = mnemonic.rmw_order(scan, sem)?;
            let red = stem == "red";
            let dst = if red { None } else { Some(register(scan, thread)?) };
            if dst.is_some() {
                scan.expect(",")?;
            }
            let addr = address(scan, builder)?;
            scan.expect(",")?;
            let a = value(scan, thread)?;
            if let Some(dst) = dst {
                want(scan, id, dst, wanted)?;
            }
            let scope = mnemonic.scope(scan)?;
            Op::Rmw { red, order, scope, proxy, space, op: AtomOp::Add, ty: Ty::U(64), dst, addr, a, b: None }
        }
    };
    thread.push(scan, spot, None, op)?;
    scan.expect(";")
}

/// The first word of an instruction, its offset, and the scope it names.
struct Mnemonic<'a> {
    word: &'a str,
    at: usize,
    scope: Option<Scope>,
}

impl Mnemonic<'_> {
    fn error(&self, scan: &Scan<'_>, what: &str) -> ParseError {
        scan.error_at(self.at, format!("`{}`: {what}", self.word), None)
    }

    fn scope(&self, scan: &Scan<'_>) -> Parsed<Scope> {
        self.scope.ok_or_else(|| self.error(scan, "this order needs a scope: cta, gpu or sys"))
    }

    fn load_order(&self, scan: &Scan<'_>, sem: &str) -> Parsed<LoadOrder> {
        Ok(match sem {
            "weak" => LoadOrder::Weak,
            "volatile" => LoadOrder::Volatile,
            "relaxed" => LoadOrder::Relaxed(self.scope(scan)?),
            "acquire" => LoadOrder::Acquire(self.scope(scan)?),
            _ => return Err(self.error(scan, "not an order of a load")),
        })
    }

    fn store_order(&self, scan: &Scan<'_>, sem: &str) -> Parsed<StoreOrder> {
        Ok(match sem {
            "weak" => StoreOrder::Weak,
            "volatile" => StoreOrder::Volatile,
            "relaxed" => StoreOrder::Relaxed(self.scope(scan)?),
            "release" => StoreOrder::Release(self.scope(scan)?),
            _ => return Err(self.error(scan, "not an order of a store")),
        })
    }

    fn rmw_order(&self, scan: &Scan<'_>, sem: &str) -> Parsed<RmwOrder> {
        Ok(match sem {
            "relaxed" => RmwOrder::Relaxed,
            "acquire" => RmwOrder::Acquire,
            "release" => RmwOrder::Release,
            "acq_rel" => RmwOrder::AcqRel,
            _ => return Err(self.error(scan, "not an order of atom or red")),
        })
    }
}

fn fence(parts: &[&str]) -> Option<Op> {
    match parts {
        ["fence", "alias"] => Some(Op::ProxyFence(vec![ProxyFence::Alias])),
        ["fence", "proxy", names @ ..] if !names.is_empty() => {
            let kind = |name: &&str| match *name {
                "alias" => Some(ProxyFence::Alias),
                "texture" => Some(ProxyFence::Of(Proxy::Texture)),
                "surface" => Some(ProxyFence::Of(Proxy::Surface)),
                "constant" => Some(ProxyFence::Of(Proxy::Constant)),
                _ => None,
            };
            names.iter().map(kind).collect::<Option<Vec<_>>>().map(Op::ProxyFence)
        }
        ["fence", order, at] => {
            let order = match *order {
                "sc" => FenceOrder::Sc,
                "acq_rel" => FenceOrder::AcqRel,
                _ => return None,
            };
            Some(Op::Fence { order, scope: scope(at)? })
        }
        _ => None,
    }
}

fn want(scan: &mut Scan<'_>, id: ThreadId, dst: Reg, wanted: &mut Vec<Wanted>) -> Parsed<()> {
    if scan.take("==") {
        wanted.push((id, dst, constant(scan)?));
    }
    Ok(())
}

fn register(scan: &mut Scan<'_>, thread: &mut ThreadBuilder) -> Parsed<Reg> {
    let name = scan.name("a register")?.to_owned();
    thread.reg(scan, &name)
}

fn value(scan: &mut Scan<'_>, thread: &mut ThreadBuilder) -> Parsed<Operand> {
    if scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return Ok(Operand::Imm(scan.number()?));
    }
    Ok(Operand::Reg(register(scan, thread)?))
}

fn address(scan: &mut Scan<'_>, builder: &Builder) -> Parsed<Address> {
    scan.expect("[")?;
    let name = scan.name("a name")?.to_owned();
    scan.expect("]")?;
    let Some(symbol) = builder.symbol(&name) else {
        return Err(scan.error(format!("`{name}` is not declared"), Some("declare it with `.global`".into())));
    };
    Ok(Address { base: Operand::Address(symbol), offset: 0 })
}

fn command(scan: &mut Scan<'_>, builder: &mut Builder) -> Parsed<()> {
    let quantifier = match scan.word("permit, check or assert", "")? {
        "permit" | "check" => Quantifier::Exists,
        "assert" => Quantifier::ForAll,
        other => {
            return Err(
                scan.error(format!("`{other}` is not a command; expected permit, check or assert"), None)
            );
        }
    };
    let asked = expr(scan, &mut |scan: &mut Scan<'_>| term(scan, builder))?;
    if !scan.keyword("as") {
        return Err(scan.expected("`as` and a name"));
    }
    let name = scan.name("a name")?.to_owned();
    scan.expect(";")?;
    builder.condition(scan, Condition { name, quantifier, expr: asked })
}

/// A number, a register (names are global in this dialect), or memory.
fn term(scan: &mut Scan<'_>, builder: &Builder) -> Parsed<Term> {
    if scan.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return constant(scan);
    }
    let bracket = scan.take("[");
    let name = scan.name("a register, a name or a number")?.to_owned();
    if bracket {
        scan.expect("]")?;
    }
    for (t, thread) in builder.program.threads.iter().enumerate() {
        if let Some(r) = thread.regs.iter().position(|r| r.name == name) {
            return Ok(Term::Reg(ThreadId::at(t), Reg::at(r)));
        }
    }
    match builder.symbol(&name) {
        Some(symbol) => Ok(Term::Mem { symbol, offset: 0, bytes: 8, thread: None }),
        None => Err(scan.error(format!("`{name}` is neither a register nor a name"), None)),
    }
}
