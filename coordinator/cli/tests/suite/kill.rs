//! A campaign is killed at each named failpoint, in the coordinator, in a worker and in the store, and run again: it
//! ends with the digest of a quiet run, and no finding that was announced is lost.
//!
//! Test builds have the failpoints (see `coordinator/src/failpoints.rs`); `NAME=3*off->return(abort)` ends the process
//! with SIGABRT, without unwinding, when it passes NAME for the fourth time.

use crate::fleet::Fleet;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SIGABRT: i32 = 6;
const PROGRAMS: &str = "150";
/// Models that differ often, under the cheapest oracle.
const PLAN: [&str; 8] = ["--oracle", "model-pair", "--model", "ptx-7.5", "--model", "any", "--model", "ptx"];

/// Failpoints every campaign passes, and how often they are passed before the kill.
const POINTS: &[(&str, u32)] = &[
    (moire_coordinator::failpoints::GRANT, 3),
    (moire_coordinator::failpoints::COMMIT_BEFORE, 4),
    (moire_coordinator::failpoints::COMMIT_AFTER, 4),
    (moire_coordinator::failpoints::VERIFY, 3),
    (moire_coordinator::failpoints::MINIMISED, 2),
    (moire_coordinator::failpoints::CAMPAIGN_DONE, 0),
    (moire_worker::failpoints::LEASE, 4),
    (moire_worker::failpoints::ITEM, 9),
    (moire_worker::failpoints::REPORT_BEFORE, 5),
    (moire_worker::failpoints::REPORT_AFTER, 5),
    (moire_corpus::failpoints::LOCK, 0),
    (moire_corpus::failpoints::REBUILD, 0),
    (moire_corpus::failpoints::APPEND_BEFORE, 4),
    (moire_corpus::failpoints::APPEND_HALF, 5),
    (moire_corpus::failpoints::APPEND_AFTER, 6),
    (moire_corpus::failpoints::SYNC_AFTER, 4),
    (moire_corpus::failpoints::APPLY_BEFORE, 5),
    (moire_corpus::failpoints::APPLY_AFTER, 6),
    (moire_corpus::failpoints::FLUSH, 0),
];

fn moire(args: &[&str], failpoints: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
    command.args(args).env("FAILPOINTS", failpoints).stdin(Stdio::null());
    command
}

fn fuzz(store: &Path, failpoints: &str) -> Output {
    let store = store.to_str().unwrap();
    let args = [
        "fuzz",
        "--stream",
        "core",
        "--programs",
        PROGRAMS,
        "--seed",
        "7",
        "--workers",
        "2",
        "--store",
        store,
    ];
    moire(&[&args[..], &PLAN].concat(), failpoints).output().unwrap()
}

fn abort_at(point: &str, passes: u32) -> String {
    match passes {
        0 => format!("{point}=return(abort)"),
        n => format!("{point}={n}*off->return(abort)"),
    }
}

/// The digest of a run that went to its end.
fn digest(out: &Output) -> String {
    let (text, said) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(matches!(out.status.code(), Some(0 | 10)), "{:?}\n{text}\n{said}", out.status);
    text.lines().last().and_then(|l| l.strip_prefix("digest ")).expect("the last line").to_owned()
}

/// Findings a process announced as durable.
fn announced(stderr: &[u8]) -> BTreeSet<String> {
    let text = String::from_utf8_lossy(stderr);
    let id = |line: &str| Some(line.strip_prefix("finding ")?.split(' ').next()?.to_owned());
    text.lines().filter_map(id).collect()
}

fn stored(store: &Path) -> BTreeSet<String> {
    let (store, _) = moire_corpus::Store::open(store, moire_corpus::Options::default()).unwrap();
    store.findings().map(|f| f.unwrap().id.short()).collect()
}

fn quiet() -> (String, BTreeSet<String>) {
    let dir = tempfile::tempdir().unwrap();
    let out = fuzz(dir.path(), "");
    let (digest, found) = (digest(&out), announced(&out.stderr));
    assert_eq!(found, stored(dir.path()), "every finding is announced");
    assert!(found.len() >= 3, "too quiet to lose anything: {found:?}");
    (digest, found)
}

#[test]
fn killed_at_each_failpoint() {
    let (expected, findings) = quiet();
    for (point, passes) in POINTS {
        let dir = tempfile::tempdir().unwrap();
        let killed = fuzz(dir.path(), &abort_at(point, *passes));
        let said = String::from_utf8_lossy(&killed.stderr);
        assert_eq!(killed.status.signal(), Some(SIGABRT), "{point} is not passed\n{said}");
        let acknowledged = announced(&killed.stderr);
        assert!(acknowledged.is_subset(&findings), "{point}");
        let resumed = fuzz(dir.path(), "");
        assert_eq!(digest(&resumed), expected, "{point}");
        assert_eq!(stored(dir.path()), findings, "{point}");
    }
}

/// Failpoints that only a second start passes: recovery from a first kill is killed too.
#[test]
fn killed_while_recovering() {
    let (expected, findings) = quiet();
    let dir = tempfile::tempdir().unwrap();
    for (point, passes) in [
        (moire_corpus::failpoints::APPEND_HALF, 5),
        (moire_corpus::failpoints::TRUNCATE, 0),
        (moire_corpus::failpoints::REBUILD, 0),
    ] {
        let killed = fuzz(dir.path(), &abort_at(point, passes));
        assert_eq!(killed.status.signal(), Some(SIGABRT), "{point} is not passed");
    }
    assert_eq!(digest(&fuzz(dir.path(), "")), expected);
    assert_eq!(stored(dir.path()), findings);
}

impl Fleet {
    /// A coordinator on a free port.
    fn serve(&mut self, store: &Path, failpoints: &str) -> String {
        let args = ["serve", "--listen", "127.0.0.1:0", "--store", store.to_str().unwrap()];
        let mut child = moire(&args, failpoints).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        self.0.push(child);
        let serving = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("serving"));
        let first = serving.expect("it says where it listens");
        // Read on, so that it never waits for us.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        first.split(" on ").nth(1).and_then(|a| a.split(';').next()).expect("an address").to_owned()
    }
    fn work(&mut self, addr: &str, failpoints: &str) -> usize {
        let args = ["work", "--threads", "1", "--coordinator", addr];
        let child = moire(&args, failpoints).stderr(Stdio::null()).spawn().unwrap();
        self.0.push(child);
        self.0.len() - 1
    }
    /// The signal that a process ends with. None if it ends otherwise, or is still there after two minutes.
    fn signal(&mut self, process: usize) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(120) {
            if let Some(status) = self.0[process].try_wait().unwrap() {
                return status.signal();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }
    fn end(&mut self, process: usize) {
        self.0[process].kill().unwrap();
        self.0[process].wait().unwrap();
    }
}

fn create(addr: &str, name: &str) {
    let args = ["campaign", "create", name, "--seed", "7", "--programs", PROGRAMS, "--coordinator", addr];
    let out = moire(&[&args[..], &PLAN].concat(), "").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// Waits for the end of a campaign; its digest.
fn end_of(addr: &str, name: &str) -> String {
    let start = Instant::now();
    loop {
        let out = moire(&["campaign", "show", name, "--coordinator", addr], "").output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        if text.contains(": Done, ") {
            return text.split(' ').next_back().unwrap_or_default().to_owned();
        }
        assert!(start.elapsed() < Duration::from_secs(120), "{name} does not end: {text}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_worker_dies_and_the_other_finishes() {
    let (expected, findings) = quiet();
    let dir = tempfile::tempdir().unwrap();
    let mut fleet = Fleet(Vec::new());
    let addr = fleet.serve(dir.path(), "");
    for (n, point) in moire_worker::failpoints::ALL.iter().enumerate() {
        let name = format!("c{n}");
        let doomed = fleet.work(&addr, &abort_at(point, 1));
        create(&addr, &name);
        assert_eq!(fleet.signal(doomed), Some(SIGABRT), "{point} is not passed");
        let other = fleet.work(&addr, "");
        assert_eq!(end_of(&addr, &name), expected, "{point}");
        // The next one to die passes its point twice only if nobody else does the work.
        fleet.end(other);
    }
    drop(fleet);
    assert_eq!(stored(dir.path()), findings);
}

#[test]
fn the_coordinator_dies_and_workers_return() {
    let (expected, findings) = quiet();
    let dir = tempfile::tempdir().unwrap();
    let mut fleet = Fleet(Vec::new());
    let addr = fleet.serve(dir.path(), &abort_at(moire_coordinator::failpoints::COMMIT_AFTER, 3));
    create(&addr, "c");
    fleet.work(&addr, "");
    fleet.work(&addr, "");
    assert_eq!(fleet.signal(0), Some(SIGABRT), "the failpoint is passed");
    let addr = fleet.serve(dir.path(), "");
    fleet.work(&addr, "");
    fleet.work(&addr, "");
    assert_eq!(end_of(&addr, "c"), expected);
    drop(fleet);
    assert_eq!(stored(dir.path()), findings);
}
