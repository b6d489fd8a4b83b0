//! Executions for people: a table for the terminal, Graphviz for a picture.

use moire_verdict::execution::{Edge, Event, Execution};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// One line an event, in program order, with where reads come from. A thread that does the same lines as one before it is
/// named there and not listed again. `threads` are those of the program, in order.
pub fn table(threads: &[String], execution: &Execution) -> String {
    let mut out = String::new();
    let mut listed: Vec<(Vec<(&str, u32)>, &str, Vec<usize>)> = Vec::new();
    let mut alike: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for thread in threads {
        let events = events_of(execution, thread);
        let all = events.iter().map(|e| &execution.events[*e]);
        let lines: Vec<(&str, u32)> = all.map(|e| (e.label.as_str(), e.line)).collect();
        let long = lines.len() > ALIKE && lines.iter().all(|l| l.1 > 0 || l.0 == "exit");
        match listed.iter().find(|l| long && l.0 == lines) {
            Some((_, first, _)) => alike.entry(first).or_default().push(thread),
            None => listed.push((lines, thread, events)),
        }
    }
    let width = listed.iter().map(|l| l.1.len()).max().unwrap_or(0) + 4;
    for (_, thread, events) in listed {
        events.iter().for_each(|e| out += &row(execution, *e, width));
        if let Some(others) = alike.get(thread) {
            let _ = writeln!(out, "    {}: the lines of {thread}", others.join(", "));
        }
    }
    out.push_str(&edges(execution));
    out
}

/// A thread with fewer events is always listed.
const ALIKE: usize = 6;

/// The positions of the events of a thread, in program order.
fn events_of(execution: &Execution, thread: &str) -> Vec<usize> {
    let own = |e: &&usize| execution.events[**e].thread.as_deref() == Some(thread);
    let all: Vec<usize> = (0..execution.events.len()).collect();
    let mut out: Vec<usize> = all.iter().filter(own).copied().collect();
    out.sort_by_key(|e| execution.events[*e].index);
    out
}

fn row(execution: &Execution, e: usize, width: usize) -> String {
    let event = &execution.events[e];
    let what = what(event);
    let from = execution.edges.iter().filter(|edge| edge.kind == "rf" && edge.to == e);
    let from: Vec<String> = from.map(|edge| execution.events[edge.from].name()).collect();
    let from = if from.is_empty() { String::new() } else { format!("   from {}", from.join(", ")) };
    let instruction = event.instruction.as_ref().map_or(String::new(), |i| format!(": {i}"));
    let line = if event.line > 0 { format!("   line {}{instruction}", event.line) } else { String::new() };
    format!("    {:width$} {what}{from}{line}\n", event.name())
}

/// What an event does, in words.
pub fn what(event: &Event) -> String {
    let word = match event.label.as_str() {
        "R" => "reads",
        "W" => "writes",
        "F" => "fence",
        "B" => "barrier",
        "M" => "mbarrier",
        "A" => "allocator",
        "async R" => "reads later",
        "async W" => "writes later",
        "async M" => "arrives later",
        other => other,
    };
    match (&event.location, event.value) {
        (Some(l), Some(v)) => format!("{word} {l} = {v}"),
        (Some(l), None) => format!("{word} {l}"),
        _ => word.to_owned(),
    }
}

/// Edges other than `rf`; barriers by who meets there.
fn edges(execution: &Execution) -> String {
    let name = |e: usize| execution.events[e].name();
    let mut out = String::new();
    for kind in ["co", "sync_fence", "syncbar"] {
        let all: BTreeSet<(usize, usize)> =
            execution.edges.iter().filter(|e| e.kind == kind).map(|e| (e.from, e.to)).collect();
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

/// The execution in Graphviz's language.
pub fn dot(threads: &[String], execution: &Execution) -> String {
    let mut out = String::from("digraph execution {\n  node [shape=box, fontname=monospace];\n");
    for (t, thread) in threads.iter().enumerate() {
        let _ = writeln!(out, "  subgraph cluster_{t} {{ label=\"{thread}\";");
        let mine = events_of(execution, thread);
        for e in &mine {
            let event = &execution.events[*e];
            let value = event.value.map_or(String::new(), |v| format!(" = {v}"));
            let location = event.location.as_deref().unwrap_or_default();
            let _ = writeln!(out, "    e{e} [label=\"{} {location}{value}\"];", event.label);
        }
        for pair in mine.windows(2) {
            let _ = writeln!(out, "    e{} -> e{} [style=dotted, label=po];", pair[0], pair[1]);
        }
        out.push_str("  }\n");
    }
    for (e, event) in execution.events.iter().enumerate().filter(|(_, e)| e.label == "init") {
        let _ = writeln!(
            out,
            "  e{e} [label=\"init {}\", shape=ellipse];",
            event.location.as_deref().unwrap_or_default()
        );
    }
    for Edge { kind, from, to } in &execution.edges {
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
pub fn stored(witness: &str) -> Option<String> {
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
        let label = word(&event["label"]);
        let label = label.strip_prefix("init ").filter(|_| own == "init").unwrap_or(&label);
        let _ = writeln!(out, "    {own:width$} {label}{value}{from}");
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
        let first =
            r#"{"events":[{"id":0,"thread":"init","index":0,"label":"init x","value":0}],"edges":[]}"#;
        assert_eq!(stored(first).unwrap(), "an execution:\n    init x = 0\n");
        assert_eq!(stored(""), None);
        assert_eq!(stored("{\"events\":3}"), None);
    }
}
