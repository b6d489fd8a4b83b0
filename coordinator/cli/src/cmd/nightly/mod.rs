//! `moire nightly`: campaigns with a budget, every open and fixed finding run again, a report against the night before.
//!
//! Contract: the coordinator is one in this process, or one that runs. Budgets are counts; the clock only stops what is
//! under way. Nothing is recorded as reported before the report is written.

mod args;
mod plan;

use super::findings::why;
use crate::interrupt::on_interrupt;
use crate::scores;
use anyhow::{Context, Result};
use moire_console::control::connect;
use moire_console::output::Format;
use moire_console::{campaign, claim, exit, stored};
use moire_coordinator::nightly::{self, Client, NightPlan, Stop};
use moire_coordinator::report::{Grade, Night, Outcome, dates};
use moire_coordinator::{Local, lease};
use moire_corpus::Since;
use moire_worker::job::Cancel;
use moire_worker::link::Link;
use moire_worker::oracle::Oracles;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use args::{FailOn, Nightly};

pub(crate) fn run(args: &Nightly) -> Result<u8> {
    let engine = Arc::new(Oracles::with_device(args.lent.host()?));
    let plan = plan::new(args, &*engine)?;
    let stop = stop(args.time.as_deref().map(moire_console::time::duration).transpose()?);
    let runtime = moire_console::control::runtime()?;
    let night = runtime.block_on(async {
        let Some(address) = args.coordinator.clone() else {
            let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let here = Local::start(&args.store, anywhere, lease::Config::default()).await?;
            stored::say(&args.store, here.recovery(), here.losses());
            here.announce(|f| eprintln!("{}", claim::announcement(f))).await?;
            campaign::workers(here.addr(), &engine, args.workers.unwrap_or_else(moire_console::processors));
            let night = night(connect(&here.addr().into()).await?, &plan, &stop, &args.out).await;
            here.stop().await?;
            return night;
        };
        let link = Link::new(address, args.certs.certs.clone());
        night(connect(&link).await?, &plan, &stop, &args.out).await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let (night, outcome) = night?;
    match args.format {
        Format::Text => summary(&night, &outcome, &args.out),
        format => print!("{}", std::fs::read_to_string(args.out.join(stored::file(format)))?),
    }
    Ok(code(&night, &outcome, args.fail_on))
}

/// The whole night, its report written and recorded.
async fn night(mut client: Client, plan: &NightPlan, stop: &Stop, out: &Path) -> Result<(Night, Outcome)> {
    let place = tempfile::tempfile().context("no place for the findings of the night")?;
    let tell = |text: &str| eprintln!("{text}");
    let (night, findings) = nightly::run(&mut client, plan, stop, place, scores::of, tell).await?;
    let paths = stored::write(&night, &findings, out)?;
    paths.iter().for_each(|path| eprintln!("{}", path.display()));
    nightly::close(&mut client, &night).await?;
    let outcome = night.outcome(&findings, &why)?;
    Ok((night, outcome))
}

/// Stops when the time is over, or on Ctrl-C.
fn stop(time: Option<Duration>) -> Stop {
    let interrupt = Cancel::new();
    on_interrupt(interrupt.clone());
    let start = Instant::now();
    Arc::new(move || match time {
        _ if interrupt.is_cancelled() => Some("it was interrupted"),
        Some(time) if start.elapsed() >= time => Some("the time of --for was over"),
        _ => None,
    })
}

fn summary(night: &Night, outcome: &Outcome, out: &Path) {
    match &night.last {
        Some(last) => println!("compared with {}:", dates::minute(last.at_ms)),
        None => println!("the first report of this store: everything open is new"),
    }
    for since in Since::ALL {
        let fewer = match outcome.differences {
            n if n > 0 && since == Since::New => {
                format!(", of which {n} between models or readings fail nothing")
            }
            _ => String::new(),
        };
        println!("{:6}  {}{fewer}", outcome.counts.get(&since).unwrap_or(&0), since.word());
    }
    println!("{:6}  suppressed", outcome.suppressed);
    outcome.named.values().for_each(|line| println!("{line}"));
    match outcome.failing - outcome.named.len() {
        0 => {}
        more => println!("and {more} more"),
    }
    for score in &night.scores {
        let alarm = if score.grade == Grade::Alarm { "ALARM: " } else { "" };
        println!("{alarm}{}: {}", score.name, score.says);
    }
    night.losses.iter().for_each(|loss| println!("LOST: {loss}"));
    println!("see {}", out.join("report.html").display());
}

/// 10: something failed the night. 11: something was lost or not tested, or a campaign was cut short. 0: neither.
fn code(night: &Night, outcome: &Outcome, fail_on: FailOn) -> u8 {
    let fails = outcome.failing > 0 || (fail_on == FailOn::Open && outcome.open);
    let cut = night.campaigns.iter().any(|c| !c.cut.is_empty());
    match () {
        () if fails || night.alarm() => exit::FINDING,
        () if !night.losses.is_empty() || outcome.silent || cut || outcome.regressions.untested > 0 => {
            exit::INCOMPLETE
        }
        () => exit::CLEAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_coordinator::report::{CampaignLine, DIFFERENCE, Score};
    use moire_corpus::{Counters, Finding, FindingState, Hash, Retest, Snapshot, Suppression};

    /// A finding that was last seen and last tested at these times.
    fn finding(seen: u64, tested: u64) -> Finding {
        Finding { id: Hash([7; 32]), last_seen_ms: seen, last_tested_ms: tested, ..Finding::default() }
    }

    /// The night at 10 after a report at 5, in which the finding was open.
    fn after(finding: Finding) -> Night {
        let last =
            Some(Snapshot::of(5, [&Finding { id: finding.id, ..Finding::default() }], Counters::default()));
        Night { at_ms: 10, findings: vec![finding], last, ..Night::default() }
    }

    fn codes(night: &Night) -> (u8, u8) {
        let outcome = night.outcome(&night.findings, &why).unwrap();
        (code(night, &outcome, FailOn::New), code(night, &outcome, FailOn::Open))
    }

    #[test]
    fn findings_decide_the_exit_code() {
        let run = |seen, held| Some(Retest { at_ms: 9, seen, held, ..Retest::default() });
        let until = |until_ms| Some(Suppression { until_ms, ..Suppression::default() });
        let fixed = |retest| Finding { state: FindingState::Fixed, retest, ..finding(3, 9) };
        let first = |f: Finding| Night { last: None, ..after(f) };
        let cases = [
            ("nothing", Night::default(), (0, 0)),
            ("new", first(finding(9, 9)), (10, 10)),
            ("a new difference", first(Finding { rule: DIFFERENCE.to_owned(), ..finding(9, 9) }), (0, 0)),
            ("new and suppressed", first(Finding { suppressed: until(20), ..finding(9, 9) }), (0, 0)),
            ("its suppression is over", after(Finding { suppressed: until(8), ..finding(9, 9) }), (10, 10)),
            ("still there", after(finding(9, 9)), (0, 10)),
            ("still there, suppressed", after(Finding { suppressed: until(20), ..finding(9, 9) }), (0, 0)),
            ("flaky", after(Finding { retest: run(1, 2), ..finding(9, 9) }), (10, 10)),
            ("gone", after(fixed(run(0, 3))), (0, 0)),
            ("not tested", after(finding(3, 3)), (11, 10)),
            ("not tested, suppressed", after(Finding { suppressed: until(20), ..finding(3, 3) }), (0, 0)),
            (
                "fixed and not tested",
                Night { last: Some(Snapshot::default()), ..after(fixed(None)) },
                (11, 11),
            ),
            ("marked invalid", after(Finding { state: FindingState::Invalid, ..finding(3, 3) }), (0, 0)),
        ];
        for (what, night, expected) in cases {
            assert_eq!(codes(&night), expected, "{what}");
        }
    }

    #[test]
    fn new_differences_between_models_are_counted_apart() {
        let difference = Finding { rule: DIFFERENCE.to_owned(), ..finding(9, 9) };
        let other = Finding { id: Hash([8; 32]), ..finding(9, 9) };
        let night = Night { findings: vec![difference, other], last: None, ..after(finding(9, 9)) };
        let outcome = night.outcome(&night.findings, &why).unwrap();
        assert_eq!((outcome.counts[&Since::New], outcome.differences, outcome.failing), (2, 1, 1));
    }

    #[test]
    fn what_fails_is_listed_with_what_is_wrong() {
        let (oracle, rule) = ("model-pair".to_owned(), "subset".to_owned());
        let axioms = vec![vec!["causality".to_owned()]];
        let night = after(Finding { oracle, rule, axioms, suppressed: None, ..finding(9, 9) });
        let night = Night { last: None, ..night };
        let outcome = night.outcome(&night.findings, &why).unwrap();
        let lines: Vec<&String> = outcome.named.values().collect();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("new 0707070707070707 model-pair subset "), "{lines:?}");
        assert!(lines[0].contains(": decided by causality"), "{lines:?}");
    }

    #[test]
    fn a_night_that_was_cut_or_blind_says_so() {
        let campaign = |cut: &str| CampaignLine { cut: cut.to_owned(), ..CampaignLine::default() };
        let score = |grade| vec![Score { name: "canaries".to_owned(), grade, says: String::new() }];
        let cut = Night { campaigns: vec![campaign(""), campaign("it was interrupted")], ..Night::default() };
        assert_eq!(codes(&cut), (11, 11));
        assert_eq!(codes(&Night { campaigns: vec![campaign("")], ..Night::default() }), (0, 0));
        for (grade, expected) in [(Grade::Good, 0), (Grade::Unsure, 0), (Grade::Alarm, 10)] {
            assert_eq!(codes(&Night { scores: score(grade), ..Night::default() }), (expected, expected));
            // A night on a store that lost something is not whole.
            let lost = Night { losses: vec!["a commit".to_owned()], ..Night::default() };
            assert_eq!(codes(&lost), (11, 11));
            // What fails is said before what is missing.
            let both = Night { scores: score(grade), ..cut.clone() };
            assert_eq!(codes(&both).0, if expected == 10 { 10 } else { 11 });
        }
    }
}
