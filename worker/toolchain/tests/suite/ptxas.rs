//! Modules made from programs against the assembler itself, where there is one: the recorded forms, the published
//! probes, the programs of the corpus and of the generator. Without `ptxas` each test says so and passes.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use crate::common::{assembler, on_all};
use moire_generate::{KernelDraw, Profile, Stream};
use moire_kernel::emit;
use moire_program::ir::Program;
use moire_program::text::{Format, Severity, parse};
use moire_program::validate::{Target, targets, validate};
use moire_toolchain::Ptxas;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// One of this many recorded forms is tried; `MOIRE_FORMS=1` tries all.
const STRIDE: usize = 23;

/// Differences shown in full.
const SHOWN: usize = 30;

/// Whether the rules and the assembler accept `program` for `target`, if both give an answer.
fn compare(ptxas: &Ptxas, program: &Program, target: Target) -> Result<(bool, bool, String), String> {
    let legal = validate(program).iter().all(|d| d.severity != Severity::Error);
    let ours = legal && targets(program).contains(&target);
    let module = emit::module(program, target).map_err(|e| e.to_string())?;
    let answer = ptxas.assemble(&module.text, target.name()).unwrap();
    // The front gives all elements that nobody reads one register, and `ptxas` takes none twice in a load of tensor memory.
    if format!("{answer:?}").contains("C7308") {
        return Err("a register twice in one load of tensor memory".to_owned());
    }
    let theirs = answer.accepted().ok_or_else(|| format!("{answer:?}"))?;
    Ok((ours, theirs, format!("{answer:?}\n{}", module.text)))
}

/// Compares each program for two targets, one that has it where there is one.
fn agree(ptxas: &Ptxas, programs: &[(String, Program)]) -> (usize, BTreeMap<String, usize>) {
    let state = Mutex::new(([0, 0], BTreeMap::<String, usize>::new(), Vec::new()));
    let numbered: Vec<(usize, &(String, Program))> = programs.iter().enumerate().collect();
    on_all(&numbered, |(i, (name, program))| {
        let mine = targets(program);
        let has = mine.get(i % mine.len().max(1)).copied();
        let lacks = Target::ALL.into_iter().filter(|t| !mine.contains(t)).nth(i % 2);
        let other = if has.is_none() { Some(Target::ALL[i % Target::ALL.len()]) } else { None };
        for target in has.into_iter().chain(lacks.filter(|_| i % 4 == 0)).chain(other) {
            let found = compare(ptxas, program, target);
            let mut state = state.lock().unwrap();
            match found {
                Err(why) => *state.1.entry(why).or_default() += 1,
                Ok((ours, theirs, _)) if ours == theirs => state.0[usize::from(ours)] += 1,
                Ok((ours, _, text)) => {
                    state.2.push(format!("{name} for {}: ours {ours}, {text}", target.name()));
                }
            }
        }
    });
    let (counts, not_compared, wrong) = state.into_inner().unwrap();
    println!("{counts:?} refused and accepted by both; not compared: {not_compared:?}");
    let shown: Vec<&String> = wrong.iter().take(SHOWN).collect();
    assert!(
        wrong.is_empty(),
        "{} differ: {}",
        wrong.len(),
        shown.iter().map(|s| s.as_str()).collect::<String>()
    );
    (counts.iter().sum(), not_compared)
}

const FORMS: &str = include_str!("../../../../corpus/generate/tests/data/ptxas.csv");
const TARGETS: &str = include_str!("../../../../corpus/program/tests/data/targets.csv");

fn stride() -> usize {
    std::env::var("MOIRE_FORMS").ok().and_then(|v| v.parse().ok()).unwrap_or(STRIDE)
}

#[test]
fn recorded_forms_become_modules_with_the_recorded_answer() {
    let Some(ptxas) = assembler() else { return };
    let forms = FORMS.lines().skip(1).map(|row| {
        let line = row.splitn(3, ',').nth(2).unwrap().trim_end_matches(';');
        format!("moire \"k\"\n.global .b64 g[8];\n.shared .b64 s[8];\nP0 (gpu 0, cta 0) {{\n{line};\n}}\n")
    });
    let tensor = TARGETS.lines().skip(1).map(|row| {
        let line = row.splitn(3, ',').nth(2).unwrap().trim_end_matches(';');
        format!(
            "moire \"k\"\n.shared .b8 buf[4096];\n.shared .b64 mb;\n.shared .b32 slot;\nP0 (gpu 0, cta 0) {{\nmov.u64 g, 0; mov.u64 sd, 0; mov.u32 r3, 1; setp.eq.u32 p, 0, 0; mov.u32 t, 0; mov.u32 idesc, 0; mov.b16 h0, 3;\n{line};\n}}\n"
        )
    });
    // Registers of a module have bits and no type: the assembler then takes an integer beside a float in a vector.
    let typed = |text: &String| text.contains("st.v2.f32 [d0], {1, f0}");
    let read = |text: String| parse(&text, Format::Native).ok().map(|p| (text, p));
    let programs: Vec<(String, Program)> =
        forms.chain(tensor).filter(|t| !typed(t)).step_by(stride()).filter_map(read).collect();
    let (compared, _) = agree(&ptxas, &programs);
    assert!(compared > 100, "{compared} compared");
}

fn below(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { below(&path, out) } else { out.push(path) }
    }
}

#[test]
fn programs_of_the_corpus_and_of_the_generator_are_assembled() {
    let Some(ptxas) = assembler() else { return };
    let mut files = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus"), &mut files);
    files.retain(|f| f.extension().is_some_and(|e| e == "litmus"));
    files.sort();
    let mut programs: Vec<(String, Program)> = files
        .iter()
        .map(|f| {
            (f.display().to_string(), parse(&std::fs::read_to_string(f).unwrap(), Format::Native).unwrap())
        })
        .collect();
    for profile in Profile::PTX {
        let stream = Stream::new(11, profile);
        programs.extend((0..60).map(|i| (format!("{} {i}", profile.name()), stream.item(i))));
    }
    let (compared, not_compared) = agree(&ptxas, &programs);
    assert!(compared > 250, "{compared} compared, not compared: {not_compared:?}");
}

#[test]
fn drawn_kernels_are_accepted() {
    let Some(ptxas) = assembler() else { return };
    let stream = Stream::new(11, Profile::Kernel);
    let modules: Vec<KernelDraw> = (0..60).filter_map(|index| stream.module(index)).collect();
    assert_eq!(modules.len(), 60);
    on_all(&modules, |kernel| {
        let answer = ptxas.assemble(&kernel.module, kernel.target).unwrap();
        assert_eq!(answer.accepted(), Some(true), "{answer:?}\n{}", kernel.text());
    });
}
