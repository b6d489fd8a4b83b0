//! Texts that are no programs: each is refused with a position, none ends the reader.

use moire_source::text::{parse, print};
use proptest::prelude::*;

const GOOD: &str = "source \"mp\"\n.global .b32 x = 3, y;\n.shared .b64 s;\nP0 (gpu 0, cluster 0, cta 0) { store.plain x, 1; exch.release.gpu y, 1; r0 = load.volatile.relaxed.sys y; if r0 == 1 { fence.seq_cst.cta; r1 = cas.acq_rel.acquire.sys x, 1, r0; } }\n~exists (P0:r0 == 1 /\\ ([x] == 2 \\/ ~(P0:r1 == 0)))\n";

fn refused(from: &str, to: &str, message: &str) {
    assert!(GOOD.contains(from), "{from}");
    let text = GOOD.replacen(from, to, 1);
    let error = parse(&text).expect_err(&text).to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn wrong_texts_are_refused_where_they_are_wrong() {
    let good = parse(GOOD).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(parse(&print(&good)).expect("prints as it reads"), good);
    refused("store.plain x", "store.plan x", "4:43: this is no kind of access");
    refused("store.plain x", "store.acquire.gpu x", "P0: a store is not acquire");
    refused("load.volatile.relaxed.sys y", "load.release.gpu y", "P0: a load is not release");
    refused("r0 = load.volatile.relaxed.sys y", "r0 = lod.relaxed.sys y", "did you mean `load`?");
    refused("fence.seq_cst.cta", "fence.relaxed.cta", "a fence is not relaxed");
    refused("acq_rel.acquire.sys", "acq_rel.release.sys", "a failed compare-exchange is not release");
    refused(", 1, r0; }", ", 1, r9; }", "no earlier step of this thread writes `r9`");
    refused(".b64 s", ".b63 s", "one of .b8 .b16 .b32 .b64 .b128");
    refused("x = 3", "x = 4294967296", "does not fit the 32 bits of `x`");
    refused("[x] == 2", "[s] == 2", "each CTA has its own");
    refused("P0:r1", "P1:r1", "there is no thread `P1`");
    refused("cta 0)", "cta 64)", "numbered 0 to 63");
    refused("if r0 == 1 {", "if r0 == 1 {".repeat(9).as_str(), "nested 4 deep");
    assert!(parse("").expect_err("empty").to_string().starts_with("1:1: expected `source"));
    assert!(parse(&"#".repeat(1 << 17)).expect_err("long").to_string().contains("at most 65536 bytes"));
}

proptest! {
    #[test]
    fn no_text_ends_the_reader(text in ".{0,200}") {
        let _ = parse(&text);
        let _ = parse(&format!("source \"a\"\n{text}"));
    }

    #[test]
    fn no_change_of_a_text_ends_the_reader(at in 0..GOOD.len(), other in 0..GOOD.len(), length in 0..40usize) {
        let end = (at + length).min(GOOD.len());
        let from = (other + length).min(GOOD.len());
        let text = format!("{}{}{}", &GOOD[..at], &GOOD[other..from], &GOOD[end..]);
        if let Ok(source) = parse(&text) {
            prop_assert_eq!(parse(&print(&source)).expect("prints as it reads"), source);
        }
    }
}
