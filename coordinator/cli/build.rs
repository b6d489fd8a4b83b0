//! Builds the libraries that `moire record` loads into programs, so that the binary brings them along: one file is all that has
//! to be installed, and the recorder is always that of the binary. They are built apart, because a binary that depended on them
//! would have the functions that they put in the place of others.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages, and the names under which they are embedded.
const LIBRARIES: [(&str, &str); 2] = [("moire-preload", "preload.so"), ("moire-standin", "standin.so")];

fn main() {
    let of = |name: &str| env::var(name).unwrap_or_default();
    let out = PathBuf::from(of("OUT_DIR"));
    let root = Path::new(&of("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo::rerun-if-changed={}", root.join("worker/record").display());
    println!("cargo::rerun-if-changed={}", root.join("Cargo.lock").display());
    let glibc = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    let known = ["x86_64", "aarch64"].contains(&of("CARGO_CFG_TARGET_ARCH").as_str());
    let target = of("TARGET");
    if glibc && known {
        build(&root, &out, &target);
    }
    for (package, name) in LIBRARIES {
        let file = format!("lib{}.so", package.replace('-', "_"));
        let from = out.join("record").join(&target).join("release").join(file);
        let bytes = if glibc && known { std::fs::read(&from) } else { Ok(Vec::new()) };
        let bytes = bytes.unwrap_or_else(|e| panic!("cannot read {}: {e}", from.display()));
        std::fs::write(out.join(name), bytes).unwrap_or_else(|e| panic!("cannot write {name}: {e}"));
    }
}

fn build(root: &Path, out: &Path, target: &str) {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--offline", "--quiet", "--target", target, "--target-dir"]);
    cargo.arg(out.join("record")).arg("--manifest-path").arg(root.join("Cargo.toml"));
    for (package, _) in LIBRARIES {
        cargo.args(["-p", package]);
    }
    // What checks or measures the outer build is no part of these.
    for name in ["RUSTC_WORKSPACE_WRAPPER", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_BUILD_TARGET"] {
        cargo.env_remove(name);
    }
    let status = cargo.status().unwrap_or_else(|e| panic!("cannot run cargo: {e}"));
    assert!(status.success(), "the libraries of `moire record` do not build");
}
