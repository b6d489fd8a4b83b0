//! Findings run again: from a printed line in an empty folder, and by a night.

use crate::cli::moire;
use moire_coordinator::line::{Line, Side, command, is_line};
use moire_corpus::{Finding, FindingState, Hash, ModelRef, Options, Store, Write};
use moire_tile_ir::run::TileLaunch;
use moire_toolchain::Ptxas;
use moire_toolchain::source::{Compiler, Kind};
use moire_worker::job::{Cancel, Claim, Engine, Item, Plan, Source};
use moire_worker::oracle::{
    ASSEMBLED_SOURCES, About, COMPILER, DEVICE, Oracles, SASS, STAND_IN, TILEIRAS, oracles,
};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Exit code and stdout of a command.
fn run(folder: &Path, args: &[&str]) -> (i32, String) {
    let out = moire(folder, args);
    (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap())
}

/// A line about a program under `ptx`.
fn line(oracle: &str, direction: &str, program: &str) -> String {
    let models = vec![Side { name: "ptx".into(), ..Side::default() }];
    let (oracle, direction, program) = (oracle.into(), direction.into(), program.into());
    Line { oracle, direction, models, program, ..Line::default() }.encode()
}

const GOOD: &str = "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\n";
/// An instruction that this release does not know.
const LATER: &str = "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.stronger.u32 [x], 1; }\n";

#[test]
fn a_line_that_does_not_read_is_not_re_tested() {
    let folder = tempfile::tempdir().unwrap();
    let unread = [
        line("self", "equal", LATER),
        line("self", "equal", "this is no program"),
        line("self", "stronger", GOOD),
        line("a later oracle", "equal", GOOD),
    ];
    for word in &unread {
        for command in ["replay", "minimize", "bisect"] {
            let (code, said) = run(folder.path(), &[command, word]);
            assert_eq!(code, 11, "{command}: {said}");
            assert!(said.contains("not re-tested: ") && !said.contains("reproduced"), "{command}: {said}");
        }
    }
    let (code, said) = run(folder.path(), &["replay", &line("self", "equal", GOOD)]);
    assert_eq!((code, said.contains("not reproduced: ")), (0, true), "{said}");
    let (code, said) = run(folder.path(), &["minimize", &line("self", "equal", GOOD)]);
    assert_eq!((code, said.contains("not reproduced: ")), (0, true), "{said}");
}

/// The states of the findings of a store, by program.
fn states(store: &Path) -> Vec<(String, FindingState)> {
    let store = Store::open(store, Options::default()).unwrap().0;
    let mut all: Vec<_> = store.findings().map(|f| f.unwrap()).map(|f| (f.reduced, f.state)).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

#[test]
fn a_night_closes_no_finding_that_it_cannot_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let finding = |(n, text): (u8, &str)| Finding {
        id: Hash([n; 32]),
        oracle: "self".into(),
        rule: "equal".into(),
        models: vec![ModelRef { name: "ptx".into(), ..ModelRef::default() }],
        reduced: text.into(),
        first_seen_ms: 1,
        last_seen_ms: 1,
        ..Finding::default()
    };
    let texts = [GOOD, LATER, "this is no program"];
    let found = (1..).zip(texts).map(finding).map(|f| Write::Finding(Box::new(f)));
    Store::open(&store, Options::default()).unwrap().0.commit(found.collect::<Vec<_>>()).unwrap();
    let night = ["nightly", "--campaign", "mixed=1", "--runs", "1", "--out", "out", "--store", "store"];
    run(folder.path(), &night);
    let open = FindingState::Open;
    let expected = [(LATER, open.clone()), (GOOD, FindingState::Fixed), (texts[2], open)];
    let expected: Vec<_> = expected.map(|(text, state)| (text.to_owned(), state)).into();
    assert_eq!(states(&store), expected);
    let (code, said) = run(folder.path(), &night);
    assert_eq!(code, 11, "{said}");
    assert!(said.contains("     2  not re-tested"), "{said}");
    assert_eq!(states(&store), expected);
}

/// A program, and the claim about it that `moire replay` prints, in an empty folder.
#[test]
fn a_line_printed_for_a_program_is_reproduced() {
    let folder = tempfile::tempdir().unwrap();
    let text = "moire \"t\"\n.global .b32 x;\n.alias y = x;\nP0 (gpu 0, cta 0) { ld.weak.global.u32 r0, [x]; \
        fence.proxy.alias; st.weak.global.u32 [y], 1; }\n";
    std::fs::write(folder.path().join("t.litmus"), text).unwrap();
    let (code, said) = run(folder.path(), &["replay", "t.litmus"]);
    assert_eq!(code, 10, "{said}");
    let empty = tempfile::tempdir().unwrap();
    let words = said.split_whitespace().filter(|word| is_line(word));
    let replayed = words.map(|word| run(empty.path(), &["replay", word])).collect::<Vec<_>>();
    assert!(!replayed.is_empty(), "{said}");
    assert!(
        replayed.iter().all(|(code, said)| *code == 10 && said.contains("\nreproduced\n")),
        "{replayed:?}"
    );
}

/// Writes a program that answers `--version` with `version`, and else does `action`.
fn script(folder: &Path, name: &str, version: &str, action: &str) -> PathBuf {
    let path = folder.join(name);
    let text = format!("#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit 0; fi\n{action}\n");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

const MESSAGE: &str = "source \"mp\"
.global .b32 x, y;
P0 (gpu 0, cluster 0, cta 0) { store.relaxed.gpu x, 1; store.release.gpu y, 1; }
P1 (gpu 0, cluster 1, cta 1) { r0 = load.acquire.gpu y; r1 = load.relaxed.gpu x; }
";

/// PTX of [`MESSAGE`]: how the flag is written, and how it is read.
fn ptx(store: &str, load: &str) -> String {
    let writer = format!("st.relaxed.gpu.global.b32 [%rd1], 1;\n{store}.global.b32 [%rd2], 1;\n");
    kernels("8.6", &writer, load)
}

/// PTX of two threads: one writes, the other reads a flag by `load`, and then what it guards.
pub(crate) fn kernels(version: &str, writer: &str, load: &str) -> String {
    let kernel = |t: usize, body: &str| {
        let name = format!("moire_0_{t}_");
        let params: Vec<String> = (0..4).map(|n| format!(".param .u64 {name}_param_{n}")).collect();
        let loads: String =
            (0..4).map(|n| format!("ld.param.u64 %rd{}, [{name}_param_{n}];\n", n + 1)).collect();
        let regs = ".reg .b32 %r<4>;\n.reg .b64 %rd<5>;\n";
        format!(".visible .entry {name}(\n{}\n)\n{{\n{regs}{loads}{body}ret;\n}}\n", params.join(",\n"))
    };
    let reader = format!(
        "{load};\nld.relaxed.gpu.global.b32 %r2, [%rd1];\nst.global.b32 [%rd3], %r1;\nst.global.b32 [%rd4], %r2;\n"
    );
    format!(
        ".version {version}\n.target sm_90\n.address_size 64\n{}{}",
        kernel(0, writer),
        kernel(1, &reader)
    )
}

/// A stand-in for a compiler, which gives every text this PTX.
fn compiler(folder: &Path, kind: Kind, release: u32, ptx: &str) -> PathBuf {
    let file = folder.join(format!("{release}.ptx"));
    std::fs::write(&file, ptx).unwrap();
    let version = match kind {
        Kind::Llvm => format!("  LLVM version {release}.1.0 nvptx64"),
        Kind::Nvcc | Kind::Libnvvm | Kind::Triton => {
            format!("Cuda compilation tools, release {release}.1, V{release}.1.37")
        }
    };
    script(folder, &format!("compiler-{release}"), &version, &format!("cp {} module.ptx", file.display()))
}

/// An oracle with its tool: the variable that names the files, the files, and the oracles with them.
struct Tooled {
    oracle: &'static str,
    variable: &'static str,
    files: Vec<PathBuf>,
    engine: Oracles,
    text: String,
}

/// Stand-ins that break a rule of each oracle with a tool, and NVIDIA's compiler, where it is.
fn tooled(folder: &Path) -> Vec<Tooled> {
    const ACQUIRE: &str = "ld.acquire.gpu.global.b32 %r1, [%rd2]";
    let (right, wrong) = (ptx("st.release.gpu", ACQUIRE), ptx("st.relaxed.gpu", ACQUIRE));
    // A reader that never sees the flag needs no order, so this is right alone.
    let deaf = ptx("st.relaxed.gpu", "mov.u32 %r1, 0");
    let sources = |oracle, variable, kind, made: &[(u32, &str)]| {
        let files: Vec<PathBuf> = made.iter().map(|(r, ptx)| compiler(folder, kind, *r, ptx)).collect();
        let here: Vec<Compiler> = files.iter().map(|f| Compiler::at(kind, f).unwrap()).collect();
        let engine = Oracles::with_source_compilers(&here);
        Tooled { oracle, variable, files, engine, text: MESSAGE.to_owned() }
    };
    let refuses = "for last; do :; done\nif grep -q fence.sc \"$last\"; then\n\
        echo \"$last, line 7; error : no fence.sc today\" >&2; exit 255; fi\n: > \"$4\"";
    let ptxas = script(folder, "ptxas", "tools, release 13.5, V13.5.37", refuses);
    let fenced = GOOD.replace("st.weak.u32 [x], 1;", "st.weak.u32 [x], 1; fence.sc.gpu;");
    let assembler = Oracles::with_assembler(Ptxas::at(&ptxas).unwrap());
    let mut all = vec![
        Tooled {
            oracle: "assembler",
            variable: "MOIRE_PTXAS",
            files: vec![ptxas],
            engine: assembler,
            text: fenced,
        },
        sources("llvm", "MOIRE_LLC", Kind::Llvm, &[(27, &wrong)]),
        sources("nvcc", "MOIRE_NVCC", Kind::Nvcc, &[(99, &wrong)]),
        sources("libnvvm", "MOIRE_LIBNVVM", Kind::Libnvvm, &[(98, &wrong)]),
        sources("triton", "MOIRE_TRITON", Kind::Triton, &[(97, &wrong)]),
        sources("mixing", "MOIRE_LLC", Kind::Llvm, &[(29, &deaf), (28, &right)]),
    ];
    let real = Oracles::new();
    if real.capabilities().iter().any(|c| c == TILEIRAS.capability) {
        let kernel = include_str!("../../../../corpus/tile/one_read.tile");
        let text = TileLaunch::row(2).note() + kernel;
        let variable = "MOIRE_TILEIRAS";
        all.push(Tooled { oracle: COMPILER.name, variable, files: Vec::new(), engine: real, text });
    } else {
        eprintln!("skipped: tileiras is missing");
    }
    all
}

/// A claim as a finding keeps it.
fn kept(claim: Claim) -> Finding {
    let side = |s: moire_worker::job::Side| ModelRef {
        name: s.name,
        variants: s.variants,
        fingerprint: Hash(s.fingerprint),
    };
    Finding {
        oracle: claim.oracle,
        rule: claim.direction.to_string(),
        models: claim.models.into_iter().map(side).collect(),
        verdict: claim.verdict,
        reduced: claim.program,
        axioms: claim.axioms,
        ..Finding::default()
    }
}

/// Replays a line where only the files of the variable are, or none.
fn replayed(variable: &str, files: &[PathBuf], word: &str) -> (i32, String) {
    let empty = tempfile::tempdir().unwrap();
    let mut moire = Command::new(env!("CARGO_BIN_EXE_moire"));
    moire.args(["replay", word]).current_dir(empty.path());
    if !files.is_empty() {
        moire.env(variable, std::env::join_paths(files).unwrap());
    }
    let out = moire.output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap())
}

/// Replays a line where no tool is.
fn without_tools(word: &str) -> (i32, String) {
    let empty = tempfile::tempdir().unwrap();
    let mut moire = Command::new(env!("CARGO_BIN_EXE_moire"));
    moire.args(["replay", word]).current_dir(empty.path()).env("PATH", empty.path());
    for variable in ["HOME", "RUSTUP_HOME", "CUDA_HOME", "CUDA_PATH", "MOIRE_VENV"] {
        moire.env(variable, empty.path());
    }
    let out = moire.output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap())
}

#[test]
fn a_line_of_a_tool_is_reproduced_with_the_tool_and_not_re_tested_without() {
    let folder = tempfile::tempdir().unwrap();
    let all = tooled(folder.path());
    let names: Vec<&str> = all.iter().map(|t| t.oracle).collect();
    // NVIDIA's tools alone write machine code: the worker's tests. Devices: the suite beside this one.
    let alone = |about: &About| {
        [COMPILER, SASS, ASSEMBLED_SOURCES].contains(about)
            || about.tool.is_some_and(|tool| [DEVICE, STAND_IN].contains(&tool))
    };
    for about in oracles().filter(|about| about.tool.is_some()) {
        assert!(names.contains(&about.name) || alone(about), "{about} is not tried");
    }
    for Tooled { oracle, variable, files, engine, text } in all {
        let plan = Plan { oracles: vec![oracle.to_owned()], ..Plan::default() };
        let report =
            engine.run(&Item { plan: Arc::new(plan), index: 0, source: Source::Text(text) }, &Cancel::new());
        assert!(!report.claims.is_empty(), "{oracle}: {report:#?}");
        for claim in report.claims {
            let line = command(&kept(claim));
            let word = line.split_whitespace().last().unwrap();
            let (code, said) = replayed(variable, &files, word);
            assert_eq!((code, said.contains("\nreproduced\n")), (10, true), "{oracle}: {said}");
            let (code, said) = without_tools(word);
            assert_eq!((code, said.contains("not re-tested: ")), (11, true), "{oracle}: {said}");
            assert!(!said.contains("reproduced"), "{oracle}: {said}");
        }
    }
}

/// A moire for which these compilers are the only ones, in a folder with [`MESSAGE`].
struct Alone {
    folder: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Alone {
    /// Releases of `llc`: how each writes the flag.
    fn of(releases: &[(u32, &str)]) -> Alone {
        let mut alone = Self::bare();
        let one = |(release, store): &(u32, &str)| {
            let text = ptx(store, "ld.acquire.gpu.global.b32 %r1, [%rd2]");
            compiler(alone.folder.path(), Kind::Llvm, *release, &text)
        };
        alone.files = releases.iter().map(one).collect();
        alone
    }

    fn bare() -> Alone {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mp.src"), MESSAGE).unwrap();
        let tools = folder.path().join("tools");
        std::fs::create_dir(&tools).unwrap();
        for name in ["sh", "cp"] {
            std::os::unix::fs::symlink(Path::new("/bin").join(name), tools.join(name)).unwrap();
        }
        Alone { folder, files: Vec::new() }
    }

    /// The same with a release of `llc` that does this.
    fn with(mut self, release: u32, action: &str) -> Alone {
        let version = format!("  LLVM version {release}.1.0 nvptx64");
        self.files.push(script(self.folder.path(), &format!("compiler-{release}"), &version, action));
        self
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let (here, tools) = (self.folder.path(), self.folder.path().join("tools"));
        let mut moire = Command::new(env!("CARGO_BIN_EXE_moire"));
        moire.args(args).current_dir(here).env("PATH", &tools);
        for variable in ["HOME", "RUSTUP_HOME", "CUDA_HOME", "CUDA_PATH", "MOIRE_VENV"] {
            moire.env(variable, here);
        }
        let out = moire.env("MOIRE_LLC", std::env::join_paths(&self.files).unwrap()).output().unwrap();
        let both = [out.stdout, out.stderr].concat();
        (out.status.code().unwrap(), String::from_utf8(both).unwrap())
    }
}

#[test]
fn a_source_program_is_replayed_bisected_and_told_as_an_issue() {
    let alone = Alone::of(&[(27, "st.relaxed.gpu"), (28, "st.relaxed.gpu"), (29, "st.release.gpu")]);
    let (code, said) = alone.run(&["replay", "mp.src"]);
    assert_eq!((code, said.matches("moire replay m1.").count()), (10, 2), "{said}");
    let (code, said) = alone.run(&["bisect", "mp.src"]);
    assert_eq!(code, 10, "{said}");
    assert!(said.contains("of the releases here: since 27 or before, fixed in 29\n"), "{said}");
    assert!(said.contains("decided by release of llvm:") && said.contains(": 29 instead of 28"), "{said}");
    let (code, said) = alone.run(&["findings", "export", "mp.src", "issue.md", "--issue"]);
    assert_eq!(code, 0, "{said}");
    let text = std::fs::read_to_string(alone.folder.path().join("issue.md")).unwrap();
    for part in [
        "# LLVM llc 28.1.0: `st` is emitted with a weaker order than the program asks for",
        "cannot end with `P1:r0=1 P1:r1=0 [x]=1 [y]=1`",
        "define ptx_kernel void @moire_0_0_(",
        "llc -mtriple=nvptx64-nvidia-cuda -mcpu=sm_90 -mattr=+ptx86 -O2 -o module.ptx module.ll",
        "The PTX that comes out:\n\n```ptx\n.version 8.6",
        "st.relaxed.gpu.global.b32 [%rd2], 1;",
        "a read takes no value that was overwritten before it happens",
        "P0 `store.release.gpu y, 1` writes 1 to y, which P1 `r0 = load.acquire.gpu y` reads.",
        "With the order that the program asks for on `st` alone",
        "since 27 or before, fixed in 29",
        "- 29: is right",
        "moire replay m1.",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // What a right compiler makes is no issue.
    let right = Alone::of(&[(29, "st.release.gpu")]);
    for args in
        [&["replay", "mp.src"][..], &["bisect", "mp.src"], &["findings", "export", "mp.src", "o", "--issue"]]
    {
        let (code, said) = right.run(args);
        assert_eq!((code, said.contains("every oracle agrees")), (0, true), "{args:?}: {said}");
    }
    assert!(!right.folder.path().join("o").exists());
}

#[test]
fn an_issue_without_the_compiler_says_so() {
    let alone = Alone::of(&[(27, "st.relaxed.gpu")]);
    let (_, said) = alone.run(&["replay", "mp.src"]);
    let word = said.split_whitespace().find(|word| is_line(word)).unwrap().to_owned();
    let gone = Alone::of(&[]);
    let (code, said) = gone.run(&["findings", "export", &word, "issue.md", "--issue"]);
    assert_eq!(code, 0, "{said}");
    let text = std::fs::read_to_string(gone.folder.path().join("issue.md")).unwrap();
    assert!(text.contains("The compiler was not asked again while this was written: no llvm:"), "{text}");
    assert!(text.contains("st.relaxed.gpu.global.b32 [%rd2], 1;") && !text.contains("fixed in"), "{text}");
    let (code, said) = gone.run(&["findings", "export", &line("self", "equal", GOOD), "o", "--issue"]);
    assert_eq!((code, said.contains("about no compiler")), (2, true), "{said}");
}

#[test]
fn a_source_program_is_checked_under_its_model() {
    let alone = Alone::of(&[]);
    let racy =
        MESSAGE.replace("store.release.gpu y", "store.relaxed.gpu y").replace("relaxed.gpu x", "plain x");
    std::fs::write(alone.folder.path().join("racy.src"), racy).unwrap();
    let asked = format!("{MESSAGE}~exists (P1:r0 == 1 /\\ P1:r1 == 0)\n");
    std::fs::write(alone.folder.path().join("asked.src"), asked).unwrap();
    let (code, said) = alone.run(&["check", "asked.src"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.starts_with("asked.src: clean\n  under rc11-scoped: ") && said.contains("~exists holds"),
        "{said}"
    );
    let (code, said) = alone.run(&["check", "racy.src"]);
    assert_eq!((code, said.starts_with("racy.src: undefined\n")), (10, true), "{said}");
    assert!(
        said.contains(", line 5 of P0 and line 10 of P1 [undefined-race]\n") && !said.contains("mend"),
        "{said}"
    );
    assert!(
        said.contains("racy.src: note: lines are those that `moire generate --print text racy.src` prints"),
        "{said}"
    );
    let (_, printed) = alone.run(&["generate", "--print", "text", "racy.src"]);
    assert_eq!(
        (printed.lines().nth(4), printed.lines().nth(9)),
        (Some("  store.plain x, 1;"), Some("  r1 = load.plain x;"))
    );
    std::fs::write(alone.folder.path().join("printed.src"), printed).unwrap();
    assert!(!alone.run(&["check", "printed.src"]).1.contains("note: "));
    let (code, said) = alone.run(&["check", "mp.src", "--model", "ptx"]);
    assert_eq!((code, said.starts_with("mp.src: clean\n")), (0, true), "{said}");
    std::fs::write(
        alone.folder.path().join("wrong.src"),
        "source \"x\"\n.global .b32 x;\nP0 { store x, 1; }\n",
    )
    .unwrap();
    assert_eq!(alone.run(&["check", "wrong.src"]).0, 2);
}

#[test]
fn a_source_program_is_printed_in_the_languages_of_compilers() {
    let alone = Alone::of(&[]);
    let said = |form: &str| alone.run(&["generate", "--print", form, "mp.src"]);
    assert!(
        said("llvm")
            .1
            .contains("store atomic i32 1, ptr addrspace(1) %x1 syncscope(\"device\") release, align 4")
    );
    assert!(
        said("cuda").1.contains("__nv_atomic_store(x1, &w, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE)"),
        "{}",
        said("cuda").1
    );
    assert!(said("text").1.starts_with("source \"mp\"\n"));
    let (code, drawn) = alone.run(&["generate", "--stream", "source", "--count", "2", "--print", "llvm"]);
    assert_eq!((code, drawn.matches("target triple").count()), (0, 2), "{drawn}");
    assert_eq!(alone.run(&["generate", "--print", "llvm", "--count", "1"]).0, 2);
}

#[test]
fn a_compiler_that_dies_is_a_finding_and_one_that_refuses_is_none() {
    let alone = Alone::of(&[(29, "st.release.gpu")])
        .with(27, "kill -SEGV $$")
        .with(28, "echo 'x.ll:1:1: error: no' >&2; exit 1");
    let (code, said) = alone.run(&["replay", "mp.src"]);
    assert_eq!((code, said.matches("moire replay m1.").count()), (10, 1), "{said}");
    assert!(said.contains("llvm property llvm:level=2,ptx=86,release=27,target=sm_90\n"), "{said}");
    let word = said.split_whitespace().find(|word| is_line(word)).unwrap().to_owned();
    let (code, said) = alone.run(&["replay", &word]);
    assert_eq!((code, said.contains("reproduced\n")), (10, true), "{said}");
    let (code, said) = alone.run(&["findings", "export", &word, "issue.md", "--issue"]);
    assert_eq!(code, 0, "{said}");
    let text = std::fs::read_to_string(alone.folder.path().join("issue.md")).unwrap();
    for part in [
        "# LLVM llc 27.1.0: the compiler dies: signal 11",
        "is valid, and LLVM llc 27.1.0 dies of it.",
        "define ptx_kernel void @moire_0_0_(",
        "signal: 11 (SIGSEGV)",
        "since 27 or before, fixed in 29",
        "- 28: no answer: ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let refuses = Alone::bare().with(28, "echo 'x.ll:1:1: error: no' >&2; exit 1");
    let (code, said) = refuses.run(&["replay", "mp.src"]);
    assert_eq!((code, said.contains("moire replay m1.")), (11, false), "{said}");
    let (code, said) = Alone::of(&[(27, "st.release.gpu")]).run(&["replay", &word]);
    assert_eq!((code, said.contains("not reproduced: ")), (0, true), "{said}");
}

#[test]
fn an_assembler_that_dies_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    let files = [script(folder.path(), "ptxas", "tools, release 13.5, V13.5.37", "kill -SEGV $$")];
    let engine = Oracles::with_assembler(Ptxas::at(&files[0]).unwrap());
    let plan = Plan { oracles: vec!["assembler".to_owned()], ..Plan::default() };
    let item = Item { plan: Arc::new(plan), index: 0, source: Source::Text(GOOD.to_owned()) };
    let claims = engine.run(&item, &Cancel::new()).claims;
    assert!(claims.iter().any(|c| c.axioms == [["crash"], ["signal 11"]]), "{claims:#?}");
    let word = command(&kept(claims[0].clone()));
    let word = word.split_whitespace().last().unwrap();
    let (code, said) = replayed("MOIRE_PTXAS", &files, word);
    assert_eq!((code, said.contains("\nreproduced\n")), (10, true), "{said}");
    let mended = [script(folder.path(), "ptxas", "tools, release 13.5, V13.5.37", ": > \"$4\"")];
    let (code, said) = replayed("MOIRE_PTXAS", &mended, word);
    assert_eq!((code, said.contains("not reproduced: ")), (0, true), "{said}");
}
