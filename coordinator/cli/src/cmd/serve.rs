//! `moire serve` and `moire work`: the two roles of `moire fuzz` as processes of their own; `moire campaign` talks to
//! the first.

use crate::args::{CampaignControl, NewCampaign, Serve, Work};
use crate::exit;
use crate::logs::Log;
use crate::remote::{connect, said};
use anyhow::{Context, Result};
use moire_coordinator::{Local, Setup, v1};
use moire_worker::job::Engine;
use moire_worker::link::Link;
use moire_worker::oracle::Oracles;
use std::sync::Arc;

pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")
}

/// Completes when somebody wants this process to end: Ctrl-C, or SIGTERM of a service manager.
async fn asked_to_stop() {
    #[cfg(unix)]
    if let Ok(mut term) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = term.recv() => {}
        }
        return;
    }
    // Without a handler there is nothing to wait for but the end.
    let _ = tokio::signal::ctrl_c().await;
}

pub(crate) fn serve(args: &Serve, log: Log) -> Result<u8> {
    runtime()?.block_on(async {
        let setup = Setup { http: args.http, certs: args.certs.certs.clone(), ..Setup::new(args.listen) };
        let local = Local::open(&args.store, setup).await?;
        let (store, addr) = (args.store.display().to_string(), local.addr());
        match log {
            Log::Text => {
                local.announce(|finding| eprintln!("{}", crate::local::announcement(finding))).await?;
                eprintln!("serving {store} on {addr}; Ctrl-C stops it, what is done is recorded");
                if let Some(http) = local.http_addr() {
                    let scheme = if args.certs.certs.is_some() { "https" } else { "http" };
                    eprintln!("metrics and health on {scheme}://{http}");
                }
            }
            Log::Json => {
                let tell = |f: &moire_corpus::Finding| {
                    tracing::info!(id = %f.id, oracle = f.oracle, rule = f.rule, campaign = f.campaign, "finding");
                };
                local.announce(tell).await?;
                let http = local.http_addr().map(|addr| addr.to_string()).unwrap_or_default();
                tracing::info!(store, %addr, http, "serving");
            }
        }
        local.serve(asked_to_stop()).await?;
        Ok(exit::CLEAN)
    })
}

pub(crate) fn work(args: &Work) -> Result<u8> {
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let name = args.name.clone().unwrap_or_else(|| format!("worker-{}", std::process::id()));
    let options = moire_worker::Options { name, threads: u32::try_from(threads).unwrap_or(u32::MAX) };
    let runtime = runtime()?;
    let (asked, stop) = tokio::sync::watch::channel(());
    let ended = runtime.block_on(async {
        let link = args.remote.link();
        let worker = moire_worker::stay(&link, Arc::new(Oracles::new()), options, stop);
        tokio::pin!(worker);
        tokio::select! {
            ended = &mut worker => return ended.map_err(anyhow::Error::from),
            () = asked_to_stop() => {}
        }
        eprintln!("finishing what is leased; again stops at once");
        // Fails only when the worker has ended.
        let _ = asked.send(());
        tokio::select! {
            ended = &mut worker => ended.map_err(anyhow::Error::from),
            () = asked_to_stop() => Ok(()),
        }
    });
    // Leases still under way go back to the coordinator, which gives them to others.
    runtime.shutdown_background();
    ended.map(|()| exit::CLEAN)
}

pub(crate) fn create(args: &NewCampaign) -> Result<u8> {
    let spec = v1::CampaignSpec {
        name: args.name.clone(),
        seed: args.seed,
        profile: args.profile.clone(),
        oracles: args.oracle.clone(),
        models: args.models.clone(),
        programs: args.programs.unwrap_or(0),
        priority: 1,
        canaries: true,
        needs: crate::local::needs(&args.oracle),
        fingerprint: Oracles::new().fingerprint(),
    };
    runtime()?.block_on(async {
        let status = connect(&args.remote.link()).await?.create_campaign(spec).await.map_err(said)?;
        show(status.get_ref());
        Ok(exit::CLEAN)
    })
}

pub(crate) fn control(args: &CampaignControl, phase: v1::CampaignPhase) -> Result<u8> {
    let request = v1::SetCampaignStateRequest { name: args.name.clone(), phase: phase.into() };
    runtime()?.block_on(async {
        let status = connect(&args.remote.link()).await?.set_campaign_state(request).await.map_err(said)?;
        show(status.get_ref());
        Ok(exit::CLEAN)
    })
}

/// All campaigns of a running coordinator, or one.
pub(crate) fn list(link: &Link, wanted: Option<&str>) -> Result<u8> {
    runtime()?.block_on(async {
        let mut client = connect(link).await?;
        match wanted {
            Some(name) => show(
                client
                    .get_campaign(v1::CampaignName { name: name.to_owned() })
                    .await
                    .map_err(said)?
                    .get_ref(),
            ),
            None => {
                let all = client.list_campaigns(v1::ListCampaignsRequest {}).await.map_err(said)?;
                all.get_ref().campaigns.iter().for_each(show);
            }
        }
        Ok(exit::CLEAN)
    })
}

fn show(status: &v1::CampaignStatus) {
    let spec = status.spec.clone().unwrap_or_default();
    println!(
        "{} seed {} profile {}: {:?}, {} programs, {} executions, {} discrepancies, {} findings {}",
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
