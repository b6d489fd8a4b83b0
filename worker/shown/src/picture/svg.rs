//! The drawing: a column a lane, a row an event, an arrow an edge.

use super::order::Timed;
use super::{Picture, place};
use crate::show::what;
use moire_program::words::escape;
use std::collections::BTreeSet;
use std::fmt::Write;

const LANE: usize = 430;
const ROW: usize = 62;
const BOX: (usize, usize) = (325, 46);
/// Above the first row: the names of the lanes.
const TOP: usize = 40;
/// Characters of an instruction that fit into a box.
const SHOWN: usize = 42;

struct Drawing<'a> {
    picture: &'a Picture<'a>,
    timed: Timed,
    out: String,
    /// How many arrows were drawn, so that neighbours differ.
    drawn: usize,
}

/// The picture alone.
pub fn svg(title: &str, picture: &Picture<'_>) -> String {
    let title = escape(title);
    let mut drawing = Drawing { picture, timed: Timed::new(picture), out: String::new(), drawn: 0 };
    drawing.lanes();
    for e in drawing.timed.order.clone() {
        drawing.event(e);
    }
    let pair = picture.pair.map(|(a, b)| (a.min(b), a.max(b)));
    for (kind, from, to) in arrows(picture).into_iter().filter(|a| pair != Some((a.1.min(a.2), a.1.max(a.2))))
    {
        drawing.arrow(kind, from, to);
    }
    if let Some((a, b)) = picture.pair {
        drawing.arrow("bad", a, b);
    }
    let (width, height) = (drawing.timed.lanes.len() * LANE, drawing.timed.order.len() * ROW + TOP + 10);
    let marker = r#"<defs><marker id="a" markerWidth="9" markerHeight="9" refX="8" refY="4.5" orient="auto"><path d="M0 0L9 4.5L0 9z" fill="context-stroke" stroke="none"/></marker></defs>"#;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\"><style>{}</style>{marker}{}</svg>",
        super::STYLE,
        drawing.out
    )
}

/// Edges between events of threads, `fr` among them; barriers that meet once.
fn arrows<'a>(picture: &Picture<'a>) -> Vec<(&'a str, usize, usize)> {
    let (events, edges) = (&picture.execution.events, &picture.execution.edges);
    let both = |a: usize, b: usize| events[a].thread.is_some() && events[b].thread.is_some();
    let mut out: BTreeSet<(&str, usize, usize)> = BTreeSet::new();
    for edge in edges.iter().filter(|e| both(e.from, e.to)) {
        let arrow = match edge.kind.as_str() {
            "rmw" => continue,
            "syncbar" | "sync_fence" => ("sync", edge.from.min(edge.to), edge.from.max(edge.to)),
            kind => (kind, edge.from, edge.to),
        };
        out.insert(arrow);
    }
    for read in edges.iter().filter(|e| e.kind == "rf") {
        let later = |w: usize| edges.iter().any(|e| e.kind == "co" && e.from == read.from && e.to == w);
        let initial = events[read.from].thread.is_none();
        for w in 0..events.len() {
            let write = events[w].label == "W" && events[w].location == events[read.to].location;
            if write
                && w != read.to
                && both(read.to, w)
                && (initial || later(w))
                && events[w].thread != events[read.to].thread
            {
                out.insert(("fr", read.to, w));
            }
        }
    }
    out.into_iter().collect()
}

impl Drawing<'_> {
    fn at(&self, e: usize) -> Option<(usize, usize)> {
        let thread = self.picture.execution.events[e].thread.as_ref()?;
        let lane = self.timed.lanes.iter().position(|l| l == thread)?;
        Some((lane * LANE + 10, self.timed.row.get(&e)? * ROW + TOP))
    }

    fn lanes(&mut self) {
        let bottom = self.timed.order.len() * ROW + TOP;
        for (n, name) in self.timed.lanes.iter().enumerate() {
            let x = n * LANE + 10;
            let _ = write!(self.out, "<text class=\"lane\" x=\"{x}\" y=\"22\">{}</text>", escape(name));
            let middle = x + BOX.0 / 2;
            let _ = write!(self.out, "<path class=\"po\" d=\"M{middle} {TOP}L{middle} {bottom}\"/>");
        }
    }

    fn event(&mut self, e: usize) {
        let Some((x, y)) = self.at(e) else { return };
        let event = &self.picture.execution.events[e];
        let class = if self.picture.is_marked(e) { "event bad" } else { "event" };
        let whole = place(event);
        let short: String = whole.chars().take(SHOWN).collect();
        let dots = if short.len() < whole.len() { "…" } else { "" };
        let (w, h) = BOX;
        let _ = write!(
            self.out,
            "<g class=\"{class}\"><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"4\"/>\
             <text x=\"{}\" y=\"{}\">{}</text><text class=\"code\" x=\"{}\" y=\"{}\">{}{dots}</text></g>",
            escape(&whole),
            x + 8,
            y + 19,
            escape(&what(event)),
            x + 8,
            y + 37,
            escape(&short)
        );
    }

    /// From side to side between lanes, around the boxes within a lane. Names of neighbours stand at different parts of the way.
    fn arrow(&mut self, kind: &str, from: usize, to: usize) {
        let (Some(a), Some(b)) = (self.at(from), self.at(to)) else { return };
        let shift = (self.drawn % 4) * 7;
        self.drawn += 1;
        let (w, h) = BOX;
        let (start, end) = (a.1 + h / 4 + shift, b.1 + h / 4 + shift);
        let (path, x, y) = if a.0 == b.0 {
            let (x, bow) = (a.0 + w, a.0 + w + 34 + shift);
            (format!("M{x} {start}C{bow} {start} {bow} {end} {x} {end}"), x + 28, usize::midpoint(start, end))
        } else {
            let (x, z) = if a.0 < b.0 { (a.0 + w, b.0) } else { (a.0, b.0 + w) };
            let part = self.drawn % 2 + 1;
            let along = |from: usize, to: usize| ((4 - part) * from + part * to) / 4;
            (format!("M{x} {start}L{z} {end}"), along(x, z), along(start, end))
        };
        let (class, name, tip) = match kind {
            "rf" | "co" | "fr" => (kind, kind, " marker-end=\"url(#a)\""),
            "bad" => (kind, "race", ""),
            _ => ("sync", "", ""),
        };
        let _ = write!(self.out, "<path class=\"{class}\" d=\"{path}\"{tip}/>");
        let _ = write!(
            self.out,
            "<text class=\"name {class}\" x=\"{x}\" y=\"{}\">{name}</text>",
            y.saturating_sub(3)
        );
    }
}
