//! A coordinator and two workers as processes in network namespaces of their own. Their links go down in the middle of a
//! campaign, for longer than a worker may be silent, and come up again: it ends with the digest of a quiet run.
//!
//! Skipped, with a line that says why, where this user may not make namespaces.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set for the test's second life, inside of the namespaces.
const INSIDE: &str = "MOIRE_TEST_INSIDE";
/// A world of its own for the coordinator, and one for each worker, with a wire to it.
const WIRES: &str = "set -e
mount -t tmpfs none /run
mkdir /run/netns
ip link set lo up
for n in 1 2; do
  ip netns add w$n
  ip link add wire$n type veth peer name eth0 netns w$n
  ip addr add 10.88.$n.1/24 dev wire$n
  ip link set wire$n up
  ip -n w$n addr add 10.88.$n.2/24 dev eth0
  ip -n w$n link set eth0 up
done";
/// The cheapest oracle.
const PLAN: [&str; 6] = ["--oracle", "model-pair", "--model", "any", "--model", "sc"];
/// Longer than a worker may be silent (15 s).
const SILENCE: Duration = Duration::from_secs(17);
/// Campaigns tried, each twice as large, until one is still running when its wires are cut.
const TRIES: u32 = 4;

/// `program` in new namespaces, as their root; it and all it started end with us.
fn unshared(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child"]);
    command.arg("--mount-proc").arg(program);
    command
}

#[test]
fn a_partition_heals() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let probe = unshared("sh").args(["-c", WIRES]).output();
    let why = match probe {
        Ok(out) if out.status.success() => None,
        Ok(out) => Some(String::from_utf8_lossy(&out.stderr).trim().to_owned()),
        Err(error) => Some(error.to_string()),
    };
    if let Some(why) = why {
        println!("skipped: no network namespaces here: {why}");
        return;
    }
    let again = std::env::current_exe().unwrap();
    let inside = unshared(again)
        .args(["--exact", "a_partition_heals", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(inside.status.success(), "{}\n{}", text(&inside.stdout), text(&inside.stderr));
}

fn sh(script: &str) {
    let out = Command::new("sh").args(["-c", script]).output().unwrap();
    assert!(out.status.success(), "{script}: {}", String::from_utf8_lossy(&out.stderr));
}

/// What `moire ARGS` prints, as it is asked for in the coordinator's world.
fn moire(args: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_moire")).args(args).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(matches!(out.status.code(), Some(0 | 10)), "{args:?}: {said}");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The worker in world `n`.
fn worker(n: u32, certs: &Path) -> Process {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("w{n}"), env!("CARGO_BIN_EXE_moire"), "work", "--threads", "1"]);
    command.args(["--coordinator", &format!("10.88.{n}.1:7420"), "--certs"]).arg(certs.join("worker"));
    Process(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// The line of a campaign once `wanted` is true of it.
fn until(name: &str, viewer: &str, wanted: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    loop {
        let line = moire(&["campaign", "show", name, "--coordinator", "localhost:7420", "--certs", viewer]);
        if wanted(&line) {
            return line;
        }
        assert!(start.elapsed() < Duration::from_secs(300), "{name} does not go on: {line}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn inside() {
    sh(WIRES);
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (certs, log) = (path("certs"), path("log"));
    moire(&["certs", "init", &certs, "--name", "10.88.1.1", "--name", "10.88.2.1"]);
    let certs = Path::new(&certs);
    let (operator, viewer) = (certs.join("operator"), certs.join("viewer"));
    let (operator, viewer) = (operator.to_str().unwrap(), viewer.to_str().unwrap());
    let mut serve = Command::new(env!("CARGO_BIN_EXE_moire"));
    serve.args(["serve", "--listen", "0.0.0.0:7420", "--store", &path("store"), "--certs"]);
    serve.arg(certs.join("server")).stdin(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
    let _server = Process(serve.spawn().unwrap());
    while !std::fs::read_to_string(&log).unwrap().contains("serving") {
        std::thread::sleep(Duration::from_millis(20));
    }
    let _workers = [worker(1, certs), worker(2, certs)];
    let name = |attempt: u32| format!("c{attempt}");
    let cut = (0..TRIES).find(|attempt| {
        let (name, programs) = (name(*attempt), (500 << attempt).to_string());
        let create = ["campaign", "create", &name, "--seed", "7", "--programs", &programs, "--coordinator"];
        moire(&[&create[..], &["localhost:7420", "--certs", operator], &PLAN].concat());
        until(&name, viewer, |line| !line.contains(", 0 programs"));
        sh("ip link set wire1 down; ip link set wire2 down");
        let running = until(&name, viewer, |_| true).contains(": Running, ");
        if !running {
            sh("ip link set wire1 up; ip link set wire2 up");
        }
        running
    });
    let cut = cut.expect("a campaign that is not over at once");
    std::thread::sleep(SILENCE);
    sh("ip link set wire1 up");
    // The second wire stays down for a part of what the first worker does now.
    std::thread::sleep(Duration::from_millis(700));
    sh("ip link set wire2 up");
    let done = until(&name(cut), viewer, |line| line.contains(": Done, "));
    let lost = std::fs::read_to_string(&log).unwrap();
    assert!(lost.contains("liveness"), "nobody was missed: {lost}");
    let programs = (500 << cut).to_string();
    let quiet =
        ["fuzz", "--stream", "core", "--programs", &programs, "--seed", "7", "--workers", "2", "--store"];
    let quiet = moire(&[&quiet[..], &[&path("quiet")], &PLAN].concat());
    let digest = quiet.lines().last().and_then(|l| l.strip_prefix("digest ")).unwrap().to_owned();
    assert_eq!(done.split(' ').next_back(), Some(digest.as_str()), "{done}");
}
