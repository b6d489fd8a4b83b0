//! `moire store`, `moire findings`, `moire campaign`: what a store on this machine holds.

use super::serve;
use crate::args::{Campaigns, Findings, StoreCommand};
use crate::days;
use crate::{exit, local};
use anyhow::{Context, Result, anyhow, bail};
use moire_coordinator::CLASS_PREFIX;
use moire_coordinator::v1::CampaignPhase;
use moire_corpus::{Finding, Mark, Options, Store, fsck, import};
use moire_worker::oracle::{ASSEMBLER_CAPABILITY, COMPILER_CAPABILITY};
use std::path::Path;

/// Opens an existing store.
pub(crate) fn open(dir: &Path) -> Result<Store> {
    if !dir.is_dir() {
        bail!("there is no store at {}; `moire fuzz` makes one, --store names another", dir.display());
    }
    Ok(Store::open(dir, Options { create: false, ..Options::default() })?.0)
}

/// A finding for people: what disagrees, the axioms, the program, the line that replays it.
pub(crate) fn show_finding(f: &Finding) -> String {
    let models: Vec<String> = local::claim_of(f).models.iter().map(local::spec_of).collect();
    let axioms: Vec<String> = f.axioms.iter().map(|set| set.join(" + ")).collect();
    let why = if axioms.is_empty() { String::new() } else { format!(", decided by {}", axioms.join(" or ")) };
    let allowed = f.allowed().map(|said| format!("    {said}\n")).unwrap_or_default();
    let program: String = f.reduced.lines().map(|l| format!("    {l}\n")).collect();
    format!(
        "  {} {} {} {}{why}, seen {}, {}\n{allowed}{program}    {}\n",
        f.id.short(),
        f.oracle,
        f.rule,
        models.join(" / "),
        f.sightings(),
        f.state.words(),
        local::replay_line(f)
    )
}

pub(crate) fn findings(args: &Findings) -> Result<u8> {
    match args {
        Findings::List { store } => {
            for f in open(store)?.findings() {
                let f = f?;
                let models: Vec<&str> = f.models.iter().map(|m| m.name.as_str()).collect();
                println!(
                    "{} {:10} {:12} {:10} {:16} {}",
                    f.id.short(),
                    f.state.words(),
                    f.oracle,
                    f.rule,
                    models.join("/"),
                    f.count
                );
            }
        }
        Findings::Show { id, store } => {
            let f = open(store)?.named(id)?;
            print!("{}", show_finding(&f));
            for change in &f.history {
                println!("  {} by {}: {}", change.to.words(), change.who, change.why);
            }
            print!("{}", days::life(&f, local::now_ms()));
            println!("witness {}", f.witness);
        }
        Findings::Export { id, out, store } => {
            let f = open(store)?.named(id)?;
            let text = bundle(&f)?;
            std::fs::write(out, text).with_context(|| format!("cannot write {}", out.display()))?;
            eprintln!("wrote {}; replay it with: moire replay {}", out.display(), out.display());
        }
        Findings::Mark { id, state, why, who, until, store } => {
            let now = local::now_ms();
            let mark = match (state.as_str(), until) {
                ("suppress", Some(until)) => Mark::Suppress { until_ms: days::until(until, now)? },
                ("suppress", None) => bail!("say how long: --until 2027-01-31, or --until 14d"),
                (_, Some(_)) => bail!("--until goes with suppress"),
                (word, None) => word.parse()?,
            };
            let who = who.clone().or_else(|| std::env::var("USER").ok()).unwrap_or_default();
            let f = open(store)?.mark(now, id, &mark, &who, why)?;
            println!("{} {}{}", f.id.short(), f.state.words(), days::suppressed(&f, now));
        }
    }
    Ok(exit::CLEAN)
}

/// The bundle of a finding: everything a replay needs, with the model texts.
fn bundle(f: &Finding) -> Result<Vec<u8>> {
    let model = |m: &moire_corpus::ModelRef| -> Result<moire_corpus::bundle::ModelText> {
        let loaded = moire_cat::builtin::load(&m.name, &m.variants).map_err(|e| anyhow!("{e}"))?;
        Ok(moire_corpus::bundle::ModelText {
            name: m.name.clone(),
            variants: m.variants.clone(),
            text: loaded.canonical_text(),
        })
    };
    let bundle = moire_corpus::bundle::Bundle {
        finding: f.clone(),
        program: f.reduced.clone(),
        original: f.original.clone(),
        provenance: f.provenance.clone(),
        // A side that is a tool has no text.
        models: f
            .models
            .iter()
            .filter(|m| ![ASSEMBLER_CAPABILITY, COMPILER_CAPABILITY].contains(&m.name.as_str()))
            .map(model)
            .collect::<Result<_>>()?,
        witness: f.witness.clone(),
        tools: [("moire".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into(),
    };
    Ok(moire_corpus::bundle::write(&bundle)?)
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
            println!("{} commits, {} bundles", report.commits, report.bundles);
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
