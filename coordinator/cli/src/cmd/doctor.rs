//! `moire doctor`: what is installed, what is missing, how to get it.

use crate::exit;
use anyhow::Result;
use std::process::Command;

pub(crate) fn run() -> Result<u8> {
    println!("moire {} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!("ok       {cores} processors for workers");
    println!("ok       models: {}", moire_cat::builtin::names().collect::<Vec<_>>().join(", "));
    optional(
        "ptxas",
        &["--version"],
        "pip install nvidia-cuda-nvcc; put its bin folder on PATH. No command needs it yet",
    );
    Ok(exit::CLEAN)
}

fn optional(program: &str, args: &[&str], how: &str) {
    match Command::new(program).args(args).output() {
        Ok(out) if out.status.success() => {
            let text = String::from_utf8_lossy(&out.stdout);
            println!("ok       {program}: {}", text.lines().last().unwrap_or_default());
        }
        _ => println!("missing  {program} (optional): {how}"),
    }
}
