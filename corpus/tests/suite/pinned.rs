//! Ids in a store stay what they are: twenty of each kind.

use moire_corpus::*;
use std::collections::BTreeMap;

/// The first eight digits of twenty ids.
fn ids(of: impl Fn(u8) -> Hash) -> String {
    (0..20).map(|n| of(n).to_string()[..8].to_owned()).collect::<Vec<_>>().join(" ")
}

/// Names that differ with the number, some with what JSON escapes.
fn name(what: &str, n: u8) -> String {
    let marks = ["", "\"", "\n", "\u{2192}"];
    format!("{what} {n}{}", marks[usize::from(n) % marks.len()])
}

#[test]
fn findings_keep_their_ids() {
    let axioms = |n: u8| vec![vec![name("SC", n), "Causality".to_owned()], vec![name("race", n)]];
    let found = ids(|n| Finding::dedupe_id(&name("self", n), &axioms(n), &Hash::of(&[n])));
    assert_eq!(found, FINDINGS);
}

#[test]
fn items_keep_their_digests() {
    let row = |n: u8, engine: &str| EngineResult {
        engine: name(engine, n),
        verdict: "clean".into(),
        outcomes: Hash::of(&[n]),
        leaves: Hash::of(&[n, 1]),
    };
    let found = ids(|n| item_digest(n.into(), &Hash::of(&[n]), &[row(n, "naive"), row(n, "explorer")]));
    assert_eq!(found, ITEMS);
}

#[test]
fn explorations_keep_their_ids() {
    let found = ids(|n| {
        let switches = BTreeMap::from([(name("Q", n), "B".to_owned())]);
        let files = BTreeMap::from([(name("my.cat", n), "acyclic po".to_owned())]);
        let (program, model, tree) = (name("program", n), name("ptx", n), name("tree", n));
        let (fingerprint, loop_bound, executions) = (Hash::of(&[n]), u32::from(n), u64::from(n) << 40);
        Exploration { program, model, switches, files, fingerprint, tree, loop_bound, executions }.id()
    });
    assert_eq!(found, EXPLORATIONS);
}

const FINDINGS: &str = "ea8bbc6e a918e1a4 eafdf293 c2fb981e 9bed431f 470c1fd7 4a77f034 3a91e008 0473e713 0a3874a1 e6c1c59b b6e8ed87 ecde4e22 20354b09 eed46314 656b190d 03e0aa0b 967fe352 775da210 baa3e73b";
const ITEMS: &str = "e92d081b ad18d1dd e97eb7ef 60d5f2da 9d9118a1 b64b17fd 7d918667 e0a18a7a 6864d9e9 fef716ac d38f1ab5 f5455bb8 a113909a d869e911 1ef503bd 490d86ec a579b68e 54112851 4ee6497b aab42202";
const EXPLORATIONS: &str = "4b13a904 bbc9b96e 4e69b2ac 5d600e3e d47db516 0c6f1032 1cbbfa01 18afa37f b515f5bc 6ecf7096 30d04907 d300f158 2924d990 59cc2ca5 e5a988b5 a48b869e 0383a001 e40cce21 006bb19a 5f11be74";
