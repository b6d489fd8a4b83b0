//! `moire findings`: lists, shows, exports and marks the findings of a store on this machine, or of a running coordinator.

use crate::releases::{Release, lines, mistaken, releases, words};
use crate::remote::StoreOrRemote;
use crate::{days, issue, line, samples};
use anyhow::{Context, Result, anyhow, bail};
use clap::Subcommand;
use moire_console::control::{connect, runtime, said};
use moire_console::output::Format;
use moire_console::{claim, exit, stored};
use moire_coordinator::v1;
use moire_coordinator::v1::control_service_client::ControlServiceClient;
use moire_corpus::{Finding, Mark, Store};
use moire_proto::Linked;
use moire_worker::job::Claim;
use moire_worker::oracle::{DEVICE, LIBNVVM, LLVM, NVCC, Oracles, PTXAS, STAND_IN, TILEIRAS, TRITON};
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

#[derive(Debug, Subcommand)]
pub(crate) enum Findings {
    /// List findings, one a line
    List {
        /// How to print; all but text as `moire report` does
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
        #[command(flatten)]
        at: StoreOrRemote,
    },
    /// Show one finding in full
    Show {
        /// Id, or its first eight digits or more
        id: String,
        #[command(flatten)]
        at: StoreOrRemote,
    },
    /// Write a finding as one self-contained file
    Export {
        /// Id, or its first eight digits or more; with --issue also a bundle, a printed line or a program
        id: String,
        /// The file
        out: PathBuf,
        /// Write it as an issue for the people who keep the compiler, in Markdown
        #[arg(long)]
        issue: bool,
        /// Write the histogram of a finding about a device, for `moire gpu --replay`
        #[arg(long, conflicts_with = "issue")]
        histogram: bool,
        #[command(flatten)]
        at: StoreOrRemote,
    },
    /// Change the life cycle of a finding
    Mark {
        /// Id, or its first eight digits or more
        id: String,
        /// open, invalid, fixed, duplicate:ID, suppress or unsuppress
        state: String,
        /// The reason; a finding is closed or suppressed with one
        #[arg(long, default_value = "")]
        why: String,
        /// Who decides it, or is responsible for the suppression [default: the user]
        #[arg(long, value_name = "NAME")]
        who: Option<String>,
        /// When a suppression ends: a day such as 2027-01-31 (UTC), or 14d from now
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        #[command(flatten)]
        at: StoreOrRemote,
    },
}

/// What is wrong, or what decides between the sides.
pub(crate) fn why(f: &Finding) -> Option<String> {
    let axioms: Vec<String> = f.axioms.iter().map(|set| set.join(" + ")).collect();
    let decided = || (!axioms.is_empty()).then(|| format!("decided by {}", axioms.join(" or ")));
    let waits = || (f.rule == "progress").then(|| "one of the two waits for ever, the other ends".to_owned());
    mistaken(&f.oracle, &f.axioms).or_else(decided).or_else(waits)
}

/// A finding as text: the sides that disagree, the axioms, the program, the line that replays it.
pub(crate) fn show_finding(f: &Finding) -> String {
    let models: Vec<String> = f.models.iter().map(|m| claim::side(m).spec()).collect();
    let why = why(f).map_or_else(String::new, |why| format!(", {why}"));
    let allowed = f.allowed().map(|said| format!("    {said}\n")).unwrap_or_default();
    let lines = f.reduced.lines().filter(|l| !l.trim().is_empty());
    let program: String = lines.map(|l| format!("    {l}\n")).collect();
    format!(
        "  {} {} {} {}{why}, seen {}, {}\n{allowed}{program}    {}\n",
        f.id.short(),
        f.oracle,
        f.rule,
        models.join(" / "),
        f.sightings(),
        moire_coordinator::seen_again(f)
            .map_or_else(|| f.state.words(), |again| format!("{}, {again}", f.state.words())),
        moire_coordinator::line::command(f)
    )
}

/// The store or the coordinator that has the findings.
enum FindingSource {
    Here(Box<Store>),
    There(Runtime, Box<ControlServiceClient<Linked>>),
}

impl FindingSource {
    fn of(at: &StoreOrRemote) -> Result<Self> {
        let Some(link) = at.link() else { return Ok(Self::Here(Box::new(stored::open(&at.store)?))) };
        let runtime = runtime()?;
        let client = runtime.block_on(connect(&link))?;
        Ok(Self::There(runtime, Box::new(client)))
    }

    /// Calls `tell` with each finding, in order of ids; a coordinator sends them page by page.
    fn each(self, mut tell: impl FnMut(&Finding)) -> Result<()> {
        match self {
            Self::Here(store) => store.findings().try_for_each(|f| {
                tell(&f?);
                Ok(())
            }),
            Self::There(runtime, mut client) => runtime.block_on(async {
                let mut after = String::new();
                loop {
                    let request = v1::ListFindingsRequest { after, ..v1::ListFindingsRequest::default() };
                    let page = client.list_findings(request).await.map_err(said)?.into_inner();
                    for record in &page.findings {
                        tell(&read(record)?);
                    }
                    match page.findings.last().filter(|_| page.more) {
                        Some(last) => after = last.id.clone(),
                        None => return Ok(()),
                    }
                }
            }),
        }
    }

    /// The finding with this id, or whose id begins with it.
    fn named(self, id: &str) -> Result<Finding> {
        match self {
            Self::Here(store) => Ok(store.named(id)?),
            Self::There(runtime, mut client) => {
                let name = v1::FindingName { id: id.to_owned() };
                read(runtime.block_on(client.get_finding(name)).map_err(said)?.get_ref())
            }
        }
    }

    fn mark(self, now: u64, id: &str, mark: &Mark, word: &str, who: &str, why: &str) -> Result<Finding> {
        match self {
            Self::Here(mut store) => Ok(store.mark(now, id, mark, who, why)?),
            Self::There(runtime, mut client) => {
                let until_ms = if let Mark::Suppress { until_ms } = mark { *until_ms } else { 0 };
                let (id, state, who, why) = (id.to_owned(), word.to_owned(), who.to_owned(), why.to_owned());
                let request = v1::MarkFindingRequest { id, state, who, why, until_ms };
                read(runtime.block_on(client.mark_finding(request)).map_err(said)?.get_ref())
            }
        }
    }
}

fn read(record: &v1::FindingRecord) -> Result<Finding> {
    serde_json::from_str(&record.json).context("the coordinator sent a record this version cannot read")
}

pub(crate) fn run(args: &Findings) -> Result<u8> {
    match args {
        Findings::List { format, at } if !format.is_text() => {
            return super::report::report(at, None, stored::To::Stdout(*format));
        }
        Findings::List { at, .. } => FindingSource::of(at)?.each(|f| {
            let models: Vec<&str> = f.models.iter().map(|m| m.name.as_str()).collect();
            let (id, state, models) = (f.id.short(), f.state.words(), models.join("/"));
            let (times, why) = (format!("{}x", f.count), why(f).unwrap_or_default());
            println!("{id} {state:10} {:12} {:10} {models:20} {times:>6} {why}", f.oracle, f.rule);
        })?,
        Findings::Show { id, at } => {
            let f = FindingSource::of(at)?.named(id)?;
            print!("{}", show_finding(&f));
            for change in &f.history {
                println!("  {} by {}: {}", change.to.words(), change.who, change.why);
            }
            print!("{}", days::life(&f, moire_coordinator::clock::unix_ms()));
            print!("{}", moire_shown::show::stored(&f.witness).unwrap_or_default());
            print!("{}", samples::of(&f).map(|s| samples::shown(&f, &s)).unwrap_or_default());
            print!("{}", claim::of(&f).map(|c| told(&releases(&Oracles::new(), &c))).unwrap_or_default());
        }
        Findings::Export { id, out, issue, histogram, at } => {
            let write = |text: &[u8]| {
                std::fs::write(out, text).with_context(|| format!("cannot write {}", out.display()))
            };
            if *issue {
                let engine = Oracles::new();
                let (claim, found) = match claimed(&engine, id, at)? {
                    Ok(of) => of,
                    Err(code) => return Ok(code),
                };
                write(issue::issue(&engine, &claim, found.as_ref())?.as_bytes())?;
                return Ok(exit::CLEAN);
            }
            let found = FindingSource::of(at)?.named(id)?;
            if *histogram {
                anyhow::ensure!(samples::of(&found).is_some(), "{} has no histogram", found.id.short());
                write(found.witness.as_bytes())?;
                return Ok(exit::CLEAN);
            }
            write(&bundle(&found)?)?;
            eprintln!("wrote {}; replay it with: moire replay {}", out.display(), out.display());
        }
        Findings::Mark { id, state, why, who, until, at } => {
            let now = moire_coordinator::clock::unix_ms();
            let mark = match (state.as_str(), until) {
                ("suppress", Some(until)) => Mark::Suppress { until_ms: days::until(until, now)? },
                ("suppress", None) => bail!("say how long: --until 2027-01-31, or --until 14d"),
                (_, Some(_)) => bail!("--until goes with suppress"),
                (word, None) => word.parse()?,
            };
            let user = || ["USER", "LOGNAME", "USERNAME"].iter().find_map(|name| std::env::var(name).ok());
            let who = who.clone().or_else(user).unwrap_or_default();
            let missing: Vec<&str> = [
                ("--why TEXT", why.is_empty() && state != "open" && state != "unsuppress"),
                ("--who NAME", who.is_empty()),
            ]
            .into_iter()
            .filter_map(|(option, missing)| missing.then_some(option))
            .collect();
            if !missing.is_empty() {
                bail!("a finding is marked with a reason and a name: add {}", missing.join(" and "));
            }
            let f = FindingSource::of(at)?.mark(now, id, &mark, state, &who, why)?;
            println!("{} {}{}", f.id.short(), f.state.words(), days::suppressed(&f, now));
        }
    }
    Ok(exit::CLEAN)
}

/// The releases of the compiler that have a mistake, as text.
fn told(all: &[Release]) -> String {
    let stretch = words(all).map(|said| format!("releases that are here: {said}\n"));
    let each = lines(all).into_iter().map(|line| format!("    {line}\n"));
    stretch.into_iter().chain(each).collect()
}

/// The claim of a finding by its id, with the finding; or the claim of a bundle, a printed line or a program.
fn claimed(engine: &Oracles, word: &str, at: &StoreOrRemote) -> Result<Result<(Claim, Option<Finding>), u8>> {
    if line::is_line(word) || Path::new(word).is_file() {
        return Ok(super::replay::claim(engine, word, &at.store)?.map(|claim| (claim, None)));
    }
    let found = FindingSource::of(at)?.named(word)?;
    Ok(Ok((claim::of(&found)?, Some(found))))
}

/// The bundle of a finding: everything a replay needs, with the model texts.
fn bundle(f: &Finding) -> Result<Vec<u8>> {
    let model = |m: &moire_corpus::ModelRef| -> Result<moire_corpus::bundle::ModelText> {
        let loaded = moire_models::load(&m.name, &m.variants).map_err(|e| anyhow!("{e}"))?;
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
            .filter(|m| {
                ![PTXAS, TILEIRAS, LLVM, NVCC, LIBNVVM, TRITON, DEVICE, STAND_IN]
                    .iter()
                    .any(|tool| tool.capability == m.name)
            })
            .map(model)
            .collect::<Result<_>>()?,
        witness: f.witness.clone(),
        tools: [("moire".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into(),
    };
    Ok(moire_corpus::bundle::write(&bundle)?)
}
