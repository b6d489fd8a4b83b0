//! `moire nightly`: campaigns with a budget, every open and fixed finding run again, a report against the night before.
//!
//! Contract: the coordinator is one in this process, or one that runs. Budgets are counts; the clock only stops what is
//! under way. Nothing is recorded as reported before the report is written.

mod plan;

use crate::args::{FailOn, Nightly};
use crate::remote::connect;
use crate::{exit, local, scores};
use anyhow::{Context, Result};
use moire_coordinator::nightly::{self, Client, Plan, Stop};
use moire_coordinator::report::{Findings, Grade, Night, Row, dates};
use moire_coordinator::{Local, lease};
use moire_corpus::Since;
use moire_worker::job::Cancel;
use moire_worker::link::Link;
use moire_worker::oracle::Oracles;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) fn run(args: &Nightly) -> Result<u8> {
    let engine = Arc::new(Oracles::new());
    let plan = plan::new(args, &*engine)?;
    let stop = stop(args.time.as_deref().map(super::fuzz::duration).transpose()?);
    let runtime = super::serve::runtime()?;
    let night = runtime.block_on(async {
        let Some(address) = args.coordinator.clone() else {
            let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let here = Local::start(&args.store, anywhere, lease::Config::default()).await?;
            here.announce(|f| eprintln!("{}", local::announcement(f))).await?;
            local::workers(here.addr(), &engine, args.workers.unwrap_or_else(super::processors));
            let night = night(connect(&here.addr().into()).await?, &plan, &stop, &args.out).await;
            here.stop().await?;
            return night;
        };
        let link = Link::new(address, args.certs.certs.clone());
        night(connect(&link).await?, &plan, &stop, &args.out).await
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let night = night?;
    summary(&night, &args.out);
    Ok(code(&night, args.fail_on))
}

/// The whole night, its report written and recorded.
async fn night(mut client: Client, plan: &Plan, stop: &Stop, out: &Path) -> Result<Night> {
    let night = nightly::run(&mut client, plan, stop, scores::of, |text| eprintln!("{text}")).await?;
    write(&night, &night.findings, out)?;
    nightly::close(&mut client, &night).await?;
    Ok(night)
}

/// Stops when the time is over, or on Ctrl-C.
fn stop(time: Option<Duration>) -> Stop {
    let interrupt = Cancel::new();
    super::on_interrupt(interrupt.clone());
    let start = Instant::now();
    Arc::new(move || match time {
        _ if interrupt.is_cancelled() => Some("it was interrupted"),
        Some(time) if start.elapsed() >= time => Some("the time of --for was over"),
        _ => None,
    })
}

/// Writes the files of a report into `out`.
pub(crate) fn write(night: &Night, findings: &dyn Findings, out: &Path) -> Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    let path = out.join("findings.jsonl");
    let failed = || format!("cannot write {}", path.display());
    let mut lines = BufWriter::new(File::create(&path).with_context(failed)?);
    let files = night.write(findings, &mut lines)?;
    lines.flush().with_context(failed)?;
    println!("{}", path.display());
    for (name, text) in files {
        let path = out.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

fn summary(night: &Night, out: &Path) {
    let rows = night.rows();
    match &night.last {
        Some(last) => println!("compared with {}:", dates::minute(last.at_ms)),
        None => println!("the first report of this store: everything open is new"),
    }
    for since in Since::ALL {
        let n = rows.iter().filter(|r| r.since == since && r.suppressed.is_none()).count();
        println!("{n:6}  {}", since.word());
    }
    println!("{:6}  suppressed", rows.iter().filter(|r| r.suppressed.is_some()).count());
    for row in rows.iter().filter(|r| r.fails()) {
        println!("{} {} {}: {}", row.since.word(), row.finding.id.short(), row.models(), row.note());
    }
    for score in &night.scores {
        let alarm = if score.grade == Grade::Alarm { "ALARM: " } else { "" };
        println!("{alarm}{}: {}", score.name, score.says);
    }
    println!("see {}", out.join("report.html").display());
}

/// 10: something failed the night. 11: something was not tested, or a campaign was cut short. 0: neither.
fn code(night: &Night, fail_on: FailOn) -> u8 {
    let rows = night.rows();
    let fails = |row: &Row<'_>| row.fails() || (fail_on == FailOn::Open && row.open());
    let silent = |row: &Row<'_>| row.since == Since::NotRetested && row.suppressed.is_none();
    let cut = night.campaigns.iter().any(|c| !c.cut.is_empty());
    match () {
        () if rows.iter().any(fails) || night.alarm() => exit::FINDING,
        () if rows.iter().any(silent) || cut || night.regressions().untested > 0 => exit::INCOMPLETE,
        () => exit::CLEAN,
    }
}
