//! Verdicts on kernels of PTX modules. Our own modules have an expectation beside them; outside modules must have the
//! verdict of their folder.

use moire_cat::Variants;
use moire_execution::leaf::Finding;
use moire_explore::Limits;
use moire_explore::judge::{About, Questions, judge};
use moire_kernel::Refusal;
use moire_kernel::ptx;
use moire_kernel::specialise::{Launch, Lowered, lower, lower_for_any_data};
use moire_program::text::expectations;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Outside modules that their folder calls clean, with our verdict. In 12 the address of a store depends only on the
/// thread's number in its CTA, so threads of both CTAs store different values to the same words of global memory. In 14
/// products of all kinds have one accumulator, which is correct only under TQ11=B. In 15 there is no wait between stores
/// to the same cells, which is correct only under TQ12=B.
const OPEN: &[(&str, &str)] = &[
    ("12_cta_pair_mma_multicast_commit", "race"),
    ("14_mma_family_tour", "race"),
    ("15_ld_st_shapes", "race"),
];

/// The verdict on each outside hazard.
const HAZARDS: &[(&str, &str)] = &[
    ("h01", "race"),
    ("h02", "race"),
    ("h03", "race"),
    ("h04", "race"),
    ("h05", "race"),
    ("h06", "hang"),
    ("h07", "protocol"),
    ("h08", "protocol"),
    ("h09", "protocol"),
    ("h10", "protocol"),
    ("h11", "lifetime"),
    ("h12", "hang"),
    ("h13", "protocol"),
    ("h14", "race"),
    ("h15", "lifetime"),
];

fn modules(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        eprintln!("skipped: no modules at {}", folder.display());
        return Vec::new();
    };
    let all = entries.filter_map(|e| Some(e.ok()?.path()));
    let mut out: Vec<PathBuf> = all.filter(|p| p.extension().is_some_and(|e| e == "ptx")).collect();
    out.sort();
    out
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the verdicts in words, such as `clean`, `race, hang`, `abstained REASON`, `bounded REASON`.
fn verdicts(path: &Path, params: BTreeMap<u16, u64>, variants: &Variants) -> String {
    verdicts_of(path, None, params, variants, 20_000)
}

fn verdicts_of(
    path: &Path,
    grid: impl Into<Option<[u32; 3]>>,
    params: BTreeMap<u16, u64>,
    variants: &Variants,
    leaves: u64,
) -> String {
    judged(path, grid.into(), params, (variants, leaves), lower)
}

/// The same for a way to make a program of a kernel and a launch.
fn judged(
    path: &Path,
    grid: Option<[u32; 3]>,
    params: BTreeMap<u16, u64>,
    (variants, leaves): (&Variants, u64),
    lower: fn(&ptx::Kernel, &Launch) -> Result<Lowered, Refusal>,
) -> String {
    let text = std::fs::read_to_string(path).expect("a module is text");
    let module = ptx::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let kernel = &module.kernels[0];
    let launch = Launch::of(kernel, grid, None, None, params).expect("the launch fits");
    match lower(kernel, &launch) {
        Ok(lowered) => {
            let model = moire_models::load("ptx", variants).expect("the model loads");
            let questions = Questions { witnesses: false, about: About::All };
            let limits = Limits { leaves, ..Limits::default() };
            let judgement = judge(&lowered.program, &model, &limits, questions);
            let word = |v: &moire_explore::judge::Verdict| match v {
                moire_explore::judge::Verdict::Abstained(why) => format!("abstained {why}"),
                other => other.word().to_owned(),
            };
            let loose = |line: u32, global: bool| lowered.loose.contains(&(line, global));
            let doubtful = |f: &Finding| {
                f.places.iter().any(|p| loose(p.line, true)) || f.places.iter().all(|p| loose(p.line, false))
            };
            if !judgement.findings.is_empty() && judgement.findings.iter().all(doubtful) {
                return "abstained accesses to places that data decides".to_owned();
            }
            judgement.verdicts.iter().map(word).collect::<Vec<_>>().join(", ")
        }
        Err(Refusal::Bounded(why)) => format!("bounded {why}"),
        Err(why) => format!("abstained {why}"),
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[test]
fn our_modules_have_the_expected_verdicts() {
    let all = modules(&root().join("corpus/ptx"));
    assert!(all.len() > 6, "the modules are there");
    let mut wrong = Vec::new();
    for path in all {
        let text = std::fs::read_to_string(&path).expect("the module can be read");
        let (mut params, mut want) = (BTreeMap::new(), String::new());
        for line in expectations(&text) {
            match line.split_once(' ') {
                Some(("param", rest)) => {
                    let (index, value) = rest.split_once('=').expect("INDEX=VALUE");
                    params.insert(index.parse().expect("a number"), value.parse().expect("a number"));
                }
                Some(("verdicts", rest)) => want = rest.to_owned(),
                _ => want = line.to_owned(),
            }
        }
        let got = verdicts(&path, params, &Variants::new());
        if got != want {
            wrong.push(format!("{}: {got}, not {want}", stem(&path)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn outside_modules_have_the_verdict_of_their_folder() {
    let outside = root().join("../shared/spec/examples-ptx");
    let mut wrong = Vec::new();
    for folder in ["ok", "hazard"] {
        for path in modules(&outside.join(folder)) {
            let name = stem(&path);
            let got = verdicts(&path, BTreeMap::new(), &Variants::new());
            let hazard = HAZARDS.iter().find(|h| name.starts_with(h.0)).map(|h| h.1);
            let right = match hazard {
                Some(want) => got.split(", ").any(|g| g == want),
                None => {
                    let open = OPEN.iter().find(|o| o.0 == name);
                    got == open.map_or("clean", |o| o.1)
                }
            };
            if !right {
                wrong.push(format!("{folder}/{name}: {got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A compiled kernel of an outside folder.
struct Outside {
    name: &'static str,
    /// Values of the kernel parameters that determine its loops.
    params: &'static [(u16, u64)],
    /// The expected verdict, under the readings that shipped kernels rely on. A mutant may also have other verdicts.
    verdict: &'static str,
}

/// Parameters for one tile: rows and columns of the result, and depth of the product.
const ONE_TILE: &[(u16, u64)] = &[(15, 128), (16, 128), (17, 64)];
/// Parameters for more steps than the ring of operands has stages.
const FOUR_STEPS: &[(u16, u64)] = &[(15, 128), (16, 128), (17, 256)];
/// Parameters for more tiles than the ring of accumulators has stages.
const THREE_TILES: &[(u16, u64)] = &[(15, 384), (16, 128), (17, 64)];

const fn outside(name: &'static str, params: &'static [(u16, u64)], verdict: &'static str) -> Outside {
    Outside { name, params, verdict }
}

const KERNELS: &[Outside] = &[
    outside("cuda-copy-chain", &[(2, 3)], "clean"),
    outside("cuda-copy-chain.mutant-1", &[(2, 3)], "race"),
    outside("cuda-copy-chain.mutant-2", &[(2, 3)], "race"),
    outside("cuda-copy-chain.mutant-3", &[(2, 3)], "race"),
    outside("gluon-clc", &[(1, 128)], "clean"),
    outside("gluon-tmem-copy", &[], "clean"),
    outside("gluon-tmem-ldst", &[], "clean"),
    outside("gluon-mma-pipelined", &[(15, 192)], "clean"),
    outside("triton-mm-ws", ONE_TILE, "clean"),
    outside("gluon-ws-persistent", ONE_TILE, "clean"),
    outside("gluon-ws-persistent.mutant-1", FOUR_STEPS, "race"),
    outside("gluon-ws-persistent.mutant-2", ONE_TILE, "race"),
    outside("gluon-ws-persistent.mutant-3", ONE_TILE, "race"),
    outside("gluon-ws-persistent.mutant-4", THREE_TILES, "race"),
];

#[test]
fn outside_kernels_have_the_expected_verdicts() {
    let folder = root().join("../shared/kernels");
    let known = modules(&folder);
    let practice = Variants::from([("profile".to_owned(), "practice".to_owned())]);
    let mut wrong = Vec::new();
    for Outside { name, params, verdict } in KERNELS {
        let Some(path) = known.iter().find(|p| stem(p) == *name) else {
            eprintln!("skipped: no {name}");
            continue;
        };
        // For a mutant one execution is enough.
        let leaves = if *verdict == "clean" { 20_000 } else { 1 };
        let got = verdicts_of(path, [1, 1, 1], params.iter().copied().collect(), &practice, leaves);
        if !got.split(", ").any(|g| g == *verdict) {
            wrong.push(format!("{name}: {got}, not {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The classic kernels and their twins with one mistake: grid, values of parameters, verdict under the readings that
/// shipped kernels rely on. Three are not decided yet: look-back unrolls without end, a worklist and a compaction store at
/// addresses that depend on data.
const CLASSIC: &[(&str, u32, &[(u16, u64)], &str)] = &[
    ("cpasync", 1, &[(2, 3)], "clean"),
    ("cpasync.bug", 1, &[(2, 3)], "race"),
    ("cubreduce", 1, &[], "clean"),
    ("cubreduce.bug", 1, &[], "race"),
    ("dsmem", 2, &[], "clean"),
    ("dsmem.bug", 2, &[], "lifetime"),
    ("gridsync", 2, &[], "clean"),
    ("gridsync.bug", 2, &[], "race"),
    ("hist2", 1, &[], "clean"),
    ("hist2.bug", 1, &[], "race"),
    ("lastblock", 2, &[], "clean"),
    ("lookback", 2, &[], "clean"),
    ("m-assert", 1, &[], "clean"),
    ("m-bfs", 1, &[], "abstained"),
    ("m-compact", 1, &[], "clean"),
    ("m-func", 1, &[], "clean"),
    ("m-printf", 1, &[], "clean"),
    ("queue", 2, &[], "clean"),
    ("queue.bug", 2, &[], "race"),
    ("reduce", 1, &[], "clean"),
    ("reduce.bug", 1, &[], "race"),
    ("spinlock", 2, &[], "clean"),
    ("spinlock.bug", 2, &[], "race"),
    ("tiledmm", 1, &[(3, 32)], "clean"),
    ("tiledmm.bug", 1, &[(3, 32)], "race"),
    ("tmaring", 1, &[(2, 3)], "clean"),
    ("tmaring.bug", 1, &[(2, 3)], "race"),
    ("tmaring2", 1, &[(2, 3)], "clean"),
    ("tmaring2.bug", 1, &[(2, 3)], "race"),
    ("transpose", 1, &[], "clean"),
    ("transpose.bug", 1, &[], "race"),
];

#[test]
fn classic_kernels_have_the_expected_verdicts() {
    let known = modules(&root().join("../shared/kernels/classic"));
    let practice = Variants::from([("profile".to_owned(), "practice".to_owned())]);
    let mut wrong = Vec::new();
    for (name, grid, params, verdict) in CLASSIC {
        let Some(path) = known.iter().find(|p| stem(p) == *name) else {
            eprintln!("skipped: no {name}");
            continue;
        };
        let leaves = if *verdict == "clean" { 20_000 } else { 1 };
        let params: BTreeMap<u16, u64> = params.iter().copied().collect();
        let mut got = verdicts_of(path, [*grid, 1, 1], params.clone(), &practice, leaves);
        if got.starts_with("abstained") {
            let any = judged(path, Some([*grid, 1, 1]), params, (&practice, leaves), lower_for_any_data);
            got = format!("{any}, for any data; {got}");
        }
        if !got.split([',', ';']).any(|g| g.split_whitespace().next() == Some(*verdict)) {
            wrong.push(format!("{name}: {got}, not {verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn hazard_14_depends_on_contested_readings() {
    let folder = root().join("../shared/spec/examples-ptx/hazard");
    let Some(path) = modules(&folder).into_iter().find(|p| stem(p).starts_with("h14")) else { return };
    for (name, value, want) in [("TQ1", "A", "race"), ("TQ1", "B", "clean"), ("profile", "practice", "clean")]
    {
        let variants = Variants::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(verdicts(&path, BTreeMap::new(), &variants), want, "{name}={value}");
    }
}
