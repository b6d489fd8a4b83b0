//! Findings in the words of the reader: what each instruction does there, and to which memory.

use moire_execution::leaf::{Finding, Place};
use moire_program::ir::*;
use moire_program::text::instruction;
use moire_program::{barrier_op, fence_op, jump_op, register_op};
use std::collections::BTreeSet;

/// ``generic write against async-proxy read of `a` ``. None if the finding names no instructions, or a line has several.
pub(crate) fn accesses(program: &Program, finding: &Finding) -> Option<String> {
    let ops: Vec<(&Thread, &Op)> = finding.places.iter().map(|p| op(program, p)).collect::<Option<_>>()?;
    let (first, last) = (ops.first()?, ops.last()?);
    let common: BTreeSet<ObjectId> =
        objects(program, first.1).intersection(&objects(program, last.1)).copied().collect();
    let mut all: Vec<String> = ops.iter().map(|(t, op)| access(program, t, op, &common)).collect();
    // A proxy tells something only beside another one.
    if all.iter().all(|a| a.starts_with(GENERIC)) {
        all.iter_mut().for_each(|a| drop(a.drain(..GENERIC.len())));
    }
    let named = common.iter().next().map(|o| program.objects[o.index()].name.as_str());
    let of = named.map_or(String::new(), |name| format!(" of `{name}`"));
    Some(format!("{}{of}", all.join(" against ")))
}

const GENERIC: &str = "generic ";

/// The one instruction of a place.
fn op<'p>(program: &'p Program, place: &Place) -> Option<(&'p Thread, &'p Op)> {
    let thread = program.threads.get(usize::from(place.thread))?;
    let mut here = thread.body.iter().filter(|i| i.line == place.line);
    let first = here.next()?;
    // Copies of one line, as unrolled loops have them, do the same.
    let alike = here.all(|i| std::mem::discriminant(&i.op) == std::mem::discriminant(&first.op));
    alike.then_some((thread, &first.op))
}

/// The memory that an instruction names, or that registers with an address lead to.
fn objects(program: &Program, op: &Op) -> BTreeSet<ObjectId> {
    let of = |o: Operand| match o {
        Operand::Address(symbol) => program.symbols.get(symbol.index()).map(|s| s.object),
        _ => None,
    };
    Parts::sources(op).into_iter().filter_map(of).collect()
}

fn proxy(proxy: Proxy) -> &'static str {
    match proxy {
        Proxy::Generic => "generic",
        Proxy::Texture => "texture",
        Proxy::Surface => "surface",
        Proxy::Constant => "constant-bank",
        Proxy::Async => "async-proxy",
        Proxy::Tensormap => "tensormap-proxy",
    }
}

/// What an instruction does to the memory that it has in common with another one.
fn access(program: &Program, thread: &Thread, op: &Op, common: &BTreeSet<ObjectId>) -> String {
    let via = |own: Proxy| {
        let named = Parts::sources(op).into_iter().find_map(|o| match o {
            Operand::Address(s) => program.symbols.get(s.index()).map(|s| s.proxy),
            _ => None,
        });
        proxy(named.filter(|p| *p != Proxy::Generic).unwrap_or(own))
    };
    let has = |addr: &Address| match addr.base {
        Operand::Address(s) => program.symbols.get(s.index()).is_some_and(|s| common.contains(&s.object)),
        _ => false,
    };
    let end = |end: &BulkEnd| match end {
        BulkEnd::Bytes { addr, .. } => has(addr),
        BulkEnd::Tensor(tensor) => tensor.tile.is_some_and(|t| has(&t.addr)),
    };
    let name = || {
        let text = instruction(program, thread, &Instr::new(op.clone()));
        let name = text.split_whitespace().next().unwrap_or_default();
        name.split('.').take(2).collect::<Vec<_>>().join(".")
    };
    match op {
        Op::Load { proxy, .. } => format!("{} read", via(*proxy)),
        Op::Store { proxy, .. } => format!("{} write", via(*proxy)),
        Op::Rmw { red, .. } => if *red { "reduction" } else { "atomic" }.to_owned(),
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) if end(&copy.dst) => "async-proxy write".to_owned(),
        Op::AsyncCopy(AsyncCopy::Bulk(copy)) if end(&copy.src) => "async-proxy read".to_owned(),
        Op::AsyncCopy(AsyncCopy::Bulk(_)) => "async-proxy copy".to_owned(),
        Op::AsyncCopy(AsyncCopy::Small(copy)) => {
            if has(&copy.src) { "cp.async read" } else { "cp.async write" }.to_owned()
        }
        Op::AsyncCopy(AsyncCopy::Remote(_)) => "asynchronous remote write".to_owned(),
        Op::Wgmma(Wgmma::Product(_)) => "wgmma read".to_owned(),
        Op::Tcgen05(Tcgen05::Load(_)) => "tcgen05.ld".to_owned(),
        Op::Tcgen05(Tcgen05::Store(_)) => "tcgen05.st".to_owned(),
        Op::Tcgen05(op) => op.name().to_owned(),
        // The name as the text has it.
        Op::MultimemLoad { .. }
        | Op::MultimemStore { .. }
        | Op::MultimemRed { .. }
        | Op::Mbarrier(_)
        | Op::Tile(_) => name(),
        Op::AsyncCopy(_) | Op::Wgmma(_) | Op::Control(_) | jump_op!() | register_op!() => name(),
        fence_op!() | barrier_op!() => name(),
        Op::Book(_) => name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_program::text::{Format, parse};

    #[test]
    fn accesses_are_named_by_proxy_direction_and_memory() {
        let text = "moire \"t\"\n.shared .b8 a[128];\n.shared .b64 b;\n.global .b8 g[128];\nP (gpu 0, cta 0) {\n  \
            st.weak.shared::cta.b32 [a], 1;\n  cp.async.bulk.global.shared::cta.bulk_group [g], [a], 128;\n  \
            cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [a], [g], 128, [b];\n}\n";
        let program = parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}"));
        let of = |lines: [u32; 2]| {
            let places = lines.map(|line| Place { thread: 0, line }).to_vec();
            accesses(&program, &Finding { flag: "uniform-race".into(), places }).unwrap_or_default()
        };
        assert_eq!(of([6, 7]), "generic write against async-proxy read of `a`");
        assert_eq!(of([6, 8]), "generic write against async-proxy write of `a`");
        assert_eq!(of([6, 6]), "write against write of `a`");
        assert_eq!(of([6, 99]), "");
    }
}
