//! The table of all oracles. A new oracle is one line of [`registry`].

use super::about::About;
use super::{
    Oracle, assembler, compiler, device, lowering, metamorphic, operational, pair, patterns, sass,
    self_check, source,
};

/// The oracles of a worker, in the order in which their claims are reported.
pub(super) fn registry() -> Vec<Box<dyn Oracle>> {
    let mut all: Vec<Box<dyn Oracle>> = vec![
        Box::new(self_check::SelfCheck),
        Box::new(pair::ModelPair),
        Box::new(metamorphic::Metamorphic),
        Box::new(patterns::Patterns),
        Box::new(assembler::Assembler::default()),
        Box::new(sass::MachineCode::default()),
        Box::new(compiler::Compiler::default()),
        Box::new(lowering::ReferenceLowering::default()),
        Box::new(operational::Operational::default()),
    ];
    all.extend(source::oracles());
    all.push(Box::new(device::OnDevice::<false>::default()));
    all.push(Box::new(device::OnDevice::<true>::default()));
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

#[cfg(test)]
mod tests {
    use super::super::about::Takes;
    use super::super::{ASSEMBLED_SOURCES, MIXING};
    use super::*;
    use crate::oracle::{COMPILER, SASS};
    use moire_generate::Profile;
    use moire_proto::needs;

    #[test]
    fn coordinators_lease_by_what_oracles_need() {
        let tools = oracles().filter_map(|about| Some((about.name, about.tool?.capability)));
        assert_eq!(tools.collect::<Vec<_>>(), needs::TOOLS);
        for profile in Profile::ALL {
            let own = needs::oracles(profile.name(), Vec::new());
            let takes = Takes::of_profile(profile.name());
            let judge = |name: &String| named(name).is_some_and(|about| about.takes == takes);
            assert!(own.iter().all(judge), "{profile}: {own:?}");
            // Where none is named, those that run by default need nothing.
            let bare = |about: &&About| about.takes == takes && about.by_default && about.tool.is_none();
            assert_eq!(own.is_empty(), oracles().any(|about| bare(&about)), "{profile}");
        }
        let others = [MIXING.capability, ASSEMBLED_SOURCES.name];
        let cells = oracles().filter(|about| about.takes == Takes::Sources && !others.contains(&about.name));
        assert_eq!(cells.map(|about| about.name).collect::<Vec<_>>(), needs::CELLS);
        assert_eq!((COMPILER.name, [SASS.name, ASSEMBLED_SOURCES.name]), (needs::CAUSES, needs::MACHINE));
        let named = vec!["self".to_owned(), "mixing".to_owned()];
        assert_eq!(needs::oracles("source", named.clone()), named);
        assert_eq!(needs::needs(["self", "mixing"]).collect::<Vec<_>>(), ["mixing"]);
    }
}
