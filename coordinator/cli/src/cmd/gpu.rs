//! `moire gpu`: runs litmus programs on a device many times and compares the outcomes with those the model allows.
//!
//! Contract: every launch is a process of its own that is killed when it takes too long, so a device that hangs takes
//! nothing with it. The child prints a record of its launch ([`moire_gpu::Recorder`]) and the parent reads it back, so a
//! launch of something else is an error. The outcomes that are allowed come from a complete exploration; without one the
//! program is not judged.

use crate::device::{LOCKS, LYING, STAND_IN};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use moire_console::exit;
use moire_console::input::parse_program;
use moire_console::streams::StreamName;
use moire_coordinator::clock::unix_ms;
use moire_coordinator::many;
use moire_execution::leaf::Outcome;
use moire_explore::judge::{Verdict as Judged, flag_verdict};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::{Profile, Stream};
use moire_gpu::{
    Batch, Device, DeviceError, Histogram, Identity, Lane, LaneError, Locked, Recorder, Replayer, Request,
    Sampled, Samples, Seen, Settings, StandIn, Strategy, Verdict, copies, judge, kernel, observed, seen,
    takes,
};
use moire_program::ir::Program;
use moire_program::text::print;
use moire_toolchain::run::{Limits as RunLimits, run as run_process};
use moire_worker::oracle::Oracles;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, BufWriter, LineWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct Gpu {
    /// Programs: native litmus, Dat3M PTX litmus, mixedproxy
    pub(crate) files: Vec<PathBuf>,
    /// Draw so many programs that can run on a device, in addition to the files
    #[arg(long, default_value_t = 0)]
    pub(crate) count: u64,
    /// What is drawn; of most streams the device runs little or nothing
    #[arg(long, value_parser = StreamName, default_value_t = Profile::Core)]
    pub(crate) stream: Profile,
    /// Seed of the stream, and of the placements
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The model, NAME or NAME:SWITCH=VALUE,..
    #[arg(long, default_value = "ptx")]
    pub(crate) model: String,
    /// Samples are taken until an outcome of this probability would have been seen with 95 % confidence
    #[arg(long, default_value_t = 1e-5)]
    pub(crate) probability: f64,
    /// Most launches of one program
    #[arg(long, default_value_t = 60)]
    pub(crate) launches: u32,
    /// Number of the device; `stand-in` interleaves the threads here, which finds no bug, but runs everything else
    #[arg(long, value_name = "DEVICE", default_value = "0")]
    pub(crate) device: String,
    /// The same as --device stand-in
    #[arg(long)]
    pub(crate) stand_in: bool,
    /// Record all launches in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Judge a record instead of running anything: the histogram of a finding, or a record of --record with the programs and
    /// numbers that it was made with
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stand_in", "record"])]
    pub(crate) replay: Option<PathBuf>,
    /// Print the kernels and run nothing
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Architecture of printed kernels
    #[arg(long, default_value = "sm_90")]
    pub(crate) target: String,
    /// Folder of the locks, one for each device
    #[arg(long, value_name = "DIR", default_value = LOCKS)]
    pub(crate) locks: PathBuf,
    /// One launch, for a child process
    #[arg(long, hide = true)]
    pub(crate) launch: Option<String>,
    /// A batch, for a child process of an oracle
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) batch: Option<PathBuf>,
}

/// Instances of the stand-in in one launch: they run one after the other.
const STAND_IN_INSTANCES: u32 = 512;
/// Instances of the stand-in in one launch of a batch.
const BATCH_INSTANCES: u32 = 128;
/// Time after which no program of a batch begins.
const BATCH_BEGINS: Duration = Duration::from_secs(40);
/// Longest launch, the start of its process and the assembling of its kernel included.
const LAUNCH: Duration = Duration::from_secs(60);
/// Longest record of one launch, in bytes.
const RECORD_BYTES: usize = 16 << 20;
/// Most unseen outcomes that are printed.
const UNSEEN: usize = 4;

/// One launch, as it is asked of a child.
#[derive(serde::Serialize, serde::Deserialize)]
struct Launch {
    strategy: Strategy,
    seed: u64,
}

pub(crate) fn run(args: &Gpu) -> Result<u8> {
    if let Some(launch) = &args.launch {
        return child(args, launch);
    }
    if let Some(file) = &args.batch {
        return batch(args, file);
    }
    if args.kernel {
        for (_, program) in programs(args)? {
            print!("{}", kernel(&program, &args.target).map_err(|e| anyhow!("{e}"))?.text);
        }
        return Ok(exit::CLEAN);
    }
    if let Some(sampled) = args.replay.as_deref().map(histogram).transpose()?.flatten() {
        return again(args, &sampled);
    }
    let device: Box<dyn Device> = match &args.replay {
        Some(path) => {
            let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            Box::new(
                Replayer::read(BufReader::new(file))
                    .with_context(|| format!("reading {}", path.display()))?,
            )
        }
        None => Box::new(Children::new(args)?),
    };
    match &args.record {
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            judged(args, Recorder::new(device, BufWriter::new(file))?)
        }
        None => judged(args, device),
    }
}

/// The histogram of a finding, if that is what a file has.
fn histogram(path: &Path) -> Result<Option<Sampled>> {
    let bytes =
        moire_console::bounded::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(serde_json::from_slice(&bytes).ok())
}

/// Judges the histogram of a finding anew.
fn again(args: &Gpu, sampled: &Sampled) -> Result<u8> {
    let program = parse_program("the histogram", sampled.program.as_bytes())?.written().clone();
    let allowed = allowed(args, &Oracles::new(), &program)?;
    let mut seen = Histogram::default();
    sampled.seen.iter().for_each(|one| seen.merge(Histogram([one.clone()].into())));
    let mut verdict = judge(&seen, &allowed);
    println!("{}", crate::samples::line(sampled));
    let is_cut = verdict.samples < sampled.samples;
    if is_cut {
        println!("outcomes of {} were not kept", many(sampled.samples - verdict.samples, "sample"));
        verdict.unseen.clear();
    }
    let code = told("the histogram", &program, &verdict, allowed.len());
    // What was not kept may be allowed or not.
    Ok(if is_cut && code == exit::CLEAN { exit::INCOMPLETE } else { code })
}

/// Prints the verdict on a program; its exit code.
fn told(name: &str, program: &Program, verdict: &Verdict, allowed: usize) -> u8 {
    let is_allowed = verdict.forbidden.is_empty();
    println!(
        "{name}: {}, {}, {} of {allowed} allowed outcomes seen",
        if is_allowed { "allowed" } else { "FORBIDDEN" },
        many(verdict.samples, "sample"),
        verdict.seen,
    );
    for (seen, n) in &verdict.forbidden {
        println!("  seen {n} times, not allowed: {}", outcome(program, seen));
    }
    if !is_allowed {
        print!("{}", print(program));
    }
    for unseen in verdict.unseen.iter().take(UNSEEN) {
        println!(
            "  not seen, with 95 % confidence rarer than {:.1e}: {}",
            unseen.below,
            outcome(program, &unseen.outcome)
        );
    }
    if is_allowed { exit::CLEAN } else { exit::FINDING }
}

/// Runs all programs and prints the verdict on each.
fn judged(args: &Gpu, device: impl Device) -> Result<u8> {
    let identity = device.identity().clone();
    println!("{} {} ({}, driver {})", identity.name, identity.uuid, identity.target(), identity.driver);
    let settings = Settings { probability: args.probability, launches: args.launches, seed: args.seed };
    let lock = match args.replay {
        Some(_) => None,
        None => Some(Locked::take(&args.locks, &identity.uuid, unix_ms())?),
    };
    let mut lane = Lane::new(device, lock, settings, unix_ms())?;
    let (mut forbidden, mut ran, mut left) = (0, 0, BTreeMap::new());
    let oracles = Oracles::new();
    for (name, program) in programs(args)? {
        let allowed = match allowed(args, &oracles, &program) {
            Ok(allowed) => allowed,
            Err(why) => {
                *left.entry(why.to_string()).or_insert(0_u64) += 1;
                continue;
            }
        };
        let histogram = match lane.run(&program, unix_ms()) {
            Err(LaneError::Refused(why)) => {
                *left.entry(why.to_string()).or_default() += 1;
                continue;
            }
            ran => ran?,
        };
        ran += 1;
        let verdict = judge(&histogram, &allowed);
        forbidden += u64::from(!verdict.forbidden.is_empty());
        told(&name, &program, &verdict, allowed.len());
    }
    for (why, n) in left {
        println!("{n} not run: {why}");
    }
    println!("{} run, {forbidden} with a forbidden outcome", many(ran, "program"));
    Ok(match (forbidden, ran) {
        (0, 0) => exit::INCOMPLETE,
        (0, _) => exit::CLEAN,
        _ => exit::FINDING,
    })
}

/// The programs of the command line: the files, and drawn programs that can run on a device.
fn programs(args: &Gpu) -> Result<Vec<(String, Program)>> {
    let mut out = Vec::new();
    for path in &args.files {
        out.push((path.display().to_string(), read(path)?));
    }
    let profile = args.stream;
    let stream = Stream::new(args.seed, profile);
    let drawn =
        (0..args.count.saturating_mul(50)).map(|n| (format!("{profile}-{}-{n}", args.seed), stream.item(n)));
    let wanted = usize::try_from(args.count).context("too many programs")?;
    out.extend(drawn.filter(|(_, program)| takes(program).is_ok()).take(wanted));
    if out.is_empty() {
        bail!("name files, or draw programs with --count");
    }
    Ok(out)
}

fn read(path: &Path) -> Result<Program> {
    let name = path.display().to_string();
    let bytes = moire_console::bounded::read(path).with_context(|| format!("cannot read {name}"))?;
    Ok(parse_program(&name, &bytes)?.written().clone())
}

/// Every outcome the model allows.
///
/// # Errors
/// Why they are not all known.
fn allowed(args: &Gpu, oracles: &Oracles, program: &Program) -> Result<BTreeSet<Seen>> {
    takes(program)?;
    let model = oracles.model(&args.model)?;
    let limits = Limits { leaves: 100_000, ..Limits::default() };
    let (mut allowed, mut meaningless) = (BTreeSet::new(), false);
    let summary = explore(program, &model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        meaningless |= facts.flags.iter().any(|f| flag_verdict(f) == Judged::Undefined);
        let memory = |o: &Outcome| {
            let bytes = copies(program).into_iter().map(|(n, _)| program.objects[n].bytes);
            o.memory.iter().zip(bytes).map(|(content, bytes)| content.bytes(bytes)).collect()
        };
        allowed.extend(facts.outcomes.into_iter().map(|o| seen(program, o.regs.iter().copied(), memory(&o))));
        ControlFlow::Continue(())
    });
    match summary.map_err(|abstained| anyhow!(abstained.reason))?.bounded {
        Some(bound) => bail!("not explored completely: {bound}"),
        None if meaningless => bail!("the model gives the program no meaning"),
        None => Ok(allowed),
    }
}

/// `P1:r0 = 1, x = 1`
pub(crate) fn outcome(program: &Program, seen: &Seen) -> String {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0_u128, |n, byte| n << 8 | u128::from(*byte));
    let registers = observed(program).into_iter().zip(&seen.regs).map(|((t, r), value)| {
        let thread = &program.threads[t.index()];
        format!("{}:{} = {value}", thread.name, thread.regs[r.index()].name)
    });
    let several = |n| copies(program).iter().filter(|(other, _)| *other == n).count() > 1;
    let name = |(n, cta): (usize, Option<u16>)| match cta.filter(|_| several(n)) {
        Some(cta) => format!("{} of CTA {cta}", program.objects[n].name),
        None => program.objects[n].name.clone(),
    };
    let memory =
        copies(program).into_iter().map(name).zip(&seen.memory).map(|(name, bytes)| match bytes.len() {
            0..=16 => format!("{name} = {}", number(bytes)),
            _ => format!("{name} = {bytes:?}"),
        });
    registers.chain(memory).collect::<Vec<_>>().join(", ")
}

/// Does one launch, or none, and prints its record.
fn child(args: &Gpu, launch: &str) -> Result<u8> {
    let mut record = Vec::new();
    let mut device = Recorder::new(here(args, STAND_IN_INSTANCES)?, &mut record)?;
    if !launch.is_empty() {
        let launch: Launch = serde_json::from_str(launch).context("--launch")?;
        let program = read(args.files.first().context("--launch wants a program")?)?;
        let kernel = kernel(&program, &device.identity().target()).map_err(|e| anyhow!("{e}"))?;
        let batch =
            Batch { program: &program, kernel: &kernel, strategy: &launch.strategy, seed: launch.seed };
        // A launch that failed is in the record.
        let _ = device.run(&batch);
    }
    drop(device);
    std::io::stdout().write_all(&record)?;
    Ok(exit::CLEAN)
}

/// Runs a batch of an oracle, and prints its record line by line.
fn batch(args: &Gpu, file: &Path) -> Result<u8> {
    let file = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let request: Request = serde_json::from_reader(BufReader::new(file)).context("--batch")?;
    let device = here(args, BATCH_INSTANCES)?;
    if !device.identity().is_stand_in() {
        // A driver reserves more memory than a lease has.
        crate::memory::limit(u64::MAX)?;
    }
    let begun = Instant::now();
    request.run(device, LineWriter::new(std::io::stdout()), || begun.elapsed() > BATCH_BEGINS)?;
    Ok(exit::CLEAN)
}

/// The device of this process. `instances`: of a stand-in, in one launch.
fn here(args: &Gpu, instances: u32) -> Result<Box<dyn Device>> {
    match args.device.as_str() {
        _ if args.stand_in => Ok(Box::new(StandIn::new(instances))),
        STAND_IN => Ok(Box::new(StandIn::new(instances))),
        LYING => Ok(Box::new(StandIn::lying(instances))),
        number => nvidia(number.parse().context("the number of a device")?),
    }
}

#[cfg(feature = "gpu")]
fn nvidia(number: u32) -> Result<Box<dyn Device>> {
    let opened = moire_gpu::Nvidia::open(number);
    Ok(Box::new(opened.map_err(|e| anyhow!("{e}; --device stand-in runs without a device"))?))
}

#[cfg(not(feature = "gpu"))]
fn nvidia(_number: u32) -> Result<Box<dyn Device>> {
    bail!(
        "this moire was built without devices: build it with `--features gpu`, or use the stand-in: \
         `moire gpu --stand-in`, --device stand-in of other commands"
    )
}

/// A device each of whose launches is a process.
struct Children<'a> {
    args: &'a Gpu,
    identity: Identity,
}

impl<'a> Children<'a> {
    fn new(args: &'a Gpu) -> Result<Self> {
        let record = Self::record(args, "", None)?;
        Ok(Self { args, identity: record.identity().clone() })
    }

    /// The record of a child process; `program`: for a launch.
    fn record(args: &Gpu, launch: &str, program: Option<&Path>) -> Result<Replayer, DeviceError> {
        let failed = |why: String| DeviceError::Failed { call: "a child process", why };
        let exe = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
        let mut command = Command::new(exe);
        command.arg("gpu").args(["--device", &args.device, "--launch", launch]).args(program);
        if args.stand_in {
            command.arg("--stand-in");
        }
        let limits = RunLimits { deadline: LAUNCH, output: RECORD_BYTES };
        let out = match run_process(command, limits) {
            Ok(out) => out,
            Err(moire_toolchain::run::RunError::TimedOut(_)) => {
                return Err(DeviceError::Late(LAUNCH.as_secs()));
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        if !out.status.success() {
            return Err(failed(out.stderr.trim().trim_start_matches("moire: ").to_owned()));
        }
        Replayer::read(out.stdout.as_bytes()).map_err(|e| failed(format!("its record does not read: {e}")))
    }
}

impl Device for Children<'_> {
    fn identity(&self) -> &Identity {
        &self.identity
    }
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        let failed = |why: String| DeviceError::Failed { call: "a child process", why };
        let file = self.args.locks.join(format!("launch-{}.litmus", std::process::id()));
        std::fs::write(&file, print(batch.program)).map_err(|e| failed(e.to_string()))?;
        let launch = Launch { strategy: *batch.strategy, seed: batch.seed };
        let launch = serde_json::to_string(&launch).map_err(|e| failed(e.to_string()));
        let record = launch.and_then(|launch| Self::record(self.args, &launch, Some(&file)));
        // It is in nobody's way.
        let _ = std::fs::remove_file(&file);
        let mut record = record?;
        if *record.identity() != self.identity {
            return Err(failed("the device has changed".to_owned()));
        }
        record.run(batch)
    }
}

/// The lines of `moire doctor` about devices.
#[cfg(feature = "gpu")]
pub(crate) fn doctor() -> String {
    let mut lines = Vec::new();
    for number in 0.. {
        match moire_gpu::Nvidia::open(number) {
            Ok(device) => {
                let it = device.identity();
                let (name, target, driver) = (&it.name, it.target(), &it.driver);
                lines.push(format!("ok       {name} for --device {number} ({target}, driver {driver})"));
            }
            Err(error) if number == 0 => {
                return format!(
                    "missing  a device for `moire gpu` and the oracle `device` (optional): {error}"
                );
            }
            Err(_) => break,
        }
    }
    lines.join("\n")
}

/// The line of `moire doctor` about devices.
#[cfg(not(feature = "gpu"))]
pub(crate) fn doctor() -> String {
    "missing  devices for `moire gpu` and the oracle `device` (optional): this moire was built without the feature gpu".to_owned()
}
