//! Commits a batch: whole, or in parts if the store refuses its content.
//!
//! Contract: what one message made unstorable costs that message alone. An item is committed with the findings it led to,
//! the steps of an exploration with its totals and pieces, also in parts. A batch of n parts with k that are refused takes
//! about k log n commits. A store that fails for another reason ends the batch with that error.

use moire_corpus::{Hash, ItemDone, Receipt, Store, StoreError, Write};
use std::collections::BTreeMap;

/// A part that the store refused.
#[derive(Debug)]
pub(crate) struct RefusedPart {
    pub(crate) writes: Vec<Write>,
    pub(crate) why: StoreError,
}

/// What a part of a batch is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// One item of a campaign, with its findings.
    Item(String, Box<ItemDone>),
    /// A campaign itself.
    Campaign(String),
    /// Steps of an exploration.
    Exploration(Hash),
    /// A record that others do not depend on.
    Other,
}

impl RefusedPart {
    /// What it is about.
    pub(crate) fn subject(&self) -> Subject {
        let of = |write: &Write| match write {
            Write::Items { campaign, items } => {
                Some(Subject::Item(campaign.clone(), Box::new(items.first()?.clone())))
            }
            Write::Campaign(campaign) => Some(Subject::Campaign(campaign.name.clone())),
            other => exploration(other).map(Subject::Exploration),
        };
        self.writes.iter().rev().find_map(of).unwrap_or(Subject::Other)
    }
}

/// The exploration that a write belongs to.
fn exploration(write: &Write) -> Option<Hash> {
    match write {
        Write::Exploration { id, .. }
        | Write::Explored { id, .. }
        | Write::Piece { id, .. }
        | Write::Mark { id, .. } => Some(*id),
        _ => None,
    }
}

/// The parts of a batch, each durable as a whole or not at all.
fn parts(writes: Vec<Write>) -> Vec<Vec<Write>> {
    let mut out = Vec::new();
    // Findings and sightings stand before the items that they belong to, each finding before its sighting.
    let mut shown: BTreeMap<(String, u64), Vec<Write>> = BTreeMap::new();
    let mut finding: Option<Write> = None;
    let mut explorations: BTreeMap<Hash, Vec<Write>> = BTreeMap::new();
    for write in writes {
        match write {
            Write::Finding(_) => out.extend(finding.replace(write).map(|alone| vec![alone])),
            Write::Sighting { ref campaign, item, .. } => {
                let of = shown.entry((campaign.clone(), item)).or_default();
                of.extend(finding.take());
                of.push(write);
            }
            Write::Items { campaign, items } => out.extend(items.into_iter().map(|done| {
                let mut part = shown.remove(&(campaign.clone(), done.item)).unwrap_or_default();
                part.push(Write::Items { campaign: campaign.clone(), items: vec![done] });
                part
            })),
            other => match exploration(&other) {
                Some(id) => explorations.entry(id).or_default().push(other),
                None => out.push(vec![other]),
            },
        }
    }
    out.extend(finding.map(|alone| vec![alone]));
    out.extend(shown.into_values());
    out.extend(explorations.into_values());
    out
}

/// Makes a batch durable, without the parts that the store refuses for their content.
///
/// # Errors
/// The store failed.
pub(crate) fn commit(
    store: &mut Store,
    writes: Vec<Write>,
) -> Result<(Receipt, Vec<RefusedPart>), StoreError> {
    match store.commit(&writes) {
        Ok(receipt) => return Ok((receipt, Vec::new())),
        Err(why) if !why.is_about_content() => return Err(why),
        Err(_) => {}
    }
    let (mut receipt, mut refused) = (Receipt::default(), Vec::new());
    let mut open = vec![parts(writes)];
    while let Some(mut part) = open.pop() {
        let writes: Vec<Write> = part.iter().flatten().cloned().collect();
        match store.commit(&writes) {
            Ok(later) => receipt.add(later),
            Err(why) if !why.is_about_content() => return Err(why),
            Err(why) if part.len() < 2 => refused.push(RefusedPart { writes, why }),
            Err(_) => {
                let rest = part.split_off(part.len() / 2);
                open.extend([rest, part]);
            }
        }
    }
    Ok((receipt, refused))
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_corpus::{Campaign, Counters, Finding, Options, VALUE_BYTES_MAX};

    fn items(campaign: &str, items: std::ops::Range<u64>) -> Write {
        let done = |item| ItemDone { item, epoch: 1, counters: Counters::default(), ..ItemDone::default() };
        Write::Items { campaign: campaign.to_owned(), items: items.map(done).collect() }
    }

    fn found(campaign: &str, item: u64, bytes: usize) -> [Write; 2] {
        let id = Hash::of(&item.to_le_bytes());
        let finding = Finding { id, reduced: "x".repeat(bytes), ..Finding::default() };
        [
            Write::Finding(Box::new(finding)),
            Write::Sighting { campaign: campaign.to_owned(), item, finding: id },
        ]
    }

    #[test]
    fn what_cannot_be_stored_costs_its_item_alone() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { reserve_bytes: 4096, cache_bytes: 1 << 20, ..Options::default() };
        let (mut store, _) = Store::open(dir.path(), options).unwrap();
        for name in ["a", "b"] {
            let campaign = Campaign { name: name.to_owned(), ..Campaign::default() };
            store.commit([Write::Campaign(Box::new(campaign))]).unwrap();
        }
        let mut writes = Vec::new();
        for (item, bytes) in [(3, 10), (5, VALUE_BYTES_MAX), (7, 10)] {
            writes.extend(found("a", item, bytes));
        }
        writes.push(items("a", 0..64));
        writes.push(items("b", 0..64));
        writes.push(items("nowhere", 0..2));
        let id = Hash::of(b"x");
        writes.push(Write::Mark { id, name: "m".repeat(moire_corpus::MARK_BYTES_MAX + 1), path: None });
        writes.push(Write::Piece { id, number: 1, piece: None });
        let (receipt, refused) = commit(&mut store, writes).unwrap();
        assert_eq!(receipt.items, 127);
        assert_eq!(receipt.progress["a"].completed, [(0, 5), (6, 64)]);
        assert_eq!(receipt.progress["b"].done(), 64);
        assert_eq!(store.findings().count(), 2);
        assert_eq!(store.sightings("a").unwrap().len(), 2);
        let subjects: Vec<_> = refused.iter().map(RefusedPart::subject).collect();
        assert!(matches!(&subjects[0], Subject::Item(name, done) if name == "a" && done.item == 5));
        assert!(
            matches!(&subjects[1..3], [Subject::Item(x, _), Subject::Item(y, _)] if x == y && x == "nowhere")
        );
        assert_eq!(
            (subjects[3..].iter().collect::<Vec<_>>(), refused[3].writes.len()),
            (vec![&Subject::Exploration(id)], 2)
        );
    }

    #[test]
    fn a_batch_over_the_limit_of_a_commit_is_stored_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { reserve_bytes: 4096, cache_bytes: 1 << 20, ..Options::default() };
        let (mut store, _) = Store::open(dir.path(), options).unwrap();
        let campaign = Campaign { name: "a".to_owned(), ..Campaign::default() };
        store.commit([Write::Campaign(Box::new(campaign))]).unwrap();
        let mut writes: Vec<Write> = (0..300).flat_map(|item| found("a", item, 60_000)).collect();
        writes.push(items("a", 0..300));
        assert!(store.commit(&writes).unwrap_err().is_about_content());
        let (receipt, refused) = commit(&mut store, writes).unwrap();
        assert!(refused.is_empty(), "{refused:?}");
        assert_eq!((receipt.items, store.findings().count()), (300, 300));
    }
}
