//! All oracles behind the worker's [`Engine`] seam.

use super::about::Takes;
use super::abstention::Abstention;
use super::case::{Case, Context, abstain};
use super::device::{Host, OnDevice};
use super::evidence::Evidence;
use super::models::{ModelError, Models};
use super::registry::registry;
use super::repeats::Repeats;
use super::{Oracle, assembler, compiler, lowering, operational, sass, source};
use crate::job::{Budget, Cancel, Claim, Engine, Item, ItemReport, Part, Parted, Reduced, Verification};
use crate::piece::{self, Exploration, Explored, Shelf, Step};
use moire_cat::Model;
use moire_explore::Abstain;
use moire_explore::planted::Planted;
use moire_explore::search::share::Piece;
use moire_generate::{GENERATOR_FINGERPRINT, SOURCE_FINGERPRINT, TILE_FINGERPRINT};
use moire_tile_ir::lowering::Lowering;
use std::sync::Arc;

/// All oracles behind the worker's [`Engine`] seam.
#[derive(Debug)]
pub struct Oracles {
    models: Models,
    shelf: Shelf,
    oracles: Vec<Box<dyn Oracle>>,
    repeats: Repeats,
    planted: Option<Planted>,
}

impl Default for Oracles {
    fn default() -> Self {
        Self {
            models: Models::default(),
            shelf: Shelf::default(),
            oracles: registry(),
            repeats: Repeats::default(),
            planted: None,
        }
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

    /// All oracles, with assemblers of the caller's choice, newest first, and a disassembler.
    pub fn with_machine_code(
        assemblers: Vec<moire_toolchain::Ptxas>,
        nvdisasm: moire_toolchain::Nvdisasm,
    ) -> Self {
        Self::default().with(Box::new(sass::MachineCode::of(assemblers, nvdisasm)))
    }

    /// All oracles, with compilers of source programs whose PTX these assemblers take.
    pub fn with_assembled_sources(
        compilers: &[moire_toolchain::source::Compiler],
        assemblers: Vec<moire_toolchain::Ptxas>,
        nvdisasm: moire_toolchain::Nvdisasm,
    ) -> Self {
        let tools = sass::cell::Tools::of(assemblers, nvdisasm);
        Self::default().with(Box::new(source::assembled(compilers).with(tools)))
    }

    /// All oracles, with a compiler of the caller's choice.
    pub fn with_compiler(tileiras: moire_toolchain::tile::Tileiras) -> Self {
        Self::default().with(Box::new(compiler::Compiler::of(tileiras)))
    }

    /// All oracles, with compilers of source programs of the caller's choice.
    pub fn with_source_compilers(compilers: &[moire_toolchain::source::Compiler]) -> Self {
        let with = |all: Self, oracle: source::Sources| all.with(Box::new(oracle.of(compilers)));
        source::all().fold(Self::default(), with)
    }

    /// All oracles, with another way to lower kernels of Tile IR, for tests.
    pub fn with_lowering(lowering: Lowering) -> Self {
        Self::default().with(Box::new(lowering::ReferenceLowering(lowering)))
    }

    /// All oracles, with a bug of the explorer, for tests.
    pub fn with_explorer(bug: Planted) -> Self {
        Self { planted: Some(bug), ..Self::default() }
    }

    /// All oracles, with a bug of the operational engine, for tests.
    pub fn with_operational(bug: moire_operate::Planted) -> Self {
        Self::default().with(Box::new(operational::Operational(Some(bug))))
    }

    /// All oracles, with this device, if there is one, or what stands in for it.
    pub fn with_device(host: Option<Arc<dyn Host>>) -> Self {
        let all = Self::default();
        match host {
            None => all,
            Some(host) if host.identity().is_stand_in() => all.with(Box::new(OnDevice::<true>::of(host))),
            Some(host) => all.with(Box::new(OnDevice::<false>::of(host))),
        }
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

    /// What the people who keep a compiler need to see a claim about it. `None`: the claim is about no compiler.
    pub fn evidence(&self, claim: &Claim, cancel: &Cancel) -> Option<Result<Evidence, Abstention>> {
        self.of(claim)?.evidence(claim, self.context(cancel))
    }

    fn context<'a>(&'a self, cancel: &'a Cancel) -> Context<'a> {
        Context { models: &self.models, cancel, planted: self.planted }
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

impl Engine for Oracles {
    fn capabilities(&self) -> Vec<String> {
        let here = self.oracles.iter().filter(|o| o.is_here());
        let tools = here.clone().filter_map(|o| o.about().tool).map(|tool| tool.capability);
        let all = [piece::tree(), "ptx"].into_iter().chain(tools).map(str::to_owned);
        all.chain(here.flat_map(|o| o.capabilities())).collect()
    }

    fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(GENERATOR_FINGERPRINT.as_bytes());
        hasher.update(TILE_FINGERPRINT.as_bytes());
        hasher.update(SOURCE_FINGERPRINT.as_bytes());
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
        if takes == Takes::Programs && self.repeats.has(&item.source) {
            case.abstain(&Abstention::REPEATED);
            return case.report;
        }
        let suit: Vec<&dyn Oracle> =
            self.oracles.iter().map(Box::as_ref).filter(|o| o.about().takes == takes).collect();
        let named = |o: &&dyn Oracle| item.plan.oracles.iter().any(|name| name == o.about().name);
        let default = match takes {
            Takes::Programs => item.plan.oracles.is_empty(),
            Takes::Kernels | Takes::Sources => !suit.iter().any(named),
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
    use crate::job::{Plan, Source};

    fn item(index: u64) -> Item {
        let plan = Plan { canaries: true, ..Plan::default() };
        Item {
            plan: Arc::new(plan),
            index,
            source: Source::Generated { seed: 7, profile: "core".into(), index },
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
