//! An execution as a code flow: a thread flow for each thread, and the order of all events across them.

use super::places::Root;
use super::{LOCATIONS, STEPS};
use moire_shown::picture::Picture;
use moire_shown::show::what;
use moire_verdict::answer::{Answer, Part};
use moire_verdict::execution::Execution;
use moire_verdict::finding::Finding;
use moire_verdict::problem::Problem;
use serde_json::{Map, Value, json};

/// The execution that shows a problem, if it is kept and not too long.
pub(super) fn flow(
    root: &Root,
    answer: &Answer,
    part: &Part,
    problem: &Problem,
    first: Option<&Finding>,
) -> Option<Value> {
    let execution = shown(part, problem, first)?;
    let findings: Vec<Finding> = first.into_iter().cloned().collect();
    let picture = Picture::new(&part.threads, execution, &findings);
    let order = picture.order();
    let named = order.iter().filter(|e| execution.events[**e].line > 0).count();
    if named == 0 || named > STEPS {
        return None;
    }
    let thread = |thread: &String| {
        let own = order.iter().enumerate().filter(|(_, e)| {
            let event = &execution.events[**e];
            event.thread.as_ref() == Some(thread) && event.line > 0
        });
        let steps: Vec<Value> = own.map(|(at, e)| step(root, answer, &picture, *e, at + 1)).collect();
        (!steps.is_empty()).then(|| json!({"id": thread, "locations": steps}))
    };
    let mut flows: Vec<Value> = part.threads.iter().filter_map(thread).collect();
    let first = initial(execution);
    if !first.is_empty() {
        flows.first_mut()?["initialState"] = Value::Object(first);
    }
    Some(json!({"message": {"text": "an execution that shows it"}, "threadFlows": flows}))
}

/// The first execution that shows a problem.
fn shown<'a>(part: &'a Part, problem: &Problem, first: Option<&Finding>) -> Option<&'a Execution> {
    let has = |execution: &Execution| {
        let places = first.iter().flat_map(|f| &f.places);
        places.into_iter().all(|p| {
            execution.events.iter().any(|e| e.thread.as_ref() == Some(&p.thread) && e.line == p.line)
        })
    };
    let named = |name: &&moire_verdict::answer::Condition| {
        name.name == problem.rule || (name.name.is_empty() && problem.rule == "condition")
    };
    match problem.verdict {
        "condition" => part.conditions.iter().filter(named).find_map(|c| c.execution.as_ref()),
        _ => part
            .executions
            .iter()
            .filter(|e| e.shows.contains(&problem.rule))
            .map(|e| &e.execution)
            .find(|e| has(e)),
    }
}

/// What an event does, where, and as which event of all.
fn step(root: &Root, answer: &Answer, picture: &Picture<'_>, e: usize, at: usize) -> Value {
    let event = &picture.execution.events[e];
    let from = picture.execution.edges.iter().find(|edge| edge.kind == "rf" && edge.to == e);
    let from =
        from.map_or(String::new(), |edge| format!(" from {}", picture.execution.events[edge.from].name()));
    let instruction = event.instruction.as_ref().map_or(String::new(), |i| format!(": {i}"));
    let mut location = root.line(answer, event.line);
    location["message"] = json!({"text": format!("{} {}{from}{instruction}", event.name(), what(event))});
    let importance = if picture.is_marked(e) { "essential" } else { "important" };
    json!({"location": location, "executionOrder": at, "importance": importance})
}

/// The values of memory before.
fn initial(execution: &Execution) -> Map<String, Value> {
    let first = execution.events.iter().filter(|e| e.thread.is_none());
    let named = first.filter_map(|e| Some((e.location.clone()?, json!({"text": e.value?.to_string()}))));
    named.take(LOCATIONS).collect()
}
