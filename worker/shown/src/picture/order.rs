//! A time for each event: behind what its thread did before and behind the write that it reads, as far as there is no cycle.

use super::Picture;
use std::collections::BTreeMap;

/// The events of threads, in an order of time.
pub(crate) struct Timed {
    /// Positions of events.
    pub(crate) order: Vec<usize>,
    /// The row of each.
    pub(crate) row: BTreeMap<usize, usize>,
    /// The threads that have events, in the order of the program.
    pub(crate) lanes: Vec<String>,
}

impl Timed {
    pub(crate) fn new(picture: &Picture<'_>) -> Self {
        let events = &picture.execution.events;
        let own = |t: &String| {
            let mut all: Vec<usize> =
                (0..events.len()).filter(|e| events[*e].thread.as_ref() == Some(t)).collect();
            all.sort_by_key(|e| events[*e].index);
            (t.clone(), all)
        };
        let mut left: Vec<(String, Vec<usize>)> =
            picture.threads.iter().map(own).filter(|l| !l.1.is_empty()).collect();
        let lanes = left.iter().map(|l| l.0.clone()).collect();
        let mut row: BTreeMap<usize, usize> = BTreeMap::new();
        let mut order = Vec::new();
        while let Some(next) = next(picture, &left, &row) {
            let e = left[next].1.remove(0);
            row.insert(e, order.len());
            order.push(e);
        }
        Timed { order, row, lanes }
    }
}

/// The lane whose next event has everything before it that it follows; the first lane with an event where there is a cycle.
fn next(picture: &Picture<'_>, left: &[(String, Vec<usize>)], row: &BTreeMap<usize, usize>) -> Option<usize> {
    let (events, edges) = (&picture.execution.events, &picture.execution.edges);
    let open = |e: usize| events[e].thread.is_some() && !row.contains_key(&e);
    let ready = |e: usize| {
        edges
            .iter()
            .all(|edge| edge.to != e || !matches!(edge.kind.as_str(), "rf" | "co") || !open(edge.from))
    };
    let heads = || left.iter().enumerate().filter_map(|(n, l)| Some((n, *l.1.first()?)));
    heads().find(|h| ready(h.1)).or_else(|| heads().next()).map(|h| h.0)
}
