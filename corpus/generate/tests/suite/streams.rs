//! The registry of streams: names, and what drawers draw. Few of their programs are refused; few synchronise nothing; few repeat.

use moire_generate::core::{alike, multimem, typed};
use moire_generate::numbers::{Choose, seeded};
use moire_generate::{Profile, Stream, synchronises, tensor};
use moire_program::canon::canonical;
use moire_program::ir::Program;
use moire_program::text::Severity;
use moire_program::validate::validate;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn a_wrong_name_names_the_nearest() {
    for profile in Profile::ALL {
        assert_eq!(profile.name().parse(), Ok(profile));
    }
    let said = |name: &str| name.parse::<Profile>().expect_err(name).to_string();
    assert!(said("tensr").contains("did you mean `tensor`?"), "{}", said("tensr"));
    assert!(!said("nothing like it").contains("did you mean"), "{}", said("nothing like it"));
    assert!(Profile::ALL.iter().all(|profile| said("x").contains(profile.name())));
}

/// What is told of a drawer.
type Named = (&'static str, fn(&mut dyn Choose) -> Option<Program>);

#[test]
fn few_drawn_programs_are_refused() {
    let drawers: [Named; 16] = [
        ("alike", alike),
        ("multimem", multimem),
        ("typed", typed),
        ("kept", tensor::kept),
        ("allocation", tensor::allocation),
        ("boxes", tensor::boxes),
        ("cells", tensor::cells),
        ("copies", tensor::copies),
        ("counting", tensor::counting),
        ("launches", tensor::launches),
        ("matrices", tensor::matrices),
        ("mbarrier", tensor::mbarrier),
        ("meetings", tensor::meetings),
        ("moves", tensor::moves),
        ("products", tensor::products),
        ("warps", tensor::warps),
    ];
    let mut few = Vec::new();
    for (name, draw) in drawers {
        let mut kept = 0;
        let mut refused: BTreeMap<String, u32> = BTreeMap::new();
        for seed in 0..300 {
            let Some(program) = seeded(draw)(seed) else {
                *refused.entry("no text".to_owned()).or_default() += 1;
                continue;
            };
            let errors = validate(&program).into_iter().filter(|d| d.severity == Severity::Error);
            let rules: BTreeSet<String> = errors.map(|d| d.message).collect();
            kept += u32::from(rules.is_empty());
            for rule in rules {
                *refused.entry(rule).or_default() += 1;
            }
        }
        println!("{name}: {kept} of 300, {refused:?}");
        few.extend((kept < 200).then_some((name, kept)));
    }
    assert!(few.is_empty(), "kept of 300: {few:?}");
}

#[test]
fn few_programs_synchronise_nothing_and_few_repeat() {
    for profile in Profile::ALL {
        let (mut idle, mut known) = (0, BTreeSet::new());
        for index in 0..600 {
            let program = Stream::new(31, profile).item(index);
            idle += u32::from(!synchronises(&program));
            known.insert(canonical(&program).id);
        }
        println!("{profile}: {idle} synchronise nothing, {} differ", known.len());
        assert!(idle < 30, "{profile}: {idle} of 600");
        assert!(known.len() > 540, "{profile}: {} of 600", known.len());
    }
}
