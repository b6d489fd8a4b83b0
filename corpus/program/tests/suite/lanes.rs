//! The lanes of a warp in a placement: how they read and print, and which canonical form they have.

use moire_program::canon::canonical;
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};
use moire_program::validate::validate;

fn read(lanes: &str) -> Option<Program> {
    let text = format!(".shared .b32 x;\nP0 (gpu 0, cta 0, {lanes}) {{ ld.weak.shared.u32 r0, [x]; }}\n");
    parse(&format!("moire \"t\"\n{text}"), Format::Native).ok()
}

#[test]
fn sets_of_lanes_print_and_read_back() {
    for (lanes, mask, joined) in [
        ("lane 3", 0b1000, false),
        ("lanes 0-31", u32::MAX, false),
        ("lanes 0,2-5", 0b11_1101, false),
        ("lanes 1-31 joined", u32::MAX - 1, true),
        ("lanes 0,31 joined", 1 << 31 | 1, true),
    ] {
        let program = read(lanes).expect(lanes);
        let place = program.threads[0].place;
        assert_eq!((place.mask, place.joined), (mask, joined), "{lanes}");
        assert!(print(&program).contains(&format!("cta 0, {lanes})")), "{}", print(&program));
        assert_eq!(read(lanes), parse(&print(&program), Format::Native).ok(), "{lanes}");
        assert_eq!(canonical(&program).program.threads[0].place.mask, mask, "{lanes}");
    }
    assert_eq!(read("lanes 3 joined"), read("lane 3"));
    assert_eq!(read("lanes 0-1,2-3, warp 0"), read("lanes 0-3"));
    for wrong in ["lanes 2-1", "lanes 0-32", "lanes 3,1", "lanes 0-3,3", "lanes joined"] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}

#[test]
fn joined_lanes_are_another_program() {
    let id = |lanes: &str| canonical(&read(lanes).expect(lanes)).id;
    let all = ["lane 0", "lanes 0-1", "lanes 0-1 joined", "lanes 0,2", "lanes 0,2 joined", "lanes 0-2"];
    let ids: std::collections::BTreeSet<_> = all.iter().map(|l| id(l)).collect();
    assert_eq!(ids.len(), all.len());
}

#[test]
fn threads_of_one_warp_share_no_lane() {
    let shared = |a: &str, b: &str| {
        let text =
            format!("moire \"t\"\nA (gpu 0, cta 0, {a}) {{ exit; }}\nB (gpu 0, cta 0, {b}) {{ exit; }}\n");
        let program = parse(&text, Format::Native).expect("the program is legal");
        validate(&program).iter().any(|d| d.rule == Some("placement"))
    };
    assert!(shared("lanes 0,2", "lanes 1-2 joined"));
    assert!(!shared("lanes 0,2", "lanes 1,3-4 joined"));
}

#[test]
fn exchanges_print_and_read_back() {
    let lines = [
        "vote.sync.all.pred p, q, 3",
        "vote.sync.uni.pred p, !q, -1",
        "vote.sync.ballot.b32 r, q, m",
        "shfl.sync.up.b32 r|p, s, 1, 0, 15",
        "shfl.sync.idx.b32 r, 7, s, 31, 4294967295",
        "match.any.sync.b32 r, s, 15",
        "match.all.sync.b32 r|p, s, 15",
        "redux.sync.add.u32 r, s, 15",
        "redux.sync.max.s32 r, s, 15",
        "redux.sync.xor.b32 r, s, 15",
    ];
    for line in lines {
        let text = format!("moire \"t\"\nP0 (gpu 0, cta 0, lane 0) {{ {line}; }}\n");
        let program = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{line}: {e}"));
        assert!(print(&program).contains(line), "{}", print(&program));
        assert_eq!(parse(&print(&program), Format::Native).ok(), Some(program), "{line}");
    }
    let wrong =
        ["vote.sync.some.pred p, q, 3", "vote.sync.any.pred p, 1, 3", "match.any.sync.b32 r|p, s, 15"];
    for line in wrong.iter().chain(&["redux.sync.sub.u32 r, s, 15", "shfl.idx.b32 r, s, 0, 31"]) {
        let text = format!("moire \"t\"\nP0 (gpu 0, cta 0, lane 0) {{ {line}; }}\n");
        assert!(parse(&text, Format::Native).is_err(), "{line}");
    }
}

#[test]
fn forms_of_exchanges_are_different_programs() {
    let lines = [
        "vote.sync.any.pred p, q, 3",
        "vote.sync.any.pred p, !q, 3",
        "vote.sync.any.pred p, q, 1",
        "vote.sync.all.pred p, q, 3",
        "elect.sync _|p, 3",
    ];
    let id = |line: &&str| {
        let text = format!("moire \"t\"\nP0 (gpu 0, cta 0, lane 0) {{ .reg p, q; {line}; }}\n");
        canonical(&parse(&text, Format::Native).expect("it is legal")).id
    };
    let ids: std::collections::BTreeSet<_> = lines.iter().map(id).collect();
    assert_eq!(ids.len(), lines.len());
}
