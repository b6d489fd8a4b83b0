//! Canaries: planted bugs that the oracles must see on the campaign's own items.
//!
//! Most are the shipped `ptx` model with one fault in its text; the others are the explorer without one of its side
//! conditions. A canary is caught on an item if the faulty engine and the naive enumerator under the right model differ,
//! that is, if the `self` rule is broken. A bug that few programs can show runs on every program that suits it, the others
//! run on a sample. `measured_rates` prints how often each is caught; the sizes of the samples follow from that.

use super::answer::{Answer, explored, explored_planted};
use crate::job::CanaryResult;
use moire_cat::{Library, LoadError, Model, Source, Variants};
use moire_explore::planted::Planted;
use moire_program::features::Features;
use moire_program::features::features;
use moire_program::ir::{FenceOrder, LoadOrder, Op, Program, RmwOrder, StoreOrder, Thread};
use moire_program::{barrier_op, unit_op};
use std::sync::OnceLock;

/// The model the bugs are planted in.
pub(super) const MODEL: &str = "ptx";

/// A planted bug.
#[derive(Clone, Copy, Debug)]
pub struct Canary {
    /// Its name.
    pub name: &'static str,
    bug: Bug,
    /// It runs on one of this many suitable items.
    every: u64,
    /// Whether the bug can show on a program, judged from its text.
    suits: fn(&Sight) -> bool,
}

/// A planted bug whose model does not load.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
pub struct CanaryError {
    name: &'static str,
    source: LoadError,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// In this file of the model, the second text replaces the first, which occurs once.
    Model(&'static str, &'static str, &'static str),
    /// The explorer leaves out a side condition.
    Explorer(Planted),
}

/// All planted bugs.
pub const CANARIES: [Canary; 19] = [
    Canary {
        name: "release-fence-dropped",
        bug: Bug::Model("lib-ptx", "  | [(MF | PF) & (REL | ACQ_REL)]; po; [strong-write]", ""),
        every: 24,
        suits: |s| s.threads.iter().any(|t| t.release_fence) && s.threads.iter().any(|t| t.acquires),
    },
    Canary {
        name: "acquire-fence-dropped",
        bug: Bug::Model("lib-ptx", "  | [strong-read]; po; [(MF | PF) & (ACQ | ACQ_REL)]", ""),
        every: 24,
        suits: |s| s.threads.iter().any(|t| t.acquire_fence) && s.threads.iter().any(|t| t.releases),
    },
    Canary {
        name: "acquire-load-dropped",
        bug: Bug::Model("lib-ptx", "    [strong-read & ACQ]\n", "    0\n"),
        every: 24,
        suits: |s| s.threads.iter().any(|t| t.acquires) && s.threads.iter().any(|t| t.releases),
    },
    Canary {
        name: "rmw-chain-dropped",
        bug: Bug::Model("lib-ptx", "observed; (rmw; observed)*", "observed"),
        every: 4,
        suits: |s| s.features.rmw && s.features.threads > 2 && s.synchronises(),
    },
    Canary {
        name: "red-heads-acquire",
        bug: Bug::Model("lib-ptx", "let strong-read = (R \\ RED) &", "let strong-read = R &"),
        every: 2,
        suits: |s| s.threads.iter().any(|t| t.red_then_fence) && s.threads.iter().any(|t| t.releases),
    },
    Canary {
        name: "scopes-ignored",
        bug: Bug::Model(
            "lib-ptx",
            "((po | po^-1) | reach)",
            "((po | po^-1) | reach | ([(M \\ WEAK) | MF]; (_ * _); [(M \\ WEAK) | MF]))",
        ),
        every: 12,
        suits: |_| true,
    },
    Canary {
        name: "barrier-without-order",
        bug: Bug::Model("lib-ptx", "sync_fence | syncbar |", "sync_fence |"),
        every: 8,
        suits: |s| s.features.barrier,
    },
    Canary {
        name: "atomicity-dropped",
        bug: Bug::Model(
            "lib-ptx",
            "empty rmw & ((morally-strong & fr); (morally-strong & co)) as Atomicity-2",
            "",
        ),
        every: 30,
        suits: |s| s.features.rmw,
    },
    Canary {
        name: "thin-air-allowed",
        bug: Bug::Model(
            "lib-ptx",
            "acyclic rf | dependency as NoThinAir",
            "acyclic rf | rmw-dependency as NoThinAir",
        ),
        every: 2,
        suits: |s| s.features.load_buffering && s.features.dependency,
    },
    Canary {
        name: "coherence-dropped",
        bug: Bug::Model("lib-ptx-axioms", "empty (cause & overlapping-writes) \\ co as Coherence", ""),
        every: 30,
        suits: |_| true,
    },
    Canary {
        name: "read-before-write-dropped",
        bug: Bug::Model("lib-ptx-axioms", "irreflexive fr; cause as CausalityFR", ""),
        every: 30,
        suits: |_| true,
    },
    Canary {
        name: "sc-fence-as-acq-rel",
        bug: Bug::Model(
            "lib-ptx",
            "let sync = patterns \\ restricted | sync_fence |",
            "let sync = patterns \\ restricted |",
        ),
        every: 16,
        suits: |s| s.threads.iter().filter(|t| t.sc_fence).count() > 1,
    },
    explorer("never-open", Planted::NeverOpen, 90, |_| true),
    explorer("all-or-nothing", Planted::AllOrNothing, 10, |_| true),
    explorer("claims-all", Planted::ClaimsAll, 30, |_| true),
    explorer("one-direction", Planted::OneDirection, 60, |_| true),
    explorer("forgets-initial", Planted::ForgetsInitial, 90, |_| true),
    explorer("never-stuck", Planted::NeverStuck, 4, |s| s.features.awaits),
    explorer("always-hangs", Planted::AlwaysHangs, 30, |s| s.features.awaits),
];

const fn explorer(name: &'static str, bug: Planted, every: u64, suits: fn(&Sight) -> bool) -> Canary {
    Canary { name, bug: Bug::Explorer(bug), every, suits }
}

/// Features of a program that a bug may need to show.
struct Sight {
    features: Features,
    threads: Vec<Marks>,
}

/// Features of one thread.
#[derive(Default)]
struct Marks {
    /// A fence that releases, before a write.
    release_fence: bool,
    /// Such a fence, or a write that releases.
    releases: bool,
    /// A fence that acquires, after a read.
    acquire_fence: bool,
    /// Such a fence, or a read that acquires.
    acquires: bool,
    /// A fence that acquires, after a `red`.
    red_then_fence: bool,
    /// A fence.sc.
    sc_fence: bool,
}

impl Sight {
    fn of(program: &Program) -> Self {
        Sight { features: features(program), threads: program.threads.iter().map(Marks::of).collect() }
    }

    fn synchronises(&self) -> bool {
        self.threads.iter().any(|t| t.releases) && self.threads.iter().any(|t| t.acquires)
    }
}

impl Marks {
    fn of(thread: &Thread) -> Self {
        let mut marks = Marks::default();
        let (mut read, mut red, mut fenced) = (false, false, false);
        for instr in &thread.body {
            match &instr.op {
                Op::Fence { order, .. } => {
                    let acquires = *order != FenceOrder::Release;
                    marks.acquire_fence |= acquires && read;
                    marks.red_then_fence |= acquires && red;
                    marks.sc_fence |= *order == FenceOrder::Sc;
                    fenced |= *order != FenceOrder::Acquire;
                }
                Op::Load { order, .. } => {
                    read = true;
                    marks.acquires |= matches!(order, LoadOrder::Acquire(_) | LoadOrder::MmioAcquire);
                }
                Op::Store { order, .. } => {
                    marks.release_fence |= fenced;
                    marks.releases |= matches!(order, StoreOrder::Release(_) | StoreOrder::MmioRelease);
                }
                Op::Rmw { order, red: is_red, .. } => {
                    read |= !is_red;
                    red |= is_red;
                    marks.release_fence |= fenced;
                    marks.releases |= matches!(order, RmwOrder::Release | RmwOrder::AcqRel);
                    marks.acquires |= matches!(order, RmwOrder::Acquire | RmwOrder::AcqRel);
                }
                // No canary asks for these.
                Op::Mov { .. }
                | Op::Alu { .. }
                | Op::Setp { .. }
                | Op::Selp { .. }
                | Op::Mapa { .. }
                | Op::Bra { .. }
                | Op::Exit => {}
                Op::MultimemLoad { .. }
                | Op::MultimemStore { .. }
                | Op::MultimemRed { .. }
                | Op::Mbarrier(_)
                | Op::Tile(_) => {}
                Op::ProxyFence(_) | Op::MbarrierInitFence | Op::ProxyOrder(_) | Op::Control(_) => {}
                barrier_op!() | unit_op!() => {}
                Op::Book(_) => {}
            }
        }
        marks.releases |= marks.release_fence;
        marks.acquires |= marks.acquire_fence;
        marks
    }
}

impl Canary {
    /// The bug of the explorer; none if the bug is one of the model.
    pub fn explorer(&self) -> Option<Planted> {
        match self.bug {
            Bug::Explorer(bug) => Some(bug),
            Bug::Model(..) => None,
        }
    }

    /// The model it explores under: the right one, or the right one with this bug.
    ///
    /// # Errors
    /// The text with the bug does not load.
    pub fn model(&self) -> Result<Model, CanaryError> {
        struct Mutant<'a>(&'a Canary);
        impl Library for Mutant<'_> {
            fn open(&self, from: &Source, path: &str) -> Option<(Source, String)> {
                let (found, text) = moire_models::Shipped.open(from, path)?;
                let stem = path.strip_suffix(".cat").unwrap_or(path);
                match self.0.bug {
                    Bug::Model(file, from, to) if file == stem => Some((found, text.replacen(from, to, 1))),
                    _ => Some((found, text)),
                }
            }
        }
        let text = moire_models::text(MODEL).unwrap_or_default();
        moire_cat::load(MODEL, text, &Mutant(self), &Variants::new())
            .map_err(|source| CanaryError { name: self.name, source })
    }
}

/// The models of all canaries, in their order; loaded once.
fn models() -> &'static [Result<Model, CanaryError>] {
    static MODELS: OnceLock<Vec<Result<Model, CanaryError>>> = OnceLock::new();
    MODELS.get_or_init(|| CANARIES.iter().map(Canary::model).collect())
}

/// Runs the canaries whose turn it is on one item. `naive` is the enumerator's answer under the right model.
pub(super) fn run(program: &Program, index: u64, naive: &Answer) -> Vec<CanaryResult> {
    let sight = Sight::of(program);
    let turn = |(at, canary): (u64, &Canary)| (index + at).is_multiple_of(canary.every);
    let due = (0..).zip(&CANARIES).zip(models());
    due.filter(|(canary, _)| turn(*canary) && (canary.1.suits)(&sight))
        .filter_map(|((_, canary), model)| {
            let model = model.as_ref().ok()?;
            let wrong = match canary.bug {
                Bug::Model(..) => explored(program, model),
                Bug::Explorer(bug) => explored_planted(program, model, Some(bug)),
            };
            Some(CanaryResult { name: canary.name.into(), caught: wrong.ok()?.leaves != naive.leaves })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::answer::enumerated;
    use super::*;
    use moire_generate::{Profile, Stream};

    #[test]
    fn every_canary_stands_in_the_text_once_and_loads() {
        for canary in &CANARIES {
            if let Bug::Model(file, from, _) = canary.bug {
                let text = moire_models::text(file).expect("a shipped file");
                assert_eq!(text.matches(from).count(), 1, "{}", canary.name);
            }
            canary.model().expect("loads");
        }
    }

    /// Prints, over `MOIRE_CANARY_ITEMS` items, how many suit each canary, ran it, and caught it.
    #[test]
    fn measured_rates() {
        let items = std::env::var("MOIRE_CANARY_ITEMS").map_or(200, |n| n.parse().expect("a number"));
        let right = moire_models::load(MODEL, &Variants::new()).expect("shipped");
        let stream = Stream::new(1, "core".parse::<Profile>().expect("a profile"));
        let mut rates = vec![(0, 0, 0); CANARIES.len()];
        for index in 0..items {
            let program = stream.item(index);
            let sight = Sight::of(&program);
            for (canary, rate) in CANARIES.iter().zip(&mut rates) {
                rate.0 += u64::from((canary.suits)(&sight));
            }
            let Ok(naive) = enumerated(&program, &right) else { continue };
            for result in run(&program, index, &naive) {
                let at = CANARIES.iter().position(|c| c.name == result.name).expect("one of ours");
                rates[at].1 += 1;
                rates[at].2 += u64::from(result.caught);
            }
        }
        println!("{items} items: suits, ran, caught");
        for (canary, (suits, ran, caught)) in CANARIES.iter().zip(&rates) {
            println!("{suits:8} {ran:8} {caught:8} {}", canary.name);
        }
        let ran: u64 = rates.iter().map(|r| r.1).sum();
        assert!(ran <= items, "{ran} explorations of canaries on {items} items are too many");
        assert!(rates.iter().any(|r| r.2 > 0));
    }
}
