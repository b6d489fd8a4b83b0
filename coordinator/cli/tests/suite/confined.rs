//! Bounds on memory: of inputs, of what programs declare, and of the items of a worker.

use crate::cli::moire;
use crate::fleet::Fleet;
use moire_console::control;
use moire_coordinator::v1;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The binary, with its data limited to so many KiB.
fn limited(kib: u32, folder: &std::path::Path, args: &str) -> std::process::Output {
    let line = format!("ulimit -d {kib}; exec {} {args}", env!("CARGO_BIN_EXE_moire"));
    Command::new("sh").args(["-c", &line]).current_dir(folder).output().unwrap()
}

/// A device without end is read up to the limit and no further.
#[test]
fn an_input_has_a_largest_size() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.litmus"), "moire \"s\"\n.global .b32 x;\n").unwrap();
    for (args, most, says) in [
        ("check /dev/zero", 400_000, "more than 64 MiB"),
        ("check --max-input 1M /dev/zero", 200_000, "more than 1 MiB"),
        ("check --model ptx small.litmus --max-input 10", 200_000, "more than 10 bytes"),
    ] {
        let began = Instant::now();
        let out = limited(most, folder.path(), args);
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args}: {text}");
        assert!(text.contains(says) && text.contains("hint: --max-input"), "{args}: {text}");
        assert!(began.elapsed() < Duration::from_secs(30), "{args}");
    }
}

/// What a program declares costs nothing; what it accesses does.
#[test]
fn declared_bytes_cost_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "moire \"large\"\n".to_owned();
    for n in 0..800 {
        let _ = writeln!(text, ".global .b8 a{n:x}[1048576];");
    }
    text += "P0 (gpu 0, cta 0) {\n  st.weak.u8 [a0+1048575], 1;\n}\nP1 (gpu 0, cta 1) {\n  st.weak.u8 [a1+1048575], 1;\n}\n";
    std::fs::write(folder.path().join("large.litmus"), &text).unwrap();
    let out = limited(200_000, folder.path(), "check large.litmus");
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{said}\n{}", String::from_utf8_lossy(&out.stderr));
    assert!(said.contains("clean"), "{said}");
}

/// A coordinator, and its address.
fn serve(folder: &std::path::Path) -> (Fleet, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(["serve", "--listen", "127.0.0.1:0", "--repeat", "0", "--store"])
        .arg(folder.join("store"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let find = |line: String| Some(line.split_once(" on ")?.1.split(';').next()?.to_owned());
    let to = lines.filter_map(find).next().unwrap();
    (Fleet(vec![server]), to)
}

/// Waits until so many workers are connected.
fn connected(to: &str, workers: usize) {
    control::runtime().unwrap().block_on(async {
        let address: std::net::SocketAddr = to.parse().unwrap();
        let mut client = control::connect(&address.into()).await.unwrap();
        let status = v1::GetStatusRequest {};
        while (client.get_status(status).await.unwrap().get_ref().workers as usize) < workers {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

/// Runs a campaign of eight items with a worker for each of these failpoints of lease processes. Returns what is shown of
/// it, from the store.
fn campaign(failpoints: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (mut fleet, to) = serve(folder.path());
    for points in failpoints {
        let worker = Command::new(env!("CARGO_BIN_EXE_moire"))
            .args(["work", "--threads", "1", "--memory", "1G", "--coordinator", &to])
            .env("MOIRE_LEASE_FAILPOINTS", points)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        fleet.0.push(worker);
    }
    connected(&to, failpoints.len());
    let start =
        ["campaign", "create", "c", "--programs", "8", "--oracle", "model-pair", "--coordinator", &to];
    let out = moire(folder.path(), &start);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let out = moire(folder.path(), &["campaign", "show", "c", "--coordinator", &to]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if text.contains("Done") {
            break;
        }
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(Instant::now() < until, "{failpoints:?}: {text}\n{said}");
        std::thread::sleep(Duration::from_millis(200));
    }
    for worker in &mut fleet.0[1..] {
        assert!(worker.try_wait().unwrap().is_none(), "{failpoints:?}: the worker has ended");
    }
    drop(fleet);
    let out = moire(folder.path(), &["campaign", "show", "c", "--store", "store"]);
    let shown = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(shown.contains("8 programs"), "{failpoints:?}: {shown}");
    shown
}

/// The digest that is shown of a campaign.
fn digest(shown: &str) -> String {
    shown.lines().find_map(|line| line.trim().strip_prefix("digest ")).unwrap().to_owned()
}

/// Every fourth item ends the process that runs it, or there is memory for none. The worker stays, each such item is counted
/// with the reason, and every other item has its answer.
#[test]
fn an_item_that_ends_its_process_ends_nothing_else() {
    let shown = campaign(&["worker.item=3*off->return(abort)"]);
    assert!(shown.contains("the engine ended: signal: 6 (SIGABRT)"), "{shown}");
    let shown = campaign(&["worker.item=return(memory)"]);
    assert!(shown.contains("8  the limit on memory"), "{shown}");
    // Tried again, each of them has memory.
    let quiet = digest(&campaign(&[""]));
    let shown = campaign(&["worker.item=3*off->return(memory)"]);
    assert!(!shown.contains("memory") && digest(&shown) == quiet, "{shown}");
}

/// Somebody kills the process of every fourth item, or of every item of one worker: no item is blamed for it.
#[test]
fn a_process_that_is_killed_says_nothing_about_its_item() {
    let quiet = digest(&campaign(&[""]));
    for killed in [&["worker.item=3*off->return(kill)"][..], &["worker.item=return(kill)", ""]] {
        let shown = campaign(killed);
        assert!(!shown.contains("limit on memory") && !shown.contains("quarantined"), "{shown}");
        assert_eq!(digest(&shown), quiet, "{shown}");
    }
    // Where it is always killed, the campaign ends, and says what it lacks.
    let shown = campaign(&["worker.item=return(kill)"]);
    assert!(
        !shown.contains("limit on memory") && digest(&shown).contains("without 8 quarantined items"),
        "{shown}"
    );
}
