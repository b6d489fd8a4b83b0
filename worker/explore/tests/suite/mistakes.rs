//! Mistakes planted in the skeleton of a warp-specialised matrix product, by one CTA and by a pair. Each has a verdict
//! that must be found within few consistency checks.
//!
//! The mistakes are those of collected bugs: a missing wait, commit, fence or barrier; a wrong parity, count, stage,
//! scope or CTA; columns deallocated too early, too late or never.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use moire_cat::{Model, Variants};
use moire_explore::Limits;
use moire_explore::judge::{About, Judgement, Questions, judge};
use moire_generate::protocol::{Gemm, Kind, Protocol, RoleStep};

/// The steps that an edit changes: the `nth` step, counted from 0, whose words contain `what`, in one CTA and warp or
/// (`None`) in all.
#[derive(Clone, Copy)]
struct Place {
    cta: Option<u16>,
    warp: Option<u16>,
    what: &'static str,
    nth: usize,
}

/// The change to a step.
#[derive(Clone, Copy)]
enum Edit {
    Drop,
    Earlier,
    Later,
    Twice,
    Parity,
    /// Changes the number of arrivals, bytes or columns.
    Number(usize),
    /// Changes the mask of CTAs to which a commit reports.
    Mask(u16),
    /// Uses the own CTA instead of the leader.
    Here,
    /// Narrows the scope to the CTA.
    Narrow,
    Relaxed,
    /// Uses another mbarrier.
    At(&'static str),
    /// Replaces words in the text of the step.
    Words(&'static str, &'static str),
}

struct Mistake {
    name: &'static str,
    /// Whether the mistake is planted in the product of three tiles, which reuses accumulators.
    again: bool,
    place: Place,
    edit: Edit,
    /// The verdicts in words, joined by `+`.
    verdict: &'static str,
}

const PRODUCER: u16 = 0;
const ISSUER: u16 = 1;
const EPILOGUE: u16 = 4;

/// Makes a mistake of one warp.
const fn one(
    name: &'static str,
    (cta, warp): (u16, u16),
    what: &'static str,
    nth: usize,
    edit: Edit,
    verdict: &'static str,
) -> Mistake {
    let place = Place { cta: Some(cta), warp: Some(warp), what, nth };
    Mistake { name, again: false, place, edit, verdict }
}

/// Makes a mistake of every warp that has such a step.
const fn all(
    name: &'static str,
    what: &'static str,
    nth: usize,
    edit: Edit,
    verdict: &'static str,
) -> Mistake {
    Mistake { name, again: false, place: Place { cta: None, warp: None, what, nth }, edit, verdict }
}

/// Moves a mistake to the product that reuses accumulators.
const fn again(mistake: Mistake) -> Mistake {
    Mistake { again: true, ..mistake }
}

/// Returns the words by which a [`Place`] finds a step.
fn words(step: &RoleStep) -> String {
    match &step.kind {
        Kind::Before => "before".into(),
        Kind::After => "after".into(),
        Kind::ProxyFence => "proxy fence".into(),
        Kind::InitFence => "init fence".into(),
        Kind::Init { at, .. } => format!("init {at}"),
        Kind::Copy { at, .. } => format!("copy {at}"),
        Kind::Expect { at, .. } => format!("expect {at}"),
        Kind::Commit { at, .. } => format!("commit {at}"),
        Kind::Arrive { at, .. } => format!("arrive {at}"),
        Kind::Wait { at, .. } => format!("wait {at}"),
        Kind::Columns { act, .. } => format!("{act:?}"),
        Kind::Frame | Kind::Work | Kind::Complete | Kind::Sync => step.text.clone(),
    }
}

fn change(step: &mut RoleStep, edit: Edit) {
    match (edit, &mut step.kind) {
        (Edit::Parity, Kind::Wait { parity, .. }) => *parity ^= 1,
        (Edit::Number(n), Kind::Init { count, .. }) => *count = u16::try_from(n).unwrap(),
        (Edit::Number(n), Kind::Expect { bytes: is, .. } | Kind::Columns { columns: is, .. }) => *is = n,
        (Edit::Mask(mask), Kind::Commit { pair: Some(told), .. }) => *told = mask,
        (Edit::Here, Kind::Arrive { cta, .. } | Kind::Copy { cta, .. }) => *cta = None,
        (Edit::Narrow, Kind::Arrive { wide, .. } | Kind::Wait { wide, .. }) => *wide = false,
        (Edit::Relaxed, Kind::Wait { acquire, .. }) => *acquire = false,
        (
            Edit::At(name),
            Kind::Commit { at, .. } | Kind::Arrive { at, .. } | Kind::Wait { at, .. } | Kind::Copy { at, .. },
        ) => *at = name.to_owned(),
        (Edit::Words(from, to), _) => step.text = step.text.replacen(from, to, 1),
        _ => panic!("an edit that does not apply to {step:?}"),
    }
}

/// Plants a mistake in a protocol. The place must exist.
fn planted(protocol: &Protocol, mistake: &Mistake) -> Protocol {
    let mut out = protocol.clone();
    let place = mistake.place;
    let mut done = 0;
    for role in &mut out.roles {
        if place.cta.is_some_and(|c| c != role.cta) || place.warp.is_some_and(|w| w != role.warp) {
            continue;
        }
        let mut found = (0..role.steps.len()).filter(|s| words(&role.steps[*s]).contains(place.what));
        let Some(at) = found.nth(place.nth) else { continue };
        match mistake.edit {
            Edit::Drop => drop(role.steps.remove(at)),
            Edit::Earlier => role.steps.swap(at - 1, at),
            Edit::Later => role.steps.swap(at, at + 1),
            Edit::Twice => role.steps.insert(at, role.steps[at].clone()),
            edit => change(&mut role.steps[at], edit),
        }
        done += 1;
    }
    assert!(done > 0, "{}: no such step", mistake.name);
    assert_ne!(out, *protocol, "{}", mistake.name);
    out
}

/// Number of consistency checks within which a mistake must be found.
const CHECKS: u64 = 2_000;
/// Number of executions within which a mistake must be found.
const EXECUTIONS: u64 = 3;

fn judged(protocol: &Protocol, model: &Model) -> Judgement {
    let program = protocol.program().unwrap_or_else(|| panic!("{}", protocol.text()));
    let questions = Questions { witnesses: false, about: About::All };
    let limits = Limits { checks: CHECKS, leaves: EXECUTIONS, ..Limits::default() };
    judge(&program, model, &limits, questions)
}

/// Compares a judgement with the expected verdicts. All of them must be there, and no others if the exploration is
/// complete.
fn complaint(mistake: &Mistake, judgement: &Judgement) -> Option<String> {
    let words: Vec<&str> = judgement.verdicts.iter().map(|v| v.word()).collect();
    let wanted: Vec<&str> = mistake.verdict.split('+').collect();
    let cut = words.contains(&"bounded");
    let right = wanted.iter().all(|w| words.contains(w)) && (cut || words.len() == wanted.len());
    (!right).then(|| format!("{}: {} instead of {}", mistake.name, words.join("+"), mistake.verdict))
}

/// Judges each mistake, and lists those with another verdict than expected.
fn complaints(pair: bool, mistakes: &[Mistake]) -> Vec<String> {
    let model = moire_models::load("ptx", &Variants::new()).unwrap();
    let once = Gemm::usual(pair, 2, 1).protocol();
    let twice = Gemm { pair, stages: 2, steps: 2, tiles: 3, warps: 4, lanes: 1 }.protocol();
    for protocol in [&once, &twice] {
        assert!(judged(protocol, &model).is_clean());
    }
    let mut out = Vec::new();
    for mistake in mistakes {
        let judgement = judged(&planted(if mistake.again { &twice } else { &once }, mistake), &model);
        println!("{}: {} checks", mistake.name, judgement.summary.checks);
        out.extend(complaint(mistake, &judgement));
    }
    out
}

const P0: (u16, u16) = (0, PRODUCER);
const P1: (u16, u16) = (1, PRODUCER);
const I0: (u16, u16) = (0, ISSUER);
const I1: (u16, u16) = (1, ISSUER);
const E0: (u16, u16) = (0, EPILOGUE);
const E1: (u16, u16) = (1, EPILOGUE);

const PAIR: &[Mistake] = &[
    one(
        "the peer's producer waits for the wrong parity at first",
        P1,
        "wait empty0",
        0,
        Edit::Parity,
        "hang",
    ),
    one("the producer waits for the wrong parity later", P0, "wait empty0", 1, Edit::Parity, "race"),
    one("the issuer waits for the wrong parity at first", I0, "wait full0", 0, Edit::Parity, "race"),
    one("the issuer waits for the wrong parity later", I0, "wait full0", 1, Edit::Parity, "race"),
    one("the epilogue waits for the wrong parity", E1, "wait done0", 0, Edit::Parity, "race+hang+early-pass"),
    one("the issuer does not wait for operands", I0, "wait full1", 0, Edit::Drop, "race"),
    one("the producer does not wait for a stage", P0, "wait empty0", 1, Edit::Drop, "race"),
    one("the peer's producer does not wait for a stage", P1, "wait empty0", 1, Edit::Drop, "race"),
    one("the peer's epilogue does not wait for a tile", E1, "wait done0", 0, Edit::Drop, "race+early-pass"),
    again(one("the issuer does not wait for an accumulator", I0, "wait free0", 1, Edit::Drop, "race")),
    one("no commit gives a stage back", I0, "commit empty0", 0, Edit::Drop, "hang"),
    one("no commit hands a tile over", I0, "commit done0", 0, Edit::Drop, "hang"),
    one("a commit before the product", I0, "commit empty0", 0, Edit::Earlier, "race+early-pass"),
    one("a commit to the wrong mbarrier", I0, "commit empty0", 0, Edit::At("empty1"), "hang"),
    one("a commit gives a stage back to the leader alone", I0, "commit empty0", 0, Edit::Mask(1), "hang"),
    one("a commit hands a tile to the leader alone", I0, "commit done0", 0, Edit::Mask(1), "hang"),
    one("a commit tells the peer alone", I0, "commit done1", 0, Edit::Mask(2), "hang"),
    one("no fence after the wait for a tile", E0, "after", 0, Edit::Drop, "race"),
    one("no fence after the wait for a tile, in the peer", E1, "after", 1, Edit::Drop, "race"),
    again(one("no fence after the wait for an accumulator", I0, "after", 2, Edit::Drop, "race")),
    again(one("no fence before the arrival", E1, "before", 0, Edit::Drop, "race")),
    again(one("no wait for the load", E1, "wait::ld", 0, Edit::Drop, "race+early-pass")),
    one("no wait for the last load", E0, "wait::ld", 1, Edit::Drop, "lifetime"),
    one("nothing announces the bytes", P0, "expect full0", 0, Edit::Drop, "hang"),
    one("only the leader's bytes are announced", P0, "expect full0", 0, Edit::Number(128), "race"),
    one("too many bytes are announced", P0, "expect full0", 0, Edit::Number(512), "hang"),
    one("bytes are announced twice", P0, "expect full0", 0, Edit::Twice, "hang+protocol"),
    one("a copy reports to the own CTA", P1, "copy full0", 0, Edit::Here, "hang"),
    one("a copy reports to the wrong mbarrier", P1, "copy full0", 0, Edit::At("full1"), "hang"),
    one("a copy is forgotten", P1, "copy full0", 0, Edit::Drop, "hang"),
    one(
        "a copy lands in the wrong stage",
        P0,
        "copy full0",
        0,
        Edit::Words("[a+0]", "[a+64]"),
        "race+early-pass",
    ),
    one(
        "a product of the wrong stage",
        I0,
        "mma",
        1,
        Edit::Words("desc(a+64", "desc(a+128"),
        "race+early-pass",
    ),
    again(one(
        "a product into the wrong accumulator",
        I0,
        "mma",
        2,
        Edit::Words("[r0+32]", "[r0+0]"),
        "race+early-pass",
    )),
    one("operands are expected from two arrivals", P0, "init full0", 0, Edit::Number(2), "hang"),
    again(one("accumulators are expected from one CTA alone", P0, "init free0", 0, Edit::Number(4), "race")),
    again(one(
        "accumulators are expected from a warp too many",
        P0,
        "init free0",
        0,
        Edit::Number(9),
        "hang",
    )),
    one("an mbarrier is not set up", P1, "init empty0", 0, Edit::Drop, "hang+lifetime"),
    again(one("a warp does not give an accumulator back", E1, "arrive free0", 0, Edit::Drop, "hang")),
    again(one("a warp gives an accumulator back twice", E1, "arrive free0", 0, Edit::Twice, "race")),
    again(one("a warp gives an accumulator back too early", E1, "arrive free0", 0, Edit::Earlier, "race")),
    again(one("an arrival in the own CTA", E1, "arrive free0", 0, Edit::Here, "hang")),
    again(one("a remote arrival at the scope of its CTA", E1, "arrive free0", 0, Edit::Narrow, "race")),
    again(one("a wait at the scope of its CTA", I0, "wait free0", 1, Edit::Narrow, "race")),
    one("a relaxed wait for operands", I0, "wait full0", 0, Edit::Relaxed, "race"),
    one("a relaxed wait for a stage", P1, "wait empty0", 1, Edit::Relaxed, "race"),
    one("columns are taken in one CTA alone", I1, "Take", 0, Edit::Drop, "hang"),
    one("the right to columns is given up in one CTA alone", I1, "Relinquish", 0, Edit::Drop, "hang"),
    one("the right to columns is given up too early", I0, "Take", 0, Edit::Later, "hang+protocol"),
    one("columns are given back before the last barrier", I1, "Give", 0, Edit::Earlier, "hang+lifetime"),
    all("columns are given back before the last barrier, in both CTAs", "Give", 0, Edit::Earlier, "lifetime"),
    one("columns are given back in one CTA alone", I1, "Give", 0, Edit::Drop, "hang+protocol"),
    all("columns are never given back", "Give", 0, Edit::Drop, "protocol"),
    all("too few columns are given back", "Give", 0, Edit::Number(32), "protocol"),
    all("no fence behind the setting up", "init fence", 0, Edit::Drop, "lifetime"),
    all(
        "no first barrier of the cluster",
        "barrier.cluster.arrive.relaxed",
        0,
        Edit::Drop,
        "lifetime+protocol",
    ),
    all("no last barrier of the cluster", "barrier.cluster.arrive.release", 0, Edit::Drop, "lifetime"),
    one(
        "a warp misses the last barrier of the cluster",
        E1,
        "barrier.cluster.arrive.release",
        0,
        Edit::Drop,
        "lifetime",
    ),
    all("no barrier before the address is read", "bar.sync", 0, Edit::Drop, "race"),
    one("the peer's producer leaves with a stage on its way", P1, "wait empty0", 3, Edit::Drop, "lifetime"),
];

#[test]
fn mistakes_in_the_product_of_a_pair() {
    assert_eq!(complaints(true, PAIR), [""; 0]);
}

const SINGLE: &[Mistake] = &[
    one("the producer waits for the wrong parity at first", P0, "wait empty0", 0, Edit::Parity, "hang"),
    one("the producer waits for the wrong parity later", P0, "wait empty0", 1, Edit::Parity, "race"),
    one("the issuer waits for the wrong parity at first", I0, "wait full0", 0, Edit::Parity, "race"),
    one("the issuer waits for the wrong parity later", I0, "wait full0", 1, Edit::Parity, "race"),
    one("the epilogue waits for the wrong parity", E0, "wait done0", 0, Edit::Parity, "race+hang+early-pass"),
    one("the issuer does not wait for operands", I0, "wait full1", 0, Edit::Drop, "race"),
    one("the producer does not wait for a stage", P0, "wait empty0", 1, Edit::Drop, "race"),
    one("the epilogue does not wait for a tile", E0, "wait done0", 0, Edit::Drop, "race+early-pass"),
    again(one("the issuer does not wait for an accumulator", I0, "wait free0", 1, Edit::Drop, "race")),
    one("no commit gives a stage back", I0, "commit empty0", 0, Edit::Drop, "hang"),
    one("no commit hands a tile over", I0, "commit done0", 0, Edit::Drop, "hang"),
    one("a commit before the product", I0, "commit empty0", 0, Edit::Earlier, "race+early-pass"),
    one("a commit to the wrong mbarrier", I0, "commit empty0", 0, Edit::At("empty1"), "hang"),
    one("no fence after the wait for a tile", E0, "after", 0, Edit::Drop, "race"),
    again(one("no fence after the wait for an accumulator", I0, "after", 2, Edit::Drop, "race")),
    again(one("no fence before the arrival", E0, "before", 0, Edit::Drop, "race")),
    again(one("no wait for the load", E0, "wait::ld", 0, Edit::Drop, "race+early-pass")),
    one("no wait for the last load", E0, "wait::ld", 1, Edit::Drop, "lifetime"),
    one("nothing announces the bytes", P0, "expect full0", 0, Edit::Drop, "hang"),
    one("half the bytes are announced", P0, "expect full0", 0, Edit::Number(64), "race"),
    one("too many bytes are announced", P0, "expect full0", 0, Edit::Number(256), "hang"),
    one("bytes are announced twice", P0, "expect full0", 0, Edit::Twice, "hang+protocol"),
    one("a copy reports to the wrong mbarrier", P0, "copy full0", 0, Edit::At("full1"), "hang"),
    one("a copy is forgotten", P0, "copy full0", 0, Edit::Drop, "hang"),
    one(
        "a copy lands in the wrong stage",
        P0,
        "copy full0",
        0,
        Edit::Words("[a+0]", "[a+64]"),
        "race+early-pass",
    ),
    one(
        "a product of the wrong stage",
        I0,
        "mma",
        1,
        Edit::Words("desc(a+64", "desc(a+128"),
        "race+early-pass",
    ),
    again(one(
        "a product into the wrong accumulator",
        I0,
        "mma",
        2,
        Edit::Words("[r0+32]", "[r0+0]"),
        "race+early-pass",
    )),
    one("operands are expected from two arrivals", P0, "init full0", 0, Edit::Number(2), "hang"),
    again(one("accumulators are expected from one warp alone", P0, "init free0", 0, Edit::Number(1), "race")),
    again(one(
        "accumulators are expected from a warp too many",
        P0,
        "init free0",
        0,
        Edit::Number(5),
        "hang",
    )),
    one("an mbarrier is not set up", P0, "init empty0", 0, Edit::Drop, "hang+lifetime"),
    again(one("a warp does not give an accumulator back", E0, "arrive free0", 0, Edit::Drop, "hang")),
    again(one(
        "a warp gives an accumulator back twice",
        E0,
        "arrive free0",
        0,
        Edit::Twice,
        "race+hang+protocol+early-pass",
    )),
    again(one("a warp gives an accumulator back too early", E0, "arrive free0", 0, Edit::Earlier, "race")),
    one("a relaxed wait for operands", I0, "wait full0", 0, Edit::Relaxed, "race"),
    one("a relaxed wait for a stage", P0, "wait empty0", 1, Edit::Relaxed, "race"),
    one("the right to columns is given up too early", I0, "Take", 0, Edit::Later, "protocol"),
    one("columns are given back before the last barrier", I0, "Give", 0, Edit::Earlier, "lifetime"),
    one("columns are never given back", I0, "Give", 0, Edit::Drop, "protocol"),
    one("too few columns are given back", I0, "Give", 0, Edit::Number(32), "protocol"),
    all("no last barrier", "bar.sync", 1, Edit::Drop, "lifetime"),
    all("no barrier before the address is read", "bar.sync", 0, Edit::Drop, "race"),
    one(
        "an epilogue of the wrong lanes",
        E0,
        "tcgen05.ld",
        0,
        Edit::Words("[r0+0]", "[r0+2097152]"),
        "protocol",
    ),
];

#[test]
fn mistakes_in_the_product_of_one_cta() {
    assert_eq!(complaints(false, SINGLE), [""; 0]);
}
