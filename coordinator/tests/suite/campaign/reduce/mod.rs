//! A finding of many instructions, minimised by a fleet. The result does not depend on the number of workers, on
//! workers that die, or on a restart of the coordinator, which continues with the best claim so far.

use crate::fake;
use moire_coordinator::{Local, lease::Config, v1};
use moire_corpus::{Options, Store};
use moire_program::ir::{Op, Program};
use moire_program::reduce::{Limits, minimise};
use moire_program::text::{Format, parse, print};
use moire_worker::job::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An engine for which the first item breaks a rule: its program has fences in two threads, among many stores.
#[derive(Default)]
struct Cutting {
    pause: Duration,
    /// Whether a whole minimisation never ends.
    stuck: bool,
    /// Number of parts of minimisations answered.
    parts: AtomicU64,
    /// Number of whole minimisations begun.
    wholes: AtomicU64,
}

fn found() -> String {
    let mut out = String::from("moire \"found\"\n.global .b32 x;\n.global .b32 y;\n");
    for thread in 0..4 {
        out.push_str(&format!("P{thread} (gpu 0, cta {thread}) {{\n"));
        for k in 0..12 {
            match k == 5 && thread % 2 == 1 {
                true => out.push_str("fence.sc.gpu;\n"),
                false => out.push_str(&format!("st.relaxed.gpu.u32 [{}], {};\n", ["x", "y"][k % 2], k % 5)),
            }
        }
        out.push_str("}\n");
    }
    out
}

fn holds(program: &Program) -> bool {
    let fence = |op: &Op| matches!(op, Op::Fence { .. });
    program.threads.iter().filter(|t| t.body.iter().any(|i| fence(&i.op))).count() >= 2
}

fn read(text: &str) -> Option<Program> {
    parse(text, Format::Native).ok()
}

impl Engine for Cutting {
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }
    fn fingerprint(&self) -> String {
        "cutting-1".to_owned()
    }
    fn run(&self, item: &Item, _: &Cancel) -> ItemReport {
        let claim = Claim { oracle: "cutting".to_owned(), program: found(), ..Claim::default() };
        ItemReport {
            claims: (item.index == 0).then_some(claim).into_iter().collect(),
            ..ItemReport::default()
        }
    }
    fn verify(&self, claim: &Claim, _: &Cancel) -> Verification {
        match read(&claim.program).is_some_and(|p| holds(&p)) {
            true => Verification::Confirmed,
            false => Verification::Refuted("not here".to_owned()),
        }
    }
    fn minimise(&self, claim: &Claim, _: Budget, cancel: &Cancel, _: &mut dyn FnMut(&Claim)) -> Reduced {
        self.wholes.fetch_add(1, Ordering::Relaxed);
        while self.stuck && !cancel.is_cancelled() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let reduced = minimise(&read(&claim.program).unwrap(), holds, Limits::default());
        let claim = Claim { program: print(&reduced.program), ..claim.clone() };
        Reduced { claim, tried: reduced.tried as u64, normal: true }
    }
    fn part(&self, claim: &Claim, part: &Part, _: &Cancel) -> Option<Parted> {
        std::thread::sleep(self.pause);
        self.parts.fetch_add(1, Ordering::Relaxed);
        Parted::of(claim, part, holds)
    }
}

async fn start(dir: &Path) -> Local {
    fake::start(dir, Config { avoid_ms: 100, ..Config::default() }).await
}

fn worker(local: &Local, engine: &Arc<Cutting>) -> tokio::task::JoinHandle<()> {
    let (addr, engine) = (local.addr(), engine.clone());
    let options = moire_worker::Options { name: "w".to_owned(), threads: 1 };
    tokio::spawn(async move { _ = moire_worker::work(addr, engine, options).await })
}

/// Runs the campaign to its end; returns its digest and the reduced program.
async fn finish(local: Local) -> (String, String) {
    let end = local.run(fake::spec(3), tokio::time::sleep(Duration::from_secs(60)), |_| {}).await.unwrap();
    assert_eq!(end.phase(), v1::CampaignPhase::Done, "{end:?}");
    let findings = local.findings().await.unwrap();
    local.stop().await.unwrap();
    assert_eq!(findings.len(), 1);
    (end.digest, findings[0].reduced.clone())
}

fn kept(dir: &Path) -> u64 {
    let (store, _) = Store::open(dir, Options::default()).unwrap();
    store.stats().unwrap().records.get("reductions").copied().unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_gives_the_result_of_one_worker_even_if_workers_die() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Arc::new(Cutting::default());
    let local = start(dir.path()).await;
    let task = worker(&local, &engine);
    let (digest, reduced) = finish(local).await;
    task.abort();
    assert!(engine.parts.load(Ordering::Relaxed) > 10, "the cuts were leased");
    assert_eq!((reduced.matches("fence.").count(), reduced.matches("st.").count()), (2, 0), "{reduced}");
    assert_eq!(kept(dir.path()), 0, "no reduction is kept once the finding is stored");

    let dir = tempfile::tempdir().unwrap();
    let engine = Arc::new(Cutting { pause: Duration::from_millis(10), ..Cutting::default() });
    let local = start(dir.path()).await;
    let mut tasks = vec![worker(&local, &engine), worker(&local, &engine), worker(&local, &engine)];
    local.create(fake::spec(3)).await.unwrap();
    while engine.parts.load(Ordering::Relaxed) < 4 {
        tokio::task::yield_now().await;
    }
    tasks.remove(0).abort();
    assert_eq!(finish(local).await, (digest, reduced));
    tasks.into_iter().for_each(|t| t.abort());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_best_claim_so_far_survives_a_restart() {
    let (quiet, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let engine = Arc::new(Cutting::default());
    let local = start(quiet.path()).await;
    let task = worker(&local, &engine);
    let expected = finish(local).await;
    task.abort();

    let stuck = Arc::new(Cutting { stuck: true, ..Cutting::default() });
    let local = start(dir.path()).await;
    let task = worker(&local, &stuck);
    local.create(fake::spec(3)).await.unwrap();
    while stuck.wholes.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    local.stop().await.unwrap();
    task.abort();
    assert_eq!(kept(dir.path()), 1, "the best claim of the first round");
    let again = Arc::new(Cutting::default());
    let local = start(dir.path()).await;
    let task = worker(&local, &again);
    assert_eq!(finish(local).await, expected);
    task.abort();
    assert_eq!(again.parts.load(Ordering::Relaxed), 0, "it resumed from the stop");
    assert_eq!(kept(dir.path()), 0);
}
