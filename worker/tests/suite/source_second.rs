//! The judgement of compiled programs, made again with the enumerator: on drawn programs, with each compiler that is here.
//!
//! `MOIRE_SELF_CHECK=N` compares N programs a compiler, from seed `MOIRE_SELF_CHECK_SEED`, instead of a sample.

use crate::outside::skipped;
use moire_cat::{Model, Variants};
use moire_execution::leaf::observed_registers;
use moire_explore::judge::{Verdict, flag_verdict};
use moire_generate::source::source_seed;
use moire_kernel::ptx;
use moire_kernel::specialise::entry;
use moire_naive::{NaiveLimits, leaves};
use moire_program::ir::{Content, Op, Operand, Program, Value};
use moire_source::Source;
use moire_source::compiled::{Compiled, assemble};
use moire_source::form::settled;
use moire_source::lower::{Lowered, lower};
use moire_source::state::State;
use moire_source::text::print;
use moire_toolchain::source::batch::{Threads, compile};
use moire_toolchain::source::{Compiler, Kind, Table};
use moire_worker::job::{Cancel, Engine, Item, Plan};
use moire_worker::oracle::Oracles;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What the enumerator finds of a program.
struct Seen {
    states: BTreeSet<State>,
    undefined: bool,
    race: bool,
}

fn limits() -> NaiveLimits {
    NaiveLimits { candidates: 200_000, ..NaiveLimits::default() }
}

/// All executions of a program; `state` says of the registers and the memory at an end which state it is.
fn seen(
    program: &Program,
    model: &Model,
    state: &dyn Fn(&[Vec<Value>], &[Content]) -> Option<State>,
) -> Option<Seen> {
    let observed = observed_registers(program);
    let (all, _) = leaves(program, model, &limits()).ok()?;
    let mut out = Seen { states: BTreeSet::new(), undefined: false, race: false };
    for facts in all.values() {
        let ends: Vec<State> = facts
            .outcomes
            .iter()
            .filter_map(|outcome| {
                let mut registers: Vec<Vec<Value>> =
                    program.threads.iter().map(|t| vec![0; t.regs.len()]).collect();
                for ((thread, register), value) in observed.iter().zip(&outcome.regs) {
                    registers[thread.index()][register.index()] = *value;
                }
                state(&registers, &outcome.memory)
            })
            .collect();
        if !ends.is_empty() {
            out.undefined |= facts.flags.iter().any(|f| flag_verdict(f) == Verdict::Undefined);
            out.race |= facts.flags.iter().any(|f| flag_verdict(f) == Verdict::Race);
        }
        out.states.extend(ends);
    }
    Some(out)
}

/// The registers at an end, with what choices move into the registers of the source.
fn moved(lowered: &Lowered, registers: &[Vec<Value>]) -> Vec<Vec<Value>> {
    let mut all = registers.to_vec();
    for choice in &lowered.choices {
        let body = &lowered.program.threads[choice.thread.index()].body;
        let own = &mut all[choice.thread.index()];
        for instr in body {
            if let Op::Mov { dst, src: Operand::Reg(src), .. } = instr.op
                && src == choice.read
                && own[src.index()] != choice.unread
            {
                own[dst.index()] = own[src.index()];
            }
        }
    }
    all
}

/// The word of the verdict on a program and its PTX; none where one of them is too large.
fn word(source: &Source, texts: &Threads, models: &(Model, Model)) -> Option<&'static str> {
    let lowered = lower(source).ok()?;
    let meant = seen(&lowered.program, &models.0, &|registers, memory| {
        lowered.state(source, &moved(&lowered, registers), memory)
    })?;
    if meant.undefined {
        return Some("racy");
    }
    let modules = texts.iter().map(|text| ptx::parse(text)).collect::<Result<Vec<_>, _>>().ok()?;
    let kernels = modules.iter().map(|module| entry(module, None)).collect::<Result<Vec<_>, _>>().ok()?;
    let compiled: Compiled = assemble(source, &kernels).ok()?;
    let done = seen(&compiled.program, &models.1, &|_, memory| Some(compiled.state(memory)))?;
    Some(if !done.states.is_subset(&meant.states) {
        "discrepancy"
    } else if done.undefined {
        "undefined"
    } else if done.race {
        "race"
    } else {
        "clean"
    })
}

/// The words of the oracle and of the enumerator on drawn programs, with how often each pair was seen; a pair that differs comes
/// with its first program.
fn compared(compiler: &Compiler, count: u64, seed: u64) -> BTreeMap<String, u64> {
    let models = (
        moire_models::load("rc11-scoped", &Variants::new()).expect("a model"),
        moire_models::load("ptx", &Variants::from([("Q2".to_owned(), "A".to_owned())])).expect("a model"),
    );
    let options = compiler.usual();
    let mut table = Table::open(compiler, &options, moire_toolchain::source::folder().as_deref());
    let oracles = Oracles::with_source_compilers(std::slice::from_ref(compiler));
    let name = compiler.kind().name();
    let spec = format!("{name}:release={}", compiler.release());
    let plan = Arc::new(Plan { oracles: vec![name.to_owned()], models: vec![spec], ..Plan::default() });
    let mut found = BTreeMap::new();
    let drawn: Vec<Source> = (0..count).map(|i| source_seed(seed, i)).collect();
    let all = settled(&drawn, &mut |forms| table.refused(forms, &|| {}));
    let parts: Vec<&Source> = all.iter().collect();
    for (source, texts) in all.iter().zip(compile(compiler, &parts, &options, 64, &|| {})) {
        let Ok(texts) = texts else { continue };
        let origin = moire_worker::job::Source::Text(print(source));
        let item = Item { plan: Arc::clone(&plan), index: 0, source: origin };
        let report = oracles.run(&item, &Cancel::new());
        let (Some(engine), Some(second)) = (report.engines.first(), word(source, &texts, &models)) else {
            *found.entry("not compared".to_owned()).or_default() += 1;
            continue;
        };
        // A load of an arm that is made early races, and is no mistake.
        let text = print(source);
        let early = ("clean", "race") == (&*engine.verdict, second) && text.contains("if ");
        let key = match () {
            () if engine.verdict == second => second.to_owned(),
            () if early => "early".to_owned(),
            () => format!("{} {second}: {text}", engine.verdict),
        };
        *found.entry(key).or_default() += 1;
    }
    found
}

#[test]
fn the_enumerator_judges_compiled_programs_alike() {
    let count = number("MOIRE_SELF_CHECK").unwrap_or(24);
    let seed = number("MOIRE_SELF_CHECK_SEED").unwrap_or(3);
    let here: Vec<Compiler> = Kind::ALL.into_iter().flat_map(Compiler::all).collect();
    if here.is_empty() {
        skipped("llc or nvcc");
    }
    for compiler in here {
        let found = compared(&compiler, count, seed);
        eprintln!("{} {}: {found:?}", compiler.kind().name(), compiler.release());
        let differs: Vec<&String> = found.keys().filter(|key| key.contains(':')).collect();
        assert!(differs.is_empty(), "{differs:#?}");
        assert!(found.keys().any(|key| key == "clean"), "{found:?}");
    }
}
