//! Executions for people: a table for the terminal, Graphviz for a picture.

use moire_explore::EventRef;
use moire_explore::leaf::{Witness, WitnessEvent};
use moire_program::ir::Program;
use moire_program::text::instruction;
use std::fmt::Write;

/// Name of an event: thread and index, or `init`.
pub(crate) fn event_name(program: &Program, event: EventRef) -> String {
    match program.threads.get(event.thread as usize) {
        Some(thread) => format!("{}.{}", thread.name, event.index),
        None => "init".into(),
    }
}

/// One line an event, in program order, with where reads come from.
pub(crate) fn table(program: &Program, witness: &Witness) -> String {
    let mut order: Vec<usize> =
        (0..witness.events.len()).filter(|e| witness.events[*e].kind != "init").collect();
    order.sort_by_key(|e| witness.events[*e].event);
    let mut out = String::new();
    for e in order {
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
        let _ = writeln!(out, "    {:8} {what}{from}{line}", event_name(program, event.event));
    }
    let pairs = |kind: &str| {
        let all = witness.edges.iter().filter(|(k, ..)| k == kind);
        let all = all.map(|(_, a, b)| {
            format!(
                "{} -> {}",
                event_name(program, witness.events[*a].event),
                event_name(program, witness.events[*b].event)
            )
        });
        all.collect::<Vec<_>>().join(", ")
    };
    for kind in ["co", "sync_fence", "syncbar"] {
        let text = pairs(kind);
        if !text.is_empty() {
            let _ = writeln!(out, "    {kind}: {text}");
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
