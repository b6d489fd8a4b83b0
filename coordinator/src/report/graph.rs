//! An execution graph as inline SVG: a column per thread, a box per event, an arrow per edge.
//!
//! Input: `{"events":[{id,thread,index,label,value}],"edges":[{kind,from,to,cycle?}]}`. Other text gives `None`.

use moire_program::words::escape;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Most events of a graph that is drawn. The witness of a larger one is shown as text.
const EVENTS_MAX: usize = 256;
const EDGES_MAX: usize = 4096;
const COLUMN: usize = 300;
const ROW: usize = 64;
const BOX: (usize, usize) = (200, 32);

/// Reads a number or a string as text.
fn key(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the colour class of an edge.
fn class(kind: &str) -> &'static str {
    match kind {
        "po" => "po",
        "rf" => "rf",
        "co" => "co",
        "fr" => "fr",
        _ => "sync",
    }
}

/// Computes the path of an edge from box to box, and the position of its name. Between neighbours of a column the edge
/// goes straight down; between other boxes of a column it bows around those in between; between columns it goes from
/// side to side. The `nth` edge between two boxes is shifted away from those before it.
fn route(from: (usize, usize), to: (usize, usize), nth: usize) -> (String, usize, usize) {
    let (w, h) = BOX;
    let shift = (nth % 4) * 8;
    if from.0 == to.0 {
        let below = to.1 == from.1 + ROW;
        if below && nth == 0 {
            let x = from.0 + w / 2;
            return (format!("M{x} {}L{x} {}", from.1 + h, to.1), x + 4, from.1 + h + (ROW - h) / 2 + 4);
        }
        let (x, a, b) = (from.0 + w, from.1 + h / 2 + shift, to.1 + h / 2 + shift);
        let bow = x + 30 + shift;
        return (format!("M{x} {a}C{bow} {a} {bow} {b} {x} {b}"), x + 24, usize::midpoint(a, b) + 4);
    }
    let (a, b) = (from.1 + h / 4 + shift, to.1 + h / 4 + shift);
    let (x, end) = if from.0 < to.0 { (from.0 + w, to.0) } else { (from.0, to.0 + w) };
    // The name is a third of the way along, where crossing edges are apart.
    (format!("M{x} {a}L{end} {b}"), (2 * x + end) / 3, (2 * a + b) / 3 + 4)
}

/// Draws the graph; `None` if the text is not a graph or the graph is too large.
pub(super) fn svg(witness: &str, title: &str) -> Option<String> {
    let graph: Value = serde_json::from_str(witness).ok()?;
    let (events, edges) = (graph.get("events")?.as_array()?, graph.get("edges")?.as_array()?);
    if events.is_empty() || events.len() > EVENTS_MAX || edges.len() > EDGES_MAX {
        return None;
    }
    let mut columns: BTreeMap<String, usize> = BTreeMap::new();
    let mut heights: Vec<usize> = Vec::new();
    let mut places: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut body = String::new();
    for event in events {
        let thread = event.get("thread").and_then(key).unwrap_or_default();
        let fresh = columns.len();
        let column = *columns.entry(thread).or_insert(fresh);
        heights.resize(columns.len(), 0);
        let (x, y) = (column * COLUMN + 20, heights[column] * ROW + 40);
        heights[column] += 1;
        places.insert(event.get("id").and_then(key)?, (x, y));
        let label = event.get("label").and_then(key).unwrap_or_default();
        let value = event.get("value").and_then(key).map(|v| format!(" = {v}")).unwrap_or_default();
        let text = escape(&format!("{label}{value}"));
        let (w, h) = BOX;
        write!(body, r#"<rect x="{x}" y="{y}" width="{w}" height="{h}"/>"#).ok()?;
        write!(body, r#"<text x="{}" y="{}">{text}</text>"#, x + 8, y + 20).ok()?;
    }
    for (thread, column) in &columns {
        let numbered = thread.bytes().all(|b| b.is_ascii_digit());
        let name = if numbered { format!("thread {thread}") } else { escape(thread) };
        write!(body, r#"<text class="thread" x="{}" y="24">{name}</text>"#, column * COLUMN + 20).ok()?;
    }
    let mut between: BTreeMap<((usize, usize), (usize, usize)), usize> = BTreeMap::new();
    for edge in edges {
        let end = |name: &str| edge.get(name).and_then(key).and_then(|id| places.get(&id).copied());
        let (Some(from), Some(to)) = (end("from"), end("to")) else { continue };
        let kind = edge.get("kind").and_then(key).unwrap_or_default();
        let cycle = if edge.get("cycle").and_then(Value::as_bool) == Some(true) { " cycle" } else { "" };
        let class = class(&kind);
        let nth = between.entry((from.min(to), from.max(to))).or_default();
        let (path, x, y) = route(from, to, *nth);
        *nth += 1;
        write!(body, r#"<path class="{class}{cycle}" d="{path}" marker-end="url(#a)"/>"#).ok()?;
        if kind != "po" {
            write!(body, r#"<text class="label {class}" x="{x}" y="{y}">{}</text>"#, escape(&kind)).ok()?;
        }
    }
    let (width, height) = (columns.len() * COLUMN + 20, heights.iter().max()? * ROW + 24);
    let arrow = r#"<defs><marker id="a" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>"#;
    let title = escape(title);
    Some(format!(
        r#"<svg role="img" aria-label="{title}" viewBox="0 0 {width} {height}" width="{width}"><title>{title}</title>{arrow}{body}</svg>"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_is_drawn_and_escaped() {
        let witness = r#"{"events":[{"id":0,"thread":0,"index":0,"label":"st <x>","value":"1"},
            {"id":1,"thread":1,"index":0,"label":"ld x","value":"1"}],"edges":[{"kind":"rf","from":0,"to":1}]}"#;
        let drawn = svg(witness, "a <graph>").unwrap();
        assert!(
            drawn.contains("st &lt;x&gt;")
                && drawn.contains("class=\"rf\"")
                && drawn.contains("a &lt;graph&gt;")
        );
    }

    #[test]
    fn a_witness_that_is_not_a_graph_is_not_drawn() {
        for witness in ["", "{", "[]", "nonsense", r#"{"events":[]}"#, r#"{"events":[],"edges":[]}"#] {
            assert!(svg(witness, "t").is_none(), "{witness}");
        }
        assert!(
            svg(r#"{"events":[{"id":1}],"edges":[{"from":9}]}"#, "t").is_some(),
            "an edge to nowhere is left out"
        );
    }
}
