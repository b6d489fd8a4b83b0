//! The oracles: rules that say which engines must agree, and what breaks when they do not.
//!
//! | oracle | rule | direction |
//! |---|---|---|
//! | `self` | explorer = naive enumerator: leaf keys, final states, flags | equal |
//! | `model-pair` | sc <= ptx-6.0, ptx-7.5, ptx: no outcome lost; between versions: show the difference | subset, difference |
//! | `metamorphic` | a fence more, a stronger order, a wider scope adds no outcome; permuting threads changes nothing | subset, equal |
//! | `patterns` | protocols put together from the documented patterns are clean, with one mistake they are not | property |
//! | `compiler` | the PTX that `tileiras` makes of a Tile IR kernel does nothing the kernel may not do | subset, progress, difference |
//! | `lowering` | the PTX that the reference lowering makes of a Tile IR kernel does nothing the kernel may not do; where asked for | subset, progress |
//! | `assembler` | the `ptxas-equal` rules = NVIDIA's assembler: what is taken and what is refused; where asked for | equal |
//!
//! An engine that cannot answer abstains, by reason, and is counted. Answers depend on the item alone.

mod answer;
mod assembler;
mod blame;
mod canary;
mod compiler;
mod lowering;
mod metamorphic;
mod models;
mod pair;
mod patterns;

pub use assembler::{ASSEMBLER, CAPABILITY as ASSEMBLER_CAPABILITY, HOW as ASSEMBLER_HOW};
pub use canary::{CANARIES, Canary};
pub use compiler::{CAPABILITY as COMPILER_CAPABILITY, COMPILER, HOW as COMPILER_HOW, Observations};
pub use lowering::LOWERING;
pub use patterns::{MUTANT, PATTERNS};

use crate::job::{
    Budget, Cancel, Claim, Engine, Item, ItemReport, Part, Parted, Plan, Reduced, Side, Source, Verification,
};
use crate::piece::{self, Exploration, Explored, Shelf, Step};
use answer::Answer;
use assembler::Assembler;
use compiler::Compiler;
use models::Models;
use moire_cat::{Model, builtin};
use moire_explore::Abstain;
use moire_explore::share::Piece;
use moire_program::canon::canonical;
use moire_program::generate::{GENERATOR_FINGERPRINT, Profile, Stream, TILE_FINGERPRINT};
use moire_program::ir::Program;
use moire_program::lowering::Lowering;
use moire_program::reduce::{Limits, minimise};
use moire_program::text::{Format, parse, print};
use std::sync::Arc;

/// Names of all oracles. A plan that names none asks for all that need no tool, which not every worker has; kernels of
/// Tile IR are for the compiler and the reference lowering alone, and for the first where none is named.
pub const ORACLES: [&str; 7] = ["self", "model-pair", "metamorphic", PATTERNS, ASSEMBLER, COMPILER, LOWERING];

/// Models a campaign compares when it names none.
pub const MODELS: [&str; 4] = ["sc", "ptx-6.0", "ptx-7.5", "ptx"];

/// All oracles behind the worker's [`Engine`] seam.
#[derive(Debug, Default)]
pub struct Oracles {
    models: Models,
    shelf: Shelf,
    assembler: Assembler,
    compiler: Compiler,
    lowering: Lowering,
}

/// A broken rule before it becomes a claim.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) oracle: &'static str,
    pub(crate) direction: &'static str,
    /// Model specifications, in the order the rule names them.
    pub(crate) models: Vec<String>,
    /// Side whose outcome is wrong or extra, and which: position in `models`, and the outcome.
    pub(crate) outcome: Option<(usize, moire_explore::Outcome)>,
    /// What of the rule is broken, where the oracle can name it.
    pub(crate) cause: Option<String>,
}

impl Oracles {
    /// No models loaded yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with an assembler of the caller's choice.
    pub fn with_assembler(ptxas: moire_toolchain::Ptxas) -> Self {
        Self { assembler: Assembler::of(ptxas), ..Self::default() }
    }

    /// The same with a compiler of the caller's choice.
    pub fn with_compiler(tileiras: moire_toolchain::tile::Tileiras) -> Self {
        Self { compiler: Compiler::of(tileiras), ..Self::default() }
    }

    /// The same with another way to lower kernels of Tile IR, for tests.
    pub fn with_lowering(lowering: Lowering) -> Self {
        Self { lowering, ..Self::default() }
    }

    /// The model of `NAME` or `NAME:VARIANT=VALUE,..`; loaded once as long as it is in use.
    ///
    /// # Errors
    /// There is no such model, or it has no such switch or value.
    pub fn model(&self, spec: &str) -> Result<Arc<Model>, String> {
        self.models.get(spec)
    }

    /// What the assembler makes of kernels of a stream of Tile IR that a compiler compiled; see [`Observations`].
    ///
    /// # Errors
    /// The specification names no compiler that is here, or there is no disassembler.
    pub fn observe(
        &self,
        spec: &str,
        seed: u64,
        places: std::ops::Range<u64>,
    ) -> Result<Observations, String> {
        self.compiler.observe(spec, seed, places)
    }

    fn program(source: &Source) -> Result<Program, String> {
        match source {
            Source::Generated { seed, profile, index } => {
                let profile: Profile = profile.parse().map_err(|e| format!("{e}"))?;
                Ok(Stream::new(*seed, profile).item(*index))
            }
            Source::Text(text) => parse(text, Format::detect("", text)).map_err(|e| e.to_string()),
        }
    }

    /// Every rule of the plan that `program` breaks.
    fn broken(
        &self,
        program: &Program,
        plan: &Plan,
        index: u64,
        report: &mut ItemReport,
        cancel: &Cancel,
    ) -> Vec<Broken> {
        let elsewhere = |o: &String| [ASSEMBLER, PATTERNS, COMPILER, LOWERING].contains(&o.as_str());
        if plan.oracles.iter().all(elsewhere) && !plan.oracles.is_empty() {
            return Vec::new();
        }
        let specs: Vec<String> =
            if plan.models.is_empty() { MODELS.map(String::from).to_vec() } else { plan.models.clone() };
        let mut answers: Vec<(String, Answer)> = Vec::new();
        for spec in specs {
            if cancel.is_cancelled() {
                return Vec::new();
            }
            let answer = self.model(&spec).and_then(|m| answer::explored(program, &m));
            cancel.tick();
            match answer {
                Ok(answer) => {
                    report.engines.push(answer.report(&format!("explorer/{spec}")));
                    answers.push((spec, answer));
                }
                Err(reason) => abstain(report, reason),
            }
        }
        let wants = |name: &str| plan.oracles.is_empty() || plan.oracles.iter().any(|o| o == name);
        let mut out = Vec::new();
        if wants("self")
            && let Some((spec, answer)) = answers.last()
        {
            match self.model(spec).and_then(|m| answer::enumerated(program, &m)) {
                Ok(naive) => {
                    report.engines.push(naive.report(&format!("naive/{spec}")));
                    if plan.canaries && spec == canary::MODEL {
                        report.canaries = canary::run(program, index, &naive);
                    }
                    if naive.leaves != answer.leaves {
                        let (direction, oracle) = ("equal", "self");
                        out.push(Broken {
                            oracle,
                            direction,
                            models: vec![spec.clone()],
                            outcome: None,
                            cause: None,
                        });
                    }
                }
                Err(reason) => abstain(report, format!("self: {reason}")),
            }
            cancel.tick();
        }
        if wants("model-pair") {
            out.extend(pair::broken(&answers));
        }
        if wants("metamorphic")
            && let Some((spec, answer)) = answers.last()
        {
            match self.model(spec).and_then(|m| metamorphic::broken(program, spec, &m, answer, index)) {
                Ok(found) => out.extend(found),
                Err(reason) => abstain(report, format!("metamorphic: {reason}")),
            }
            cancel.tick();
        }
        out
    }

    fn claim(&self, program: &Program, broken: &Broken) -> Claim {
        let witness = broken.outcome.as_ref().and_then(|(side, outcome)| {
            let spec = broken.models.get(*side)?;
            let model = self.model(spec).ok()?;
            answer::witness(program, spec, &model, outcome)
        });
        Claim {
            oracle: broken.oracle.into(),
            direction: broken.direction.into(),
            models: broken.models.iter().map(|s| self.sealed(side(s))).collect(),
            verdict: "discrepancy".into(),
            program: print(program),
            witness: witness.unwrap_or_default(),
            axioms: broken.cause.iter().map(|c| vec![c.clone()]).collect(),
        }
    }

    fn sealed_claim(&self, claim: Claim) -> Claim {
        Claim { models: claim.models.iter().map(|s| self.sealed(s.clone())).collect(), ..claim }
    }

    /// The side with what fixes its meaning here.
    fn sealed(&self, side: Side) -> Side {
        Side { fingerprint: self.side_fingerprint(&spec_of(&side)).unwrap_or_default(), ..side }
    }

    /// What fixes the meaning of a side of a claim: the text of a model, the version of a tool.
    pub fn side_fingerprint(&self, spec: &str) -> Result<[u8; 32], String> {
        let text = match (assembler::target(spec), self.compiler.fingerprint(spec)) {
            (Some(_), _) => self.assembler.tool()?.version().to_string(),
            (_, Some(version)) => version?,
            _ => self.model(spec)?.canonical_text(),
        };
        Ok(*blake3::hash(text.as_bytes()).as_bytes())
    }

    /// The plan that runs just the rule of a claim, and the rule found broken again.
    fn again(&self, claim: &Claim, program: &Program, cancel: &Cancel) -> Result<Option<Broken>, String> {
        let models: Vec<String> = claim.models.iter().map(spec_of).collect();
        if claim.oracle == ASSEMBLER {
            let target = models.first().and_then(|s| assembler::target(s)).ok_or("no such architecture")?;
            let same = |b: &Broken| claim.axioms.is_empty() || b.cause == claim.axioms[0].first().cloned();
            return Ok(self.assembler.differs(program, target)?.filter(same));
        }
        if claim.oracle == PATTERNS {
            let model = self.model(patterns::MODEL)?;
            let broken = patterns::broken(program, &model)?;
            return Ok(broken.filter(|b| b.direction == claim.direction));
        }
        let plan = Plan {
            campaign: String::new(),
            oracles: vec![claim.oracle.clone()],
            models: models.clone(),
            canaries: false,
        };
        let mut report = ItemReport::default();
        // A metamorphic rule is tried with every change it knows, so that the claim does not depend on its item.
        let tries = if claim.oracle == "metamorphic" { metamorphic::CHANGES } else { 1 };
        for index in 0..tries {
            let found = self.broken(program, &plan, index, &mut report, cancel);
            if let Some(b) = found.into_iter().find(|b| b.direction == claim.direction && b.models == models)
            {
                return Ok(Some(b));
            }
        }
        match report.abstentions.keys().next() {
            Some(reason) => Err(reason.clone()),
            None => Ok(None),
        }
    }
}

fn side(spec: &str) -> Side {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let variants = rest.split(',').filter_map(|w| w.split_once('='));
    let variants = variants.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    Side { name: name.to_owned(), variants, ..Side::default() }
}

fn spec_of(side: &Side) -> String {
    let variants: Vec<String> = side.variants.iter().map(|(k, v)| format!("{k}={v}")).collect();
    if variants.is_empty() { side.name.clone() } else { format!("{}:{}", side.name, variants.join(",")) }
}

fn abstain(report: &mut ItemReport, reason: String) {
    *report.abstentions.entry(reason).or_insert(0) += 1;
}

impl Engine for Oracles {
    fn capabilities(&self) -> Vec<String> {
        let assembler = self.assembler.tool().is_ok().then(|| ASSEMBLER_CAPABILITY.to_owned());
        let compiler = self.compiler.tools().is_ok().then(|| COMPILER_CAPABILITY.to_owned());
        [piece::tree(), "ptx"].into_iter().map(str::to_owned).chain(assembler).chain(compiler).collect()
    }

    fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(GENERATOR_FINGERPRINT.as_bytes());
        hasher.update(TILE_FINGERPRINT.as_bytes());
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        for (name, text) in builtin::FILES {
            hasher.update(name.as_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    fn explore(
        &self,
        asked: &Exploration,
        piece: &Piece,
        cancel: &Cancel,
        tell: &(dyn Fn(Step) + Sync),
    ) -> Result<Explored, Abstain> {
        self.shelf.explore(asked, piece, cancel, tell)
    }

    fn run(&self, item: &Item, cancel: &Cancel) -> ItemReport {
        let mut report = ItemReport::default();
        if compiler::takes(&item.source) {
            self.kernel(item, &mut report, cancel);
            return report;
        }
        let program = match Self::program(&item.source) {
            Ok(program) => program,
            Err(reason) => {
                abstain(&mut report, format!("rejected: {reason}"));
                return report;
            }
        };
        report.program = canonical(&program).id.0;
        let broken = self.broken(&program, &item.plan, item.index, &mut report, cancel);
        report.claims = broken.iter().map(|b| self.claim(&program, b)).collect();
        let patterns = item.plan.oracles.is_empty() || item.plan.oracles.iter().any(|o| o == PATTERNS);
        if patterns && let Source::Generated { seed, profile, index } = &item.source {
            let found = match (self.model(patterns::MODEL), profile.parse()) {
                (Ok(model), Ok(profile)) => {
                    let protocol = Stream::new(*seed, profile).protocol(*index);
                    protocol.map(|p| patterns::item(&p, &model, *index, &mut report, cancel))
                }
                _ => None,
            };
            report.claims.extend(found.iter().flatten().map(|(program, b)| self.claim(program, b)));
        }
        if assembler::due(&item.plan.oracles, item.index) {
            let found = self.assembler.item(&program, item.index, &mut report);
            report.claims.extend(found.iter().map(|(program, b)| self.claim(program, b)));
        }
        report
    }

    fn verify(&self, claim: &Claim, cancel: &Cancel) -> Verification {
        if claim.oracle == COMPILER {
            return match self.compiler.again(claim, &|spec| self.model(spec)) {
                Ok(Some(_)) => Verification::Confirmed,
                Ok(None) => Verification::Refuted("the rule holds here".into()),
                Err(reason) => Verification::Abstained(reason),
            };
        }
        if claim.oracle == LOWERING {
            return match lowering::again(claim, &self.lowering, &|spec| self.model(spec)) {
                Ok(Some(_)) => Verification::Confirmed,
                Ok(None) => Verification::Refuted("the rule holds here".into()),
                Err(reason) => Verification::Abstained(reason),
            };
        }
        let program = match parse(&claim.program, Format::Native) {
            Ok(program) => program,
            Err(e) => return Verification::Refuted(format!("the program does not parse: {e}")),
        };
        match self.again(claim, &program, cancel) {
            Ok(Some(_)) => Verification::Confirmed,
            Ok(None) => Verification::Refuted("the rule holds here".into()),
            Err(reason) => Verification::Abstained(reason),
        }
    }

    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        if claim.oracle == COMPILER {
            let reduced = self.compiler.minimise(claim, &|spec| self.model(spec), budget, cancel, &mut |c| {
                progress(&self.sealed_claim(c.clone()));
            });
            return Reduced { claim: self.sealed_claim(reduced.claim), ..reduced };
        }
        if claim.oracle == LOWERING {
            let models = |spec: &str| self.model(spec);
            let mut told = |c: &Claim| progress(&self.sealed_claim(c.clone()));
            let reduced = lowering::minimise(claim, &self.lowering, &models, budget, cancel, &mut told);
            return Reduced { claim: self.sealed_claim(reduced.claim), ..reduced };
        }
        let Ok(program) = parse(&claim.program, Format::Native) else {
            return Reduced { claim: claim.clone(), tried: 0, normal: false };
        };
        if claim.oracle == PATTERNS && claim.direction == patterns::PROPERTY {
            // Part of a protocol is no protocol, and may well be wrong.
            return Reduced { claim: claim.clone(), tried: 0, normal: true };
        }
        let limits = Limits { tried_max: usize::try_from(budget.candidates).unwrap_or(usize::MAX) };
        let shrunk = minimise(
            &program,
            |candidate| {
                cancel.tick();
                !cancel.is_cancelled() && matches!(self.again(claim, candidate, cancel), Ok(Some(_)))
            },
            limits,
        );
        let (best, tried) = (shrunk.program, shrunk.tried as u64);
        let normal = shrunk.complete && !cancel.is_cancelled();
        let mut reduced = claim.clone();
        if let Ok(Some(broken)) = self.again(claim, &best, cancel) {
            reduced = self.claim(&best, &broken);
            reduced.axioms = self.blame(&best, &broken);
        }
        progress(&reduced);
        Reduced { claim: reduced, tried, normal }
    }

    fn part(&self, claim: &Claim, part: &Part, cancel: &Cancel) -> Option<Parted> {
        Parted::of(claim, part, |candidate| {
            cancel.tick();
            !cancel.is_cancelled() && matches!(self.again(claim, candidate, cancel), Ok(Some(_)))
        })
    }
}

impl Oracles {
    /// What a kernel of Tile IR breaks.
    fn kernel(&self, item: &Item, report: &mut ItemReport, cancel: &Cancel) {
        let named = |oracle: &str| item.plan.oracles.iter().any(|o| o == oracle);
        let models = |spec: &str| self.model(spec);
        let mut claims = Vec::new();
        if named(COMPILER) || !named(LOWERING) {
            claims = self.compiler.item(&item.source, &item.plan.models, &models, report, cancel);
        }
        if named(LOWERING) {
            claims.extend(lowering::item(&item.source, &self.lowering, &models, report, cancel));
        }
        report.claims = claims.into_iter().map(|c| self.sealed_claim(c)).collect();
    }

    /// Minimal sets of checks of the stricter side whose removal admits the outcome.
    fn blame(&self, program: &Program, broken: &Broken) -> Vec<Vec<String>> {
        let Some((side, outcome)) = &broken.outcome else {
            return broken.cause.iter().map(|c| vec![c.clone()]).collect();
        };
        let stricter = broken.models.iter().enumerate().find(|(i, _)| i != side).map(|(_, spec)| spec);
        let Some(model) = stricter.and_then(|spec| self.model(spec).ok()) else { return Vec::new() };
        blame::minimal_sets(program, &model, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(index: u64) -> Item {
        let plan = Plan { canaries: true, ..Plan::default() };
        Item {
            plan: Arc::new(plan),
            index,
            source: Source::Generated { seed: 7, profile: "mixed".into(), index },
        }
    }

    #[test]
    fn the_shipped_engines_agree_on_generated_items() {
        let oracles = Oracles::new();
        for index in 0..60 {
            let report = oracles.run(&item(index), &Cancel::new());
            let wrong: Vec<&Claim> = report.claims.iter().filter(|c| c.direction != "difference").collect();
            assert!(
                wrong.is_empty(),
                "item {index}: {} {:?}\n{}",
                wrong[0].oracle,
                wrong[0].models,
                wrong[0].program
            );
        }
    }

    #[test]
    fn answers_depend_on_the_item_alone() {
        let (a, b) = (Oracles::new(), Oracles::new());
        b.run(&item(3), &Cancel::new());
        assert_eq!(a.run(&item(5), &Cancel::new()), b.run(&item(5), &Cancel::new()));
    }

    #[test]
    fn a_model_difference_is_claimed_verified_and_reduced() {
        let oracles = Oracles::new();
        let text = "moire \"t\"\n.global .b32 x; .surface s = x;\nP0 (gpu 0, cta 0) { st.weak.u32 [x], 1; fence.proxy.surface; suld.weak.u32 r, [s]; }\n";
        let plan = Plan {
            models: vec!["ptx:Q6=D".into(), "ptx".into()],
            oracles: vec!["model-pair".into()],
            ..Plan::default()
        };
        let item = Item { plan: Arc::new(plan), index: 1, source: Source::Text(text.into()) };
        let report = oracles.run(&item, &Cancel::new());
        assert_eq!(report.claims.len(), 1, "{report:?}");
        assert_eq!(oracles.verify(&report.claims[0], &Cancel::new()), Verification::Confirmed);
        let reduced =
            oracles.minimise(&report.claims[0], Budget { candidates: 1000 }, &Cancel::new(), &mut |_| {});
        assert!(reduced.normal);
        assert_eq!(reduced.claim.axioms, [["CausalityFR"]]);
        assert!(reduced.claim.witness.contains("\"edges\""));
    }
}
