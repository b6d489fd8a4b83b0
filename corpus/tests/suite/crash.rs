//! Kills a child process at each failpoint, and at random moments, and opens what it left.
//!
//! The child prints `ack N` after commit N is acknowledged. After the kill: every acknowledged record is there,
//! no half record is visible, the work goes on, and the digest is that of a run nobody disturbed.
//! `MOIRE_KILL_ROUNDS` sets the number of random rounds.

use moire_corpus::*;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const COMMITS: u64 = 30;
const ITEMS: u64 = 10;

fn options() -> Options {
    Options { reserve_bytes: 4096, cache_bytes: 1 << 20, ..Options::default() }
}

fn finding(n: u64) -> Finding {
    let id = Hash::of(&n.to_le_bytes());
    Finding { id, reduced: format!("program {n}"), witness: "w".repeat(2000), ..Finding::default() }
}

/// Commit `n`: one finding, its sighting, and ten items, all or nothing.
fn batch(n: u64) -> Vec<Write> {
    let done =
        |item: u64| ItemDone { item, epoch: 1, digest: Hash::of(&item.to_le_bytes()), ..ItemDone::default() };
    vec![
        Write::Finding(Box::new(finding(n))),
        Write::Sighting { campaign: "c".into(), item: n * ITEMS, finding: finding(n).id },
        Write::Items { campaign: "c".into(), items: (n * ITEMS..(n + 1) * ITEMS).map(done).collect() },
    ]
}

/// Makes the commits that are missing, and prints which are acknowledged.
fn work(dir: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let (mut store, _) = Store::open(dir, options())?;
    let campaign = Campaign { name: "c".into(), ..Campaign::default() };
    store.commit(vec![Write::Campaign(Box::new(campaign))])?;
    let first = store.progress("c")?.next() / ITEMS;
    for n in first..COMMITS {
        store.put_bundle(format!("bundle {n}").as_bytes())?;
        store.commit(batch(n))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nack {n}")?;
        out.flush()?;
        if n % 8 == 5 {
            store.save_snapshot(&Snapshot { at_ms: n, ..Snapshot::default() })?;
            store.compact()?;
        }
    }
    Ok(())
}

/// Not a test of its own: the body of the child.
#[test]
fn child() {
    let Some(dir) = std::env::var_os("MOIRE_CRASH_DIR") else { return };
    let _scenario = fail::FailScenario::setup();
    work(Path::new(&dir)).unwrap();
}

/// Runs the child, killing it after `kill_after`; returns the last acknowledged commit.
fn run(dir: &Path, failpoints: &str, kill_after: Option<Duration>) -> (Option<u64>, bool) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::child", "--exact", "--nocapture"])
        .env("MOIRE_CRASH_DIR", dir)
        .env("FAILPOINTS", failpoints)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let acks = out.lines().map_while(Result::ok).filter_map(|l| l.strip_prefix("ack ")?.parse().ok());
        acks.last()
    });
    if let Some(after) = kill_after {
        std::thread::park_timeout(after);
        let _ = child.kill();
    }
    let success = child.wait().unwrap().success();
    (reader.join().unwrap(), success)
}

/// Every commit up to `acknowledged` is there, and every commit that is there is whole.
fn check(dir: &Path, acknowledged: Option<u64>) {
    let (store, _) = Store::open(dir, options()).unwrap();
    let progress = store.progress("c").unwrap();
    let commits = progress.done() / ITEMS;
    assert!(progress.done() % ITEMS == 0, "half a commit is visible: {progress:?}");
    assert!(
        commits >= acknowledged.map_or(0, |n| n + 1),
        "acknowledged {acknowledged:?}, found {commits} commits"
    );
    assert_eq!(progress.next(), progress.done());
    assert_eq!(store.findings().count() as u64, commits);
    assert_eq!(store.sightings("c").unwrap().len() as u64, commits);
    for n in 0..commits {
        assert_eq!(store.finding(&finding(n).id).unwrap(), Some(finding(n)));
        let bundle = format!("bundle {n}").into_bytes();
        assert_eq!(store.bundle(&Hash::of(&bundle)).unwrap(), Some(bundle));
    }
    drop(store);
    assert!(fsck(dir, false).unwrap().problems.is_empty());
}

fn quiet_digest() -> Hash {
    let dir = tempfile::tempdir().unwrap();
    work(dir.path()).unwrap();
    Store::open(dir.path(), options()).unwrap().0.digest("c").unwrap()
}

fn finish(dir: &Path, expected: Hash) {
    assert!(run(dir, "", None).1, "the undisturbed child ends well");
    check(dir, Some(COMMITS - 1));
    assert_eq!(Store::open(dir, options()).unwrap().0.digest("c").unwrap(), expected);
}

#[test]
fn killed_at_each_failpoint() {
    let expected = quiet_digest();
    for point in failpoints::ALL {
        for skip in [0, 3] {
            let dir = tempfile::tempdir().unwrap();
            // Leave a torn tail and no clean index, so that recovery passes its points too.
            assert!(!run(dir.path(), "store.append.half=4*off->return(abort)", None).1);
            let action = if skip == 0 {
                format!("{point}=return(abort)")
            } else {
                format!("{point}={skip}*off->return(abort)")
            };
            let (acknowledged, success) = run(dir.path(), &action, None);
            assert!(skip > 0 || !success, "{point} was never passed");
            check(dir.path(), acknowledged);
            finish(dir.path(), expected);
        }
    }
}

#[test]
fn killed_at_random_moments() {
    let rounds: u64 = std::env::var("MOIRE_KILL_ROUNDS").map_or(8, |r| r.parse().unwrap());
    let expected = quiet_digest();
    let dir = tempfile::tempdir().unwrap();
    let mut last = None;
    for round in 0..rounds {
        let spread = Hash::of(&round.to_le_bytes()).0[0];
        let (acknowledged, _) = run(dir.path(), "", Some(Duration::from_millis(5 + u64::from(spread))));
        last = last.max(acknowledged);
        check(dir.path(), last);
    }
    finish(dir.path(), expected);
}

/// A write error instead of a kill: nothing half done stays visible, and the next start goes on.
#[test]
fn errors_at_each_failpoint() {
    let expected = quiet_digest();
    for point in failpoints::ALL {
        let dir = tempfile::tempdir().unwrap();
        let (acknowledged, _) = run(dir.path(), &format!("{point}=2*off->1*return->off"), None);
        check(dir.path(), acknowledged);
        finish(dir.path(), expected);
    }
}
