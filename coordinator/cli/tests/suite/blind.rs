//! Campaigns that nobody can judge: they are counted by reason, and are never taken for campaigns without findings.

use crate::cli::moire;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// A compiler that refuses every program.
fn refusing(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("llc");
    let version = "  LLVM version 27.1.0 nvptx64";
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit 0; fi\necho 'LLVM ERROR: not today' >&2; exit 1\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs a command where this is the only compiler.
fn with(llc: &Path, folder: &Path, args: &[&str]) -> Output {
    let bin = folder.join("bin");
    if std::fs::create_dir(&bin).is_ok() {
        std::os::unix::fs::symlink("/bin/sh", bin.join("sh")).unwrap();
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
    command.args(args).current_dir(folder).env("MOIRE_LLC", llc).env("PATH", bin);
    ["HOME", "RUSTUP_HOME", "CUDA_HOME", "CUDA_PATH"].iter().for_each(|name| _ = command.env(name, folder));
    ["MOIRE_VENV", "MOIRE_NVCC", "MOIRE_TRITON"].iter().for_each(|name| _ = command.env_remove(name));
    command.output().unwrap()
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[test]
fn a_compiler_that_refuses_everything_is_not_certified() {
    let folder = tempfile::tempdir().unwrap();
    let llc = refusing(folder.path());
    let out = with(&llc, folder.path(), &["certify", "atomics", "load.acquire.gpu", "--out", "table"]);
    let said = text(&out);
    assert_eq!(out.status.code(), Some(11), "{said}{}", String::from_utf8_lossy(&out.stderr));
    assert!(said.contains("10 operations: 0 sound, 0 lost, 10 refused, 0 open"), "{said}");
    assert!(said.contains("refused r = load x: LLVM ERROR: not today\n"), "{said}");
    assert!(said.contains("\nsound: kept in litmus tests"), "{said}");
    let table = std::fs::read_to_string(folder.path().join("table/atomics.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&table).unwrap()[0]["answer"], "refused");
    let typo = with(&llc, folder.path(), &["certify", "atomics", "laod"]);
    assert!(
        String::from_utf8_lossy(&typo.stderr).contains("no operation has one of these words"),
        "{typo:?}"
    );
    let none = with(&folder.path().join("none"), folder.path(), &["certify", "atomics"]);
    assert!(
        String::from_utf8_lossy(&none.stderr).contains("no compiler of source programs is here"),
        "{none:?}"
    );
}

#[test]
fn a_campaign_that_nobody_judged_has_no_clean_end() {
    let folder = tempfile::tempdir().unwrap();
    let llc = refusing(folder.path());
    let fuzz =
        ["fuzz", "--stream", "source", "--oracle", "llvm", "--model", "llvm:release=27", "--programs", "70"];
    let out = with(&llc, folder.path(), &fuzz);
    let said = text(&out);
    assert_eq!(out.status.code(), Some(11), "{said}");
    assert!(said.contains("findings: unknown, because no program was judged"), "{said}");
    assert!(
        said.contains("70  not judged by any engine") && said.contains("LLVM ERROR: not today"),
        "{said}"
    );
    assert!(!said.contains("findings: none"), "{said}");
    let name = said.split_whitespace().nth(1).unwrap().to_owned();
    let shown = moire(folder.path(), &["campaign", "show", &name]);
    assert_eq!(shown.status.code(), Some(11), "{}", text(&shown));
    // One that was judged, and one over which somebody looks only in the list, end as before.
    let fuzz = ["fuzz", "--stream", "core", "--oracle", "self", "--programs", "5"];
    let out = moire(folder.path(), &fuzz);
    assert_eq!((out.status.code(), text(&out).contains("findings: none")), (Some(0), true), "{}", text(&out));
    assert_eq!(moire(folder.path(), &["campaign", "list"]).status.code(), Some(0));
    let night = ["nightly", "--campaign", "source=70", "--out", "out", "--store", "night"];
    let out = with(&llc, folder.path(), &night);
    assert_eq!(out.status.code(), Some(11), "{}", text(&out));
    let summary = std::fs::read_to_string(folder.path().join("out/summary.md")).unwrap();
    assert!(summary.contains("no program was judged"), "{summary}");
}
