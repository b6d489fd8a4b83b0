//! The evidence of a claim about a device: a histogram as a record.
//!
//! Contract: it is small enough to be stored with its claim. Outcomes that the model forbids come first; of the others as many
//! are kept as there is room, and the rest is counted. `moire gpu --replay` judges it anew.

use super::{Judged, LAUNCHES, PROBABILITY};
use moire_gpu::{Identity, Sampled, kernel};
use moire_program::text::print;

/// Most bytes of the outcomes that are kept.
const SEEN_BYTES: usize = 6 << 10;
/// Most bytes of a kernel that is kept; a longer one is printed by `moire gpu --kernel`.
const KERNEL_BYTES: usize = 8 << 10;

/// The record, as JSON.
pub(super) fn of(identity: &Identity, judged: &Judged<'_>) -> String {
    let forbidden = &judged.verdict.forbidden;
    let others = judged.ran.histogram.0.iter().map(|(seen, n)| (seen.clone(), *n));
    let all = forbidden.iter().cloned().chain(others.filter(|one| !forbidden.contains(one)));
    let mut left = SEEN_BYTES;
    let fits = |one: &(moire_gpu::Seen, u64)| {
        let bytes = serde_json::to_string(one).map_or(usize::MAX, |text| text.len());
        left.checked_sub(bytes).map(|less| left = less).is_some()
    };
    let seen = all.take_while(fits).collect();
    let text = kernel(judged.program, &identity.target()).map(|k| k.text).unwrap_or_default();
    let sampled = Sampled {
        device: identity.clone(),
        program: print(judged.program),
        against: judged.spec.to_owned(),
        seed: judged.ran.seed,
        probability: PROBABILITY,
        launches: LAUNCHES,
        samples: judged.verdict.samples,
        forbidden: forbidden.iter().map(|(_, n)| n).sum(),
        seen,
        kernel: if text.len() <= KERNEL_BYTES { text } else { String::new() },
    };
    serde_json::to_string(&sampled).unwrap_or_default()
}
