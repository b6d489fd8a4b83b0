//! The oracles: rules that say which engines must agree, and which direction of disagreement is a bug.
//!
//! | oracle | rule | direction |
//! |---|---|---|
//! | `self` | explorer = naive enumerator: leaf keys, final states, flags | equal |
//! | `model-pair` | sc <= ptx-6.0, ptx-7.5, ptx: no outcome lost; between versions: show the difference | subset, difference |
//! | `metamorphic` | one more fence, a stronger order, a wider scope adds no outcome; permuting threads changes nothing | subset, equal |
//! | `patterns` | protocols built from the documented patterns are clean; with one mistake they are not | property, equal |
//! | `assembler` | the `ptxas-equal` rules and NVIDIA's assembler accept and refuse the same modules | equal |
//! | `compiler` | the PTX that `tileiras` makes of a Tile IR kernel does nothing the kernel may not do | subset, progress, difference |
//! | `lowering` | the PTX that the reference lowering makes of a Tile IR kernel does nothing the kernel may not do | subset, progress |
//!
//! Each oracle is one file with an implementation of `Oracle` and one line in `registry`. A rule about litmus programs
//! implements `litmus::Rule` instead, and shares verification and reduction with the other rules. An engine that cannot
//! answer abstains; abstentions are counted by reason. Answers depend on the item alone.

mod abstention;
mod answer;
mod assembler;
mod blame;
mod canary;
mod compiler;
mod kernel;
mod litmus;
mod lowering;
mod metamorphic;
mod models;
mod pair;
mod patterns;
mod self_check;

pub use abstention::Abstention;
pub use assembler::{ASSEMBLER, NoAssembler, PTXAS};
pub use canary::{CANARIES, Canary, CanaryError};
pub use compiler::{COMPILER, CellError, NoCompiler, Observations, TILEIRAS};
pub use lowering::LOWERING;
pub use models::ModelError;
pub use patterns::{MUTANT, PATTERNS};

use crate::job::{
    Budget, Cancel, Claim, Engine, Item, ItemReport, Part, Parted, Plan, Reduced, Source, Verification,
};
use crate::piece::{self, Exploration, Explored, Shelf, Step};
use answer::Answer;
use models::Models;
use moire_cat::Model;
use moire_explore::Abstain;
use moire_explore::share::Piece;
use moire_generate::{GENERATOR_FINGERPRINT, Profile, Stream, TILE_FINGERPRINT};
use moire_program::canon::canonical;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use moire_tile_ir::lowering::Lowering;
use moire_tile_ir::run::TileLaunch;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Models a campaign compares when it names none.
pub const MODELS: [&str; 4] = ["sc", "ptx-6.0", "ptx-7.5", "ptx"];

/// The oracles of a worker, in the order in which their claims are reported. A new oracle is one line here.
fn registry() -> Vec<Box<dyn Oracle>> {
    vec![
        Box::new(self_check::SelfCheck),
        Box::new(pair::ModelPair),
        Box::new(metamorphic::Metamorphic),
        Box::new(patterns::Patterns),
        Box::new(assembler::Assembler::default()),
        Box::new(compiler::Compiler::default()),
        Box::new(lowering::ReferenceLowering::default()),
    ]
}

/// All oracles, in the order of their claims.
pub fn oracles() -> impl Iterator<Item = &'static About> {
    registry().into_iter().map(|oracle| oracle.about())
}

/// The oracle of this name.
pub fn named(name: &str) -> Option<&'static About> {
    oracles().find(|about| about.name == name)
}

/// Facts about an oracle that are known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name in plans, claims and reports.
    pub name: &'static str,
    /// The items it takes.
    pub takes: Takes,
    /// Whether it runs for a plan that names no oracle.
    pub by_default: bool,
    /// Whether its rule is tried under the models that a claim names.
    pub under_models: bool,
    /// The outside tool it needs.
    pub tool: Option<Tool>,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A tool that not every worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The capability of a worker that has the tool. It also starts the names of sides of claims that are the tool.
    pub capability: &'static str,
    /// How to install it.
    pub how: &'static str,
}

/// Kinds of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Litmus programs.
    Programs,
    /// Kernels of Tile IR.
    Kernels,
}

impl Takes {
    /// The kind of an item with this source.
    fn of(source: &Source) -> Self {
        let kernel = match source {
            Source::Generated { profile, .. } => profile == Profile::TileIr.name(),
            Source::Text(text) => TileLaunch::noted(text).is_some(),
        };
        if kernel { Self::Kernels } else { Self::Programs }
    }
}

/// A rule that is tried on items, and whatever it needs for that.
trait Oracle: fmt::Debug + Send + Sync {
    /// Facts about it.
    fn about(&self) -> &'static About;

    /// Tries the rule on an item. Rows and abstentions go to the report of the case; broken rules come back.
    fn run(&self, case: &mut Case<'_>) -> Vec<Claim>;

    /// Tries the rule again on the text of a claim.
    fn verify(&self, claim: &Claim, context: Context<'_>) -> Verification;

    /// Makes the text of a claim smaller while the rule stays broken in the same way. `progress` gets each better claim.
    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        context: Context<'_>,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced;

    /// Does a part of a minimisation. `None`: this oracle minimises as a whole only.
    fn part(&self, _claim: &Claim, _part: &Part, _context: Context<'_>) -> Option<Parted> {
        None
    }

    /// Whether its tool is here.
    fn is_here(&self) -> bool {
        true
    }

    /// What fixes the meaning of a side that is this oracle's tool: its version. `None`: the side is something else.
    fn tool_version(&self, _spec: &str) -> Option<Result<String, Abstention>> {
        None
    }
}

/// What every run of an oracle works with.
#[derive(Clone, Copy, Debug)]
struct Context<'a> {
    models: &'a Models,
    cancel: &'a Cancel,
}

/// An item on its way through the oracles.
struct Case<'a> {
    item: &'a Item,
    context: Context<'a>,
    report: ItemReport,
    /// The program of the item; `None` for a kernel.
    program: Option<Arc<Program>>,
    /// See [`Case::answers`].
    answers: Option<Rc<[(String, Answer)]>>,
}

impl<'a> Case<'a> {
    fn new(item: &'a Item, context: Context<'a>) -> Result<Self, Abstention> {
        let program = match (Takes::of(&item.source), &item.source) {
            (Takes::Kernels, _) => None,
            (Takes::Programs, Source::Generated { seed, profile, index }) => {
                Some(Stream::new(*seed, profile.parse::<Profile>()?).item(*index))
            }
            (Takes::Programs, Source::Text(text)) => Some(parse(text, Format::detect("", text))?),
        };
        let mut report = ItemReport::default();
        if let Some(program) = &program {
            report.program = canonical(program).id.0;
        }
        Ok(Self { item, context, report, program: program.map(Arc::new), answers: None })
    }

    /// The explorer's answers under the models of the plan, in their order. They are computed once for all oracles.
    /// Models without an answer are left out; a cancelled item has no answers.
    fn answers(&mut self) -> Rc<[(String, Answer)]> {
        if let Some(answers) = &self.answers {
            return Rc::clone(answers);
        }
        let mut answers = Vec::new();
        let specs = specs(&self.item.plan);
        for (spec, answer) in self.program.iter().flat_map(|p| explored(p, &specs, self.context)) {
            match answer {
                Ok(answer) => {
                    self.report.engines.push(answer.report(&format!("explorer/{spec}")));
                    answers.push((spec, answer));
                }
                Err(why) => abstain(&mut self.report, &why),
            }
        }
        if self.context.cancel.is_cancelled() {
            answers.clear();
        }
        Rc::clone(self.answers.insert(answers.into()))
    }

    fn abstain(&mut self, why: &Abstention) {
        abstain(&mut self.report, why);
    }
}

fn abstain(report: &mut ItemReport, why: &Abstention) {
    *report.abstentions.entry(why.to_string()).or_insert(0) += 1;
}

/// The models of a plan.
fn specs(plan: &Plan) -> Vec<String> {
    if plan.models.is_empty() { MODELS.map(String::from).to_vec() } else { plan.models.clone() }
}

/// The explorer's answer under each model, until the item is cancelled.
fn explored(
    program: &Program,
    specs: &[String],
    context: Context<'_>,
) -> Vec<(String, Result<Answer, Abstention>)> {
    let mut out = Vec::new();
    for spec in specs {
        if context.cancel.is_cancelled() {
            break;
        }
        let model = context.models.get(spec).map_err(Abstention::from);
        out.push((spec.clone(), model.and_then(|m| answer::explored(program, &m))));
        context.cancel.tick();
    }
    out
}

/// All oracles behind the worker's [`Engine`] seam.
#[derive(Debug)]
pub struct Oracles {
    models: Models,
    shelf: Shelf,
    oracles: Vec<Box<dyn Oracle>>,
}

impl Default for Oracles {
    fn default() -> Self {
        Self { models: Models::default(), shelf: Shelf::default(), oracles: registry() }
    }
}

impl Oracles {
    /// All oracles; no model is loaded and no tool looked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// All oracles, with an assembler of the caller's choice.
    pub fn with_assembler(ptxas: moire_toolchain::Ptxas) -> Self {
        Self::default().with(Box::new(assembler::Assembler::of(ptxas)))
    }

    /// All oracles, with a compiler of the caller's choice.
    pub fn with_compiler(tileiras: moire_toolchain::tile::Tileiras) -> Self {
        Self::default().with(Box::new(compiler::Compiler::of(tileiras)))
    }

    /// All oracles, with another way to lower kernels of Tile IR, for tests.
    pub fn with_lowering(lowering: Lowering) -> Self {
        Self::default().with(Box::new(lowering::ReferenceLowering(lowering)))
    }

    /// The same with this oracle in place of its namesake.
    fn with(mut self, oracle: Box<dyn Oracle>) -> Self {
        let name = oracle.about().name;
        let at = self.oracles.iter().position(|o| o.about().name == name);
        self.oracles[at.expect("the registry lists every oracle")] = oracle;
        self
    }

    /// The model of `NAME` or `NAME:VARIANT=VALUE,..`; loaded once while it is in use.
    ///
    /// # Errors
    /// There is no such model, or it has no such switch or value.
    pub fn model(&self, spec: &str) -> Result<Arc<Model>, ModelError> {
        self.models.get(spec)
    }

    /// Hashes what fixes the meaning of a side of a claim: the text of a model, the version of a tool.
    ///
    /// # Errors
    /// There is no such model, or no such tool here.
    pub fn side_fingerprint(&self, spec: &str) -> Result<[u8; 32], Abstention> {
        let version = self.oracles.iter().find_map(|oracle| oracle.tool_version(spec));
        let text = version.unwrap_or_else(|| Ok(self.models.get(spec)?.canonical_text()))?;
        Ok(*blake3::hash(text.as_bytes()).as_bytes())
    }

    fn context<'a>(&'a self, cancel: &'a Cancel) -> Context<'a> {
        Context { models: &self.models, cancel }
    }

    /// The oracle whose rule a claim says is broken.
    fn of(&self, claim: &Claim) -> Option<&dyn Oracle> {
        self.oracles.iter().find(|o| o.about().name == claim.oracle).map(Box::as_ref)
    }

    /// The claim with fingerprints of the sides that have none.
    fn sealed(&self, mut claim: Claim) -> Claim {
        for side in claim.models.iter_mut().filter(|side| side.fingerprint == [0; 32]) {
            side.fingerprint = self.side_fingerprint(&side.spec()).unwrap_or_default();
        }
        claim
    }
}

/// What the assembler makes of the kernels at these places of a stream of Tile IR; see [`Observations`].
///
/// # Errors
/// The specification names no compiler that is here, or there is no disassembler.
pub fn observe(spec: &str, seed: u64, places: Range<u64>) -> Result<Observations, Abstention> {
    compiler::Compiler::default().observe(spec, seed, places)
}

/// The answer where no try found the rule broken: one reason of those that abstained, whatever their order; or the rule
/// holds.
fn abstained_or_holds<T>(abstained: Vec<Abstention>) -> Result<Option<T>, Abstention> {
    abstained.into_iter().min_by_key(ToString::to_string).map_or(Ok(None), Err)
}

/// The answer to a claim whose rule was tried again.
fn verification<T>(again: Result<Option<T>, Abstention>) -> Verification {
    match again {
        Ok(Some(_)) => Verification::Confirmed,
        Ok(None) => Verification::Refuted("the rule holds here".into()),
        Err(why) => Verification::Abstained(why.to_string()),
    }
}

impl Engine for Oracles {
    fn capabilities(&self) -> Vec<String> {
        let here = self.oracles.iter().filter(|o| o.is_here()).filter_map(|o| o.about().tool);
        [piece::tree(), "ptx"].into_iter().chain(here.map(|t| t.capability)).map(str::to_owned).collect()
    }

    fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(GENERATOR_FINGERPRINT.as_bytes());
        hasher.update(TILE_FINGERPRINT.as_bytes());
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        for (name, text) in moire_models::FILES {
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
        let mut case = match Case::new(item, self.context(cancel)) {
            Ok(case) => case,
            Err(why) => {
                let mut report = ItemReport::default();
                abstain(&mut report, &why.at("rejected"));
                return report;
            }
        };
        let takes = Takes::of(&item.source);
        let suit: Vec<&dyn Oracle> =
            self.oracles.iter().map(Box::as_ref).filter(|o| o.about().takes == takes).collect();
        let named = |o: &&dyn Oracle| item.plan.oracles.iter().any(|name| name == o.about().name);
        let default = match takes {
            Takes::Programs => item.plan.oracles.is_empty(),
            Takes::Kernels => !suit.iter().any(named),
        };
        let mut claims = Vec::new();
        for oracle in suit.iter().filter(|o| named(o) || (default && o.about().by_default)) {
            claims.extend(oracle.run(&mut case));
        }
        ItemReport { claims: claims.into_iter().map(|c| self.sealed(c)).collect(), ..case.report }
    }

    fn verify(&self, claim: &Claim, cancel: &Cancel) -> Verification {
        match self.of(claim) {
            Some(oracle) => oracle.verify(claim, self.context(cancel)),
            None => Verification::Abstained(format!("there is no oracle `{}`", claim.oracle)),
        }
    }

    fn minimise(
        &self,
        claim: &Claim,
        budget: Budget,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Claim),
    ) -> Reduced {
        let Some(oracle) = self.of(claim) else {
            return Reduced { claim: claim.clone(), tried: 0, normal: false };
        };
        let told = &mut |better: &Claim| progress(&self.sealed(better.clone()));
        let reduced = oracle.minimise(claim, budget, self.context(cancel), told);
        Reduced { claim: self.sealed(reduced.claim), ..reduced }
    }

    fn part(&self, claim: &Claim, part: &Part, cancel: &Cancel) -> Option<Parted> {
        self.of(claim)?.part(claim, part, self.context(cancel))
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
            let wrong: Vec<&Claim> = report.claims.iter().filter(|c| c.direction.is_bug()).collect();
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
