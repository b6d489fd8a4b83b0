//! `vote.sync`, `shfl.sync`, `match.sync`, `redux.sync`.

use super::reader::Reader;
use crate::ir::*;
use crate::text::print::{EXCHANGES, REDUCTIONS};
use crate::text::scan::Parsed;

const NONE: [Operand; 2] = [Operand::Imm(0); 2];

/// The exchange that a name with its qualifiers means.
fn exchange(r: &Reader<'_, '_>, family: &str, words: &[&str]) -> Parsed<Exchange> {
    let text = format!("{family}.{}", words.join("."));
    let known = EXCHANGES.iter().filter(|(name, _)| name.starts_with(family));
    if let Some((_, form)) = known.clone().find(|(name, _)| *name == text) {
        return Ok(*form);
    }
    let names: Vec<&str> = known.map(|(name, _)| *name).collect();
    r.fail(format!("`{text}` is not a form of {family}"), Some(format!("known are {}", names.join(", "))))
}

/// `d` or `d|p`
fn results(r: &mut Reader<'_, '_>) -> Parsed<(Reg, Option<Reg>)> {
    let dst = r.reg()?;
    let pred = if r.scan.take("|") { Some(r.reg()?) } else { None };
    r.scan.expect(",").map(|()| (dst, pred))
}

fn push(
    r: &mut Reader<'_, '_>,
    form: Exchange,
    (dst, pred): (Reg, Option<Reg>),
    (src, negated): (Operand, bool),
    from: [Operand; 2],
) -> Parsed<()> {
    r.scan.expect(",")?;
    let mask = r.value("mask of lanes", "a number")?;
    r.push(Op::Control(Control::Collective(Collective { form, dst, pred, src, negated, from, mask })))
}

/// `vote.sync.any.pred p, !a, mask`
pub(super) fn vote(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let form = exchange(r, "vote", words)?;
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let negated = r.scan.take("!");
    let src = Operand::Reg(r.reg()?);
    push(r, form, (dst, None), (src, negated), NONE)
}

/// `shfl.sync.idx.b32 d|p, a, b, c, mask`
pub(super) fn shuffle(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let form = exchange(r, "shfl", words)?;
    let dst = results(r)?;
    let src = r.value("value", "a number")?;
    r.scan.expect(",")?;
    let by = r.value("lane", "a number")?;
    r.scan.expect(",")?;
    let clamp = r.value("clamp", "a number")?;
    push(r, form, dst, (src, false), [by, clamp])
}

/// `match.any.sync.b32 d, a, mask`, `match.all.sync.b32 d|p, a, mask`
pub(super) fn matches(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let form = exchange(r, "match", words)?;
    let dst = results(r)?;
    if dst.1.is_some() && form == Exchange::MatchAny {
        return r.fail("match.any has one result".into(), None);
    }
    let src = r.value("value", "a number")?;
    push(r, form, dst, (src, false), NONE)
}

/// `redux.sync.add.u32 d, a, mask`
pub(super) fn redux(r: &mut Reader<'_, '_>, words: &[&str]) -> Parsed<()> {
    let text = words.join(".");
    let form = REDUCTIONS.iter().find(|(name, ..)| text.strip_prefix("sync.") == Some(name));
    let Some((_, op, ty)) = form else {
        let hint = "for example redux.sync.add.u32 or redux.sync.or.b32".to_owned();
        return r.fail("this is not a form of redux".into(), Some(hint));
    };
    let dst = r.reg()?;
    r.scan.expect(",")?;
    let src = r.value("value", "a number")?;
    push(r, Exchange::Reduce(*op, *ty), (dst, None), (src, false), NONE)
}
