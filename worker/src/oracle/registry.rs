//! The table of all oracles. A new oracle is one line of [`registry`].

use super::about::About;
use super::{
    Oracle, assembler, compiler, lowering, metamorphic, operational, pair, patterns, self_check, source,
};

/// The oracles of a worker, in the order in which their claims are reported.
pub(super) fn registry() -> Vec<Box<dyn Oracle>> {
    let mut all: Vec<Box<dyn Oracle>> = vec![
        Box::new(self_check::SelfCheck),
        Box::new(pair::ModelPair),
        Box::new(metamorphic::Metamorphic),
        Box::new(patterns::Patterns),
        Box::new(assembler::Assembler::default()),
        Box::new(compiler::Compiler::default()),
        Box::new(lowering::ReferenceLowering::default()),
        Box::new(operational::Operational::default()),
    ];
    all.extend(source::all().map(|oracle| Box::new(oracle) as Box<dyn Oracle>));
    all
}

/// All oracles, in the order of their claims.
pub fn oracles() -> impl Iterator<Item = &'static About> {
    registry().into_iter().map(|oracle| oracle.about())
}

/// The oracle of this name.
pub fn named(name: &str) -> Option<&'static About> {
    oracles().find(|about| about.name == name)
}
