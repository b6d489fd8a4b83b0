//! Which loads decide something, and what is computed from which loads, without running a kernel.

use super::known::depends::Slices;
use super::known::flow::effects;
use super::known::strides::address;
use super::word::{Told, join_told};
use crate::ptx::{Kernel, Sort, Statement, What, sort};
use moire_program::ir::Op;
use std::collections::{BTreeMap, BTreeSet};

/// What loads decide.
pub(crate) struct Led {
    /// The loads that a guard depends on, or the address of such a load.
    deciding: BTreeSet<usize>,
    /// The loads that what a store or a copy reads is computed from.
    stores: BTreeMap<usize, BTreeSet<usize>>,
    /// The same of the address of an access, and whether that is in shared memory.
    places: BTreeMap<usize, (bool, BTreeSet<usize>)>,
}

impl Led {
    pub(super) fn new(kernel: &Kernel) -> Self {
        let slices = Slices::new(kernel);
        let all = || kernel.body.iter().enumerate();
        let of = |pc: usize, reg| (pc, slices.loads(vec![(pc, reg)]));
        let places = all().filter_map(|(pc, s)| Some((pc, address(s)?)));
        let places: BTreeMap<_, _> =
            places.map(|(pc, (shared, reg))| (pc, (shared, of(pc, reg).1))).collect();
        let mut deciding = slices.loads(all().filter_map(|(pc, s)| Some((pc, s.guard?.reg))).collect());
        let mut more = deciding.clone();
        while let Some(load) = more.pop_first() {
            let new = places.get(&load).map_or(BTreeSet::new(), |place| &place.1 - &deciding);
            deciding.extend(&new);
            more.extend(new);
        }
        let read = |pc: usize| effects(&kernel.body[pc]).1.into_iter().map(|reg| (pc, reg)).collect();
        let stores = all().filter(|(_, s)| hands_on(s)).map(|(pc, _)| (pc, slices.loads(read(pc))));
        Led { deciding, stores: stores.collect(), places }
    }

    /// For each access the loads that its address is computed from, and whether it is of shared memory.
    pub(super) fn places(&self) -> &BTreeMap<usize, (bool, BTreeSet<usize>)> {
        &self.places
    }

    pub(super) fn decides(&self, pc: usize) -> bool {
        self.deciding.contains(&pc)
    }

    /// The pointers behind which the words are that a store or a copy reads what is computed from.
    pub(super) fn told(&self, pc: usize, told: &BTreeMap<usize, Told>) -> Told {
        let mut out = Told::new();
        let loads = self.stores.get(&pc).into_iter().flatten();
        loads.filter_map(|load| told.get(load)).for_each(|more| join_told(&mut out, more));
        out
    }
}

/// Whether a statement stores, or copies boxes.
fn hands_on(statement: &Statement) -> bool {
    match &statement.what {
        What::Core(op) => matches!(op, Op::Store { .. } | Op::AsyncCopy(_)),
        What::Plain(instr) => matches!(sort(instr), Sort::Store(_)),
        What::Branch { .. } | What::Table { .. } | What::Exit => false,
    }
}
