//! One answer for people, or as one JSON object.

use super::answer::{Answer, Contest};
use super::verdicts::words;
use crate::show;
use moire_cat::Model;
use moire_console::exit;
use moire_console::input::{Rejected, Source};
use moire_coordinator::many;
use moire_execution::leaf::{ColumnStall, End, Stall, Witness};
use moire_explore::judge::Judgement;
use moire_explore::reduce::Cut;
use moire_explore::search::{Estimate, Sample};
use moire_program::ir::{Program, Quantifier};
use serde_json::{Value, json};

/// Verdict and witnesses to stdout; errors and advice to stderr.
pub(super) fn text(answer: &Answer<'_>) {
    match answer {
        Answer::Unread(_, error) => eprintln!("{error:#}"),
        Answer::Rejected(errors) => errors.iter().for_each(|e| eprintln!("{e}")),
        Answer::Judged { source, model, advice, judgement, contested, notes, sample } => {
            advice.iter().for_each(|a| eprintln!("{a}"));
            print!("{}", verdict(source, model, judgement));
            sample.iter().for_each(|s| println!("  {}", sampled(s)));
            print!("{}", notes.text(source, judgement));
            for contest in contested {
                println!("  contested by {}: {}", contest.setting, contest.verdicts.join(", "));
            }
            print!("{}", executions(&source.program, judgement));
        }
    }
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
        Answer::Judged { source, model, advice, judgement, contested, notes, sample } => {
            let mut object = object(source, model, judgement, advice);
            let one = |c: &Contest| json!({"setting": c.setting, "verdicts": c.verdicts});
            object["contested"] = contested.iter().map(one).collect();
            notes.json(&source.program, judgement, &mut object);
            if let Some(s) = sample {
                object["descents"] = json!({
                    "made": s.descents, "lost": s.lost, "different": s.different,
                    "communications": s.communications,
                    "estimate": s.executions.mean, "standard_error": s.executions.error,
                });
            }
            object
        }
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

fn verdict(source: &Source, model: &Model, judgement: &Judgement) -> String {
    let program = &source.program;
    let s = &judgement.summary;
    let mut out = format!("{}: {}\n", source.name, words(judgement).join(", "));
    out.push_str(&format!(
        "  {}: {}, {} blocked, {}, {}{}\n",
        model.name(),
        many(s.complete, "execution"),
        s.blocked,
        many(s.dead_ends, "dead end"),
        many(s.checks, "check"),
        left_out(s.cut)
    ));
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

/// An allocator of tensor memory that lets nobody on.
fn columns(stall: &ColumnStall) -> String {
    let ColumnStall { columns, taken, alone, .. } = stall;
    if *alone {
        "the other CTA of the pair, which never comes".to_owned()
    } else {
        format!("{columns} columns of tensor memory, while {taken} are taken and never given back")
    }
}

/// An mbarrier nobody completes.
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

fn object(source: &Source, model: &Model, judgement: &Judgement, advice: &[Rejected]) -> Value {
    let program = &source.program;
    let s = &judgement.summary;
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
    json!({
        "version": 1,
        "file": source.name,
        "model": model.name(),
        "variants": model.variants(),
        "verdicts": words(judgement),
        "remarks": advice.iter().map(remark).collect::<Vec<_>>(),
        "conditions": conditions,
        "hang": judgement.hang.as_ref().map(|(ends, w)| json!({"who": hang(program, ends, judgement), "witness": graph(program, w)})),
        "race": judgement.race.as_ref().map(|(flag, w)| json!({"kind": flag, "witness": graph(program, w)})),
        "broken": broken,
        "executions": s.complete,
        "blocked": s.blocked,
        "dead_ends": s.dead_ends,
        "checks": s.checks,
        "cut": {"threads": s.cut.threads, "unseen": s.cut.unseen},
    })
}
