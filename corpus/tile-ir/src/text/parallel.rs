//! Reads operations on multicast memory, operations between dependent grids, and the alias fence.

use super::memory::{access, gives, inbounds, index, order, place, scope, stated_place, token};
use super::reader::{Read, Reader};
use crate::{Op, Reduction, Type};
use moire_program::text::scan::Parsed;

/// The operations that this file reads.
pub(super) const WORDS: &[&str] = &[
    "multimem_load_reduce_view_tko",
    "multimem_reduce_view_tko",
    "multimem_store_view_tko",
    "memory_fence_alias_tko",
    "gdc_wait_tko",
    "gdc_launch_dependents_tko",
];

/// Reads the rest of the operation `word`; `None` if another file reads it.
pub(super) fn parallel(r: &mut Reader<'_>, word: &str) -> Parsed<Option<Read>> {
    Ok(Some(match word {
        "multimem_load_reduce_view_tko" => load_reduce(r)?,
        "multimem_reduce_view_tko" => reduce(r)?,
        "multimem_store_view_tko" => multimem_store(r)?,
        "memory_fence_alias_tko" => {
            let at = r.scan.at;
            let token = r.value()?;
            r.agree(at, &[token], &[Type::Token])?;
            (Op::AliasFence { token }, vec![Type::Token])
        }
        "gdc_wait_tko" => {
            let token = token(r)?;
            (Op::GdcWait { token }, gives(r, false)?)
        }
        "gdc_launch_dependents_tko" => {
            let token = token(r)?;
            (Op::GdcLaunch { token }, gives(r, false)?)
        }
        _ => return Ok(None),
    }))
}

/// `attributes {reduction = #cuda_tile.multimem_reduction_kind<umax>}`; without it the reduction is a sum.
fn reduction(r: &mut Reader<'_>) -> Parsed<Reduction> {
    if !r.scan.keyword("attributes") {
        return Ok(Reduction::Add);
    }
    r.scan.expect("{")?;
    r.keyword("reduction")?;
    r.scan.expect("=")?;
    r.scan.expect("#cuda_tile.multimem_reduction_kind")?;
    r.scan.expect("<")?;
    let reduction = r.one_of("reduction", Reduction::WORDS, Reduction::from_word)?;
    r.scan.expect(">")?;
    r.scan.expect("}")?;
    Ok(reduction)
}

fn load_reduce(r: &mut Reader<'_>) -> Parsed<Read> {
    let access = access(r)?;
    let mut place = place(r)?;
    let token = token(r)?;
    inbounds(r, &mut place)?;
    let reduction = reduction(r)?;
    stated_place(r, &[], &place, &[])?;
    let types = gives(r, true)?;
    Ok((Op::MultimemLoadReduce { place, reduction, access, token }, types))
}

fn reduce(r: &mut Reader<'_>) -> Parsed<Read> {
    let (order, scope) = (order(r)?, scope(r)?);
    let view = r.value()?;
    r.scan.expect(",")?;
    let value = r.value()?;
    let index = index(r)?;
    let mut place = crate::Place { view, inbounds: vec![false; index.len()], index };
    let token = token(r)?;
    inbounds(r, &mut place)?;
    let reduction = reduction(r)?;
    stated_place(r, &[], &place, &[value])?;
    let types = gives(r, false)?;
    Ok((Op::MultimemReduce { place, reduction, value, order, scope, token }, types))
}

fn multimem_store(r: &mut Reader<'_>) -> Parsed<Read> {
    let access = access(r)?;
    let view = r.value()?;
    r.scan.expect(",")?;
    let value = r.value()?;
    let index = index(r)?;
    let mut place = crate::Place { view, inbounds: vec![false; index.len()], index };
    let token = token(r)?;
    inbounds(r, &mut place)?;
    stated_place(r, &[], &place, &[value])?;
    let types = gives(r, false)?;
    Ok((Op::MultimemStore { place, value, access, token }, types))
}
