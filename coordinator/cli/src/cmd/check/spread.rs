//! `moire check --coordinator`: the executions are explored by a fleet, and judged here.
//!
//! Contract: stdout and exit codes are the same as without it. The fleet counts executions and names those that decide the
//! verdicts; each of them is visited again here before it is reported, and one that does not show what it is named for ends in
//! an abstention. A share of the counts and names is compared with those of a second worker, and an exploration about which
//! two workers differ is never clean. A lost connection is tried again for a
//! minute. Work done meanwhile is not repeated, and a later command finds it, too.

use super::progress::Progress;
use crate::remote::Certs;
use anyhow::{Result, bail};
use moire_cat::Model;
use moire_console::control::{connect, runtime, said};
use moire_console::input::{Source, model_files};
use moire_coordinator::{many, v1};
use moire_explore::judge::{Judgement, Questions, Verdict, judge_marked};
use moire_explore::search::LeafView;
use moire_explore::{Abstain, Limits, Summary, explore};
use moire_program::ir::Program;
use moire_program::text::{Format, parse, print};
use moire_verdict::verdicts::undecided;
use moire_worker::link::{Address, Link};
use moire_worker::piece::{bound, tree};
use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tonic::Code;

/// How long a lost connection is tried again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between attempts.
const PAUSE: Duration = Duration::from_secs(1);
/// Time without a suitable worker after which the user is told.
const ALONE: Duration = Duration::from_secs(3);

/// Most checks here before the fleet is believed that a program has no execution.
const EMPTY_CHECKS: u64 = 100_000;

/// Workers behind a coordinator.
pub(super) struct Fleet {
    link: Link,
    runtime: tokio::runtime::Runtime,
}

impl Fleet {
    pub(super) fn new(coordinator: &Address, certs: &Certs) -> Result<Self> {
        Ok(Fleet { link: Link::new(coordinator.clone(), certs.certs.clone()), runtime: runtime()? })
    }

    /// The judgement on all executions of a program under `model`, which the command line calls `name`.
    pub(super) fn judge(
        &self,
        source: &Source,
        name: &str,
        model: &Model,
        limits: &Limits,
        questions: Questions,
    ) -> Result<Judgement> {
        let (own, files) = model_files(name, model.variants())?;
        let asked = v1::Exploration {
            program: text(source),
            model: own,
            switches: model.variants().clone(),
            files,
            fingerprint: blake3::hash(model.canonical_text().as_bytes()).as_bytes().to_vec(),
            tree: tree().to_owned(),
            loop_bound: limits.loop_bound,
            executions: limits.leaves,
        };
        let mut progress = Progress::new(&source.program, model);
        let status =
            self.runtime.block_on(self.explored(&asked, &mut |executions| progress.at(executions)))?;
        drop(progress);
        if !status.failed.is_empty() {
            return Ok(undecided(Verdict::Bounded(status.failed)));
        }
        if status.leases > 0 {
            let (pieces, workers) = (many(status.leases, "piece"), many(status.checks.len(), "worker"));
            eprintln!("{}: explored by {workers} in {pieces}", source.name);
        }
        let explored = status.explored.unwrap_or_default();
        let executions = explored.complete.saturating_add(explored.blocked);
        eprintln!("{}: {}", source.name, twice(status.twice, executions));
        let summary = Summary {
            complete: explored.complete,
            blocked: explored.blocked,
            dead_ends: explored.dead_ends,
            checks: explored.checks,
            bounded: match explored.bounded.as_str() {
                "" => None,
                words => Some(bound(words).unwrap_or(moire_explore::Bound::Steps)),
            },
            stopped: false,
            // Workers visit every execution.
            cut: moire_explore::reduce::Cut::default(),
        };
        let totals = match status.unsupported {
            Some(v1::Unsupported { reason, line }) => Err(Abstain { reason, line }),
            None => Ok(summary),
        };
        let empty = totals.is_ok() && summary.executions().is_none() && summary.bounded.is_none();
        if empty && !is_empty(&source.program, model, limits) {
            return Ok(undecided(Verdict::Bounded("the workers report no execution".to_owned())));
        }
        let marked = explored.marks.into_iter().map(|(name, node)| (name, node.path));
        Ok(judge_marked(&source.program, model, marked, totals, questions, limits.loop_bound))
    }

    /// The final status of an exploration. `watch` is called with the number of executions from time to time.
    async fn explored(
        &self,
        asked: &v1::Exploration,
        watch: &mut dyn FnMut(u64),
    ) -> Result<v1::ExploreStatus> {
        let mut heard: Option<Instant> = None;
        loop {
            let error = match self.follow(asked, &mut heard, watch).await {
                Ok(status) => return Ok(status),
                Err(error) => error,
            };
            let lost = error.downcast_ref::<Lost>().is_some();
            if !lost || heard.is_none_or(|at| at.elapsed() > PATIENCE) {
                return Err(error);
            }
            tracing::warn!("{error:#}; asking again");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// One connection.
    async fn follow(
        &self,
        asked: &v1::Exploration,
        heard: &mut Option<Instant>,
        watch: &mut dyn FnMut(u64),
    ) -> Result<v1::ExploreStatus> {
        let mut client = match connect(&self.link).await {
            Err(error) if heard.is_some() => return Err(error.context(Lost)),
            connected => connected?,
        };
        let began = Instant::now();
        let mut alone = true;
        let mut stream = client.explore(asked.clone()).await.map_err(lost)?.into_inner();
        while let Some(status) = stream.message().await.map_err(lost)? {
            *heard = Some(Instant::now());
            if status.over {
                return Ok(status);
            }
            if status.able == 0 && alone && began.elapsed() > ALONE {
                alone = false;
                eprintln!("no worker of this build is connected; `moire work` starts one, this waits for it");
            }
            let explored = status.explored.unwrap_or_default();
            watch(explored.complete + explored.blocked);
        }
        bail!(Lost)
    }
}

/// Whether a program has no execution, as far as it can be said here with the checks of a small program.
fn is_empty(program: &Program, model: &Model, limits: &Limits) -> bool {
    let limits = Limits { leaves: 1, checks: EMPTY_CHECKS, ..*limits };
    let first = explore(program, model, &[], &limits, &mut |_: &mut dyn LeafView| ControlFlow::Break(()));
    first.is_ok_and(|s| s.executions().is_none() && s.bounded.is_none())
}

/// The connection is gone; another one may do better.
#[derive(Debug)]
struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the coordinator has gone")
    }
}

impl std::error::Error for Lost {}

fn lost(status: tonic::Status) -> anyhow::Error {
    match status.code() {
        Code::Unavailable | Code::Cancelled | Code::Unknown | Code::NotFound => said(status).context(Lost),
        _ => said(status),
    }
}

/// The share of the counts that two workers confirm, or the assumption if there is none.
fn twice(twice: u64, executions: u64) -> String {
    match twice {
        0 => "assumes that the workers count right: no second independent worker counted a part again"
            .to_owned(),
        _ => format!(
            "{twice} of {} were counted by two independent workers, and they agree",
            many(executions, "execution")
        ),
    }
}

/// The text that workers read: that of the file, so that lines are the same, where all readers take it for the same program.
fn text(source: &Source) -> String {
    let own = parse(&source.text, Format::detect("", &source.text));
    match own.is_ok_and(|program| program == *source.written()) {
        true => source.text.clone(),
        false => print(source.written()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_cat::Variants;
    use moire_models::Shipped;

    /// Workers that report nothing of a program with executions are not believed.
    #[test]
    fn only_a_model_can_admit_no_execution() {
        let text = "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\n";
        let program = parse(text, Format::Native).unwrap();
        let none =
            moire_cat::load("none", "\"none\"\nempty IW as Nothing\n", &Shipped, &Variants::new()).unwrap();
        let ptx = moire_models::load("ptx", &Variants::new()).unwrap();
        assert!(!is_empty(&program, &ptx, &Limits::default()));
        assert!(is_empty(&program, &none, &Limits::default()));
    }
}
