//! Lints about memory: scopes that include no other thread, addresses outside their object, multimem names, proxies
//! without a fence, fences with nothing to order.

use super::access::{Access, next, reach, reach_back};
use super::report::Report;
use crate::ir::*;

pub(super) fn check(report: &mut Report<'_>, accesses: &[Access]) {
    let program = report.program;
    for access in accesses {
        narrow_access(report, accesses, access);
        address(report, access);
        let thread = &program.threads[access.thread];
        let named = access.symbol(program).map(|s| !s.multimem.is_empty());
        if named.is_some_and(|multimem| multimem != access.multimem) {
            let what = if access.multimem {
                "this name is no multimem address"
            } else {
                "only multimem instructions may use a multimem address"
            };
            report.at("multimem-address", thread, &thread.body[access.at], what, None);
        }
    }
    for (t, thread) in program.threads.iter().enumerate() {
        for (at, instr) in thread.body.iter().enumerate() {
            if let Op::Fence { order, scope } = instr.op {
                narrow_fence(report, t, instr, scope);
                idle_fence(report, thread, at, order);
            }
        }
    }
    unfenced(report, accesses);
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => ".cta",
        Scope::Cluster => ".cluster",
        Scope::Gpu => ".gpu",
        Scope::Sys => ".sys",
    }
}

/// A hint with the narrowest scope at `from` that includes one of `others`.
fn enough(from: &Placement, others: &[&Thread]) -> Option<String> {
    let all = [Scope::Cta, Scope::Cluster, Scope::Gpu, Scope::Sys];
    let (scope, name) = all
        .iter()
        .find_map(|s| others.iter().find(|o| from.includes(*s, &o.place)).map(|o| (*s, &o.name)))?;
    Some(format!("{} reaches {name}", scope_name(scope)))
}

fn narrow_access(report: &mut Report<'_>, accesses: &[Access], access: &Access) {
    let program = report.program;
    let (Some(scope), Some(touched)) = (access.scope, access.objects(program)) else { return };
    let global = touched.iter().all(|o| program.objects[o.index()].space == Space::Global);
    let shares = |other: &&Access| {
        other.thread != access.thread
            && (access.writes || other.writes)
            && other.objects(program).is_none_or(|o| o.iter().any(|o| touched.contains(o)))
    };
    let others: Vec<&Thread> = accesses.iter().filter(shares).map(|a| &program.threads[a.thread]).collect();
    let thread = &program.threads[access.thread];
    let reached = others.iter().any(|o| thread.place.includes(scope, &o.place));
    if global && !others.is_empty() && !reached {
        let what = format!("{} includes no other thread that accesses this memory", scope_name(scope));
        let hint = enough(&thread.place, &others);
        report.at("narrow-scope", thread, &thread.body[access.at], &what, hint);
    }
}

fn narrow_fence(report: &mut Report<'_>, t: usize, instr: &Instr, scope: Scope) {
    let program = report.program;
    let thread = &program.threads[t];
    let others: Vec<&Thread> =
        program.threads.iter().enumerate().filter(|(o, _)| *o != t).map(|(_, o)| o).collect();
    if !others.is_empty() && !others.iter().any(|o| thread.place.includes(scope, &o.place)) {
        let what = format!("{} includes no other thread of this program", scope_name(scope));
        report.at("narrow-scope", thread, instr, &what, enough(&thread.place, &others));
    }
}

fn address(report: &mut Report<'_>, access: &Access) {
    let program = report.program;
    let Some((symbol, offset)) = access.place else { return };
    let object = &program.objects[program.symbols[symbol.index()].object.index()];
    let thread = &program.threads[access.thread];
    let instr = &thread.body[access.at];
    let bytes = i64::from(access.bytes);
    if offset < 0 || offset + bytes > i64::from(object.bytes) {
        let end = offset + bytes - 1;
        let what = format!("bytes {offset} to {end} of an object with {} bytes", object.bytes);
        report.at("static-address", thread, instr, &what, None);
    } else if bytes > 0 && offset % bytes != 0 {
        let what = format!("offset {offset} is not a multiple of {bytes}");
        report.at("static-address", thread, instr, &what, Some("accesses are aligned to their size".into()));
    }
}

/// Finds a fence without a memory access or a barrier on a side that it orders.
fn idle_fence(report: &mut Report<'_>, thread: &Thread, at: usize, order: FenceOrder) {
    let orders =
        |i: &Instr| i.op.place().is_some() || i.op.extended().is_some() || matches!(i.op, barrier_op!());
    let any = |seen: &[bool]| thread.body.iter().zip(seen).any(|(i, s)| *s && orders(i));
    let after = any(&reach(thread, &next(thread, at), None));
    let before = any(&reach_back(thread, at));
    let idle = if order == FenceOrder::Sc { !before && !after } else { !before || !after };
    if idle {
        let what = if before { "nothing to order after it" } else { "nothing to order before it" };
        report.at("idle-fence", thread, &thread.body[at], what, None);
    }
}

/// Finds objects that are accessed through two virtual addresses or proxies without a fence between the two.
fn unfenced(report: &mut Report<'_>, accesses: &[Access]) {
    let program = report.program;
    let fences: Vec<ProxyFence> = program
        .threads
        .iter()
        .flat_map(|t| &t.body)
        .filter_map(|i| if let Op::ProxyFence(kinds) = &i.op { Some(kinds.clone()) } else { None })
        .flatten()
        .collect();
    for (o, object) in program.objects.iter().enumerate() {
        let here: Vec<&Access> = accesses
            .iter()
            .filter(|a| a.objects(program).is_some_and(|all| all.iter().any(|x| x.index() == o)))
            .collect();
        let Some(first) = here.first() else { continue };
        if !here.iter().any(|a| a.writes) {
            continue;
        }
        let virt = |a: &Access| a.symbol(program).map(|s| s.virt);
        let lacking = here.iter().find(|a| {
            let alias = virt(a) != virt(first) && !fences.contains(&ProxyFence::Alias);
            let proxy = a.proxy != first.proxy
                && !fences
                    .iter()
                    .any(|f| matches!(f, ProxyFence::Of(p) if *p == a.proxy || *p == first.proxy));
            alias || proxy
        });
        if let Some(access) = lacking {
            let thread = &program.threads[access.thread];
            let what = format!("another name or proxy of `{}` without a proxy fence for it", object.name);
            let hint = Some("fence.proxy.alias, or the fence of the proxy".to_owned());
            report.at("unfenced-proxies", thread, &thread.body[access.at], &what, hint);
        }
    }
}
