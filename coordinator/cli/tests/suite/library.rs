//! libNVVM as a compiler of source programs: a stand-in that a C compiler makes, and the real one where it is.

use moire_toolchain::find::{environment, libraries};
use std::process::Command;

const STAND_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/library/standin.c");

/// A program whose second thread does this.
fn program(step: &str) -> String {
    format!(
        "source \"t\"\n.global .b32 x, y;\nP0 (gpu 0, cluster 0, cta 0) {{ store.relaxed.gpu x, 1; add.release.gpu y, 1; }}\n\
         P1 (gpu 0, cluster 1, cta 1) {{ r0 = {step}; r1 = load.relaxed.gpu x; }}\n"
    )
}

const READ: &str = "load.acquire.gpu y";

/// The PTX of a program with [`READ`].
fn ptx(order: &str) -> String {
    let writer =
        format!("st.relaxed.gpu.global.b32 [%rd1], 1;\natom{order}.gpu.global.add.u32 %r1, [%rd2], 1;\n");
    crate::replayed::kernels("9.5", &writer, "ld.acquire.gpu.global.b32 %r1, [%rd2]")
}

/// A folder in which the stand-in is the only compiler; none without a C compiler.
struct Here(tempfile::TempDir);

impl Here {
    fn new() -> Option<Here> {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvvm.so.4");
        let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(STAND_IN).output();
        let Ok(out) = made else {
            println!("skipped: no C compiler");
            return None;
        };
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        std::fs::write(folder.path().join("none.so"), "no library").unwrap();
        std::fs::create_dir(folder.path().join("tools")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("tools/sh")).unwrap();
        Some(Here(folder))
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let here = self.0.path();
        let files = ["none.so", "libnvvm.so.4"].map(|name| here.join(name));
        let mut moire = Command::new(env!("CARGO_BIN_EXE_moire"));
        moire
            .args(args)
            .current_dir(here)
            .env("PATH", here.join("tools"))
            .env("STAND_IN", here.join("given.ptx"));
        for variable in ["HOME", "RUSTUP_HOME", "CUDA_HOME", "CUDA_PATH", "MOIRE_VENV", "MOIRE_LLC"] {
            moire.env(variable, here);
        }
        said(moire.env("MOIRE_LIBNVVM", std::env::join_paths(&files).unwrap()))
    }
}

/// Exit code, and all that is said.
fn said(command: &mut Command) -> (i32, String) {
    let out = command.output().unwrap();
    (out.status.code().unwrap(), String::from_utf8([out.stdout, out.stderr].concat()).unwrap())
}

#[test]
fn a_library_is_called_in_a_process_of_its_own() {
    let Some(here) = Here::new() else { return };
    here.write("given.ptx", &ptx(".release"));
    let (_, doctor) = here.run(&["doctor"]);
    assert!(
        doctor.contains("ok       libnvvm 98.1.37 in ") && doctor.contains("none.so: file too short"),
        "{doctor}"
    );
    here.write("mp.src", &program(READ));
    let (code, text) = here.run(&["replay", "mp.src"]);
    assert_eq!((code, text.contains("every oracle agrees")), (0, true), "{text}");
    here.write("given.ptx", &ptx(""));
    let (code, text) = here.run(&["replay", "mp.src"]);
    let side = "libnvvm:level=2,release=98.1,target=sm_90";
    assert!(code == 10 && text.contains(side), "{text}");
    let (code, text) = here.run(&["findings", "export", "mp.src", "issue.md", "--issue"]);
    let issue = std::fs::read_to_string(here.0.path().join("issue.md")).unwrap_or_default();
    for part in ["# NVIDIA libNVVM 98.1.37: `atom` is emitted with a weaker order", "!nvvmir.version"] {
        assert!(code == 0 && issue.contains(part), "{part}\n{text}{issue}");
    }
}

#[test]
fn a_library_that_dies_refuses_or_is_silent_takes_nobody_with_it() {
    let Some(here) = Here::new() else { return };
    here.write("given.ptx", &ptx(".release"));
    let tried = |step: &str| {
        here.write("t.src", &program(step));
        here.run(&["replay", "t.src"])
    };
    let (code, text) = tried("exch.acquire.gpu y, 2");
    assert!(code == 10 && text.contains("libnvvm property "), "{text}");
    for (step, why) in
        [("xor.acquire.gpu y, 1", "Error: unsupported"), ("and.acquire.gpu y, 1", "it says nothing")]
    {
        let (code, text) = tried(step);
        assert!(code == 11 && text.contains("rejected: libnvvm: refused: "), "{text}");
        let operation = step.split(' ').next().unwrap();
        let (_, table) = here.run(&["certify", "atomics", operation, "--with", "libnvvm"]);
        assert!(table.contains("refused") && table.contains(why), "{table}");
    }
    let library = here.0.path().join("libnvvm.so.4");
    let (code, text) = here.run(&["library", library.to_str().unwrap(), "-o", "x.ptx"]);
    assert!(code == 2 && text.contains("OPTION.. -o FILE FILE"), "{text}");
}

/// Where it is: for `sm_90` it accepts every order of an update and emits none, for `sm_100` it keeps them.
#[test]
fn the_known_bug_of_libnvvm_is_found() {
    if libraries("libnvvm", &environment).is_empty() {
        println!("skipped: libnvvm");
        return;
    }
    let certify = |target: &str| {
        let with = format!("libnvvm:target={target}");
        let folder = tempfile::tempdir().unwrap();
        let mut moire = Command::new(env!("CARGO_BIN_EXE_moire"));
        moire.args(["certify", "atomics", "add.acq_rel.gpu x, 1 of .global .b32", "--with", &with]);
        said(moire.env("MOIRE_CACHE", folder.path()))
    };
    let (code, text) = certify("sm_90");
    assert!(code == 10 && text.contains("order-lost by atom"), "{text}");
    let (code, text) = certify("sm_100");
    assert!(code == 0 && text.contains("atom.acq_rel.add.SCOPE"), "{text}");
}
