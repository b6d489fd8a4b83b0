//! The model of source programs: published verdicts, and both witnesses against each other.
//!
//! A program has lines `// expect: MODEL WORD`. `holds`: the condition of the program holds; `fails`: it does not;
//! `undefined`: the program has a race.

use moire_cat::{Model, Variants};
use moire_explore::judge::{Verdict, flag_verdict};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::source::source_seed;
use moire_lab::differential::{Comparison, compare};
use moire_naive::NaiveLimits;
use moire_program::ir::Quantifier;
use moire_program::text::expectations;
use moire_source::Source;
use moire_source::lower::lower;
use moire_source::text::{parse, print};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

fn model(spec: &str) -> Model {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let setting = |word: &str| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
    let variants: Variants = rest.split(',').filter_map(setting).collect();
    moire_models::load(name, &variants).unwrap_or_else(|e| panic!("{e}"))
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/source/litmus");
    let entries = std::fs::read_dir(folder).expect("the programs are there");
    let mut all: Vec<PathBuf> = entries.map(|e| e.expect("readable").path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "src"));
    all.sort();
    all
}

fn read(path: &Path) -> Source {
    let text = std::fs::read_to_string(path).expect("readable");
    parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The word of a program under a model, and whether any execution satisfies the expression of its condition.
fn verdict(source: &Source, model: &Model) -> &'static str {
    let lowered = lower(source).expect("can be lowered");
    let (program, mut racy) = (&lowered.program, false);
    let condition = program.conditions.first().expect("each program has a condition");
    let (mut some, mut all) = (false, true);
    let summary = explore(program, model, &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        let mut own = 0;
        for state in leaf.states() {
            if lowered.state(source, &state.regs, &state.memory).is_some() {
                own += 1;
                let satisfied = state.satisfies(program, &condition.expr);
                some |= satisfied;
                all &= satisfied;
            }
        }
        racy |= own > 0 && leaf.flags().iter().any(|f| flag_verdict(f) == Verdict::Undefined);
        ControlFlow::Continue(())
    });
    assert_eq!(summary.expect("is explored").bounded, None);
    let holds = match condition.quantifier {
        Quantifier::Exists => some,
        Quantifier::NotExists => !some,
        Quantifier::ForAll => all,
    };
    if racy {
        "undefined"
    } else if holds {
        "holds"
    } else {
        "fails"
    }
}

#[test]
fn published_verdicts() {
    let mut wrong = Vec::new();
    let mut asked = 0;
    for path in files() {
        let source = read(&path);
        let text = std::fs::read_to_string(&path).expect("readable");
        for line in expectations(&text) {
            let (spec, word) = line.split_once(' ').expect("MODEL WORD");
            asked += 1;
            let is = verdict(&source, &model(spec));
            if is != word {
                wrong.push(format!("{} {spec}: {is}, expected {word}", source.name));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(asked > 75, "{asked} verdicts");
}

/// The enumerator knows nothing of how the explorer treats accesses of order seq_cst, and the other way round.
#[test]
fn both_witnesses_agree_on_source_programs() {
    let models: Vec<Model> =
        ["rc11-scoped", "rc11-scoped:U2=B", "rc11-scoped:U3=B"].into_iter().map(model).collect();
    let limits = NaiveLimits { candidates: 30_000, ..NaiveLimits::default() };
    let drawn = (0..160).map(|index| source_seed(11, index));
    let all: Vec<Source> = files().iter().map(|p| read(p)).chain(drawn).collect();
    let (mut agreed, mut skipped) = (0, 0);
    for source in &all {
        let lowered = lower(source).expect("can be lowered");
        for model in &models {
            match compare(&lowered.program, model, &limits) {
                Comparison::Same { .. } => agreed += 1,
                Comparison::Skipped(_) => skipped += 1,
                Comparison::Different(why) => panic!("{}\n{}\n{why:?}", model.name(), print(source)),
            }
        }
    }
    assert!(skipped * 3 < agreed, "{skipped} skipped, {agreed} agreed");
}

#[test]
fn other_models_abstain_from_seq_cst_accesses() {
    let text = "source \"t\"\n.global .b32 x;\nP0 { store.seq_cst.gpu x, 1; }\nexists ([x] == 1)\n";
    let lowered = lower(&parse(text).expect("reads")).expect("can be lowered");
    for name in moire_models::names().filter(|n| *n != "rc11-scoped") {
        let abstained =
            explore(&lowered.program, &model(name), &[], &Limits::default(), &mut |_: &mut dyn LeafView| {
                ControlFlow::Continue(())
            });
        let why = abstained.expect_err(name).reason;
        assert!(why.contains("seq_cst") || why.contains("volatile"), "{name}: {why}");
    }
}
