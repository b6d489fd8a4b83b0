//! The device oracles: what a device shows is what the model allows.
//!
//! A program that the lane takes ([`moire_gpu::takes`]) runs a few thousand times, in a batch with its neighbours of the stream.
//! Each outcome seen must be one of those that the explorer finds. One that is not refutes the model, or the device; it is a
//! claim, with the histogram, the seed, the device and its driver as evidence. A sample refutes and never confirms, so a
//! claim that does not show again is abstained from and never refuted.
//!
//! There are two oracles with this rule: `device` asks a device, and `stand-in` what interleaves threads in the place of
//! one. They differ in name and capability, so no worker of one gets an item of the other, and no finding of a stand-in is
//! ever one of a device. What a device shows depends on more than the item; the coordinator compares neither rows nor
//! claims of these oracles ([`moire_proto::needs::is_sampled`]).

mod evidence;
mod host;

pub use host::{Host, Processes, Recorded, Within};

use super::about::{About, Takes, Tool};
use super::abstention::Abstention;
use super::answer::{Answer, explored, explored_planted};
use super::batches::Batches;
use super::case::{Case, Context};
use super::litmus::{Broken, Rule};
use crate::direction::Direction;
use crate::job::{Cancel, Claim, EngineReport, Source};
use moire_execution::leaf::Outcome;
use moire_generate::{Profile, Stream};
use moire_gpu::{
    BATCH, DeviceError, Histogram, Identity, LaneError, Request, Seen, Verdict, copies, judge, may_hang,
    seen, takes,
};
use moire_program::canon::spell::hash;
use moire_program::ir::{Content, Program};
use moire_program::text::print;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A device.
pub const DEVICE: Tool = Tool {
    capability: "device",
    how: "build moire with `--features gpu`, and lend a device to it with --device NUMBER",
};
/// What stands in for one.
pub const STAND_IN: Tool = Tool { capability: "stand-in", how: "--device stand-in" };

const fn about(tool: Tool) -> About {
    let name = tool.capability;
    About { name, takes: Takes::Programs, by_default: false, under_models: true, tool: Some(tool) }
}
const OF_DEVICE: About = about(DEVICE);
const OF_STAND_IN: About = about(STAND_IN);

/// The model where the plan names none.
const MODEL: &str = "ptx";
/// Outcomes of this probability are seen with 95 % confidence.
const PROBABILITY: f64 = 1e-4;
/// Most launches of a program: each strategy has its turn, and some a second one.
const LAUNCHES: u32 = 8;
/// Runs of a claim, each with another seed, before it is said that it does not show again.
const RUNS: u64 = 4;

/// The oracle `stand-in`, or `device`.
#[derive(Debug, Default)]
pub(super) struct OnDevice<const STANDS_IN: bool> {
    host: Option<Arc<dyn Host>>,
    batches: Batches<Profile, Result<Ran, String>>,
}

/// What a device showed of a program.
#[derive(Clone, Debug)]
struct Ran {
    seed: u64,
    histogram: Arc<Histogram>,
}

/// What a device showed of a program, beside what a model allows.
struct Judged<'a> {
    program: &'a Program,
    spec: &'a str,
    ran: Ran,
    verdict: Verdict,
}

impl<const STANDS_IN: bool> OnDevice<STANDS_IN> {
    /// With this device.
    pub(super) fn of(host: Arc<dyn Host>) -> Self {
        Self { host: Some(host), ..Self::default() }
    }

    fn host(&self) -> Result<&dyn Host, Abstention> {
        self.host.as_deref().ok_or(Abstention::Unusable("no device here"))
    }

    /// What the device shows of the program of an item. A drawn one runs with its neighbours.
    fn shown(&self, case: &Case<'_>, program: &Program) -> Result<Ran, Abstention> {
        takes(program)?;
        let (host, cancel) = (self.host()?, case.context.cancel);
        if !ends(program, case.context) {
            return Err(Abstention::Unusable("it may hang, or misuse an mbarrier"));
        }
        let Source::Generated { seed, profile, index } = &case.item.source else {
            return first(ran(host, &[(program, seed_of(program, 0))], cancel));
        };
        let profile = profile.parse::<Profile>()?;
        let stream = Stream::new(*seed, profile);
        let answer = self.batches.item(BATCH, &profile, (*seed, *index), |block| {
            let all: Vec<Program> = block.map(|index| stream.item(index)).collect();
            let taken = |p: &&Program| takes(p).is_ok() && ends(p, case.context);
            let asked: Vec<_> = all.iter().filter(taken).map(|p| (p, seed_of(p, 0))).collect();
            let mut answers = ran(host, &asked, cancel).into_iter();
            all.iter()
                .map(|p| taken(&p).then(|| answers.next()).flatten().unwrap_or(Err(String::new())))
                .collect()
        });
        answer.map_err(Abstention::Undecided)
    }

    /// Compares what the device showed with what the model allows.
    fn judged<'a>(
        &self,
        program: &'a Program,
        spec: &'a str,
        ran: Ran,
        context: Context<'_>,
    ) -> Result<Judged<'a>, Abstention> {
        let allowed = allowed(program, spec, context)?;
        let verdict = judge(&ran.histogram, &allowed);
        match verdict.samples {
            0 => Err(Abstention::Unusable("no samples")),
            _ => Ok(Judged { program, spec, ran, verdict }),
        }
    }

    /// How a program breaks the rule, if it does.
    fn broken(&self, judged: &Judged<'_>) -> Result<Option<Broken>, Abstention> {
        let Some((seen, _)) = judged.verdict.forbidden.first() else { return Ok(None) };
        let identity = self.host()?.identity();
        Ok(Some(Broken {
            direction: Direction::Subset,
            models: vec![side(identity), judged.spec.to_owned()],
            outcome: Some((0, outcome(seen))),
            causes: Vec::new(),
            witness: Some(evidence::of(identity, judged)),
        }))
    }

    /// The row of an item, and how it breaks the rule.
    fn tried(
        &self,
        case: &Case<'_>,
        program: &Program,
    ) -> Result<(EngineReport, Option<Broken>), Abstention> {
        let spec = case.item.plan.models.last().map_or(MODEL, String::as_str);
        let ran = self.shown(case, program)?;
        let judged = self.judged(program, spec, ran, case.context)?;
        let outcomes: Vec<Outcome> = judged.ran.histogram.0.keys().map(outcome).collect();
        let row = EngineReport {
            engine: format!("{}/{}", Self::ABOUT.name, self.host()?.identity().target()),
            verdict: if judged.verdict.forbidden.is_empty() { "allowed" } else { "forbidden" }.to_owned(),
            outcomes: hash(&outcomes),
            leaves: [0; 32],
            executions: judged.verdict.samples,
        };
        Ok((row, self.broken(&judged)?))
    }
}

impl<const STANDS_IN: bool> Rule for OnDevice<STANDS_IN> {
    const ABOUT: &'static About = if STANDS_IN { &OF_STAND_IN } else { &OF_DEVICE };

    fn item(&self, case: &mut Case<'_>, program: &Arc<Program>) -> Vec<(Arc<Program>, Broken)> {
        match self.tried(case, program) {
            Ok((row, broken)) => {
                case.report.engines.push(row);
                broken.into_iter().map(|broken| (Arc::clone(program), broken)).collect()
            }
            Err(why) => {
                case.abstain(&why.at(Self::ABOUT.name));
                Vec::new()
            }
        }
    }

    /// The rule was broken where the claim was made, whatever is seen here: nothing seen is no answer.
    fn again(
        &self,
        claim: &Claim,
        program: &Program,
        context: Context<'_>,
    ) -> Result<Option<Broken>, Abstention> {
        let (specs, host) = (claim.specs(), self.host()?);
        let ([own, spec], Direction::Subset) = (specs.as_slice(), claim.direction) else {
            return Err(Abstention::FORM);
        };
        if *own != side(host.identity()) {
            return Err(Abstention::Undecided(format!("it was seen on {own}, which is not here")));
        }
        takes(program)?;
        let runs: Vec<_> = (0..RUNS).map(|run| (program, seed_of(program, run))).collect();
        let mut samples = 0;
        for ran in ran(host, &runs, context.cancel) {
            let judged = self.judged(program, spec, ran.map_err(Abstention::Undecided)?, context)?;
            samples += judged.verdict.samples;
            if let Some(broken) = self.broken(&judged)? {
                return Ok(Some(broken));
            }
        }
        Err(Abstention::Undecided(format!("not seen again in {samples} samples")))
    }

    fn has_tool(&self) -> bool {
        self.host.is_some()
    }

    fn capabilities(&self) -> Vec<String> {
        let identity = self.host.as_deref().map(Host::identity).filter(|identity| !identity.is_stand_in());
        identity.map(|identity| format!("{}:{}", DEVICE.capability, identity.target())).into_iter().collect()
    }

    fn version_of(&self, spec: &str) -> Option<Result<String, Abstention>> {
        let identity = self.host.as_deref()?.identity();
        (spec == side(identity))
            .then(|| Ok(format!("{} {} {}", identity.name, identity.target(), identity.driver)))
    }
}

fn first(answers: Vec<Result<Ran, String>>) -> Result<Ran, Abstention> {
    answers.into_iter().next().unwrap_or(Err(String::new())).map_err(Abstention::Undecided)
}

/// The specification of a device, as a side of claims.
fn side(identity: &Identity) -> String {
    let (major, minor) = identity.capability;
    match identity.is_stand_in() {
        true => STAND_IN.capability.to_owned(),
        false => format!("{}:sm={major}{minor}", DEVICE.capability),
    }
}

/// The seed of a run of a program: it depends on nothing else.
fn seed_of(program: &Program, run: u64) -> u64 {
    let text = blake3::hash(print(program).as_bytes());
    let start = text.as_bytes().first_chunk().expect("a hash has 32 bytes");
    u64::from_le_bytes(*start).wrapping_add(run)
}

/// What a device shows of some programs, each with its seed; or why nothing. A program that takes its process with it is left
/// out, and the others go on without it.
fn ran(host: &dyn Host, programs: &[(&Program, u64)], cancel: &Cancel) -> Vec<Result<Ran, String>> {
    let (mut out, mut why) = (Vec::new(), String::new());
    while out.len() < programs.len() && !cancel.is_cancelled() {
        let before = out.len();
        let part = match part(host, &programs[before..], cancel) {
            Ok(part) => part,
            Err(error) => {
                why = error;
                break;
            }
        };
        out.extend(part);
        if !out[before..].iter().any(Result::is_ok) {
            why = out.last().and_then(|last| last.as_ref().err().cloned()).unwrap_or_default();
            break;
        }
    }
    out.resize(programs.len(), Err(why));
    out
}

/// The answers of one process, in order: all of them, or as far as it had time, or up to the program that ended it.
fn part(
    host: &dyn Host,
    programs: &[(&Program, u64)],
    cancel: &Cancel,
) -> Result<Vec<Result<Ran, String>>, String> {
    let mut request = Request { probability: PROBABILITY, launches: LAUNCHES, ..Request::default() };
    programs.iter().for_each(|(program, seed)| request.ask(program, *seed));
    let recorded = host.record(&request, cancel);
    let lost = recorded.ended.map(|why| format!("its batch was lost: {why}"));
    let (identity, answers) =
        request.answers(&recorded.bytes).map_err(|e| lost.clone().unwrap_or_else(|| e.to_string()))?;
    if identity != *host.identity() {
        return Err("the device has changed".to_owned());
    }
    let mut out = Vec::new();
    for (answer, (_, seed)) in answers.into_iter().zip(programs) {
        match answer {
            Ok(histogram) => out.push(Ok(Ran { seed: *seed, histogram: Arc::new(histogram) })),
            Err(LaneError::Refused(why)) => out.push(Err(why.to_string())),
            Err(LaneError::Device(DeviceError::NotRecorded(_))) if lost.is_none() => break,
            Err(error) => {
                out.push(Err(lost.unwrap_or_else(|| error.to_string())));
                break;
            }
        }
    }
    if out.is_empty() { Err("no time was left in its batch".to_owned()) } else { Ok(out) }
}

/// Whether a program surely ends: it cannot hang by its text, or all its executions end.
fn ends(program: &Program, context: Context<'_>) -> bool {
    let all_end = |answer: Answer| !answer.cut && !answer.undefined && !answer.hangs() && !answer.misuses();
    let answer = || explored(program, &*context.models.get(MODEL).ok()?).ok();
    !may_hang(program) || answer().is_some_and(all_end)
}

/// Every outcome that the model allows.
fn allowed(program: &Program, spec: &str, context: Context<'_>) -> Result<BTreeSet<Seen>, Abstention> {
    let model = context.models.get(spec)?;
    let answer = explored_planted(program, &model, context.planted)?;
    context.cancel.tick();
    if answer.cut {
        return Err(Abstention::CUT);
    }
    if answer.undefined || answer.misuses() {
        return Err(Abstention::Unusable("the model gives the program no meaning"));
    }
    let memory = |o: &Outcome| {
        let bytes = copies(program).into_iter().map(|(n, _)| program.objects[n].bytes);
        o.memory.iter().zip(bytes).map(|(content, bytes)| content.bytes(bytes)).collect()
    };
    Ok(answer.outcomes.into_iter().map(|o| seen(program, o.regs.iter().copied(), memory(&o))).collect())
}

/// What was seen, as engines say it.
fn outcome(seen: &Seen) -> Outcome {
    let content = |bytes: &Vec<u8>| {
        let mut content = Content::default();
        (0..).zip(bytes).for_each(|(at, byte)| content.put(at, *byte));
        content
    };
    Outcome { regs: seen.regs.clone(), memory: seen.memory.iter().map(content).collect() }
}
