//! Static rules: compared with the assembler's recorded answers. Each lint has one program with the fault and one without.

use moire_generate::{Profile, Stream};
use moire_program::text::{Format, Severity, parse};
use moire_program::validate::{RULES, RuleKind, notation, rule, validate};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const ANSWERS: &str = include_str!("../data/ptxas.csv");

/// The kernel of the recorded answers around one line. Registers are declared by use.
fn kernel(line: &str) -> String {
    format!("moire \"k\"\n.global .b64 g[8];\n.shared .b64 s[8];\nP0 (gpu 0, cta 0) {{\n{line};\n}}\n")
}

#[test]
fn the_rules_agree_with_the_assembler() {
    let (mut wrong, mut seen, mut skipped) = (Vec::new(), BTreeMap::<&str, usize>::new(), 0);
    let mut judged = [0, 0];
    for row in ANSWERS.lines().skip(1) {
        let [version, answer, line] = row.splitn(3, ',').collect::<Vec<_>>()[..] else {
            panic!("a row has three columns: {row}")
        };
        assert_eq!(version, "13.5.37", "{row}");
        let accepted = match answer {
            "ok" => true,
            "error" => false,
            _ => panic!("an answer is ok or error: {row}"),
        };
        // An instruction that the reader refuses needs no rule. A notation of our own has no answer to compare with.
        let ours = match parse(&kernel(line), Format::Native) {
            Err(_) => false,
            Ok(program) if program.threads[0].body.iter().any(|i| notation(&i.op).is_some()) => {
                assert!(!accepted, "{line} is no notation of ours: the assembler takes it");
                skipped += 1;
                continue;
            }
            Ok(program) => {
                let errors: Vec<_> =
                    validate(&program).into_iter().filter(|d| d.severity == Severity::Error).collect();
                for id in errors.iter().filter_map(|d| d.rule) {
                    assert_eq!(rule(id).unwrap().kind, RuleKind::PtxasEqual);
                    *seen.entry(id).or_default() += 1;
                }
                errors.is_empty()
            }
        };
        judged[usize::from(accepted)] += 1;
        if ours != accepted {
            wrong.push(row);
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(judged.iter().all(|n| *n > 500), "{judged:?} rows compared");
    println!("{} accepted, {} refused, {skipped} not comparable", judged[1], judged[0]);
    // Rules about tensor cores and asynchronous copies have recorded answers of their own: `forms` in `corpus/program`.
    let other = ["cta-group", "target"];
    for rule in RULES.iter().filter(|r| r.kind == RuleKind::PtxasEqual && !other.contains(&r.id)) {
        assert!(seen.contains_key(rule.id), "no recorded answer concerns {}", rule.id);
    }
}

/// A rule, a program with the fault, and the program without it.
const EXAMPLES: &[(&str, &str, &str)] = &[
    (
        "ambiguous-warp",
        "P0 (gpu 0, cta 0) { bar.warp.sync 3; } P1 (gpu 0, cta 0) { st.u32 [x], 1; }",
        "P0 (gpu 0, cta 0, lane 0) { bar.warp.sync 3; } P1 (gpu 0, cta 0, lane 1) { st.u32 [x], 1; }",
    ),
    (
        "ambiguous-warp",
        "P0 (gpu 0, cta 0, warp 1, lane 0) { elect.sync _|p, 1; } P1 (gpu 0, cta 0, warp 1) { st.u32 [x], 1; }",
        "P0 (gpu 0, cta 0, warp 1, lane 0) { elect.sync _|p, 1; } P1 (gpu 0, cta 0, warp 2) { st.u32 [x], 1; }",
    ),
    (
        "narrow-scope",
        "P0 (gpu 0, cta 0) { st.release.cta.u32 [x], 1; } P1 (gpu 0, cta 1) { ld.acquire.gpu.u32 r, [x]; }",
        "P0 (gpu 0, cta 0) { st.release.gpu.u32 [x], 1; } P1 (gpu 0, cta 1) { ld.acquire.gpu.u32 r, [x]; }",
    ),
    (
        "narrow-scope",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; fence.sc.gpu; st.u32 [y], 1; } P1 (gpu 1, cta 1) { ld.u32 r, [x]; }",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; fence.sc.sys; st.u32 [y], 1; } P1 (gpu 1, cta 1) { ld.u32 r, [x]; }",
    ),
    ("static-address", "P0 (gpu 0, cta 0) { st.u16 [x+1], 1; }", "P0 (gpu 0, cta 0) { st.u16 [x+2], 1; }"),
    ("static-address", "P0 (gpu 0, cta 0) { st.u32 [x+4], 1; }", "P0 (gpu 0, cta 0) { st.u32 [x], 1; }"),
    (
        "multimem-address",
        "P0 (gpu 0, cta 0) { st.weak.u32 [m], 1; }",
        "P0 (gpu 0, cta 0) { multimem.st.weak.u32 [m], 1; }",
    ),
    (
        "unfenced-proxies",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; ld.u32 r, [a]; }",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; fence.proxy.alias; ld.u32 r, [a]; }",
    ),
    (
        "unfenced-proxies",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; tld.weak.u32 r, [t]; }",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; fence.proxy.texture; tld.weak.u32 r, [t]; }",
    ),
    (
        "idle-fence",
        "P0 (gpu 0, cta 0) { fence.acq_rel.gpu; st.u32 [x], 1; }",
        "P0 (gpu 0, cta 0) { ld.u32 r, [y]; fence.acq_rel.gpu; st.u32 [x], 1; }",
    ),
    (
        "idle-fence",
        "P0 (gpu 0, cta 0) { fence.sc.gpu; exit; st.u32 [x], 1; }",
        "P0 (gpu 0, cta 0) { L: fence.sc.gpu; ld.u32 r, [x]; setp.eq.u32 p, r, 0; @p bra L; }",
    ),
    (
        "barrier-count",
        "P0 (gpu 0, cta 0) { bar.sync 1, 3; } P1 (gpu 0, cta 0) { bar.sync 1, 3; }",
        "P0 (gpu 0, cta 0) { bar.sync 1, 2; } P1 (gpu 0, cta 0) { bar.sync 1, 2; }",
    ),
    (
        "barrier-count",
        "P0 (gpu 0, cta 0, warp 0, lanes 0-31) { bar.sync 1, 96; } P1 (gpu 0, cta 0, warp 1, lanes 0-31) { bar.sync 1, 96; }",
        "P0 (gpu 0, cta 0, warp 0, lanes 0-31) { bar.sync 1, 64; } P1 (gpu 0, cta 0, warp 1, lanes 0-31) { bar.sync 1, 64; }",
    ),
    (
        "barrier-count",
        "P0 (gpu 0, cta 0) { bar.arrive 1, 2; } P1 (gpu 0, cta 0) { bar.sync 1, 3; }",
        "P0 (gpu 0, cta 0) { bar.arrive 1, 3; bar.arrive 1, 3; } P1 (gpu 0, cta 0) { bar.sync 1, 3; }",
    ),
    (
        "barrier-pairing",
        "P0 (gpu 0, cta 0) { bar.arrive 1, 2; } P1 (gpu 0, cta 1) { bar.sync 1, 2; }",
        "P0 (gpu 0, cta 0) { bar.arrive 1, 2; } P1 (gpu 0, cta 0) { bar.sync 1, 2; }",
    ),
    (
        "barrier-pairing",
        "P0 (gpu 0, cta 0) { barrier.cluster.wait; }",
        "P0 (gpu 0, cta 0) { barrier.cluster.arrive; barrier.cluster.wait; }",
    ),
    (
        "divergent-barrier",
        "P0 (gpu 0, cta 0) { ld.u32 r, [x]; setp.eq.u32 p, r, 0; @p bra E; bar.sync 0; E: st.u32 [x], 1; }",
        "P0 (gpu 0, cta 0) { ld.u32 r, [x]; setp.eq.u32 p, r, 0; @p exit; bar.sync 0; st.u32 [x], 1; }",
    ),
    ("placement", "P0 (host) { bar.sync 0; }", "P0 (gpu 0, cta 0) { bar.sync 0; }"),
    ("placement", "P0 (host) { st.weak.u32 [s], 1; }", "P0 (host) { st.weak.u32 [x], 1; }"),
    (
        "placement",
        "P0 (gpu 0, cta 0, lane 2) { bar.warp.sync 3; }",
        "P0 (gpu 0, cta 0, lane 2) { bar.warp.sync 7; }",
    ),
    (
        "placement",
        "P0 (gpu 0, cta 0, lane 1) { } P1 (gpu 0, cta 0, lane 1) { }",
        "P0 (gpu 0, cta 0, lane 1) { } P1 (gpu 0, cta 0, lane 2) { }",
    ),
    (
        "ignored-instruction",
        "P0 (gpu 0, cta 0) { setmaxnreg.dec.sync.aligned.u32 40; }",
        "P0 (gpu 0, cta 0) { griddepcontrol.wait; }",
    ),
    (
        "tensor-address",
        "P0 (gpu 0, cta 0) { tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [v+64]; }",
        "P0 (gpu 0, cta 0) { tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [v+63]; }",
    ),
    (
        "tensor-address",
        "P0 (gpu 0, cta 0, warp 1) { tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [v]; }",
        "P0 (gpu 0, cta 0, warp 5) { tcgen05.ld.sync.aligned.32x32b.x1.b32 {r}, [v+lane 32]; }",
    ),
    (
        "static-address",
        "P0 (gpu 0, cta 0) { tcgen05.cp.cta_group::1.128x256b [v], desc(s, 5); }",
        "P0 (gpu 0, cta 0) { tcgen05.cp.cta_group::1.128x256b [v], desc(s, 4); }",
    ),
    (
        "unreachable-code",
        "P0 (gpu 0, cta 0) { exit; st.u32 [x], 1; }",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; exit; }",
    ),
    (
        "unreachable-code",
        "P0 (gpu 0, cta 0) { L: ld.u32 r, [x]; bra L; }",
        "P0 (gpu 0, cta 0) { L: ld.u32 r, [x]; setp.eq.u32 p, r, 0; @p bra L; }",
    ),
    (
        "unwritten-register",
        "P0 (gpu 0, cta 0) { st.u32 [x], q; }",
        "P0 (gpu 0, cta 0) { mov.u32 q, 1; st.u32 [x], q; }",
    ),
    (
        "unwritten-register",
        "P0 (gpu 0, cta 0) { .reg q; } exists (P0:q == 0)",
        "P0 (gpu 0, cta 0) { .reg q = 1; } exists (P0:q == 1)",
    ),
    (
        "truncated-immediate",
        "P0 (gpu 0, cta 0) { st.u8 [x], 256; }",
        "P0 (gpu 0, cta 0) { st.u8 [x], -128; st.u8 [x], 255; }",
    ),
    (
        "truncated-immediate",
        "P0 (gpu 0, cta 0) { } exists ([x].b8 == 256)",
        "P0 (gpu 0, cta 0) { } exists ([x].b8 == 255)",
    ),
    (
        "register-width",
        "P0 (gpu 0, cta 0) { mov.u32 r, 1; add.u64 r, r, 1; }",
        "P0 (gpu 0, cta 0) { ld.u32 r, [x]; add.u64 r, r, 1; }",
    ),
    (
        "register-width",
        "P0 (gpu 0, cta 0) { setp.eq.u32 p, 1, 1; st.u32 [x], p; }",
        "P0 (gpu 0, cta 0) { setp.eq.u32 p, 1, 1; @p st.u32 [x], 1; }",
    ),
    (
        "float-arithmetic",
        "P0 (gpu 0, cta 0) { ld.f32 r, [x]; add.f32 r, r, r; }",
        "P0 (gpu 0, cta 0) { ld.f32 r, [x]; st.f32 [x], r; }",
    ),
    (
        "impossible-condition",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; } P1 (gpu 0, cta 1) { ld.u32 r, [x]; } exists (P1:r == 2)",
        "P0 (gpu 0, cta 0) { st.u32 [x], 1; } P1 (gpu 0, cta 1) { ld.u32 r, [x]; } exists (P1:r == 1)",
    ),
    (
        "impossible-condition",
        "P0 (gpu 0, cta 0) { atom.exch.b32 r, [x], 1; } ~exists ([x] == 2)",
        "P0 (gpu 0, cta 0) { atom.add.u32 r, [x], 1; } ~exists ([x] == 2)",
    ),
];

fn found(threads: &str) -> Vec<&'static str> {
    let text = format!(
        "moire \"k\"\n.global .b32 x;\n.global .b32 y;\n.shared .b32 s;\n.alias a = x;\n.texture t = x;\n.multimem m = x, y;\n.tmem v[64];\n{threads}\n"
    );
    let program = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{threads}: {e}"));
    validate(&program).iter().map(|d| d.rule.unwrap()).collect()
}

#[test]
fn each_lint_finds_its_fault() {
    for (id, with, without) in EXAMPLES {
        assert!(found(with).contains(id), "{id} is not found in {with}");
        assert!(!found(without).contains(id), "{id} is found in {without}");
    }
    let unused = |text| validate(&parse(text, Format::Native).unwrap()).len();
    assert_eq!(unused("moire \"k\" .global .b32 x; P0 (gpu 0, cta 0) { st.u32 [x], 1; }"), 0);
    assert_eq!(unused("moire \"k\" .global .b32 x; .alias a = x; P0 (gpu 0, cta 0) { st.u32 [x], 1; }"), 1);
    assert_eq!(unused("moire \"k\" .global .b32 x; .alias a = x; P0 (gpu 0, cta 0) { st.u32 [a], 1; }"), 0);
    for rule in RULES.iter().filter(|r| r.kind != RuleKind::PtxasEqual && r.id != "unused-name") {
        assert!(EXAMPLES.iter().any(|(id, _, _)| *id == rule.id), "{} has no example", rule.id);
    }
}

#[test]
fn positions_are_those_of_the_instruction() {
    let text = "moire \"k\"\n.global .b32 x;\nP0 (gpu 0, cta 0) {\n  st.u32 [x], 1;  and.u32 r, r, 1;\n}\n";
    let found = validate(&parse(text, Format::Native).unwrap());
    assert_eq!((found[0].line, found[0].column, found[0].rule), (4, 19, Some("form")));
    assert!(found[0].message.contains("and.u32 r, r, 1"), "{}", found[0]);
}

#[test]
fn rules_have_distinct_names() {
    for (i, rule) in RULES.iter().enumerate() {
        assert!(RULES[..i].iter().all(|r| r.id != rule.id), "{}", rule.id);
    }
}

fn below(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { below(&path, out) } else { out.push(path) }
    }
}

#[test]
fn our_own_programs_are_legal() {
    let mut files = Vec::new();
    below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../litmus"), &mut files);
    files.retain(|f| f.extension().is_some_and(|e| e == "litmus"));
    assert!(files.len() > 100);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let program = parse(&text, Format::Native).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let error = validate(&program).into_iter().find(|d| d.severity == Severity::Error);
        assert_eq!(error, None, "{}", file.display());
    }
}

#[test]
fn generated_programs_are_legal() {
    for profile in Profile::PTX {
        let stream = Stream::new(7, profile);
        for index in 0..500 {
            let error = validate(&stream.item(index)).into_iter().find(|d| d.severity == Severity::Error);
            assert_eq!(error, None, "{} {index}", profile.name());
        }
    }
}
