//! Conversion between messages of the worker service and jobs.
//!
//! Contract: a malformed message is a [`WireError`], never a panic.

use crate::job::{Claim, ItemReport, Part, Parted, Plan, Side, Verification};
use crate::piece::{Exploration, Explored, Step};
use moire_explore::Abstain;
use moire_explore::search::share::Piece;
use moire_proto::v1;

/// The requirement that a message does not meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct WireError(pub &'static str);

fn hash(bytes: &[u8]) -> Result<[u8; 32], WireError> {
    bytes.try_into().map_err(|_| WireError("a hash has 32 bytes"))
}

impl From<v1::Plan> for Plan {
    fn from(p: v1::Plan) -> Self {
        Self { campaign: p.campaign, oracles: p.oracles, models: p.models, canaries: p.canaries }
    }
}

impl TryFrom<v1::Claim> for Claim {
    type Error = WireError;
    fn try_from(c: v1::Claim) -> Result<Self, WireError> {
        let side =
            |s: v1::Side| Ok(Side { name: s.name, variants: s.variants, fingerprint: hash(&s.fingerprint)? });
        Ok(Self {
            oracle: c.oracle,
            direction: c.direction.parse().map_err(|_| WireError("a claim has a direction that is known"))?,
            models: c.models.into_iter().map(side).collect::<Result<_, WireError>>()?,
            verdict: c.verdict,
            program: c.program,
            witness: c.witness,
            axioms: c.axioms.into_iter().map(|a| a.names).collect(),
        })
    }
}

impl From<Claim> for v1::Claim {
    fn from(c: Claim) -> Self {
        let side =
            |s: Side| v1::Side { name: s.name, variants: s.variants, fingerprint: s.fingerprint.to_vec() };
        Self {
            oracle: c.oracle,
            direction: c.direction.word().to_owned(),
            models: c.models.into_iter().map(side).collect(),
            verdict: c.verdict,
            program: c.program,
            witness: c.witness,
            axioms: c.axioms.into_iter().map(|names| v1::Checks { names }).collect(),
        }
    }
}

/// The message of one item's answer.
pub fn item_result(item: u64, report: ItemReport) -> v1::ItemResult {
    let engine = |e: crate::job::EngineReport| v1::EngineResult {
        engine: e.engine,
        verdict: e.verdict,
        outcomes: e.outcomes.to_vec(),
        leaves: e.leaves.to_vec(),
        executions: e.executions,
    };
    v1::ItemResult {
        item,
        program: report.program.to_vec(),
        engines: report.engines.into_iter().map(engine).collect(),
        abstentions: report.abstentions,
        claims: report.claims.into_iter().map(Into::into).collect(),
        canaries: report
            .canaries
            .into_iter()
            .map(|c| v1::Canary { name: c.name, caught: c.caught })
            .collect(),
    }
}

/// The part of a minimisation that a job asks for; `None`: all of it.
pub fn part(job: &v1::MinimiseJob) -> Option<Part> {
    match (job.join.is_empty(), job.from < job.to) {
        (false, _) => Some(Part::Join(job.join.clone())),
        (true, true) => Some(Part::Try(job.from..job.to)),
        (true, false) => None,
    }
}

/// The message of the answer to a part of a minimisation.
pub fn parted(answer: Parted) -> v1::MinimiseResult {
    let (claim, tried, holds) = (answer.claim.map(Into::into), answer.tried, answer.holds);
    v1::MinimiseResult { claim, tried, holds, part: true, normal: false }
}

impl TryFrom<v1::Exploration> for Exploration {
    type Error = WireError;
    fn try_from(e: v1::Exploration) -> Result<Self, WireError> {
        Ok(Self {
            program: e.program,
            model: e.model,
            switches: e.switches,
            files: e.files,
            fingerprint: hash(&e.fingerprint)?,
            loop_bound: e.loop_bound,
        })
    }
}

/// The exploration and the piece that an explore lease asks for.
pub fn explore_job(job: v1::ExploreJob) -> Result<(Exploration, Piece), WireError> {
    let asked = job.exploration.ok_or(WireError("a piece is of an exploration"))?;
    let piece = job.piece.unwrap_or_default();
    Ok((asked.try_into()?, Piece { behind: piece.behind, until: piece.until }))
}

fn explored(explored: Explored) -> v1::Explored {
    let s = explored.summary;
    v1::Explored {
        complete: s.complete,
        blocked: s.blocked,
        dead_ends: s.dead_ends,
        checks: s.checks,
        digest: explored.digest,
        bounded: s.bounded.map(|b| b.to_string()).unwrap_or_default(),
        marks: explored.marks.into_iter().map(|(name, path)| (name, v1::Node { path })).collect(),
    }
}

/// The message of a step.
pub fn step(step: Step) -> v1::ExploreStep {
    use v1::explore_step::Step as Said;
    let (said, numbers) = match step {
        Step::Reached(path, numbers) => (Said::Reached(v1::Node { path }), Some(explored(numbers))),
        Step::Given(path) => (Said::Given(v1::Node { path }), None),
    };
    v1::ExploreStep { step: Some(said), explored: numbers }
}

/// The message of the end of a piece.
pub fn end(answer: Result<Explored, Abstain>) -> v1::ExploreStep {
    use v1::explore_step::Step as Said;
    match answer {
        Ok(numbers) => v1::ExploreStep { step: None, explored: Some(explored(numbers)) },
        Err(Abstain { reason, line }) => {
            let unsupported = Said::Unsupported(v1::Unsupported { reason, line });
            v1::ExploreStep { step: Some(unsupported), explored: None }
        }
    }
}

/// The message of a verification.
pub fn verify_result(answer: Verification) -> v1::VerifyResult {
    use v1::verify_result::Answer;
    let (answer, reason) = match answer {
        Verification::Confirmed => (Answer::Confirmed, String::new()),
        Verification::Refuted(why) => (Answer::Refuted, why),
        Verification::Abstained(why) => (Answer::Abstained, why),
    };
    v1::VerifyResult { answer: answer.into(), reason }
}
