//! An execution graph as inline SVG: a column per thread, a box per event, an arrow per edge.
//!
//! Input: `{"events":[{id,thread,index,label,value}],"edges":[{kind,from,to,cycle?}]}`. Anything else gives `None`.

use super::escape;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Larger graphs stay text.
const EVENTS_MAX: usize = 256;
const EDGES_MAX: usize = 4096;
const COLUMN: usize = 240;
const ROW: usize = 64;
const BOX: (usize, usize) = (200, 32);

/// A key of an event or a thread, number or string.
fn key(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Colour class of an edge.
fn class(kind: &str) -> &'static str {
    match kind {
        "po" => "po",
        "rf" => "rf",
        "co" => "co",
        "fr" => "fr",
        _ => "sync",
    }
}

/// The drawing, or `None` when the text is not a graph.
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
        write!(body, r#"<text x="{}" y="24">thread {}</text>"#, column * COLUMN + 20, escape(thread)).ok()?;
    }
    for edge in edges {
        let end = |name: &str| edge.get(name).and_then(key).and_then(|id| places.get(&id).copied());
        let (Some(from), Some(to)) = (end("from"), end("to")) else { continue };
        let kind = edge.get("kind").and_then(key).unwrap_or_default();
        let cycle = if edge.get("cycle").and_then(Value::as_bool) == Some(true) { " cycle" } else { "" };
        let at = |(x, y): (usize, usize)| (x + BOX.0 / 2, y + BOX.1 / 2);
        let ((a, b), (c, d)) = (at(from), at(to));
        let class = class(&kind);
        write!(
            body,
            r#"<line class="{class}{cycle}" x1="{a}" y1="{b}" x2="{c}" y2="{d}" marker-end="url(#a)"/>"#
        )
        .ok()?;
        write!(body, r#"<text x="{}" y="{}">{}</text>"#, (a + c) / 2 + 4, (b + d) / 2 - 4, escape(&kind))
            .ok()?;
    }
    let (width, height) = (columns.len() * COLUMN + 20, heights.iter().max()? * ROW + 60);
    let arrow = r#"<defs><marker id="a" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>"#;
    let title = escape(title);
    Some(format!(
        r#"<svg role="img" aria-label="{title}" viewBox="0 0 {width} {height}" width="{width}"><title>{title}</title>{arrow}{body}</svg><p>Edges: po program order, rf reads from, co coherence, fr from reads; others synchronise.</p>"#
    ))
}
