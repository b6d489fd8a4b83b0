//! Sizes of what peers send, measured in the encoding in which the store keeps it: JSON.
//!
//! Contract: raw lengths bound nothing, because JSON makes six bytes of a control character. Whatever becomes part of a
//! record is measured here before it is taken: by a type whose construction is the check, or by [`Names`], which counts
//! what one record lists.

use moire_corpus::{Campaign, VALUE_BYTES_MAX};
use std::collections::BTreeSet;

/// Bytes of a text as JSON, without its quotes.
pub(crate) fn bytes(text: &str) -> usize {
    let escaped = |b: u8| match b {
        b'\n' | b'\r' | b'\t' | 0x08 | 0x0c | b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

/// The longest beginning of a text that has at most `max` bytes as JSON.
pub(crate) fn beginning(text: &str, max: usize) -> &str {
    let mut left = max;
    for (at, c) in text.char_indices() {
        match left.checked_sub(bytes(&text[at..at + c.len_utf8()])) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// Bytes that the record of a campaign may grow by after its creation: the fingerprint of its first worker, its state, its
/// epoch and its limit.
const CAMPAIGN_GROWTH: usize = 1024;

/// A campaign whose record fits the store now and later.
#[derive(Debug)]
pub(crate) struct FittingCampaign(Campaign);

impl TryFrom<Campaign> for FittingCampaign {
    type Error = &'static str;
    fn try_from(campaign: Campaign) -> Result<Self, &'static str> {
        let fits =
            serde_json::to_vec(&campaign).is_ok_and(|json| json.len() + CAMPAIGN_GROWTH <= VALUE_BYTES_MAX);
        match fits {
            true => Ok(Self(campaign)),
            false => Err("a campaign has at most 63 KiB: name fewer oracles, models and capabilities"),
        }
    }
}

impl FittingCampaign {
    pub(crate) fn campaign(&self) -> &Campaign {
        &self.0
    }
    pub(crate) fn into_inner(self) -> Campaign {
        self.0
    }
}

/// Most bytes of the names that the record of a campaign lists, with their counts.
pub(crate) const NAMES_BYTES_MAX: usize = 24 * 1024;
/// Bytes of a listed name beside its text: quotes, colon, comma and a count.
const ENTRY_BYTES: usize = 24;

/// Most classes of claims in the record of a campaign.
const CLASSES_MAX: usize = 200;
/// The class of claims whose class the record has no room for.
const OTHER_CLASSES: &str = "claims/other";

/// The lists of a campaign's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum List {
    Reasons,
    Classes,
    Canaries,
    Mutants,
}

/// The names that the record of a campaign lists. Together they stay within [`NAMES_BYTES_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Names {
    listed: BTreeSet<(List, String)>,
    bytes: usize,
}

impl Names {
    /// Adds the name of a list, if it is there already or has room; false: it does not fit any more, or the list has `most`
    /// names.
    pub(crate) fn list(&mut self, list: List, name: &str, most: usize) -> bool {
        let key = (list, name.to_owned());
        if self.listed.contains(&key) {
            return true;
        }
        let bytes = self.bytes + bytes(name) + ENTRY_BYTES;
        if bytes > NAMES_BYTES_MAX || self.listed.iter().filter(|(l, _)| *l == list).count() >= most {
            return false;
        }
        self.bytes = bytes;
        self.listed.insert(key)
    }
    /// The name under which a class of claims is counted.
    pub(crate) fn class(&mut self, class: &str) -> String {
        let listed = self.list(List::Classes, class, CLASSES_MAX);
        if listed { class.to_owned() } else { OTHER_CLASSES.to_owned() }
    }
    /// Adds a name that a stored record lists already, whatever its size.
    pub(crate) fn known(&mut self, list: List, name: &str) {
        if self.listed.insert((list, name.to_owned())) {
            self.bytes += bytes(name) + ENTRY_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of all kinds of characters, as long as a limit and around it.
    fn texts() -> Vec<String> {
        let mut out = Vec::new();
        for c in ['a', '"', '\\', '\n', '\r', '\u{8}', '\u{c}', '\u{1}', '\u{1f}', '\u{7f}', 'é', '😀'] {
            for n in [0, 1, 15, 16, 17, 99, 100, 101, 499, 500, 501] {
                out.push(c.to_string().repeat(n));
                out.push(format!("a{}\u{1}", c.to_string().repeat(n)));
            }
        }
        out
    }

    #[test]
    fn sizes_are_those_of_the_encoding() {
        for text in texts() {
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(bytes(&text) + 2, json.len(), "{text:?}");
            for max in [0, 1, 5, 6, 7, 99, 100, 101] {
                let cut = beginning(&text, max);
                assert!(bytes(cut) <= max && text.starts_with(cut));
                let more = text[cut.len()..].chars().next().map(|c| bytes(c.encode_utf8(&mut [0; 4])));
                assert!(more.is_none_or(|more| bytes(cut) + more > max), "{text:?} {max}");
            }
        }
    }

    #[test]
    fn a_campaign_that_fits_still_fits_when_all_of_it_has_grown() {
        let with = |n: usize| Campaign { profile: "p".repeat(n), ..Campaign::default() };
        let mut most = 0;
        for n in VALUE_BYTES_MAX - 2048..VALUE_BYTES_MAX {
            if FittingCampaign::try_from(with(n)).is_ok() {
                most = n;
            }
        }
        assert!(most > VALUE_BYTES_MAX - 2048 && FittingCampaign::try_from(with(most + 1)).is_err());
        let mut grown = with(most);
        // A worker's fingerprint has at most 128 bytes as stored.
        grown.generator = "f".repeat(128);
        grown.limits.programs = Some(u64::MAX);
        (grown.epoch, grown.state) = (u32::MAX, moire_corpus::CampaignState::Cancelled);
        assert!(serde_json::to_vec(&grown).unwrap().len() <= VALUE_BYTES_MAX);
    }
}
