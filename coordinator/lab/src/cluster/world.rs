//! One run: a coordinator and its workers on a simulated network, in one thread and with a simulated clock.
//!
//! Contract: the coordinator (services, leases, intake, store) and the workers' connections are the real code; turmoil
//! simulates network, clocks and kills. A run is a function of its plan. A coordinator that is killed leaves its store
//! as it is, with the index not closed.

use super::engine::{self, Simple};
use super::faults::{Deed, FaultPlan, Nature, Random};
use super::wire::{Cut, Lines};
use anyhow::{Context, Result, anyhow};
use moire_coordinator::clock::millis;
use moire_coordinator::lease::{self, LeaseId, WorkerId};
use moire_coordinator::trial::{self, Event};
use moire_coordinator::{Io, Local, v1};
use moire_worker::trial::{Again, Seen, Trial};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use turmoil::net::{TcpListener, TcpStream};

/// Name of the campaign of a run.
pub(super) const CAMPAIGN: &str = "c";
/// The lease configuration of a run: faster clocks than in production. No item is given up, because none ends its workers.
pub(super) const LEASE: lease::Config = lease::Config {
    liveness_ms: 3_000,
    progress_ms: 5_000,
    kill_ms: 1_500,
    avoid_ms: 2_000,
    rest_ms: 60_000,
    attempts_max: 12,
    repeat_per_mille: 100,
    secret: Some(1),
    workers_max: 64,
    credit_max: 16,
};
/// Longest time of a run, simulated.
const LONGEST: Duration = Duration::from_secs(600);
/// Time resolution of the network.
const TICK: Duration = Duration::from_millis(10);
/// Time between keep-alives on a worker's connection.
const ALIVE: Duration = Duration::from_secs(2);
/// Time a service manager waits before it starts a process again.
const RESTART: Duration = Duration::from_secs(1);
/// Time between two polls of the campaign.
const LOOK: Duration = Duration::from_millis(100);
const PORT: u16 = 7420;
const COORDINATOR: &str = "coordinator";
/// Most segments that a connection holds; a run sends fewer.
const SEGMENTS: usize = 1 << 16;

/// A bug planted in the coordinator or in the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    Coordinator(trial::Planted),
    Worker(moire_worker::trial::Planted),
}

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct RunResult {
    pub(super) history: Vec<(u64, Event)>,
    /// Number of faults and of slow parts, by name.
    pub(super) counts: BTreeMap<&'static str, u64>,
    pub(super) simulated: Duration,
    /// The digest in the store at the end.
    pub(super) digest: String,
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State shared by the processes of a run and its driver.
struct Shared {
    plan: FaultPlan,
    bug: Option<Bug>,
    store: PathBuf,
    history: Mutex<Vec<(u64, Event)>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    done: AtomicBool,
    /// By worker, the channel that asks its process to stop.
    stops: Mutex<BTreeMap<usize, watch::Sender<()>>>,
    cuts: Vec<Cut>,
    /// Whether a process is being killed at this moment.
    dying: Arc<AtomicBool>,
    /// Whether the campaign is done, and its findings are run again.
    again: Arc<AtomicBool>,
}

impl Shared {
    fn tell(&self, event: Event) {
        let now = turmoil::sim_elapsed().unwrap_or_default();
        locked(&self.history).push((millis(now), event));
    }
    fn count(&self, what: &'static str) {
        *locked(&self.counts).entry(what).or_default() += 1;
    }
}

fn spec(programs: u64) -> v1::CampaignSpec {
    v1::CampaignSpec { name: CAMPAIGN.to_owned(), seed: 1, programs, ..v1::CampaignSpec::default() }
}

/// Runs the coordinator's process.
async fn coordinate(shared: Arc<Shared>) -> turmoil::Result {
    let lines = Lines::new(&shared.dying);
    let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
    let (accepted, connections) = mpsc::channel(64);
    let taken = lines.clone();
    tokio::spawn(async move {
        let never = Cut::default();
        while let Ok((stream, from)) = listener.accept().await {
            let stream: Box<dyn Io> = Box::new(taken.line(stream, &never));
            if accepted.send((stream, from)).await.is_err() {
                return;
            }
        }
    });
    let planted = match shared.bug {
        Some(Bug::Coordinator(bug)) => Some(bug),
        _ => None,
    };
    let told = shared.clone();
    let tell: Arc<dyn Fn(Event) + Send + Sync> = Arc::new(move |event| told.tell(event));
    let trial = trial::Trial { planted, tell: Some(tell), apart: shared.plan.apart };
    let share = if shared.plan.apart { 1000 } else { LEASE.repeat_per_mille };
    let lease = lease::Config { repeat_per_mille: share, ..LEASE };
    let options = moire_corpus::Options {
        reserve_bytes: 4096,
        cache_bytes: 1 << 20,
        ..moire_corpus::Options::default()
    };
    let local = Local::on_trial(&shared.store, options, lease, connections, trial)?;
    if local.status(CAMPAIGN).await.is_err() {
        local.create(spec(shared.plan.programs)).await?;
    }
    let explores = shared.plan.explores;
    let id = if explores { local.explore(engine::asked()).await?.id } else { String::new() };
    let mut told = None;
    loop {
        let mut done = local.status(CAMPAIGN).await?.phase() == v1::CampaignPhase::Done;
        if done && shared.plan.apart && !shared.again.swap(true, Ordering::Relaxed) {
            run_again(&shared, &local).await?;
        }
        if explores {
            let now = explored(local.explored(&id).await?);
            if told.as_ref() != Some(&now) {
                shared.tell(now.clone());
            }
            done &= matches!(now, Event::Explored { over: true, .. });
            told = Some(now);
        }
        shared.done.store(done, Ordering::Relaxed);
        tokio::time::sleep(LOOK).await;
    }
}

/// The progress of an exploration as an event.
fn explored(status: v1::ExploreStatus) -> Event {
    let (over, failed, sum) = (status.over, !status.failed.is_empty(), status.explored.unwrap_or_default());
    let marks = sum.marks.into_iter().map(|(name, node)| (name, node.path)).collect();
    let marks = if over { engine::number(&marks) } else { 0 };
    Event::Explored { executions: sum.complete + sum.blocked, digest: sum.digest, marks, over, failed }
}

/// Runs the findings of the campaign again, once each, and tells whether they are open then.
async fn run_again(shared: &Shared, local: &Local) -> turmoil::Result {
    let findings = local.findings().await?;
    for finding in findings.into_iter().filter(|f| f.campaign == CAMPAIGN) {
        let open = local.retest(&finding.id, 1).await?.is_open();
        shared.tell(Event::Retested { open });
    }
    Ok(())
}

/// Runs a worker's process under a service manager, which starts it again when it ends.
async fn work(shared: Arc<Shared>, number: usize, life: u64) -> turmoil::Result {
    let lines = Lines::new(&shared.dying);
    let name = host(number);
    let random = Random(shared.plan.seed).fork(1_000 * (number as u64 + 1) + life);
    loop {
        let (asked, stop) = watch::channel(());
        locked(&shared.stops).insert(number, asked);
        let (cut, made) = (shared.cuts[number].clone(), lines.clone());
        let dial = move || {
            let (cut, made) = (cut.clone(), made.clone());
            async move {
                let stream = TcpStream::connect((COORDINATOR, PORT)).await?;
                let io: Box<dyn moire_worker::link::Io> = Box::new(made.line(stream, &cut));
                Ok(io)
            }
        };
        let link = moire_worker::link::Link::through(dial, ALIVE);
        let options =
            moire_worker::Options { name: name.clone(), threads: shared.plan.workers[number].threads };
        let trial = on_trial(&shared, number, &name, &random);
        // The service manager starts it again, whatever the reason for its end.
        let _ = moire_worker::stay_on_trial(
            &link,
            Arc::new(Simple {
                lies: shared.plan.workers[number].lies,
                lie: shared.plan.workers[number].lie,
                again: shared.again.clone(),
            }),
            options,
            stop,
            trial,
        )
        .await;
        tokio::time::sleep(RESTART).await;
    }
}

/// Configures a worker for the run: its planted bug, its events and its nature.
fn on_trial(shared: &Arc<Shared>, number: usize, name: &str, random: &Random) -> Trial {
    let nature: Nature = shared.plan.workers[number].clone();
    let planted = match shared.bug {
        Some(Bug::Worker(bug)) => Some(bug),
        _ => None,
    };
    let (told, name) = (shared.clone(), name.to_owned());
    let tell = move |seen| {
        let name = name.clone();
        told.tell(match seen {
            Seen::Welcome(worker) => Event::WorkerWelcome { name, worker: WorkerId(worker) },
            Seen::Lease { lease, epoch } => Event::WorkerLease { name, lease: LeaseId(lease), epoch },
            Seen::Cancel(lease) => Event::WorkerCancel { name, lease: LeaseId(lease) },
            Seen::Report { lease, epoch } => Event::WorkerReport { name, lease: LeaseId(lease), epoch },
            Seen::KillAck(lease) => Event::WorkerKillAck { name, lease: LeaseId(lease) },
            Seen::Lost => Event::WorkerLost { name },
        });
    };
    let (counted, draws) = (shared.clone(), Mutex::new(random.fork(1)));
    let pace = move |_| {
        let mut draw = locked(&draws);
        if draw.once_in(nature.stuck) {
            counted.count("stuck item");
            return Duration::from_millis(draw.between(LEASE.progress_ms, LEASE.progress_ms + 4_000));
        }
        Duration::from_millis(draw.between(nature.item_ms / 2, nature.item_ms * 3 / 2))
    };
    let (counted, draws) = (shared.clone(), Mutex::new(random.fork(2)));
    let again = move || {
        let mut draw = locked(&draws);
        if draw.once_in(nature.again) {
            counted.count("report sent twice");
            return Again::Now;
        }
        match draw.once_in(nature.later) {
            true => {
                counted.count("report kept for the next connection");
                Again::Later
            }
            false => Again::Never,
        }
    };
    Trial {
        planted,
        tell: Some(Arc::new(tell)),
        pace: Some(Arc::new(pace)),
        again: Some(Arc::new(again)),
        drift: nature.drift,
        ..Trial::default()
    }
}

/// Leaves the store as a kill does: the index is not closed, and if `half`, the log ends with half a commit.
fn kill_store(store: &Path, half: bool) -> Result<()> {
    match std::fs::remove_file(store.join("index.clean")) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e).context("the index"),
        _ => {}
    }
    if half {
        let mut log = std::fs::OpenOptions::new().append(true).open(store.join("findings.log"))?;
        log.write_all(b"MoFr\x40\x00\x00\x00half of it")?;
    }
    Ok(())
}

/// Runs a plan with its store in the folder `place`, which is created and removed.
pub(super) fn run(plan: FaultPlan, bug: Option<Bug>, place: &Path) -> Result<RunResult> {
    std::fs::create_dir_all(place).with_context(|| format!("making {}", place.display()))?;
    let shared = Arc::new(Shared {
        cuts: plan.workers.iter().map(|_| Cut::default()).collect(),
        plan,
        bug,
        store: place.to_owned(),
        history: Mutex::default(),
        counts: Mutex::default(),
        done: AtomicBool::new(false),
        dying: Arc::default(),
        again: Arc::default(),
        stops: Mutex::default(),
    });
    let ended = World::new(&shared).run();
    let digest = ended.and_then(|simulated| {
        let (store, _) = moire_corpus::Store::open(place, moire_corpus::Options::default())?;
        Ok((simulated, store.digest(CAMPAIGN)?.to_string()))
    });
    std::fs::remove_dir_all(place).with_context(|| format!("removing {}", place.display()))?;
    let (simulated, digest) = digest?;
    let history = std::mem::take(&mut *locked(&shared.history));
    let mut counts = std::mem::take(&mut *locked(&shared.counts));
    shared.plan.natures(&mut counts);
    Ok(RunResult { history, counts, simulated, digest })
}

/// The simulation and the state of its processes.
struct World<'a> {
    sim: turmoil::Sim<'a>,
    shared: Arc<Shared>,
}

fn kill(sim: &mut turmoil::Sim<'_>, shared: &Shared, host: &str) {
    shared.dying.store(true, Ordering::Relaxed);
    sim.crash(host);
    shared.dying.store(false, Ordering::Relaxed);
}

fn host(worker: usize) -> String {
    format!("worker-{worker}")
}

impl World<'_> {
    fn new(shared: &Arc<Shared>) -> Self {
        let plan = &shared.plan;
        let mut builder = turmoil::Builder::new();
        builder
            .simulation_duration(LONGEST * 2)
            .tick_duration(TICK)
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(Duration::from_millis(plan.latency_ms))
            .tcp_capacity(SEGMENTS)
            .rng_seed(plan.seed);
        let mut sim = builder.build();
        let here = shared.clone();
        sim.host(COORDINATOR, move || coordinate(here.clone()));
        for number in 0..plan.workers.len() {
            let (here, lives) = (shared.clone(), std::cell::Cell::new(0));
            sim.host(host(number), move || {
                lives.set(lives.get() + 1);
                work(here.clone(), number, lives.get())
            });
        }
        Self { sim, shared: shared.clone() }
    }

    /// Runs until the campaign is done and no faults are left, or until the time is up.
    fn run(mut self) -> Result<Duration> {
        let failed = |e: Box<dyn std::error::Error>| anyhow!("the simulation stopped: {e}");
        let mut deeds = self.shared.plan.deeds.clone().into_iter().peekable();
        while self.sim.elapsed() < LONGEST {
            let now = self.sim.elapsed().as_millis();
            while let Some((_, deed)) = deeds.next_if(|(at, _)| u128::from(*at) <= now) {
                self.act(deed)?;
            }
            if deeds.peek().is_none() && self.shared.done.load(Ordering::Relaxed) {
                break;
            }
            self.sim.step().map_err(failed)?;
        }
        let simulated = self.sim.elapsed();
        kill(&mut self.sim, &self.shared, COORDINATOR);
        kill_store(&self.shared.store, false)?;
        Ok(simulated)
    }

    fn tell(&self, event: Event) {
        let now = millis(self.sim.elapsed());
        locked(&self.shared.history).push((now, event));
    }

    fn act(&mut self, deed: Deed) -> Result<()> {
        let sim = &mut self.sim;
        match deed {
            Deed::Hold(w) => sim.hold(host(w), COORDINATOR),
            Deed::Release(w) => sim.release(host(w), COORDINATOR),
            Deed::Cut(w) => sim.partition(host(w), COORDINATOR),
            Deed::CutUp(w) => sim.partition_oneway(host(w), COORDINATOR),
            Deed::CutDown(w) => sim.partition_oneway(COORDINATOR, host(w)),
            Deed::Repair(w) => sim.repair(host(w), COORDINATOR),
            Deed::Reset(w) => self.shared.cuts[w].cut(),
            Deed::Kill(w) if sim.is_host_running(host(w)) => {
                kill(sim, &self.shared, &host(w));
                self.tell(Event::WorkerLost { name: host(w) });
            }
            Deed::Start(w) if !sim.is_host_running(host(w)) => sim.bounce(host(w)),
            // Sending fails only while the process is between two lives.
            Deed::Drain(w) => _ = locked(&self.shared.stops).get(&w).map(|asked| asked.send(())),
            Deed::KillCoordinator(half) if sim.is_host_running(COORDINATOR) => {
                kill(sim, &self.shared, COORDINATOR);
                kill_store(&self.shared.store, half)?;
                self.shared.done.store(false, Ordering::Relaxed);
                self.tell(Event::Killed);
            }
            Deed::StartCoordinator if !sim.is_host_running(COORDINATOR) => sim.bounce(COORDINATOR),
            Deed::Kill(_) | Deed::Start(_) | Deed::KillCoordinator(_) | Deed::StartCoordinator => {
                return Ok(());
            }
        }
        deed.name().into_iter().for_each(|name| self.shared.count(name));
        Ok(())
    }
}
