//! Which lanes of a warp run in one order.
//!
//! *Atoms* are the classes of lanes that execute the same instructions and take the same branches (S1). Atoms are put
//! together where one order says no more than several (`order`) and where no lanes conflict (`access`). What is put together
//! keeps the masks of its instructions, so arrivals, exits and barriers still count the lanes that execute them.

use super::access::{Access, Cell, accesses, conflicts, holds};
use super::course::{Course, meetings};
use super::flight::{Flights, flights};
use super::late::elsewhere;
use super::order::Order;
use crate::specialise::item::{Item, Late, Placed};
use crate::specialise::known::value::lanes as lanes_of;
use crate::specialise::touch::Touch;
use std::collections::BTreeSet;

/// Lanes that run in one order, and the bytes that they touch unordered all the same.
pub(super) struct Together {
    pub(super) lanes: u32,
    pub(super) cells: Vec<Cell>,
    /// The stretch of each item.
    pub(super) stretches: Vec<usize>,
    /// Where small copies are under way.
    pub(super) flights: Flights,
    /// The stores in which lanes write the same.
    pub(super) alike: BTreeSet<usize>,
}

/// A warp under this question.
struct Warp<'w> {
    items: &'w [Placed],
    late: &'w [Late],
    course: Course,
    order: Order<'w>,
    accesses: Vec<(usize, Access)>,
    flights: Flights,
}

impl Warp<'_> {
    /// Whether some of these lanes wait for others of them that are elsewhere.
    fn waits(&self, lanes: u32) -> bool {
        self.items.iter().any(|p| p.lanes & lanes != 0 && elsewhere(p) & lanes != 0)
    }

    /// The lanes in one order, or none if that says more than they have.
    fn together(&self, lanes: u32) -> Option<Together> {
        let meetings = meetings(self.items, lanes);
        let shared = || self.order.is_shared(lanes, &self.course, &meetings);
        let late = self.late.iter().any(|l| l.parts(lanes)) || self.waits(lanes);
        (!late && shared()).then(|| {
            let stretches = self.course.stretches(&meetings);
            let cells = conflicts(&self.accesses, lanes, &self.course, (&self.flights, &stretches));
            let alike = alike(self.items, &self.course, &stretches);
            Together { lanes, cells, stretches, flights: self.flights.clone(), alike }
        })
    }

    /// The lanes in one order, if they have no conflict.
    fn quiet(&self, lanes: u32) -> Option<Together> {
        self.together(lanes).filter(|t| t.cells.is_empty())
    }

    /// An atom in one order, or else each of its lanes.
    fn atom(&self, lanes: u32) -> Vec<Together> {
        match self.together(lanes) {
            Some(one) => vec![one],
            None => lanes_of(lanes).filter_map(|l| self.together(1 << l)).collect(),
        }
    }
}

/// The lanes of a warp by the order they run in; each lane is in one of them. `contested` says whether threads outside the
/// warp use bytes that one of them, or the warp, writes.
pub(super) fn parts(
    items: &[Placed],
    late: &[Late],
    lanes: u32,
    contested: &dyn Fn(&Touch) -> bool,
) -> Vec<Together> {
    let (course, order) = (Course::new(items), Order::new(items, contested));
    let (accesses, flights) = (accesses(items, &course), flights(items, &course));
    let warp = Warp { items, late, course, order, accesses, flights };
    if let Some(one) = warp.quiet(lanes) {
        return vec![one];
    }
    let mut out: Vec<Together> = Vec::new();
    for atom in atoms(items, lanes).into_iter().flat_map(|lanes| warp.atom(lanes)) {
        let with = |t: &Together| warp.quiet(t.lanes | atom.lanes);
        match out.iter_mut().find_map(|t| with(t).map(|both| (t, both))) {
            Some((one, both)) => *one = both,
            None => out.push(atom),
        }
    }
    out
}

/// The stores in which lanes write the same.
pub(super) fn alike(items: &[Placed], course: &Course, stretches: &[usize]) -> BTreeSet<usize> {
    let alike =
        |(n, p): &(usize, &Placed)| p.alike().is_some_and(|store| holds(&store, *n, course, stretches));
    items.iter().enumerate().filter(alike).map(|(n, _)| n).collect()
}

/// The classes of lanes that execute the same instructions, by their first lanes.
fn atoms(items: &[Placed], lanes: u32) -> Vec<u32> {
    let mut masks = BTreeSet::new();
    for placed in items {
        match &placed.item {
            Item::Op { .. } | Item::Exit | Item::Met(_) => drop(masks.insert(placed.lanes)),
            Item::Others { mask, .. } => masks.extend([*mask, placed.lanes]),
            _ => {}
        }
    }
    let mut out = vec![lanes];
    for mask in masks {
        let parted = out.into_iter().flat_map(|atom| [atom & mask, atom & !mask]);
        out = parted.filter(|atom| *atom != 0).collect();
    }
    out.sort_unstable_by_key(|atom| atom.trailing_zeros());
    out
}
