//! Compares explorer and naive enumerator on drawn programs, under all shipped models and default and random switch
//! settings.
//!
//! `MOIRE_SELF_CHECK=N` compares N programs for each model, from seed `MOIRE_SELF_CHECK_SEED`, instead of a sample.
//! `MOIRE_SELF_CHECK_MODELS=a,b` chooses models. Differences are shrunk and printed.

use moire_cat::{Model, Variants};
use moire_execution::leaf::LeafKind;
use moire_explore::planted::Planted;
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::core::{Style, wide};
use moire_generate::numbers::{Draw, seeded};
use moire_generate::tensor::{allocation, cells, copies, lanes, mbarrier, warps};
use moire_generate::{Profile, Stream};
use moire_lab::differential::campaign::{Campaign, Totals, random_settings};
use moire_lab::differential::grow::grow;
use moire_lab::differential::{Comparison, compare_planted, difference};
use moire_naive::leaves as naive_leaves;
use moire_naive::{NaiveLimits, weigh};
use moire_program::ir::*;
use moire_program::text::{Format, parse};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn core(index: u64) -> Program {
    Stream::new(1, Profile::Core).item(index)
}

fn model(name: &str, variants: &Variants) -> Model {
    moire_models::load(name, variants).expect("shipped models load")
}

fn report(what: &str, totals: &Totals) {
    eprintln!(
        "{what}: {} programs, {} comparisons, {} executions, {} candidates, next seed {}\n{}skipped {:?}",
        totals.programs,
        totals.comparisons,
        totals.leaves,
        totals.candidates,
        totals.next_seed,
        totals.histogram(),
        totals.skipped
    );
    for f in &totals.failures {
        eprintln!("seed {} model {}: {}\n{:#?}", f.seed, f.model, f.difference.kind(), f.difference);
        eprintln!("{}", print(&f.program));
    }
}

fn print(p: &Program) -> String {
    let mut out = format!(
        "{:?}\n",
        p.symbols.iter().map(|s| (&s.name, s.object.0, s.virt.0, s.proxy)).collect::<Vec<_>>()
    );
    for t in &p.threads {
        out += &format!("{} {:?}\n", t.name, t.place);
        for i in &t.body {
            out += &format!("    {:?} {:?}\n", i.guard, i.op);
        }
    }
    out
}

#[test]
fn engines_agree() {
    let names =
        std::env::var("MOIRE_SELF_CHECK_MODELS").unwrap_or_else(|_| "any,sc,ptx-6.0,ptx-7.5,ptx".into());
    let models: Vec<Model> = names.split(',').map(|n| model(n, &Variants::new())).collect();
    let (sc, ptx) = (model("sc", &Variants::new()), model("ptx", &Variants::new()));
    let count = number("MOIRE_SELF_CHECK").unwrap_or(250);
    let first_seed = number("MOIRE_SELF_CHECK_SEED").unwrap_or(1);
    let campaign =
        Campaign { models: &models, yardstick: Some((&sc, &ptx)), first_seed, count, ..Campaign::default() };
    let totals = campaign.run(&|t| report("so far", t));
    report("self check", &totals);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    if count >= 250 {
        for (name, have, least) in totals.shares() {
            assert!(
                100 * have >= least * totals.programs,
                "only {have} of {} programs: {name}",
                totals.programs
            );
        }
    }
}

/// Programs with more accesses than in the other tests, compared with the enumerator that prunes.
#[test]
fn engines_agree_on_larger_programs() {
    let models = ["sc", "ptx"].map(|n| model(n, &Variants::new()));
    let limits = NaiveLimits {
        candidates: 200_000,
        pruned: true,
        judged: 3_000,
        leaves: 1_000,
        ..Campaign::default().limits
    };
    let campaign = Campaign {
        models: &models,
        first_seed: number("MOIRE_SELF_CHECK_SEED").unwrap_or(1),
        count: number("MOIRE_SELF_CHECK").unwrap_or(100).div_ceil(4),
        limits,
        least: 4_000,
        source: &|seed| Some(grow(core(seed), seed)),
        ..Campaign::default()
    };
    let totals = campaign.run(&|t| report("so far", t));
    report("larger programs", &totals);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    assert!(totals.candidates >= 4_000 * totals.comparisons, "{} are few", totals.candidates);
}

/// Adds a thread that writes to its own location so often that a set of events takes several machine words.
fn widened(program: &Program) -> Program {
    let mut wide = program.clone();
    let number = |n: usize| u16::try_from(n).expect("small");
    let (object, symbol) = (number(wide.objects.len()), number(wide.symbols.len()));
    let name = "wide".to_owned();
    wide.objects.push(Object {
        name: name.clone(),
        space: Space::Global,
        bytes: 4,
        init: Content::default(),
    });
    let (object, virt, proxy) = (ObjectId(object), SymbolId(symbol), Proxy::Generic);
    wide.symbols.push(Symbol { name: name.clone(), object, virt, proxy, multimem: Vec::new() });
    let store = Op::Store {
        order: StoreOrder::Weak,
        proxy,
        space: Space::Global,
        ty: Ty::U(32),
        addr: Address { base: Operand::Address(virt), offset: 0 },
        src: vec![Operand::Imm(1)],
    };
    let place = Placement { gpu: 9, cluster: 9, cta: 9, ..Placement::default() };
    let body = vec![Instr::new(store); 70];
    wide.threads.push(Thread { name, place, regs: Vec::new(), labels: Vec::new(), body });
    wide
}

/// An independent thread changes the width of all rows, but no answer.
#[test]
fn wide_graphs_have_as_many_executions() {
    let models = ["sc", "ptx"].map(|n| model(n, &Variants::new()));
    let tally = |program: &Program, model: &Model| {
        let mut out = BTreeMap::new();
        let limits = Limits { leaves: 100, ..Limits::default() };
        let done = explore(program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
            *out.entry((leaf.kind() == LeafKind::Blocked, leaf.flags().clone())).or_insert(0u32) += 1;
            ControlFlow::Continue(())
        });
        done.ok().filter(|s| s.bounded.is_none()).map(|_| out)
    };
    let mut compared = 0;
    for (seed, model) in (0..50).flat_map(|seed| models.iter().map(move |model| (seed, model))) {
        let program = core(seed);
        let Some(narrow) = tally(&program, model) else { continue };
        assert_eq!(tally(&widened(&program), model), Some(narrow), "seed {seed}, {}", model.name());
        compared += 1;
    }
    assert!(compared > 40, "only {compared} programs were small enough");
}

#[test]
fn engines_agree_under_switches() {
    let plain = model("ptx", &Variants::new());
    let rounds = number("MOIRE_SELF_CHECK").unwrap_or(250).div_ceil(25);
    let rounds = usize::try_from(rounds).unwrap_or(usize::MAX);
    let settings = random_settings(&plain, number("MOIRE_SELF_CHECK_SEED").unwrap_or(7), rounds);
    for (round, variants) in (0..).zip(&settings) {
        let models = [model("ptx", variants)];
        let campaign = Campaign {
            models: &models,
            first_seed: 1_000_000 + 1_000 * round,
            count: 25,
            ..Campaign::default()
        };
        let totals = campaign.run(&|_| {});
        let setting = models[0].variants().iter().map(|(k, v)| format!("{k}={v} ")).collect::<String>();
        if !totals.failures.is_empty() {
            report(&setting, &totals);
        }
        assert!(totals.failures.is_empty(), "the engines differ under {setting}");
    }
}

/// The enumerator finds the same leaves with pruning and without.
#[test]
fn pruning_loses_nothing() {
    let (mut compared, mut saved, mut judged, mut alike) = (0, 0, (0, 0), 0);
    for name in ["any", "sc", "ptx-6.0", "ptx"] {
        let model = model(name, &Variants::new());
        for seed in 0..number("MOIRE_SELF_CHECK").unwrap_or(300) {
            let program = core(seed);
            let all = NaiveLimits { candidates: 1_000, ..NaiveLimits::default() };
            let pruned = NaiveLimits { pruned: true, ..all };
            let Ok((plain, counted)) = naive_leaves(&program, &model, &all) else { continue };
            let (other, summary) = naive_leaves(&program, &model, &pruned).expect("it does less");
            assert!(plain == other, "seed {seed}, {name}: pruning changes the leaves");
            // With pruning, orders of writes are tried for the remaining candidates only.
            assert!(summary.candidates <= counted.candidates, "seed {seed}, {name}");
            let weight = weigh(&program, &model, &pruned).expect("it does less still");
            assert!(weight <= summary.candidates, "seed {seed}, {name}: {weight} of {}", summary.candidates);
            alike += u64::from(weight == summary.candidates);
            compared += 1;
            saved += counted.candidates - summary.candidates;
            judged = (judged.0 + counted.candidates, judged.1 + summary.judged);
        }
    }
    eprintln!(
        "{compared} comparisons, {saved} orders not tried, {judged:?} candidates, judged, {alike} with one order"
    );
    // In the other programs the candidates exceed the weight, by the number of orders of writes: cycles often write a location
    // twice.
    assert!(4 * alike > compared, "{alike} of {compared}");
    assert!(
        compared > 500 || number("MOIRE_SELF_CHECK").is_some(),
        "only {compared} programs were small enough"
    );
}

/// Programs with mbarriers, under every shipped PTX model and under both readings of mixed scopes (Q8).
#[test]
fn engines_agree_on_mbarriers() {
    let mut models: Vec<Model> =
        ["any", "sc", "ptx-6.0", "ptx-7.5", "ptx"].map(|n| model(n, &Variants::new())).to_vec();
    models.push(model("ptx", &Variants::from([("Q8".to_owned(), "A".to_owned())])));
    let campaign = Campaign {
        models: &models,
        first_seed: number("MOIRE_SELF_CHECK_SEED").unwrap_or(1),
        count: number("MOIRE_SELF_CHECK").unwrap_or(400),
        source: &seeded(mbarrier),
        ..Campaign::default()
    };
    let totals = campaign.run(&|t| report("so far", t));
    report("mbarriers", &totals);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    let skipped: u64 = totals.skipped.values().sum();
    assert!(2 * totals.programs > skipped, "the enumerator skips too much: {skipped} programs");
}

/// Programs with tcgen05, each under the default and under a random setting. Each is also compared with itself, threads
/// reversed and renamed, and with the answer of the operational engine.
#[test]
fn engines_agree_on_tcgen05_under_random_switches() {
    let plain = model("ptx", &Variants::new());
    let settings = random_settings(&plain, number("MOIRE_SELF_CHECK_SEED").unwrap_or(1), 16);
    let settings: Vec<Model> = settings.iter().map(|v| model("ptx", v)).collect();
    let campaign = Campaign {
        models: &[plain],
        settings: &settings,
        turned: true,
        operated: true,
        first_seed: number("MOIRE_SELF_CHECK_SEED").unwrap_or(1),
        count: number("MOIRE_SELF_CHECK").unwrap_or(500),
        source: &|index| Some(Stream::new(1, Profile::Tensor).item(index)),
        ..Campaign::default()
    };
    let totals = campaign.run(&|t| report("so far", t));
    report("tcgen05", &totals);
    assert!(5 * totals.operated > totals.programs, "the operational engine decides {}", totals.operated);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    let skipped: u64 = totals.skipped.values().sum();
    assert!(2 * totals.programs > skipped, "the enumerator skips too much: {skipped} programs");
}

/// Programs whose threads stand for several lanes of a warp.
#[test]
fn engines_agree_on_lanes() {
    let models = ["any", "ptx"].map(|n| model(n, &Variants::new()));
    let campaign = Campaign {
        models: &models,
        first_seed: number("MOIRE_SELF_CHECK_SEED").unwrap_or(1),
        count: number("MOIRE_SELF_CHECK").unwrap_or(400),
        source: &seeded(lanes),
        ..Campaign::default()
    };
    let totals = campaign.run(&|t| report("so far", t));
    report("lanes", &totals);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    let skipped: u64 = totals.skipped.values().sum();
    assert!(2 * totals.programs > skipped, "the enumerator skips too much: {skipped} programs");
}

/// Programs whose threads are the lanes of a warp, each for itself.
#[test]
fn engines_agree_on_lanes_taken_literally() {
    let models = [model("ptx", &Variants::new())];
    let campaign = Campaign {
        models: &models,
        first_seed: number("MOIRE_SELF_CHECK_SEED").unwrap_or(1),
        count: number("MOIRE_SELF_CHECK").unwrap_or(300),
        source: &seeded(warps),
        ..Campaign::default()
    };
    let totals = campaign.run(&|t| report("so far", t));
    report("literal lanes", &totals);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    let skipped: u64 = totals.skipped.values().sum();
    assert!(2 * totals.programs > skipped, "the enumerator skips too much: {skipped} programs");
}

/// Programs of tcgen05 instructions, under default switches and with each switch of tcgen05 flipped.
#[test]
fn engines_agree_on_tensor_memory() {
    let plain = model("ptx", &Variants::new());
    let names = plain.switches().iter().map(|s| s.name.clone()).filter(|name| name.starts_with("TQ"));
    let flipped: Vec<Model> =
        names.map(|name| model("ptx", &Variants::from([(name, "B".to_owned())]))).collect();
    assert!(flipped.len() > 5);
    let models: Vec<Model> = std::iter::once(plain).chain(flipped).collect();
    let campaign = Campaign {
        models: &models,
        first_seed: number("MOIRE_SELF_CHECK_SEED").unwrap_or(1),
        count: number("MOIRE_SELF_CHECK").unwrap_or(150),
        source: &seeded(cells),
        ..Campaign::default()
    };
    let totals = campaign.run(&|t| report("so far", t));
    report("tensor memory", &totals);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    let skipped: u64 = totals.skipped.values().sum();
    assert!(2 * totals.programs > skipped, "the enumerator skips too much: {skipped} programs");
}

/// Programs of asynchronous copies, under default switches and with each switch flipped that concerns them.
#[test]
fn engines_agree_on_copies() {
    let settings =
        ["Q4=A", "Q4=C", "Q9=A", "Q11=B", "Q13=B", "TQ17=B", "TQ17=C", "TQ17=D", "TQ27=B", "TQ31=B"];
    let flipped = settings.iter().filter_map(|s| s.split_once('='));
    let flipped = flipped.map(|(k, v)| model("ptx", &Variants::from([(k.to_owned(), v.to_owned())])));
    let models: Vec<Model> = std::iter::once(model("ptx", &Variants::new())).chain(flipped).collect();
    let campaign = Campaign {
        models: &models,
        first_seed: number("MOIRE_SELF_CHECK_SEED").unwrap_or(1),
        count: number("MOIRE_SELF_CHECK").unwrap_or(120),
        source: &seeded(copies),
        ..Campaign::default()
    };
    let totals = campaign.run(&|t| report("so far", t));
    report("copies", &totals);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    let skipped: u64 = totals.skipped.values().sum();
    assert!(totals.comparisons > skipped, "the enumerator skips too much: {skipped} programs");
}

/// Programs that allocate tensor memory, in one CTA and in pairs, under default switches and with each switch flipped
/// that concerns them.
#[test]
fn engines_agree_on_allocation() {
    let switched = ["TQ2=C", "TQ6=B", "TQ7=B", "TQ18=B", "TQ18=C", "TQ19=B", "TQ23=B", "TQ26=B"];
    let one = |setting: &&str| {
        let (name, value) = setting.split_once('=').expect("a setting");
        model("ptx", &Variants::from([(name.to_owned(), value.to_owned())]))
    };
    let models: Vec<Model> =
        std::iter::once(model("ptx", &Variants::new())).chain(switched.iter().map(one)).collect();
    let campaign = Campaign {
        models: &models,
        first_seed: number("MOIRE_SELF_CHECK_SEED").unwrap_or(1),
        count: number("MOIRE_SELF_CHECK").unwrap_or(150),
        source: &seeded(allocation),
        ..Campaign::default()
    };
    let totals = campaign.run(&|t| report("so far", t));
    report("allocation", &totals);
    assert!(totals.failures.is_empty(), "the engines differ on {} programs", totals.failures.len());
    let skipped: u64 = totals.skipped.values().sum();
    assert!(2 * totals.programs > skipped, "the enumerator skips too much: {skipped} programs");
}

/// A planted bug makes the explorer grant every allocation as soon as it fits. The comparison finds it.
#[test]
fn the_bug_planted_in_allocation_is_found() {
    let ptx = model("ptx", &Variants::new());
    let limits = NaiveLimits { candidates: 2_000, ..NaiveLimits::default() };
    let noticed = (0..300).filter_map(seeded(allocation)).any(|program| {
        let found = compare_planted(&program, &ptx, &limits, Some(Planted::FirstCome));
        matches!(found, Comparison::Different(_))
    });
    assert!(noticed);
}

/// Every planted bug is found within 3,000 programs.
#[test]
fn planted_bugs_are_found() {
    let models = [model("ptx", &Variants::new()), model("any", &Variants::new())];
    let limits = NaiveLimits { candidates: 2_000, ..NaiveLimits::default() };
    let mut left: BTreeSet<Planted> = Planted::ALL.into_iter().collect();
    for seed in 0..3_000 {
        let style = if seed % 2 == 0 { Style::Wide } else { Style::Dat3m };
        let program = wide(&mut Draw::new(500_000 + seed), style);
        left.retain(|bug| {
            let noticed = |m: &Model| {
                matches!(compare_planted(&program, m, &limits, Some(*bug)), Comparison::Different(_))
            };
            let found = models.iter().any(noticed);
            if found {
                eprintln!("{bug:?} noticed after {} programs", seed + 1);
            }
            !found
        });
        if left.is_empty() {
            return;
        }
    }
    panic!("not noticed: {left:?}");
}

/// Each reading of what lanes do to each other changes the executions of some drawn warp, so comparing under it means something.
#[test]
fn readings_of_lanes_change_drawn_warps() {
    let limits = NaiveLimits { candidates: 1_000, ..NaiveLimits::default() };
    let letter = model("ptx", &Variants::new());
    for switch in ["EX", "WL", "RV"] {
        let reading = model("ptx", &Variants::from([(switch.to_owned(), "B".to_owned())]));
        let leaves = |p: &Program, m: &Model| naive_leaves(p, m, &limits).ok().map(|(leaves, _)| leaves);
        let told = |seed: &u64| {
            let Some(program) = warps(&mut Draw::new(*seed)) else { return false };
            let both = leaves(&program, &letter).zip(leaves(&program, &reading));
            both.is_some_and(|(a, b)| difference(&a, &b).is_some())
        };
        let seed = (0..2_000).find(told);
        eprintln!("{switch}: seed {seed:?}");
        assert!(seed.is_some(), "no drawn warp depends on {switch}");
    }
}

/// Every bug planted in what lanes do together is found within a thousand warps.
#[test]
fn bugs_planted_among_lanes_are_found() {
    let letter = model("ptx", &Variants::new());
    let limits = NaiveLimits { candidates: 2_000, ..NaiveLimits::default() };
    let mut left: BTreeSet<Planted> = Planted::LANES.into_iter().collect();
    for seed in 0..1_000 {
        let Some(program) = warps(&mut Draw::new(seed)) else { continue };
        left.retain(|bug| {
            let found = compare_planted(&program, &letter, &limits, Some(*bug));
            !matches!(found, Comparison::Different(_))
        });
        if left.is_empty() {
            return;
        }
    }
    panic!("not noticed: {left:?}");
}

/// Side conditions of pruning, each with the smallest program that needs it: an exchange may write before its read has
/// a source; an initial write may be the source of read-modify-writes of different bytes; a thread that waits for a value may
/// arrive at a barrier behind it.
#[test]
fn bugs_planted_in_pruning_are_found() {
    let programs = [
        (
            Planted::HalfWaits,
            "any",
            "moire \"swap\"\n.global .b32 x;\n\
             P0 (gpu 0, cta 0) { red.relaxed.gpu.xor.b32 [x], 1; }\n\
             P1 (gpu 0, cta 1) { atom.relaxed.gpu.exch.b32 r, [x], 1; }\n",
        ),
        (
            Planted::SharesAnywhere,
            "tile-ir",
            "moire \"halves\"\n.global .b64 x;\n\
             B0 (gpu 0, cta 0) {\n  .reg r0, t1, r3, t7;\n\
             tile.atom.relaxed.cta.max.u32 {[x+4] -> r0, 1} gives t1;\n\
             tile.atom.acq_rel.cta.exch.u32 {[x] -> r3, 1} after t1 gives t7;\n}\n",
        ),
        (
            Planted::LostArrivesNot,
            "any",
            "moire \"late\"\n.global .b32 x;\n\
             P0 (gpu 0, cta 0, warp 0) { bar.sync 0, 2; }\n\
             P1 (gpu 0, cta 0, warp 1) { ld.relaxed.gpu.u32 r, [x]; setp.ne.u32 p, r, 0; @p bra END; bar.sync 0, 2; END: }\n\
             P2 (gpu 0, cta 0, warp 2) { bar.sync 0, 2; }\n",
        ),
    ];
    for (bug, name, text) in programs {
        let (program, model) =
            (parse(text, Format::Native).unwrap_or_else(|e| panic!("{e}")), model(name, &Variants::new()));
        let with = |bug| compare_planted(&program, &model, &NaiveLimits::default(), bug);
        assert!(matches!(with(None), Comparison::Same { .. }), "{bug:?}");
        assert!(matches!(with(Some(bug)), Comparison::Different(_)), "{bug:?}");
    }
}

/// The bug planted in mbarriers is found on programs with mbarriers.
#[test]
fn the_bug_planted_in_mbarriers_is_found() {
    let any = model("any", &Variants::new());
    let limits = NaiveLimits { candidates: 2_000, ..NaiveLimits::default() };
    let noticed = (0..300).filter_map(seeded(mbarrier)).any(|program| {
        let found = compare_planted(&program, &any, &limits, Some(Planted::FirstPlace));
        matches!(found, Comparison::Different(_))
    });
    assert!(noticed);
}

/// A program without the dependencies that are none does the same: where the model asks for none, it ends in the same states.
#[test]
fn dependencies_that_are_none_change_nothing_else() {
    let sc = model("sc", &Variants::new());
    let limits = Limits { leaves: 500, checks: 5_000, ..Limits::default() };
    let outcomes = |program: &Program| {
        let mut all = BTreeSet::new();
        let summary = explore(program, &sc, &[], &limits, &mut |leaf: &mut dyn LeafView| {
            let facts = leaf.facts();
            all.insert((facts.kind, facts.outcomes, facts.flags));
            ControlFlow::Continue(())
        });
        summary.ok().filter(|s| s.bounded.is_none()).map(|_| all)
    };
    let mut changed = 0;
    for (seed, profile) in [(1, Profile::Core), (2, Profile::Tensor), (3, Profile::Mixed)] {
        for index in 0..150 {
            let program = Stream::new(seed, profile).item(index);
            let plain = moire_execution::plain(&program);
            changed += u32::from(*plain != program);
            // Without a dependency a loop may end sooner, so one of the two may be cut.
            if let (Some(before), Some(after)) = (outcomes(&program), outcomes(&plain)) {
                assert_eq!(before, after, "{seed} {index}\n{}", moire_program::text::print(&program));
            }
        }
    }
    assert!(changed > 25, "only {changed} of 450 programs have such dependencies");
}
