//! Reads `mbarrier.*` and `mapa`: the forms of layout v0 that the assembler accepts.
//!
//! PTX ISA 9.2, 9.7.13.15. The reader refuses what `ptxas` refuses: scopes beyond the cluster, waits at a remote object, a
//! state from a remote arrival, counts and parities out of range. Layout v1, conditional phases and `pending_count` are
//! refused with a message.

use super::qualifiers::{parse_type, scope_of};
use super::reader::Reader;
use crate::ir::*;
use crate::text::scan::{Parsed, closest};

const FORMS: [&str; 9] = [
    "init",
    "inval",
    "arrive",
    "arrive_drop",
    "expect_tx",
    "complete_tx",
    "test_wait",
    "try_wait",
    "pending_count",
];

/// The qualifiers of an mbarrier instruction.
#[derive(Default)]
struct Words {
    /// True for `.relaxed`, false for `.acquire` and `.release`.
    order: Option<bool>,
    scope: Option<Scope>,
    space: Option<Space>,
    typed: bool,
    expect_tx: bool,
    no_complete: bool,
    parity: bool,
}

pub(super) fn mbarrier(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let Some((form, rest)) = words.split_first() else {
        return r.fail("expected a form of mbarrier".into(), Some(format!("known are {}", FORMS.join(", "))));
    };
    if *form == "pending_count" {
        let why = "mbarrier.pending_count is not read: the order of the arrivals of one phase is not kept";
        return r.fail(why.into(), Some("wait for the phase instead".into()));
    }
    if !FORMS.contains(form) {
        let hint = closest(form, &FORMS).map(|k| format!("did you mean `.{k}`?"));
        return r.fail(format!("`mbarrier.{form}` is not known"), hint);
    }
    let w = read_words(r, form, rest)?;
    match *form {
        "init" | "inval" => lifetime(r, form, &w),
        "arrive" | "arrive_drop" => arrive(r, form, &w),
        "expect_tx" | "complete_tx" => transaction(r, form, &w),
        _ => wait(r, form, &w),
    }
}

fn read_words(r: &Reader<'_, '_>, form: &str, words: &[&str]) -> Parsed<Words> {
    let mut w = Words::default();
    let (arrives, waits) = (form.starts_with("arrive"), form.ends_with("_wait"));
    let counts = form.ends_with("_tx");
    for word in words {
        match *word {
            "relaxed" if arrives || waits || counts => w.order = Some(true),
            "release" if arrives => w.order = Some(false),
            "acquire" if waits => w.order = Some(false),
            "cta" | "cluster" if arrives || waits || counts => w.scope = scope_of(word),
            "shared" | "shared::cta" => w.space = Some(Space::SharedCta),
            "shared::cluster" if arrives || counts => w.space = Some(Space::SharedCluster),
            "expect_tx" if arrives => w.expect_tx = true,
            "noComplete" if arrives => w.no_complete = true,
            "parity" if waits => w.parity = true,
            "b64" => w.typed = true,
            other if other.starts_with("layout::") || other.starts_with("phase_type::") => {
                let hint = "only layout v0 is modelled, where both phases move together";
                return r.fail(format!("`.{other}` is not read"), Some(hint.into()));
            }
            "gpu" | "sys" => {
                return r.fail(
                    format!("`.{word}` is not a scope of mbarrier.{form}"),
                    Some("an mbarrier has scopes .cta and .cluster".into()),
                );
            }
            "shared::cluster" => {
                return r.fail(
                    format!("mbarrier.{form} takes an object of its own CTA"),
                    Some("use .shared::cta".into()),
                );
            }
            other => return r.fail(format!("`.{other}` is not a qualifier of mbarrier.{form}"), None),
        }
    }
    if !w.typed {
        return r.fail(format!("mbarrier.{form} needs a type"), Some("end it with .b64".into()));
    }
    if w.order.is_some() != w.scope.is_some() {
        return r.fail(
            "mbarrier needs both an order and a scope, or neither".into(),
            Some("for example `.release.cluster`".into()),
        );
    }
    Ok(w)
}

/// Reads an operand. If it is a number, it must lie between `least` and `most`.
fn bounded(r: &mut Reader<'_, '_>, what: &str, least: i128, most: i128) -> Parsed<Operand> {
    r.scan.rest();
    let at = r.scan.at;
    let operand = r.operand()?;
    match operand {
        Operand::Imm(n) if n < least || n > most => {
            let message = format!("{what} {n} is out of range");
            Err(r.scan.error_at(at, message, Some(format!("it is between {least} and {most}"))))
        }
        _ => Ok(operand),
    }
}

/// Reads an arrival count, even one larger than an mbarrier holds: the model defines its effect.
fn arrivals(r: &mut Reader<'_, '_>) -> Parsed<Operand> {
    bounded(r, "an arrival count of", 1, i128::from(u32::MAX))
}

fn transactions(r: &mut Reader<'_, '_>) -> Parsed<Operand> {
    bounded(r, "a transaction count of", i128::from(i32::MIN), i128::from(u32::MAX))
}

fn lifetime(r: &mut Reader<'_, '_>, form: &str, w: &Words) -> Parsed<()> {
    let addr = r.address()?;
    let op = if form == "init" {
        r.scan.expect(",")?;
        MbarrierOp::Init { count: bounded(r, "a count of", 1, i128::from(MBARRIER_COUNT))? }
    } else {
        MbarrierOp::Inval
    };
    mbarrier_on(r, op, w, addr)
}

fn mbarrier_on(r: &mut Reader<'_, '_>, op: MbarrierOp, w: &Words, addr: Address) -> Parsed<()> {
    let space = w.space.unwrap_or(Space::Generic);
    r.push(Op::Mbarrier(Mbarrier { op, space, addr }))
}

fn arrive(r: &mut Reader<'_, '_>, form: &str, w: &Words) -> Parsed<()> {
    let dst = if r.scan.keyword("_") { None } else { Some(r.reg()?) };
    if dst.is_some() && w.space == Some(Space::SharedCluster) {
        return r.fail("a remote arrival returns no state".into(), Some("write the sink `_`".into()));
    }
    r.scan.expect(",")?;
    let addr = r.address()?;
    let (mut count, mut tx) = (None, None);
    if w.expect_tx {
        r.scan.expect(",")?;
        tx = Some(transactions(r)?);
    } else if w.no_complete || r.scan.peek(",") {
        r.scan.expect(",")?;
        count = Some(arrivals(r)?);
    }
    if w.no_complete && (w.expect_tx || w.order == Some(true) || w.scope == Some(Scope::Cluster)) {
        return r.fail(".noComplete goes with .release.cta only".into(), None);
    }
    if w.no_complete && w.space == Some(Space::SharedCluster) {
        return r.fail(".noComplete takes an object of its own CTA".into(), None);
    }
    let arrive = MbarrierArrive {
        drop: form == "arrive_drop",
        no_complete: w.no_complete,
        relaxed: w.order == Some(true),
        scope: w.scope.unwrap_or(Scope::Cta),
        dst,
        count,
        tx,
    };
    mbarrier_on(r, MbarrierOp::Arrive(arrive), w, addr)
}

fn transaction(r: &mut Reader<'_, '_>, form: &str, w: &Words) -> Parsed<()> {
    let addr = r.address()?;
    r.scan.expect(",")?;
    let (scope, bytes) = (w.scope.unwrap_or(Scope::Cta), transactions(r)?);
    let op = if form == "expect_tx" {
        MbarrierOp::ExpectTx { scope, bytes }
    } else {
        MbarrierOp::CompleteTx { scope, bytes }
    };
    mbarrier_on(r, op, w, addr)
}

fn wait(r: &mut Reader<'_, '_>, form: &str, w: &Words) -> Parsed<()> {
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let addr = r.address()?;
    r.scan.expect(",")?;
    let phase = if w.parity { bounded(r, "a parity of", 0, 1)? } else { Operand::Reg(r.reg()?) };
    let suspends = form == "try_wait";
    let hint = if suspends && r.scan.take(",") { Some(r.operand()?) } else { None };
    let wait = MbarrierWait {
        suspends,
        relaxed: w.order == Some(true),
        scope: w.scope.unwrap_or(Scope::Cta),
        dst,
        phase,
        parity: w.parity,
        hint,
    };
    mbarrier_on(r, MbarrierOp::Wait(wait), w, addr)
}

/// `mapa{.shared::cluster}.u32 d, a, rank`
pub(super) fn mapa(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let shared = words.contains(&"shared::cluster");
    let ty =
        words.iter().find_map(|w| parse_type(w)).filter(|t| matches!(t, Ty::U(32 | 64) | Ty::S(32 | 64)));
    let known = words.iter().all(|w| *w == "shared::cluster" || parse_type(w).is_some());
    let (Some(ty), true) = (ty, known) else {
        return r.fail(
            "mapa has the type .u32, .s32, .u64 or .s64".into(),
            Some("`mapa.shared::cluster.u32`".into()),
        );
    };
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let src = r.operand()?;
    r.scan.expect(",")?;
    let rank = r.operand()?;
    r.push(Op::Mapa { ty, shared, dst, src, rank })
}
