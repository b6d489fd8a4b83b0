//! `moire bench minimise`: minimises findings of forty instructions with a fleet, with one worker, and with ddmin.
//!
//! Contract: all three ask the same oracle about the same claim. The fleet is a coordinator and workers of one thread
//! each, which talk gRPC over loopback. ddmin only leaves out instructions. The candidates tried and the sizes are
//! functions of the finding's number; the times are not.

use anyhow::{Context, Result, anyhow, bail};
use moire_console::control::{connect, runtime, said};
use moire_console::{campaign, exit};
use moire_coordinator::{Local, lease, v1};
use moire_program::ir::Program;
use moire_program::reduce::ddmin;
use moire_program::text::{Format, parse, print};
use moire_worker::job::{Budget, Cancel, Claim, Engine, Item, Plan, Source, Verification};
use moire_worker::oracle::Oracles;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Two models that disagree on the core of every finding: whether a proxy fence on one side is enough.
const MODELS: [&str; 2] = ["ptx:Q6=D", "ptx"];

#[derive(Debug, clap::Args)]
pub(crate) struct Minimise {
    /// Number of findings
    #[arg(long, default_value_t = 3)]
    findings: u64,
    /// Number of instructions of each finding
    #[arg(long, default_value_t = 40)]
    instructions: u64,
    /// Workers of the fleet, of one thread each
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Most seconds the fleet may take for one finding; more is a finding (exit 10)
    #[arg(long, default_value_t = 60)]
    within: u64,
}

/// The result of one of the three methods.
struct Answer {
    program: Program,
    tried: u64,
    seconds: f64,
}

pub(crate) fn run(args: &Minimise) -> Result<u8> {
    let engine = Arc::new(Oracles::new());
    let mut slow = false;
    println!("finding  how        threads  instructions  tried  seconds");
    for n in 0..args.findings {
        let claim = claim(&engine, &text(n, args.instructions))?;
        let start = parse(&claim.program, Format::Native).map_err(|e| anyhow!("{e}"))?;
        let fleet = by_fleet(args, &engine, &claim)?;
        let one = by_one(&engine, &claim)?;
        let ddmin = by_ddmin(&engine, &claim, &start);
        slow |= fleet.seconds > args.within as f64;
        let whole = Answer { program: start, tried: 0, seconds: 0.0 };
        for (how, answer) in
            [("as found", &whole), ("fleet", &fleet), ("one worker", &one), ("ddmin", &ddmin)]
        {
            let p = &answer.program;
            let instructions: usize = p.threads.iter().map(|t| t.body.len()).sum();
            let (threads, tried, seconds) = (p.threads.len(), answer.tried, answer.seconds);
            println!("{n:>7}  {how:<10} {threads:>7}  {instructions:>12}  {tried:>5}  {seconds:>7.2}");
        }
    }
    Ok(if slow { exit::FINDING } else { exit::CLEAN })
}

/// Writes a program in which three instructions show the difference; the others are padding.
fn text(n: u64, instructions: u64) -> String {
    let mut out = format!("moire \"found-{n}\"\n.global .b32 x;\n.surface s = x;\n.global .b32 y;\n");
    let core = ["st.weak.u32 [x], 1;", "fence.proxy.surface;", "suld.weak.u32 q, [s];"];
    let padding = instructions.saturating_sub(core.len() as u64);
    for thread in 0..4 {
        let _ = writeln!(out, ".global .b32 a{thread};");
    }
    let mut left = core.iter();
    for thread in 0..4 {
        let _ = writeln!(out, "P{thread} (gpu 0, cta {thread}) {{");
        let own = padding / 4 + u64::from(thread < padding % 4);
        for k in 0..own {
            // The three stand apart in the first thread, at other places for each finding.
            if thread == 0 && (k + n).is_multiple_of(own / 3 + 1) {
                left.next().into_iter().for_each(|line| out.push_str(line));
            }
            let _ = match (k + n + thread) % 5 {
                0 => writeln!(out, "st.relaxed.gpu.u32 [a{thread}], {};", k + 1),
                1 => writeln!(out, "fence.acq_rel.gpu;"),
                2 => writeln!(out, "ld.relaxed.gpu.u32 r{k}, [a{thread}];"),
                3 if k < 4 && thread < 2 => writeln!(out, "st.relaxed.gpu.u32 [y], {};", thread + 1),
                3 => writeln!(out, "ld.weak.u32 r{k}, [a{thread}];"),
                _ => writeln!(out, "fence.sc.cta;"),
            };
        }
        if thread == 0 {
            left.by_ref().for_each(|line| out.push_str(line));
        }
        out.push_str("}\n");
    }
    out
}

/// Makes the claim that the models differ on a program.
fn claim(engine: &Oracles, text: &str) -> Result<Claim> {
    let (models, oracles) = (MODELS.map(str::to_owned).to_vec(), vec!["model-pair".to_owned()]);
    let plan = Arc::new(Plan { models, oracles, ..Plan::default() });
    let item = Item { plan, index: 0, source: Source::Text(text.to_owned()) };
    let report = engine.run(&item, &Cancel::new());
    let reasons: Vec<&String> = report.abstentions.keys().collect();
    report.claims.into_iter().next().with_context(|| format!("the models do not differ: {reasons:?}\n{text}"))
}

fn reduced(text: &str) -> Result<Program> {
    parse(text, Format::Native).map_err(|e| anyhow!("the result cannot be parsed: {e}\n{text}"))
}

fn by_fleet(args: &Minimise, engine: &Arc<Oracles>, claim: &Claim) -> Result<Answer> {
    let folder = std::env::temp_dir().join(format!("moire-minimise-{}", std::process::id()));
    let runtime = runtime()?;
    let result = runtime.block_on(fleet(args, engine, claim, &folder));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    // A folder that cannot be removed does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    let (result, seconds) = result?;
    if !result.normal {
        bail!("the fleet's result is not in normal form");
    }
    let program = reduced(&result.claim.unwrap_or_default().program)?;
    Ok(Answer { program, tried: result.tried, seconds })
}

async fn fleet(
    args: &Minimise,
    engine: &Arc<Oracles>,
    claim: &Claim,
    folder: &Path,
) -> Result<(v1::MinimiseResult, f64)> {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let here = Local::start(folder, anywhere, lease::Config::default()).await?;
    campaign::workers(here.addr(), engine, args.workers);
    let mut client = connect(&here.addr().into()).await?;
    let job = v1::MinimiseJob { claim: Some(claim.clone().into()), ..v1::MinimiseJob::default() };
    let job = Some(v1::submit_job_request::Job::Minimise(job));
    let start = Instant::now();
    let answer = client.submit_job(v1::SubmitJobRequest { plan: None, job }).await.map_err(said)?;
    let seconds = start.elapsed().as_secs_f64();
    here.stop().await?;
    match answer.into_inner().result {
        Some(v1::submit_job_response::Result::Minimise(result)) => Ok((result, seconds)),
        _ => bail!("the answer is not that of a minimisation"),
    }
}

fn by_one(engine: &Oracles, claim: &Claim) -> Result<Answer> {
    let start = Instant::now();
    let budget = Budget { candidates: moire_coordinator::MINIMISE_CANDIDATES };
    let result = engine.minimise(claim, budget, &Cancel::new(), &mut |_| {});
    let seconds = start.elapsed().as_secs_f64();
    Ok(Answer { program: reduced(&result.claim.program)?, tried: result.tried, seconds })
}

fn by_ddmin(engine: &Oracles, claim: &Claim, program: &Program) -> Answer {
    let start = Instant::now();
    let (program, tried) = ddmin(program, |candidate| {
        let claim = Claim { program: print(candidate), ..claim.clone() };
        engine.verify(&claim, &Cancel::new()) == Verification::Confirmed
    });
    Answer { program, tried: tried as u64, seconds: start.elapsed().as_secs_f64() }
}
