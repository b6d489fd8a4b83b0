//! Hostile Tile IR text: reading never panics and always ends, and an accepted text prints and reads back.

use moire_program::limits::TEXT_BYTES;
use moire_tile_ir::text::{parse, print};
use moire_tile_ir::{Reason, verify};
use proptest::collection::vec;
use proptest::prelude::*;

const SEEDS: [&str; 3] = [
    "cuda_tile.module @m {\n  entry @k(%arg0: tile<ptr<i32>>, %arg1: tile<ptr<f32>>) optimization_hints=<sm_90 = {num_cta_in_cga = 2}> {\n    %c = constant <i32: 0> : tile<i32>\n    %d = constant <f32: [1.5, -0x1p3]> : tile<2xf32>\n    return\n  }\n}\n",
    "cuda_tile.module @m {\n  entry @k(%arg0: tile<ptr<i32>>, %arg1: tile<ptr<i32>>) {\n    %c = constant <i32: [[0, 1], [-2, 3]]> : tile<2x2xi32>\n    %0 = constant <i32: 1> : tile<i32>\n    %x, %y, %z = get_tile_block_id : tile<i32>\n    %p = cmpi equal %x, %0, signed : tile<i32> -> tile<i1>\n    %t = make_token : token\n    %r:2 = if %p -> (token, tile<i32>) {\n      %1 = store_ptr_tko release device %arg0, %x token=%t : tile<ptr<i32>>, tile<i32> -> token\n      yield %1, %0 : token, tile<i32>\n    } else {\n      %v, %1 = load_ptr_tko acquire device %arg0 : tile<ptr<i32>> -> tile<i32>, token\n      yield %1, %v : token, tile<i32>\n    }\n    %u = for %i in (%0 to %x, step %0) : tile<i32> iter_values(%k = %r#0) -> (token) {\n      %2, %3 = atomic_rmw_tko relaxed sys %arg1, add, %r#1 token=%k : tile<ptr<i32>>, tile<i32> -> tile<i32>, token\n      continue %3 : token\n    }\n    loop iter_values(%k = %u) : token {\n      if %p {\n        break\n      }\n      continue %k : token\n    }\n    return\n  }\n}\n",
    "testing$func @f(%v: partition_view<tile=(4x8), padding_value = zero, tensor_view<?x64xf32, strides=[64,?]>, dim_map=[1, 0]>, %i: tile<i32>, %p: tile<ptr<f32>>) -> token {\n  %a, %t = load_view_tko weak %v[%i, %i] optimization_hints = <sm_90 = {latency = 3}> inbounds = [true, false] : partition_view<tile=(4x8), padding_value = zero, tensor_view<?x64xf32, strides=[64,?]>, dim_map=[1, 0]>, tile<i32> -> tile<4x8xf32>, token\n  %s = \"cuda_tile.store_view_tko\"(%a, %v, %i, %i, %t) <{memory_ordering_semantics = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 2, 1>}> : (tile<4x8xf32>, !cuda_tile.partition_view<tile=(4x8), padding_value = zero, tensor_view<?x64xf32, strides=[64,?]>, dim_map=[1, 0]>, tile<i32>, tile<i32>, token) -> token\n  %w = make_tensor_view %p, shape = [%i, 4], strides = [4, 1] : tile<i32> -> tensor_view<?x4xf32, strides=[4,1]>\n  %j = join_tokens %s, %t : token\n  %g = gdc_wait_tko token = %j -> token\n  %h = memory_fence_alias_tko %g\n  return %h : token\n}\n",
];

const TOKENS: &[&str] = &[
    "cuda_tile.module",
    "@m",
    "{",
    "}",
    "entry",
    "testing$func",
    "(",
    ")",
    "%0",
    "%1",
    "%arg0",
    ":",
    "=",
    "->",
    ",",
    "tile<",
    ">",
    "4x",
    "i32",
    "ptr<i32>",
    "token",
    "tile<i32>",
    "tile<4xi32>",
    "tensor_view<",
    "partition_view<",
    "?x",
    "strides=[",
    "]",
    "#",
    ":2",
    "#1",
    "constant",
    "<i32:",
    "[",
    "0x7F",
    "1e400",
    "-1",
    "99999999999999999999",
    "true",
    "reshape",
    "load_ptr_tko",
    "weak",
    "relaxed",
    "device",
    "store_ptr_tko",
    "token=",
    "if",
    "else",
    "for",
    "in",
    "to",
    "step",
    "iter_values(",
    "loop",
    "yield",
    "continue",
    "break",
    "return",
    "make_token",
    "join_tokens",
    "\"cuda_tile.load_view_tko\"",
    "<{",
    "}>",
    "//",
    "\n",
    "\u{e9}",
    "\0",
    "%",
    "!cuda_tile.",
    "assume",
    "div_by<",
    "optimization_hints=<",
];

/// Reads a text. A module is verified, printed and read back. Returns whether the text is a module.
fn survive(text: &str) -> bool {
    match parse(text) {
        Ok(module) => {
            verify(&module);
            let printed = print(&module);
            if printed.len() <= TEXT_BYTES {
                let again =
                    parse(&printed).unwrap_or_else(|e| panic!("{text}\nprints as\n{printed}\nrefused: {e}"));
                assert_eq!(again, module, "{text}\nprints as\n{printed}");
            }
            true
        }
        Err(error) => {
            assert!(error.0.line >= 1 && error.0.column >= 1 && !error.0.message.is_empty(), "{error:?}");
            assert!(error.0.rule.and_then(Reason::named).is_some(), "{error:?}");
            false
        }
    }
}

#[test]
fn seeds() {
    assert!(!survive(SEEDS[0]), "hexadecimal floats are no constants");
    assert!(survive(&SEEDS[0].replace("-0x1p3", "0x40000000")));
    assert!(SEEDS[1..].iter().all(|s| survive(s)));
    // The verifier refuses this module, but it prints and reads back.
    assert!(survive("entry @k() { break }"));
}

fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases * 16, failure_persistence: None, ..usual }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place"
)]
fn place(text: &[u8], at: f64) -> usize {
    ((text.len() as f64 * at) as usize).min(text.len())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn words(words in vec((0..TOKENS.len(), any::<bool>()), 0..60), start in 0..3usize) {
        let starts = ["", "entry @k(%arg0: tile<ptr<i32>>) { ", "entry @k() { %0 = constant <i32: 1> : tile<i32> "];
        let mut text = starts[start].to_owned();
        for (token, gap) in words {
            text.push_str(TOKENS[token]);
            text.push_str(if gap { " " } else { "" });
        }
        survive(&text);
    }

    #[test]
    fn changed(seed in 1..3usize, edits in vec((0.0..1.0f64, 0..40usize, 0..TOKENS.len(), 0..4u8), 1..6)) {
        let mut text = SEEDS[seed].as_bytes().to_vec();
        for (at, n, token, kind) in edits {
            let from = place(&text, at);
            let to = (from + n).min(text.len());
            let part = text[from..to].to_vec();
            match kind {
                0 => drop(text.drain(from..to)),
                1 => drop(text.splice(from..from, TOKENS[token].bytes())),
                2 => drop(text.splice(from..from, part)),
                _ => text.insert(from, u8::try_from(n * 6).unwrap()),
            }
        }
        survive(&String::from_utf8_lossy(&text));
    }
}

/// Texts at the size limit; quadratic reading or printing would take too long.
#[test]
fn large_texts() {
    let fill = |head: &str, piece: &dyn Fn(usize) -> String, tail: &str| {
        let mut text = head.to_owned();
        for i in 0.. {
            let piece = piece(i);
            if text.len() + piece.len() + tail.len() > TEXT_BYTES {
                break;
            }
            text.push_str(&piece);
        }
        text.push_str(tail);
        text
    };
    let body = "entry @k(%arg0: tile<ptr<i32>>, %b: tile<i1>, %x: tile<i32>) {\n";
    assert!(!survive(&fill(body, &|i| format!("%{i} = make_token : token\n"), "return }")));
    assert!(!survive(&fill(body, &|_| "if %b {".to_owned(), "")));
    assert!(!survive(&fill("", &|i| format!("entry @k{i}() {{ }}\n"), "")));
    assert!(!survive(&fill(body, &|_| "tile<".to_owned(), "")));
    assert!(!survive(&fill(&format!("{body}%c = constant <i32: "), &|_| "[".to_owned(), "")));
    assert!(!survive(&fill(
        &format!("{body}%c = constant <i8: ["),
        &|_| "1,".to_owned(),
        "1]> : tile<4xi8> }"
    )));
    assert!(!survive(&fill("entry @k(%a: tensor_view<", &|_| "1x".to_owned(), "i32>) { }")));
    assert!(!survive(&fill(&format!("{body}%c = join_tokens "), &|_| "%x, ".to_owned(), "%x : token }")));
    assert!(survive(&fill(body, &|_| "// nothing\n".to_owned(), "return }")));
    let ops: String = (0..5000).map(|i| format!("%{i} = addi %x, %x : tile<i32>\n")).collect();
    assert!(survive(&format!("{body}{ops}return }}")));
    let nested = "if %b { ".repeat(40) + &"}".repeat(40);
    assert!(survive(&format!("{body}{nested} return }}")));
}
