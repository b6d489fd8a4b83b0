//! The live pages: the state of the coordinator; its findings with their graphs and replay lines.
//!
//! Contract: the pages are plain HTML and complete without the script, which only reloads them every few seconds.
//! Nothing is loaded from elsewhere; the content security policy forbids it. A request reads a bounded number of
//! records. A finding is shown as in the report ([`crate::report::page`]).

use super::rates::Rates;
use crate::Error;
use crate::clock::unix_ms;
use crate::core::{Core, readable};
use crate::lease::{WorkerId, WorkerView};
use crate::line;
use crate::report::page::{Full, SCRIPT, STYLE};
use crate::report::{dates, models};
use crate::service::Control;
use crate::spread::View;
use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, Response};
use axum::routing::get;
use moire_corpus::{CampaignState, Finding, FindingId, HashError};
use serde::Deserialize;

/// Most findings of one page.
const LISTED_MAX: usize = 100;
/// Most findings read for one page; a link leads to the next ones.
const SEARCHED_MAX: usize = 5_000;
/// Most campaigns and workers listed; open campaigns and busy workers come first.
const ROWS_MAX: usize = 200;
/// Longest search text, in bytes.
const TEXT_BYTES_MAX: usize = 200;
/// Time between two reloads by the script, in milliseconds.
const EVERY_MS: u32 = 2_000;

/// The headers sent with each page.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
             form-action 'self'; frame-ancestors 'none'",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

#[derive(Clone)]
struct Pages {
    control: Control,
    rates: Rates,
}

/// Builds the routes of the pages.
pub(super) fn router(control: Control) -> Router {
    let rates = Rates::watch(control.clone());
    Router::new()
        .route("/", get(overview))
        .route("/findings", get(list))
        .route("/findings/{id}", get(one))
        .route("/style.css", get(|| async { ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE) }))
        .route(
            "/script.js",
            get(|| async { ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT) }),
        )
        .fallback(nowhere)
        .layer(axum::middleware::from_fn(guarded))
        .with_state(Pages { control, rates })
}

/// The answer for a path that nothing is at.
async fn nowhere() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "404: nothing is here. The pages are / and /findings, metrics are at /metrics.\n")
}

async fn guarded(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    answer.headers_mut().extend(HEADERS);
    answer
}

fn shown(page: &impl Template) -> Result<Html<String>, Error> {
    page.render().map(Html).map_err(|e| tonic::Status::internal(e.to_string()).into())
}

struct CampaignRow {
    name: String,
    state: &'static str,
    done: u64,
    limit: Option<u64>,
    rate: String,
    executions: u64,
    claims: u64,
    abstained: u64,
    caught: u64,
    planted: u64,
}

struct ExplorationRow {
    id: String,
    state: &'static str,
    model: String,
    executions: u64,
    waiting: usize,
    leased: usize,
}

struct WorkerRow {
    id: WorkerId,
    name: String,
    capabilities: String,
    leases: usize,
    draining: bool,
    silent: String,
}

#[derive(Template)]
#[template(path = "live/overview.html")]
struct Overview {
    now: String,
    every: u32,
    workers: usize,
    leases: usize,
    queued: usize,
    waiting: u64,
    rate: String,
    executions: String,
    states: Vec<(String, u64)>,
    campaigns: Vec<CampaignRow>,
    explorations: Vec<ExplorationRow>,
    fleet: Vec<WorkerRow>,
    /// Workers that others contradicted.
    suspects: Vec<String>,
    /// What the store had and has no more.
    losses: Vec<String>,
    /// Records that are set aside, with the reasons.
    aside: Vec<(String, String)>,
}

/// Formats a rate: `12.5`, or `-` if it is not known yet.
fn number(rate: Option<f64>) -> String {
    rate.map_or_else(
        || "-".to_owned(),
        |r| if r < 100.0 { format!("{r:.1}") } else { crate::grouped(format!("{r:.0}")) },
    )
}

async fn overview(State(pages): State<Pages>) -> Result<Html<String>, Error> {
    let rates = pages.rates.clone();
    let look = move |core: &mut Core| -> Result<Overview, Error> {
        let mut states: Vec<_> = core.finding_states()?.counts().clone().into_iter().collect();
        states.sort_by_key(|(state, _)| ["open", "reopened"].iter().position(|s| s == state).unwrap_or(2));
        let (programs, executions) = rates.total();
        Ok(Overview {
            now: dates::minute(unix_ms()),
            every: EVERY_MS,
            workers: core.base.fleet.workers(),
            leases: core.base.fleet.leases(),
            queued: core.base.fleet.queued(),
            waiting: core.base.fleet.waiting(),
            rate: number(programs),
            executions: number(executions),
            states,
            campaigns: campaigns(core, &rates),
            explorations: core.spread.views().into_iter().map(exploration).collect(),
            fleet: fleet(core),
            suspects: core.base.suspects.all().take(ROWS_MAX).collect(),
            losses: core.base.store.losses().take(ROWS_MAX).map(ToString::to_string).collect(),
            aside: core.base.aside.each().take(ROWS_MAX).map(|(w, y)| (w.to_owned(), y.to_owned())).collect(),
        })
    };
    shown(&pages.control.call(look).await??)
}

fn campaigns(core: &Core, rates: &Rates) -> Vec<CampaignRow> {
    let (open, over): (Vec<_>, Vec<_>) = core.triage.runs.values().partition(|r| r.open());
    let rows = open.into_iter().chain(over).take(ROWS_MAX).map(|run| {
        let (name, counters) = (run.campaign.name.clone(), &run.progress.counters);
        CampaignRow {
            state: match run.campaign.state {
                CampaignState::Running => "running",
                CampaignState::Paused => "paused",
                CampaignState::Cancelled => "cancelled",
                CampaignState::Done => "done",
            },
            done: run.progress.done(),
            limit: run.campaign.limits.programs,
            rate: number(rates.of(&name)),
            executions: counters.executions,
            claims: counters.discrepancies,
            abstained: counters
                .abstentions
                .iter()
                .filter(|(k, _)| !k.starts_with(crate::CLASS_PREFIX))
                .fold(0, |sum, (_, n)| sum.saturating_add(*n)),
            caught: counters.canaries_caught,
            planted: counters.canaries_planted,
            name,
        }
    });
    rows.collect()
}

fn exploration(view: View) -> ExplorationRow {
    let View { id, state, model, executions, waiting, leased } = view;
    ExplorationRow { id: id.short(), state, model, executions, waiting, leased }
}

fn fleet(core: &Core) -> Vec<WorkerRow> {
    let now = core.base.now();
    let row = |w: WorkerView<'_>| WorkerRow {
        id: w.id,
        name: core.worker_name(w.id).to_owned(),
        capabilities: w.capabilities.iter().cloned().collect::<Vec<_>>().join(", "),
        leases: w.leases,
        draining: w.draining,
        silent: format!("{:.1} s", now.saturating_sub(w.heard_ms) as f64 / 1000.0),
    };
    let mut rows: Vec<WorkerRow> = core.base.fleet.each_worker().map(row).collect();
    rows.sort_by_key(|w| (std::cmp::Reverse(w.leases), w.id));
    rows.truncate(ROWS_MAX);
    rows
}

/// The query of a search for findings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Wanted {
    /// Words that the finding must contain.
    q: String,
    /// A state; empty: all.
    state: String,
    /// `no` leaves out differences between models.
    differences: String,
    /// Only findings after this id are listed.
    after: String,
}

impl Wanted {
    fn takes(&self, f: &Finding) -> bool {
        if !self.state.is_empty() && f.state.word() != self.state {
            return false;
        }
        if self.differences == "no" && f.rule == crate::report::DIFFERENCE {
            return false;
        }
        if self.q.trim().is_empty() {
            return true;
        }
        let axioms = f.axioms.concat().join(" ");
        let text =
            format!("{} {} {} {} {} {axioms} {}", f.id, f.oracle, f.rule, models(f), f.campaign, f.reduced);
        let text = text.to_lowercase();
        self.q.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

struct FindingRow {
    id: String,
    state: &'static str,
    rule: String,
    models: String,
    seen: String,
    last: String,
    shows: String,
}

#[derive(Template)]
#[template(path = "live/findings.html")]
struct List {
    wanted: Wanted,
    states: [&'static str; 5],
    rows: Vec<FindingRow>,
    /// The id after which the next page starts.
    more: Option<FindingId>,
    searched: usize,
}

async fn list(State(pages): State<Pages>, Query(wanted): Query<Wanted>) -> Result<Html<String>, Error> {
    if wanted.q.len() > TEXT_BYTES_MAX {
        let text = format!("a search has at most {TEXT_BYTES_MAX} bytes");
        return Err(tonic::Status::invalid_argument(text).into());
    }
    let after: Option<FindingId> = match wanted.after.as_str() {
        "" => None,
        id => Some(id.parse().map_err(|e: HashError| tonic::Status::invalid_argument(e.to_string()))?),
    };
    let asked = wanted.clone();
    let look = move |core: &mut Core| -> Result<(Vec<Finding>, Option<FindingId>, usize), Error> {
        let (mut found, mut searched) = (Vec::new(), 0);
        for finding in core.base.store.findings_behind(after.as_ref()) {
            searched += 1;
            let Some(finding) = readable(finding)? else { continue };
            let id = finding.id;
            if asked.takes(&finding) {
                found.push(finding);
            }
            if found.len() >= LISTED_MAX || searched >= SEARCHED_MAX {
                return Ok((found, Some(id), searched));
            }
        }
        Ok((found, None, searched))
    };
    let (found, more, searched) = pages.control.call(look).await??;
    let row = |f: &Finding| FindingRow {
        id: f.id.short(),
        state: f.state.word(),
        rule: format!("{} {}", f.oracle, f.rule),
        models: models(f),
        seen: f.sightings(),
        last: dates::minute(f.last_seen_ms),
        shows: f.allowed().unwrap_or_default(),
    };
    let rows = found.iter().map(row).collect();
    let states = ["open", "reopened", "fixed", "invalid", "duplicate"];
    shown(&List { wanted, states, rows, more, searched })
}

#[derive(Template)]
#[template(path = "live/finding.html")]
struct One<'a> {
    id: String,
    state: &'static str,
    what: String,
    full: Full<'a>,
}

async fn one(State(pages): State<Pages>, Path(id): Path<String>) -> Result<Html<String>, Error> {
    let mut finding = pages.control.call(move |core| core.named(&id)).await??;
    finding.replay = line::command(&finding);
    let what = format!("{} {}, {}", finding.oracle, finding.rule, models(&finding));
    let full = Full::new(&finding, unix_ms());
    let page = One { id: finding.id.short(), state: finding.state.word(), what, full };
    shown(&page)
}
