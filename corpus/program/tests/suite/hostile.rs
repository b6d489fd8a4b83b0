//! Hostile texts for the readers: they cause no panic and no endless work, and an accepted program prints and parses back.

use moire_program::canon::canonical;
use moire_program::ir::Program;
use moire_program::limits::TEXT_BYTES;
use moire_program::text::{Format, decode, parse, print};
use moire_program::validate::validate;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const FORMATS: [Format; 3] = [Format::Native, Format::Dat3m, Format::MixedProxy];

/// Reads `text` in every format. A program must survive the rules, printing and reading. Returns the number of programs.
fn survive(text: &str) -> usize {
    let mut programs = 0;
    for format in FORMATS {
        match parse(text, format) {
            Ok(program) => {
                programs += 1;
                round_trip(&program, text);
                validate(&program);
                renamed(&program, text);
            }
            Err(error) => {
                assert!(error.0.line >= 1 && error.0.column >= 1, "{error:?}");
                assert!(!error.0.message.is_empty());
            }
        }
    }
    programs
}

/// Checks that the canonical text of a small program can be read and prints the same.
fn renamed(program: &Program, text: &str) {
    if program.threads.len() > 4 || program.threads.iter().map(|t| t.body.len()).sum::<usize>() > 64 {
        return;
    }
    let one = canonical(program);
    match parse(&one.text, Format::Native) {
        Ok(again) => assert_eq!(print(&again), one.text, "{text}"),
        Err(error) => panic!("{text}\nis in canonical form\n{}\nwhich is refused: {error}", one.text),
    }
}

fn round_trip(program: &Program, text: &str) {
    let printed = print(program);
    if printed.len() > TEXT_BYTES {
        return;
    }
    match parse(&printed, Format::Native) {
        Ok(again) => assert_eq!(&again, program, "{text}\nprints as\n{printed}"),
        Err(error) => panic!("{text}\nprints as\n{printed}\nwhich is refused: {error}"),
    }
}

fn below(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { below(&path, out) } else { out.push(path) }
    }
}

const DAT3M: [&str; 3] = [
    "PTX MP\n\"message passing\"\n{\nP0:r9=x;\nx=0; y @ generic aliases x; t @ texture aliases x;\nP1:r5=7;\n}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.acquire.gpu r0, f ;\n st.release.gpu f, 1 | LC00: ;\n fence.proxy.alias | ld.weak r1, y ;\n bar.cta.sync 0 | beq r1, 0, LC00 ;\nexists (P1:r0 == 1 /\\ P1:r1 != 1)\n",
    "PTX L\n{ x; }\n P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n atom.acquire.gpu.cas r0, x, 0, 1 | bar.cta.sync 1, r2, 2 ;\n add r2, r0, 1 | goto END ;\n red.relaxed.cta.add x, r2 | tld.weak r1, x ;\n | END: ;\nfilter (P0:r0 == 0)\n~exists (not (P0:r0 == 1 \\/ x == 3))\n",
    "ptx S\n{\n}\nP0@cta 0,gpu 0;\nld r0, 5;\nsust.weak s, r0;\nfence.sc.sys;\nforall (true)\n",
];

const MIXED: [&str; 2] = [
    ".global x;\n.global y virtually aliases x;\n.texref t physically aliases x;\nd0.b0.t0 { st.weak [x], 1; fence.proxy.texture.alias; tld.weak r0, [t] == 1; }\nd0.b1.t0 { atom.acq_rel.gpu.add r1, [y], 1; ld.volatile r2, [x]; }\npermit(r1 == 1 && (r2 == 1 || !(r0 == 0))) as one;\nassert([x] == 2) as two;\n",
    "// comment\n.shared s;\nd1.b0.t0 { ld.acquire.sys a, [s]; sured.relaxed.gpu.add [s], a; }\ncheck(true) as t;\n",
];

/// Texts of valid programs.
fn seeds() -> &'static [String] {
    static SEEDS: OnceLock<Vec<String>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let mut files = Vec::new();
        below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../litmus"), &mut files);
        let own = files.iter().filter(|f| f.extension().is_some_and(|e| e == "litmus"));
        let mut out: Vec<String> = own.map(|f| std::fs::read_to_string(f).unwrap()).collect();
        assert!(out.len() > 100);
        let mut tensor = Vec::new();
        below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), &mut tensor);
        tensor.retain(|f| f.extension().is_some_and(|e| e == "litmus"));
        assert!(tensor.len() >= 6);
        out.extend(tensor.iter().map(|f| std::fs::read_to_string(f).unwrap()));
        out.extend(DAT3M.iter().chain(&MIXED).map(|s| (*s).to_owned()));
        out
    })
}

#[test]
fn every_seed_is_a_program() {
    for seed in seeds() {
        assert!(survive(seed) > 0, "{seed}");
    }
}

const TOKENS: &[&str] = &[
    "moire",
    "\"n\"",
    ".global",
    ".shared",
    ".alias",
    ".texture",
    ".multimem",
    ".b8",
    ".b32",
    ".b64",
    "x",
    "y",
    "P0",
    "P1",
    "(",
    ")",
    "gpu 0",
    "cta 1",
    "host",
    "lane 3",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ":",
    "|",
    "@",
    "@!",
    "=",
    "==",
    "!=",
    "<",
    "+",
    "-",
    "-1",
    "0",
    "1",
    "0x7fffffffffffffff",
    "18446744073709551615",
    "99999999999999999999",
    ".reg",
    "r0",
    "r1",
    "_",
    "p",
    "%p",
    "$L",
    "ld",
    "ld.weak.u32",
    "ld.v2.u32",
    "st.release.gpu.b64",
    "st.weak.f16x2",
    "atom.cas.b32",
    "red.add.u32",
    "fence.sc.gpu",
    "fence.proxy.alias",
    "fence.proxy.generic",
    "bar.sync",
    "bar.arrive",
    "bar.instance7.sync",
    "bar.red.popc.u32",
    "bar.warp.sync",
    "barrier.cluster.arrive",
    "multimem.st.u32",
    ".tmem",
    "t[64]",
    "lane 32",
    "desc(x, 4)",
    "idesc(128, 64)",
    "tile(x, 4)",
    "tcgen05.ld",
    "tcgen05.mma.cta_group::1.kind::f16",
    ".x128",
    ".cta_group::2",
    "tcgen05.wait::ld.sync.aligned",
    "tcgen05.commit",
    "cp.async.bulk",
    ".mbarrier::complete_tx::bytes",
    "st.async",
    "fence.proxy.async::generic",
    "elect.sync",
    "wgmma.mma_async",
    "mov.u32",
    "add.s32",
    "setp.eq.u32",
    "selp.b32",
    "bra",
    "exit",
    "exists",
    "~exists",
    "forall",
    "filter",
    "as",
    "not",
    "true",
    "false",
    "/\\",
    "\\/",
    "&&",
    "||",
    "PTX",
    "t",
    "P0@cta 0,gpu 0",
    "aliases",
    "generic",
    "x @ texture aliases y",
    "beq",
    "goto",
    "LC",
    "locations",
    "d0.b0.t0",
    "st.weak",
    "permit",
    "assert",
    "physically",
    "virtually",
    "//",
    "/*",
    "*/",
    "(*",
    "*)",
    "<<",
    ">>",
    "#",
    "\n",
    "\u{e9}",
    "\u{2028}",
    "\0",
    "::",
    ".",
    "\"",
];

/// A change of a text at a place, given as a fraction of its length.
#[derive(Clone, Debug)]
enum Edit {
    Cut(f64, usize),
    Token(f64, usize),
    Byte(f64, u8),
    Splice(f64, usize, f64, usize),
    Twice(f64, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = 0.0..1.0f64;
    prop_oneof![
        (at.clone(), 1..30usize).prop_map(|(a, n)| Edit::Cut(a, n)),
        (at.clone(), 0..TOKENS.len()).prop_map(|(a, t)| Edit::Token(a, t)),
        (at.clone(), any::<u8>()).prop_map(|(a, b)| Edit::Byte(a, b)),
        (at.clone(), 0..10_000usize, at.clone(), 1..80usize)
            .prop_map(|(a, s, b, n)| Edit::Splice(a, s, b, n)),
        (at, 1..60usize).prop_map(|(a, n)| Edit::Twice(a, n)),
    ]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a place"
)]
fn place(text: &[u8], at: f64) -> usize {
    ((text.len() as f64 * at) as usize).min(text.len())
}

fn apply(text: &mut Vec<u8>, edit: &Edit) {
    match edit {
        Edit::Cut(at, n) => {
            let from = place(text, *at);
            let to = (from + n).min(text.len());
            text.drain(from..to);
        }
        Edit::Token(at, token) => {
            let at = place(text, *at);
            text.splice(at..at, TOKENS[*token].bytes());
        }
        Edit::Byte(at, byte) => {
            let at = place(text, *at);
            if let Some(b) = text.get_mut(at) {
                *b = *byte;
            }
        }
        Edit::Splice(at, seed, from, n) => {
            let other = seeds()[seed % seeds().len()].as_bytes();
            let from = place(other, *from);
            let part = &other[from..(from + n).min(other.len())];
            let at = place(text, *at);
            text.splice(at..at, part.iter().copied());
        }
        Edit::Twice(at, n) => {
            let from = place(text, *at);
            let part = text[from..(from + n).min(text.len())].to_vec();
            text.splice(from..from, part);
        }
    }
}

/// Sixteen times as many cases as `PROPTEST_CASES` says; 4096 by default.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases * 16, failure_persistence: None, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bytes(bytes in vec(any::<u8>(), 0..300)) {
        if let Ok(text) = decode(&bytes) {
            survive(text);
        }
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn words(words in vec((0..TOKENS.len(), any::<bool>()), 0..60), start in 0..5usize) {
        let starts = ["", "moire \"n\" .global .b32 x; ", "moire \"n\" .global .b32 x; P0 (gpu 0, cta 0) { ", "PTX t {x=0;} P0@cta 0,gpu 0; ", ".global x; d0.b0.t0 { "];
        let mut text = starts[start].to_owned();
        for (token, gap) in words {
            text.push_str(TOKENS[token]);
            text.push_str(if gap { " " } else { "" });
        }
        survive(&text);
    }

    #[test]
    fn changed_programs(seed in 0..10_000usize, edits in vec(edit(), 1..6)) {
        let mut text = seeds()[seed % seeds().len()].clone().into_bytes();
        for edit in &edits {
            apply(&mut text, edit);
        }
        survive(&String::from_utf8_lossy(&text));
    }

    #[test]
    fn changed_tensor_programs(seed in 0..10_000usize, edits in vec(edit(), 1..4)) {
        let own: Vec<&String> = seeds().iter().filter(|s| s.contains("// tensor")).collect();
        let mut text = own[seed % own.len()].clone().into_bytes();
        for edit in &edits {
            apply(&mut text, edit);
        }
        survive(&String::from_utf8_lossy(&text));
    }

    #[test]
    fn conditions(nots in 0..80usize, parens in 0..200usize, levels in 0..80usize) {
        let mut text = "moire \"c\" .global .b32 x; exists ".to_owned();
        text.push_str(&"~".repeat(nots));
        text.push_str(&"(".repeat(parens));
        for _ in 0..levels {
            text.push_str("[x] == 1 \\/ [x] == 2 /\\ (");
        }
        text.push_str("[x] == 3");
        text.push_str(&")".repeat(levels + parens));
        survive(&text);
    }
}

/// Texts at the size limit. If reading, printing or validation were quadratic, they would hardly end.
#[test]
fn large_texts() {
    let fill = |head: &str, piece: &dyn Fn(usize) -> String, tail: &str| {
        let mut text = head.to_owned();
        for i in 0.. {
            let piece = piece(i);
            if text.len() + piece.len() + tail.len() > TEXT_BYTES {
                break;
            }
            text.push_str(&piece);
        }
        text.push_str(tail);
        text
    };
    let body = "moire \"n\" .global .b32 x; P0 (gpu 0, cta 0) { ";
    let thread = |i: usize| match i % 4000 {
        0 => format!("}} T{i} (gpu 0, cta {i}) {{ "),
        n => format!("L{n}: ld.u32 r{n}, [x]; @r{n} bra L{}; ", n.max(2) - 1),
    };
    let texts = [
        fill(body, &|_| "exit;\n".to_owned(), "}"),
        fill(body, &|i| format!("l{i}:"), "}"),
        fill(body, &|i| format!("ld.u32 r{i}, [x];\n"), "}"),
        fill(body, &|_| "fence.sc.gpu;".to_owned(), "}"),
        fill(body, &thread, "}"),
        fill("moire \"n\" ", &|i| format!(".global .b8 x{i};"), ""),
        fill("moire \"n\" ", &|i| format!("P{i} (gpu 0, cta 0) {{ }} "), ""),
        fill("moire \"n\" .global .b32 x; ", &|_| "exists ([x] == 1) ".to_owned(), ""),
        fill("moire \"n\" .global .b32 x; exists ([x] == 1", &|_| " /\\ [x] == 1".to_owned(), ")"),
        fill("moire \"n\" exists ", &|_| "(".to_owned(), ""),
        fill("moire \"n\" exists ", &|_| "~".to_owned(), ""),
        fill("PTX t {} P0@cta 0,gpu 0; ", &|i| format!("st.weak x{i}, 1; "), "exists (true)"),
        fill("PTX t {} P0@cta 0,gpu 0; ", &|_| "beq r0, 1, L; ".to_owned(), "L: ; exists (true)"),
        fill("PTX t {} P0@cta 0,gpu 0 ", &|i| format!("| Q{i}@cta 0,gpu 0 "), "; exists (true)"),
        fill("PTX t {} P0@cta 0,gpu 0; exists (P0:a == 0", &|i| format!("/\\ P0:a{i} == 0"), ")"),
        fill("PTX t ", &|_| "(*".to_owned(), "{}"),
        fill(".global x; d0.b0.t0 { ", &|i| format!("ld.weak r{i}, [x] == 1; "), "}"),
        fill(".global x; d0.b0.t0 { ", &|_| "ld.weak r, [x] == 1; ".to_owned(), "}"),
        fill(".global x; ", &|i| format!(".global y{i} virtually aliases x; "), "d0.b0.t0 { }"),
    ];
    let mut programs = 0;
    for text in &texts {
        programs += survive(text);
    }
    assert!(programs < texts.len(), "some are over a limit");
    let mut within = String::from(body);
    for i in 0..2000 {
        write!(within, "L{i}: ld.relaxed.gpu.u32 r{i}, [x]; fence.sc.gpu; mov.u32 r{i}, r{}; ", i + 1)
            .unwrap();
    }
    within.push('}');
    assert_eq!(survive(&within), 1);
}
