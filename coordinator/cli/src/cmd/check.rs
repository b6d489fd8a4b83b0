//! `moire check`: what is true of all executions of a program.

use crate::args::{Check, OutputFormat};
use crate::input::{Rejected, Source, load_model, read_program, variants};
use crate::{exit, show};
use anyhow::{Context, Result};
use moire_cat::Model;
use moire_explore::Limits;
use moire_explore::judge::{Judgement, Questions, Verdict, judge};
use moire_explore::leaf::{End, Witness};
use moire_program::ir::{Program, Quantifier};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(args: &Check) -> Result<u8> {
    let model = load_model(&args.model.model, &variants(&args.model.variants)?)?;
    let limits =
        Limits { leaves: args.limits.limit, loop_bound: args.limits.loop_bound, ..Limits::default() };
    let mut codes = Vec::new();
    for file in &args.files {
        let source = match read_program(file) {
            Ok(source) => source,
            Err(error) => {
                codes.push(exit::USAGE);
                rejected(args.format, &error);
                continue;
            }
        };
        let judgement =
            judge(&source.program, &model, &limits, Questions { witnesses: true, conditions_only: false });
        codes.extend(judgement.verdicts.iter().map(Verdict::exit_code));
        match args.format {
            OutputFormat::Text => print!("{}", text(&source, &model, &judgement)),
            OutputFormat::Json => println!("{}", object(&source, &model, &judgement)),
        }
        if let Some(folder) = &args.witness {
            write_witnesses(folder, &source, &judgement)?;
        }
    }
    Ok(exit::worst(codes))
}

fn rejected(format: OutputFormat, error: &anyhow::Error) {
    match (format, error.downcast_ref::<Rejected>()) {
        (OutputFormat::Json, Some(r)) => {
            let d = &r.diagnostic;
            let at = json!({"line": d.line, "column": d.column, "message": d.message, "hint": d.hint});
            println!("{}", json!({"version": 1, "file": r.file, "verdicts": ["rejected"], "error": at}));
        }
        _ => eprintln!("{error:#}"),
    }
}

fn words(judgement: &Judgement) -> Vec<String> {
    let word = |v: &Verdict| match v {
        Verdict::Condition(name) if !name.is_empty() => format!("condition({name})"),
        Verdict::Bounded(reason) => format!("bounded({reason})"),
        Verdict::Abstained(reason) => format!("abstained({reason})"),
        other => other.word().to_owned(),
    };
    judgement.verdicts.iter().map(word).collect()
}

fn quantified(q: Quantifier) -> &'static str {
    match q {
        Quantifier::Exists => "exists",
        Quantifier::NotExists => "~exists",
        Quantifier::ForAll => "forall",
    }
}

fn text(source: &Source, model: &Model, judgement: &Judgement) -> String {
    let program = &source.program;
    let s = &judgement.summary;
    let mut out = format!("{}: {}\n", source.name, words(judgement).join(", "));
    out.push_str(&format!(
        "  {}: {} executions, {} blocked, {} dead ends, {} checks\n",
        model.name(),
        s.complete,
        s.blocked,
        s.dead_ends,
        s.checks
    ));
    for condition in &judgement.conditions {
        let name = if condition.name.is_empty() { String::new() } else { format!(" {}", condition.name) };
        let holds = if condition.holds { "holds" } else { "does not hold" };
        out.push_str(&format!("  {}{name} {holds}\n", quantified(condition.quantifier)));
        if let Some(witness) = &condition.witness {
            out.push_str(&show::table(program, witness));
        }
    }
    if let Some((ends, witness)) = &judgement.hang {
        out.push_str(&format!("  hang: {}\n", hang(program, ends)));
        out.push_str(&show::table(program, witness));
    }
    if let Some((flag, witness)) = &judgement.race {
        out.push_str(&format!("  {flag}, in this execution:\n"));
        out.push_str(&show::table(program, witness));
    }
    out
}

/// Who waits for what.
fn hang(program: &Program, ends: &[End]) -> String {
    let one = |(t, end): (usize, &End)| {
        let name = &program.threads[t].name;
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

fn object(source: &Source, model: &Model, judgement: &Judgement) -> Value {
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
    json!({
        "version": 1,
        "file": source.name,
        "model": model.name(),
        "variants": model.variants(),
        "verdicts": words(judgement),
        "conditions": conditions,
        "hang": judgement.hang.as_ref().map(|(ends, w)| json!({"who": hang(program, ends), "witness": graph(program, w)})),
        "race": judgement.race.as_ref().map(|(flag, w)| json!({"kind": flag, "witness": graph(program, w)})),
        "executions": s.complete,
        "blocked": s.blocked,
        "dead_ends": s.dead_ends,
        "checks": s.checks,
    })
}

fn write_witnesses(folder: &Path, source: &Source, judgement: &Judgement) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let stem =
        Path::new(&source.name).file_stem().map_or("program".into(), |s| s.to_string_lossy().into_owned());
    let conditions = judgement
        .conditions
        .iter()
        .enumerate()
        .filter_map(|(i, c)| Some((format!("condition-{i}"), c.witness.as_ref()?)));
    let hang = judgement.hang.iter().map(|(_, w)| ("hang".to_owned(), w));
    let race = judgement.race.iter().map(|(_, w)| ("race".to_owned(), w));
    for (kind, witness) in conditions.chain(hang).chain(race) {
        let path = folder.join(format!("{stem}.{kind}.dot"));
        std::fs::write(&path, show::dot(&source.program, witness))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
