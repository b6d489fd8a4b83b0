//! Consistency checks per second by number of events, as an explorer makes them: one universe, many solves.
//!
//! The graph is a ring of message-passing threads (write data, release, acquire, read data), fully read.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use moire_cat::vocabulary::{rels, sets};
use moire_cat::{Evaluator, Inputs, Solution, Stage, Variants, bits};
use std::hint::black_box;

/// Threads of four events: `W d_i; W.rel f_i; R.acq f_(i-1); R d_(i-1)`, and one initial write a location.
fn ring<const W: usize>(events: usize) -> Inputs<W> {
    let threads = (events / 6).max(1);
    let mut g = Inputs::<W>::new();
    g.n = 6 * threads;
    let init = 4 * threads;
    let relate = |g: &mut Inputs<W>, r: usize, a: usize, b: usize| bits::set(&mut g.rels[r][a], b);
    let location = |e: usize| {
        let (thread, k) = (e / 4, e % 4);
        let back = (thread + threads - 1) % threads;
        [2 * thread, 2 * thread + 1, 2 * back + 1, 2 * back][k]
    };
    for e in 0..g.n {
        let place = if e < init { location(e) } else { e - init };
        let kinds: &[usize] = match (e < init, e % 4) {
            (false, _) => &[sets::W, sets::IW],
            (_, 0) => &[sets::W, sets::WEAK, sets::GEN],
            (_, 1) => &[sets::W, sets::REL, sets::GEN, sets::GPU],
            (_, 2) => &[sets::R, sets::ACQ, sets::GEN, sets::GPU],
            _ => &[sets::R, sets::WEAK, sets::GEN],
        };
        for s in kinds.iter().chain(&[sets::ANY, sets::M]) {
            bits::set(&mut g.sets[*s], e);
        }
        for f in 0..g.n {
            let (both, same) = (e < init && f < init, e / 4 == f / 4);
            if (if f < init { location(f) } else { f - init }) == place {
                relate(&mut g, rels::LOC, e, f);
                relate(&mut g, rels::SAME_RANGE, e, f);
                if both {
                    relate(&mut g, rels::VLOC, e, f);
                    relate(&mut g, rels::COMPLETE, e, f);
                }
            }
            if both {
                relate(&mut g, if same { rels::INT } else { rels::EXT }, e, f);
                if same {
                    relate(&mut g, rels::SCTA, e, f);
                    if e < f {
                        relate(&mut g, rels::PO, e, f);
                    }
                }
                if matches!(e % 4, 1 | 2) && matches!(f % 4, 1 | 2) {
                    relate(&mut g, rels::SR, e, f);
                }
            }
        }
    }
    g.cells.writers = vec![bits::empty(); 2 * threads];
    for l in 0..2 * threads {
        let writer = 4 * (l / 2) + l % 2;
        bits::set(&mut g.cells.writers[l], writer);
        bits::set(&mut g.cells.writers[l], init + l);
        relate(&mut g, rels::CO, init + l, writer);
    }
    for thread in 0..threads {
        for read in [4 * thread + 2, 4 * thread + 3] {
            let l = location(read);
            let source = 4 * (l / 2) + l % 2;
            relate(&mut g, rels::RF, source, read);
            let small = |i: usize| u16::try_from(i).unwrap_or(u16::MAX);
            g.cells.reads.push((small(read), small(l), small(source)));
        }
    }
    g
}

fn measure<const W: usize>(c: &mut Criterion, model: &str, events: usize) {
    let loaded = moire_models::load(model, &Variants::new()).expect("a shipped model loads");
    let mut evaluator = Evaluator::<W>::new(&loaded);
    let mut graph = ring::<W>(events);
    let n = graph.n;
    let mut group = c.benchmark_group(model);
    group.throughput(Throughput::Elements(1)).sample_size(20);
    group.warm_up_time(std::time::Duration::from_millis(200));
    group.measurement_time(std::time::Duration::from_millis(600));
    evaluator.prepare(&graph);
    let answer = evaluator.solve(&mut graph, Stage::Leaf);
    assert!(matches!(answer, Solution::Consistent { .. }), "{model} {n}: {answer:?}");
    // A check as an explorer makes it: one read more than what is loaded, and back again.
    let last = graph.cells.reads.pop().expect("every thread reads");
    let (read, source) = (last.0 as usize, last.2 as usize);
    bits::clear(&mut graph.rels[rels::RF][source], read);
    evaluator.partial(&graph);
    let mark = evaluator.mark();
    group.bench_function(BenchmarkId::new("step", n), |b| {
        b.iter(|| {
            bits::set(&mut graph.rels[rels::RF][source], read);
            graph.cells.reads.push(last);
            black_box(evaluator.partial(&graph));
            evaluator.back(&mark);
            graph.cells.reads.pop();
            bits::clear(&mut graph.rels[rels::RF][source], read);
        });
    });
    graph.cells.reads.push(last);
    bits::set(&mut graph.rels[rels::RF][source], read);
    group.bench_function(BenchmarkId::new("leaf", n), |b| {
        b.iter(|| black_box(evaluator.solve(&mut graph, Stage::Leaf)));
    });
    group.bench_function(BenchmarkId::new("prepare", n), |b| b.iter(|| evaluator.prepare(black_box(&graph))));
    group.finish();
}

fn consistency(c: &mut Criterion) {
    for model in ["sc", "ptx-6.0", "ptx-7.5", "ptx"] {
        for events in [12, 18, 36, 60] {
            measure::<1>(c, model, events);
        }
        measure::<2>(c, model, 120);
    }
}

criterion_group!(benches, consistency);
criterion_main!(benches);
