//! Findings: by id, as lists, and marked by people.

use super::keys::{FINDINGS, finding_key, parse};
use super::{Store, Write};
use crate::error::StoreError;
use crate::finding::Finding;
use crate::hash::{FindingId, Hash};
use crate::life::{Change, FindingState, Retest, Suppression, line};
use crate::mark::{Mark, MarkError};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Most duplicates of duplicates that are followed.
const CHAIN_MAX: usize = 32;

/// The key behind which the findings behind this id are.
fn behind(id: Option<&FindingId>) -> Vec<u8> {
    id.map_or_else(|| FINDINGS.to_vec(), finding_key)
}

/// The finding that a key belongs to.
fn finding_id(key: &[u8]) -> Option<FindingId> {
    Some(Hash(key.strip_prefix(FINDINGS)?.try_into().ok()?))
}

impl Store {
    /// The word under which findings are counted whose records cannot be read.
    pub const UNREADABLE: &str = "unreadable";

    /// A finding.
    pub fn finding(&self, id: &FindingId) -> Result<Option<Finding>, StoreError> {
        self.record(&finding_key(id))
    }
    /// All findings, by id; one that cannot be read is an error of its own.
    pub fn findings(&self) -> impl Iterator<Item = Result<Finding, StoreError>> + use<> {
        self.records(FINDINGS)
    }
    /// All findings, by id, without their texts. This takes a fraction of the time.
    pub fn findings_briefly(&self) -> impl Iterator<Item = Result<Finding, StoreError>> + use<> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Brief {
            id: FindingId,
            oracle: String,
            rule: String,
            state: FindingState,
            first_seen_ms: u64,
            last_seen_ms: u64,
            last_tested_ms: u64,
            history: Vec<Change>,
            suppressed: Option<Suppression>,
            retest: Option<Retest>,
        }
        let brief = self.records::<Brief>(FINDINGS);
        brief.map(|brief| {
            let b = brief?;
            Ok(Finding {
                id: b.id,
                oracle: b.oracle,
                rule: b.rule,
                state: b.state,
                first_seen_ms: b.first_seen_ms,
                last_seen_ms: b.last_seen_ms,
                last_tested_ms: b.last_tested_ms,
                history: b.history,
                suppressed: b.suppressed,
                retest: b.retest,
                ..Finding::default()
            })
        })
    }
    /// Findings behind this id, by id; all of them without one.
    pub fn findings_behind(
        &self,
        id: Option<&FindingId>,
    ) -> impl Iterator<Item = Result<Finding, StoreError>> + use<> {
        self.pairs.scan_behind(FINDINGS, &behind(id)).map(|pair| {
            let (key, value) = pair?;
            parse(&key, &value)
        })
    }
    /// Counts the first `limit` findings behind this id by the word of their state, and returns the last of their ids. Of each
    /// finding only the state is read; one that cannot be read counts as [`UNREADABLE`](Self::UNREADABLE).
    pub fn finding_states(
        &self,
        behind: Option<&FindingId>,
        limit: usize,
    ) -> Result<(BTreeMap<String, u64>, Option<FindingId>), StoreError> {
        #[derive(Deserialize)]
        struct OnlyState {
            #[serde(default)]
            state: FindingState,
        }
        let (mut states, mut last) = (BTreeMap::new(), None);
        for pair in self.pairs.scan_behind(FINDINGS, &self::behind(behind)).take(limit) {
            let (key, value) = pair?;
            let word = parse::<OnlyState>(&key, &value).map_or(Self::UNREADABLE, |f| f.state.word());
            *states.entry(word.to_owned()).or_default() += 1;
            last = finding_id(&key).or(last);
        }
        Ok((states, last))
    }
    /// Findings whose id starts with these hexadecimal digits; at most two, which shows that the digits are ambiguous.
    fn findings_from(&self, digits: &str) -> Result<Vec<Finding>, StoreError> {
        let whole: Vec<u8> = (0..digits.len() / 2)
            .map_while(|i| u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok())
            .collect();
        let matching = self.records::<Finding>(&[FINDINGS, &whole].concat());
        let own = |f: &Result<Finding, StoreError>| {
            f.as_ref().map_or(true, |f| f.id.to_string().starts_with(digits))
        };
        matching.filter(own).take(2).collect()
    }

    /// The finding of an id, or of a prefix of at least eight digits.
    ///
    /// # Errors
    /// No finding or several have it, or the store cannot be read.
    pub fn named(&self, id: &str) -> Result<Finding, MarkError> {
        let id = id.to_ascii_lowercase();
        if id.len() < 8 || !id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(MarkError::NoId(id.chars().take(80).collect()));
        }
        let mut matching = self.findings_from(&id)?;
        match (matching.pop(), matching.pop()) {
            (Some(finding), None) => Ok(finding),
            (Some(_), Some(_)) => Err(MarkError::Ambiguous(id)),
            (None, _) => Err(MarkError::Unknown(id)),
        }
    }

    /// Marks the finding named `id`; durable when it returns. `who` owns a suppression.
    ///
    /// # Errors
    /// See [`MarkError`]; nothing has changed then.
    pub fn mark(
        &mut self,
        at_ms: u64,
        id: &str,
        mark: &Mark,
        who: &str,
        why: &str,
    ) -> Result<Finding, MarkError> {
        let mut finding = self.named(id)?;
        let closes = !matches!(mark, Mark::Open | Mark::Unsuppress);
        if closes && line(why).is_empty() {
            return Err(MarkError::NoReason);
        }
        match mark {
            Mark::Open => finding.change(at_ms, FindingState::Open, who, why),
            Mark::Invalid => finding.change(at_ms, FindingState::Invalid, who, why),
            Mark::Fixed => finding.change(at_ms, FindingState::Fixed, who, why),
            Mark::Duplicate(of) => {
                let of = self.original(of, finding.id)?;
                finding.change(at_ms, FindingState::Duplicate(of), who, why);
            }
            Mark::Suppress { .. } if line(who).is_empty() => return Err(MarkError::NoOwner),
            Mark::Suppress { until_ms } if *until_ms <= at_ms => return Err(MarkError::Past),
            Mark::Suppress { until_ms } => {
                let (owner, why) = (line(who), line(why));
                finding.suppressed = Some(Suppression { owner, why, since_ms: at_ms, until_ms: *until_ms });
            }
            Mark::Unsuppress => finding.suppressed = None,
        }
        self.commit(vec![Write::Finding(Box::new(finding.clone()))])?;
        Ok(finding)
    }

    /// Follows duplicates from `of` to a finding that is no duplicate. It must not be `not`.
    fn original(&self, of: &str, not: FindingId) -> Result<FindingId, MarkError> {
        let mut at = self.named(of)?;
        for _ in 0..CHAIN_MAX {
            if at.id == not {
                break;
            }
            let FindingState::Duplicate(next) = at.state else { return Ok(at.id) };
            match self.finding(&next)? {
                Some(finding) => at = finding,
                None => return Ok(at.id),
            }
        }
        Err(MarkError::Itself(not.short()))
    }
}
