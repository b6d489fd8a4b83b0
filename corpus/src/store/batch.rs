//! From writes to the operations of one commit, on top of what is stored.

use super::keys::{
    TOTALS_KEY, best_key, campaign_key, chunk_prefix, exploration_key, explored_key, finding_key, mark_key,
    parse, piece_key, progress_key, read_chunk, sighting_prefix, valid_name,
};
use super::write::{Conflict, Receipt, Write};
use crate::error::StoreError;
use crate::items::{CHUNK_ITEMS, Chunk, ItemDone, Progress};
use crate::op::Op;
use crate::pairs::Pairs;
use serde::Serialize;
use std::collections::BTreeMap;

/// The operations of one commit, on top of the stored state.
struct Batch<'a> {
    pairs: &'a Pairs,
    pending: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    receipt: Receipt,
}

/// The operations of these writes, in key order, and the receipt for them.
///
/// # Errors
/// A write makes no sense or is too large, or the pairs cannot be read.
pub(super) fn prepare(pairs: &Pairs, writes: &[Write]) -> Result<(Vec<Op>, Receipt), StoreError> {
    let mut batch = Batch { pairs, pending: BTreeMap::new(), receipt: Receipt::default() };
    writes.iter().try_for_each(|write| batch.add(write))?;
    let ops = batch.pending.into_iter().map(|(key, value)| Op::new(key, value));
    Ok((ops.collect::<Result<_, _>>()?, batch.receipt))
}

impl Batch<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.pending.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.pairs.get(key),
        }
    }

    /// Stores the value, or takes the record out.
    fn put_some<T: Serialize>(&mut self, key: Vec<u8>, value: Option<&T>) -> Result<(), StoreError> {
        match value {
            Some(value) => self.put_json(key, value),
            None => {
                self.pending.insert(key, None);
                Ok(())
            }
        }
    }

    fn put_json<T: Serialize>(&mut self, key: Vec<u8>, value: &T) -> Result<(), StoreError> {
        let text = serde_json::to_vec(value).map_err(|e| StoreError::Invalid(e.to_string()))?;
        self.pending.insert(key, Some(text));
        Ok(())
    }

    fn check_campaign(&self, name: &str) -> Result<(), StoreError> {
        match self.get(&campaign_key(name))? {
            Some(_) => Ok(()),
            None => Err(StoreError::Invalid(format!("there is no campaign `{}`", name.escape_debug()))),
        }
    }

    fn add(&mut self, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Campaign(campaign) if !valid_name(&campaign.name) => Err(StoreError::Invalid(format!(
                "`{}` is not a campaign name: use up to 100 letters, digits, `.`, `_`, `-`",
                campaign.name.escape_debug()
            ))),
            Write::Campaign(campaign) => self.put_json(campaign_key(&campaign.name), campaign),
            Write::Finding(finding) => self.put_json(finding_key(&finding.id), finding),
            Write::Regression(r) => self.put_json([&b"r/"[..], &r.program.0].concat(), r),
            Write::Best { claim, program } => self.put_some(best_key(claim), program.as_ref()),
            Write::Exploration { id, exploration } => {
                if exploration.is_none() {
                    self.put_some::<()>(explored_key(id), None)?;
                }
                self.put_some(exploration_key(id), exploration.as_ref())
            }
            Write::Explored { id, explored } => self.put_json(explored_key(id), explored),
            Write::Piece { id, number, piece } => self.put_some(piece_key(id, *number), piece.as_ref()),
            Write::Mark { id, name, path } => self.put_some(mark_key(id, name), path.as_ref()),
            Write::Totals(totals) => self.put_json(TOTALS_KEY.to_vec(), totals),
            Write::Sighting { campaign, item, finding } => {
                self.check_campaign(campaign)?;
                let key = [&sighting_prefix(campaign)[..], &finding.0, &item.to_be_bytes()].concat();
                self.pending.insert(key, Some(Vec::new()));
                Ok(())
            }
            Write::Items { campaign, items } => self.add_items(campaign, items),
        }
    }

    fn add_items(&mut self, campaign: &str, items: &[ItemDone]) -> Result<(), StoreError> {
        self.check_campaign(campaign)?;
        let progress_key = progress_key(campaign);
        let mut progress: Progress =
            self.get(&progress_key)?.map(|v| parse(&progress_key, &v)).transpose()?.unwrap_or_default();
        let prefix = chunk_prefix(campaign);
        // Items mostly come in order: a chunk is read and written once for those that stand together.
        for run in items.chunk_by(|a, b| a.item / CHUNK_ITEMS == b.item / CHUNK_ITEMS) {
            let key = [&prefix[..], &(run[0].item / CHUNK_ITEMS).to_be_bytes()].concat();
            let mut chunk = match self.get(&key)? {
                Some(value) => read_chunk(&key, &prefix, &value)?.1,
                None => Chunk::default(),
            };
            for done in run {
                self.add_item(campaign, done, &mut chunk, &mut progress)?;
            }
            self.pending.insert(key, Some(chunk.encode()));
        }
        self.put_json(progress_key, &progress)?;
        self.receipt.progress.insert(campaign.to_owned(), progress);
        Ok(())
    }

    fn add_item(
        &mut self,
        campaign: &str,
        done: &ItemDone,
        chunk: &mut Chunk,
        progress: &mut Progress,
    ) -> Result<(), StoreError> {
        if done.item == u64::MAX {
            return Err(StoreError::Invalid(format!("item {} is out of range", done.item)));
        }
        let slot = u8::try_from(done.item % CHUNK_ITEMS).expect("a chunk has fewer than 256 items");
        if let Some((_, kept)) = chunk.0.get(&slot) {
            self.receipt.duplicates += 1;
            if *kept != done.digest {
                let (campaign, item) = (campaign.to_owned(), done.item);
                self.receipt.conflicts.push(Conflict { campaign, item, kept: *kept, refused: done.digest });
            }
            return Ok(());
        }
        chunk.0.insert(slot, (done.epoch, done.digest));
        progress.insert(done.item);
        progress.counters.add(&done.counters);
        self.receipt.items += 1;
        Ok(())
    }
}
