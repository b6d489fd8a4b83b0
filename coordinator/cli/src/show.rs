//! Executions for people: a table for the terminal, Graphviz for a picture.

use moire_execution::leaf::EventRef;
use moire_execution::leaf::{Witness, WitnessEvent};
use moire_program::ir::Program;
use moire_program::text::instruction;
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
