//! Memory operations read from the bytecode.

use super::Bytecode;
use super::bytes::Taken;
use super::codes::op;
use super::read_ops::Body;
use moire_tile_ir::{AtomicMode, Op, Place, Reduction, Type, Value};

impl Body<'_> {
    pub(super) fn through_pointers(&mut self, code: u64) -> Taken<(Op, Vec<Type>)> {
        let types = self.types(if code == op::STORE_PTR { 1 } else { 2 })?;
        let op = match code {
            op::LOAD_PTR => {
                let [scoped, hinted, masked, padded, waits] = self.flags()?;
                let access = self.access(scoped)?;
                let hints = self.hints(hinted)?;
                let pointers = self.value()?;
                let (mask, padding) = (self.given(masked)?, self.given(padded)?);
                Op::LoadPtr { pointers, access, hints, mask, padding, token: self.given(waits)? }
            }
            op::STORE_PTR => {
                let [scoped, hinted, masked, waits] = self.flags()?;
                let access = self.access(scoped)?;
                let hints = self.hints(hinted)?;
                let (pointers, value) = (self.value()?, self.value()?);
                let mask = self.given(masked)?;
                Op::StorePtr { pointers, value, access, hints, mask, token: self.given(waits)? }
            }
            op::ATOMIC_RMW => {
                let [masked, waits] = self.flags()?;
                let (order, scope) = (self.order()?, self.scope()?);
                let mode = self.word("atomic operation", AtomicMode::from_code)?;
                let (pointers, value) = (self.value()?, self.value()?);
                let mask = self.given(masked)?;
                Op::AtomicRmw { pointers, mode, value, order, scope, mask, token: self.given(waits)? }
            }
            _ => {
                let [masked, waits] = self.flags()?;
                let (order, scope) = (self.order()?, self.scope()?);
                let (pointers, compare, value) = (self.value()?, self.value()?, self.value()?);
                let mask = self.given(masked)?;
                Op::AtomicCas { pointers, compare, value, order, scope, mask, token: self.given(waits)? }
            }
        };
        Ok((op, types))
    }

    /// Promises about indices, where the version has them.
    fn inbounds(&mut self, least: Bytecode) -> Taken<Option<Vec<bool>>> {
        if self.version < least {
            return Ok(None);
        }
        let n = self.c.count()?;
        Ok(Some(self.c.take(n)?.iter().map(|b| *b != 0).collect()))
    }

    fn place(&mut self, view: Value, inbounds: Option<Vec<bool>>) -> Taken<Place> {
        let index = self.counted()?;
        let inbounds = inbounds.unwrap_or_else(|| vec![false; index.len()]);
        Ok(Place { view, index, inbounds })
    }

    pub(super) fn through_view(&mut self, code: u64) -> Taken<(Op, Vec<Type>)> {
        let types = self.counted_types()?;
        let op = if code == op::ATOMIC_RED_VIEW {
            let [waits] = self.flags()?;
            let (order, scope) = (self.order()?, self.scope()?);
            let mode = self.word("atomic operation", AtomicMode::from_code)?;
            let inbounds = self.inbounds(Bytecode::V13_5)?;
            let view = self.value()?;
            let place = self.place(view, inbounds)?;
            let value = self.value()?;
            Op::AtomicRedView { place, mode, value, order, scope, token: self.given(waits)? }
        } else {
            let [scoped, hinted, waits] = self.flags()?;
            let access = self.access(scoped)?;
            let hints = self.hints(hinted)?;
            let inbounds = self.inbounds(Bytecode::V13_4)?;
            let value = self.given(code == op::STORE_VIEW)?;
            let view = self.value()?;
            let place = self.place(view, inbounds)?;
            let token = self.given(waits)?;
            match value {
                Some(value) => Op::StoreView { place, value, access, hints, token },
                None => Op::LoadView { place, access, hints, token },
            }
        };
        Ok((op, types))
    }

    pub(super) fn multimem(&mut self, code: u64) -> Taken<(Op, Vec<Type>)> {
        let types = self.counted_types()?;
        let op = if code == op::MULTIMEM_REDUCE {
            let [waits] = self.flags()?;
            let (order, scope) = (self.order()?, self.scope()?);
            let reduction = self.word("reduction", Reduction::from_code)?;
            let inbounds = self.inbounds(Bytecode::V13_5)?;
            let (view, value) = (self.value()?, self.value()?);
            let place = self.place(view, inbounds)?;
            Op::MultimemReduce { place, reduction, value, order, scope, token: self.given(waits)? }
        } else {
            let [scoped, waits] = self.flags()?;
            let access = self.access(scoped)?;
            let load = code == op::MULTIMEM_LOAD_REDUCE;
            let reduction = if load { Some(self.word("reduction", Reduction::from_code)?) } else { None };
            let inbounds = self.inbounds(Bytecode::V13_5)?;
            let view = self.value()?;
            let value = self.given(!load)?;
            let place = self.place(view, inbounds)?;
            let token = self.given(waits)?;
            match (reduction, value) {
                (Some(reduction), _) => Op::MultimemLoadReduce { place, reduction, access, token },
                (None, Some(value)) => Op::MultimemStore { place, value, access, token },
                (None, None) => return self.c.error("nothing is stored"),
            }
        };
        Ok((op, types))
    }
}
