//! NVIDIA's compiler of Tile IR, where there is one: what it takes and refuses, its PTX, many kernels at once. Without
//! `tileiras` each test says so and passes.

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_kernel::ptx;
use moire_tile_ir::bytecode::{Bytecode, write};
use moire_tile_ir::text::{parse, print};
use moire_tile_ir::{Function, Module, verify};
use moire_toolchain::Failure;
use moire_toolchain::Nvdisasm;
use moire_toolchain::machine::{Change, changes, of_machine, of_ptx};
use moire_toolchain::run::{Limits, RunError, run};
use moire_toolchain::tile::batch::{CompileOptions, Unanswered, assemble, compile};
use moire_toolchain::tile::{Stage, Tileiras};
use std::process::Command;
use std::time::Duration;

/// Releases since 13.3 have it.
const TARGET: &str = "sm_90";

fn compiler() -> Option<Tileiras> {
    let found = Tileiras::find(None).ok();
    if found.is_none() {
        crate::outside::skipped("tileiras");
    }
    found
}

/// Every operation, with and without its optional parts, by the version that it needs.
const EVERYTHING: [&str; 5] = [
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.1.tile"),
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.2.tile"),
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.3.tile"),
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.4.tile"),
    include_str!("../../../../corpus/tile-ir/tests/data/tile-13.5.tile"),
];

fn everything(version: Bytecode) -> &'static str {
    EVERYTHING[usize::from(version.minor()) - 1]
}

fn kernels(text: &str) -> Vec<Function> {
    let module = parse(text).unwrap();
    assert_eq!(verify(&module), []);
    module.functions
}

/// The bytecode has no name for the module.
fn nameless(module: &Module) -> Module {
    Module { name: String::new(), ..module.clone() }
}

#[test]
fn the_disassembler_says_what_was_written() {
    let Some((tool, newest)) = crate::common::tile_disassembler() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("k.tileirbc");
    for version in Bytecode::ALL.into_iter().filter(|v| *v <= newest) {
        for oldest in Bytecode::ALL.into_iter().filter(|o| *o <= version) {
            let module = parse(everything(oldest)).unwrap();
            std::fs::write(&file, write(&module, version).unwrap()).unwrap();
            let mut command = Command::new(&tool);
            command.arg(&file);
            let out = run(command, Limits::default()).unwrap();
            assert!(out.status.success(), "{oldest} as {version}: {}{}", out.stdout, out.stderr);
            let said = parse(&out.stdout).unwrap_or_else(|e| panic!("{e}\n{}", out.stdout));
            assert_eq!(print(&said), print(&nameless(&module)), "{oldest} as {version}");
        }
    }
}

fn small(name: &str, order: &str) -> String {
    format!(
        "entry @{name}(%x: tile<ptr<i32>>, %y: tile<ptr<i32>>) {{ %c = constant <i32: 1> : tile<i32> \
         %t = store_ptr_tko {order} %x, %c : tile<ptr<i32>>, tile<i32> -> token \
         %v, %u = load_ptr_tko acquire device %y token=%t : tile<ptr<i32>> -> tile<i32>, token \
         %w = store_ptr_tko weak %x, %v token=%u : tile<ptr<i32>>, tile<i32> -> token return }}\n"
    )
}

fn plan(size: usize) -> CompileOptions {
    CompileOptions { target: TARGET.into(), level: 3, version: Bytecode::V13_1, size }
}

/// A target that every release has.
const ANY: &str = "sm_100";

#[test]
fn every_release_takes_everything_at_every_version_it_reads() {
    if compiler().is_none() {
        return;
    }
    for tool in Tileiras::all(None) {
        for (oldest, text) in Bytecode::ALL.into_iter().zip(EVERYTHING) {
            let module = parse(text).unwrap();
            for version in Bytecode::ALL.into_iter().filter(|v| *v >= oldest && *v <= tool.bytecode()) {
                let out = tool.compile(&write(&module, version).unwrap(), ANY, 3, Stage::Ptx);
                let out = out.unwrap_or_else(|e| panic!("{}: {oldest} as {version}: {e}", tool.version()));
                for function in &module.functions {
                    assert!(out.ptx.contains(&format!(".entry {}(", function.name)), "{oldest} as {version}");
                }
            }
        }
        println!("{} takes everything", tool.version());
    }
}

#[test]
fn the_assembler_runs_only_where_asked() {
    let Some(tool) = compiler() else { return };
    let module = Module { name: String::new(), functions: kernels(&small("k", "release device")) };
    let bytes = write(&module, Bytecode::V13_1).unwrap();
    let text = tool.compile(&bytes, TARGET, 3, Stage::Ptx).unwrap();
    let whole = tool.compile(&bytes, TARGET, 3, Stage::Object).unwrap();
    assert_eq!((&text.ptx, text.object.is_none()), (&whole.ptx, true));
    assert!(whole.object.is_some_and(|o| o.starts_with(b"\x7fELF")));
    assert!(text.ptx.contains("st.release.gpu.global.b32"), "{}", text.ptx);
    let read = ptx::parse(&text.ptx).unwrap();
    assert_eq!((read.kernels.len(), read.kernels[0].threads), (1, Some([32, 1, 1])));
}

#[test]
fn failures_are_told_apart() {
    let Some(tool) = compiler() else { return };
    let module = Module { name: String::new(), functions: kernels(&small("k", "weak")) };
    let bytes = write(&module, Bytecode::V13_1).unwrap();
    let fails = |bytes: &[u8], target: &str| tool.compile(bytes, target, 3, Stage::Ptx).unwrap_err();
    assert!(
        matches!(fails(&bytes, "sm_1"), Failure::Target(_) | Failure::Usage(_)),
        "{}",
        fails(&bytes, "sm_1")
    );
    assert!(matches!(fails(b"no bytecode", TARGET), Failure::Refused(_)));
    let scoped = small("k", "weak device");
    let scoped = write(&parse(&scoped).unwrap(), Bytecode::V13_1).unwrap();
    let refused = fails(&scoped, TARGET);
    assert!(
        matches!(&refused, Failure::Refused(l) if l[0].contains("must not have memory scope")),
        "{refused}"
    );
    let hasty = Limits { deadline: Duration::from_millis(1), ..Limits::default() };
    let late = tool.clone().with_limits(hasty, 8 << 30).compile(&bytes, TARGET, 3, Stage::Ptx);
    assert!(matches!(late, Err(Failure::Run(RunError::TimedOut(_)))));
    let poor = tool.clone().with_limits(Limits::default(), 64 << 20).compile(&bytes, TARGET, 3, Stage::Ptx);
    assert!(poor.is_err());
}

#[test]
fn a_batch_answers_as_each_kernel_alone() {
    let Some(tool) = compiler() else { return };
    let orders = ["weak", "weak device", "relaxed sys", "release device", "release"];
    let texts: Vec<String> = orders.iter().enumerate().map(|(i, o)| small(&format!("k{i}"), o)).collect();
    let all: Vec<Function> = texts.iter().flat_map(|t| parse(t).unwrap().functions).collect();
    let together = compile(&tool, &all, &plan(16), &|| {});
    let alone = compile(&tool, &all, &plan(1), &|| {});
    // Labels hold the number of the kernel in its file.
    let plain = |answer: &Result<String, Unanswered>| match answer {
        Ok(text) => {
            text.split("$L__BB").map(|p| p.trim_start_matches(|c: char| c.is_ascii_digit())).collect()
        }
        Err(why) => why.to_string(),
    };
    for ((a, b), order) in together.iter().zip(&alone).zip(orders) {
        assert_eq!(plain(a), plain(b), "{order}");
        assert_eq!(a.is_ok(), !["weak device", "release"].contains(&order), "{order}");
    }
    for (i, text) in together.iter().enumerate() {
        let Ok(text) = text else { continue };
        assert_eq!(ptx::parse(text).unwrap().kernels[0].name, format!("k{i}"));
    }
}

#[test]
fn published_kernels_compile_and_their_ptx_is_read() {
    let Some(tool) = compiler() else { return };
    let Some(folder) = crate::outside::beside("shared/spec/examples-tile-ir") else { return };
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "tile") {
            all.extend(kernels(&std::fs::read_to_string(path).unwrap()));
        }
    }
    assert_eq!(all.len(), 30);
    for (kernel, text) in all.iter().zip(compile(&tool, &all, &plan(30), &|| {})) {
        let text = text.unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        let module = ptx::parse(&text).unwrap_or_else(|e| panic!("{}: {e}\n{text}", kernel.name));
        assert_eq!(module.kernels.len(), 1);
        assert!(matches!(module.kernels[0].threads, Some([32 | 128, 1, 1])), "{}", kernel.name);
    }
}

/// The assembler keeps a load whose value is stored. It keeps only the effect of an acquire whose value is unused.
#[test]
fn what_the_assembler_changes_is_seen() {
    let (Some(tool), Some(nvdisasm)) = (compiler(), Nvdisasm::find(None)) else { return };
    let used = small("used", "release device");
    let unused = used.replace("@used", "@unused").replace("weak %x, %v", "weak %x, %c");
    let functions = kernels(&(used + &unused));
    let seen: Vec<Vec<String>> = assemble(&tool, &nvdisasm, &functions, &plan(8))
        .into_iter()
        .map(|both| both.unwrap())
        .map(|both| changes(&of_ptx(&both.ptx), &of_machine(&both.machine)).unwrap())
        .map(|found| found.iter().map(Change::to_string).collect())
        .collect();
    assert_eq!(seen, [vec![], vec!["lost: load.GPU of 32 bits".to_owned()]]);
}
