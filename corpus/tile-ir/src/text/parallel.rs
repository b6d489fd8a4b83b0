//! Operations on multicast memory, between grids that depend on each other, and the fence between aliases.

use super::{Read, Reader};
use crate::{Op, Reduction, Type};
use moire_program::text::scan::Parsed;

/// Words of this file.
pub(super) const WORDS: &[&str] = &[
    "multimem_load_reduce_view_tko",
    "multimem_reduce_view_tko",
    "multimem_store_view_tko",
    "memory_fence_alias_tko",
    "gdc_wait_tko",
    "gdc_launch_dependents_tko",
];

impl<'a> Reader<'a> {
    /// The operation `word`, whose word was read; nothing where it is not of this file.
    pub(super) fn parallel(&mut self, word: &str) -> Parsed<Option<Read>> {
        Ok(Some(match word {
            "multimem_load_reduce_view_tko" => self.load_reduce()?,
            "multimem_reduce_view_tko" => self.reduce()?,
            "multimem_store_view_tko" => self.multimem_store()?,
            "memory_fence_alias_tko" => {
                let at = self.scan.at;
                let token = self.value()?;
                self.agree(at, &[token], &[Type::Token])?;
                (Op::AliasFence { token }, vec![Type::Token])
            }
            "gdc_wait_tko" => {
                let token = self.token()?;
                (Op::GdcWait { token }, self.gives(false)?)
            }
            "gdc_launch_dependents_tko" => {
                let token = self.token()?;
                (Op::GdcLaunch { token }, self.gives(false)?)
            }
            _ => return Ok(None),
        }))
    }

    /// `attributes {reduction = #cuda_tile.multimem_reduction_kind<umax>}`; a sum where it is missing.
    fn reduction(&mut self) -> Parsed<Reduction> {
        if !self.scan.keyword("attributes") {
            return Ok(Reduction::Add);
        }
        self.scan.expect("{")?;
        self.keyword("reduction")?;
        self.scan.expect("=")?;
        self.scan.expect("#cuda_tile.multimem_reduction_kind")?;
        self.scan.expect("<")?;
        let reduction = self.one_of("reduction", Reduction::WORDS, Reduction::from_word)?;
        self.scan.expect(">")?;
        self.scan.expect("}")?;
        Ok(reduction)
    }

    fn load_reduce(&mut self) -> Parsed<Read> {
        let access = self.access()?;
        let mut place = self.place()?;
        let token = self.token()?;
        self.inbounds(&mut place)?;
        let reduction = self.reduction()?;
        self.stated_place(&[], &place, &[])?;
        let types = self.gives(true)?;
        Ok((Op::MultimemLoadReduce { place, reduction, access, token }, types))
    }

    fn reduce(&mut self) -> Parsed<Read> {
        let (order, scope) = (self.order()?, self.scope()?);
        let view = self.value()?;
        self.scan.expect(",")?;
        let value = self.value()?;
        let index = self.index()?;
        let mut place = crate::Place { view, inbounds: vec![false; index.len()], index };
        let token = self.token()?;
        self.inbounds(&mut place)?;
        let reduction = self.reduction()?;
        self.stated_place(&[], &place, &[value])?;
        let types = self.gives(false)?;
        Ok((Op::MultimemReduce { place, reduction, value, order, scope, token }, types))
    }

    fn multimem_store(&mut self) -> Parsed<Read> {
        let access = self.access()?;
        let view = self.value()?;
        self.scan.expect(",")?;
        let value = self.value()?;
        let index = self.index()?;
        let mut place = crate::Place { view, inbounds: vec![false; index.len()], index };
        let token = self.token()?;
        self.inbounds(&mut place)?;
        self.stated_place(&[], &place, &[value])?;
        let types = self.gives(false)?;
        Ok((Op::MultimemStore { place, value, access, token }, types))
    }
}
