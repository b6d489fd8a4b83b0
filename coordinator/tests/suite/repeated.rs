//! A share of the answers is given again by another worker, and compared.

use crate::fake::{Fake, connected, people, spec};
use moire_coordinator::{Local, lease::Config, v1};
use moire_explore::search::share::Piece;
use moire_explore::{Abstain, Summary};
use moire_worker::job::*;
use moire_worker::piece::{Exploration, Explored, Step};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A worker that counts `less` executions too few at every item and in every piece, and marks those executions.
struct Counting {
    honest: Fake,
    less: u64,
    marks: BTreeMap<String, Vec<u32>>,
    /// Whether it counts what a device showed.
    samples: bool,
}

/// What an honest worker marks.
fn marks() -> BTreeMap<String, Vec<u32>> {
    BTreeMap::from([("flag race".to_owned(), vec![1, 2]), ("place race P0:1 P1:1".to_owned(), vec![1, 2])])
}

impl Engine for Counting {
    fn capabilities(&self) -> Vec<String> {
        vec!["tree".to_owned()]
    }
    fn fingerprint(&self) -> String {
        self.honest.fingerprint()
    }
    fn run(&self, item: &Item, cancel: &Cancel) -> ItemReport {
        let mut report = self.honest.run(item, cancel);
        for row in &mut report.engines {
            row.executions -= self.less;
            row.engine =
                if self.samples { "device/sm_90".to_owned() } else { std::mem::take(&mut row.engine) };
        }
        report
    }
    fn verify(&self, claim: &Claim, cancel: &Cancel) -> Verification {
        self.honest.verify(claim, cancel)
    }
    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        cancel: &Cancel,
        told: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        self.honest.minimise(claim, budget, cancel, told)
    }
    fn explore(
        &self,
        _: &Exploration,
        _: &Piece,
        _: &Cancel,
        _: &(dyn Fn(Step) + Sync),
    ) -> Result<Explored, Abstain> {
        let complete = 7 - self.less;
        let summary = Summary { complete, ..Summary::default() };
        Ok(Explored { summary, digest: complete, marks: self.marks.clone() })
    }
}

/// A coordinator that has this share done again, and workers that count so many executions too few.
async fn fleet(dir: &std::path::Path, share: u32, less: &[u64]) -> Local {
    workers(dir, share, less.iter().map(|less| (*less, marks()))).await
}

/// The same with workers that also mark these executions.
async fn workers(
    dir: &std::path::Path,
    share: u32,
    all: impl IntoIterator<Item = (u64, BTreeMap<String, Vec<u32>>)>,
) -> Local {
    started(dir, share, all, false).await
}

async fn started(
    dir: &std::path::Path,
    share: u32,
    all: impl IntoIterator<Item = (u64, BTreeMap<String, Vec<u32>>)>,
    samples: bool,
) -> Local {
    let config = Config { repeat_per_mille: share, secret: Some(5), ..Config::default() };
    let local = Local::start(dir, "127.0.0.1:0".parse().unwrap(), config).await.unwrap();
    for (n, (less, marks)) in (1..).zip(all) {
        let engine = Arc::new(Counting { honest: Fake::default(), less, marks, samples });
        let options = moire_worker::Options { name: format!("w{n}"), threads: 1 };
        let addr = local.addr();
        tokio::spawn(async move { _ = moire_worker::work(addr, engine, options).await });
        connected(&local, n).await;
    }
    local
}

/// What the store says about the fleet after a campaign.
async fn about_the_fleet(share: u32, less: &[u64]) -> Vec<String> {
    told(share, less, false).await
}

async fn told(share: u32, less: &[u64], samples: bool) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let local = started(dir.path(), share, less.iter().map(|less| (*less, marks())), samples).await;
    let limit = tokio::time::sleep(Duration::from_secs(60));
    let end = local.run(spec(640), limit, |_| {}).await.unwrap();
    assert_eq!(end.phase(), v1::CampaignPhase::Done);
    let findings = local.findings().await.unwrap();
    local.stop().await.unwrap();
    findings.into_iter().filter(|f| f.oracle == "fleet").map(|f| f.reduced).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_counts_wrong_becomes_a_finding_about_the_fleet() {
    let said = about_the_fleet(1000, &[0, 1, 0]).await;
    assert!(
        !said.is_empty() && said.iter().all(|text| text.contains("stands alone against two")),
        "{said:?}"
    );
    assert_eq!(about_the_fleet(1000, &[0, 0, 0]).await, Vec::<String>::new());
    assert_eq!(about_the_fleet(0, &[0, 1, 0]).await, Vec::<String>::new(), "nothing is done again");
    assert_eq!(told(1000, &[0, 1, 0], true).await, Vec::<String>::new(), "samples differ");
    let said = about_the_fleet(1000, &[0, 1]).await;
    assert!(said.iter().any(|text| text.contains("no third worker decides")), "{said:?}");
}

/// The end of an exploration. The first worker gets the only piece.
async fn explored(less: &[u64]) -> v1::ExploreStatus {
    let dir = tempfile::tempdir().unwrap();
    ended(fleet(dir.path(), 20, less).await).await
}

async fn ended(local: Local) -> v1::ExploreStatus {
    let asked = v1::Exploration {
        program: "any".to_owned(),
        tree: "tree".to_owned(),
        fingerprint: vec![0; 32],
        ..v1::Exploration::default()
    };
    let mut stream = people(&local).await.explore(asked).await.unwrap().into_inner();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(30), stream.message()).await;
        let status = next.unwrap().unwrap().unwrap();
        if status.over {
            local.stop().await.unwrap();
            return status;
        }
    }
}

/// The last stretch is counted twice in any case, so that no exploration rests on the word of one worker where two are there.
#[tokio::test(flavor = "multi_thread")]
async fn an_exploration_rests_on_two_workers_where_there_are_two() {
    let executions = |status: &v1::ExploreStatus| status.explored.clone().unwrap_or_default().complete;
    let agreed = explored(&[0, 0]).await;
    assert_eq!((executions(&agreed), agreed.twice, agreed.failed.as_str()), (7, 7, ""));
    let alone = explored(&[0]).await;
    assert_eq!((executions(&alone), alone.twice, alone.failed.as_str()), (7, 0, ""));
    let contradicted = explored(&[1, 0, 0]).await;
    assert!(contradicted.failed.contains("two workers contradict"), "{contradicted:?}");
    let open = explored(&[1, 0]).await;
    assert!(open.failed.contains("differ"), "{open:?}");
    let right = explored(&[0, 1, 0]).await;
    assert_eq!((executions(&right), right.twice, right.failed.as_str()), (7, 7, ""));
}

/// A race that one worker leaves out, moves or makes up is none, or is one, by the word of that worker alone.
#[tokio::test(flavor = "multi_thread")]
async fn what_decides_a_verdict_is_compared_as_the_counts_are() {
    let end = async |liar: &BTreeMap<String, Vec<u32>>, honest: usize| {
        let dir = tempfile::tempdir().unwrap();
        let honest = std::iter::repeat_n(marks(), honest);
        let all = std::iter::once(liar.clone()).chain(honest).map(|marks| (0, marks));
        ended(workers(dir.path(), 20, all).await).await
    };
    let agreed = end(&marks(), 1).await;
    assert_eq!((agreed.twice, agreed.failed.as_str()), (7, ""));
    let without = |name: &str| marks().into_iter().filter(|(n, _)| n != name).collect::<BTreeMap<_, _>>();
    let lies = [
        BTreeMap::new(),
        without("flag race"),
        without("place race P0:1 P1:1"),
        marks().into_keys().map(|name| (name, vec![0])).collect(),
        marks().into_iter().chain([("flag other".to_owned(), vec![3])]).collect(),
    ];
    for lie in lies {
        let open = end(&lie, 1).await;
        assert!(open.failed.contains("differ") && open.twice == 0, "{lie:?}: {open:?}");
        let contradicted = end(&lie, 2).await;
        assert!(contradicted.failed.contains("two workers contradict"), "{lie:?}: {contradicted:?}");
    }
}
