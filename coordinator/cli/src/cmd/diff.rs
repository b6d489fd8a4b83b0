//! `moire models diff A B`: the least program on which two models allow different outcomes.
//!
//! Contract: all programs over each of a few instruction alphabets are tried by size (threads, memory events,
//! instructions); within the first size that differs the least canonical text wins. Without a difference the bound
//! is the answer, and the exit code says that it is incomplete.

use crate::args::DiffArgs;
use crate::exit;
use anyhow::{Result, anyhow};
use moire_cat::Model;
use moire_explore::explorer::LeafView;
use moire_explore::{Limits, Outcome, explore};
use moire_program::generate::exhaustive::{Alphabet, Bound, Near, programs, size};
use moire_program::ir::{
    AtomOp, FenceOrder, LoadOrder, Program, Proxy, ProxyFence, RmwOrder, Scope, StoreOrder,
};
use moire_program::text::print;
use moire_worker::oracle::Oracles;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Executions of one program; small programs have some dozens.
const LEAVES: u64 = 20_000;

/// The instruction alphabets, by name.
fn alphabets() -> Vec<(&'static str, Alphabet)> {
    let loads = vec![LoadOrder::Weak, LoadOrder::Relaxed(Scope::Gpu), LoadOrder::Acquire(Scope::Gpu)];
    let stores = vec![StoreOrder::Weak, StoreOrder::Relaxed(Scope::Gpu), StoreOrder::Release(Scope::Gpu)];
    let plain = Alphabet {
        loads: loads[1..2].to_vec(),
        stores: stores[1..2].to_vec(),
        places: vec![Near::Gpu],
        ..Alphabet::default()
    };
    let fences = vec![(FenceOrder::Sc, Scope::Gpu), (FenceOrder::AcqRel, Scope::Gpu)];
    let proxy = Alphabet {
        loads: vec![LoadOrder::Weak],
        stores: vec![StoreOrder::Weak],
        proxies: vec![Proxy::Generic, Proxy::Surface],
        proxy_fences: vec![ProxyFence::Alias, ProxyFence::Of(Proxy::Surface)],
        places: vec![Near::Cta],
        ..Alphabet::default()
    };
    let rmw = |op, red| (op, RmwOrder::Relaxed, Scope::Gpu, red);
    vec![
        ("orders", Alphabet { loads, stores, ..plain.clone() }),
        ("fences", Alphabet { fences, ..plain.clone() }),
        ("dependencies", Alphabet { data: true, ctrl: true, branches: true, ..plain.clone() }),
        (
            "atomics",
            Alphabet {
                rmws: vec![rmw(AtomOp::Exch, false), rmw(AtomOp::Cas, false), rmw(AtomOp::Add, true)],
                ..plain
            },
        ),
        ("proxies and barriers", Alphabet { barriers: true, ..proxy }),
    ]
}

/// What sets two answers apart: outcomes of the first only, of the second only.
fn differ(program: &Program, a: &Model, b: &Model) -> Option<(BTreeSet<Outcome>, BTreeSet<Outcome>)> {
    let (a, b) = (outcomes(program, a)?, outcomes(program, b)?);
    (a != b).then(|| (a.difference(&b).cloned().collect(), b.difference(&a).cloned().collect()))
}

fn outcomes(program: &Program, model: &Model) -> Option<BTreeSet<Outcome>> {
    let mut out = BTreeSet::new();
    let limits = Limits { leaves: LEAVES, ..Limits::default() };
    let summary = explore(program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        out.extend(leaf.facts().outcomes);
        ControlFlow::Continue(())
    });
    summary.is_ok_and(|s| s.bounded.is_none()).then_some(out)
}

/// The least difference, and programs tried.
fn least(a: &Model, b: &Model, args: &DiffArgs) -> (Option<Program>, u64, bool) {
    let mut best: Option<((usize, usize, usize), String, Program)> = None;
    let (mut tried, mut cut) = (0, false);
    for (_, alphabet) in alphabets() {
        let mut here = 0;
        let bound = Bound {
            threads: args.threads,
            memory_events: args.events,
            instructions: args.instructions,
            locations: 2,
            alphabet,
        };
        for program in programs(&bound) {
            let measure = size(&program);
            if best.as_ref().is_some_and(|(least, ..)| measure > *least) {
                break;
            }
            if here >= args.limit {
                cut = true;
                break;
            }
            here += 1;
            if differ(&program, a, b).is_none() {
                continue;
            }
            let text = print(&program);
            if best.as_ref().is_none_or(|(least, t, _)| (measure, &text) < (*least, t)) {
                best = Some((measure, text, program));
            }
        }
        tried += here;
    }
    (best.map(|b| b.2), tried, cut)
}

pub(crate) fn run(args: &DiffArgs) -> Result<u8> {
    let oracles = Oracles::new();
    let load = |spec: &str| oracles.model(spec).map_err(|e| anyhow!("{e}"));
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    let (found, tried, cut) = least(&a, &b, args);
    let names: Vec<&str> = alphabets().iter().map(|(name, _)| *name).collect();
    let bound = format!(
        "{tried} programs of up to {} threads, {} memory events, {} instructions over {}",
        args.threads,
        args.events,
        args.instructions,
        names.join("; ")
    );
    let Some(program) = found else {
        println!("{} and {} allow the same outcomes of all {bound}", args.a, args.b);
        if cut {
            println!("cut: an alphabet was left after {} programs (--limit)", args.limit);
        }
        return Ok(exit::INCOMPLETE);
    };
    println!(
        "least difference of {} and {}, after {tried} programs{}\n",
        args.a,
        args.b,
        if cut { " (cut by --limit)" } else { "" }
    );
    print!("{}", print(&program));
    if let Some((left, right)) = differ(&program, &a, &b) {
        println!("\noutcomes {} alone allows: {}", args.a, left.len());
        left.iter().for_each(|o| println!("  {}", shown(&program, o)));
        println!("outcomes {} alone allows: {}", args.b, right.len());
        right.iter().for_each(|o| println!("  {}", shown(&program, o)));
    }
    Ok(exit::FINDING)
}

/// Registers an observer sees, then memory.
fn shown(program: &Program, outcome: &Outcome) -> String {
    let registers = moire_explore::leaf::observed_registers(program);
    let register = |(t, r): &(moire_program::ir::ThreadId, moire_program::ir::Reg)| {
        let thread = &program.threads[t.index()];
        format!("{}:{}", thread.name, thread.regs[r.index()].name)
    };
    let mut words: Vec<String> =
        registers.iter().zip(&outcome.regs).map(|(r, value)| format!("{} = {value}", register(r))).collect();
    for (instance, bytes) in moire_explore::leaf::instances(program).iter().zip(&outcome.memory) {
        let value = moire_explore::leaf::assemble(&bytes[..bytes.len().min(16)]);
        words.push(format!("{} = {value}", program.objects[instance.object.index()].name));
    }
    words.join(", ")
}
