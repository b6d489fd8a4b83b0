//! Tile blocks and PTX threads in one program: both engines agree, PTX threads alone behave as under the PTX model, and
//! instructions of PTX threads without rules in the Tile IR model are abstained from by name.

use moire_cat::{Model, Variants};
use moire_execution::leaf::Outcome;
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::blocks::{beside, beside_with_alias};
use moire_generate::numbers::{Draw, seeded};
use moire_generate::{Profile, Stream};
use moire_lab::differential::campaign::{Campaign, random_settings};
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

fn model(name: &str, variants: &Variants) -> Model {
    moire_models::load(name, variants).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn engines_agree_on_mixed_programs() {
    let plain = model("tile-ir", &Variants::new());
    let mut settings = random_settings(&plain, 7, 8);
    settings.push(Variants::new());
    for (round, variants) in (0..).zip(settings) {
        let models = [model("tile-ir", &variants)];
        let (first_seed, count) = (1 + 10_000 * round, if variants.is_empty() { 300 } else { 40 });
        let campaign =
            Campaign { models: &models, first_seed, count, source: &seeded(beside), ..Campaign::default() };
        let totals = campaign.run(&|_| {});
        if let Some(f) = totals.failures.first() {
            panic!("{variants:?}, seed {}: {:#?}\n{}", f.seed, f.difference, print(&f.program));
        }
        assert!(totals.comparisons * 10 >= count * 8, "{:?}", totals.skipped);
    }
}

#[test]
fn printed_programs_parse_to_themselves() {
    for seed in 0..300 {
        let Some(program) = beside_with_alias(&mut Draw::new(seed)) else { continue };
        let text = print(&program);
        let read = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(read == program, "{text}\n{}", print(&read));
    }
}

fn outcomes(program: &Program, model: &Model) -> Result<BTreeSet<Outcome>, String> {
    let mut out = BTreeSet::new();
    let summary = explore(program, model, &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        out.extend(leaf.facts().outcomes);
        ControlFlow::Continue(())
    });
    summary.map(|_| out).map_err(|abstain| abstain.reason)
}

#[test]
fn ptx_threads_alone_behave_as_under_the_ptx_model() {
    let (tiles, ptx) = (model("tile-ir", &Variants::new()), model("ptx", &Variants::new()));
    let mut compared = 0;
    let stream = Stream::new(5, Profile::Core);
    for index in 0..400 {
        let program = stream.item(index);
        let (Ok(a), Ok(b)) = (outcomes(&program, &tiles), outcomes(&program, &ptx)) else { continue };
        let (more, less): (Vec<_>, Vec<_>) = (a.difference(&b).collect(), b.difference(&a).collect());
        let what = format!("{index}: more {more:?}, less {less:?}");
        assert!(more.is_empty() && less.is_empty(), "{what}\n{}", print(&program));
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn unsupported_instructions_are_abstained_from_by_name() {
    let tiles = model("tile-ir", &Variants::new());
    let tile = "B0 (gpu 0, cta 0) { tile.st.relaxed.gpu.u32 {[x], 1}; }";
    for (threads, says) in [
        (format!("{tile} P1 (gpu 0, cta 1) {{ st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; }}"), "fence.sc"),
        (format!("{tile} P1 (gpu 0, cta 1) {{ bar.sync 0; }}"), "bar"),
        (format!("{tile} P1 (gpu 0, cta 1) {{ st.volatile.u32 [x], 1; }}"), "volatile"),
        (format!("{tile} P1 (gpu 0, cta 0) {{ st.relaxed.gpu.u32 [x], 1; }}"), "in the CTA of a tile block"),
        (format!("{tile} P1 (gpu 0, cta 1) {{ st.relaxed.gpu.u32 [a], 1; }}"), "virtual aliases"),
        ("B0 (gpu 0, cta 0) { tile.ld.weak.u32 {[x] -> r}; st.weak.u32 [x], 1; }".to_owned(), "and of PTX"),
    ] {
        let alias = if threads.contains("[a]") { "\n.alias a = x;" } else { "" };
        let text = format!("moire \"t\"\n.global .b32 x;{alias}\n{threads}\n");
        let program = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let reason = outcomes(&program, &tiles).expect_err(&text);
        assert!(reason.contains(says), "{reason}\n{text}");
    }
}
