//! What holds of every drawn program.

use arbitrary::Unstructured;
use moire_source::canon::{canonical, text};
use moire_source::draw::{BYTES, draw};
use moire_source::form::{Forms, forms, settled};
use moire_source::lower::lower;
use moire_source::reduce::{smaller, weight};
use moire_source::text::{parse, print};
use moire_source::validate::faults;
use moire_source::{Source, Thread};
use proptest::prelude::*;

fn drawn(bytes: &[u8]) -> Source {
    draw(&mut Unstructured::new(bytes)).expect("bytes that run out give the least value")
}

fn programs() -> impl Strategy<Value = Source> {
    proptest::collection::vec(any::<u8>(), 0..BYTES).prop_map(|bytes| drawn(&bytes))
}

/// The program with its threads turned round and its places renumbered.
fn turned(source: &Source) -> Source {
    let mut out = Source { name: "other".into(), ..source.clone() };
    out.threads.reverse();
    let far = |t: &mut Thread| {
        t.place.gpu += 3;
        t.place.cluster += 5;
        t.place.cta += 7;
    };
    out.threads.iter_mut().for_each(far);
    out.objects.iter_mut().enumerate().for_each(|(n, o)| o.name = format!("other{n}"));
    out
}

proptest! {
    #[test]
    fn drawn_programs_are_valid_and_print_as_they_read(source in programs()) {
        prop_assert_eq!(faults(&source), []);
        let text = print(&source);
        prop_assert_eq!(parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}")), source);
    }

    #[test]
    fn the_canonical_form_knows_no_names_and_no_order_of_threads(source in programs()) {
        let form = text(&source);
        prop_assert_eq!(&text(&turned(&source)), &form);
        prop_assert_eq!(text(&canonical(&source)), form.clone());
        prop_assert_eq!(faults(&canonical(&source)), []);
    }

    #[test]
    fn smaller_programs_are_valid_and_smaller(source in programs()) {
        for next in smaller(&source) {
            prop_assert_eq!(faults(&next), []);
            prop_assert!(weight(&next) < weight(&source));
        }
    }

    /// Whatever a compiler refuses, but for the weakest accesses of the usual width, a program is found that it takes.
    #[test]
    fn settled_programs_have_no_form_that_is_refused(drawn in prop::collection::vec(programs(), 1..4), mask in any::<u64>()) {
        let bad = |name: &str| {
            let weakest = name.ends_with(".b32")
                && (name.contains(".plain") || ["load.relaxed", "store.relaxed", "add.relaxed", "cas.relaxed.relaxed"]
                    .iter().any(|w| name.contains(w)) || name.contains("exch.relaxed"));
            !weakest && name.bytes().fold(mask, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)) >> 62 != 0
        };
        let mut refused = |forms: &Forms| forms.keys().filter(|name| bad(name)).cloned().collect();
        for (one, drawn) in settled(&drawn, &mut refused).iter().zip(&drawn) {
            prop_assert_eq!(faults(one), []);
            prop_assert!(lower(one).is_ok());
            for name in forms(one).keys() {
                prop_assert!(!bad(name), "{name}");
            }
            // The others do not matter.
            prop_assert_eq!(std::slice::from_ref(one), settled(std::slice::from_ref(drawn), &mut refused));
        }
    }

    #[test]
    fn every_drawn_program_can_be_lowered(source in programs()) {
        let lowered = lower(&source).expect("drawn programs can be lowered");
        prop_assert_eq!(lowered.program.threads.len(), source.threads.len() + lowered.choices.len());
        prop_assert_eq!(&lowered.program.filter.is_some(), &!lowered.choices.is_empty());
    }
}

#[test]
fn draws_differ() {
    let bytes = |n: u8| {
        (0..=255u8).cycle().take(BYTES).map(move |i| i.wrapping_mul(37).wrapping_add(n.wrapping_mul(101)) ^ n)
    };
    let form = |n: u8| text(&drawn(&bytes(n).collect::<Vec<u8>>()));
    let forms: std::collections::BTreeSet<String> = (0..=255u8).map(form).collect();
    assert!(forms.len() > 100, "{}", forms.len());
}

#[test]
fn a_reduction_reaches_the_least_program_that_keeps_a_property() {
    let text = "source \"t\"\n.global .b64 x, y;\nP0 (gpu 1, cta 0) { store.seq_cst.sys x, 9; fence.seq_cst.sys; r0 = cas.release.acquire.cta y, 3, 4; if r0 == 1 { store.plain x, 2; } }\nP1 (gpu 0, cta 2) { r0 = load.acquire.gpu y; }\n";
    let mut best = parse(text).expect("reads");
    // The property: some compare-exchange fails with acquire.
    let keeps = |s: &Source| print(s).contains(".acquire.") && print(s).contains("cas.");
    while let Some(next) = smaller(&best).find(keeps) {
        best = next;
    }
    assert_eq!(
        print(&best),
        "source \"t\"\n.global .b32 y;\nP0 (gpu 0, cluster 0, cta 0) {\n  r0 = cas.relaxed.acquire.gpu y, 0, 0;\n}\n"
    );
}
