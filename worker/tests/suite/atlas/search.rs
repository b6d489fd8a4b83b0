//! The search behind the atlas: the least tensor-core program on which two settings of a model differ.
//!
//! Programs with mbarriers, waits and fences are too long to try all programs of their size. So each grammar fixes the
//! common parts of a family of programs (threads, their places, the set-up of the barriers) and leaves slots. Every
//! filling of the slots is tried, fewest steps first. The answer is the least text of the first size with a difference.
//! Programs are compared by the ends of their executions and the flags they raise. If there is no difference, the bound
//! is the number of programs.

use moire_cat::Model;
use moire_execution::leaf::LeafKind;
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::exhaustive::Size;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Most executions of one program. These programs have only a few.
const MAX_LEAVES: u64 = 2_000;

/// A slot: the choices for each step, the least and the greatest number of steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot(&'static [&'static str], usize, usize);

/// One thread of a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Its place, as written in the text.
    pub(super) place: &'static str,
    /// Its fixed steps, which are not counted.
    pub(super) first: &'static [&'static str],
    /// Its slots.
    pub(super) slots: &'static [Slot],
}

/// A family of programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grammar {
    /// One or two words.
    pub(super) name: &'static str,
    /// A description of its programs.
    pub(super) about: &'static str,
    /// Its threads.
    pub(super) parts: &'static [Part],
}

const ISSUES: &[&str] =
    &["mma", "mma.tf32", "mma.n32", "mma+8", "cp", "cp.4x256b", "shift", "ld", "st", "wait::ld", "wait::st"];
const EARLIER: &[&str] = &["ld", "st", "mma", "wait::ld", "wait::st", "before"];
const LATER: &[&str] = &["mma", "mma+32", "ld", "st"];
const WAITS: &[&str] = &["wait.relaxed", "wait.acquire"];
const AFTER: Slot = Slot(&["after"], 0, 1);

/// All families.
pub(super) const GRAMMARS: &[Grammar] = &[
    Grammar {
        name: "one thread",
        about: "products of two kinds, shapes and places, copies, a shift, loads, stores and their waits in one thread",
        parts: &[Part { place: "warp 0", first: &[], slots: &[Slot(ISSUES, 2, 3)] }],
    },
    Grammar {
        name: "hand-over",
        about: "a thread issues, waits or fences, then arrives or commits; another waits, may fence, issues",
        parts: &[
            Part {
                place: "warp 0",
                first: &["init", "bar"],
                slots: &[Slot(EARLIER, 1, 2), Slot(&["arrive.relaxed", "arrive.release", "commit"], 1, 1)],
            },
            Part { place: "warp 4", first: &["bar"], slots: &[Slot(WAITS, 1, 1), AFTER, Slot(LATER, 1, 1)] },
        ],
    },
    Grammar {
        name: "publication",
        about: "a thread writes ordinary memory, may issue, then arrives or commits; another waits and reads it",
        parts: &[
            Part {
                place: "warp 0",
                first: &["init", "bar"],
                slots: &[
                    Slot(&["put"], 1, 1),
                    Slot(&["mma", "cp"], 0, 1),
                    Slot(&["arrive.relaxed", "arrive.release", "commit"], 1, 1),
                ],
            },
            Part { place: "warp 4", first: &["bar"], slots: &[Slot(WAITS, 1, 1), Slot(&["get"], 1, 1)] },
        ],
    },
    Grammar {
        name: "operands",
        about: "generic writes of an operand before and after the product or copy that reads it, in one thread",
        parts: &[Part {
            place: "warp 0",
            first: &["init"],
            slots: &[
                Slot(&["write", "fence.proxy"], 0, 2),
                Slot(&["mma", "cp"], 1, 1),
                Slot(&["commit"], 0, 1),
                Slot(WAITS, 0, 1),
                Slot(&["fence.proxy"], 0, 1),
                Slot(&["write"], 0, 1),
            ],
        }],
    },
    Grammar {
        name: "lanes",
        about: "two lanes of a warp with a warp barrier between",
        parts: &[
            Part {
                place: "warp 0, lane 0",
                first: &[],
                slots: &[Slot(EARLIER, 1, 3), Slot(&["bar.warp"], 1, 1)],
            },
            Part {
                place: "warp 0, lane 1",
                first: &[],
                slots: &[Slot(&["bar.warp"], 1, 1), AFTER, Slot(LATER, 1, 1)],
            },
        ],
    },
    Grammar {
        name: "way round",
        about: "a hand-over through a thread of the other CTA of a cluster, with every scope",
        parts: &[
            Part {
                place: "warp 0",
                first: &["init", "cluster"],
                slots: &[
                    Slot(&["ld"], 1, 1),
                    Slot(&["wait::ld"], 1, 1),
                    Slot(&["before"], 0, 1),
                    Slot(&["arrive.1.cta", "arrive.1.cluster"], 1, 1),
                ],
            },
            Part {
                place: "cta 1, warp 0",
                first: &["init", "cluster"],
                slots: &[
                    Slot(&["wait.relaxed.cta", "wait.relaxed"], 1, 1),
                    Slot(&["arrive.0.cta", "arrive.0.cluster"], 1, 1),
                ],
            },
            Part {
                place: "warp 4",
                first: &["cluster"],
                slots: &[Slot(&["wait.relaxed.cta", "wait.relaxed"], 1, 1), AFTER, Slot(&["st"], 1, 1)],
            },
        ],
    },
    Grammar {
        name: "two arrivals",
        about: "two arrivals, one from the other CTA of a cluster, at the mbarrier that a reader waits for, with every scope",
        parts: &[
            Part {
                place: "warp 0",
                first: &["init.2", "cluster"],
                slots: &[Slot(&["wait.acquire", "wait.acquire.cluster"], 1, 1), Slot(&["get.global"], 1, 1)],
            },
            Part {
                place: "warp 1",
                first: &["cluster"],
                slots: &[Slot(&["arrive.release", "arrive.release.cluster", "arrive.relaxed"], 1, 1)],
            },
            Part {
                place: "cta 1, warp 0",
                first: &["cluster"],
                slots: &[Slot(&["put.global"], 1, 1), Slot(&["release.0.cta", "release.0.cluster"], 1, 1)],
            },
        ],
    },
];

/// Writes a step as PTX; `n` makes its label unique.
fn step(word: &str, n: usize) -> String {
    let mma = |at: &str, kind: &str, columns: u32| {
        format!(
            "tcgen05.mma.cta_group::1.kind::{kind} [t{at}], desc(a, 32), desc(a+32, 32), idesc(128, {columns}), 1;"
        )
    };
    let wait = |order: &str| {
        format!("L{n}:\n  mbarrier.try_wait.parity.{order}.shared::cta.b64 p, [bar], 0;\n  @!p bra L{n};")
    };
    let remote = |order: &str, rank: &str| {
        format!(
            "mapa.shared::cluster.u32 r2, bar, {rank};\n  mbarrier.arrive.{order}.shared::cluster.b64 _, [r2];"
        )
    };
    match word {
        "mma" => mma("", "f16", 16),
        "mma.tf32" => mma("", "tf32", 16),
        "mma.n32" => mma("", "f16", 32),
        "mma+8" => mma("+8", "f16", 16),
        "mma+32" => mma("+32", "f16", 16),
        "cp" => "tcgen05.cp.cta_group::1.128x256b [t], desc(a, 64);".into(),
        "cp.4x256b" => "tcgen05.cp.cta_group::1.4x256b [t], desc(a, 64);".into(),
        "shift" => "tcgen05.shift.cta_group::1.down [t];".into(),
        "ld" => "tcgen05.ld.sync.aligned.32x32b.x1.b32 {r1}, [t];".into(),
        "st" => "tcgen05.st.sync.aligned.32x32b.x1.b32 [t], {r0};".into(),
        "wait::ld" => "tcgen05.wait::ld.sync.aligned;".into(),
        "wait::st" => "tcgen05.wait::st.sync.aligned;".into(),
        "before" => "tcgen05.fence::before_thread_sync;".into(),
        "after" => "tcgen05.fence::after_thread_sync;".into(),
        "commit" => "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];".into(),
        "init" => "mbarrier.init.shared::cta.b64 [bar], 1;".into(),
        "init.2" => "mbarrier.init.shared::cta.b64 [bar], 2;".into(),
        "arrive.relaxed" => "mbarrier.arrive.relaxed.cluster.shared::cta.b64 _, [bar];".into(),
        "arrive.release" => "mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];".into(),
        "arrive.release.cluster" => "mbarrier.arrive.release.cluster.shared::cta.b64 _, [bar];".into(),
        "arrive.0.cta" => remote("relaxed.cta", "0"),
        "arrive.0.cluster" => remote("relaxed.cluster", "0"),
        "arrive.1.cta" => remote("relaxed.cta", "1"),
        "arrive.1.cluster" => remote("relaxed.cluster", "1"),
        "release.0.cta" => remote("release.cta", "0"),
        "release.0.cluster" => remote("release.cluster", "0"),
        "wait.relaxed" => wait("relaxed.cluster"),
        "wait.relaxed.cta" => wait("relaxed.cta"),
        "wait.acquire" => wait("acquire.cta"),
        "wait.acquire.cluster" => wait("acquire.cluster"),
        "put" => "st.weak.shared::cta.b32 [x], 1;".into(),
        "get" => "ld.weak.shared::cta.b32 r0, [x];".into(),
        "put.global" => "st.weak.global.b32 [g], 1;".into(),
        "get.global" => "ld.weak.global.b32 r0, [g];".into(),
        "write" => "st.weak.shared::cta.b32 [a], 1;".into(),
        "fence.proxy" => "fence.proxy.async;".into(),
        "bar" => "bar.sync 0;".into(),
        "cluster" => "barrier.cluster.arrive;\n  barrier.cluster.wait;".into(),
        "bar.warp" => "bar.warp.sync 3;".into(),
        other => format!("no step is called {other};"),
    }
}

/// The declaration of each name.
const NAMES: [(&str, &str); 5] = [
    ("[t", ".tmem t[64];"),
    ("(a", ".shared .b8 a[64];"),
    ("bar]", ".shared .b64 bar;"),
    ("[x]", ".shared .b32 x;"),
    ("[g]", ".global .b32 g;"),
];

/// Writes the text of one filling, which has the steps of each thread.
fn text(grammar: &Grammar, filling: &[Vec<&str>]) -> String {
    let mut threads = String::new();
    let mut n = 0;
    for (t, (part, steps)) in grammar.parts.iter().zip(filling).enumerate() {
        let cta = if part.place.starts_with("cta") { "" } else { "cta 0, " };
        let _ = writeln!(threads, "P{t} (gpu 0, {cta}{}) {{", part.place);
        for word in part.first.iter().chain(steps) {
            n += 1;
            let _ = writeln!(threads, "  {}", step(word, n));
        }
        threads.push_str("}\n");
    }
    let mut out = format!("moire \"{}\"\n", grammar.name);
    for (mark, declaration) in NAMES {
        if threads.contains(mark)
            || (mark == "(a" && threads.contains("[a]"))
            || (mark == "bar]" && threads.contains(" bar,"))
        {
            let _ = writeln!(out, "{declaration}");
        }
    }
    out + &threads
}

impl Grammar {
    /// Writes every filling with this many steps as text.
    pub(super) fn programs(&self, steps: usize) -> Vec<String> {
        let mut partial: Vec<(Vec<Vec<&str>>, usize)> = vec![(Vec::new(), 0)];
        for part in self.parts {
            partial.iter_mut().for_each(|(filling, _)| filling.push(Vec::new()));
            for Slot(choices, least, most) in part.slots {
                let mut longer = Vec::new();
                for (filling, used) in partial {
                    let mut tails: Vec<Vec<&str>> = vec![Vec::new()];
                    for length in 0..=*most {
                        if length >= *least {
                            for tail in tails.iter().filter(|t| used + t.len() <= steps) {
                                let mut next = filling.clone();
                                next.last_mut().into_iter().for_each(|last| last.extend(tail));
                                longer.push((next, used + length));
                            }
                        }
                        let grown = tails.iter().flat_map(|t| {
                            choices.iter().map(move |c| t.iter().copied().chain([*c]).collect())
                        });
                        tails = grown.collect();
                    }
                }
                partial = longer;
            }
        }
        let mut all: Vec<String> =
            partial.iter().filter(|(_, used)| *used == steps).map(|(f, _)| text(self, f)).collect();
        all.sort();
        all
    }

    /// Returns the least and the greatest number of steps.
    pub(super) fn range(&self) -> (usize, usize) {
        let slots = || self.parts.iter().flat_map(|p| p.slots);
        (slots().map(|s| s.1).sum(), slots().map(|s| s.2).sum())
    }
}

/// The verdicts on a program: the flags by the way in which executions end.
pub(super) type Judged = BTreeSet<(bool, BTreeSet<String>)>;

/// Finds the verdicts of `model` on a program; `None` if the engine gives no answer.
pub(super) fn judged(program: &Program, model: &Model) -> Option<Judged> {
    let mut out = Judged::new();
    let limits = Limits { leaves: MAX_LEAVES, ..Limits::default() };
    let summary = explore(program, model, &[], &limits, &mut |leaf: &mut dyn LeafView| {
        let facts = leaf.facts();
        out.insert((facts.kind == LeafKind::Blocked, facts.flags));
        ControlFlow::Continue(())
    });
    summary.is_ok_and(|s| s.bounded.is_none()).then_some(out)
}

/// The least program that separates a setting from the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Separation {
    /// Its family.
    pub(super) grammar: &'static str,
    /// Its threads and steps, see [`Size`]; memory events are not counted.
    pub(super) size: Size,
    /// Its text.
    pub(super) text: String,
    /// The verdicts under the default.
    pub(super) first: Judged,
    /// The verdicts under the setting.
    pub(super) second: Judged,
}

/// Finds the least program for each setting. Also returns the number of programs tried.
pub(super) fn separations(default: &Model, settings: &[Arc<Model>]) -> (Vec<Option<Separation>>, usize) {
    let mut found: Vec<Option<Separation>> = vec![None; settings.len()];
    let mut tried = 0;
    let mut sizes: Vec<(usize, usize)> = Vec::new();
    for grammar in GRAMMARS {
        let (least, most) = grammar.range();
        sizes.extend((least..=most).map(|steps| (grammar.parts.len(), steps)));
    }
    sizes.sort_unstable();
    sizes.dedup();
    for (threads, steps) in sizes {
        let open: Vec<usize> = (0..settings.len()).filter(|s| found[*s].is_none()).collect();
        let of_size = GRAMMARS.iter().filter(|g| g.parts.len() == threads);
        for (grammar, text) in of_size.flat_map(|g| g.programs(steps).into_iter().map(move |t| (g, t))) {
            let Ok(program) = parse(&text, Format::Native) else { continue };
            let Some(first) = judged(&program, default) else { continue };
            tried += 1;
            for s in &open {
                let Some(second) = judged(&program, &settings[*s]) else { continue };
                let better = found[*s].as_ref().is_none_or(|best| text < best.text);
                if first != second && better {
                    let (text, first, size) = (text.clone(), first.clone(), (threads, 0, steps));
                    found[*s] = Some(Separation { grammar: grammar.name, size, text, first, second });
                }
            }
        }
    }
    (found, tried)
}

#[test]
fn every_filling_parses() {
    for grammar in GRAMMARS {
        let (least, most) = grammar.range();
        let mut n = 0;
        for steps in least..=most {
            for text in grammar.programs(steps) {
                parse(&text, Format::Native).unwrap_or_else(|e| panic!("{text}{e}"));
                n += 1;
            }
        }
        assert!(n > 10, "{}: {n} programs", grammar.name);
    }
}
