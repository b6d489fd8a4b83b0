//! `moire top`: shows in a terminal what a running coordinator is doing: workers, queue, rates, campaigns.
//!
//! Contract: it only reads, once a second. If stdout is no terminal, or with --once, it prints one snapshot as text. Names
//! come from the coordinator and are shown without control characters. States are shown as words, not by colour alone.

use crate::remote::Remote;
use anyhow::{Context, Result};
use clap::Args;
use moire_console::control::{connect, runtime, said};
use moire_console::exit;
use moire_coordinator::many;
use moire_coordinator::nightly::Client;
use moire_coordinator::v1;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Cell, Row, Table};
use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) remote: Remote,
    /// Print one snapshot as text
    #[arg(long)]
    pub(crate) once: bool,
}

/// Time between two snapshots.
const EVERY: Duration = Duration::from_secs(1);
/// Snapshots over which rates are taken.
const KEPT: usize = 10;
/// Longest wait for the coordinator.
const PATIENCE: Duration = Duration::from_secs(5);
const HEAD: [&str; 7] = ["CAMPAIGN", "STATE", "PROGRAMS", "A SECOND", "EXECUTIONS", "FINDINGS", "CANARIES"];
const WIDTHS: [u16; 7] = [36, 9, 19, 9, 14, 8, 9];

/// One answer of the coordinator.
struct Look {
    at: Instant,
    status: v1::Status,
    campaigns: Vec<v1::CampaignStatus>,
}

pub(crate) fn run(args: &Top) -> Result<u8> {
    let runtime = runtime()?;
    let mut client = runtime.block_on(connect(&args.remote.link()))?;
    let mut looks = VecDeque::from([runtime.block_on(look(&mut client))?]);
    if args.once || !std::io::stdout().is_terminal() {
        print!("{}", text(&looks));
        return Ok(exit::CLEAN);
    }
    let mut terminal = ratatui::try_init().context("this terminal cannot be drawn on; try --once")?;
    let shown = loop {
        if let Err(error) = terminal.draw(|frame| draw(frame, &looks)) {
            break Err(error.into());
        }
        match quit() {
            Ok(true) => break Ok(exit::CLEAN),
            Ok(false) => {}
            Err(error) => break Err(error.into()),
        }
        match runtime.block_on(look(&mut client)) {
            Ok(look) => looks.push_back(look),
            Err(error) => break Err(error),
        }
        while looks.len() > KEPT {
            looks.pop_front();
        }
    };
    ratatui::restore();
    shown
}

/// Waits until the next snapshot; true: the user quits.
fn quit() -> std::io::Result<bool> {
    let end = Instant::now() + EVERY;
    while event::poll(end.saturating_duration_since(Instant::now()))? {
        if let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let control = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            if control || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

async fn look(client: &mut Client) -> Result<Look> {
    let ask = async {
        let status = client.get_status(v1::GetStatusRequest {}).await?.into_inner();
        let campaigns = client.list_campaigns(v1::ListCampaignsRequest {}).await?.into_inner().campaigns;
        Ok::<_, tonic::Status>(Look { at: Instant::now(), status, campaigns })
    };
    let answer = tokio::time::timeout(PATIENCE, ask).await.context("the coordinator does not answer")?;
    answer.map_err(said)
}

/// Growth of a number per second, over the answers kept.
fn rate(looks: &VecDeque<Look>, of: impl Fn(&Look) -> Option<u64>) -> String {
    let grown = || {
        let (first, last) = (looks.front()?, looks.back()?);
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let grown = of(last)?.saturating_sub(of(first)?);
        (seconds > 0.0).then(|| grown as f64 / seconds)
    };
    grown().map_or_else(|| "-".to_owned(), |r| format!("{r:.1}"))
}

fn programs(look: &Look, name: &str) -> Option<u64> {
    let named = |c: &&v1::CampaignStatus| c.spec.as_ref().is_some_and(|s| s.name == name);
    Some(look.campaigns.iter().find(named)?.programs)
}

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// One row a campaign, open ones first.
fn rows(looks: &VecDeque<Look>) -> Vec<[String; 7]> {
    let Some(last) = looks.back() else { return Vec::new() };
    let mut campaigns: Vec<&v1::CampaignStatus> = last.campaigns.iter().collect();
    campaigns.sort_by_key(|c| c.phase);
    let row = |c: &v1::CampaignStatus| {
        let spec = c.spec.clone().unwrap_or_default();
        let open = c.phase < i32::from(v1::CampaignPhase::Cancelled);
        let limit = if spec.programs == 0 { String::new() } else { format!(" of {}", spec.programs) };
        [
            plain(&spec.name),
            format!("{:?}", c.phase()).to_lowercase(),
            format!("{}{limit}", c.programs),
            if open { rate(looks, |l| programs(l, &spec.name)) } else { String::new() },
            c.executions.to_string(),
            c.findings.to_string(),
            format!("{}/{}", c.canaries_caught, c.canaries_planted),
        ]
    };
    campaigns.into_iter().map(row).collect()
}

fn head(looks: &VecDeque<Look>) -> String {
    let Some(last) = looks.back() else { return String::new() };
    let all = rate(looks, |l| Some(l.campaigns.iter().map(|c| c.programs).sum()));
    let s = &last.status;
    format!(
        "{}   {} out   {} waiting   {all} programs a second",
        many(s.workers, "worker"),
        many(s.leases, "lease"),
        many(s.queued, "job")
    )
}

fn text(looks: &VecDeque<Look>) -> String {
    let line = |cells: [String; 7]| {
        let cells = cells
            .iter()
            .zip(WIDTHS)
            .map(|(cell, width)| format!("{cell:width$}", width = usize::from(width)));
        format!("{}\n", cells.collect::<Vec<_>>().join(" ").trim_end())
    };
    let rows: String = rows(looks).into_iter().map(line).collect();
    format!("{}\n{}{rows}", head(looks), line(HEAD.map(str::to_owned)))
}

fn draw(frame: &mut Frame<'_>, looks: &VecDeque<Look>) {
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(3), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Line::from(head(looks)).bold(), top);
    let style = |state: &str| match state {
        "running" => Style::new().green(),
        "paused" => Style::new().yellow(),
        _ => Style::new().dim(),
    };
    let row = |cells: [String; 7]| {
        Row::new(cells.map(|c| {
            let style = if ["running", "paused", "cancelled", "done"].contains(&c.as_str()) {
                style(&c)
            } else {
                Style::new()
            };
            Cell::from(c).style(style)
        }))
    };
    let widths = WIDTHS.map(Constraint::Length);
    let table = Table::new(rows(looks).into_iter().map(row), widths)
        .header(Row::new(HEAD).bold())
        .block(Block::new().borders(Borders::TOP | Borders::BOTTOM));
    frame.render_widget(table, middle);
    frame.render_widget(Line::from("q leaves").dim(), bottom);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn looks() -> VecDeque<Look> {
        let start = Instant::now();
        let campaign = |name: &str, phase: v1::CampaignPhase, programs| v1::CampaignStatus {
            spec: Some(v1::CampaignSpec {
                name: name.to_owned(),
                programs: 900,
                ..v1::CampaignSpec::default()
            }),
            phase: phase.into(),
            programs,
            executions: 7_000,
            ..v1::CampaignStatus::default()
        };
        let look = |n: u64| Look {
            at: start + Duration::from_secs(n),
            status: v1::Status { workers: 3, leases: 5, queued: 2, ..v1::Status::default() },
            campaigns: vec![
                campaign("over\u{1b}[2J", v1::CampaignPhase::Done, 900),
                campaign("under-way", v1::CampaignPhase::Running, n * 40),
            ],
        };
        (0..6).map(look).collect()
    }

    #[test]
    fn open_campaigns_come_first_with_their_rates() {
        let text = text(&looks());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "3 workers   5 leases out   2 jobs waiting   40.0 programs a second");
        assert!(
            lines[2].starts_with("under-way") && lines[2].contains("200 of 900") && lines[2].contains("40.0")
        );
        assert!(lines[3].starts_with("over[2J ") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_small_terminal_is_drawn_on() {
        for (width, height) in [(120, 20), (20, 3), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &looks())).unwrap();
            let drawn: String = terminal.backend().buffer().content().iter().map(|c| c.symbol()).collect();
            assert!(width < 100 || drawn.contains("under-way") && drawn.contains("q leaves"), "{drawn}");
        }
    }
}
