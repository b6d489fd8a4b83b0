//! Histograms: the outcomes of instances, how often each was seen, and what follows from that.
//!
//! Contract: an outcome that was seen and is not allowed refutes the model. An allowed outcome that was not seen has a probability
//! below `-ln(1 - c) / n` with confidence `c` after `n` independent samples (for 95 %: about `3 / n`, the rule of three).
//! Instances of one launch are not quite independent, so the bound is about this way of running the program, not about the
//! device.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Confidence of the bounds.
const CONFIDENCE: f64 = 0.95;

/// The outcome of one instance: observed registers, and the bytes of each object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seen {
    /// Registers, in the order of [`crate::observed`].
    pub regs: Vec<u128>,
    /// Bytes, by object.
    pub memory: Vec<Vec<u8>>,
}

/// Outcomes and how often each was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram(pub BTreeMap<Seen, u64>);

impl Histogram {
    /// Counts one instance.
    pub fn add(&mut self, seen: Seen) {
        let n = self.0.entry(seen).or_default();
        *n = n.saturating_add(1);
    }
    /// Adds another launch.
    pub fn merge(&mut self, other: Self) {
        for (seen, more) in other.0 {
            let n = self.0.entry(seen).or_default();
            *n = n.saturating_add(more);
        }
    }
    /// Instances counted.
    pub fn samples(&self) -> u64 {
        self.0.values().fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// An allowed outcome that was not seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Unseen {
    /// The outcome.
    pub outcome: Seen,
    /// Upper bound of its probability, with 95 % confidence.
    pub below: f64,
}

/// The verdict of the samples on a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Outcomes that are not allowed, and how often they were seen.
    pub forbidden: Vec<(Seen, u64)>,
    /// Number of allowed outcomes that were seen.
    pub seen: usize,
    /// Allowed outcomes that were not seen.
    pub unseen: Vec<Unseen>,
    /// Number of samples.
    pub samples: u64,
}

/// Compares the seen outcomes with the allowed ones.
pub fn judge(histogram: &Histogram, allowed: &BTreeSet<Seen>) -> Verdict {
    let samples = histogram.samples();
    let below = if samples == 0 { 1.0 } else { (-(1.0 - CONFIDENCE).ln() / samples as f64).min(1.0) };
    let wrong = histogram.0.iter().filter(|(seen, _)| !allowed.contains(*seen));
    let missing = allowed.iter().filter(|outcome| !histogram.0.contains_key(*outcome));
    Verdict {
        forbidden: wrong.map(|(seen, n)| (seen.clone(), *n)).collect(),
        seen: histogram.0.keys().filter(|seen| allowed.contains(*seen)).count(),
        unseen: missing.map(|outcome| Unseen { outcome: outcome.clone(), below }).collect(),
        samples,
    }
}

/// Number of samples after which an outcome of this probability has been seen at least once, with 95 % confidence.
pub(crate) fn budget(probability: f64) -> u64 {
    let needed = (1.0 - CONFIDENCE).ln() / (1.0 - probability.clamp(1e-12, 0.5)).ln();
    // Positive and far below 2^53.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    let needed = needed.ceil() as u64;
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(n: u128) -> Seen {
        Seen { regs: vec![n], memory: Vec::new() }
    }

    #[test]
    fn what_is_not_allowed_refutes_and_what_is_not_seen_is_bounded() {
        let mut histogram = Histogram::default();
        (0..600).for_each(|n| histogram.add(seen(n % 2)));
        let mut other = Histogram::default();
        other.add(seen(9));
        histogram.merge(other);
        let verdict = judge(&histogram, &[seen(0), seen(1), seen(2)].into());
        assert_eq!(verdict.forbidden, [(seen(9), 1)]);
        assert_eq!((verdict.seen, verdict.samples), (2, 601));
        assert_eq!(verdict.unseen[0].outcome, seen(2));
        assert!((0.0049..0.005).contains(&verdict.unseen[0].below), "{verdict:?}");
        let nothing = judge(&Histogram::default(), &[seen(0)].into());
        assert_eq!(nothing.unseen[0].below.to_bits(), 1f64.to_bits());
    }

    #[test]
    fn budgets_follow_the_rule_of_three() {
        assert!((2_990_000..3_000_000).contains(&budget(1e-6)));
        assert_eq!(budget(0.5), 5);
    }
}
