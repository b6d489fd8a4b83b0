//! The published probes beside the checkout, given to the assembler again: single instructions with the targets that
//! take them. What is accepted goes into one module a target, what is refused into a module of its own.
//! (`moire-program` compares the static rules with the same recorded answers.)

#![expect(clippy::unwrap_used, reason = "tests")]

use moire_toolchain::Ptxas;
use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;

/// Registers and memory that the forms name.
const DECLARATIONS: &str = "  .reg .b8 b0;\n  .reg .b16 h<4>;\n  .reg .b32 r<300>;\n  .reg .b64 d<40>;\n  .reg .f32 f<8>;\n  .reg .b128 o;\n  .reg .pred p, q, pe;\n  .reg .b32 t, tA, tB, tS, idesc, cols, zc;\n  .reg .b64 ad, bd, sd, zd, g;\n  .shared .align 8 .b64 mb;\n  .shared .align 8 .b32 slot;\n  .shared .align 128 .b8 buf[4096];\n  ld.param.u64 g, [gp];\n";

/// Registers that need a value for some instructions.
fn values() -> String {
    let mut out = String::new();
    for (names, start) in [
        ("t tA tB tS idesc zc r3 r4 r5 r6 r7 r8 r9 r10", "mov.u32 @, 1;"),
        ("ad bd sd zd d0 d1", "mov.u64 @, 0;"),
        ("cols", "mov.u32 @, 32;"),
        ("r0", "mov.u32 @, mb;"),
        ("r1", "mov.u32 @, slot;"),
        ("r2", "mov.u32 @, buf;"),
        ("h0", "mov.b16 @, 3;"),
        ("p", "setp.eq.u32 @, 0, 0;"),
    ] {
        for name in names.split(' ') {
            let _ = writeln!(out, "  {}", start.replace('@', name));
        }
    }
    out
}

/// One kernel a form.
fn module(target: &str, forms: &[&str]) -> String {
    let mut out =
        format!(".version 9.5\n.target {target}\n.address_size 64\n.extern .shared .align 1024 .b8 sm[];\n");
    for (n, form) in forms.iter().enumerate() {
        let _ = write!(
            out,
            ".visible .entry k{n}(.param .u64 gp, .param .align 64 .b8 tmap[128])\n{{\n{DECLARATIONS}{}  {form}\n  ret;\n}}\n",
            values()
        );
    }
    out
}

/// Form, targets asked, targets that take it.
fn read(text: &str) -> Vec<(&str, Vec<&str>, Vec<&str>)> {
    let mut rows: Vec<(&str, Vec<&str>, Vec<&str>)> = Vec::new();
    let mut all = Vec::new();
    for line in text.lines() {
        if let Some((_, targets)) = line.strip_prefix('#').and_then(|l| l.split_once("; targets ")) {
            all = targets.split_whitespace().take_while(|w| w.starts_with("sm_")).collect();
        } else if let Some((answer, form)) = line.split_once(" | ") {
            let accepted = if answer.trim() == "OK" { all.clone() } else { Vec::new() };
            rows.push((form, all.clone(), accepted));
        } else if let (Some(list), Some(row)) = (line.trim_start().strip_prefix("ok: "), rows.last_mut()) {
            row.2 = list.split(',').filter(|t| *t != "-").collect();
        }
    }
    rows
}

fn refuses_alone(ptxas: &Ptxas, jobs: &[(&str, &str)], wrong: &Mutex<Vec<String>>) {
    crate::common::on_all(jobs, |(form, target)| {
        let answer = ptxas.assemble(&module(target, &[form]), target).unwrap();
        if answer.accepted() != Some(false) {
            wrong.lock().unwrap().push(format!("{form} for {target}: recorded as refused, now {answer:?}"));
        }
    });
}

#[test]
fn the_assembler_still_gives_the_published_answers() {
    let Some(path) = crate::outside::beside("shared/spec/examples-ptx/probe-results.txt") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let Some(ptxas) = crate::common::assembler() else { return };
    let rows = read(&text);
    assert_eq!(rows.len(), 283);
    let wrong = Mutex::new(Vec::new());
    let mut targets: Vec<&str> = rows.iter().flat_map(|r| r.1.clone()).collect();
    targets.sort_unstable();
    targets.dedup();
    let (mut accepted, mut refused) = (0, Vec::new());
    for target in targets {
        let takes: Vec<&str> = rows.iter().filter(|r| r.2.contains(&target)).map(|r| r.0).collect();
        let all = ptxas.assemble(&module(target, &takes), target).unwrap();
        if all.accepted() != Some(true) {
            wrong.lock().unwrap().push(format!("{target}: recorded as accepted, now {all:?}"));
        }
        accepted += takes.len();
        let not = rows.iter().filter(|r| r.1.contains(&target) && !r.2.contains(&target));
        refused.extend(not.map(|r| (r.0, target)));
    }
    refuses_alone(&ptxas, &refused, &wrong);
    let wrong = wrong.into_inner().unwrap();
    println!("283 probes: {accepted} answers accepted, {} refused, by target", refused.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Modules of the corpus are what compilers could have printed.
#[test]
fn modules_of_the_corpus_are_taken() {
    let Some(ptxas) = crate::common::assembler() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/ptx");
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let modules: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "ptx")).collect();
    assert!(modules.len() > 30, "the modules are there");
    let refused = Mutex::new(Vec::new());
    crate::common::on_all(&modules, |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let target = text.lines().find_map(|l| l.strip_prefix(".target ")).unwrap();
        let answer = ptxas.assemble(&text, target.trim()).unwrap();
        if answer.accepted() != Some(true) {
            refused.lock().unwrap().push(format!("{}: {answer:?}", path.display()));
        }
    });
    let refused = refused.into_inner().unwrap();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
