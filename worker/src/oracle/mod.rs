//! The oracles: rules that say which engines must agree, and which direction of disagreement is a bug.
//!
//! | oracle | rule | direction |
//! |---|---|---|
//! | `self` | explorer = naive enumerator: leaf keys, final states, flags | equal |
//! | `model-pair` | sc <= ptx-6.0, ptx-7.5, ptx: no outcome lost; between versions: show the difference | subset, difference |
//! | `metamorphic` | one more fence, a stronger order, a wider scope adds no outcome; permuting threads changes nothing | subset, equal |
//! | `patterns` | protocols built from the documented patterns are clean; with one mistake they are not | property, equal |
//! | `operational` | explorer = operational engine: verdicts, on tensor-core protocols and mutants of them | equal |
//! | `assembler` | the `ptxas-equal` rules and NVIDIA's assembler accept and refuse the same modules | equal |
//! | `sass` | machine code has the accesses, fences and orders that its PTX asks for | property |
//! | `compiler` | the PTX that `tileiras` makes of a Tile IR kernel does nothing the kernel may not do | subset, progress, difference, property |
//! | `lowering` | the PTX that the reference lowering makes of a Tile IR kernel does nothing the kernel may not do | subset, progress, property |
//! | `llvm` | the PTX that `llc` makes of a source program does nothing the program may not do | subset, property |
//! | `nvcc` | the same of `nvcc` | subset, property |
//! | `libnvvm` | the same of libNVVM | subset, property |
//! | `triton` | the same of Triton | subset, property |
//! | `mixing` | the same where two compilers make the threads of one program, each of them right alone | subset, property |
//! | `sass-source` | machine code has what the PTX asks for that a compiler makes of a source program | property |
//! | `device` | what a device shows of a program is what the model allows | subset |
//! | `stand-in` | the same of what stands in for a device | subset |
//!
//! Each oracle is one file with an implementation of `Oracle` and one line in `registry.rs`. A rule about litmus programs
//! implements `litmus::Rule` instead, and shares verification and reduction with the other rules. An engine that cannot
//! answer abstains; abstentions are counted by reason. Answers depend on the item alone.

mod about;
mod abstention;
mod answer;
mod assembler;
mod batches;
mod blame;
mod canary;
mod case;
mod compiler;
mod device;
mod engine;
mod evidence;
mod forbidden;
mod kernel;
mod lately;
mod litmus;
mod lowering;
mod metamorphic;
mod models;
mod operational;
mod pair;
mod patterns;
mod refine;
mod registry;
mod repeats;
mod sass;
mod self_check;
mod source;
mod tools;

pub use about::{About, Takes, Tool};
pub use abstention::Abstention;
pub use assembler::ASSEMBLER;
pub use canary::{CANARIES, Canary, CanaryError};
pub use compiler::{COMPILER, CellError, Observations, observe};
pub use device::{DEVICE, Host, Processes, Recorded, STAND_IN, Within};
pub use engine::Oracles;
pub use evidence::{Evidence, Mistake, Unit, mistake};
pub use forbidden::Forbidden;
pub use lowering::LOWERING;
pub use models::ModelError;
pub use patterns::{MUTANT, PATTERNS};
pub use registry::{named, oracles};
pub use sass::{PLANTED_IN_MACHINE_CODE, SASS};
pub use source::certify;
pub use source::{
    ASSEMBLED_SOURCES, LIBNVVM_SOURCES, LLVM_SOURCES, MIXED_SOURCES, NVCC_SOURCES, SourceCellError,
    TRITON_SOURCES,
};
pub use tools::{
    LIBNVVM, LLVM, MIXING, NVCC, NoAssembler, NoCompiler, PTXAS, SASS_SOURCES, SASS_TOOLS, TILEIRAS, TRITON,
};

use crate::direction::Direction;
use crate::job::{Budget, Claim, Part, Parted, Reduced, Side, Verification};
use case::{Case, Context};
use std::fmt;

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

    /// What the people who keep the tool need to see the claim. `None`: the rule is about no compiler.
    fn evidence(&self, _claim: &Claim, _context: Context<'_>) -> Option<Result<Evidence, Abstention>> {
        None
    }

    /// Whether its tool is here.
    fn is_here(&self) -> bool {
        true
    }

    /// Capabilities of a worker whose tool is this one, beside the tool's.
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }

    /// What fixes the meaning of a side that is this oracle's tool: its version. `None`: the side is something else.
    fn tool_version(&self, _spec: &str) -> Option<Result<String, Abstention>> {
        None
    }
}

/// The answer where no try found the rule broken: one reason of those that abstained, whatever their order; or the rule
/// holds.
fn abstained_or_holds<T>(abstained: Vec<Abstention>) -> Result<Option<T>, Abstention> {
    abstained.into_iter().min_by_key(ToString::to_string).map_or(Ok(None), Err)
}

/// The reason where the text of a claim does not read here. Another release may read it, so nothing is said of its rule.
fn unread(why: impl Into<Abstention>) -> Abstention {
    why.into().at("its text does not read here")
}

/// The verdict and the class of a claim that a compiler dies of a program.
pub const CRASH: &str = "crash";

/// The claim that a compiler dies of a program that is valid. Its name for that is the class, whatever the program.
fn crash(oracle: &str, side: &str, program: String, death: &str) -> Claim {
    Claim {
        oracle: oracle.into(),
        direction: Direction::Property,
        models: vec![Side::of(side)],
        verdict: CRASH.into(),
        program,
        witness: String::new(),
        axioms: vec![vec![CRASH.to_owned()], vec![death.to_owned()]],
    }
}

/// Whether a claim breaks the same rule in the same way. A printed line of an early release says no more than the rule.
fn same(new: &Claim, old: &Claim) -> bool {
    let way = |claim: &Claim| (claim.verdict.clone(), claim.axioms.clone());
    new.direction == old.direction && (old.verdict.is_empty() || way(new) == way(old))
}

/// The answer to a claim whose rule was tried again.
fn verification<T>(again: Result<Option<T>, Abstention>) -> Verification {
    match again {
        Ok(Some(_)) => Verification::Confirmed,
        Ok(None) => Verification::Refuted("the rule holds here".into()),
        Err(why) => Verification::Abstained(why.to_string()),
    }
}
