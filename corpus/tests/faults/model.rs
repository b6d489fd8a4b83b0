//! The store against a map: commits, faults at every named point, power cuts, reopening, compaction, transfer.
//!
//! After a fault the batch in flight is there whole or not at all; everything acknowledged is there. Failpoints
//! are global to a process, so this file has one test.

use crate::common::{campaign, copy, finding, items, options};
use moire_corpus::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

#[derive(Clone, Debug)]
enum Op {
    /// A finding, and a range of items.
    Commit(u8, u8, u8),
    Bundle(u8),
    Snapshot,
    Compact,
    Reopen,
    LoseIndex,
    /// The files as they are now, and that many bytes of a commit that was being written.
    PowerCut(u8),
    /// Export, and import into a new store.
    Transfer,
    Repair,
}

#[derive(Clone, Debug)]
struct Step {
    op: Op,
    /// A failpoint, passes before it fires, and whether it says that the disk is full.
    fault: Option<(&'static str, u8, bool)>,
}

fn step() -> impl Strategy<Value = Step> {
    let op = prop_oneof![
        8 => (any::<u8>(), any::<u8>(), 0..20u8).prop_map(|(n, from, len)| Op::Commit(n % 16, from, len)),
        2 => any::<u8>().prop_map(|n| Op::Bundle(n % 4)),
        1 => Just(Op::Snapshot),
        2 => Just(Op::Compact),
        2 => Just(Op::Reopen),
        1 => Just(Op::LoseIndex),
        2 => any::<u8>().prop_map(Op::PowerCut),
        1 => Just(Op::Transfer),
        1 => Just(Op::Repair),
    ];
    let fault = (prop::sample::select(failpoints::ALL), 0..3u8, any::<bool>());
    (op, proptest::option::of(fault)).prop_map(|(op, fault)| Step { op, fault })
}

struct World {
    /// All directories made, the last one in use.
    dirs: Vec<tempfile::TempDir>,
    at: PathBuf,
    store: Option<Store>,
    findings: BTreeMap<FindingId, Finding>,
    finished: BTreeSet<u64>,
    bundles: BTreeSet<u8>,
    /// The commit that neither was acknowledged nor is known to be absent.
    doubt: Option<(Finding, BTreeSet<u64>)>,
    stamp: u64,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            dirs: Vec::new(),
            at: PathBuf::new(),
            store: None,
            findings: BTreeMap::new(),
            finished: BTreeSet::new(),
            bundles: BTreeSet::new(),
            doubt: None,
            stamp: 0,
        };
        world.fresh_place();
        world.reopen();
        world.store.as_mut().unwrap().commit(vec![campaign("c")]).unwrap();
        world
    }

    fn fresh_place(&mut self) {
        let dir = tempfile::tempdir().unwrap();
        self.at = dir.path().join("store");
        self.dirs.push(dir);
    }

    /// Opens again; a fault may make the first try fail, not the second.
    fn reopen(&mut self) {
        drop(self.store.take());
        let opened = Store::open(&self.at, options()).or_else(|_| {
            fail::list().iter().for_each(|(name, _)| fail::remove(name));
            Store::open(&self.at, options())
        });
        self.store = Some(opened.unwrap().0);
    }

    /// Does it; an error only from a fault.
    fn apply(&mut self, op: &Op) -> Result<(), StoreError> {
        let store = self.store.as_mut().unwrap();
        match *op {
            Op::Commit(n, from, len) => {
                self.stamp += 1;
                let finding = Finding { count: self.stamp, ..finding(n.into()) };
                let range = u64::from(from)..u64::from(from) + u64::from(len);
                self.doubt = Some((finding.clone(), range.clone().collect()));
                store.commit(vec![Write::Finding(Box::new(finding.clone())), items(range.clone())])?;
                self.doubt = None;
                self.findings.insert(finding.id, finding);
                self.finished.extend(range);
            }
            Op::Bundle(n) => {
                store.put_bundle(&[n; 100])?;
                self.bundles.insert(n);
            }
            Op::Snapshot => store.save_snapshot(&Snapshot { at_ms: self.stamp, ..Snapshot::default() })?,
            Op::Compact => drop(store.compact()?),
            Op::Reopen => self.reopen(),
            Op::LoseIndex => {
                drop(self.store.take());
                let _ = fs::remove_dir_all(self.at.join("index"));
                self.reopen();
            }
            Op::PowerCut(tail) => {
                let old = self.at.clone();
                self.fresh_place();
                copy(&old, &self.at);
                let log = fs::OpenOptions::new().append(true).open(self.at.join("findings.log"));
                let torn = [&b"MoFr\x40\0\0\0"[..], &[0xa5; 300]].concat();
                log.unwrap().write_all(&torn[..tail.into()]).unwrap();
                self.reopen();
            }
            Op::Transfer => {
                let export = self.dirs.last().unwrap().path().join("export.jsonl");
                moire_corpus::export(store, &export)?;
                let (old, places) = (self.at.clone(), self.dirs.len());
                self.fresh_place();
                if let Err(error) = import(&export, &self.at) {
                    assert!(!self.at.exists(), "half an import");
                    (self.at, _) = (old, self.dirs.truncate(places));
                    return Err(error);
                }
                self.reopen();
            }
            Op::Repair => {
                drop(self.store.take());
                let _ = fsck(&self.at, true);
                self.reopen();
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) {
        if let Some((point, passes, full)) = step.fault {
            let action = if full { "return(ENOSPC)" } else { "return" };
            fail::cfg(point, &format!("{passes}*off->{action}")).unwrap();
        }
        let done = self.apply(&step.op);
        fail::list().iter().for_each(|(name, _)| fail::remove(name));
        if let Err(error) = done {
            assert!(step.fault.is_some(), "{step:?}: {error}");
            self.reopen();
            if let Some((finding, range)) = self.doubt.take()
                && self.store.as_ref().unwrap().finding(&finding.id).unwrap() == Some(finding.clone())
            {
                self.findings.insert(finding.id, finding);
                self.finished.extend(range);
            }
        }
    }

    fn check(&self) {
        let store = self.store.as_ref().unwrap();
        let stored: Vec<_> = store.findings().map(|f| f.unwrap()).collect();
        assert_eq!(stored, self.findings.values().cloned().collect::<Vec<_>>());
        let progress = store.progress("c").unwrap();
        assert_eq!(progress.done(), self.finished.len() as u64);
        assert!(self.finished.iter().all(|i| progress.contains(*i)));
        assert_eq!(progress.counters.executions, self.finished.iter().sum::<u64>());
        for n in &self.bundles {
            assert_eq!(store.bundle(&Hash::of(&[*n; 100])).unwrap().unwrap(), [*n; 100]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_a_map_whatever_happens(steps in proptest::collection::vec(step(), 1..24)) {
        // Failpoints are global to the process.
        let _alone = fail::FailScenario::setup();
        let mut world = World::new();
        for step in &steps {
            world.step(step);
            world.check();
        }
        drop(world.store.take());
        let report = fsck(&world.at, false).unwrap();
        prop_assert_eq!(report.problems, Vec::<String>::new());
    }
}
