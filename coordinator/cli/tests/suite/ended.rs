//! `moire fuzz` that is asked to end, by Ctrl-C or by a service manager, at once or later: it says what was done and what was not.

use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Exit code and stdout of `moire fuzz`, which gets the signal after this time; a compiler that it looks for takes as long as `slow`.
fn ended(signal: Signal, after: Duration, slow: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let llc = folder.path().join("llc");
    std::fs::write(&llc, format!("#!/bin/sh\nsleep {slow}\nexit 1\n")).unwrap();
    std::fs::set_permissions(&llc, std::fs::Permissions::from_mode(0o755)).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(["fuzz", "--for", "5m", "--workers", "1"])
        .current_dir(folder.path())
        .env("MOIRE_LLC", &llc)
        .env("MOIRE_CACHE", folder.path().join("cache"))
        .env("PATH", "/usr/bin:/bin")
        .env_remove("MOIRE_VENV")
        .env_remove("MOIRE_NVCC")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    kill_process(Pid::from_child(&child), signal).unwrap();
    let out = child.wait_with_output().unwrap();
    (out.status.code(), String::from_utf8(out.stdout).unwrap())
}

#[test]
fn who_ends_it_at_once_is_told_what_was_not_begun() {
    for signal in [Signal::INT, Signal::TERM] {
        let (code, out) = ended(signal, Duration::from_millis(1500), "4");
        assert!(code == Some(11) && out.contains("interrupted; not begun: core"), "{code:?} {out}");
    }
}

#[test]
fn who_ends_it_later_gets_the_summary() {
    let (code, out) = ended(Signal::TERM, Duration::from_secs(9), "0");
    assert!(
        code == Some(11) && out.contains("campaign fuzz-core") && out.contains("interrupted"),
        "{code:?} {out}"
    );
    assert!(out.contains("not begun: ") && out.contains("digest "), "{out}");
}
