//! Protection of a store: one process at a time, checks that write nothing, directories of other programs refused.

use crate::common::{campaign, finding, items, open, options, three_commits, tree};
use moire_corpus::*;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Not a test of its own: holds the store until its input ends.
#[test]
fn holder() {
    let Some(dir) = std::env::var_os("MOIRE_HOLD_DIR") else { return };
    let _store = open(Path::new(&dir));
    println!("\nheld");
    let _ = std::io::stdin().lines().next();
}

/// Another process that has the store open.
fn hold(dir: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["protect::holder", "--exact", "--nocapture"])
        .env("MOIRE_HOLD_DIR", dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line != "held\n" {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the child ended before it held the store");
    }
    (child, out)
}

#[test]
fn a_second_process_is_refused_and_told_whom_to_stop() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, _out) = hold(dir.path());
    let before = tree(dir.path());
    let expected = format!("is in use by process {}; stop it, or use another --store", child.id());
    for error in [Store::open(dir.path(), options()).err(), fsck(dir.path(), false).err()] {
        let text = error.unwrap().to_string();
        assert!(text.contains(&expected), "{text}");
    }
    assert_eq!(tree(dir.path()), before, "a refused process changes nothing");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
    drop(open(dir.path()));
    let (mut child, _out) = hold(dir.path());
    child.kill().unwrap();
    child.wait().unwrap();
    drop(open(dir.path()));
    assert_eq!(fs::read(dir.path().join("LOCK")).unwrap(), b"", "no pid is left for a later message");
}

#[test]
fn fsck_writes_nothing_and_needs_no_right_to() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    three_commits(&store);
    let hash = open(&store).put_bundle(b"a bundle").unwrap().to_string();
    // Damage of each kind, for fsck to find and leave alone.
    fs::write(store.join("bundles").join(&hash[..2]).join(&hash), b"another").unwrap();
    let log = [fs::read(store.join("findings.log")).unwrap(), b"torn".to_vec()].concat();
    fs::write(store.join("findings.log"), log).unwrap();
    let before = tree(&store);
    let expected = fsck(&store, false).unwrap();
    assert_eq!(expected.problems.len(), 2, "{expected:?}");
    assert_eq!(tree(&store), before);
    let modes = |file: u32, folder: u32| {
        for name in before.keys() {
            fs::set_permissions(store.join(name), fs::Permissions::from_mode(file)).unwrap();
        }
        fs::set_permissions(&store, fs::Permissions::from_mode(folder)).unwrap();
    };
    modes(0o444, 0o555);
    let read_only = fsck(&store, false);
    let times = |name| fs::metadata(store.join(name)).unwrap().modified().unwrap();
    let touched = [times("LOCK"), times("findings.log")];
    assert_eq!(fsck(&store, false).unwrap(), expected);
    assert_eq!([times("LOCK"), times("findings.log")], touched);
    modes(0o644, 0o755);
    assert_eq!(read_only.unwrap(), expected);
    assert_eq!(tree(&store), before);
}

/// Root ignores permissions; nobody writes to a file system mounted read-only.
#[test]
fn fsck_works_on_a_read_only_mount() {
    if let Some(dir) = std::env::var_os("MOIRE_READ_ONLY_DIR") {
        let dir = Path::new(&dir);
        assert!(fs::write(dir.join("x"), b"").is_err(), "the mount is read-only");
        assert_eq!(fsck(dir, false).unwrap().problems, Vec::<String>::new());
        println!("\nchecked");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    three_commits(dir.path());
    let mount = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"";
    let namespace = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]).arg(dir.path());
        command
    };
    if !namespace().arg("true").stderr(Stdio::null()).status().is_ok_and(|s| s.success()) {
        println!("skipped: nothing can be mounted here (no unshare, or no user namespaces)");
        return;
    }
    let output = namespace()
        .arg(std::env::current_exe().unwrap())
        .args(["protect::fsck_works_on_a_read_only_mount", "--exact", "--nocapture"])
        .env("MOIRE_READ_ONLY_DIR", dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("checked"), "{said}");
}

#[test]
fn repair_moves_aside_and_never_deletes() {
    let dir = tempfile::tempdir().unwrap();
    three_commits(dir.path());
    let mut store = open(dir.path());
    store.commit(vec![Write::Finding(Box::new(finding(3)))]).unwrap();
    let hash = store.put_bundle(b"a bundle").unwrap().to_string();
    drop(store);
    let path = dir.path().join("findings.log");
    let mut log = fs::read(&path).unwrap();
    let at = log.windows(9).position(|w| w == b"program 2").unwrap();
    log[at] ^= 1;
    fs::write(&path, &log).unwrap();
    let bundle = dir.path().join("bundles").join(&hash[..2]).join(&hash);
    fs::write(&bundle, b"another").unwrap();
    fs::write(dir.path().join("FORMAT"), b"moire-st\xff").unwrap();
    let report = fsck(dir.path(), true).unwrap();
    // The loss, where it is, FORMAT, the bundle.
    assert_eq!(report.problems.len(), 4, "{report:?}");
    // The log, FORMAT, the bundle, the index that was of another log; and the log rewritten.
    assert_eq!(report.repairs.len(), 5, "{report:?}");
    let after = tree(dir.path());
    for lost in [&log[..], b"another", b"moire-st\xff"] {
        assert!(after.values().any(|bytes| bytes == lost), "kept: {}", lost.escape_ascii());
    }
    assert_eq!(fsck(dir.path(), false).unwrap().problems.len(), 1, "the loss stays until it is acknowledged");
    open(dir.path()).acknowledge("a test", "the damage was wanted").unwrap();
    assert_eq!(fsck(dir.path(), false).unwrap().problems, Vec::<String>::new());
    let counts: Vec<_> = open(dir.path()).findings().map(|f| f.unwrap().count).collect();
    assert_eq!(counts.into_iter().collect::<std::collections::BTreeSet<_>>(), [1, 3].into());
}

#[test]
fn a_newer_format_is_refused_untouched_with_what_to_do() {
    for newer in ["moire-store 2\n", "moire-store 4294967296\n", "moire-store 99999999999999999999\n"] {
        let dir = tempfile::tempdir().unwrap();
        three_commits(dir.path());
        fs::write(dir.path().join("FORMAT"), newer).unwrap();
        let before = tree(dir.path());
        let found = newer.trim().rsplit(' ').next().unwrap();
        for error in [
            Store::open(dir.path(), options()).err(),
            fsck(dir.path(), false).err(),
            fsck(dir.path(), true).err(),
        ] {
            let text = error.unwrap().to_string();
            let says = format!("store has format {found}, this version knows 1");
            assert!(text.contains(&says) && text.contains("use the moire that wrote it"), "{text}");
        }
        assert_eq!(tree(dir.path()), before);
    }
}

#[test]
fn a_newer_log_under_a_known_format_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    three_commits(dir.path());
    let path = dir.path().join("findings.log");
    let mut log = fs::read(&path).unwrap();
    log[8] = 7;
    let crc = crc32c::crc32c(&log[..20]);
    log[20..24].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, &log).unwrap();
    let error = Store::open(dir.path(), options()).err().unwrap().to_string();
    assert!(error.contains("format 7, this version knows 1"), "{error}");
    assert!(matches!(fsck(dir.path(), true), Err(OpenError::Newer { .. })));
    assert_eq!(fs::read(&path).unwrap(), log);
}

#[test]
fn a_folder_of_other_files_does_not_become_a_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "text").unwrap();
    let error = Store::open(dir.path(), options()).err().unwrap().to_string();
    assert!(error.contains("holds other files; give an empty or a new directory"), "{error}");
    assert_eq!(tree(dir.path()).len(), 1);
}

#[test]
fn a_huge_log_is_refused_before_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    three_commits(dir.path());
    let path = dir.path().join("findings.log");
    // Sparse: takes no space, but reading it would take this much memory.
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    for error in [Store::open(dir.path(), options()).err(), fsck(dir.path(), false).err()] {
        let text = error.unwrap().to_string();
        assert!(text.contains("has 1099511627776 bytes, the limit is 4294967296"), "{text}");
    }
}

#[test]
fn a_huge_bundle_is_damage_not_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(dir.path());
    let hash = store.put_bundle(b"a bundle").unwrap();
    let name = hash.to_string();
    let path = dir.path().join("bundles").join(&name[..2]).join(&name);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let error = store.bundle(&hash).unwrap_err().to_string();
    assert!(error.contains("the limit is 8388608"), "{error}");
    moire_corpus::backup(&store, &dir.path().join("backup")).unwrap();
    assert_eq!(store.put_bundle(b"a bundle").unwrap(), hash, "stored again beside the damaged one");
    assert_eq!(store.bundle(&hash).unwrap().unwrap(), b"a bundle");
}

#[test]
fn the_log_is_compacted_before_it_grows_over_its_limit() {
    let dir = tempfile::tempdir().unwrap();
    let limited = Options { log_bytes: 60_000, ..options() };
    let mut store = Store::open(dir.path(), limited).unwrap().0;
    store.commit(vec![campaign("c")]).unwrap();
    for item in 0..200 {
        store.commit(vec![items([item]), Write::Finding(Box::new(finding(item % 3)))]).unwrap();
    }
    let stats = store.stats().unwrap();
    assert!(stats.log_bytes <= 60_000 && stats.generation > 1, "{stats:?}");
    assert_eq!(store.progress("c").unwrap().completed, [(0, 200)]);
    let mut committed = 3;
    let error = loop {
        let large = Finding { witness: "w".repeat(9000), ..finding(committed) };
        match store.commit(vec![Write::Finding(Box::new(large))]) {
            Ok(_) => committed += 1,
            Err(error) => break error,
        }
        assert!(committed < 20, "the limit holds");
    };
    assert!(error.to_string().contains("the limit is 60000: go on in a new store"), "{error}");
    assert_eq!(store.findings().count() as u64, committed);
    drop(store);
    assert_eq!(open(dir.path()).findings().count() as u64, committed);
}
