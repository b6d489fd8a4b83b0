//! `worker/models/TRACE.md`: from every rule, table and example of two sections of the PTX ISA (9.7.16.5 issue
//! granularity, 9.7.16.6 memory consistency of tcgen05, in both published wordings) to the definitions that state it
//! and to programs with their verdicts. `BLESS=1` writes the document; the same test compares it.
//!
//! The rows are in this file, in our own words. Verdicts come from the expectation beside each program, which the tests
//! of `moire-lab` check. The tests fail for an empty cell, a name that no model defines, a missing program, and a
//! switch of tcgen05 without a row.

use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Model, Variants};
use moire_program::text::expectations;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A row: section, kind of text, the rule in our words, definitions, programs.
struct Row(&'static str, Kind, &'static str, &'static str, &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Rule,
    Table,
    Example,
    Wording,
}

use Kind::{Example, Rule, Table, Wording};

const ROWS: &[Row] = &[
    Row(
        "9.7.16.5",
        Table,
        "mma, cp, shift and commit are issued by one thread: each thread that runs one issues a whole operation; elect.sync chooses",
        "TC_ISSUE TC_COMMIT",
        "tcgen05/elected, tcgen05/over-commit",
    ),
    Row(
        "9.7.16.5",
        Table,
        "ld, st and their waits are issued by a whole warp, each warp for its own lanes",
        "TC_ACCESS TC_WAIT",
        "tcgen05/st-other-lanes, tcgen05/wrong-lanes, tcgen05/elected",
    ),
    Row(
        "9.7.16.5",
        Table,
        "the fences are issued by each thread and order its own operations",
        "TC_BEFORE TC_AFTER",
        "tcgen05/mma-relay, tcgen05/elected",
    ),
    Row(
        "9.7.16.5",
        Table,
        "alloc, dealloc and relinquish of a pair are issued by a warp in each CTA; whether the last two wait is TQ18",
        "TC_GET TC_PUT TC_REL tc-taken",
        "tcgen05/pair-dealloc, tcgen05/pair-dealloc-crosswise, tcgen05/pair-relinquish-crosswise, tcgen05/pair-alloc-alone",
    ),
    Row(
        "9.7.16.5",
        Table,
        "a warp without election issues as often as it has lanes; some lanes of a warp do not do what the whole warp must",
        "TC_ISSUE TC_COMMIT",
        "tcgen05/warp-issues, tcgen05/lanes-load",
    ),
    Row(
        "9.7.16.5",
        Rule,
        "with cta_group::2 one thread issues for both CTAs, and the other one is active: has started (TQ29) and not exited",
        "reaches unstarted lifetime-exited",
        "tcgen05/pair-mma, tcgen05/launch-pair, tcgen05/launch-pair-not-started, tcgen05/launch-pair-exits",
    ),
    Row(
        "9.7.16.5",
        Rule,
        "whether the issuing thread may exit before is TQ24",
        "pending EXIT",
        "tcgen05/launch-exit-pending",
    ),
    Row(
        "9.7.16.6.1",
        Table,
        "synchronous: alloc, dealloc and relinquish, with fences (TQ6) and behind asynchronous operations (TQ26)",
        "tc-enter-bare tc-waited lifetime-freed",
        "tcgen05/alloc, tcgen05/dealloc-no-wait, tcgen05/dealloc-mma, tcgen05/dealloc-mma-commit",
    ),
    Row(
        "9.7.16.6",
        Rule,
        "whether an mma accesses the cells that its mask of lanes leaves out is TQ21",
        "tc-conflict TC_ACCESS",
        "tcgen05/mma-mask",
    ),
    Row(
        "9.7.16.6.1",
        Rule,
        "whether columns may be given back in parts is TQ23",
        "TC_PUT tc-freed",
        "tcgen05/dealloc-parts, tcgen05/dealloc-count",
    ),
    Row(
        "9.7.16.6.2",
        Wording,
        "when two accumulators are the same is TQ2; whether a pipeline spans the CTAs of a pair is TQ19",
        "tc-accumulator tc-issued-near",
        "tcgen05/mma-mma-base, tcgen05/mma-mma-cell, tcgen05/pair-pipeline, tcgen05/pair-pipeline-no-before",
    ),
    Row(
        "9.7.16.6",
        Rule,
        "conflicting accesses to tensor memory are races unless the rules below order them; none of them is strong",
        "tcause tc-conflict tensor-race",
        "tcgen05/st-ld, tcgen05/st-wait-ld, tcgen05/st-other-lanes",
    ),
    Row(
        "9.7.16.6",
        Rule,
        "the usual synchronisation applies as well; whether it orders completed operations without the fences of tcgen05 is TQ7",
        "tc-released base-causality",
        "tcgen05/ld-mma-threads-release, tcgen05/mma-acquire-no-after",
    ),
    Row(
        "9.7.16.6.1",
        Table,
        "synchronous: waits; later operations of the thread come after them",
        "tcause TC_WAIT",
        "tcgen05/st-wait-mma, tcgen05/ld-wait-st",
    ),
    Row(
        "9.7.16.6.1",
        Table,
        "synchronous: the fences, which bear order on both sides",
        "tc-leave tc-enter TC_BEFORE TC_AFTER",
        "tcgen05/cp-mma-threads, tcgen05/cp-mma-threads-no-before, tcgen05/cp-mma-threads-no-after",
    ),
    Row(
        "9.7.16.6.1",
        Table,
        "synchronous: commit is issued in program order, its arrival comes later",
        "TC_COMMIT TC_ARRIVE issue",
        "tcgen05/commit-publishes, tcgen05/over-commit, tcgen05/unordered-init",
    ),
    Row(
        "9.7.16.6.1",
        Table,
        "asynchronous: mma, issued in program order, its accesses later",
        "TC_ISSUE TC_TENSOR issue",
        "tcgen05/mma-no-commit, tcgen05/mma-st",
    ),
    Row("9.7.16.6.1", Table, "asynchronous: cp", "TC_ISSUE TC_TENSOR", "tcgen05/cp-cp, tcgen05/cp-commit"),
    Row(
        "9.7.16.6.1",
        Table,
        "asynchronous: shift",
        "TC_ISSUE TC_TENSOR",
        "tcgen05/shift-shift, tcgen05/shift-commit",
    ),
    Row("9.7.16.6.1", Table, "asynchronous: ld", "TC_ISSUE TC_ACCESS", "tcgen05/ld-st, tcgen05/ld-wait-st"),
    Row("9.7.16.6.1", Table, "asynchronous: st", "TC_ISSUE TC_ACCESS", "tcgen05/st-st, tcgen05/st-ld"),
    Row(
        "9.7.16.6.2",
        Rule,
        "asynchronous operations of a thread are unordered unless their pair pipelines",
        "tc-pairs tc-pipelined",
        "tcgen05/mma-cp, tcgen05/st-mma, tcgen05/mma-st, tcgen05/st-st",
    ),
    Row(
        "9.7.16.6.2",
        Table,
        "pipelined: mma then mma, same accumulator, shape and kind",
        "tc-pipe tc-pairs",
        "tcgen05/mma-mma, tcgen05/mma-mma-shapes",
    ),
    Row(
        "9.7.16.6.2",
        Wording,
        "the newer wording demands the same kind, the older does not: TQ1",
        "tc-pipe tc-same-kind tc-pairs",
        "tcgen05/mma-mma-kinds",
    ),
    Row("9.7.16.6.2", Table, "pipelined: cp then mma", "tc-pipe", "tcgen05/cp-mma"),
    Row(
        "9.7.16.6.2",
        Wording,
        "the older wording names the copy of that pair by a mnemonic that does not exist; it is cp",
        "tc-pipe",
        "tcgen05/cp-mma, tcgen05/cp-mma-threads",
    ),
    Row("9.7.16.6.2", Table, "pipelined: shift then mma", "tc-pipe", "tcgen05/shift-mma"),
    Row(
        "9.7.16.6.2",
        Table,
        "pipelined: shift then cp.4x256b, no other copy",
        "tc-pipe",
        "tcgen05/shift-cp, tcgen05/shift-cp-wide",
    ),
    Row("9.7.16.6.2", Table, "pipelined: mma then shift", "tc-pipe", "tcgen05/mma-shift"),
    Row(
        "9.7.16.6.2",
        Table,
        "in no row: mma then cp, cp then cp, cp then shift, shift then shift; shipped kernels rely on some: TQ11",
        "tc-first-out tc-pairs",
        "tcgen05/mma-cp, tcgen05/cp-cp, tcgen05/cp-shift, tcgen05/shift-shift",
    ),
    Row(
        "9.7.16.6.2",
        Table,
        "implicitly pipelined: mma, cp, shift then commit of the same thread",
        "tc-tracked TC_COMMIT",
        "tcgen05/mma-mma, tcgen05/cp-commit, tcgen05/shift-commit, tcgen05/commit-other-thread",
    ),
    Row(
        "9.7.16.6.2",
        Table,
        "implicitly pipelined: ld then wait::ld",
        "tc-tracked TC_WAIT",
        "tcgen05/ld-wait-st, tcgen05/wait-other-kind",
    ),
    Row(
        "9.7.16.6.2",
        Table,
        "implicitly pipelined: st then wait::st",
        "tc-tracked TC_WAIT",
        "tcgen05/st-wait-ld, tcgen05/wait-all",
    ),
    Row(
        "9.7.16.6.2",
        Rule,
        "mma, cp and shift are complete for others when a commit's arrival was waited for",
        "tc-tracked tc-mbar-edge",
        "tcgen05/mma-ld-threads, tcgen05/mma-no-commit, tcgen05/wrong-parity, tcgen05/never",
    ),
    Row(
        "9.7.16.6.2",
        Rule,
        "ld and st are complete when their wait has returned; a wait is for all earlier ones of its kind",
        "tc-tracked",
        "tcgen05/wait-all, tcgen05/wait-other-kind, tcgen05/ld-mma-threads-no-wait",
    ),
    Row(
        "9.7.16.6.3",
        Rule,
        "fence::before_thread_sync keeps earlier asynchronous operations before what orders execution behind it",
        "tc-leave tc-issued",
        "tcgen05/cp-mma-threads-no-before, tcgen05/fence-bar-none",
    ),
    Row(
        "9.7.16.6.3",
        Rule,
        "fence::after_thread_sync keeps later asynchronous operations behind what orders execution before it",
        "tc-enter tc-issued",
        "tcgen05/cp-mma-threads-no-after, tcgen05/mma-no-after",
    ),
    Row(
        "9.7.16.6.3",
        Rule,
        "mbarriers order execution, even if their operations are relaxed; across scopes it is TQ15",
        "tc-mbar-edge tc-edge",
        "tcgen05/cp-mma-threads, tcgen05/relay-narrow-scope",
    ),
    Row(
        "9.7.16.6.3",
        Rule,
        "... by CTA barriers",
        "syncbar tc-edge",
        "tcgen05/fence-bar, tcgen05/ld-mma-threads-bar",
    ),
    Row(
        "9.7.16.6.3",
        Rule,
        "... by cluster barriers, relaxed ones too",
        "sync_cluster tc-edge",
        "tcgen05/fence-cluster",
    ),
    Row("9.7.16.6.3", Rule, "... by warp barriers or not: TQ14", "tc-warp-edge", "tcgen05/warp-sync"),
    Row(
        "9.7.16.6.3",
        Rule,
        "... by loads, stores and atomics that are morally strong, and by no others",
        "observed tc-edge",
        "tcgen05/fence-flag, tcgen05/fence-flag-weak",
    ),
    Row(
        "9.7.16.6.3",
        Rule,
        "operations ordered across threads by fences pipeline as in one thread",
        "tc-accesses-issued tc-path",
        "tcgen05/cp-mma-threads, tcgen05/fence-bar",
    ),
    Row(
        "9.7.16.6.3",
        Rule,
        "a commit implies a fence::before_thread_sync; how far it reaches is TQ10",
        "tc-commit-leave tc-wait-commit",
        "tcgen05/mma-ld-threads, tcgen05/ld-commit-threads",
    ),
    Row(
        "9.7.16.6.4",
        Rule,
        "four patterns are announced and five are shown; each row below is one of the five",
        "tcause",
        "tcgen05/mma-mma, tcgen05/st-wait-ld, tcgen05/cp-mma-threads, tcgen05/ld-mma-threads, tcgen05/register-dependency",
    ),
    Row(
        "9.7.16.6.4.1",
        Example,
        "pattern 1: two products into one accumulator in one thread",
        "tc-pipelined",
        "tcgen05/mma-mma",
    ),
    Row(
        "9.7.16.6.4.1",
        Wording,
        "the text beside that example leaves the kind out, in both wordings",
        "tc-same-kind",
        "tcgen05/mma-mma-kinds, tcgen05/mma-mma",
    ),
    Row(
        "9.7.16.6.4.2",
        Example,
        "pattern 2, first sample: st, wait::st, ld, wait::ld",
        "tc-tracked",
        "tcgen05/st-wait-ld, tcgen05/st-ld",
    ),
    Row(
        "9.7.16.6.4.2",
        Example,
        "pattern 2, second sample: mma, commit, wait for the mbarrier, fence::after_thread_sync, ld",
        "tc-tracked tc-mbar-edge tc-enter",
        "tcgen05/mma-mma, tcgen05/mma-no-after",
    ),
    Row(
        "9.7.16.6.4.2",
        Example,
        "pattern 2, third sample: mma, fence::before_thread_sync, arrival; no commit, so the arrival waits for nothing",
        "tc-leave tc-tracked",
        "tcgen05/mma-arrive-sample",
    ),
    Row(
        "9.7.16.6.4.3",
        Example,
        "pattern 3: cp, fence, relaxed arrival; relaxed wait, fence, mma in another thread",
        "tc-issued tc-pipelined",
        "tcgen05/cp-mma-threads, tcgen05/cp-mma-threads-no-before, tcgen05/cp-mma-threads-no-after",
    ),
    Row(
        "9.7.16.6.4.4",
        Example,
        "pattern 4, first sample: ld, wait::ld, fence, arrival; wait, fence, mma. Without the fence before: TQ5",
        "tc-wait-out tc-wait-out-bare tc-enter",
        "tcgen05/ld-mma-threads, tcgen05/ld-mma-threads-no-wait, tcgen05/ld-mma-threads-no-before, tcgen05/ld-mma-threads-no-after",
    ),
    Row(
        "9.7.16.6.4.4",
        Example,
        "pattern 4, second sample: mma, commit; wait, fence, ld in another thread. Whether the commit publishes more: TQ9",
        "tc-tracked commit-releases",
        "tcgen05/mma-ld-threads, tcgen05/commit-publishes",
    ),
    Row(
        "9.7.16.6.4.4",
        Rule,
        "a commit completes by itself; whether a later one of the same thread arrives after it is TQ33",
        "commit-order tc-tracked",
        "tcgen05/commit-commit",
    ),
    Row(
        "9.7.16.6.4.4",
        Wording,
        "the older wording numbers both samples 1",
        "tc-wait-out tc-tracked",
        "tcgen05/ld-mma-threads, tcgen05/mma-ld-threads",
    ),
    Row(
        "9.7.16.6.4.4",
        Example,
        "composed sample: a third thread waits for the first mbarrier and arrives at a second",
        "tc-relay tc-onward",
        "tcgen05/mma-relay, tcgen05/relay-narrow-scope",
    ),
    Row(
        "9.7.16.6.4.4",
        Wording,
        "the older wording has an ellipsis in the composed sample: nothing there orders anything",
        "tc-relay",
        "tcgen05/mma-relay",
    ),
    Row(
        "9.7.16.6.4.5",
        Example,
        "pattern 5: an instruction that uses a register of a load gets the loaded value without a wait",
        "tc-conflict",
        "tcgen05/register-dependency",
    ),
    Row(
        "9.7.16.6.4.5",
        Rule,
        "... and that dependency orders no access: writing the cells again needs wait::ld",
        "tc-conflict tcause",
        "tcgen05/register-dependency-orders-nothing, tcgen05/ld-st",
    ),
    Row(
        "9.7.16.6.5",
        Rule,
        "mma and cp read shared memory through the async proxy: generic writes before them need a proxy fence",
        "TC_SHARED preserved",
        "tcgen05/shared-proxy-fence, tcgen05/shared-no-proxy-fence, tcgen05/cp-proxy-fence, tcgen05/cp-no-proxy-fence",
    ),
    Row(
        "9.7.16.6.5",
        Rule,
        "those bytes are free again when the operation is complete; whether a proxy fence is wanted then is TQ16",
        "completed-reads",
        "tcgen05/shared-write-after, tcgen05/shared-write-early",
    ),
    Row(
        "9.7.16.6.5",
        Rule,
        "bytes that a bulk copy brought are in the async proxy already: its completion suffices, and covers that copy only (TQ31)",
        "copy-tracked out-of-access copy-steps",
        "copies/load-mma, copies/load-mma-no-wait, copies/load-cumulative",
    ),
    Row(
        "9.7.16.6.5",
        Rule,
        "an operand in another CTA: the place of the proxy fence for its generic writer is TQ17",
        "near-operand far-fenced",
        "copies/remote-operand, copies/remote-operand-far-fence, copies/remote-operand-cluster",
    ),
    Row(
        "9.7.16.6.5",
        Rule,
        "the word that an allocation writes is generic too; whether a copy over it needs a proxy fence is TQ32",
        "slot-over slot-after",
        "tcgen05/alloc-under-copy",
    ),
    Row(
        "9.7.16.6.5",
        Rule,
        "mbarriers are generic; whether an asynchronous arrival reaches one through the async proxy is TQ27",
        "init-known mbar-asynchronous",
        "copies/init-proxy, copies/init-proxy-fence",
    ),
    Row(
        "9.7.16.6.2",
        Rule,
        "a pipeline orders all accesses of the first before all of the second; a weaker meaning of the word is TQ3",
        "tc-through",
        "tcgen05/cp-mma-relay-st, tcgen05/cp-mma-threads",
    ),
    Row(
        "9.7.16.6.3",
        Rule,
        "fences order asynchronous instructions before and after them: the order of issue, or of what they do: TQ4",
        "tc-literal",
        "tcgen05/mma-fences-ld, tcgen05/mma-ld-threads",
    ),
    Row(
        "9.7.16.6.1",
        Rule,
        "commit is in the table of synchronous instructions and an asynchronous one on its page: TQ8",
        "tc-before-commit",
        "tcgen05/commit-relay, tcgen05/commit-publishes",
    ),
    Row(
        "9.7.16.6.1",
        Rule,
        "loads and stores of one warp are unordered without a wait; whether they belong to the warp or the lane is TQ12, TQ13",
        "tc-warp-order",
        "tcgen05/ld-st, tcgen05/ld-wait-st",
    ),
    Row(
        "9.7.16.6.2",
        Rule,
        "products of different threads to different cells need no order, unless collector buffers are meant too: TQ22",
        "tc-collected",
        "tcgen05/mma-threads-collector, tcgen05/mma-mma",
    ),
    Row(
        "9.7.16.6.4.2",
        Example,
        "the third sample, without a commit, read as if its arrival were one: TQ28",
        "tc-arrival-waits",
        "tcgen05/mma-fences-ld, tcgen05/mma-no-commit",
    ),
    Row(
        "9.7.16.6.4.5",
        Example,
        "reading the registers of a load does not complete it; practice assumes that it does: TQ30",
        "tc-used",
        "tcgen05/ld-use-mma-threads, tcgen05/ld-half-use-mma-threads",
    ),
];

/// Parts of the sections that have no row yet, each with the reason.
const OPEN: &[(&str, &str)] = &[(
    "9.7.16.5: what 32 products of one warp do to each other",
    "a warp without election is a broken rule by itself; its operation is taken as one, with as many arrivals",
)];

fn litmus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus/litmus").join(name)
}

/// Reads the verdicts of a program under `ptx` from the expectation beside it.
fn verdicts(program: &str) -> String {
    let path = litmus(&format!("{program}.litmus"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let line =
        expectations(&text).find(|l| l.starts_with("ptx ")).unwrap_or_else(|| panic!("{program}: no answer"));
    line.split(' ').nth(3).unwrap_or_else(|| panic!("{program}: no verdict")).to_owned()
}

fn document() -> String {
    let mut out = String::from(
        "# tcgen05: from the text to definitions to programs\n\nEvery rule, table row and example of the PTX ISA on issue \
         granularity (9.2: 9.7.16.5) and on memory consistency of tcgen05\n(9.2: 9.7.16.6; 9.4: 9.7.18.6), in our own \
         words; *wording* marks what the two published wordings say differently. Definitions\nare names of the cat files, \
         base sets and relations of the engine, or checks; behind each program of `corpus/litmus` stands what it is\n\
         judged under `ptx`. `TQn` are switches of `lib-tcgen05.cat`. `BLESS=1 cargo test -p moire-worker --test suite trace` \
         writes this file, the same test compares it.\n\n| section | what | in our words | definitions | programs |\n\
         |---|---|---|---|---|\n",
    );
    for Row(section, kind, what, definitions, programs) in ROWS {
        let kind = format!("{kind:?}").to_lowercase();
        let definitions: Vec<String> = definitions.split(' ').map(|d| format!("`{d}`")).collect();
        let programs: Vec<String> =
            programs.split(", ").map(|p| format!("{p}: {}", verdicts(p).replace(',', " "))).collect();
        let _ = writeln!(
            out,
            "| {section} | {kind} | {what} | {} | {} |",
            definitions.join(" "),
            programs.join(", ")
        );
    }
    if !OPEN.is_empty() {
        out.push_str("\n## Without a row\n\n");
        for (what, why) in OPEN {
            let _ = writeln!(out, "- {what}: {why}.");
        }
    }
    out
}

#[test]
fn the_document_matches_rows_and_expectations() {
    let text = document();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/TRACE.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("the document can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "{} is out of date; BLESS=1 writes:\n{text}", path.display());
}

#[test]
fn every_row_names_existing_definitions_and_programs() {
    let models: Vec<Model> = moire_models::names()
        .map(|n| moire_models::load(n, &Variants::new()).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    let texts: String = moire_models::FILES.iter().map(|(_, text)| *text).collect();
    let base: BTreeSet<&str> = sets::ALL.iter().chain(rels::ALL).map(|(name, _)| *name).collect();
    for Row(section, _, what, definitions, programs) in ROWS {
        for cell in [section, what, definitions, programs] {
            assert!(!cell.trim().is_empty(), "{section}: an empty cell");
        }
        for name in definitions.split(' ') {
            let known = base.contains(name)
                || texts.contains(&format!("let {name} "))
                || models.iter().any(|m| m.checks().iter().any(|c| c.name == name));
            assert!(known, "{section}: no model defines `{name}`");
        }
        for name in programs.split(", ") {
            assert!(litmus(&format!("{name}.litmus")).is_file(), "{section}: no program {name}");
        }
    }
}

/// Rules have both programs that keep them and programs that break them; one kind alone would prove little.
#[test]
fn programs_keep_and_break_the_rules() {
    let programs: BTreeSet<&str> = ROWS.iter().flat_map(|r| r.4.split(", ")).collect();
    let clean = programs.iter().filter(|p| verdicts(p) == "clean").count();
    assert!(clean > 15 && programs.len() - clean > 20, "{clean} of {} clean", programs.len());
    for kind in [Rule, Table, Example, Wording] {
        assert!(ROWS.iter().filter(|r| r.1 == kind).count() >= 5, "{kind:?}");
    }
}

#[test]
fn every_section_and_every_switch_has_a_row() {
    let wanted = [
        "9.7.16.5",
        "9.7.16.6.1",
        "9.7.16.6.2",
        "9.7.16.6.3",
        "9.7.16.6.4.1",
        "9.7.16.6.4.2",
        "9.7.16.6.4.3",
        "9.7.16.6.4.4",
        "9.7.16.6.4.5",
        "9.7.16.6.5",
    ];
    for section in wanted {
        assert!(ROWS.iter().any(|r| r.0 == section), "{section} has no row");
    }
    let ptx = moire_models::load("ptx", &Variants::new()).unwrap_or_else(|e| panic!("{e}"));
    for switch in ptx.switches().iter().filter(|s| s.name.starts_with("TQ")) {
        let word = |r: &Row| r.2.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == switch.name);
        assert!(ROWS.iter().any(word), "{} has no row", switch.name);
    }
}
