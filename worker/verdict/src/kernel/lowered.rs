//! The result of lowering the kernel of a module.

use super::covering::{Covering, Run};
use super::launched::Launched;
use crate::input::{Rejected, Source};
use anyhow::{Result, bail};
use moire_explore::judge::Verdict;
use moire_program::Refusal;
use std::collections::BTreeSet;

/// The result of lowering a kernel.
pub enum Kernel {
    /// The launches that are worth judging, the smallest first. Never none, one if nothing is assumed. With what may add to
    /// their coverage, by kernel, where a launch is run ahead.
    Launches(Vec<Candidate>, Vec<Covering>),
    /// Statically illegal: every error.
    Rejected(Vec<Rejected>),
}

/// A launch of the kernel, and its programs.
pub struct Candidate {
    /// Programs of clusters that are independent of each other, never none. The kernel as it stands, if the launch is refused.
    pub sources: Vec<Source>,
    /// The launch.
    pub launch: Launched,
    /// Why the launch is abstained from although its programs are clean.
    pub reserve: Option<String>,
    /// The lines of weak accesses to places that data decides, and whether these are in global memory.
    pub loose: BTreeSet<(u32, bool)>,
    /// Why no engine is asked: `abstained` if something is not modelled, `bounded` if a limit was hit.
    pub refused: Option<Verdict>,
    /// The launches of each kernel as they were run ahead, if they were.
    pub(crate) runs: Vec<Run>,
    /// The launch, if it is too much work to run ahead.
    pub(crate) long: Option<moire_kernel::specialise::Launch>,
}

impl Candidate {
    /// A launch of which no more is known.
    pub(super) fn of(sources: Vec<Source>, launch: Launched) -> Self {
        let loose = BTreeSet::new();
        Candidate { sources, launch, refused: None, reserve: None, loose, runs: Vec::new(), long: None }
    }

    /// A launch that cannot be run ahead.
    ///
    /// # Errors
    /// There is no such launch.
    pub(super) fn refused(refusal: Refusal, kernel: Source, launch: Launched) -> Result<Self> {
        let verdict = match refusal {
            Refusal::Launch(why) => bail!("{}: {why}", kernel.name),
            refusal @ Refusal::Abstained { .. } => Verdict::Abstained(refusal.to_string()),
            Refusal::Bounded(why) => Verdict::Bounded(why),
        };
        Ok(Candidate { refused: Some(verdict), ..Candidate::of(vec![kernel], launch) })
    }
}
