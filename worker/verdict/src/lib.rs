//! What `moire check` decides, as a library: which launches of a kernel are judged and with what budget, under which readings,
//! for which trip counts, what the launches cover, and what advice goes beside the verdict.
//!
//! Contract: no arguments, no printing, no clock and no files. A caller reads files and models ([`question::Library`]), explores or
//! lets others explore, and keeps the time of explanations ([`question::Host`]); [`judging::Judge`] gives one answer a file. The
//! verdicts are those of [`moire_explore::judge::Verdict`]. What the static rules call an error is rejected and not
//! explored; their advice goes beside the verdict. An answer depends on no clock, but for the explanations beside it.

pub mod answer;
pub mod asked;
mod barrier;
pub mod door;
mod every;
pub mod execution;
pub mod exit;
pub mod finding;
pub mod input;
pub mod judging;
pub mod kernel;
mod launches;
mod looped;
pub mod mending;
mod naming;
pub mod problem;
pub mod problems;
pub mod proof;
pub mod question;
pub mod readings;
pub mod stale;
pub mod told;
pub mod verdicts;
pub mod waiting;
