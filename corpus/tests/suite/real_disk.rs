//! A disk that is really full: a small tmpfs, mounted in a namespace of its own, gone with the child process.
//!
//! Nothing acknowledged is lost, the error says what to do, a full store can be checked and opened, and once
//! there is space again the work goes on. Where namespaces are not allowed the test says so and ends.

use crate::common::{campaign, finding};
use moire_corpus::*;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const MOUNT: &str = "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"";

/// The reserve is a few segments of the index, as the default is.
fn options() -> Options {
    Options { reserve_bytes: 2 << 20, cache_bytes: 1 << 20, ..Options::default() }
}

/// A command with a tmpfs of `size` at `dir`.
fn on_small_disk(size: &str, dir: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, "sh", size]).arg(dir);
    command
}

/// A finding that does not compress.
fn large(n: u64) -> Finding {
    let noise = (0..40).map(|k| Hash::of(&(n * 64 + k).to_le_bytes()).to_string()).collect();
    Finding { witness: noise, ..finding(n) }
}

/// All of the first `count` findings are there, byte by byte; one more may be: durable, not acknowledged.
fn check(store: &Store, count: u64) {
    let stored = store.findings().collect::<Result<Vec<_>, _>>().unwrap().len() as u64;
    assert!((count..=count + 1).contains(&stored), "acknowledged {count}, found {stored}");
    for n in 0..count {
        assert_eq!(store.finding(&large(n).id).unwrap(), Some(large(n)));
    }
}

/// The same while the disk is full: the index may need space even to read, and then says so, but never lies.
fn check_full(store: &Store, count: u64) {
    match store.findings().find_map(Result::err) {
        None => check(store, count),
        Some(error) => assert!(matches!(error, StoreError::IndexFull), "{error}"),
    }
}

/// The log has all of them; checking it needs no space.
fn sound(dir: &Path, count: u64) {
    let report = fsck(dir, false).unwrap();
    assert!(report.problems.is_empty() && report.records["findings"] >= count, "{report:?}");
}

/// Commits until the store refuses; returns how many were acknowledged, whether it warned before, and the refusal.
fn fill(store: &mut Store) -> (u64, bool, StoreError) {
    let mut warned = false;
    for n in 0..100_000 {
        match store.commit(vec![Write::Finding(Box::new(large(n)))]) {
            Ok(receipt) => warned |= receipt.reserve_used,
            Err(error) => {
                assert!(error.to_string().contains("free space"), "{error}");
                return (n, warned, error);
            }
        }
    }
    panic!("the disk never fills");
}

/// Not a test of its own: the body of the child.
#[test]
fn child() {
    let Some(disk) = std::env::var_os("MOIRE_SMALL_DISK") else { return };
    let (dir, filler) = (Path::new(&disk).join("store"), Path::new(&disk).join("filler"));
    fs::write(&filler, vec![1; 5 << 20]).unwrap();
    let (mut store, recovery) = Store::open(&dir, options()).unwrap();
    assert!(!recovery.no_reserve);
    store.commit(vec![campaign("c")]).unwrap();
    let (count, warned, refusal) = fill(&mut store);
    let again = store.commit(vec![Write::Finding(Box::new(large(count)))]);
    match (&refusal, &again) {
        (StoreError::DiskFull, Err(StoreError::DiskFull)) => {
            assert!(warned, "the reserve carried a commit, and its receipt said so");
            check_full(&store, count);
        }
        (StoreError::IndexFull, Err(StoreError::Stopped)) => {}
        _ => panic!("{refusal:?}, then {again:?}"),
    }
    println!("{refusal}");
    drop(store);
    sound(&dir, count);
    match Store::open(&dir, options()) {
        Ok((store, recovery)) => {
            assert!(recovery.moved_aside.is_empty(), "{recovery:?}");
            check_full(&store, count);
        }
        Err(error) => assert!(matches!(error, OpenError::DiskFull), "{error}"),
    }
    sound(&dir, count);
    fs::remove_file(&filler).unwrap();
    let (mut store, recovery) = Store::open(&dir, options()).unwrap();
    assert!(!recovery.no_reserve, "the reserve is back");
    check(&store, count);
    store.commit(vec![Write::Finding(Box::new(large(count)))]).unwrap();
    drop(store);
    check(&Store::open(&dir, options()).unwrap().0, count + 1);
    sound(&dir, count + 1);
    println!("refused after {count}");
}

#[test]
fn a_full_disk_loses_nothing_and_a_freed_one_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let probe = on_small_disk("1m", dir.path()).arg("true").stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("skipped: a tmpfs cannot be mounted here (no unshare, or no user namespaces)");
        return;
    }
    // Sizes at which the log, the index or the reserve is the one that does not fit.
    for size in (9300..15_000).step_by(800).map(|kib| format!("{kib}k")) {
        let output = on_small_disk(&size, dir.path())
            .arg(std::env::current_exe().unwrap())
            .args(["real_disk::child", "--exact", "--nocapture"])
            .env("MOIRE_SMALL_DISK", dir.path())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(output.status.success() && said.contains("refused after"), "{size}: {said}");
    }
}
