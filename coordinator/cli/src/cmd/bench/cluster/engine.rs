//! An engine whose answers are a function of the item alone, so that a run takes milliseconds.
//!
//! What is tried is the protocol; what is true of a program plays no part in it.

use moire_worker::job::{
    Budget, Cancel, Claim, Engine, EngineReport, Item, ItemReport, Reduced, Verification,
};

/// One in so many items breaks a rule.
const BREAKS: u64 = 40;

/// See the module header.
pub(super) struct Simple;

impl Engine for Simple {
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }
    fn fingerprint(&self) -> String {
        "simple".to_owned()
    }
    fn run(&self, item: &Item, _: &Cancel) -> ItemReport {
        let hash = *blake3::hash(&item.index.to_le_bytes()).as_bytes();
        let row = EngineReport {
            engine: "simple".to_owned(),
            outcomes: hash,
            executions: 1 + item.index % 7,
            ..EngineReport::default()
        };
        let claims =
            if item.index.is_multiple_of(BREAKS) { vec![claim(item.index / BREAKS)] } else { Vec::new() };
        ItemReport { program: hash, engines: vec![row], claims, ..ItemReport::default() }
    }
    fn verify(&self, claim: &Claim, _: &Cancel) -> Verification {
        match claim.program.ends_with('3') {
            true => Verification::Refuted("not here".to_owned()),
            false => Verification::Confirmed,
        }
    }
    fn minimise(&self, claim: &Claim, _: Budget, _: &Cancel, _: &mut dyn FnMut(&Claim)) -> Reduced {
        let program = claim.program.replace("program ", "p");
        Reduced { claim: Claim { program, ..claim.clone() }, tried: 1, normal: true }
    }
}

fn claim(number: u64) -> Claim {
    let (rule, program) = (format!("rule-{}", number % 2), format!("program {}", number % 5));
    Claim { oracle: "simple".to_owned(), axioms: vec![vec![rule]], program, ..Claim::default() }
}
