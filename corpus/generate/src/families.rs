//! Families of programs whose number of executions is known in closed form, for tests and benchmarks.
//!
//! Contract: a family is a program text and a formula. Under `ptx` the explorer finds exactly [`Family::executions`]
//! complete executions of [`Family::text`] and no blocked one (`worker/explore/tests/suite/closed_forms.rs`).
//!
//! Source: benchmark families of the stateless model checking literature (GenMC, Nidhugg), written with `.relaxed.gpu`
//! and one CTA per thread unless stated otherwise. In addition there are rings, counters, locks, a sequence lock, a
//! queue, barriers, rings of bulk copies, and a kernel of matrix products.

use crate::protocol::Gemm;
use std::collections::BTreeSet;
use std::fmt::Write;

/// One family.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name; in the literature, if it comes from there.
    pub name: &'static str,
    /// The quantity that the size counts, in a few words.
    pub what: &'static str,
    /// Smallest size that makes sense.
    pub least: usize,
    /// Largest size that a quick test explores.
    pub quick: usize,
    /// Size for statistics over repeated runs. A run takes some milliseconds.
    pub bench: usize,
    /// Size at which published tools are compared.
    pub full: usize,
    text: fn(usize) -> String,
    executions: fn(u64) -> u64,
}

impl Family {
    /// Writes the program of size `n` as native litmus text.
    pub fn text(&self, n: usize) -> String {
        (self.text)(n.max(self.least))
    }

    /// Computes the number of its complete executions under `ptx`.
    pub fn executions(&self, n: usize) -> u64 {
        (self.executions)(n.max(self.least) as u64)
    }
}

/// All families.
pub const FAMILIES: &[Family] = &[
    Family { name: "sb", what: "ring of store buffering", ..family([2, 8, 10, 18], sb, |n| 1 << n) },
    Family { name: "lb", what: "ring of load buffering", ..family([2, 8, 10, 18], lb, |n| 1 << n) },
    Family {
        name: "lbf",
        what: "ring of load buffering with fences",
        ..family([2, 8, 10, 18], lbf, |n| (1 << n) - 1)
    },
    Family {
        name: "lbawait",
        what: "awaits in rings of load buffering",
        ..family([2, 4, 6, 10], lbawait, |n| 1 << n)
    },
    Family {
        name: "lbticket",
        what: "load buffering in front of a ticket lock",
        ..family([2, 3, 3, 4], lbticket, |n| factorial(n) << n)
    },
    Family {
        name: "nw1r",
        what: "writers of one word and a reader",
        ..family([1, 5, 6, 9], nw1r, |n| factorial(n) * (n + 1))
    },
    Family { name: "readers", what: "readers of one writer", ..family([1, 8, 12, 18], readers, |n| 1 << n) },
    Family { name: "ainc", what: "atomic increments", ..family([1, 6, 6, 9], ainc, factorial) },
    Family { name: "casrot", what: "compare-and-swap in turn", ..family([1, 5, 6, 8], casrot, rotations) },
    Family {
        name: "lastzero",
        what: "writers a search runs over",
        ..family([2, 6, 8, 14], lastzero, |n| (n + 3) << n >> 2)
    },
    Family {
        name: "iriw",
        what: "pairs of acquiring readers",
        ..family([1, 2, 2, 3], iriw, |n| 1 << (4 * n))
    },
    Family { name: "mp", what: "links of message passing", ..family([1, 8, 12, 12], mp, |n| n + 1) },
    Family {
        name: "ttas",
        what: "threads at a test-and-set lock",
        ..family([1, 3, 3, 4], ttas, |n| factorial(n) * factorial(n))
    },
    Family { name: "ticket", what: "threads at a ticket lock", ..family([1, 3, 4, 6], ticket, factorial) },
    Family { name: "mcs", what: "threads at a queue lock", ..family([1, 2, 3, 4], mcs, chains) },
    Family {
        name: "seqlock",
        what: "readers of a sequence lock",
        ..family([1, 2, 2, 3], seqlock, |n| (0..n).fold(1, |all, _| 3 * all))
    },
    Family {
        name: "mpmc",
        what: "producers and consumers of a queue",
        ..family([2, 4, 4, 6], mpmc, |n| factorial(n / 2) * factorial(n / 2))
    },
    Family { name: "gemm", what: "tiles of a matrix product", ..family([1, 2, 2, 2], gemm, |_| 1) },
    Family {
        name: "gemm2",
        what: "tiles of a matrix product of two CTAs",
        ..family([1, 1, 2, 2], gemm2, |_| 2)
    },
    Family { name: "barrier", what: "threads at a barrier", ..family([2, 6, 10, 10], barrier, |_| 1) },
    Family {
        name: "handshake",
        what: "pairs that shake hands over named barriers",
        ..family([1, 2, 4, 6], handshake, |_| 1)
    },
    Family { name: "ring", what: "rounds of a ring of bulk copies", ..family([1, 4, 8, 32], ring, |_| 1) },
    Family {
        name: "consumers",
        what: "consumers of two rounds of bulk copies",
        ..family([1, 4, 8, 16], consumers, |_| 1)
    },
    Family {
        name: "pipeline",
        what: "threads that all copy, arrive and wait, twice",
        ..family([1, 2, 4, 8], pipeline, |_| 1)
    },
];

const fn family(sizes: [usize; 4], text: fn(usize) -> String, executions: fn(u64) -> u64) -> Family {
    let [least, quick, bench, full] = sizes;
    Family { name: "", what: "", least, quick, bench, full, text, executions }
}

/// Finds the family called `name`.
pub fn named(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|f| f.name == name)
}

fn factorial(n: u64) -> u64 {
    (1..=n).product()
}

/// Counts the executions of `casrot`: the first `k` of `n` swaps succeed, one after another. Swap `k + 1` fails and
/// reads any of the `k` values it does not want; each later swap reads any of all `k + 1` values.
fn rotations(n: u64) -> u64 {
    let failing = |k: u64| (k + 2..=n).fold(if k < n { k } else { 1 }, |all, _| all * (k + 1));
    (1..=n).map(failing).sum()
}

/// Counts the executions of `mcs`. The order of the exchanges falls into chains: a thread continues a chain if it exchanges
/// before its predecessor leaves. Each thread of a chain but the last sees its successor at once, or its swap fails. A failed
/// swap reads the exchange of a thread behind it, and none that is earlier than what the swaps before it read. So a chain
/// has as many ways as there are paths of Schröder: 1, 2, 6, 22, 90.
fn chains(n: u64) -> u64 {
    let mut paths = vec![1];
    while (paths.len() as u64) < n {
        let pairs: u64 = paths.iter().zip(paths.iter().rev()).map(|(a, b)| a * b).sum();
        paths.push(paths[paths.len() - 1] + pairs);
    }
    let mut ways = vec![1];
    for _ in 0..n {
        ways.push(paths.iter().zip(ways.iter().rev()).map(|(path, rest)| path * rest).sum());
    }
    factorial(n) * ways[ways.len() - 1]
}

/// Writes a program with one thread for each body, each in its own CTA.
fn program(name: &str, n: usize, locations: &[String], bodies: &[String], after: &str) -> String {
    let mut text = format!("moire \"{name}({n})\"\n");
    for location in locations {
        // Writing to a string cannot fail.
        let _ = writeln!(text, ".global .b32 {location};");
    }
    for (i, body) in bodies.iter().enumerate() {
        let _ = writeln!(text, "P{i} (gpu 0, cta {i}) {{ {body} }}");
    }
    text + after
}

fn array(name: &str, n: usize) -> Vec<String> {
    (0..n).map(|i| format!("{name}{i}")).collect()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

fn bodies(n: usize, body: impl Fn(usize) -> String) -> Vec<String> {
    (0..n).map(body).collect()
}

/// Writes load buffering in a ring, with fences. Without the fences there would be one more execution, in which every
/// thread reads the write of the thread before it.
fn lbf(n: usize) -> String {
    let body = |i| {
        let next = (i + 1) % n;
        format!("ld.relaxed.gpu.u32 r, [x{i}]; fence.acq_rel.gpu; st.relaxed.gpu.u32 [x{next}], 1;")
    };
    program("lbf", n, &array("x", n), &bodies(n, body), "")
}

/// Writes a ring with awaits. A thread reads `y` and then stores `x`; the thread before it awaits that store and then
/// stores that `y`.
fn lbawait(n: usize) -> String {
    let body = |i| {
        let next = (i + 1) % n;
        format!(
            "ld.relaxed.gpu.u32 r, [y{i}]; st.relaxed.gpu.u32 [x{i}], 1; \
             L: ld.relaxed.gpu.u32 s, [x{next}]; setp.eq.u32 p, s, 0; @p bra L; st.relaxed.gpu.u32 [y{next}], 1;"
        )
    };
    let locations: Vec<String> = array("x", n).into_iter().chain(array("y", n)).collect();
    program("lbawait", n, &locations, &bodies(n, body), "")
}

fn lbticket(n: usize) -> String {
    let body = |i| {
        let next = (i + 1) % n;
        format!("ld.relaxed.gpu.u32 b, [x{i}]; st.relaxed.gpu.u32 [x{next}], 1; {}", ticketed(i))
    };
    let locations: Vec<String> = array("x", n).into_iter().chain(names(&["next", "serving", "cs"])).collect();
    program("lbticket", n, &locations, &bodies(n, body), &alone(n))
}

fn sb(n: usize) -> String {
    let body =
        |i| format!("st.relaxed.gpu.u32 [x{i}], 1; ld.relaxed.gpu.u32 r, [x{next}];", next = (i + 1) % n);
    program("sb", n, &array("x", n), &bodies(n, body), "")
}

fn lb(n: usize) -> String {
    let body =
        |i| format!("ld.relaxed.gpu.u32 r, [x{i}]; st.relaxed.gpu.u32 [x{next}], 1;", next = (i + 1) % n);
    program("lb", n, &array("x", n), &bodies(n, body), "")
}

fn nw1r(n: usize) -> String {
    let mut all = bodies(n, |i| format!("st.relaxed.gpu.u32 [x], {};", i + 1));
    all.push("ld.relaxed.gpu.u32 r, [x];".into());
    program("nw1r", n, &names(&["x"]), &all, "")
}

fn readers(n: usize) -> String {
    let mut all = vec!["st.relaxed.gpu.u32 [x], 1;".to_owned()];
    all.extend(bodies(n, |_| "ld.relaxed.gpu.u32 r, [x];".into()));
    program("readers", n, &names(&["x"]), &all, "")
}

fn ainc(n: usize) -> String {
    let body = |_| "atom.relaxed.gpu.add.u32 r, [x], 1;".to_owned();
    program("ainc", n, &names(&["x"]), &bodies(n, body), &format!("forall (x == {n})\n"))
}

fn casrot(n: usize) -> String {
    let body = |i| format!("atom.relaxed.gpu.cas.b32 r, [x], {i}, {};", i + 1);
    program("casrot", n, &names(&["x"]), &bodies(n, body), "")
}

/// Writes a search for the last zero beside writers. The search is unrolled, so branches decide where it stops, not an
/// address. Loads acquire and stores release, because the published count assumes that a thread which reads a sum also
/// sees its summand.
fn lastzero(n: usize) -> String {
    let step = |i: usize| format!("ld.acquire.gpu.u32 r, [a{i}]; setp.eq.u32 p, r, 0; @p bra END;");
    let mut all =
        vec![(1..=n).rev().map(step).collect::<String>() + " ld.acquire.gpu.u32 r, [a0]; END: exit;"];
    all.extend(bodies(n, |j| {
        format!("ld.acquire.gpu.u32 r, [a{j}]; add.u32 r, r, 1; st.release.gpu.u32 [a{}], r;", j + 1)
    }));
    program("lastzero", n, &array("a", n + 1), &all, "")
}

fn iriw(n: usize) -> String {
    let mut all = bodies(2, |i| format!("st.release.gpu.u32 [x{i}], 1;"));
    all.extend(bodies(2 * n, |i| {
        let (a, b) = (i % 2, 1 - i % 2);
        format!("ld.acquire.gpu.u32 r, [x{a}]; ld.acquire.gpu.u32 s, [x{b}];")
    }));
    program("iriw", n, &array("x", 2), &all, "")
}

fn mp(n: usize) -> String {
    let mut locations = array("f", n);
    locations.push("d".into());
    let link = |i: usize, then: String| {
        format!("ld.acquire.gpu.u32 r, [f{}]; setp.eq.u32 p, r, 0; @p bra END; {then} END: exit;", i - 1)
    };
    let mut all = vec!["st.weak.u32 [d], 1; st.release.gpu.u32 [f0], 1;".to_owned()];
    all.extend((1..n).map(|i| link(i, format!("st.release.gpu.u32 [f{i}], 1;"))));
    all.push(link(n, "ld.weak.u32 s, [d];".into()));
    program("mp", n, &locations, &all, "")
}

/// Writes the body of a critical section: the thread writes its number and reads it back.
fn critical(i: usize) -> String {
    format!("st.weak.u32 [cs], {i}; ld.weak.u32 c, [cs];")
}

/// Writes the condition that each thread read its own number in the critical section.
fn alone(n: usize) -> String {
    let seen: Vec<String> = (0..n).map(|i| format!("P{i}:c == {i}")).collect();
    format!("forall ({})\n", seen.join(" /\\ "))
}

fn ttas(n: usize) -> String {
    let body = |i| {
        format!(
            "L: ld.relaxed.gpu.u32 r, [lock]; setp.ne.u32 p, r, 0; @p bra L; \
             atom.acquire.gpu.cas.b32 s, [lock], 0, 1; setp.ne.u32 p, s, 0; @p bra L; \
             {} st.release.gpu.u32 [lock], 0;",
            critical(i)
        )
    };
    program("ttas", n, &names(&["lock", "cs"]), &bodies(n, body), &alone(n))
}

fn ticket(n: usize) -> String {
    program("ticket", n, &names(&["next", "serving", "cs"]), &bodies(n, ticketed), &alone(n))
}

/// Writes the critical section of thread `i` under a ticket lock.
fn ticketed(i: usize) -> String {
    format!(
        "atom.relaxed.gpu.add.u32 t, [next], 1; \
         L: ld.acquire.gpu.u32 s, [serving]; setp.ne.u32 p, s, t; @p bra L; \
         {} add.u32 t, t, 1; st.release.gpu.u32 [serving], t;",
        critical(i)
    )
}

/// Writes the lock of Mellor-Crummey and Scott: `tail` is the last thread that came, plus one; each thread waits for a word
/// of its own, and its successor tells it its name in another one.
fn mcs(n: usize) -> String {
    let others =
        |i: usize, text: &dyn Fn(usize) -> String| (0..n).filter(|j| *j != i).map(text).collect::<String>();
    let body = |i: usize| {
        let asked = |reg: &str, to: char| {
            others(i, &|j| format!("setp.eq.u32 q, {reg}, {}; @q bra {to}{j}; ", j + 1))
        };
        let tells = others(i, &|j| format!("A{j}: st.release.gpu.u32 [next{j}], {}; bra WAIT; ", i + 1));
        let hands = others(i, &|j| format!("B{j}: st.release.gpu.u32 [held{j}], 0; bra END; "));
        format!(
            "st.relaxed.gpu.u32 [held{i}], 1; atom.acq_rel.gpu.exch.b32 p, [tail], {}; setp.eq.u32 q, p, 0; @q bra CS; \
             {}exit; {tells}WAIT: ld.acquire.gpu.u32 w, [held{i}]; setp.ne.u32 q, w, 0; @q bra WAIT; CS: {} \
             ld.acquire.gpu.u32 x, [next{i}]; setp.ne.u32 q, x, 0; @q bra HAVE; \
             atom.release.gpu.cas.b32 s, [tail], {}, 0; setp.eq.u32 q, s, {}; @q bra END; \
             NEXT: ld.acquire.gpu.u32 x, [next{i}]; setp.eq.u32 q, x, 0; @q bra NEXT; HAVE: {}exit; {hands}END: exit;",
            i + 1,
            asked("p", 'A'),
            critical(i),
            i + 1,
            i + 1,
            asked("x", 'B'),
        )
    };
    let locations = names(&["tail", "cs"]).into_iter().chain(array("next", n)).chain(array("held", n));
    program("mcs", n, &locations.collect::<Vec<_>>(), &bodies(n, body), &alone(n))
}

/// Writes one writer with two rounds, and `n` readers. A reader starts over unless it reads the same even count before
/// and after.
fn seqlock(n: usize) -> String {
    let round = |k: usize| {
        format!(
            "st.relaxed.gpu.u32 [seq], {}; fence.acq_rel.gpu; st.relaxed.gpu.u32 [d], {}; \
             st.release.gpu.u32 [seq], {};",
            2 * k - 1,
            k,
            2 * k
        )
    };
    let mut all = vec![round(1) + " " + &round(2)];
    all.extend(bodies(n, |_| {
        "L: ld.acquire.gpu.u32 s, [seq]; and.b32 t, s, 1; setp.ne.u32 p, t, 0; @p bra L; \
         ld.relaxed.gpu.u32 d0, [d]; fence.acq_rel.gpu; ld.relaxed.gpu.u32 t, [seq]; \
         setp.ne.u32 p, s, t; @p bra L;"
            .to_owned()
    }));
    program("seqlock", n, &names(&["seq", "d"]), &all, "")
}

/// Writes a queue with one slot. `turn` is `2 k` on the turn of producer `k`, and `2 k + 1` on the turn of consumer
/// `k`.
fn mpmc(n: usize) -> String {
    let side = |counter: &str, offset: usize, work: String| {
        format!(
            "atom.relaxed.gpu.add.u32 t, [{counter}], 1; add.u32 t, t, t; add.u32 t, t, {offset}; \
             L: ld.acquire.gpu.u32 s, [turn]; setp.ne.u32 p, s, t; @p bra L; \
             {work} add.u32 t, t, 1; st.release.gpu.u32 [turn], t;"
        )
    };
    let mut all = bodies(n / 2, |i| side("tail", 0, format!("st.weak.u32 [slot], {};", i + 1)));
    all.extend(bodies(n / 2, |_| side("head", 1, "ld.weak.u32 v, [slot];".into())));
    program("mpmc", n, &names(&["tail", "head", "turn", "slot"]), &all, "")
}

fn barrier(n: usize) -> String {
    let mut text = format!("moire \"barrier({n})\"\n");
    for i in 0..n {
        let _ = writeln!(text, ".global .b32 x{i};");
    }
    for i in 0..n {
        let next = (i + 1) % n;
        let _ = writeln!(
            text,
            "P{i} (gpu 0, cta 0, warp {i}) {{ st.weak.u32 [x{i}], 1; bar.sync 0; ld.weak.u32 r, [x{next}]; }}"
        );
    }
    let seen: Vec<String> = (0..n).map(|i| format!("P{i}:r == 1")).collect();
    text + &format!("forall ({})\n", seen.join(" /\\ "))
}

/// Writes a matrix product with three stages and four k-steps per tile. Each lane of the epilogue warps arrives on its
/// own.
fn gemm(n: usize) -> String {
    Gemm::usual(false, n, 32).protocol().text()
}

/// Writes the matrix product for a pair of CTAs, in which one lane arrives for its warp. It has two executions: the
/// deallocation of the pair waits, or it does not.
fn gemm2(n: usize) -> String {
    Gemm::usual(true, n, 1).protocol().text()
}

/// Writes `n` pairs of warps that tell each other twice to go on, each with barriers of its own.
fn handshake(n: usize) -> String {
    let mut text = format!("moire \"handshake({n})\"\n");
    for i in 0..n {
        let (there, back) = (2 * i, 2 * i + 1);
        let asks = format!("bar.sync {there}, 2; bar.arrive {back}, 2; ").repeat(2);
        let answers = format!("bar.arrive {there}, 2; bar.sync {back}, 2; ").repeat(2);
        let _ = writeln!(text, "P{there} (gpu 0, cta 0, warp {there}) {{ {asks}}}");
        let _ = writeln!(text, "P{back} (gpu 0, cta 0, warp {back}) {{ {answers}}}");
    }
    text
}

/// Writes a ring of one stage that is filled `n` times, with one consumer.
fn ring(n: usize) -> String {
    copied(&format!("ring({n})"), n, 1)
}

/// Writes a ring of one stage that is filled twice, with `n` consumers.
fn consumers(n: usize) -> String {
    copied(&format!("consumers({n})"), 2, n)
}

/// A wait for a phase, with a label of this number.
fn until(object: &str, label: usize, parity: usize) -> String {
    format!(
        "L{label}: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [{object}], {parity}; @!p bra L{label}; "
    )
}

/// Writes a ring of one stage: a warp fills it by bulk copies, and so many others read it and hand it back.
fn copied(name: &str, rounds: usize, consumers: usize) -> String {
    let mut fills = format!(
        "mbarrier.init.shared::cta.b64 [full], 1; mbarrier.init.shared::cta.b64 [free], {consumers}; bar.sync 0; "
    );
    let mut reads = "bar.sync 0; ".to_owned();
    for k in 0..rounds {
        fills += &until("free", k, (k + 1) % 2);
        fills += "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [full], 64; fence.proxy.async; \
                  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [stage], [g], 64, [full]; ";
        reads += &until("full", k, k % 2);
        reads += "ld.weak.shared::cta.b8 r, [stage]; mbarrier.arrive.release.cta.shared::cta.b64 _, [free]; ";
    }
    let mut text = format!(
        "moire \"{name}\"\n.shared .b8 stage[64];\n.shared .b64 full;\n.shared .b64 free;\n.global .b8 g[64];\n\
         P0 (gpu 0, cta 0, warp 0) {{ {fills}}}\n"
    );
    for i in 1..=consumers {
        let _ = writeln!(text, "P{i} (gpu 0, cta 0, warp {i}) {{ {reads}}}");
    }
    text
}

/// Writes `n` threads that fill one stage together, as those of a `cuda::pipeline` do: each copies a word, arrives when the copy
/// is complete and by itself, waits for all, and reads its word and that of the next.
fn pipeline(n: usize) -> String {
    let mut text = format!(
        "moire \"pipeline({n})\"\n.shared .b8 stage[{}];\n.shared .b64 full;\n.shared .b64 free;\n.global .b8 g[4];\n",
        4 * n
    );
    for i in 0..n {
        let _ = write!(text, "P{i} (gpu 0, cta 0, warp {i}) {{ ");
        if i == 0 {
            let inits = ["full", "free"].map(|b| format!("mbarrier.init.shared::cta.b64 [{b}], {n}; "));
            text += &inits.concat();
        }
        text += "bar.sync 0; ";
        for k in 0..2 {
            text += &until("free", k, (k + 1) % 2);
            let _ = write!(
                text,
                "cp.async.ca.shared::cta.global [stage+{}], [g], 4; \
                 cp.async.mbarrier.arrive.shared::cta.b64 [full]; \
                 mbarrier.arrive.release.cta.shared::cta.b64 _, [full]; {}",
                4 * i,
                until("full", k + 2, k % 2)
            );
            for word in BTreeSet::from([i, (i + 1) % n]) {
                let _ = write!(text, "ld.weak.shared::cta.b32 r, [stage+{}]; ", 4 * word);
            }
            text += "mbarrier.arrive.release.cta.shared::cta.b64 _, [free]; ";
        }
        text += "}\n";
    }
    text
}
