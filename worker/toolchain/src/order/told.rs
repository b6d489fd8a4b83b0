//! Instructions that are neither accesses nor fences of the generic proxy: barriers in memory, copies, tensor memory.
//!
//! Each has an instruction of the machine, which keeps its place among the others of its thread. Where it releases or
//! acquires, it orders as an access does. At the scope of a CTA the machine needs no fence for it, because it waits for the
//! accesses before it.

use super::step::{Act, Scope, Step};
use super::text::Instr;
use super::unread::Unread;

/// Instructions of PTX, the first that fits, each with that of the machine.
const TOLD: &[(&str, &str)] = &[
    ("mbarrier.init", "SYNCS.EXCH"),
    ("mbarrier.inval", "SYNCS.CCTL"),
    ("mbarrier.arrive", "SYNCS.ARRIVE"),
    ("mbarrier.arrive_drop", "SYNCS.ARRIVE"),
    ("mbarrier.expect_tx", "SYNCS.ARRIVE"),
    ("mbarrier.complete_tx", "SYNCS.ARRIVE"),
    ("mbarrier.test_wait", "SYNCS.PHASECHK"),
    ("mbarrier.try_wait", "SYNCS.PHASECHK"),
    ("cp.async.bulk.commit_group", "UTMACMDFLUSH"),
    ("cp.async.bulk.wait_group", "DEPBAR.LE"),
    ("cp.async.bulk", "UBLKCP"),
    ("cp.reduce.async.bulk.tensor", "UTMAREDG"),
    ("cp.reduce.async.bulk", "UBLKRED"),
    ("cp.async.commit_group", "LDGDEPBAR"),
    ("cp.async.wait_group", "DEPBAR.LE"),
    ("cp.async.wait_all", "DEPBAR.LE"),
    ("cp.async.mbarrier", "ARRIVES.LDGSTSBAR"),
    ("cp.async", "LDGSTS"),
    ("st.async", "STAS"),
    ("red.async", "REDAS"),
    ("tcgen05.ld", "LDTM"),
    ("tcgen05.st", "STTM"),
    ("tcgen05.wait::st", "FENCE.VIEW.ASYNC.T"),
    ("tcgen05.commit", "UTCBAR"),
    ("tcgen05.mma", "UTCMMA"),
    ("tcgen05.cp", "UTCCP"),
    ("tcgen05.shift", "UTCSHIFT"),
    ("griddepcontrol.wait", "ACQBULK"),
    ("griddepcontrol.launch_dependents", "PREEXIT"),
];
/// Of these, what is done in tensor memory: fences of other memory do not order it.
const TENSOR: &[&str] = &["LDTM", "STTM", "UTCMMA", "UTCCP", "UTCSHIFT", "UTCBAR", "FENCE.VIEW.ASYNC.T"];
/// Copies of tensors, by their direction.
const TENSORS: [&str; 2] = ["UTMALDG", "UTMASTG"];
/// The fence between proxies.
const VIEW: &str = "FENCE.VIEW.ASYNC";
/// Barriers of the machine.
const BARRIERS: &[&str] = &["BAR.SYNC", "BAR.RED", "BAR.ARV", "UCGABAR_ARV", "UCGABAR_WAIT"];
/// Instructions that ask nothing of memory: hints, exchanges of registers in a warp, marks for the compiler.
const NOTHING: &[&str] = &[
    "nanosleep",
    "prefetch",
    "cp.async.bulk.prefetch",
    "pmevent",
    "elect",
    "shfl",
    "vote",
    "redux",
    "match",
    "activemask",
    "tcgen05.wait::ld",
    "mbarrier.pending_count",
    "fence.mbarrier_init",
];

/// The name of an instruction of the machine among those that are told here.
pub(super) fn named(instr: &Instr) -> Option<&'static str> {
    if instr.words[0].starts_with("UTC") && instr.words[0].ends_with("MMA") {
        return Some("UTCMMA");
    }
    let told = TOLD.iter().map(|(_, name)| name).chain(&TENSORS).chain(BARRIERS).chain([&VIEW]);
    told.copied().find(|name| instr.is(name))
}

/// Whether the second of two steps stays behind the first because of what they are; `None`: neither is told here.
pub(super) fn follows(first: Act, second: Act) -> Option<bool> {
    let tensor = |act: Act| matches!(act, Act::Named(name) if TENSOR.contains(&name));
    let named = |act: Act| matches!(act, Act::Named(_));
    match (tensor(first), tensor(second)) {
        (false, false) => (named(first) && named(second)).then_some(true),
        (true, true) => Some((first, second) != (Act::Named("LDTM"), Act::Named("LDTM"))),
        // `tcgen05.fence` has no instruction of the machine.
        _ => Some(first == Act::Order || second == Act::Order),
    }
}

/// The steps of an instruction of PTX that is told here; `None`: it is another one.
pub(super) fn steps(instr: &Instr) -> Option<Result<Vec<Step>, Unread>> {
    if NOTHING.iter().any(|name| instr.is(name)) {
        return Some(Ok(Vec::new()));
    }
    if instr.words.get(1).is_some_and(|w| w.starts_with("fence::")) {
        return Some(Ok(vec![Step::new(Act::Order).before().after()]));
    }
    if instr.has("async") && !instr.has("shared::cluster") && (instr.is("st") || instr.is("red")) {
        return Some(Err(Unread::of(instr)));
    }
    if instr.is("fence.proxy") {
        return Some(proxy(instr));
    }
    let (_, name) = TOLD.iter().find(|(ptx, _)| instr.is(ptx))?;
    let tensor = instr.is("cp.async.bulk.tensor");
    let at = |word: &str| instr.words.iter().position(|w| w.starts_with(word));
    let name = if tensor { TENSORS[usize::from(at("global") < at("shared"))] } else { *name };
    Some(Ok(around(instr, name)))
}

/// The step with what its order asks for around it.
fn around(instr: &Instr, name: &'static str) -> Vec<Step> {
    let waits = name == "SYNCS.PHASECHK" || name == "DEPBAR.LE";
    let relaxed = instr.has("relaxed");
    let wide = instr.has("cluster");
    let step = Step::new(Act::Named(name));
    match name {
        "SYNCS.ARRIVE" if instr.is("mbarrier.arrive") || instr.is("mbarrier.arrive_drop") => {
            let fence = Step::new(Act::Fence { scope: Scope::Gpu, sc: false }).before();
            let arrive = if relaxed { step } else { step.before() };
            (wide && !relaxed).then_some(fence).into_iter().chain([arrive]).collect()
        }
        _ if waits && !relaxed => {
            let invalidate = (wide && name == "SYNCS.PHASECHK").then(|| Step::new(Act::Invalidate).after());
            // `.read` waits until sources have been read (PTX ISA, cp.async.bulk.wait_group): they may be written then.
            let frees = instr.has("read");
            [Step { frees, ..step.after() }].into_iter().chain(invalidate).collect()
        }
        _ => vec![step],
    }
}

/// A fence between proxies.
fn proxy(instr: &Instr) -> Result<Vec<Step>, Unread> {
    let fence = Step::new(Act::Named(VIEW)).before().after();
    match instr.words.get(2).map(String::as_str) {
        Some("alias") => Ok(vec![Step::new(Act::Fence { scope: Scope::Gpu, sc: true }).before().after()]),
        Some("async") => {
            Ok(vec![Step { shared: instr.words.iter().any(|w| w.starts_with("shared")), ..fence }])
        }
        _ => Err(Unread::of(instr)),
    }
}
