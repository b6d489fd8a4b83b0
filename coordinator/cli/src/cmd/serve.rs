//! `moire serve` and `moire work`: the two roles of `moire fuzz` as processes of their own; `moire campaign` talks to
//! the first.

use crate::args::{CampaignControl, NewCampaign, Serve, Work};
use crate::exit;
use anyhow::{Context, Result};
use moire_coordinator::v1::control_service_client::ControlServiceClient;
use moire_coordinator::{Local, Setup, lease, v1};
use moire_worker::job::Engine;
use moire_worker::oracle::Oracles;
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")
}

pub(crate) fn serve(args: &Serve) -> Result<u8> {
    runtime()?.block_on(async {
        let setup = Setup { listen: args.listen, http: args.http, lease: lease::Config::default() };
        let local = Local::open(&args.store, setup).await?;
        local.announce(|finding| eprintln!("{}", crate::local::announcement(finding))).await?;
        eprintln!(
            "serving {} on {}; Ctrl-C stops it, what is done is recorded",
            args.store.display(),
            local.addr()
        );
        if let Some(http) = local.http_addr() {
            eprintln!("metrics and health on http://{http}");
        }
        local
            .serve(async {
                let _ = tokio::signal::ctrl_c().await;
            })
            .await?;
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
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = moire_worker::work(args.coordinator, Arc::new(Oracles::new()), options) => ended.map_err(anyhow::Error::from),
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    });
    // Leases under way go back to the coordinator, which gives them to others.
    runtime.shutdown_background();
    ended.map(|()| exit::CLEAN)
}

pub(super) async fn connect(addr: SocketAddr) -> Result<ControlServiceClient<tonic::transport::Channel>> {
    ControlServiceClient::connect(format!("http://{addr}"))
        .await
        .with_context(|| format!("no coordinator answers at {addr}; `moire serve` starts one"))
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
        let status = connect(args.coordinator).await?.create_campaign(spec).await.map_err(said)?;
        show(status.get_ref());
        Ok(exit::CLEAN)
    })
}

pub(crate) fn control(args: &CampaignControl, phase: v1::CampaignPhase) -> Result<u8> {
    let request = v1::SetCampaignStateRequest { name: args.name.clone(), phase: phase.into() };
    runtime()?.block_on(async {
        let status = connect(args.coordinator).await?.set_campaign_state(request).await.map_err(said)?;
        show(status.get_ref());
        Ok(exit::CLEAN)
    })
}

/// All campaigns of a running coordinator, or one.
pub(crate) fn list(addr: SocketAddr, wanted: Option<&str>) -> Result<u8> {
    runtime()?.block_on(async {
        let mut client = connect(addr).await?;
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

fn said(status: tonic::Status) -> anyhow::Error {
    anyhow::anyhow!("the coordinator says: {}", status.message())
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
