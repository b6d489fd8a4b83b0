//! What a device showed of a finding, in words.

use crate::cmd::gpu::outcome;
use moire_corpus::Finding;
use moire_gpu::Sampled;
use moire_program::text::{Format, parse};
use moire_proto::needs;
use std::fmt::Write;

/// Most outcomes that are shown.
const SHOWN: usize = 12;

/// The histogram of a finding; none of a finding that is not about a device.
pub(crate) fn of(finding: &Finding) -> Option<Sampled> {
    let sampled = needs::is_sampled(&finding.oracle).then(|| serde_json::from_str(&finding.witness));
    sampled.and_then(Result::ok)
}

/// One line: the device, and how often it showed what.
pub(crate) fn line(sampled: &Sampled) -> String {
    let Sampled { device, against, forbidden, samples, .. } = sampled;
    let (name, target, driver) = (&device.name, device.target(), &device.driver);
    format!(
        "{forbidden} of {samples} samples on {name} ({target}, driver {driver}) are not allowed by {against}"
    )
}

/// The histogram as text, and how it is judged again.
pub(crate) fn shown(finding: &Finding, sampled: &Sampled) -> String {
    let mut out = format!("{}:\n", line(sampled));
    let program = parse(&sampled.program, Format::Native);
    let mut left = sampled.forbidden;
    for (seen, n) in sampled.seen.iter().take(SHOWN) {
        let word = if left > 0 { "not allowed" } else { "allowed" };
        left = left.saturating_sub(*n);
        let what = program.as_ref().map_or_else(|_| format!("{seen:?}"), |program| outcome(program, seen));
        let _ = writeln!(out, "    {n:8}  {word:11}  {what}");
    }
    let id = finding.id.short();
    let _ = writeln!(
        out,
        "  seed {}; judged again: moire findings export {id} h.json --histogram, then moire gpu --replay h.json",
        sampled.seed
    );
    out
}
