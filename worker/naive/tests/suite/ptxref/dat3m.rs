//! Prints drawn programs in the Dat3M PTX dialect (grammar: section 3.1 of `litmus/FORMATS.md` in the outside suites).

use moire_program::ir::*;

/// One conjunct of an `exists`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// A register holds a number.
    Register(usize, Reg, i64),
    /// An object holds a number.
    Object(usize, i64),
}

/// Writes a program in the drawn subset, with a condition.
pub(crate) fn print(p: &Program, wanted: &[Wanted]) -> String {
    let mut out = format!("PTX {}\n{{\n", p.name);
    for (i, s) in p.symbols.iter().enumerate() {
        let object = &p.objects[s.object.index()];
        let home = &p.symbols[s.virt.index()].name;
        let owner = p.symbols.iter().find(|o| o.object == s.object).map_or("", |o| &o.name);
        match s.proxy {
            Proxy::Generic if i == s.virt.index() && *owner == s.name => {
                out += &format!("{}={};\n", s.name, object.init.get(0));
            }
            Proxy::Generic => out += &format!("{} @ generic aliases {owner};\n", s.name),
            proxy => out += &format!("{} @ {} aliases {home};\n", s.name, proxy_name(proxy)),
        }
    }
    out += "}\n";
    let columns: Vec<Vec<String>> = p.threads.iter().map(|t| column(p, t)).collect();
    let heads: Vec<String> =
        p.threads.iter().map(|t| format!("{}@cta {},gpu {}", t.name, t.place.cta, t.place.gpu)).collect();
    out += &format!("{} ;\n", heads.join(" | "));
    for row in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
        let cells: Vec<&str> = columns.iter().map(|c| c.get(row).map_or("", String::as_str)).collect();
        out += &format!("{} ;\n", cells.join(" | "));
    }
    let terms: Vec<String> = wanted
        .iter()
        .map(|w| match w {
            Wanted::Register(t, r, v) => format!("P{t}:{} == {v}", p.threads[*t].regs[r.index()].name),
            Wanted::Object(o, v) => format!("{} == {v}", p.objects[*o].name),
        })
        .collect();
    out + &format!("exists\n({})\n", terms.join(" /\\ "))
}

fn column(p: &Program, thread: &Thread) -> Vec<String> {
    let mut out = Vec::new();
    let reg = |r: Reg| thread.regs[r.index()].name.clone();
    let value = |o: Operand| match o {
        Operand::Reg(r) => reg(r),
        Operand::Imm(v) => v.to_string(),
        Operand::Address(s) => p.symbols[s.index()].name.clone(),
    };
    for at in 0..=thread.body.len() {
        if thread.labels.iter().any(|l| l.at == at) {
            out.push(format!("LC{at:02}:"));
        }
        let Some(instr) = thread.body.get(at) else { break };
        let place = |a: &Address| value(a.base);
        out.push(match &instr.op {
            Op::Load { order, proxy, dst, addr, .. } => {
                let name = match proxy {
                    Proxy::Texture => "tld",
                    Proxy::Surface => "suld",
                    Proxy::Constant => "cold",
                    _ => "ld",
                };
                let order = match order {
                    LoadOrder::Relaxed(s) => format!("relaxed.{}", scope(*s)),
                    LoadOrder::Acquire(s) => format!("acquire.{}", scope(*s)),
                    _ => "weak".into(),
                };
                format!("{name}.{order} {}, {}", reg(dst[0]), place(addr))
            }
            Op::Store { order, proxy, addr, src, .. } => {
                let name = if *proxy == Proxy::Surface { "sust" } else { "st" };
                let order = match order {
                    StoreOrder::Relaxed(s) => format!("relaxed.{}", scope(*s)),
                    StoreOrder::Release(s) => format!("release.{}", scope(*s)),
                    _ => "weak".into(),
                };
                format!("{name}.{order} {}, {}", place(addr), value(src[0]))
            }
            Op::Rmw { red, order, scope: s, proxy, op, dst, addr, a, b, .. } => {
                let order = match order {
                    RmwOrder::Relaxed => "relaxed",
                    RmwOrder::Acquire => "acquire",
                    RmwOrder::Release => "release",
                    RmwOrder::AcqRel | RmwOrder::SeqCst => "acq_rel",
                };
                let prefix = if *proxy == Proxy::Surface { "su" } else { "" };
                let kind = if *red { "red" } else { "atom" };
                let dst = dst.map_or(String::new(), |d| format!("{}, ", reg(d)));
                let b = b.map_or(String::new(), |b| format!(", {}", value(b)));
                let op = format!("{op:?}").to_lowercase();
                format!("{prefix}{kind}.{order}.{}.{op} {dst}{}, {}{b}", scope(*s), place(addr), value(*a))
            }
            Op::Fence { order, scope: s } => {
                format!("fence.{}.{}", if *order == FenceOrder::Sc { "sc" } else { "acq_rel" }, scope(*s))
            }
            Op::ProxyFence(kinds) => match kinds[0] {
                ProxyFence::Alias => "fence.proxy.alias".into(),
                ProxyFence::Of(proxy) => format!("fence.proxy.{}", proxy_name(proxy)),
            },
            Op::Bar { kind, instance, .. } => {
                let kind = if *kind == BarKind::Arrive { "arrive" } else { "sync" };
                format!("bar.cta.{kind} {}", instance.unwrap_or(0))
            }
            Op::Alu { op, dst, a, b, .. } => {
                format!("{} {}, {}, {}", format!("{op:?}").to_lowercase(), reg(*dst), value(*a), value(*b))
            }
            Op::Setp { op, a, b, .. } => {
                let Some(Op::Bra { target }) = thread.body.get(at + 1).map(|i| &i.op) else { continue };
                format!("b{} {}, {}, LC{target:02}", format!("{op:?}").to_lowercase(), value(*a), value(*b))
            }
            _ => continue,
        });
    }
    out
}

fn scope(s: Scope) -> &'static str {
    match s {
        Scope::Cta => "cta",
        Scope::Cluster => "cluster",
        Scope::Gpu => "gpu",
        Scope::Sys => "sys",
    }
}

fn proxy_name(p: Proxy) -> &'static str {
    match p {
        Proxy::Texture => "texture",
        Proxy::Surface => "surface",
        Proxy::Constant => "constant",
        _ => "generic",
    }
}
