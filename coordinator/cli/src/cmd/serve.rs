//! `moire serve` and `moire work`: the two roles of `moire fuzz` as processes of their own.

use crate::device::Lent;
use crate::logs::Log;
use crate::memory;
use crate::remote::{COORDINATOR, Certs, Remote};
use anyhow::{Context, Result};
use clap::Args;
use moire_console::bounded::size_text;
use moire_console::control::runtime;
use moire_console::stored::STORE;
use moire_console::{claim, exit, stored};
use moire_coordinator::{Limits, Local, Setup, lease};
use moire_worker::confine::Confine;
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
    /// How many of a thousand answers a second worker gives again, so that both are compared
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) repeat: u32,
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
    /// Memory of all leases together, such as 4G; a program that needs more than its lease has counts as bounded
    /// [default: three quarters of the control group or machine]
    #[arg(long, value_name = "SIZE", value_parser = moire_console::bounded::size)]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) lent: Lent,
}

/// `moire lease`: a process that does the leases of a worker; see [`moire_worker::confine`].
#[derive(Debug, Args)]
pub(crate) struct Lease {
    /// Bytes it may have
    #[arg(long)]
    pub(crate) memory: u64,
    #[command(flatten)]
    pub(crate) lent: Lent,
}

pub(crate) fn lease(args: &Lease) -> Result<u8> {
    memory::limit(args.memory).context("cannot limit the memory of a lease")?;
    let engine: Arc<dyn moire_worker::job::Engine> = Arc::new(Oracles::with_device(args.lent.host()?));
    moire_worker::confine::serve(&engine)?;
    Ok(exit::CLEAN)
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

/// Raises the limit on descriptors of this process to so many, where the system allows it; the limit then in force.
#[cfg(unix)]
fn descriptors(wanted: u64) -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let (soft, most) = (now.current.unwrap_or(u64::MAX), now.maximum.unwrap_or(u64::MAX));
    let aim = wanted.min(most);
    if soft >= aim {
        return soft;
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(aim), maximum: now.maximum });
    if raised.is_ok() { aim } else { soft }
}

/// There is no such limit.
#[cfg(not(unix))]
fn descriptors(wanted: u64) -> u64 {
    wanted
}

/// The bounds on peers that the descriptors of this process allow.
fn limits(args: &Serve) -> Limits {
    let wanted = if args.certs.certs.is_some() { Limits::FAR } else { Limits::NEAR };
    let allowed = descriptors(wanted.descriptors());
    let limits = wanted.within(allowed);
    if limits.connections < wanted.connections {
        let (connections, pages) = (limits.connections, limits.pages);
        tracing::warn!(
            descriptors = allowed,
            connections,
            pages,
            "fewer connections than usual: raise `ulimit -n`"
        );
    }
    limits
}

pub(crate) fn serve(args: &Serve, log: Log) -> Result<u8> {
    runtime()?.block_on(async {
        let (http, certs, limits) = (args.http, args.certs.certs.clone(), Some(limits(args)));
        let lease = lease::Config { repeat_per_mille: args.repeat, ..lease::Config::default() };
        let setup = Setup { http, certs, limits, lease, ..Setup::new(args.listen) };
        let local = Local::open(&args.store, setup).await?;
        stored::note(local.losses());
        let (store, addr) = (args.store.display().to_string(), local.addr());
        match log {
            Log::Text => {
                stored::say(&args.store, local.recovery(), local.losses());
                local.announce(|finding| eprintln!("{}", claim::announcement(finding))).await?;
                eprintln!("serving {store} on {addr}; Ctrl-C stops it, what is done is recorded");
                if let Some(http) = local.http_addr() {
                    let scheme = if args.certs.certs.is_some() { "https" } else { "http" };
                    eprintln!("/metrics, /healthz, /readyz and pages on {scheme}://{http}");
                }
            }
            Log::Json => {
                let repaired = local.recovery().to_string();
                repaired.lines().for_each(|what| tracing::warn!(what, "the store was repaired"));
                local.losses().iter().for_each(|loss| tracing::error!(%loss, "lost, and not acknowledged"));
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

/// How the leases of a worker are confined: each to its share of the memory.
fn confine(memory: Option<u64>, threads: u32, lent: &Lent) -> Result<Confine> {
    let all = memory.unwrap_or_else(memory::default);
    let each = all / u64::from(threads.max(1));
    anyhow::ensure!(
        each >= memory::LEAST,
        "{all} bytes are too few for {threads} leases at one time: each needs {} (hint: fewer --threads)",
        size_text(memory::LEAST)
    );
    let program = std::env::current_exe().context("cannot find this program")?;
    let args = ["lease".to_owned(), "--memory".to_owned(), each.to_string()];
    Ok(Confine::new(program, args.into_iter().map(Into::into).chain(lent.args()).collect()))
}

pub(crate) fn work(args: &Work) -> Result<u8> {
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let name = args.name.clone().unwrap_or_else(|| format!("worker-{}", std::process::id()));
    let threads = u32::try_from(threads).context("too many threads")?;
    let confine = confine(args.memory, threads, &args.lent)?;
    let options = moire_worker::Options { name, threads };
    let engine = Arc::new(Oracles::with_device(args.lent.host()?));
    let runtime = runtime()?;
    let (asked, stop) = tokio::sync::watch::channel(());
    let ended = runtime.block_on(async {
        let link = args.remote.link();
        let worker = moire_worker::stay_confined(&link, engine, options, confine, stop);
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
