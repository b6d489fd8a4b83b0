//! What is herd's in models of users: a total `co`, the names that herd predefines, its library, and errors with a caret.

use moire_cat::contract::Coherence;
use moire_cat::{Model, Variants, load};
use moire_models::Beside;
use std::path::Path;

fn own(text: &str) -> Model {
    load("my.cat", text, &Beside(|_: &Path| None), &Variants::new()).unwrap_or_else(|e| panic!("{e}"))
}

/// How `co` is, and whether a check makes it so.
fn coherence(text: &str) -> (Coherence, bool) {
    let model = own(text);
    (model.settings().coherence, model.checks().iter().any(|c| c.name == "co-total"))
}

#[test]
fn coherence_is_total_unless_a_model_says_what_it_orders() {
    use Coherence::{Partial, Total};
    let sc = "acyclic po | rf | co | fr as sc\n";
    assert_eq!(coherence(sc), (Total, true));
    // A pair that must be in co is a check in herd, too; it does not say that other pairs are left open.
    assert_eq!(coherence(&format!("empty (po & loc & (W * W)) \\ co\n{sc}")), (Total, true));
    assert_eq!(coherence(&format!("empty ((W * W) & loc & sr) \\ (co | co^-1)\n{sc}")), (Partial, false));
    assert_eq!(coherence(&format!("include \"ptx.cat\"\n{sc}")), (Partial, false));
    assert_eq!(coherence(&format!("(*| setting coherence = partial *)\n{sc}")), (Partial, false));
    assert_eq!(
        coherence(&format!("(*| setting coherence = total *)\ninclude \"ptx.cat\"\n{sc}")),
        (Total, true)
    );
    assert_eq!(coherence(&format!("include \"cos.cat\"\n{sc}")), (Total, true));
    // Where no check reads co, its order changes nothing.
    assert_eq!(coherence("acyclic po | rf as order"), (Total, false));
    for name in moire_models::names() {
        let model = moire_models::load(name, &Variants::new()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(model.settings().coherence, Partial, "{name}");
    }
}

/// Two models that differ in this are two models.
#[test]
fn the_canonical_text_says_that_coherence_is_total() {
    let sc = "acyclic po | rf | co | fr as sc\n";
    let partial = own(&format!("{sc}(*| setting coherence = partial *)"));
    assert!(own(sc).canonical_text().contains("co is total"));
    assert!(!partial.canonical_text().contains("co is total"));
}

#[test]
fn parts_of_relations_are_predefined_unless_the_model_defines_them() {
    for (name, meaning) in [("rfe", "rf \\ int"), ("coe", "co \\ int"), ("fre", "fr \\ int")] {
        let model = own(&format!("let a = {name}\nlet b = {meaning}\nacyclic a"));
        assert_eq!(model.definition("a"), model.definition("b"), "{name}");
    }
    for (name, meaning) in [("rfi", "rf & int"), ("coi", "co & int"), ("fri", "fr & int")] {
        let model = own(&format!("let a = {name}\nlet b = {meaning}\nacyclic a"));
        assert_eq!(model.definition("a"), model.definition("b"), "{name}");
    }
    let model = own("let rfe = po\nlet a = rfe\nacyclic a | co");
    assert_eq!(model.definition("a"), model.definition("rfe"));
}

#[test]
fn a_model_may_have_a_title_of_two_words_and_comments_of_a_line() {
    assert_eq!(own("C RC11\n#order\nacyclic po as order // of a thread\n").checks()[0].name, "order");
}

#[test]
fn what_herd_calls_undefined_is_a_flag() {
    let model = own("undefined_unless empty rf & po as Dr\nacyclic rf");
    let check = &model.checks()[0];
    assert_eq!((check.name.as_str(), check.flag, check.negated), ("undefined-Dr", true, true));
}

/// Herd's own library is in a larger language: what stands in for it comes first, and the output says so.
#[test]
fn the_library_of_herd_is_not_read_from_beside() {
    let beside = Beside(|path: &Path| path.ends_with("cos.cat").then(|| "procedure".to_owned()));
    let model = load("my.cat", "include \"cos.cat\"\nacyclic ca", &beside, &Variants::new());
    let model = model.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(model.includes()[0].to_string(), "include \"cos.cat\": what stands in for herd's cos.cat");
}

#[test]
fn errors_show_the_line_with_a_caret() {
    let shown = |text: &str| {
        let error = load("my.cat", text, &Beside(|_: &Path| None), &Variants::new());
        error.expect_err("is refused").to_string()
    };
    assert_eq!(
        shown("let a = po\nacyclic a | rff as sc\n"),
        "my.cat:2:13: `rff` is not defined; did you mean `rf`?\n  2 | acyclic a | rff as sc\n    |             ^"
    );
    // A tab stays a tab, so that the caret is under its column; a character of several bytes is one.
    assert_eq!(
        shown("\tacyclic (*é*) rff\n").split_once('\n').expect("an excerpt").1,
        "  1 | \tacyclic (*é*) rff\n    | \t              ^"
    );
    // A whole file has no line.
    assert_eq!(shown("").lines().count(), 1);
}
