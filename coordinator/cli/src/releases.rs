//! Which releases of a compiler, of those that are here, break the rule of a claim.
//!
//! The release that the claim names is asked as the claim has it; another one for its usual target and version of PTX at the
//! same level, because not every release has every target. A release that breaks the rule in another way is told apart from
//! one that is right.

use moire_toolchain::Ptxas;
use moire_toolchain::source::{Compiler, Kind};
use moire_toolchain::tile::Tileiras;
use moire_worker::job::{Cancel, Claim, Engine, Item, Plan, Side, Source, Verification};
use moire_worker::oracle::{self, ASSEMBLED_SOURCES, CRASH, Oracles, PTXAS, SASS_TOOLS, TILEIRAS, Takes};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time after which no further release is asked.
pub(crate) const TIME: Duration = Duration::from_secs(60);

/// What a release makes of the program of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Makes {
    /// The mistake of the claim.
    Same,
    /// Another mistake.
    Other(String),
    /// Nothing wrong.
    Right,
    /// No answer, and why.
    Silent(String),
}

/// A release that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// Such as `13.4`.
    pub(crate) name: String,
    /// The side as it was asked.
    pub(crate) side: Side,
    pub(crate) makes: Makes,
}

/// The side of a claim that is a compiler; `None` where it has none or several. Behind an assembler of source programs the
/// compiler is that of the program, which stays.
fn compiler(claim: &Claim) -> Option<&Side> {
    if claim.oracle == ASSEMBLED_SOURCES.name {
        return claim.models.iter().find(|side| side.name == SASS_TOOLS.capability);
    }
    let tools = [TILEIRAS.capability, PTXAS.capability, SASS_TOOLS.capability];
    let is = |side: &&Side| tools.contains(&side.name.as_str()) || kind(side).is_some();
    let mut all = claim.models.iter().filter(is);
    all.next().filter(|_| all.next().is_none())
}

fn kind(side: &Side) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.name() == side.name)
}

/// The releases that are here, oldest first.
fn installed(side: &Side) -> Vec<String> {
    let mut all: Vec<String> = match kind(side) {
        Some(kind) => Compiler::all(kind).iter().map(Compiler::release).collect(),
        None if side.name == SASS_TOOLS.capability => {
            let tools = Ptxas::all();
            tools.iter().map(|t| format!("{}.{}", t.version().major, t.version().minor)).collect()
        }
        None => {
            let tools = Tileiras::all(None);
            tools.iter().map(|t| format!("{}.{}", t.version().major, t.version().minor)).collect()
        }
    };
    all.sort_by_key(|release| numbers(release));
    all.dedup();
    all
}

fn numbers(release: &str) -> Vec<u32> {
    release.split('.').filter_map(|n| n.parse().ok()).collect()
}

/// The side with another release.
fn of(side: &Side, release: &str) -> Side {
    let same = side.variants.get("release").is_some_and(|r| r == release);
    let mut other = Side { fingerprint: [0; 32], ..side.clone() };
    if !same && kind(side).is_some() {
        // libNVVM is another compiler for other targets.
        let kept =
            |setting: &str| setting == "level" || (setting == "target" && kind(side) == Some(Kind::Libnvvm));
        other.variants.retain(|setting, _| kept(setting));
    }
    other.variants.insert("release".to_owned(), release.to_owned());
    other
}

/// Asks every release that is here, oldest first.
pub(crate) fn releases(engine: &Oracles, claim: &Claim) -> Vec<Release> {
    let Some(side) = compiler(claim) else { return Vec::new() };
    if side.name == PTXAS.capability {
        return assemblers(claim, side);
    }
    let start = Instant::now();
    let one = |name: String| {
        let side = of(side, &name);
        let makes = match start.elapsed() < TIME {
            true => makes(engine, claim, &side),
            false => Makes::Silent("not asked: the time was up".to_owned()),
        };
        Release { name, side, makes }
    };
    installed(side).into_iter().map(one).collect()
}

/// Asks every assembler that is here, oldest first.
fn assemblers(claim: &Claim, side: &Side) -> Vec<Release> {
    let one = |ptxas: Ptxas| {
        let version = ptxas.version();
        let makes = match Oracles::with_assembler(ptxas).verify(claim, &Cancel::new()) {
            Verification::Confirmed => Makes::Same,
            Verification::Refuted(_) => Makes::Right,
            Verification::Abstained(why) => Makes::Silent(why),
        };
        Release { name: version.to_string(), side: side.clone(), makes }
    };
    Ptxas::all().into_iter().rev().map(one).collect()
}

fn makes(engine: &Oracles, claim: &Claim, side: &Side) -> Makes {
    let plan = Plan { oracles: vec![claim.oracle.clone()], models: vec![side.spec()], ..Plan::default() };
    let source = Source::Text(claim.program.clone());
    let report = engine.run(&Item { plan: Arc::new(plan), index: 0, source }, &Cancel::new());
    let way = |c: &Claim| (c.direction, c.axioms.clone());
    if report.claims.iter().any(|c| way(c) == way(claim)) {
        return Makes::Same;
    }
    match (report.claims.first(), report.abstentions.keys().next()) {
        (Some(other), _) => Makes::Other(oracle::mistake(&other.axioms).title),
        (None, Some(why)) => Makes::Silent(why.clone()),
        (None, None) if report.engines.is_empty() => Makes::Silent("nothing was judged".to_owned()),
        (None, None) => Makes::Right,
    }
}

/// The mistake of a compiler in words; `None`: the checks of the claim are those of a model, or of a rule of ours.
pub(crate) fn mistaken(of: &str, checks: &[Vec<String>]) -> Option<String> {
    let compiles = oracle::named(of).is_some_and(|a| a.tool.is_some() && a.takes != Takes::Programs);
    let first = checks.first().and_then(|set| set.first()).map_or("", String::as_str);
    let assembles = first == CRASH || first.starts_with("sass-");
    (assembles || compiles && !checks.is_empty()).then(|| oracle::mistake(checks).title)
}

/// `since 15 or before, fixed in 19`; nothing where no release has the mistake.
pub(crate) fn words(all: &[Release]) -> Option<String> {
    let at = |is: &dyn Fn(&Release) -> bool| {
        all.iter().enumerate().filter(|(_, r)| is(r)).map(|(n, _)| n).collect::<Vec<_>>()
    };
    let (same, right) = (at(&|r| r.makes == Makes::Same), at(&|r| r.makes == Makes::Right));
    let (first, last) = (*same.first()?, *same.last()?);
    let since = match right.iter().any(|n| *n < first) {
        true => format!("since {}", all[first].name),
        false => format!("since {} or before", all[first].name),
    };
    let until = match right.iter().find(|n| **n > last) {
        Some(fixed) => format!("fixed in {}", all[*fixed].name),
        None if last + 1 == all.len() => format!("still in {}, the newest here", all[last].name),
        None => format!("in {} at least", all[last].name),
    };
    Some(format!("{since}, {until}"))
}

/// One line a release.
pub(crate) fn lines(all: &[Release]) -> Vec<String> {
    let line = |r: &Release| {
        let said = match &r.makes {
            Makes::Same => "has it".to_owned(),
            Makes::Other(title) => format!("is wrong in another way: {title}"),
            Makes::Right => "is right".to_owned(),
            Makes::Silent(why) => format!("no answer: {why}"),
        };
        format!("{}: {said}", r.name)
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(makes: &[(&str, Makes)]) -> Vec<Release> {
        let one = |(name, makes): &(&str, Makes)| Release {
            name: (*name).to_owned(),
            side: Side { name: "llvm".to_owned(), ..Side::default() },
            makes: makes.clone(),
        };
        makes.iter().map(one).collect()
    }

    #[test]
    fn releases_become_a_stretch() {
        let said = |makes: &[(&str, Makes)]| words(&all(makes)).unwrap_or_default();
        let silent = || Makes::Silent("no".to_owned());
        let other = || Makes::Other("race".to_owned());
        assert_eq!(
            said(&[("15", Makes::Same), ("16", Makes::Same), ("19", Makes::Right)]),
            "since 15 or before, fixed in 19"
        );
        assert_eq!(
            said(&[("15", Makes::Right), ("16", Makes::Same)]),
            "since 16, still in 16, the newest here"
        );
        assert_eq!(said(&[("15", Makes::Same), ("19", silent())]), "since 15 or before, in 15 at least");
        assert_eq!(said(&[("15", Makes::Same), ("19", other())]), "since 15 or before, in 15 at least");
        assert_eq!(said(&[("15", Makes::Right)]), "");
    }

    #[test]
    fn another_release_is_asked_for_its_usual_target() {
        let side = Side::of("llvm:level=2,ptx=72,release=15,target=sm_80");
        assert_eq!(of(&side, "19").spec(), "llvm:level=2,release=19");
        assert_eq!(of(&side, "15").spec(), side.spec());
        let tile = Side::of("tileiras:level=3,release=13.5,target=sm_90");
        assert_eq!(of(&tile, "13.4").spec(), "tileiras:level=3,release=13.4,target=sm_90");
    }
}
