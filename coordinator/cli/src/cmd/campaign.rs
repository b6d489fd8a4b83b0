//! `moire campaign`: the campaigns of a running coordinator, or of a store on this machine.

use super::findings::why;
use crate::remote::{Remote, StoreOrRemote};
use crate::samples;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use moire_console::control::{connect, runtime, said};
use moire_console::stored;
use moire_console::streams::StreamName;
use moire_console::{campaign, exit};
use moire_coordinator::v1::CampaignPhase;
use moire_coordinator::{CLASS_PREFIX, class_of, digest_words, judged, many, v1};
use moire_corpus::{CampaignState, Finding};
use moire_generate::Profile;
use moire_worker::job::Engine;
use moire_worker::link::Link;
use moire_worker::oracle::Oracles;

#[derive(Debug, Subcommand)]
pub(crate) enum Campaigns {
    /// Create a campaign on a running coordinator
    Create(NewCampaign),
    /// Pause a campaign
    Pause(CampaignControl),
    /// Resume a campaign
    Resume(CampaignControl),
    /// End a campaign
    Cancel(CampaignControl),
    /// List campaigns, one a line
    List {
        #[command(flatten)]
        at: StoreOrRemote,
    },
    /// Show one campaign, with its digest
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        at: StoreOrRemote,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NewCampaign {
    /// Its name
    pub(crate) name: String,
    /// Seed of the stream
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// What is drawn
    #[arg(long, value_parser = StreamName, default_value_t = Profile::Core)]
    pub(crate) stream: Profile,
    /// Number of programs; without it the campaign runs until it is cancelled
    #[arg(long, value_name = "N")]
    pub(crate) programs: Option<u64>,
    /// Only these oracles (repeatable)
    #[arg(long)]
    pub(crate) oracle: Vec<String>,
    /// Compare these models in order (repeatable)
    #[arg(long = "model")]
    pub(crate) models: Vec<String>,
    /// Only workers with this capability, such as device:sm_90 (repeatable)
    #[arg(long, value_name = "CAPABILITY")]
    pub(crate) needs: Vec<String>,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

#[derive(Debug, Args)]
pub(crate) struct CampaignControl {
    /// Its name
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

pub(crate) fn run(args: &Campaigns) -> Result<u8> {
    let (at, wanted) = match args {
        Campaigns::Create(new) => return create(new),
        Campaigns::Pause(which) => return control(which, CampaignPhase::Paused),
        Campaigns::Resume(which) => return control(which, CampaignPhase::Running),
        Campaigns::Cancel(which) => return control(which, CampaignPhase::Cancelled),
        Campaigns::List { at } => (at, None),
        Campaigns::Show { name, at } => (at, Some(name)),
    };
    if let Some(link) = at.link() {
        return list(&link, wanted.map(String::as_str));
    }
    let store = stored::open(&at.store)?;
    if let Some(name) = wanted
        && store.campaign(name)?.is_none()
    {
        bail!("there is no campaign {name}; `moire campaign list` shows them");
    }
    let mut blind = false;
    for c in store.campaigns()?.iter().filter(|c| wanted.is_none_or(|n| *n == c.name)) {
        let p = store.progress(&c.name)?;
        let n = &p.counters;
        println!(
            "{} seed {} stream {}: {} programs, {} executions, {} claims",
            c.name,
            c.seed,
            c.profile,
            p.done(),
            n.executions,
            n.discrepancies
        );
        if wanted.is_some() {
            let ended = matches!(c.state, CampaignState::Done | CampaignState::Cancelled);
            let abstentions = n.abstentions.clone();
            let status = v1::CampaignStatus { programs: p.done(), abstentions, ..Default::default() };
            blind = ended && status.programs > 0 && judged(&status) == 0;
            let findings = store.findings().collect::<Result<Vec<Finding>, _>>()?;
            for (reason, n) in &n.abstentions {
                match reason.strip_prefix(CLASS_PREFIX) {
                    Some(class) => {
                        let oracle = class.split('/').next().unwrap_or(class);
                        let found = findings.iter().find(|f| class_of(f) == *reason);
                        let why = found.map(|f| format!("{} {}", f.id.short(), why(f).unwrap_or_default()));
                        println!("  claimed   {n:8}  {oracle} {}", why.unwrap_or_default());
                    }
                    None => println!("  abstained {n:8}  {reason}"),
                }
            }
            for found in findings {
                let sampled = samples::of(&found).filter(|_| found.campaign == c.name);
                sampled.iter().for_each(|s| println!("  {} {}", found.id.short(), samples::line(s)));
            }
            println!(
                "  canaries {} caught of {} planted\n  digest {}",
                n.canaries_caught,
                n.canaries_planted,
                digest_words(store.digest(&c.name)?, n.abstentions.get("quarantined").copied().unwrap_or(0))
            );
        }
    }
    Ok(if blind { exit::INCOMPLETE } else { exit::CLEAN })
}

fn create(args: &NewCampaign) -> Result<u8> {
    let spec = v1::CampaignSpec {
        name: args.name.clone(),
        seed: args.seed,
        profile: args.stream.name().to_owned(),
        oracles: args.oracle.clone(),
        models: args.models.clone(),
        programs: args.programs.unwrap_or(0),
        priority: 1,
        canaries: true,
        needs: campaign::needs(&args.oracle).into_iter().chain(args.needs.clone()).collect(),
        fingerprint: Oracles::new().fingerprint(),
    };
    runtime()?.block_on(async {
        let status = connect(&args.remote.link()).await?.create_campaign(spec).await.map_err(said)?;
        show(status.get_ref());
        explain(status.get_ref());
        Ok(exit::CLEAN)
    })
}

fn control(args: &CampaignControl, phase: v1::CampaignPhase) -> Result<u8> {
    let request = v1::SetCampaignStateRequest { name: args.name.clone(), phase: phase.into() };
    runtime()?.block_on(async {
        let status = connect(&args.remote.link()).await?.set_campaign_state(request).await.map_err(said)?;
        show(status.get_ref());
        Ok(exit::CLEAN)
    })
}

/// The campaigns of a running coordinator: all, or one.
fn list(link: &Link, wanted: Option<&str>) -> Result<u8> {
    runtime()?.block_on(async {
        let mut client = connect(link).await?;
        let Some(name) = wanted else {
            let all = client.list_campaigns(v1::ListCampaignsRequest {}).await.map_err(said)?;
            all.get_ref().campaigns.iter().for_each(show);
            return Ok(exit::CLEAN);
        };
        let name = v1::CampaignName { name: name.to_owned() };
        let status = client.get_campaign(name).await.map_err(said)?.into_inner();
        show(&status);
        explain(&status);
        Ok(code(&status))
    })
}

/// The exit code of a campaign that was asked for: one that ended without a judgement says nothing.
fn code(status: &v1::CampaignStatus) -> u8 {
    let ended = status.phase >= i32::from(CampaignPhase::Cancelled) && status.programs > 0;
    if ended && judged(status) == 0 { exit::INCOMPLETE } else { exit::CLEAN }
}

/// Says on stderr what a campaign is for, where that is not every oracle that needs no tool, and why programs have no answer.
fn explain(status: &v1::CampaignStatus) {
    let spec = status.spec.clone().unwrap_or_default();
    if !spec.oracles.is_empty() {
        eprintln!("  oracles {}", spec.oracles.join(", "));
    }
    if !spec.needs.is_empty() && status.digest.is_empty() {
        let able = many(status.able, "connected worker");
        eprintln!("  needs {}: {able} can work on it, others get nothing of it", spec.needs.join(" and "));
    }
    for (reason, n) in &status.abstentions {
        eprintln!("  abstained {n:8}  {reason}");
    }
}

fn show(status: &v1::CampaignStatus) {
    let spec = status.spec.clone().unwrap_or_default();
    println!(
        "{} seed {} stream {}: {:?}, {} programs, {} executions, {} discrepancies, {} findings {}",
        spec.name,
        spec.seed,
        spec.profile,
        status.phase(),
        status.programs,
        status.executions,
        status.discrepancies,
        status.findings,
        status.digest
    );
}
