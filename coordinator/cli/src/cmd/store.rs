//! `moire store`, `moire campaign`: what a store on this machine holds.

use super::serve;
use crate::args::{Campaigns, StoreCommand};
use crate::exit;
use anyhow::{Result, bail};
use moire_coordinator::v1::CampaignPhase;
use moire_coordinator::{CLASS_PREFIX, many};
use moire_corpus::{Options, Store, fsck, import};
use std::path::Path;

/// Opens an existing store.
pub(crate) fn open(dir: &Path) -> Result<Store> {
    if !dir.is_dir() {
        bail!("there is no store at {}; `moire fuzz` makes one, --store names another", dir.display());
    }
    Ok(Store::open(dir, Options { create: false, ..Options::default() })?.0)
}

pub(crate) fn campaigns(args: &Campaigns) -> Result<u8> {
    let (store, wanted) = match args {
        Campaigns::Create(new) => return serve::create(new),
        Campaigns::Pause(which) => return serve::control(which, CampaignPhase::Paused),
        Campaigns::Resume(which) => return serve::control(which, CampaignPhase::Running),
        Campaigns::Cancel(which) => return serve::control(which, CampaignPhase::Cancelled),
        Campaigns::List { store, remote } => match remote.link() {
            Some(link) => return serve::list(&link, None),
            None => (open(store)?, None),
        },
        Campaigns::Show { name, store, remote } => match remote.link() {
            Some(link) => return serve::list(&link, Some(name)),
            None => (open(store)?, Some(name)),
        },
    };
    if let Some(name) = wanted
        && store.campaign(name)?.is_none()
    {
        bail!("there is no campaign {name}; `moire campaign list` shows them");
    }
    for c in store.campaigns()?.iter().filter(|c| wanted.is_none_or(|n| *n == c.name)) {
        let p = store.progress(&c.name)?;
        let n = &p.counters;
        println!(
            "{} seed {} profile {}: {} programs, {} executions, {} claims",
            c.name,
            c.seed,
            c.profile,
            p.done(),
            n.executions,
            n.discrepancies
        );
        if wanted.is_some() {
            for (reason, n) in &n.abstentions {
                match reason.strip_prefix(CLASS_PREFIX) {
                    Some(class) => {
                        println!("  claimed   {n:8}  {}", class.split('/').next().unwrap_or(class))
                    }
                    None => println!("  abstained {n:8}  {reason}"),
                }
            }
            println!(
                "  canaries {} caught of {} planted\n  digest {}",
                n.canaries_caught,
                n.canaries_planted,
                store.digest(&c.name)?
            );
        }
    }
    Ok(exit::CLEAN)
}

pub(crate) fn run(args: &StoreCommand) -> Result<u8> {
    match args {
        StoreCommand::Fsck { repair, store } => {
            if !store.is_dir() {
                bail!("there is no store at {}", store.display());
            }
            let report = fsck(store, *repair)?;
            println!("{}, {}", many(report.commits, "commit"), many(report.bundles, "bundle"));
            report.records.iter().for_each(|(kind, n)| println!("  {n:8}  {kind}"));
            report.repairs.iter().for_each(|r| println!("repaired: {r}"));
            report.problems.iter().for_each(|p| println!("problem: {p}"));
            return Ok(if report.problems.is_empty() { exit::CLEAN } else { exit::FINDING });
        }
        StoreCommand::Export { out, store } => open(store)?.export(out)?,
        StoreCommand::Import { file, store } => import(file, store)?,
        StoreCommand::Backup { out, store } => open(store)?.backup(out)?,
        StoreCommand::Compact { store } => {
            let (before, after) = open(store)?.compact()?;
            println!("log {before} bytes, now {after}");
        }
    }
    Ok(exit::CLEAN)
}
