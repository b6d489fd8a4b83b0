//! `moire serve` and `moire work`: the two roles of `moire fuzz` as processes of their own.

use crate::logs::Log;
use crate::remote::{COORDINATOR, Certs, Remote};
use anyhow::{Context, Result};
use clap::Args;
use moire_console::control::runtime;
use moire_console::stored::STORE;
use moire_console::{claim, exit};
use moire_coordinator::{Local, Setup};
use moire_worker::oracle::Oracles;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; this machine only, unless there are certificates
    #[arg(long, value_name = "ADDRESS", default_value = COORDINATOR)]
    pub(crate) listen: SocketAddr,
    /// Address of pages, /metrics, /healthz and /readyz; as for --listen [default: none]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) certs: Certs,
    /// Where findings are kept
    #[arg(long, default_value = STORE)]
    pub(crate) store: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Work {
    #[command(flatten)]
    pub(crate) remote: Remote,
    /// Most leases held at one time [default: all processors]
    #[arg(long)]
    pub(crate) threads: Option<usize>,
    /// Name on pages and in logs
    #[arg(long)]
    pub(crate) name: Option<String>,
}

/// Completes when this process is asked to end: by Ctrl-C, or by SIGTERM of a service manager.
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
                local.announce(|finding| eprintln!("{}", claim::announcement(finding))).await?;
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
    let threads = u32::try_from(threads).context("too many threads")?;
    let options = moire_worker::Options { name, threads };
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
