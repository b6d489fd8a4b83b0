//! The weakenings that are planted.

use anyhow::{Context, Result};
use moire_cat::{Library, Model, Source, Variants};
use moire_explore::planted::Planted;
use moire_models::{Shipped, text};
use moire_program::ir::Scope;
use moire_source::mapping::{Lost, Site, Sort};
use moire_source::{Order, Space};
use moire_tile_ir::lowering::{Lowering, Weakening};
use moire_worker::oracle::{CANARIES, Oracles};

/// A weakening.
pub(super) struct Planting {
    pub(super) name: String,
    /// No program of its stream can show it.
    pub(super) harmless: bool,
    pub(super) bug: Bug,
}

/// What is weakened.
pub(super) enum Bug {
    /// The model of PTX, or the explorer.
    Engine(Box<Model>, Option<Planted>),
    /// The model of source programs.
    Meaning(Box<Model>),
    /// The published mapping.
    Mapping(Box<dyn Fn(&Site) -> Option<Lost>>),
    /// The reference lowering of Tile IR.
    Lowering(Oracles),
}

impl Planting {
    /// Where it is planted.
    pub(super) fn place(&self) -> &'static str {
        match self.bug {
            Bug::Engine(_, None) => "`ptx`",
            Bug::Engine(_, Some(_)) => "explorer",
            Bug::Meaning(_) => "`rc11-scoped`",
            Bug::Mapping(_) => "mapping",
            Bug::Lowering(_) => "lowering of Tile IR",
        }
    }
}

/// Another text in a file of a model: name, file, what is replaced, by what.
type Fault = (&'static str, &'static str, &'static str, &'static str);

/// Faults of `ptx` beside those of the canaries.
const PTX: [Fault; 20] = [
    ("release-write-dropped", "lib-ptx", "    [W & REL]\n", "    0\n"),
    ("release-goes-on-dropped", "lib-ptx", "  | [W & REL]; po-loc; [strong-write]\n", ""),
    ("acquire-goes-back-dropped", "lib-ptx", "  | [strong-read]; po-loc; [strong-read & ACQ]\n", ""),
    ("proxies-ignored", "lib-ptx", "(operation * operation) & same-proxy &", "(operation * operation) &"),
    ("overlap-ignored", "lib-ptx", " & completely-overlapping) \\ id", ") \\ id"),
    (
        "coherence-partial",
        "lib-ptx",
        "empty ([W]; morally-strong; [W]) \\ (co | co^-1) as CoherenceTotal",
        "",
    ),
    ("tearing-allowed", "lib-ptx", "empty morally-strong & torn as Atomicity-1", ""),
    ("control-no-dependency", "lib-ptx", "addr | data | control | rmw", "addr | data | rmw"),
    ("data-no-dependency", "lib-ptx", "addr | data | control | rmw", "addr | control | rmw"),
    ("address-no-dependency", "lib-ptx", "addr | data | control | rmw", "data | control | rmw"),
    ("cluster-barrier-without-order", "lib-ptx", "| sync-cluster | sync-warp", "| sync-warp"),
    ("reads-from-later-allowed", "lib-ptx-axioms", "irreflexive rf; cause as CausalityRF", ""),
    ("phases-free", "lib-ptx-axioms", "irreflexive bar-phase; base-causality as BarrierPhase", ""),
    (
        "races-dropped",
        "lib-ptx-axioms",
        "flag ~empty race & same-range | asynchronous-race as uniform-race",
        "",
    ),
    (
        "mixed-races-dropped",
        "lib-ptx-axioms",
        "flag ~empty (race \\ same-range) \\ asynchronous-race as mixed-race",
        "",
    ),
    (
        "strong-accesses-race",
        "lib-ptx-axioms",
        "((conflict \\ morally-strong) \\ unordered)",
        "(conflict \\ unordered)",
    ),
    ("alias-fence-dropped", "lib-ptx-proxies", "  | loc & (generic; alias-fence; generic)\n", ""),
    ("surface-fence-behind-dropped", "lib-ptx-proxies", "source-of(SUR) | ", ""),
    ("surface-fence-before-dropped", "lib-ptx-proxies", "target-of(SUR) | ", ""),
    (
        "observation-no-cause",
        "lib-ptx-proxies",
        "let cause = preserved | observation-in-cause; preserved",
        "let cause = preserved",
    ),
];

/// Faults of `rc11-scoped`.
const SOURCE: [Fault; 19] = [
    ("release-write-dropped", RC11, "let releases = (W & REL) | (MF", "let releases = (MF"),
    (
        "release-fence-dropped",
        RC11,
        "let head = [W & releases] | [MF & releases]; po; [W & atomic]",
        "let head = [W & releases]",
    ),
    ("acquire-read-dropped", RC11, "let acquires = (R & ACQ) | (MF", "let acquires = (MF"),
    (
        "acquire-fence-dropped",
        RC11,
        "let acquire-tail = [R & acquires] | [R & atomic]; po; [MF & acquires]",
        "let acquire-tail = [R & acquires]",
    ),
    ("rmw-chain-dropped", RC11, "let chain = observed; (rmw; observed)*", "let chain = observed"),
    ("scopes-ignored", RC11, "let incl = sr | (po", "let incl = (_ * _) | (po"),
    ("write-coherence-dropped", RC11, "empty (hb & loc & (W * W)) \\ co as CoherenceWW", ""),
    ("read-before-write-dropped", RC11, "irreflexive fr; hb as CoherenceFR", ""),
    ("write-behind-read-dropped", RC11, "irreflexive co; rf; hb as CoherenceCR", ""),
    ("read-coherence-dropped", RC11, "irreflexive fr; rf; hb as CoherenceRR", ""),
    ("atomicity-dropped", RC11, "empty rmw & (fr; co) as Atomicity", ""),
    ("tearing-allowed", RC11, "empty (incl & (atomic * atomic)) & torn as SingleCopy", ""),
    ("seq-cst-dropped", RC11, "acyclic psc-scoped as SeqCst", ""),
    ("seq-cst-accesses-dropped", RC11, "let psc = psc-base | psc-fence", "let psc = psc-fence"),
    (
        "seq-cst-fence-behind-access-dropped",
        RC11,
        "let sc-tail = [SCA] | (hb | id); [fence-sc]",
        "let sc-tail = [SCA]",
    ),
    (
        "seq-cst-fence-before-access-dropped",
        RC11,
        "let sc-head = [SCA] | [fence-sc]; (hb | id)",
        "let sc-head = [SCA]",
    ),
    (
        "seq-cst-fences-dropped",
        RC11,
        "let psc-fence = [fence-sc]; (hb | hb; eco; hb); [fence-sc]",
        "let psc-fence = 0",
    ),
    ("seq-cst-without-reads-before", RC11, "(hb & loc) | co | fr", "(hb & loc) | co"),
    (
        "races-dropped",
        RC11,
        "flag ~empty ((conflict \\ as-atomics) \\ (hb | hb^-1)) \\ unordered as undefined-race",
        "",
    ),
];

const RC11: &str = "rc11-scoped";

/// All of them.
pub(super) fn all() -> Result<Vec<Planting>> {
    let mut out = engines()?;
    for fault in &SOURCE {
        // All accesses of an object have one size, so nothing is torn.
        let harmless = fault.0 == "tearing-allowed";
        out.push(Planting { harmless, ..planting(fault.0, Bug::Meaning(Box::new(faulty(RC11, fault)?))) });
    }
    out.extend(mappings());
    for weakening in Weakening::ALL {
        let lowering = Lowering { weakened: Some(weakening), ..Lowering::default() };
        out.push(planting(&format!("{weakening:?}"), Bug::Lowering(Oracles::with_lowering(lowering))));
    }
    Ok(out)
}

fn planting(name: &str, bug: Bug) -> Planting {
    Planting { name: name.to_owned(), harmless: false, bug }
}

fn engines() -> Result<Vec<Planting>> {
    let mut out = Vec::new();
    for canary in &CANARIES {
        out.push(planting(canary.name, Bug::Engine(Box::new(canary.model()?), canary.explorer())));
    }
    for fault in &PTX {
        out.push(planting(fault.0, Bug::Engine(Box::new(faulty("ptx", fault)?), None)));
    }
    Ok(out)
}

/// The model with a fault.
fn faulty(name: &str, (what, file, from, to): &Fault) -> Result<Model> {
    struct Faulty(&'static str, &'static str, &'static str);
    impl Library for Faulty {
        fn open(&self, from: &Source, path: &str) -> Option<(Source, String)> {
            let (found, text) = Shipped.open(from, path)?;
            let here = path.strip_suffix(".cat").unwrap_or(path) == self.0;
            Some((found, if here { text.replacen(self.1, self.2, 1) } else { text }))
        }
    }
    let mut own = text(name).unwrap_or_default().to_owned();
    if *file == name {
        own = own.replacen(from, to, 1);
    }
    let shipped = Source { name: name.to_owned(), shipped: true };
    moire_cat::load_from(shipped, &own, &Faulty(file, from, to), &Variants::new())
        .with_context(|| format!("{what} in {name}"))
}

/// The losses of the mapping: of each sort of operation with each order, of scopes, of widths and spaces.
fn mappings() -> Vec<Planting> {
    use Lost::{
        Acquire as A, Atomicity, Failure, Lead, Order as O, Release as R, Scope as S, Sequence, Strength,
    };
    use Order::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    let updates = [
        (Acquire, O),
        (Release, O),
        (AcqRel, O),
        (AcqRel, A),
        (AcqRel, R),
        (SeqCst, O),
        (SeqCst, Lead),
        (SeqCst, Sequence),
    ];
    let mut all = Vec::new();
    let mut of = |sort, list: &[(Order, Lost)]| {
        all.extend(list.iter().map(|(order, lost)| at(sort, Some(*order), *lost, |_| true, "")));
    };
    of(
        Sort::Load,
        &[(Acquire, O), (SeqCst, O), (SeqCst, Lead), (SeqCst, Sequence), (SeqCst, A), (Relaxed, Strength)],
    );
    of(Sort::Store, &[(Release, O), (SeqCst, O), (SeqCst, Lead), (SeqCst, Sequence), (Relaxed, Strength)]);
    of(Sort::Update, &updates);
    of(Sort::Update, &[(Relaxed, Atomicity)]);
    of(Sort::Cas, &updates);
    of(Sort::Cas, &[(Relaxed, Failure), (Release, Failure)]);
    of(
        Sort::Fence,
        &[(Acquire, O), (Release, O), (AcqRel, O), (AcqRel, A), (AcqRel, R), (SeqCst, O), (SeqCst, Sequence)],
    );
    for sort in [Sort::Load, Sort::Store, Sort::Update, Sort::Cas, Sort::Fence] {
        all.push(at(sort, None, S, |site| site.scope == Scope::Sys, " of sys"));
        all.push(at(sort, None, S, |site| site.scope == Scope::Gpu, " of gpu"));
        all.push(at(sort, None, S, |site| site.scope == Scope::Cluster, " of cluster"));
    }
    for (sort, order) in [(Sort::Load, Acquire), (Sort::Store, Release)] {
        all.push(at(sort, Some(order), O, |site| site.bits == 8, " of 8 bits"));
        all.push(at(sort, Some(order), O, |site| site.bits == 16, " of 16 bits"));
        all.push(at(sort, Some(order), O, |site| site.bits == 64, " of 64 bits"));
        all.push(at(sort, Some(order), O, |site| site.bits == 128, " of 128 bits"));
        all.push(at(sort, Some(order), O, |site| site.space == Space::Generic, " in generic memory"));
        all.push(at(sort, Some(order), O, |site| site.space == Space::Shared, " in shared memory"));
    }
    // The fence in front of it releases already.
    all.push(Planting { harmless: true, ..at(Sort::Store, Some(SeqCst), R, |_| true, "") });
    all
}

/// A loss of an operation, where `here` says so.
fn at(sort: Sort, order: Option<Order>, lost: Lost, here: fn(&Site) -> bool, place: &str) -> Planting {
    let fits =
        move |site: &Site| site.sort == sort && order.is_none_or(|order| order == site.order) && here(site);
    let order = order.map_or(String::new(), |order| format!(" {}", order.word()));
    let name = format!("{sort:?}{order}{place} loses {lost:?}").to_lowercase();
    planting(&name, Bug::Mapping(Box::new(move |site| fits(site).then_some(lost))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_stands_in_the_text_once_and_loads() {
        for (name, file, from, _) in PTX.iter().chain(&SOURCE) {
            assert_eq!(text(file).expect("a shipped file").matches(from).count(), 1, "{name}");
        }
        assert!(all().expect("loads").len() >= 60);
    }
}
