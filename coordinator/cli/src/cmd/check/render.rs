//! One answer for people, or as one JSON object.

use crate::show;
use moire_cat::Model;
use moire_console::input::{Rejected, Source};
use moire_console::{exit, output};
use moire_coordinator::many;
use moire_execution::leaf::{ColumnStall, End, Stall, Witness};
use moire_explore::Bound;
use moire_explore::judge::{Judgement, Verdict};
use moire_explore::reduce::Cut;
use moire_explore::search::{Estimate, Sample};
use moire_program::ir::{Program, Quantifier};
use moire_verdict::answer::{Answer, Contest, Judged, Part};
use moire_verdict::kernel::{Taken, quoted};
use moire_verdict::stale::Stale;
use moire_verdict::verdicts::words;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Verdict and witnesses to stdout, or to stderr beside a patch; errors and advice of the static rules to stderr.
pub(super) fn text(answer: &Answer<'_>, beside_patch: bool) {
    match answer {
        Answer::Unread(_, error) => eprintln!("{error:#}"),
        Answer::Rejected(errors) => errors.iter().for_each(|e| eprintln!("{e}")),
        Answer::Judged(judged) => {
            judged.advice.iter().for_each(|a| eprintln!("{a}"));
            let words = judged.words().join(", ");
            if beside_patch {
                eprint!("{}: {words}\n{}", judged.title(), body(judged));
            } else {
                print!("{}: ", judged.title());
                let worst = exit::worst(judged.verdicts().iter().map(Verdict::exit_code));
                output::verdicts(worst, &words);
                print!("\n{}", body(judged));
            }
        }
    }
}

/// Everything below the verdicts.
fn body(judged: &Judged<'_>) -> String {
    let mut out = below(judged);
    for part in &judged.parts {
        out += &part.notes.text(&part.source, &part.judgement);
    }
    for contest in &judged.contested {
        out += &format!("  contested({}): {}\n", contest.setting, contest.verdicts.join(", "));
    }
    for part in &judged.parts {
        out += &executions(&part.source.program, &part.judgement);
    }
    out
}

/// The scope of the verdicts: executions, conditions and hangs, launch, and the parts of a clean kernel that did not run.
fn below(judged: &Judged<'_>) -> String {
    let verdicts = judged.verdicts();
    let mut out = String::new();
    let options: BTreeSet<&str> = verdicts.iter().filter_map(raised_by).collect();
    options.iter().for_each(|option| out += &format!("  {option} raises this limit\n"));
    let explored = judged.proof.as_ref().is_none_or(|p| p.is_explored());
    for (n, part) in judged.parts.iter().enumerate().filter(|_| explored) {
        out += &verdict(&part.source, judged.part_title(n), judged.model, &part.judgement);
        out.extend(part.sample.iter().map(|s| format!("  {}\n", sampled(s))));
    }
    out.extend(judged.proof.iter().map(|p| p.text(&quoted(&judged.name), &judged.options)));
    out.extend(judged.taken.iter().map(|t| format!("  taken for granted: line {}: {}\n", t.line, t.text)));
    if let Some(launch) = &judged.launch {
        out += &launch.text(&judged.options);
        if judged.verdicts().iter().all(|v| v.exit_code() != exit::FINDING) {
            out += &launch.uncovered();
        }
    }
    out
}

/// The option that raises the limit of a verdict.
fn raised_by(verdict: &Verdict) -> Option<&'static str> {
    let Verdict::Bounded(reason) = verdict else { return None };
    match Bound::ALL.into_iter().find(|bound| bound.to_string() == *reason)? {
        Bound::Loop => Some("--loop-bound N"),
        Bound::Leaves => Some("--limit N"),
        _ => None,
    }
}

/// A line for each answer, and how often each verdict is there.
pub(super) fn table(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (verdicts, name) in rows {
        out += &format!("{verdicts:width$}  {name}\n");
        *counts.entry(verdicts).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(verdicts, n)| format!("{n} {verdicts}")).collect();
    out + &format!("{}: {}\n", many(rows.len(), "answer"), counts.join("; "))
}

/// One line of JSON.
pub(super) fn json(answer: &Answer<'_>) {
    let object = match answer {
        Answer::Unread(file, error) => {
            json!({"version": 1, "file": file, "verdicts": ["rejected"], "remarks": [{"message": format!("{error:#}")}]})
        }
        Answer::Rejected(errors) => {
            let file = errors.first().map(|e| e.file.as_str());
            json!({"version": 1, "file": file, "verdicts": ["rejected"], "remarks": errors.iter().map(remark).collect::<Vec<_>>()})
        }
        Answer::Judged(judged) => object(judged),
    };
    println!("{object}");
}

fn remark(r: &Rejected) -> Value {
    let d = &r.diagnostic;
    json!({"severity": r.word(), "rule": d.rule, "line": d.line, "column": d.column, "message": d.message, "hint": d.hint})
}

fn quantified(q: Quantifier) -> &'static str {
    match q {
        Quantifier::Exists => "exists",
        Quantifier::NotExists => "~exists",
        Quantifier::ForAll => "forall",
    }
}

fn verdict(source: &Source, title: Option<String>, model: &Model, judgement: &Judgement) -> String {
    let program = &source.program;
    let s = &judgement.summary;
    let title = title.map_or(String::new(), |title| format!("{title}, {}: ", words(judgement).join(", ")));
    let mut out = format!(
        "  {title}{}: {}, {} blocked, {}, {}{}\n",
        model.name(),
        many(s.complete, "execution"),
        s.blocked,
        many(s.dead_ends, "dead end"),
        many(s.checks, "check"),
        left_out(s.cut)
    );
    let incomplete = judgement.verdicts.iter().any(|v| v.exit_code() == exit::INCOMPLETE);
    for condition in &judgement.conditions {
        let name = if condition.name.is_empty() { String::new() } else { format!(" {}", condition.name) };
        let holds = match condition.holds {
            // What was not seen may still be there.
            _ if incomplete && condition.witness.is_none() => "is not decided",
            true => "holds",
            false => "does not hold",
        };
        out.push_str(&format!("  {}{name} {holds}\n", quantified(condition.quantifier)));
        if let Some(witness) = &condition.witness {
            out.push_str(&show::table(program, witness));
        }
    }
    if let Some((ends, _)) = &judgement.hang {
        out.push_str(&format!("  hang: {}\n", hang(program, ends, judgement)));
    }
    out
}

/// The executions that reductions left out, if any.
fn left_out(cut: Cut) -> String {
    let named = [(cut.threads, "symmetric threads"), (cut.unseen, "accesses that no condition observes")];
    let some: Vec<String> =
        named.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} for {what}")).collect();
    if some.is_empty() { String::new() } else { format!("; parts left out: {}", some.join(", ")) }
}

/// The executions that random descents saw, and an estimate of how many there are.
fn sampled(sample: &Sample) -> String {
    let Estimate { mean, error } = sample.executions;
    format!(
        "{} random descents, {} lost, {} different executions of about {mean:.3e} (standard error {error:.1e}), \
         {} communications",
        sample.descents, sample.lost, sample.different, sample.communications
    )
}

/// The executions that show what is wrong, each once.
fn executions(program: &Program, judgement: &Judgement) -> String {
    let hang = judgement.hang.iter().map(|(_, w)| ("hang", w));
    let race = judgement.race.iter().map(|(flag, w)| (flag.as_str(), w));
    let broken = judgement.broken.iter().map(|(flag, w)| (flag.as_str(), w));
    let mut shown: Vec<(Vec<&str>, &Witness)> = Vec::new();
    for (flag, witness) in hang.chain(race).chain(broken) {
        match shown.iter_mut().find(|s| s.1 == witness) {
            Some((flags, _)) => flags.push(flag),
            None => shown.push((vec![flag], witness)),
        }
    }
    let one = |(flags, witness): (Vec<&str>, &Witness)| {
        format!("  {}, in this execution:\n{}", flags.join(", "), show::table(program, witness))
    };
    shown.into_iter().map(one).collect()
}

/// The threads that wait, and what each waits for.
pub(super) fn hang(program: &Program, ends: &[End], judgement: &Judgement) -> String {
    let one = |(t, end): (usize, &End)| {
        let name = &program.threads[t].name;
        if let Some(stall) = judgement.stalls.iter().find(|s| s.thread == t) {
            return Some(format!("{name} waits for {}", lacking(program, stall)));
        }
        if let Some(stall) = judgement.column_stalls.iter().find(|s| s.thread == t) {
            return Some(format!("{name} (line {}) waits for {}", stall.line, columns(stall)));
        }
        match end {
            End::Done => None,
            End::Barrier(i) => {
                Some(format!("{name} waits at a barrier (event {i}) for arrivals that never come"))
            }
            End::Spin(i) => Some(format!("{name} spins (after event {i}) on values that never change")),
        }
    };
    ends.iter().enumerate().filter_map(one).collect::<Vec<_>>().join("; ")
}

/// An allocation of tensor memory that never succeeds.
fn columns(stall: &ColumnStall) -> String {
    let ColumnStall { columns, taken, alone, .. } = stall;
    if *alone {
        "the other CTA of the pair, which never comes".to_owned()
    } else {
        format!("{columns} columns of tensor memory, while {taken} are taken and never given back")
    }
}

/// An mbarrier whose phase no arrival completes.
fn lacking(program: &Program, stall: &Stall) -> String {
    let owner = stall.owner.map_or(String::new(), |t| format!("{}:", program.threads[t.index()].name));
    let offset = if stall.offset == 0 { String::new() } else { format!("+{}", stall.offset) };
    let name = format!("[{owner}{}{offset}]", program.objects[stall.object.index()].name);
    if stall.valid {
        let Stall { phase, pending, tx, .. } = stall;
        format!("mbarrier {name}, phase {phase}: pending count {pending}, tx-count {tx}")
    } else {
        format!("{name}, which is no valid mbarrier")
    }
}

fn graph(program: &Program, witness: &Witness) -> Value {
    let events: Vec<Value> = witness
        .events
        .iter()
        .enumerate()
        .map(|(i, e)| {
            let thread = program.threads.get(e.event.thread as usize).map(|t| t.name.as_str());
            json!({"id": i, "thread": thread, "index": e.event.index, "line": e.line, "label": e.kind, "location": e.location, "value": e.value})
        })
        .collect();
    let edges: Vec<Value> =
        witness.edges.iter().map(|(k, a, b)| json!({"kind": k, "from": a, "to": b})).collect();
    json!({"events": events, "edges": edges})
}

/// The answer as JSON. Lists hold those of all parts, counts their sums; a hang and a race are the first there is.
fn object(judged: &Judged<'_>) -> Value {
    let parts: Vec<Value> = judged.parts.iter().map(explored).collect();
    let list = |key: &str| -> Vec<Value> {
        parts.iter().filter_map(|p| p[key].as_array()).flatten().cloned().collect()
    };
    let first = |key: &str| parts.iter().map(|p| &p[key]).find(|v| !v.is_null()).cloned();
    let own = judged.parts.iter().filter(|p| p.launch.is_none());
    let total = own.map(|p| p.judgement.summary).reduce(|a, b| a.plus(&b)).unwrap_or_default();
    let contest = |c: &Contest| json!({"setting": c.setting, "verdicts": c.verdicts});
    let mut object = json!({
        "version": 1,
        "file": judged.name,
        "model": judged.model.name(),
        "variants": judged.model.variants(),
        "verdicts": judged.words(),
        "remarks": judged.advice.iter().map(remark).collect::<Vec<_>>(),
        "conditions": list("conditions"),
        "hang": first("hang"),
        "race": first("race"),
        "broken": list("broken"),
        "executions": total.complete,
        "blocked": total.blocked,
        "dead_ends": total.dead_ends,
        "checks": total.checks,
        "cut": {"threads": total.cut.threads, "unseen": total.cut.unseen},
        "contested": judged.contested.iter().map(contest).collect::<Vec<_>>(),
        "findings": list("findings"),
        "advice": parts.iter().map(|p| &p["advice"]).filter(|a| !a.is_null()).collect::<Vec<_>>(),
        "redundant": parts.iter().map(|p| &p["redundant"]).filter(|r| !r.is_null()).collect::<Vec<_>>(),
        "profile": first("profile"),
        "stale": list("stale"),
    });
    if let Some(proof) = &judged.proof {
        object["operational"] = proof.json(&quoted(&judged.name), &judged.options);
    }
    if let Some(Taken { line, text }) = &judged.taken {
        object["taken"] = json!([{"line": line, "text": text}]);
    }
    if let Some(launch) = &judged.launch {
        object["launch"] = launch.json(&judged.options);
        object["coverage"] = launch.coverage();
    }
    if parts.len() > 1 {
        object["parts"] = parts
            .iter()
            .map(|p| json!({"verdicts": p["verdicts"], "profile": p["profile"], "launch": p["launch"]}))
            .collect();
    }
    if let Some(descents) = first("descents") {
        object["descents"] = descents;
    }
    object
}

/// What is known of one program, as JSON.
fn explored(part: &Part) -> Value {
    let Part { source, judgement, notes, sample, launch } = part;
    let program = &source.program;
    let conditions: Vec<Value> = judgement
        .conditions
        .iter()
        .map(|c| {
            let witness = c.witness.as_ref().map(|w| graph(program, w));
            json!({"name": c.name, "quantifier": quantified(c.quantifier), "reachable": c.reachable, "holds": c.holds, "witness": witness})
        })
        .collect();
    let broken: Vec<Value> = judgement
        .broken
        .iter()
        .map(|(flag, w)| json!({"kind": flag, "witness": graph(program, w)}))
        .collect();
    let (findings, profile) = notes.json(source, judgement);
    let descents = sample.as_ref().map(|s| {
        json!({
            "made": s.descents, "lost": s.lost, "different": s.different,
            "communications": s.communications,
            "estimate": s.executions.mean, "standard_error": s.executions.error,
        })
    });
    let (advice, redundant) = notes.mended_json(source);
    json!({
        "verdicts": words(judgement),
        "launch": launch,
        "advice": advice,
        "redundant": redundant,
        "conditions": conditions,
        "hang": judgement.hang.as_ref().map(|(ends, w)| json!({"who": hang(program, ends, judgement), "witness": graph(program, w)})),
        "race": judgement.race.as_ref().map(|(flag, w)| json!({"kind": flag, "witness": graph(program, w)})),
        "broken": broken,
        "findings": findings,
        "profile": profile,
        "descents": descents,
        "stale": notes.stale.iter().map(Stale::json).collect::<Vec<_>>(),
    })
}
