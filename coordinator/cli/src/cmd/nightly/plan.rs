//! What a night is to run, from the command line.

use super::args::Nightly;
use anyhow::{Result, anyhow, bail};
use moire_console::campaign;
use moire_coordinator::nightly::NightPlan;
use moire_coordinator::v1;
use moire_generate::Profile;
use moire_worker::job::Engine;
use moire_worker::oracle::{self, COMPILER, DEVICE, LLVM_SOURCES, STAND_IN, Takes};

/// Campaigns where none are named: enough programs for every canary, and enough protocols and kernels for a mutation score.
const DEFAULT: [(Profile, u64); 3] =
    [(Profile::Core, crate::scores::CANARY_ITEMS), (Profile::Protocol, 60), (Profile::Kernel, 300)];
/// The same where the tools for them are here: several releases of each.
const WITH_TOOLS: [(Profile, u64); 2] = [(Profile::TileIr, 300), (Profile::Source, 300)];
/// Programs of core for a device that is lent.
const ON_DEVICE: u64 = 2_000;
/// Runs of a finding.
const RUNS_MAX: u32 = 64;

/// # Errors
/// A campaign that makes no sense, or whose tool is not here.
pub(super) fn new(args: &Nightly, engine: &dyn Engine) -> Result<NightPlan> {
    let mut campaigns = args.campaign.iter().map(|text| campaign(text)).collect::<Result<Vec<_>>>()?;
    let (capabilities, fingerprint) = (engine.capabilities(), engine.fingerprint());
    let here = if args.coordinator.is_none() { capabilities.as_slice() } else { &[] };
    if campaigns.is_empty() {
        let able = |profile| campaign::needs(&oracles(profile, here)).iter().all(|n| here.contains(n));
        campaigns = DEFAULT.to_vec();
        campaigns.extend(WITH_TOOLS.into_iter().filter(|(profile, _)| able(*profile)));
    }
    if !(1..=RUNS_MAX).contains(&args.runs) {
        bail!("--runs is 1 to {RUNS_MAX}");
    }
    let drawn = |(profile, programs)| (profile, programs, oracles(profile, here));
    let mut all: Vec<(Profile, u64, Vec<String>)> = campaigns.into_iter().map(drawn).collect();
    let lent = [DEVICE, STAND_IN].into_iter().find(|tool| here.iter().any(|c| c == tool.capability));
    if let Some(tool) = lent.filter(|_| args.campaign.is_empty()) {
        all.push((Profile::Core, ON_DEVICE, vec![tool.capability.to_owned()]));
    }
    let mut specs = Vec::new();
    for (profile, programs, oracles) in all {
        let needs = campaign::needs(&oracles);
        if let Some(tool) = needs.iter().find(|n| args.coordinator.is_none() && !capabilities.contains(n)) {
            bail!(
                "a campaign of {profile} needs {tool}, which is not here; `moire doctor` says how to get it"
            );
        }
        specs.push(v1::CampaignSpec {
            seed: args.seed,
            profile: profile.name().to_owned(),
            // A device finds no bug that is planted in an engine.
            canaries: !lent.is_some_and(|tool| oracles.iter().any(|o| o == tool.capability)),
            oracles,
            programs,
            priority: 1,
            needs,
            fingerprint: fingerprint.clone(),
            ..v1::CampaignSpec::default()
        });
    }
    Ok(NightPlan { campaigns: specs, runs: args.runs, retests: args.retests })
}

/// Kernels of Tile IR are for the compiler, source programs for those of their compilers that are here, and for `llc` if none is;
/// everything else is for all oracles that need no tool.
fn oracles(profile: Profile, here: &[String]) -> Vec<String> {
    match profile {
        Profile::TileIr => vec![COMPILER.name.to_owned()],
        Profile::Source => {
            let mut names: Vec<String> = oracle::oracles()
                .filter(|about| about.takes == Takes::Sources)
                .filter(|about| about.tool.is_some_and(|tool| here.iter().any(|c| c == tool.capability)))
                .map(|about| about.name.to_owned())
                .collect();
            if names.is_empty() {
                names.push(LLVM_SOURCES.name.to_owned());
            }
            names
        }
        _ => Vec::new(),
    }
}

/// `STREAM=PROGRAMS`
fn campaign(text: &str) -> Result<(Profile, u64)> {
    let (profile, programs) = text
        .split_once('=')
        .ok_or_else(|| anyhow!("`{text}` is no campaign; write STREAM=PROGRAMS, for example core=10000"))?;
    let profile = profile.parse().map_err(|e| anyhow!("{e}"))?;
    let programs: u64 = programs.parse().map_err(|_| anyhow!("`{programs}` is no number of programs"))?;
    if programs == 0 {
        bail!("a campaign of a night has a budget: write {text} with a number above 0");
    }
    Ok((profile, programs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaigns_have_a_profile_and_a_budget() {
        assert_eq!(campaign("protocol=60").unwrap(), (Profile::Protocol, 60));
        for bad in ["", "core", "core=", "core=0", "core=x", "cor=5"] {
            assert!(campaign(bad).is_err(), "{bad}");
        }
    }
}
