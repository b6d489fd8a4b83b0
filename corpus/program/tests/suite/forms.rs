//! Compares instruction forms of tensor cores and asynchronous copies with the assembler's answers, target by target.
//!
//! `data/targets.csv`: version of the assembler, the targets that accept the form joined by `+` (`-`: none), the form.
//! Each form was put into a kernel with registers of every class (`r` 32 bit, `d` 64, `h` 16, `f` floating, `p`
//! predicates, `o` 128; `g ad bd sd zd` 64, `t tA tB tS idesc cols` 32), shared memory `buf`, `mb` and `slot`,
//! `.version 9.5`, and given to `ptxas -arch TARGET` for seven targets. The published probes are read if they are beside
//! the checkout.

use moire_program::text::{Diagnostic, Format, Severity, parse, print};
use moire_program::validate::{Target, notation, rule, targets, validate};
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) const ANSWERS: &str = include_str!("../data/targets.csv");

/// Fixes the widths of registers that the kernel of the answers declares.
const PROLOGUE: &str = "mov.u64 g, 0; mov.u64 sd, 0; mov.u32 r3, 1; setp.eq.u32 p, 0, 0; mov.u32 t, 0; \
                        mov.u32 idesc, 0; mov.b16 h0, 3;";

pub(crate) fn kernel(line: &str) -> String {
    format!(
        "moire \"k\"\n.shared .b8 buf[4096];\n.shared .b64 mb;\n.shared .b32 slot;\nP0 (gpu 0, cta 0) {{\n{PROLOGUE}\n{};\n}}\n",
        line.trim_end_matches(';')
    )
}

/// The targets for which we accept the form, or the rule that refuses it. A register with two widths counts as refused,
/// because the assembler refuses it; here it is only a lint.
fn ours(line: &str) -> Result<Vec<Target>, Option<&'static str>> {
    let program = parse(&kernel(line), Format::Native).map_err(|_| None)?;
    let again = parse(&print(&program), Format::Native).unwrap_or_else(|e| panic!("{line}: {e}"));
    assert_eq!(again, program, "{line}");
    let wrong = |d: &Diagnostic| d.severity == Severity::Error || d.rule == Some("register-width");
    match validate(&program).iter().find(|d| wrong(d)) {
        Some(d) => Err(d.rule),
        None => Ok(targets(&program)),
    }
}

/// Whether a form is a notation of our own, which the assembler does not have.
fn notated(line: &str) -> bool {
    let program = parse(&kernel(line), Format::Native);
    program.is_ok_and(|p| p.threads[0].body.iter().any(|i| notation(&i.op).is_some()))
}

/// Forms that are not compared, in order:
///
/// - the assembler crashes on it,
/// - the assembler accepts it without documentation,
/// - the assembler recognises the predicate by the declaration of the register,
/// - the assembler accepts a negative number of groups.
fn left_out(line: &str) -> bool {
    (line.starts_with("cp.async.c") && line.contains("L2::cache_hint"))
        || (line.starts_with("fence.proxy") && line.contains(".acq_rel"))
        || line == "cp.async.cg.shared.global [r2], [g], 16, p"
        || line == "cp.async.wait_group -1"
}

#[test]
fn the_rules_agree_with_the_assembler_on_each_target() {
    let (mut wrong, mut rules) = (Vec::new(), BTreeMap::<&str, usize>::new());
    let mut compared = [0, 0];
    for row in ANSWERS.lines().skip(1) {
        let [version, answer, line] = row.splitn(3, ',').collect::<Vec<_>>()[..] else {
            panic!("a row has three columns: {row}")
        };
        assert_eq!(version, "13.5.37", "{row}");
        if notated(line) || left_out(line) {
            continue;
        }
        let expected: Vec<String> =
            answer.split('+').filter(|t| *t != "-").map(|t| format!("sm_{t}")).collect();
        let found = ours(line);
        if let Err(Some(id)) = found {
            *rules.entry(id).or_default() += 1;
        }
        let found: Vec<&str> = found.unwrap_or_default().into_iter().map(Target::name).collect();
        compared[usize::from(!expected.is_empty())] += 1;
        if found != expected {
            wrong.push(format!("{row}\n    ours: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
    println!("{} refused, {} accepted somewhere", compared[0], compared[1]);
    assert!(compared[0] > 1500 && compared[1] > 900, "{compared:?}");
    // The book refuses most forms; what is beyond one instruction, or has no type in a text, is left to the rules.
    for id in ["cta-group", "register-width", "target"] {
        assert!(rules.contains_key(id) && rule(id).is_some(), "no recorded answer concerns {id}");
    }
}

/// The reason why a published probe is not compared, if it is not.
fn foreign(line: &str) -> Option<&'static str> {
    let layouts = ["layout::", "phase_type::", "pending_count", "check_layout"];
    if line.starts_with("mbarrier") && layouts.iter().any(|w| line.contains(w)) {
        return Some("layout v1, conditional phases and pending counts are not read");
    }
    if line.contains("proxy::readonly") || line.contains(".nc.") {
        return Some("read-only loads are not read");
    }
    (notated(line)).then_some("a notation of ours")
}

#[test]
fn the_published_probes_agree() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec/examples-ptx/probe-results.txt");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: ../shared/spec/examples-ptx is not beside this checkout");
        return;
    };
    let mut all: Vec<&str> = Vec::new();
    // Form, targets asked, targets that accept it.
    let mut rows: Vec<(&str, Vec<&str>, Vec<&str>)> = Vec::new();
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
    let (mut wrong, mut compared, mut skipped) = (Vec::new(), 0, BTreeMap::<&str, usize>::new());
    for (form, asked, expected) in &rows {
        if let Some(why) = foreign(form) {
            *skipped.entry(why).or_default() += 1;
            continue;
        }
        let found: Vec<&str> = ours(form)
            .unwrap_or_default()
            .into_iter()
            .map(Target::name)
            .filter(|t| asked.contains(t))
            .collect();
        compared += 1;
        if found != *expected {
            wrong.push(format!("{form}\n    assembler: {expected:?}\n    ours: {found:?}"));
        }
    }
    println!("{} probes, {compared} compared, not compared: {skipped:?}", rows.len());
    assert!(wrong.is_empty(), "{} of {compared} probes differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 250, "{compared} probes compared");
}
