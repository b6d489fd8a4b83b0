//! `moire gpu`: runs litmus programs on a device many times and compares the outcomes with those the model allows.
//!
//! Contract: every program runs in a process of its own that is killed when it takes too long, so a device that hangs takes
//! nothing with it. The child prints a record of its launches ([`moire_gpu::Recorder`]) and the parent reads it
//! back, so a launch of something else is an error. The outcomes that are allowed come from a complete exploration; without one the
//! program is not judged.

use crate::device::{LOCKS, LYING, STAND_IN, opened};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use moire_console::exit;
use moire_console::input::parse_program;
use moire_console::streams::StreamName;
use moire_coordinator::many;
use moire_execution::leaf::{LeafKind, Outcome};
use moire_explore::judge::{Verdict as Judged, flag_verdict};
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::{Profile, Stream};
use moire_gpu::{
    Device, Histogram, LaneError, Request, Sampled, Seen, StandIn, Verdict, copies, judge, kernel, observed,
    seen, takes,
};
use moire_program::ir::Program;
use moire_program::text::print;
use moire_worker::job::Cancel;
use moire_worker::oracle::{Host, Oracles, Recorded};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, LineWriter};
use std::ops::ControlFlow;
use std::path::Path;
use std::path::PathBuf;
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
    /// A batch, for a child process
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) batch: Option<PathBuf>,
}

/// Instances of the stand-in in one launch: they run one after the other.
const STAND_IN_INSTANCES: u32 = 128;
/// Time after which no program of a batch begins.
const BATCH_BEGINS: Duration = Duration::from_secs(40);
/// Most unseen outcomes that are printed.
const UNSEEN: usize = 4;

pub(crate) fn run(args: &Gpu) -> Result<u8> {
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
    judged(args)
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

/// Runs all programs, or reads what a record says of them, and prints the verdict on each.
fn judged(args: &Gpu) -> Result<u8> {
    let (mut left, mut all, mut failed) = (BTreeMap::new(), Vec::new(), 0_u64);
    let mut request =
        Request { probability: args.probability, launches: args.launches, ..Request::default() };
    let oracles = Oracles::new();
    for (name, program) in programs(args)? {
        match allowed(args, &oracles, &program) {
            Ok(allowed) => {
                request.ask(&program, args.seed);
                all.push((name, program, allowed));
            }
            Err(why) => *left.entry(why.to_string()).or_insert(0_u64) += 1,
        }
    }
    let record = match &args.replay {
        Some(path) => std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => {
            let (record, became) = recorded(args, &request)?;
            for (n, why) in became.into_iter().enumerate().rev().filter_map(|(n, b)| Some((n, b.err()?))) {
                println!("{}: {why}", all.remove(n).0);
                request.programs.remove(n);
                failed += 1;
            }
            record
        }
    };
    let (identity, answers) = request.answers(&record)?;
    println!("{} {} ({}, driver {})", identity.name, identity.uuid, identity.target(), identity.driver);
    let (mut forbidden, mut ran) = (0, 0);
    for ((name, program, allowed), answer) in all.iter().zip(answers) {
        match answer {
            Err(LaneError::Refused(why)) => *left.entry(why.to_string()).or_default() += 1,
            answer => {
                ran += 1;
                let verdict = judge(&answer?, allowed);
                forbidden += u64::from(!verdict.forbidden.is_empty());
                told(name, program, &verdict, allowed.len());
            }
        }
    }
    for (why, n) in left {
        println!("{n} not run: {why}");
    }
    println!("{} run, {forbidden} with a forbidden outcome", many(ran, "program"));
    Ok(match (forbidden, ran) {
        (1.., _) => exit::FINDING,
        (_, 1..) if failed == 0 => exit::CLEAN,
        _ => exit::INCOMPLETE,
    })
}

/// The record of the programs that ran, each in a process of its own, and what became of each. It goes to the file of
/// `--record`, too.
fn recorded(args: &Gpu, request: &Request) -> Result<(Vec<u8>, Vec<Result<(), String>>)> {
    let device = if args.stand_in { STAND_IN } else { &args.device };
    let host = opened(device, &args.locks)?;
    let mut all = serde_json::to_vec(host.identity())?;
    all.push(b'\n');
    let mut became = Vec::new();
    for asked in &request.programs {
        let one = Request { programs: vec![asked.clone()], ..*request };
        let Recorded { bytes, ended } = host.record(&one, &Cancel::new());
        if ended.is_none() {
            let named = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            all.extend_from_slice(&bytes[named..]);
        }
        became.push(ended.map_or(Ok(()), |why| Err(format!("its launch failed: {why}"))));
    }
    if let Some(path) = &args.record {
        std::fs::write(path, &all).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok((all, became))
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
    let (mut allowed, mut meaningless, mut hangs) = (BTreeSet::new(), false, false);
    let summary = explore(program, &model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        let wrong = [Judged::Undefined, Judged::Lifetime, Judged::Protocol];
        meaningless |= facts.flags.iter().any(|f| wrong.contains(&flag_verdict(f)));
        hangs |= facts.kind == LeafKind::Blocked;
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
        None if hangs => bail!("it may hang"),
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

/// Runs a batch, and prints its record line by line.
fn batch(args: &Gpu, file: &Path) -> Result<u8> {
    let file = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let request: Request = serde_json::from_reader(BufReader::new(file)).context("--batch")?;
    let device = here(args, STAND_IN_INSTANCES)?;
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
