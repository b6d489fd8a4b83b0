//! The command line as a person meets it: spellings, hints, files of every kind, and what a coordinator serves.

use crate::cli::moire;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const RACE: &str = "moire \"r\"\n.global .b32 x;\n.global .b32 y;\n\
    P0 (gpu 0, cta 0) {\n  st.relaxed.gpu.u32 [y], 1;\n  st.weak.u32 [x], 1;\n}\n\
    P1 (gpu 0, cta 1) {\n  ld.weak.u32 r0, [x];\n  ld.relaxed.gpu.u32 r1, [y];\n}\n";
const SB: &str = "moire \"sb\"\n.global .b32 x;\n.global .b32 y;\n\
    P0 (gpu 0, cta 0) { st.relaxed.gpu.u32 [x], 1; ld.relaxed.gpu.u32 r0, [y]; }\n\
    P1 (gpu 0, cta 1) { st.relaxed.gpu.u32 [y], 1; ld.relaxed.gpu.u32 r0, [x]; }\n\
    exists (P0:r0 == 0 /\\ P1:r0 == 0)\n";
const TILE: &str = "// written by a compiler\ncuda_tile.module @m {\n  entry @k(%x: tile<ptr<i32>>) {\n    \
    %one = constant <i32: 1> : tile<i32>\n    %t = store_ptr_tko weak %x, %one : tile<ptr<i32>>, tile<i32> -> token\n    return\n  }\n}\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Exit code, stdout, stderr.
fn said(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let out = moire(folder, args);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code().unwrap(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn a_model_is_spelled_one_way() {
    let here = folder(&[("sb.litmus", SB)]);
    let (code, out, err) = said(here.path(), &["check", "--model", "ptx:Q6=B,Q1=A", "sb.litmus"]);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, _) = said(here.path(), &["models", "show", "ptx:Q6=B"]);
    assert!(code == 0 && out.contains("Q6   = B"), "{out}");
    for (spec, hint) in
        [("ptx:Q6", "write NAME:SWITCH=VALUE"), (":Q6=B", "names no model"), ("ptx-9", "shipped are")]
    {
        let (code, _, err) = said(here.path(), &["check", "--model", spec, "sb.litmus"]);
        assert!(code == 2 && err.contains(hint), "{spec}: {err}");
    }
    // A path may hold a colon.
    std::fs::create_dir(here.path().join("a:b")).unwrap();
    std::fs::write(here.path().join("a:b/m.cat"), "include \"lib-ptx.cat\"\n").unwrap();
    let (_, _, err) = said(here.path(), &["models", "show", "a:b/m.cat"]);
    assert!(!err.contains("switch setting") && !err.contains("cannot read"), "{err}");
}

/// An array is its elements, as wide as the accesses that name it; what no access names is words.
#[test]
fn arrays_in_final_states_are_their_elements() {
    let text = "moire \"arrays\"\n.global .b32 x[3];\n.global .b64 y;\n.global .b32 z[20];\n.shared .b8 d[2];\n\
        P0 (gpu 0, cta 0) { st.weak.u32 [x+8], 7; st.weak.u64 [y], 4294967297; st.weak.u8 [d+1], 3; }\n";
    let here = folder(&[("arrays.litmus", text)]);
    let (_, out, _) = said(here.path(), &["check", "--states", "--model", "sc", "arrays.litmus"]);
    let zeros = vec!["0"; 16].join(", ");
    let wanted = format!("x = {{0, 0, 7}}, y = 4294967297, z = {{{zeros}, ..}}, P0:d = {{0, 3}}");
    assert!(out.contains(&wanted), "{out}");
}

#[test]
fn final_states_are_listed_by_model() {
    let here = folder(&[("sb.litmus", SB)]);
    let (code, out, err) = said(here.path(), &["check", "--states", "sb.litmus"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("sb.litmus: 4 final states\n"), "{out}");
    let both_zero = out.lines().find(|l| l.ends_with("P0:r0 = 0, P1:r0 = 0")).unwrap();
    let columns: Vec<&str> = both_zero.split("   P0").next().unwrap().split_whitespace().collect();
    // ptx, sc, ptx-6.0, ptx-7.5: sequential consistency forbids it.
    assert_eq!(columns, ["1", "-", "1", "1"], "{out}");
    let (_, out, _) =
        said(here.path(), &["check", "--states", "--model", "sc", "--format", "json", "sb.litmus"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["models"][0], "sc");
    let states = object["states"].as_array().unwrap();
    let allowed = states.iter().filter(|s| s["executions"]["sc"] != 0).count();
    assert_eq!((states.len(), allowed), (4, 3), "{out}");
    let (code, out, _) = said(here.path(), &["check", "--states", "--limit", "1", "sb.litmus"]);
    assert!(code == 11 && out.contains("ptx does not answer: bounded("), "{out}");
}

#[test]
fn files_are_known_by_what_they_hold() {
    let here = folder(&[("k.tile", TILE), ("k.mlir", TILE), ("k.txt", TILE), ("r.litmus", RACE)]);
    for file in ["k.tile", "k.mlir", "k.txt"] {
        let (code, out, err) = said(here.path(), &["check", "--grid", "1", file]);
        assert!(code == 0 && out.starts_with(&format!("{file}: clean\n")), "{file}: {out}{err}");
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_moire"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(RACE.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.code() == Some(10) && text.starts_with("<stdin>: race"), "{text}");
}

#[test]
fn a_limit_names_the_option_that_raises_it() {
    let here = folder(&[("sb.litmus", SB)]);
    let (code, out, _) = said(here.path(), &["check", "--limit", "1", "sb.litmus"]);
    assert!(code == 11 && out.contains("  --limit N raises this limit\n"), "{out}");
}

#[test]
fn a_race_of_ones_own_is_made_smaller() {
    let here = folder(&[("r.litmus", RACE)]);
    let (code, out, err) = said(here.path(), &["minimize", "r.litmus"]);
    assert_eq!(code, 10, "{err}");
    assert!(err.contains("kept: race under ptx") && !out.contains("relaxed"), "{out}{err}");
    std::fs::write(here.path().join("small.litmus"), &out).unwrap();
    assert_eq!(said(here.path(), &["check", "small.litmus"]).0, 10, "{out}");
    let (code, _, err) = said(here.path(), &["minimize", "--keep", "verdict", "--model", "sc", "r.litmus"]);
    assert!(code == 2 && err.contains("nothing to keep"), "{err}");
}

/// A hang at a barrier or an mbarrier is not reduced to a loop that spins on nothing.
#[test]
fn a_hang_that_is_made_smaller_keeps_what_it_waits_for() {
    let body = "mbarrier.init.shared::cta.b64 [b], 2; mbarrier.arrive.shared::cta.b64 s, [b];\n\
        W: mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; @!p bra W;";
    let text = format!("moire \"h\"\n.shared .b64 b;\nP0 (gpu 0, cta 0) {{ {body} }}\n");
    let here = folder(&[("mbarrier.litmus", &text)]);
    let (code, out, err) = said(here.path(), &["minimize", "mbarrier.litmus"]);
    assert!(code == 10 && err.contains("kept: at an mbarrier, hang under ptx"), "{err}");
    assert!(out.contains("mbarrier.try_wait"), "{out}");
    let text = "moire \"h\"\nP0 (gpu 0, cta 0) { bar.sync 0, 64; }\nP1 (gpu 0, cta 0) { exit; }\n";
    std::fs::write(here.path().join("barrier.litmus"), text).unwrap();
    let (code, out, err) = said(here.path(), &["minimize", "barrier.litmus"]);
    assert!(code == 10 && out.contains("bar.sync 0, 64"), "{out}{err}");
}

/// A module loses the lines that its race does not need, and keeps the size of its CTAs.
#[test]
fn a_module_is_reduced_to_what_is_wrong_with_it() {
    let text = include_str!("../../../../corpus/ptx/data-swap-early.ptx");
    let here = folder(&[("k.ptx", text), ("clean.ptx", include_str!("../../../../corpus/ptx/late-met.ptx"))]);
    let (code, out, err) = said(here.path(), &["minimize", "k.ptx"]);
    assert_eq!(code, 10, "{err}");
    assert!(err.contains("kept: race of the same instructions") && err.contains("nothing smaller"), "{err}");
    assert!(3 * out.lines().count() < 2 * text.lines().count(), "{out}");
    std::fs::write(here.path().join("least.ptx"), &out).unwrap();
    let instructions = |file: &str| -> Vec<String> {
        let (_, said, _) = said(here.path(), &["check", file]);
        let quoted = said.lines().filter_map(|l| l.split_once(" | ")).map(|(_, code)| code.trim().to_owned());
        quoted.take(2).collect()
    };
    assert_eq!(instructions("least.ptx"), instructions("k.ptx"), "{out}");
    let (code, _, err) = said(here.path(), &["minimize", "--limit", "3", "k.ptx"]);
    assert!(code == 11 && err.contains("--limit raises it"), "{code} {err}");
    let (code, _, err) = said(here.path(), &["minimize", "clean.ptx"]);
    assert!(code == 2 && err.contains("there is nothing to keep"), "{code} {err}");
    std::fs::write(here.path().join("typo.ptx"), text.replace("st.shared.u32", "st.sharde.u32")).unwrap();
    let (code, _, err) = said(here.path(), &["minimize", "typo.ptx"]);
    assert!(code == 2 && err.contains("typo.ptx:") && err.contains("st.sharde"), "{code} {err}");
    let (code, _, err) = said(here.path(), &["replay", "k.ptx"]);
    assert!(code == 2 && err.contains("`moire check k.ptx`"), "{code} {err}");
}

/// Who waits, at which line, for what, and who is not there.
#[test]
fn a_hang_names_line_value_and_who_is_absent() {
    let spin = "moire \"s\"\n.global .b32 f;\nP0 (gpu 0, cta 0) {\nL: ld.relaxed.gpu.u32 r0, [f];\nsetp.ne.u32 p, r0, 1;\n\
        @p bra L;\n}\nP1 (gpu 0, cta 1) { st.relaxed.gpu.u32 [f], 2; }\n";
    let here = folder(&[("spin.litmus", spin)]);
    let (_, out, _) = said(here.path(), &["check", "spin.litmus"]);
    let says = "P0 waits at line 4 for another value of `ld.relaxed.gpu.u32 r0, [f]`, which reads 2 for ever";
    assert!(out.contains(says), "{out}");
    let text = "moire \"h\"\nP0 (gpu 0, cta 0) { bar.sync 0, 64; }\nP1 (gpu 0, cta 0) { exit; }\n";
    std::fs::write(here.path().join("barrier.litmus"), text).unwrap();
    let (_, out, _) = said(here.path(), &["check", "barrier.litmus"]);
    assert!(out.contains("P0 waits at line 2 for the barrier `bar.sync 0, 64` (P1 has ended)"), "{out}");
    let (_, out, _) = said(here.path(), &["check", "--format", "json", "barrier.litmus"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    let waits = &object["parts"][0]["hang"]["waits"];
    assert_eq!(waits[0]["thread"], "P0", "{out}");
    assert_eq!(waits[0]["absent"], serde_json::json!(["P1 has ended"]), "{out}");
    let text = include_str!("../../../../corpus/litmus/bugs/fa-2761-buggy.litmus");
    std::fs::write(here.path().join("product.litmus"), text).unwrap();
    let (_, out, _) = said(here.path(), &["check", "product.litmus"]);
    assert!(out.contains("missing: 1 more arrival in phase 0 of mbarrier [m:s_full]"), "{out}");
}

/// What is to do where no edit is offered.
#[test]
fn a_broken_rule_without_advice_says_what_it_asks_for() {
    let text = include_str!("../../../../corpus/litmus/bugs/tirx-6-buggy.litmus");
    let here = folder(&[("twice.litmus", text)]);
    let (_, out, _) = said(here.path(), &["check", "twice.litmus"]);
    assert!(out.contains("missing: Initialise once, by one thread"), "{out}");
}

/// The words of the model stay in JSON; people read what happens.
#[test]
fn an_answer_has_no_words_of_the_engines() {
    let here = folder(&[("r.litmus", RACE)]);
    let (_, out, _) = said(here.path(), &["check", "r.litmus"]);
    for word in ["uniform-race", "dead end", "blocked", "checks"] {
        assert!(!out.contains(word), "{word}: {out}");
    }
    let (_, json, _) = said(here.path(), &["check", "--format", "json", "r.litmus"]);
    assert!(json.contains("\"kind\":\"uniform-race\"") && json.contains("\"dead_ends\":"), "{json}");
}

/// A value that is passed and orders nothing: what is missing at which end. Where nothing is missing at either end, no guess.
#[test]
fn a_race_says_where_the_chain_breaks() {
    let text = |write: &str, read: &str| {
        format!(
            "moire \"c\"\n.global .b32 x;\n.global .b32 f;\nP0 (gpu 0, cta 0) {{\n  st.weak.u32 [x], 1;\n  st.{write}.u32 [f], 1;\n}}\n\
             P1 (gpu 0, cta 1) {{\n  ld.{read}.u32 r0, [f];\n  setp.ne.u32 p, r0, 1;\n  @p exit;\n  ld.weak.u32 r1, [x];\n}}\n"
        )
    };
    let here = folder(&[]);
    let out = |write: &str, read: &str| {
        std::fs::write(here.path().join("c.litmus"), text(write, read)).unwrap();
        said(here.path(), &["check", "c.litmus"]).1
    };
    let neither = out("relaxed.gpu", "relaxed.gpu");
    let chain = "line 9 reads what line 6 wrote, and that orders nothing else: ";
    assert!(
        neither.contains(&format!("{chain}the write does not release, and the read does not acquire")),
        "{neither}"
    );
    let half = out("release.gpu", "relaxed.gpu");
    assert!(half.contains(&format!("{chain}the write releases, but the read does not acquire")), "{half}");
    let scopes = out("release.cta", "acquire.cta");
    assert!(scopes.contains("c.litmus: race") && !scopes.contains(chain), "{scopes}");
}

/// The page stands alone: lanes, the racing pair, instructions with lines, and a list for narrow screens.
#[test]
fn an_execution_is_a_page() {
    let here = folder(&[("r.litmus", RACE)]);
    said(here.path(), &["check", "--witness", "out", "r.litmus"]);
    let read = |form: &str| std::fs::read_to_string(here.path().join(format!("out/r.race.{form}"))).unwrap();
    let (page, svg) = (read("html"), read("svg"));
    assert!(page.starts_with("<!doctype html>") && page.contains("name=\"viewport\""), "{page}");
    assert_eq!(page.matches("class=\"event bad\"").count(), 2, "{page}");
    assert_eq!(page.matches("<li class=\"bad\"><b>").count(), 2, "{page}");
    assert!(svg.starts_with("<svg") && page.contains("st.weak"), "{page}");
    assert!(!page.contains("src=") && !page.contains("href="), "{page}");
    assert!(read("dot").starts_with("digraph"));
}

/// A file of another language gets the command that makes it one that is read.
#[test]
fn a_file_that_is_no_program_says_what_to_do() {
    let files = [
        ("k.cu", "__global__ void k(int* p) { *p = 1; }\n", "`nvcc -ptx -lineinfo` writes"),
        ("k.cubin", "\u{7f}ELF\u{2}\u{1}", "machine code: `nvcc -ptx`"),
        ("k.py", "import triton\n", "`moire record`"),
        ("k.txt", "hello\n", "starts with `moire \"name\"`"),
    ];
    let here = folder(&[]);
    for (file, text, hint) in files {
        std::fs::write(here.path().join(file), text).unwrap();
        let (code, _, err) = said(here.path(), &["check", file]);
        assert!(code == 2 && err.contains(hint), "{file}: {err}");
    }
}

/// A misspelt object is no address; what many threads share is said once.
#[test]
fn a_name_that_nothing_writes_is_said_once() {
    let store = |n: usize| format!("P{n} (gpu 0, cta {n}) {{ st.relaxed.gpu.u32 [dta], r0; }}\n");
    let text = format!("moire \"m\"\n.global .b32 data;\n{}", (0..3).map(store).collect::<String>());
    let here = folder(&[("m.litmus", &text)]);
    let (_, _, err) = said(here.path(), &["check", "m.litmus"]);
    assert_eq!(err.matches("nothing writes `r0`: it is 0 (and in 2 other threads)").count(), 1, "{err}");
    assert_eq!(err.matches("nothing writes").count(), 2, "{err}");
    assert!(err.contains("did you mean the object `data`?"), "{err}");
}

#[test]
fn a_coordinator_that_is_not_there_is_named_once() {
    let here = folder(&[]);
    let (_, _, err) = said(here.path(), &["campaign", "list", "--coordinator", "127.0.0.1:1"]);
    assert!(err.contains("`moire serve` starts one"), "{err}");
    assert_eq!(err.matches("127.0.0.1:1").count(), 1, "{err}");
}

#[test]
fn marking_says_all_that_is_missing() {
    let here = folder(&[]);
    let mark = |more: &[&str]| {
        let args = [&["findings", "mark", "00000000", "suppress", "--until", "14d"], more].concat();
        let mut command = Command::new(env!("CARGO_BIN_EXE_moire"));
        command.args(args).current_dir(here.path());
        ["USER", "LOGNAME", "USERNAME"].iter().for_each(|name| _ = command.env_remove(name));
        String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned()
    };
    assert!(mark(&[]).contains("add --why TEXT and --who NAME"), "{}", mark(&[]));
    assert!(mark(&["--why", "known"]).contains("add --who NAME"));
    assert!(mark(&["--why", "known", "--who", "me"]).contains("--coordinator"));
}

#[test]
fn manual_pages_are_written() {
    let here = folder(&[]);
    let (code, out, err) = said(here.path(), &["man", "pages"]);
    assert_eq!((code, out.as_str()), (0, "pages/moire.1\n"), "{err}");
    let page = std::fs::read_to_string(here.path().join("pages/moire-check.1")).unwrap();
    assert!(page.contains("states"), "{page}");
    let (_, script, _) = said(here.path(), &["completions", "bash"]);
    assert!(script.contains("ptx-7.5"), "completion scripts know the models");
}

/// A coordinator with pages, and the addresses of both.
struct Server(Child, String, String);

impl Server {
    fn start(folder: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_moire"))
            .args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--store", "s"])
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let address = |line: String| {
            let rest = line.split("127.0.0.1:").nth(1).unwrap().to_owned();
            format!("127.0.0.1:{}", rest.split(|c: char| !c.is_ascii_digit()).next().unwrap())
        };
        let serving = address(lines.find(|l| l.starts_with("serving ")).unwrap());
        let pages = address(lines.find(|l| l.contains("pages on http://")).unwrap());
        Server(child, serving, pages)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_coordinator_reports_and_answers_what_is_not_there() {
    let here = folder(&[]);
    let (code, out, err) = said(
        here.path(),
        &["fuzz", "--stream", "core", "--programs", "600", "--workers", "2", "--store", "s"],
    );
    assert!(code == 0 && out.contains(" between models\n"), "{out}{err}");
    let server = Server::start(here.path());
    let (code, out, err) = said(here.path(), &["report", "--out", "r", "--coordinator", &server.1]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("report.html"), "{out}");
    let page = std::fs::read_to_string(here.path().join("r/findings.jsonl")).unwrap();
    let list = said(here.path(), &["findings", "list", "--coordinator", &server.1]).1;
    assert!(!list.is_empty() && page.contains(&list[..8]), "{list}");
    let mut stream = TcpStream::connect(&server.2).unwrap();
    stream.write_all(b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("/findings"), "{answer}");
}

/// A campaign whose time is over is paused: a coordinator of its store does not take it up unasked, and the same command
/// goes on with it.
#[test]
fn a_campaign_that_was_left_waits_to_be_asked() {
    let here = folder(&[]);
    let args = ["fuzz", "--for", "1s", "--workers", "1", "--store", "s", "--oracle", "self"];
    let (code, out, err) = said(here.path(), &args);
    assert!(matches!(code, 0 | 11), "{out}{err}");
    let open = ["are open", "no program was judged"].iter().any(|words| out.contains(words));
    assert_eq!(code == 11, open, "{out}");
    {
        let server = Server::start(here.path());
        let list = said(here.path(), &["campaign", "list", "--coordinator", &server.1]).1;
        assert!(list.contains("Paused"), "{list}");
    }
    assert_eq!(said(here.path(), &["report", "--store", "s", "--out", "page"]).0, 0);
    let summary = std::fs::read_to_string(here.path().join("page/summary.md")).unwrap();
    assert!(summary.contains("| not at its end |"), "{summary}");
    // How much is done in a second depends on the machine; that it is the same campaign does not.
    let (code, again, err) = said(here.path(), &args);
    assert!(matches!(code, 0 | 11), "{again}{err}");
    assert_eq!(
        again.lines().next().unwrap().split(':').next(),
        out.lines().next().unwrap().split(':').next()
    );
}

/// The first command of a newcomer draws from every language, and says what was covered.
#[test]
fn a_run_that_names_no_stream_has_all_languages() {
    let here = folder(&[]);
    let args = ["fuzz", "--programs", "20", "--workers", "2", "--store", "s"];
    // With compilers at hand it may find something.
    let (code, out, err) = said(here.path(), &args);
    assert!(matches!(code, 0 | 10), "{out}{err}");
    let compilers = out.contains("campaign fuzz-source-1-");
    for stream in ["core", "tensor", "protocol", "kernel", "blocks", "tile-ir"] {
        assert!(out.contains(&format!("campaign fuzz-{stream}-1-")), "{stream}: {out}");
    }
    let all: Vec<&str> = out.split("in all:\n").nth(1).unwrap().lines().collect();
    assert_eq!(all.len(), if compilers { 7 } else { 6 }, "{out}");
    let core = if compilers { 3 } else { 5 };
    assert!(all[0].starts_with(&format!("  core     {core} programs, ")), "{out}");
    assert!(!out.contains("model-pair difference"), "{out}");
    assert_eq!(said(here.path(), &["report", "--store", "s", "--out", "page"]).0, 0);
    let summary = std::fs::read_to_string(here.path().join("page/summary.md")).unwrap();
    assert!(summary.contains("fuzz-core-1-") && !summary.contains("not at its end"), "{summary}");
}

#[test]
fn the_caret_is_below_the_bad_word() {
    let here = folder(&[(
        "t.litmus",
        "moire \"t\"\n.global .b32 x;\nP0 (gpu 0, cta 0) {\n  st.weaj.u32 [x], 1;\n}\n",
    )]);
    let (code, _, err) = said(here.path(), &["check", "t.litmus"]);
    assert!(code == 2 && err.contains("t.litmus:4:5: "), "{err}");
    assert!(err.contains("\n4 |   st.weaj.u32 [x], 1;\n  |     ^^^^^\n"), "{err}");
}

/// The ring of the corpus with so many rounds, and the watcher's arrival left out if `lapped`.
fn rounds(number: u32, lapped: bool) -> String {
    let text = include_str!("../../../../corpus/litmus/loops/ring.litmus");
    let text = text.replace("repeat K", &format!("repeat {number}"));
    let (rest, watcher) = text.split_once("watcher").unwrap();
    let arrival = "    mbarrier.arrive.release.cta.shared::cta.b64 _, [empty];\n";
    format!("{rest}watcher{}", if lapped { watcher.replace(arrival, "") } else { watcher.to_owned() })
}

#[test]
fn two_engines_are_asked_and_it_is_said_who_answers() {
    let few = rounds(3, false);
    let (many, wrong) = (rounds(300, false), rounds(300, true));
    let here = folder(&[("few.litmus", &few), ("many.litmus", &many), ("wrong.litmus", &wrong)]);
    let (code, out, _) = said(here.path(), &["check", "few.litmus"]);
    assert!(code == 0 && out.contains("; the operational engine agrees\n"), "{out}");
    let (code, out, err) = said(here.path(), &["check", "many.litmus"]);
    assert!(code == 0 && out.contains("  answered by the operational engine, in "), "{out}{err}");
    assert!(out.contains("one run stands for all") && out.contains("keeps polling"), "{out}");
    let (code, out, err) = said(here.path(), &["check", "wrong.litmus", "--explain-time", "0s"]);
    assert!(code == 10 && out.contains("wrong.litmus: hang\n"), "{out}{err}");
    let twice = "moire \"twice\"\nP0 (gpu 0, cta 0, warp 0) { bar.arrive 1, 2; bar.sync 0; bar.sync 1; }\n\
        P1 (gpu 0, cta 0, warp 1) { bar.sync 1, 2; bar.sync 0; bar.sync 1; }\n";
    std::fs::write(here.path().join("twice.litmus"), twice).unwrap();
    let (code, out, err) = said(here.path(), &["check", "twice.litmus"]);
    assert!(code == 11 && out.contains("operational engine: clean"), "a named abstention stays: {out}{err}");
    let (_, json, _) = said(here.path(), &["check", "many.litmus", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let part = &json["parts"][0];
    assert_eq!((&part["second"]["answered"], &part["verdicts"][0]), (&"operational".into(), &"clean".into()));
}

#[test]
fn verdicts_are_coloured_where_that_is_asked() {
    let here = folder(&[("r.litmus", RACE)]);
    let out = said(here.path(), &["--color", "always", "check", "r.litmus"]).1;
    assert!(out.starts_with("r.litmus: \u{1b}[1;31mrace\u{1b}[0m\n"), "{out}");
    let out = said(here.path(), &["check", "r.litmus"]).1;
    assert!(out.starts_with("r.litmus: race\n"), "a pipe has no colours: {out}");
}

#[test]
fn a_program_expects_answers_itself_or_beside_it() {
    let here = tempfile::tempdir().unwrap();
    let program = "moire \"x\"\n.global .b32 x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; }\n";
    let put = |name: &str, text: &str| std::fs::write(here.path().join(name), text).unwrap();
    put("own.litmus", &format!("{program}// expect: ptx 1 0 clean\n// expect: sc 1 0 clean\n"));
    put("none.litmus", program);
    put("beside.litmus", program);
    put("beside.expected", "model executions blocked verdicts\nptx 1 0 race\n");
    let (code, out, err) = said(here.path(), &["test", "."]);
    assert_eq!(code, 10, "{out}{err}");
    assert!(out.contains("2 passed, 1 failed, 1 skipped") && out.contains("expected ptx 1 0 race"), "{out}");
}

#[test]
fn published_verdicts_of_a_verifier_are_compared() {
    let here = folder(&[
        ("good.mlir", TILE),
        ("bad.mlir", "cuda_tile.module @m {\n  entry @k() {\n    what\n  }\n}\n"),
        (
            "expected.csv",
            "file,model,property,expected\ngood.mlir,v,verify,ACCEPT\nbad.mlir,v,verify,\"REJECT: what, indeed\"\n",
        ),
    ]);
    let (code, out, err) = said(here.path(), &["test", "."]);
    assert!(code == 0 && out.contains("2 passed, 0 failed, 0 skipped"), "{out}{err}");
}
