//! Obligations, the existential fence order, per-byte relations, and what each shipped axiom is there for.

use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Evaluator, Inputs, Model, Solution, Stage, Variants, bits, load};

/// A litmus test in a few words: `thread kind location`, in program order.
struct Graph {
    inputs: Inputs<1>,
    threads: Vec<usize>,
}

/// `W` `R` weak, `Wx` `Rx` relaxed.gpu, `Wl` release.gpu, `Ra` acquire.gpu, `F` fence.sc.gpu, `A` fence.proxy.alias.
/// Location `x`, `y`; `X` is another address of `x`. Every thread is in its own CTA. Initial writes come last.
fn graph(text: &str) -> Graph {
    let events: Vec<Vec<&str>> = text.split(',').map(|e| e.split_whitespace().collect()).collect();
    let mut g = Inputs::<1>::new();
    let n = events.len();
    let memory = |e: usize| {
        if e >= n {
            ["x", "y"][e - n].to_owned()
        } else {
            events[e].get(2).map_or(String::new(), |l| l.to_lowercase())
        }
    };
    g.n = n + 2;
    g.cells.writers = vec![bits::empty(); 2];
    #[expect(clippy::needless_range_loop, reason = "initial writes are past the end of the text's events")]
    for e in 0..g.n {
        let kind = if e >= n { "I" } else { events[e][1] };
        let names: &[usize] = match kind {
            "W" => &[sets::M, sets::W, sets::WEAK, sets::GEN],
            "R" => &[sets::M, sets::R, sets::WEAK, sets::GEN],
            "Wx" => &[sets::M, sets::W, sets::RLX, sets::GEN],
            "Rx" => &[sets::M, sets::R, sets::RLX, sets::GEN],
            "Wl" => &[sets::M, sets::W, sets::REL, sets::GEN],
            "Ra" => &[sets::M, sets::R, sets::ACQ, sets::GEN],
            "F" => &[sets::F, sets::MF, sets::SC, sets::ACQ_REL, sets::GEN],
            "A" => &[sets::F, sets::PF, sets::ALIAS],
            _ => &[sets::M, sets::W, sets::IW],
        };
        for s in names.iter().chain(&[sets::ANY]) {
            bits::set(&mut g.sets[*s], e);
        }
        if bits::has(&g.sets[sets::W], e) {
            bits::set(&mut g.cells.writers[usize::from(memory(e) == "y")], e);
        }
    }
    let strong = |e: usize| e < n && !matches!(events[e][1], "W" | "R" | "A");
    for a in 0..g.n {
        for b in 0..g.n {
            let mut put = |r: usize| bits::set(&mut g.rels[r][a], b);
            let placed = a < n && b < n;
            let both = !memory(a).is_empty() && !memory(b).is_empty();
            if both && memory(a) == memory(b) {
                [rels::LOC, rels::SAME_RANGE].into_iter().for_each(&mut put);
                if placed && events[a][2] == events[b][2] {
                    [rels::VLOC, rels::COMPLETE].into_iter().for_each(&mut put);
                }
            }
            if placed && events[a][0] == events[b][0] {
                [rels::INT, rels::SCTA, rels::SCTA_HOME].into_iter().for_each(&mut put);
                if a < b {
                    put(rels::PO);
                    if both && events[a][2] == events[b][2] {
                        put(rels::PO_LOC);
                    }
                }
            }
            if strong(a) && strong(b) {
                [rels::SR, rels::SR_HOME].into_iter().for_each(&mut put);
            }
        }
    }
    for (location, writers) in g.cells.writers.iter().enumerate() {
        for w in bits::iter(writers).filter(|w| *w < n) {
            bits::set(&mut g.rels[rels::CO][n + location], w);
        }
    }
    Graph { inputs: g, threads: events.iter().map(|e| e[0].parse().expect("a thread")).collect() }
}

impl Graph {
    /// Reads in the text's order read from these events; `x` and `y` are the initial writes.
    fn reads(mut self, sources: &[&str]) -> Self {
        let n = self.threads.len();
        let reads: Vec<usize> = bits::iter(&self.inputs.sets[sets::R]).collect();
        assert_eq!(reads.len(), sources.len(), "one source a read");
        for (read, source) in reads.into_iter().zip(sources) {
            let source = match *source {
                "x" => n,
                "y" => n + 1,
                event => event.parse().expect("an event"),
            };
            let cell = usize::from(bits::has(&self.inputs.cells.writers[1], source));
            bits::set(&mut self.inputs.rels[rels::RF][source], read);
            let small = |i: usize| u16::try_from(i).expect("small");
            self.inputs.cells.reads.push((small(read), small(cell), small(source)));
        }
        self
    }
}

fn model(name: &str, variant: &str) -> Model {
    let variants = variant.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())).into_iter().collect();
    moire_models::load(name, &variants).expect("loads")
}

/// `ok`, `open`, or the check that forbids.
fn verdict(model: &Model, mut graph: Graph) -> String {
    let mut evaluator = Evaluator::<1>::new(model);
    evaluator.prepare(&graph.inputs);
    let visited = {
        let mut count = 0;
        evaluator.completions(&graph.inputs, &mut |_| count += 1);
        count
    };
    match evaluator.solve(&mut graph.inputs, Stage::Leaf) {
        Solution::Violated(check) => {
            assert_eq!(visited, 0);
            model.checks()[check.0].name.clone()
        }
        Solution::Open { .. } => "open".into(),
        Solution::Consistent { flags } => {
            assert!(visited > 0);
            let names: Vec<&str> = flags.iter().map(|f| model.checks()[f.0].name.as_str()).collect();
            format!("ok {}", names.join(" ")).trim_end().to_owned()
        }
    }
}

#[test]
fn message_passing() {
    let stale = || graph("0 W x, 0 Wl y, 1 Ra y, 1 R x").reads(&["1", "x"]);
    for name in ["ptx-6.0", "ptx-7.5", "ptx"] {
        assert_eq!(verdict(&model(name, ""), stale()), "CausalityFR", "{name}");
        let weak = graph("0 W x, 0 Wx y, 1 Rx y, 1 R x").reads(&["1", "x"]);
        assert_eq!(verdict(&model(name, ""), weak), "ok uniform-race", "{name}");
        let fresh = graph("0 W x, 0 Wl y, 1 Ra y, 1 R x").reads(&["1", "0"]);
        assert_eq!(verdict(&model(name, ""), fresh), "ok", "{name}");
    }
    assert_eq!(verdict(&model("any", ""), stale()), "ok");
}

#[test]
fn some_fence_order_is_enough_and_sometimes_none_is() {
    let sb = |sources: &[&str]| graph("0 Wx x, 0 F, 0 Rx y, 1 Wx y, 1 F, 1 Rx x").reads(sources);
    for name in ["ptx-6.0", "ptx-7.5", "ptx"] {
        assert_eq!(verdict(&model(name, ""), sb(&["y", "0"])), "ok", "{name}");
        assert_eq!(verdict(&model(name, ""), sb(&["y", "x"])), "CausalityFR", "{name}");
    }
}

#[test]
fn each_fence_order_may_lead_to_its_own_coherence() {
    // Two weak writes of x, ordered only through the order of the fences.
    let g = graph("0 W x, 0 F, 0 W x, 1 W x, 1 F, 1 W x");
    let model = model("ptx", "");
    let mut evaluator = Evaluator::<1>::new(&model);
    evaluator.prepare(&g.inputs);
    let mut found = Vec::new();
    let all = evaluator.completions(&g.inputs, &mut |c| found.push((c.coherence.to_vec(), c.flags.len())));
    assert_eq!(found.len(), 2);
    assert_ne!(found[0].0, found[1].0);
    assert!(found.iter().all(|f| f.1 == 1), "the middle writes race");
    assert!(!all.bounded);
}

#[test]
fn demanded_pairs_are_offered_until_they_are_ordered() {
    let model = model("ptx", "");
    let mut g = graph("0 Wx x, 1 Wx x");
    let mut evaluator = Evaluator::<1>::new(&model);
    evaluator.prepare(&g.inputs);
    assert_eq!(evaluator.solve(&mut g.inputs, Stage::Partial), Solution::Open { a: 0, b: 1 });
    bits::set(&mut g.inputs.rels[rels::CO][1], 0);
    assert_eq!(evaluator.solve(&mut g.inputs, Stage::Partial), Solution::Consistent { flags: vec![] });
    bits::set(&mut g.inputs.rels[rels::CO][0], 1);
    assert!(matches!(evaluator.solve(&mut g.inputs, Stage::Partial), Solution::Violated(_)));
    assert_eq!(verdict(&model, graph("0 W x, 1 W x")), "ok uniform-race");
    assert_eq!(verdict(&model, graph("0 Wx x, 0 Wx x")), "ok");
}

#[test]
fn aliases_need_their_fence_and_q1_moves_the_race() {
    let plain = || graph("0 Wx x, 0 F, 0 Rx X").reads(&["x"]);
    assert_eq!(verdict(&model("ptx", ""), plain()), "ok uniform-race");
    assert_eq!(verdict(&model("ptx", "Q1=B"), plain()), "ok");
    let fenced = graph("0 Wx x, 0 A, 0 Rx X").reads(&["x"]);
    assert_eq!(verdict(&model("ptx", ""), fenced), "CausalityFR");
}

#[test]
fn a_read_may_not_see_half_of_a_strong_write() {
    // One 8-byte location of two cells; the read takes one from event 0 and one from the initial write.
    let mut g = graph("0 Wx x, 1 Rx x").reads(&["0"]);
    g.inputs.cells.writers[1] = g.inputs.cells.writers[0];
    g.inputs.cells.reads.push((1, 1, 2));
    bits::set(&mut g.inputs.rels[rels::RF][2], 1);
    let weak = |mut g: Graph| {
        for relation in [rels::SR, rels::SR_HOME] {
            g.inputs.rels[relation].iter_mut().for_each(|r| *r = bits::empty());
        }
        g
    };
    assert_eq!(verdict(&model("ptx", ""), g), "Atomicity-1");
    let mut g = graph("0 Wx x, 1 Rx x").reads(&["0"]);
    g.inputs.cells.writers[1] = g.inputs.cells.writers[0];
    g.inputs.cells.reads.push((1, 1, 2));
    assert_eq!(verdict(&model("ptx", ""), weak(g)), "ok uniform-race");
}

#[test]
fn forced_fence_pairs_outside_the_scope_are_refused_only_without_the_restriction() {
    let text = |restrict: &str| {
        format!(
            "let cause = (po | rf)+\nempty (([F & SC]; cause; [F & SC]) {restrict}) \\ sync_fence as FenceSC"
        )
    };
    let chain = || {
        let mut g = graph("0 F, 0 Wx x, 1 Rx x, 1 F").reads(&["1"]);
        for (a, b) in [(0, 3), (3, 0)] {
            bits::put(&mut g.inputs.rels[rels::SR][a], b, false);
        }
        g
    };
    let loaded = |t: &str| load("m.cat", t, &moire_models::Shipped, &Variants::new()).expect("loads");
    assert_eq!(verdict(&loaded(&text("")), chain()), "FenceSC");
    assert_eq!(verdict(&loaded(&text("& sr")), chain()), "ok");
}

#[test]
fn sequential_consistency() {
    let sb = graph("0 Wx x, 0 Rx y, 1 Wx y, 1 Rx x").reads(&["y", "x"]);
    assert_eq!(verdict(&model("sc", ""), sb), "SC");
    let sb = graph("0 Wx x, 0 Rx y, 1 Wx y, 1 Rx x").reads(&["y", "x"]);
    assert_eq!(verdict(&model("ptx", ""), sb), "ok");
}
