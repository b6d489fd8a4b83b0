//! `moire bench campaign`: how many distinct programs a campaign of each stream judges in a second of processor time, its oracles
//! and its store included.
//!
//! Contract: one worker for each stream, one after the other, each with a store of its own; processor time is that of this process and of
//! the compilers it has started. A row is a measurement, and nothing is asserted.

use crate::cost;
use anyhow::Result;
use moire_console::campaign::{self, Settings};
use moire_console::exit;
use moire_console::streams::StreamName;
use moire_console::time::duration;
use moire_coordinator::judged;
use moire_generate::Profile;
use moire_worker::job::Engine as _;
use moire_worker::oracle::{self, About, Abstention, LOWERING, Oracles, Takes};

#[derive(Debug, clap::Args)]
pub(crate) struct Campaign {
    /// Only these streams (repeatable)
    #[arg(long, value_parser = StreamName)]
    stream: Vec<Profile>,
    /// Time for each row
    #[arg(long = "for", default_value = "20s", value_name = "TIME")]
    time: String,
    /// Seed of the streams
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(args: &Campaign) -> Result<u8> {
    let time = duration(&args.time)?;
    let folder = std::env::temp_dir().join(format!("moire-campaign-{}", std::process::id()));
    let streams = if args.stream.is_empty() { Profile::ALL.to_vec() } else { args.stream.clone() };
    println!(
        "| stream | oracles | programs | judged | repeats | claims | processor time | judged a second |\n|---|---|---|---|---|---|---|---|"
    );
    for profile in streams {
        for oracles in rows(profile) {
            let settings = Settings {
                seed: args.seed,
                profile: profile.name().to_owned(),
                oracles: oracles.clone(),
                models: Vec::new(),
                programs: None,
                time: Some(time),
                settling: time,
                workers: 1,
                store: folder.clone(),
                device: None,
            };
            let before = spent()?;
            let totals = campaign::run(&settings, Box::new(|_| {}), &mut |_| {})?;
            let seconds = spent()? - before;
            std::fs::remove_dir_all(&folder)?;
            let status = &totals.status;
            let repeats = status.abstentions.get(&Abstention::REPEATED.to_string()).copied().unwrap_or(0);
            let (judged, claims) = (judged(status), totals.tally.claims.values().sum::<u64>());
            println!(
                "| {profile} | {} | {} | {judged} | {repeats} | {claims} | {seconds:.1} s | {:.1} |",
                if oracles.is_empty() { "all without a tool".to_owned() } else { oracles.join(", ") },
                status.programs,
                judged as f64 / seconds.max(0.01)
            );
            if totals.interrupted {
                return Ok(exit::INCOMPLETE);
            }
        }
    }
    Ok(exit::CLEAN)
}

/// Processor time of this process and of the compilers that it has started, in seconds.
fn spent() -> Result<f64> {
    let (own, children) = cost::processor_time()?;
    Ok(own + children)
}

/// The oracles of the rows of a stream: those without a tool together, each with a tool that is here alone.
fn rows(profile: Profile) -> Vec<Vec<String>> {
    let (takes, here) = (Takes::of_profile(profile.name()), Oracles::new().capabilities());
    let able = |about: &&About| about.tool.is_some_and(|tool| here.iter().any(|c| c == tool.capability));
    let tools = oracle::oracles().filter(|about| about.takes == takes).filter(able);
    let first = match takes {
        Takes::Programs => vec![Vec::new()],
        Takes::Kernels => vec![vec![LOWERING.name.to_owned()]],
        Takes::Sources => Vec::new(),
    };
    first.into_iter().chain(tools.map(|about| vec![about.name.to_owned()])).collect()
}
