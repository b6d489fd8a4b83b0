//! `moire doctor`: what is installed, what is missing, how to get it.

use anyhow::Result;
use moire_console::exit;
use moire_coordinator::many;
use moire_toolchain::Ptxas;
use moire_toolchain::find::{candidates, environment};
use moire_toolchain::source::{Compiler, Kind};
use moire_toolchain::tile::Tileiras;
use moire_worker::oracle::{LIBNVVM, LLVM, NVCC, PTXAS, SASS_TOOLS, TRITON};

pub(crate) fn run() -> Result<u8> {
    println!("moire {} on {} {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!("ok       {} for workers", many(cores, "processor"));
    println!("ok       models: {}", moire_models::names().collect::<Vec<_>>().join(", "));
    assembler();
    disassembler();
    tile_compiler();
    source_compilers();
    println!("{}", super::gpu::doctor());
    Ok(exit::CLEAN)
}

/// The tool of the oracle `assembler`.
fn assembler() {
    match Ptxas::find(None) {
        Ok(ptxas) => {
            let old = if ptxas.answers_for_the_rules() { "" } else { ", too old for the oracle `assembler`" };
            println!("ok       ptxas {} in {}{old}", ptxas.version(), ptxas.path().display());
        }
        Err(tried) => {
            println!(
                "missing  ptxas (optional, for the oracles `assembler`, `sass` and `sass-source`): {}",
                PTXAS.how
            );
            tried.iter().for_each(|t| println!("         not usable: {t}"));
        }
    }
}

/// With ptxas, the tool of the oracle `sass`; with a compiler of source programs besides, that of `sass-source`.
fn disassembler() {
    match candidates("nvdisasm", None, &environment).first() {
        Some(found) => println!("ok       nvdisasm in {}", found.path.display()),
        None => println!(
            "missing  nvdisasm (optional, for the oracles `sass` and `sass-source`): {}",
            SASS_TOOLS.how
        ),
    }
}

/// The compilers of source programs.
fn source_compilers() {
    for (kind, name, tool) in [
        (Kind::Llvm, "llc", LLVM),
        (Kind::Nvcc, "nvcc", NVCC),
        (Kind::Libnvvm, "libnvvm", LIBNVVM),
        (Kind::Triton, "triton", TRITON),
    ] {
        let (all, unusable) = Compiler::look(kind);
        for found in &all {
            println!("ok       {name} {} in {}", found.version(), found.path().display());
        }
        if all.is_empty() {
            println!("missing  {name} (optional, for the oracle `{}`): {}", kind.name(), tool.how);
        }
        unusable.iter().for_each(|t| println!("         not usable: {t}"));
    }
}

/// The compiler of Tile IR.
fn tile_compiler() {
    for found in Tileiras::all(None) {
        let (version, bytecode) = (found.version(), found.bytecode());
        println!("ok       tileiras {version} in {}, bytecode up to {bytecode}", found.path().display());
    }
    if let Err(tried) = Tileiras::find(None) {
        println!(
            "missing  tileiras (optional, the compiler of Tile IR): pip install nvidia-cuda-tileiras nvidia-cuda-nvcc \
             nvidia-nvvm of one release, as ptxas"
        );
        tried.iter().for_each(|t| println!("         not usable: {t}"));
    }
}
