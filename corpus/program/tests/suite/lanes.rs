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
