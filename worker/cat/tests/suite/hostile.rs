//! No text makes the loader panic, overflow the stack or run for long; and a published style of file loads unchanged.

use moire_cat::{CheckKind, Class, Library, Obligation, Source, Variants, load};
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn complaint(text: &str) -> String {
    let begin = Instant::now();
    let error =
        load("m.cat", text, &moire_models::Shipped, &Variants::new()).expect_err("is refused").to_string();
    assert!(begin.elapsed() < Duration::from_secs(5), "took {:?}", begin.elapsed());
    error
}

#[test]
fn deep_and_long_texts_are_refused() {
    assert!(complaint(&format!("empty {}po", "(".repeat(100_000))).contains("at most"));
    assert!(complaint(&format!("empty po{}", "+".repeat(100_000))).contains("at most"));
    assert!(complaint(&format!("empty {}po", "~".repeat(100_000))).contains("at most"));
    assert!(complaint(&format!("empty po{}", " | po".repeat(50_000))).contains("at most"));
    assert!(
        complaint(&format!("empty if \"a=b\"{} then po else po", " || \"a=b\"".repeat(50_000)))
            .contains("shorter")
    );
    let nested =
        format!("{}po{}", "(".repeat(120), " | po)".repeat(120).replace(" | po", &" | po".repeat(300)));
    assert!(complaint(&format!("empty {nested}")).contains("at most"));
    assert!(complaint(&"(*".repeat(200_000)).contains("never closed"));
    assert!(complaint(&"let a = po\n".repeat(50_000)).contains("definitions"));
    assert!(complaint(&"empty 0\n".repeat(50_000)).contains("checks"));
    assert!(complaint(&"a".repeat(2 << 20)).contains("bytes"));
}

#[test]
fn functions_cannot_explode() {
    let mut text = String::from("let f0(a) = a; a\n");
    for i in 1..60 {
        text.push_str(&format!("let f{i}(a) = f{}(a | po) | f{}(a & po)\n", i - 1, i - 1));
    }
    text.push_str("empty f59(rf)");
    assert!(complaint(&text).contains("at most"));
    let deep = format!("let g(a) = {}a{}\n", "(".repeat(100), " | po)".repeat(100));
    let calls: String = (0..60)
        .map(|i| {
            format!("let g{}(a) = {}(a) | rf\n", i + 1, if i == 0 { "g".into() } else { format!("g{i}") })
        })
        .collect();
    let _ = load("m.cat", &format!("{deep}{calls}empty g60(po)"), &moire_models::Shipped, &Variants::new());
}

/// A file that includes another for ever.
struct Endless;

impl Library for Endless {
    fn open(&self, _: &Source, path: &str) -> Option<(Source, String)> {
        Some((Source { name: path.to_owned(), shipped: false }, format!("include \"{path}x\"")))
    }
}

#[test]
fn includes_end() {
    let error = load("m.cat", "include \"a\"", &Endless, &Variants::new()).expect_err("endless");
    assert!(error.to_string().contains("more than"), "{error}");
    assert!(complaint("include \"nowhere.cat\"").contains("cannot open"));
    assert!(complaint("include po").contains("expected a file name"));
}

#[test]
fn what_is_not_supported_is_named() {
    assert!(complaint("with co from (generate-orders 0)").contains("`with` is not supported"));
    assert!(complaint("procedure f() = empty 0 end").contains("`procedure` is not supported"));
    assert!(complaint("empty W * po").contains("expected a set"));
    assert!(complaint("empty W ; po").contains("expected a relation"));
    assert!(complaint("empty po | W").contains("one side is a set"));
    assert!(complaint("let f(a) = a\nempty f").contains("is a function"));
    assert!(complaint("empty po(rf)").contains("not a function"));
    assert!(complaint("empty if \"Q6=B\" then po else rf").contains("not declared"));
    assert_eq!(complaint("let a = po |\n"), "m.cat:2:1: expected an expression, found the end of the file");
}

/// The features of files published for PTX, in a model of our own.
const PUBLISHED_STYLE: &str = r#"PTX
(* a title without quotes, (* nested *) comments *)
// and line comments
let pairs = syncbar & scta
let co = co+
let fr = rf^-1; co
let strong = (W & (RLX | REL)) | (R & (RLX | ACQ)) | F
let proxies = GEN * GEN | SUR * SUR | TEX * TEX | CON * CON
let near = ((po | po^-1) | ([strong]; sr; [strong])) & proxies & (((M * M) & vloc) | ((_ * _) \ (M * M))) \ id
let rec seen = (near & rf) | (seen; rmw; seen)
let rel = ([W & REL]; (po & vloc)?; [W]) | ([F & ACQ_REL]; po; [W])
let base = (po?; ((near & (rel; seen; [R & ACQ]) | sync_fence | pairs); po?)+) | po
let cause = seen?; base
empty ((([W]; cause; [W]) & loc) \ co) as axiom-Coherence
empty (([W]; near; [W]) & loc) \ (co | co^-1) as axiom-Coherence2
empty (([F & SC]; cause; [F & SC]) \ sync_fence) as axiom-FenceSC
empty (((near & fr); (near & co)) & rmw) as axiom-Atomicity
let dep = addr | data | ctrl
acyclic (rf | dep) as axiom-NoThinAir
acyclic ((near & (rf | co | fr)) | po-loc) as axiom-ScPerLocation
irreflexive ((rf | fr); cause) as axiom-Causality
flag ~empty ((W * M) & loc & ext) \ (cause | cause^-1) as race
show cause as c, base
"#;

#[test]
fn published_style_loads_and_prunes() {
    let model =
        load("published.cat", PUBLISHED_STYLE, &moire_models::Shipped, &Variants::new()).expect("loads");
    let kind = |name: &str| model.checks().iter().find(|c| c.name == name).expect(name);
    assert!(matches!(kind("axiom-Coherence").kind, CheckKind::Obligation(Obligation::ForceCoherence(_))));
    assert!(matches!(kind("axiom-Coherence2").kind, CheckKind::Obligation(Obligation::DemandCoherence(_))));
    assert!(matches!(kind("axiom-FenceSC").kind, CheckKind::Obligation(Obligation::ForceFence(_))));
    for check in model.checks() {
        let expected = if check.flag { Class::LeafOnly } else { Class::Monotone };
        assert_eq!(check.class, expected, "{}", check.name);
    }
    assert!(model.explain().contains("axiom-Causality"));
}

fn soup() -> impl Strategy<Value = String> {
    let words = vec![
        "let",
        "rec",
        "and",
        "in",
        "include",
        "acyclic",
        "irreflexive",
        "empty",
        "flag",
        "as",
        "if",
        "then",
        "else",
        "show",
        "a",
        "b",
        "f",
        "po",
        "rf",
        "co",
        "W",
        "R",
        "M",
        "_",
        "0",
        "id",
        "(",
        ")",
        "[",
        "]",
        "|",
        "&",
        "\\",
        ";",
        "*",
        "+",
        "?",
        "~",
        "^-1",
        ",",
        "=",
        "\"Q6=B\"",
        "\"lib-ptx.cat\"",
        "(*",
        "*)",
        "//",
        "\n",
        "{",
        "}",
        "domain",
        "sync_fence",
        "||",
        "&&",
        "(*| switch A = B default B : c *)",
        "é",
        "\0",
    ];
    prop::collection::vec(prop::sample::select(words), 0..60).prop_map(|w| w.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in prop_oneof![soup(), ".{0,200}"]) {
        let _ = load("m.cat", &text, &moire_models::Shipped, &Variants::new());
    }

    #[test]
    fn damaged_models_are_answered(cut in 0usize..4000, with in "[a-z|&;()*~\\[\\]\"]{0,3}") {
        let text = PUBLISHED_STYLE;
        let at = cut % text.len();
        let damaged = format!("{}{with}{}", &text[..at], &text[(at + 1).min(text.len())..]);
        if let Err(e) = load("m.cat", &damaged, &moire_models::Shipped, &Variants::new()) {
            prop_assert!(e.line >= 1 && e.column >= 1);
        }
    }
}
