//! The pinned stream: its programs are valid texts, it has the shares that are asked of it, and it has not changed.

use std::collections::BTreeSet;

use moire_generate::shapes::{Shapes, skeletons};
use moire_generate::{GENERATOR_FINGERPRINT, Knobs, Profile, Stream, program};
use moire_program::canon::canonical;
use moire_program::features::features;
use moire_program::features::{Histogram, estimate_candidates};
use moire_program::text::{Format, parse, print};

#[test]
fn every_program_prints_and_parses_back() {
    for profile in Profile::PTX {
        let stream = Stream::new(7, profile);
        // A kernel is run ahead first.
        let count = if profile == Profile::Kernel { 200 } else { 1500 };
        for index in 0..count {
            let program = stream.item(index);
            let text = print(&program);
            let again = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(again, program, "{text}");
        }
    }
}

#[test]
fn the_core_stream_has_the_shares_a_differential_run_needs() {
    let stream = Stream::new(1, Profile::Core);
    let mut histogram = Histogram::default();
    let mut ids = BTreeSet::new();
    let mut small = 0;
    let total = 6000;
    for index in 0..total {
        let program = stream.item(index);
        if ids.insert(canonical(&program).id) {
            histogram.add(&features(&program));
            small += usize::from(estimate_candidates(&program) <= 20_000);
        }
    }
    println!("{histogram}distinct {} small {small}", ids.len());
    assert!(ids.len() * 100 >= total as usize * 90, "{} distinct", ids.len());
    assert!(small * 100 >= ids.len() * 95, "{small} small enough");
    for (name, least) in [
        ("6 or more memory events", 60.0),
        ("rmw", 25.0),
        ("dependency", 25.0),
        ("load-buffering cycle", 20.0),
        ("await", 15.0),
    ] {
        assert!(histogram.percent(name) >= least, "{name}: {histogram}");
    }
}

/// A change of the stream must change `GENERATOR_FINGERPRINT`: update both lines together.
#[test]
fn the_streams_have_not_changed() {
    let mut hasher = blake3::Hasher::new();
    for profile in Profile::PTX {
        for index in 0..if profile == Profile::Kernel { 50 } else { 200 } {
            hasher.update(print(&Stream::new(42, profile).item(index)).as_bytes());
        }
    }
    let hash = hasher.finalize().to_hex();
    assert_eq!((GENERATOR_FINGERPRINT, &hash.as_str()[..16]), ("ptx-10", "8782eb079d50c5fb"));
}

#[test]
fn empty_input_gives_a_program() {
    let mut u = arbitrary::Unstructured::new(&[]);
    assert!(!program(&mut u, &Knobs::default()).expect("choices are total").threads.is_empty());
}

#[test]
fn skeletons_are_the_known_families() {
    // Two threads, two locations: MP, SB, LB, S, R, 2+2W; two threads, one location: the coherence shapes.
    let two = skeletons(2);
    let moves =
        two.iter().filter(|s| !format!("{s:?}").contains("true") && !format!("{s:?}").contains("One"));
    assert_eq!(moves.count(), 6, "{two:?}");
    assert!(skeletons(3).len() > two.len() * 5);
}

#[test]
fn shapes_by_index_are_distinct_programs() {
    let shapes = Shapes::new(2);
    let step = shapes.len() / 500;
    let texts: BTreeSet<String> = (0..500).map(|n| print(&shapes.get(n * step).expect("in range"))).collect();
    assert!(texts.len() > 490, "{}", texts.len());
    assert!(shapes.get(shapes.len()).is_none());
}
