//! A disk that is really full: a small tmpfs, mounted in a namespace of its own, gone with the child process.
//!
//! Nothing acknowledged is lost, the error says what to do, a full store can be checked and opened, and once
//! there is space again the work goes on. Where namespaces are not allowed the test says so and ends.

mod common;

use common::{campaign, finding};
use moire_corpus::*;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const MOUNT: &str = "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" && shift 2 && exec \"$@\"";

fn options() -> Options {
    Options { reserve_bytes: 256 << 10, cache_bytes: 1 << 20, ..Options::default() }
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

#[test]
fn child() {
    let Some(dir) = std::env::var_os("MOIRE_SMALL_DISK") else { return };
    let disk = Path::new(&dir);
    let store_dir = disk.join("store");
    let filler = disk.join("filler");
    fs::write(&filler, vec![1; 1 << 20]).unwrap();
    let (mut store, recovery) = Store::open(&store_dir, options()).unwrap();
    assert!(!recovery.no_reserve);
    store.commit(vec![campaign("c")]).unwrap();
    let mut acknowledged = 0;
    let mut warned = false;
    let error = loop {
        match store.commit(vec![Write::Finding(Box::new(large(acknowledged)))]) {
            Ok(receipt) => warned |= receipt.reserve_used,
            Err(error) => break error,
        }
        acknowledged += 1;
        assert!(acknowledged < 100_000, "the disk never fills");
    };
    println!("after {acknowledged}: {error}; warned {warned}");
    println!("again: {:?}", store.commit(vec![Write::Finding(Box::new(large(acknowledged)))]));
    let report = fsck(&store_dir, false);
    println!("{report:?}");
    drop(store);
    println!("{:?}", fsck(&store_dir, false));
    println!("{:?}", tree_sizes(&store_dir));
    match Store::open(&store_dir, options()) {
        Ok((store, r)) => println!("reopened {r:?} {}", store.findings().count()),
        Err(e) => println!("not reopened {e}"),
    }
    println!("{:?}", tree_sizes(&store_dir));
    fs::remove_file(&filler).unwrap();
    match Store::open(&store_dir, options()) {
        Ok((store, r)) => println!("reopened {r:?} {}", store.findings().count()),
        Err(e) => println!("not reopened {e}"),
    }
}

fn tree_sizes(dir: &Path) -> Vec<(String, usize)> {
    common::tree(dir).into_iter().map(|(p, b)| (p.display().to_string(), b.len())).collect()
}

#[test]
fn a_full_disk() {
    let dir = tempfile::tempdir().unwrap();
    let probe = on_small_disk("1m", dir.path()).arg("true").stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        println!("skipped: a tmpfs cannot be mounted here (no unshare, or no user namespaces)");
        return;
    }
    for size in ["2m", "3m", "4m", "8m"] {
        let output = on_small_disk(size, dir.path())
            .arg(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env("MOIRE_SMALL_DISK", dir.path())
            .output()
            .unwrap();
        println!("{size} {}\n{}", output.status, String::from_utf8_lossy(&output.stdout));
        println!("{}", String::from_utf8_lossy(&output.stderr));
    }
}
