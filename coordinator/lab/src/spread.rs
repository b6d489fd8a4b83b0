//! `moire bench spread`: measures how evenly workers share one exploration over gRPC on this machine.
//!
//! Contract: a coordinator and workers of one thread each talk over loopback. If the totals or the sum of the
//! executions' digests differ from those of one thread alone, that is a finding. The balance depends on the machine:
//! `skew` is the number of checks of the busiest worker over the mean.

use anyhow::{Context, Result, bail};
use moire_cat::{Model, Variants};
use moire_console::control::{connect, runtime, said};
use moire_console::input::load_model;
use moire_console::{campaign, exit};
use moire_coordinator::{Local, lease, v1};
use moire_explore::search::LeafView;
use moire_explore::{Limits, Summary, explore};
use moire_generate::families::named;
use moire_program::text::{Format, parse};
use moire_worker::oracle::Oracles;
use moire_worker::piece::tree;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

#[derive(Debug, clap::Args)]
pub(crate) struct Spread {
    /// Workers of one thread each
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
    /// Family of programs; see `moire bench families`
    #[arg(long, default_value = "lbf")]
    family: String,
    /// Size of the program
    #[arg(long, default_value_t = 20)]
    size: usize,
    /// A skew above this is a finding
    #[arg(long, default_value_t = 1.3)]
    skew: f64,
}

/// The totals of an exploration.
#[derive(Debug, PartialEq, Eq)]
struct Sum {
    complete: u64,
    blocked: u64,
    dead_ends: u64,
    digest: u64,
}

pub(crate) fn run(args: &Spread) -> Result<u8> {
    let family = named(&args.family).with_context(|| format!("`{}` is not a family", args.family))?;
    let text = family.text(args.size);
    let program = parse(&text, Format::Native)?;
    let model = load_model("ptx", &Variants::new())?;
    let begin = Instant::now();
    let mut digest = 0u64;
    let alone = explore(&program, &model, &[], &Limits::default(), &mut |leaf: &mut dyn LeafView| {
        digest = digest.wrapping_add(leaf.digest());
        ControlFlow::Continue(())
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    let Summary { complete, blocked, dead_ends, checks, .. } = alone;
    let one = Sum { complete, blocked, dead_ends, digest };
    println!(
        "{:>8} {:>8} {:>12} {:>12} {:>12} {:16} {:>6}",
        "workers", "pieces", "executions", "checks", "seconds", "digest", "skew"
    );
    println!("{:>8} {:>8} {complete:>12} {checks:>12} {seconds:>12.2} {digest:016x} {:>6}", "alone", "", "");
    let folder = std::env::temp_dir().join(format!("moire-spread-{}", std::process::id()));
    let runtime = runtime()?;
    let begin = Instant::now();
    let shared = runtime.block_on(shared(args, text, &model, &folder));
    let seconds = begin.elapsed().as_secs_f64();
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    // A folder that cannot be removed does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    let status = shared?;
    let all = status.explored.unwrap_or_default();
    let busiest = status.checks.values().copied().max().unwrap_or(0);
    let skew = busiest as f64 * f64::from(args.workers) / all.checks.max(1) as f64;
    println!(
        "{:>8} {:>8} {:>12} {:>12} {seconds:>12.2} {:016x} {skew:>6.2}",
        args.workers, status.leases, all.complete, all.checks, all.digest
    );
    let many =
        Sum { complete: all.complete, blocked: all.blocked, dead_ends: all.dead_ends, digest: all.digest };
    if many != one {
        eprintln!("one thread alone: {one:?}; together: {many:?}");
        return Ok(exit::FINDING);
    }
    Ok(if skew > args.skew { exit::FINDING } else { exit::CLEAN })
}

async fn shared(args: &Spread, program: String, model: &Model, folder: &Path) -> Result<v1::ExploreStatus> {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let here = Local::start(folder, anywhere, lease::Config::default()).await?;
    let engine = Arc::new(Oracles::new());
    campaign::workers(here.addr(), &engine, usize::from(args.workers));
    let asked = v1::Exploration {
        program,
        model: "ptx".to_owned(),
        switches: model.variants().clone(),
        fingerprint: blake3::hash(model.canonical_text().as_bytes()).as_bytes().to_vec(),
        tree: tree().to_owned(),
        loop_bound: Limits::default().loop_bound,
        ..v1::Exploration::default()
    };
    let mut client = connect(&here.addr().into()).await?;
    let mut stream = client.explore(asked).await.map_err(said)?.into_inner();
    while let Some(status) = stream.message().await.map_err(said)? {
        if status.over {
            here.stop().await?;
            return Ok(status);
        }
    }
    bail!("the coordinator ended before the exploration")
}
