//! Executions for people: a table for the terminal, Graphviz for a picture.

use moire_execution::leaf::EventRef;
use moire_execution::leaf::{Witness, WitnessEvent};
use moire_program::ir::Program;
use moire_program::text::instruction;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Name of an event: thread and index, or `init`.
pub(crate) fn event_name(program: &Program, event: EventRef) -> String {
    match program.threads.get(event.thread as usize) {
        Some(thread) => format!("{}.{}", thread.name, event.index),
        None => "init".into(),
    }
}

/// One line an event, in program order, with where reads come from. A thread that does the same lines as one before it is
/// named there and not listed again.
pub(crate) fn table(program: &Program, witness: &Witness) -> String {
    let mut out = String::new();
    let mut listed: Vec<(Vec<(&str, u32)>, usize)> = Vec::new();
    let mut alike: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let threads = events_by_thread(program, witness);
    for (t, events) in threads.iter().enumerate() {
        let lines: Vec<(&str, u32)> =
            events.iter().map(|e| (witness.events[*e].kind.as_str(), witness.events[*e].line)).collect();
        let long = lines.len() > ALIKE && lines.iter().all(|l| l.1 > 0 || l.0 == "exit");
        match listed.iter().find(|l| long && l.0 == lines) {
            Some((_, first)) => alike.entry(*first).or_default().push(&program.threads[t].name),
            None => listed.push((lines, t)),
        }
    }
    let width = listed.iter().map(|l| program.threads[l.1].name.len()).max().unwrap_or(0) + 4;
    for (_, t) in listed {
        for e in &threads[t] {
            out.push_str(&row(program, witness, *e, width));
        }
        if let Some(others) = alike.get(&t) {
            let _ = writeln!(out, "    {}: the lines of {}", others.join(", "), program.threads[t].name);
        }
    }
    out.push_str(&edges(program, witness));
    out
}

/// A thread with fewer events is always listed.
const ALIKE: usize = 6;

/// Positions in the witness by thread, in program order.
fn events_by_thread(program: &Program, witness: &Witness) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new(); program.threads.len()];
    for (e, event) in witness.events.iter().enumerate().filter(|(_, e)| e.kind != "init") {
        if let Some(thread) = out.get_mut(event.event.thread as usize) {
            thread.push(e);
        }
    }
    for thread in &mut out {
        thread.sort_by_key(|e| witness.events[*e].event);
    }
    out
}

fn row(program: &Program, witness: &Witness, e: usize, width: usize) -> String {
    let event = &witness.events[e];
    let what = match (&event.location, event.value) {
        (Some(l), Some(v)) => format!("{} {l} = {v}", event.kind),
        (Some(l), None) => format!("{} {l}", event.kind),
        _ => event.kind.clone(),
    };
    let from = witness.edges.iter().filter(|(k, _, to)| k == "rf" && *to == e);
    let from: Vec<String> = from.map(|(_, w, _)| event_name(program, witness.events[*w].event)).collect();
    let from = if from.is_empty() { String::new() } else { format!("   from {}", from.join(", ")) };
    let line = source_line(program, event);
    format!("    {:width$} {what}{from}{line}\n", event_name(program, event.event))
}

/// Edges other than `rf`; barriers by who meets there.
fn edges(program: &Program, witness: &Witness) -> String {
    let name = |e: usize| event_name(program, witness.events[e].event);
    let mut out = String::new();
    for kind in ["co", "sync_fence", "syncbar"] {
        let all: BTreeSet<(usize, usize)> =
            witness.edges.iter().filter(|(k, ..)| k == kind).map(|(_, a, b)| (*a, *b)).collect();
        let mut words = Vec::new();
        let mut met = BTreeSet::new();
        for (a, b) in &all {
            let all_of = |x: usize| all.iter().filter(move |p| p.0 == x).map(|p| p.1);
            let group: BTreeSet<usize> = all_of(*a).chain([*a]).collect();
            let mutual = |x: &usize| all_of(*x).chain([*x]).collect::<BTreeSet<_>>() == group;
            if !group.iter().all(mutual) {
                words.push(format!("{} -> {}", name(*a), name(*b)));
            } else if met.insert(group.clone()) {
                words.push(group.into_iter().map(name).collect::<Vec<_>>().join(" <-> "));
            }
        }
        if !words.is_empty() {
            let _ = writeln!(out, "    {kind}: {}", words.join(", "));
        }
    }
    out
}

/// Where an event comes from: the line, and its instruction where the line has one only.
fn source_line(program: &Program, event: &WitnessEvent) -> String {
    if event.line == 0 {
        return String::new();
    }
    let thread = program.threads.get(event.event.thread as usize);
    let mut here =
        thread.iter().flat_map(|t| t.body.iter().map(move |i| (t, i))).filter(|i| i.1.line == event.line);
    match (here.next(), here.next()) {
        (Some((thread, instr)), None) => {
            format!("   line {}: {}", event.line, instruction(program, thread, instr))
        }
        _ => format!("   line {}", event.line),
    }
}

/// The execution in Graphviz's language.
pub(crate) fn dot(program: &Program, witness: &Witness) -> String {
    let mut out = String::from("digraph execution {\n  node [shape=box, fontname=monospace];\n");
    for (t, thread) in program.threads.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{t} {{ label=\"{}\";", thread.name);
        let mut mine: Vec<usize> =
            (0..witness.events.len()).filter(|e| witness.events[*e].event.thread as usize == t).collect();
        mine.sort_by_key(|e| witness.events[*e].event);
        for e in &mine {
            let event = &witness.events[*e];
            let value = event.value.map_or(String::new(), |v| format!(" = {v}"));
            let location = event.location.as_deref().unwrap_or_default();
            let _ = writeln!(out, "    e{e} [label=\"{} {location}{value}\"];", event.kind);
        }
        for pair in mine.windows(2) {
            let _ = writeln!(out, "    e{} -> e{} [style=dotted, label=po];", pair[0], pair[1]);
        }
        out.push_str("  }\n");
    }
    for (e, event) in witness.events.iter().enumerate().filter(|(_, e)| e.kind == "init") {
        let _ = writeln!(
            out,
            "  e{e} [label=\"init {}\", shape=ellipse];",
            event.location.as_deref().unwrap_or_default()
        );
    }
    for (kind, from, to) in &witness.edges {
        let colour = match kind.as_str() {
            "rf" => "forestgreen",
            "co" => "blue",
            "rmw" => "purple",
            _ => "red",
        };
        let _ = writeln!(out, "  e{from} -> e{to} [label=\"{kind}\", color={colour}, fontcolor={colour}];");
    }
    out.push_str("}\n");
    out
}

/// The execution that is stored beside a finding, as text; none where there is no execution to show.
pub(crate) fn stored(witness: &str) -> Option<String> {
    let graph: Value = serde_json::from_str(witness).ok()?;
    let (events, edges) = (graph["events"].as_array()?, graph["edges"].as_array()?);
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let names: BTreeMap<u64, String> = events
        .iter()
        .filter(|e| e["thread"] != "init")
        .filter_map(|e| Some((e["id"].as_u64()?, format!("{}.{}", word(&e["thread"]), e["index"].as_u64()?))))
        .collect();
    let name = |end: &Value| end.as_u64().and_then(|id| names.get(&id).cloned()).unwrap_or("init".to_owned());
    let mut out = match (graph["model"].as_str(), graph["outcome"].as_str()) {
        (Some(model), Some(outcome)) => format!("an execution under {model} that ends in {outcome}:\n"),
        _ => "an execution:\n".to_owned(),
    };
    let width = names.values().map(String::len).max().unwrap_or(0);
    for event in events {
        let id = event["id"].as_u64().unwrap_or_default();
        let value =
            if event["value"].is_null() { String::new() } else { format!(" = {}", word(&event["value"])) };
        let from = edges.iter().filter(|e| e["kind"] == "rf" && e["to"].as_u64() == Some(id));
        let from: Vec<String> = from.map(|e| name(&e["from"])).collect();
        let from = if from.is_empty() { String::new() } else { format!("   from {}", from.join(", ")) };
        let own = names.get(&id).map_or("init", String::as_str);
        let _ = writeln!(out, "    {own:width$} {}{value}{from}", word(&event["label"]));
    }
    let mut others: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for edge in edges {
        let kind = edge["kind"].as_str().unwrap_or_default();
        if !matches!(kind, "rf" | "po") {
            others.entry(kind).or_default().push(format!("{} -> {}", name(&edge["from"]), name(&edge["to"])));
        }
    }
    for (kind, pairs) in others {
        let _ = writeln!(out, "    {kind}: {}", pairs.join(", "));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_execution_is_shown_as_text() {
        let json = r#"{"model":"ptx","outcome":"P1:r0 = 1","events":[
            {"id":0,"thread":"P0","index":0,"label":"st x","value":"1"},
            {"id":1,"thread":"P1","index":0,"label":"ld x","value":"1"}],
            "edges":[{"kind":"rf","from":0,"to":1},{"kind":"fr","from":1,"to":0},{"kind":"po","from":0,"to":1}]}"#;
        let text = stored(json).unwrap();
        assert_eq!(
            text,
            "an execution under ptx that ends in P1:r0 = 1:\n    P0.0 st x = 1\n    P1.0 ld x = 1   from P0.0\n    \
             fr: P1.0 -> P0.0\n"
        );
        assert_eq!(stored(""), None);
        assert_eq!(stored("{\"events\":3}"), None);
    }
}
