//! An execution as a picture: a lane for each thread, time downwards, on each event what it does, its instruction and its line.
//!
//! [`page`] is a whole HTML page: the verdict, what is wrong, the picture, and for narrow screens the same events as a list.
//! It loads nothing. [`fn@svg`] is the picture alone.

mod order;
mod svg;

use crate::show::{self, what};
use crate::text;
use moire_program::words::escape;
use moire_verdict::answer::{Answer, Hang, Part};
use moire_verdict::execution::{Event, Execution};
use moire_verdict::finding::Finding;
use order::Timed;
pub use svg::svg;

const STYLE: &str = include_str!("style.css");

/// An execution, and what is to be seen in it.
pub struct Picture<'a> {
    /// All threads, in the order of the program.
    pub threads: &'a [String],
    /// What is shown.
    pub execution: &'a Execution,
    /// The two accesses that nothing orders, as positions of events.
    pub pair: Option<(usize, usize)>,
}

impl<'a> Picture<'a> {
    /// Marks the first of the findings whose instructions are two events of the execution.
    pub fn new(threads: &'a [String], execution: &'a Execution, findings: &[Finding]) -> Self {
        let pair = |f: &Finding| {
            let [a, b] = f.places.as_slice() else { return None };
            let pair = execution.pair(a, b)?;
            (f.verdict == "race" && pair.0 != pair.1).then_some(pair)
        };
        Picture { threads, execution, pair: findings.iter().find_map(pair) }
    }

    /// The events of threads, in an order of time.
    pub fn order(&self) -> Vec<usize> {
        Timed::new(self).order
    }

    /// Whether the event is one of the two.
    pub fn is_marked(&self, event: usize) -> bool {
        self.pair.is_some_and(|(a, b)| event == a || event == b)
    }
}

/// Line and instruction of an event.
fn place(event: &Event) -> String {
    let instruction = event.instruction.as_deref().unwrap_or_default();
    match event.line {
        0 => instruction.to_owned(),
        line => format!("{line}: {instruction}").trim_end_matches([':', ' ']).to_owned(),
    }
}

/// An execution that decides a verdict, in each form.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// What it shows, behind the number of the part where there are several: `race`, `part-1.hang`, `condition-0`.
    pub name: String,
    /// A page.
    pub html: String,
    /// The picture of it.
    pub svg: String,
    /// For Graphviz.
    pub dot: String,
}

/// Every execution of an answer that decides a verdict.
pub fn drawn(answer: &Answer) -> Vec<Drawn> {
    let number = |n: usize| if answer.parts.len() > 1 { format!("part-{n}.") } else { String::new() };
    let all = answer.parts.iter().enumerate();
    all.flat_map(|(n, part)| {
        drawn_of(answer, part).into_iter().map(move |d| Drawn { name: number(n) + &d.name, ..d })
    })
    .collect()
}

fn drawn_of(answer: &Answer, part: &Part) -> Vec<Drawn> {
    let conditions = part.conditions.iter().enumerate();
    let conditions = conditions.filter_map(|(i, c)| Some((format!("condition-{i}"), c.execution.as_ref()?)));
    // A race has always the same name: the first that was found.
    let name = |shows: &String| if shows.ends_with("-race") { "race".to_owned() } else { shows.clone() };
    let shown = part.executions.iter().flat_map(|e| e.shows.iter().map(move |s| (name(s), &e.execution)));
    let one = |(name, execution): (String, &Execution)| {
        let picture = Picture::new(&part.threads, execution, &part.findings);
        let title = format!("{}: {name}", answer.title());
        let hang = part.hang.as_ref().filter(|_| name == "hang");
        Drawn {
            html: page(&title, &text::wrong(answer, part), hang, &picture),
            svg: svg(&title, &picture),
            dot: show::dot(&part.threads, execution),
            name,
        }
    };
    conditions.chain(shown).map(one).collect()
}

/// A page about one execution. `says` are the lines that the terminal has about it.
pub fn page(title: &str, says: &str, hang: Option<&Hang>, picture: &Picture<'_>) -> String {
    let timed = Timed::new(picture);
    let rows: String = timed.order.iter().map(|e| row(picture, *e)).collect();
    let drawn = svg(title, picture);
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n<pre>{}</pre>\n{}<figure>{}</figure>\n<ol>{rows}</ol>\n{}\
         </body></html>\n",
        escape(&says.lines().map(|l| l.strip_prefix("  ").unwrap_or(l)).collect::<Vec<_>>().join("\n")),
        hang.map_or(String::new(), waits),
        drawn,
        legend()
    )
}

/// Who waits for what, and who is not there.
fn waits(hang: &Hang) -> String {
    let row = |w: &moire_verdict::waiting::Waits| {
        let line = if w.line > 0 { w.line.to_string() } else { String::new() };
        let cells = [w.thread.as_str(), &line, &w.at, &w.absent.join("; ")]
            .map(|c| format!("<td>{}</td>", escape(c)));
        format!("<tr>{}</tr>", cells.concat())
    };
    let rows: String = hang.waits.iter().map(row).collect();
    format!(
        "<table><thead><tr><th>waits</th><th>line</th><th>for</th><th>not there</th></tr></thead><tbody>{rows}</tbody></table>\n"
    )
}

fn row(picture: &Picture<'_>, e: usize) -> String {
    let event = &picture.execution.events[e];
    let from = picture.execution.edges.iter().find(|edge| edge.kind == "rf" && edge.to == e);
    let from =
        from.map_or(String::new(), |edge| format!(" from {}", picture.execution.events[edge.from].name()));
    format!(
        "<li{}><b>{}</b> {}{}<br><code>{}</code></li>\n",
        if picture.is_marked(e) { " class=\"bad\"" } else { "" },
        escape(event.thread.as_deref().unwrap_or("init")),
        escape(&what(event)),
        escape(&from),
        escape(&place(event))
    )
}

fn legend() -> String {
    let one = |(class, words): (&str, &str)| format!("<li class=\"{class}\">{words}</li>");
    let all = [
        ("rf", "rf: a read takes its value from this write"),
        ("co", "co: this write is before that one"),
        ("fr", "fr: the read is before a write that it did not see"),
        ("sync", "barriers that meet"),
        ("bad", "accesses that nothing orders"),
    ];
    format!("<ul class=\"legend\">{}</ul>", all.map(one).concat())
}
