//! The summary in Markdown, for mail, pull requests and pipeline pages.

use super::{Night, Row, Table, dates};
use crate::{Plain, grouped};
use moire_corpus::Since;
use std::fmt::Write;

/// Most findings listed of each kind of change.
const LISTED: usize = 20;

pub(super) fn markdown(night: &Night, table: &Table, rows: &[Row<'_>]) -> String {
    let mut out = format!("# Moiré, {}\n\n", dates::minute(night.at_ms));
    let mut line = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a string takes all text");
    match &night.last {
        Some(last) => line(format_args!("Compared with {}.\n\n", dates::minute(last.at_ms))),
        None => line(format_args!("First report of this store: everything open is new.\n\n")),
    }
    for loss in &night.losses {
        line(format_args!("**LOST**: {}\n\n", cell(loss)));
    }
    let (counts, suppressed) = table.counts();
    line(format_args!("| findings | |\n|---|---:|\n"));
    for (since, n) in counts {
        line(format_args!("| {} | {n} |\n", since.word()));
    }
    line(format_args!("| suppressed | {suppressed} |\n"));
    let regressions = table.regressions;
    line(format_args!("| fixed, and holds | {} |\n", regressions.held));
    line(format_args!("| fixed, not re-tested | {} |\n", regressions.untested));
    for score in &night.scores {
        let grade = format!("{:?}", score.grade).to_uppercase();
        line(format_args!("\n**{}**: {} ({})\n", cell(&score.name), cell(&score.says), grade.to_lowercase()));
    }
    for (kind, all) in Since::ALL.into_iter().zip(table.kinds()) {
        if all > 0 {
            line(format_args!("\n## {} ({all})\n\n", kind.word()));
        }
        for row in rows.iter().filter(|r| r.since == kind).take(LISTED) {
            let (f, note) = (row.finding, row.note());
            let note = if note.is_empty() { String::new() } else { format!(": {}", cell(&note)) };
            let models = cell(&row.models());
            line(format_args!("- `{}` {} {} {models}{note}\n", f.id.short(), cell(&f.oracle), cell(&f.rule)));
        }
        if all > LISTED {
            line(format_args!("- and {} more\n", all - LISTED));
        }
    }
    if !night.campaigns.is_empty() {
        line(format_args!(
            "\n## Campaigns\n\n| campaign | programs | in all | executions | |\n|---|---:|---:|---:|---|\n"
        ));
    }
    for c in &night.campaigns {
        line(format_args!(
            "| {} | {} | {} | {} | {} |\n",
            cell(&c.name),
            grouped(c.programs.0),
            grouped(c.programs.1),
            grouped(c.executions),
            cell(&c.cut)
        ));
    }
    out
}

/// Escapes text for a Markdown table, and for a terminal that shows it.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in Plain(text).to_string().chars() {
        match c {
            '\n' | '\r' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
