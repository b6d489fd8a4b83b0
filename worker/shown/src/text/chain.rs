//! Where the chain between two racing accesses breaks: a value that is passed from one thread to the other, and does not
//! order what stands around it.
//!
//! A sentence is true of an execution that is shown with the race. There is none where no value is passed, or where what
//! is missing is not told by the two instructions alone.

use moire_verdict::answer::Part;
use moire_verdict::execution::{Edge, Execution};
use moire_verdict::finding::Finding;

/// Why the value that is passed orders nothing.
pub(super) fn broken(part: &Part, finding: &Finding) -> Option<String> {
    let [a, b] = finding.places.as_slice() else { return None };
    let races = part.executions.iter().filter(|e| e.shows.iter().any(|s| s.ends_with("-race")));
    races.map(|shown| &shown.execution).find_map(|execution| {
        let (a, b) = execution.pair(a, b)?;
        let passes = |from, to| execution.edges.iter().find_map(|e| passed(execution, (from, to), e));
        passes(a, b).or_else(|| passes(b, a))
    })
}

/// What is wrong with an edge that leads from behind the first access to before the last one.
fn passed(execution: &Execution, (first, last): (usize, usize), edge: &Edge) -> Option<String> {
    let event = |e: usize| &execution.events[e];
    let (write, read) = (event(edge.from), event(edge.to));
    let behind = write.thread == event(first).thread && write.index > event(first).index;
    let before = read.thread == event(last).thread && read.index < event(last).index;
    if edge.kind != "rf" || !behind || !before {
        return None;
    }
    let has = |e: usize, order: &str| {
        let text = event(e).instruction.as_deref()?;
        Some(text.contains(order) || text.contains(".acq_rel"))
    };
    let fence = |from: usize, to: usize| {
        let between = event(from).index..event(to).index;
        let own = |e: &&moire_verdict::execution::Event| {
            e.thread == event(from).thread && between.contains(&e.index)
        };
        execution.events.iter().filter(own).any(|e| e.label == "F")
    };
    let releases = has(edge.from, ".release")? || fence(first, edge.from);
    let acquires = has(edge.to, ".acquire")? || fence(edge.to, last);
    let why = match (releases, acquires) {
        (false, false) => "the write does not release, and the read does not acquire",
        (false, true) => "the read acquires, but the write does not release",
        (true, false) => "the write releases, but the read does not acquire",
        (true, true) => return None,
    };
    Some(format!(
        "line {} reads what line {} wrote, and that orders nothing else: {why}",
        read.line, write.line
    ))
}
