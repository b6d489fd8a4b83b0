//! Executions per second of the explorer, family by family, under the model `ptx`.
//!
//! One iteration explores a whole program; the throughput counts its executions. `moire bench families` measures the
//! same at the sizes at which published tools are compared, and also counts checks and dead ends.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use moire_cat::Variants;
use moire_explore::search::LeafView;
use moire_explore::{Limits, explore};
use moire_generate::families::FAMILIES;
use moire_program::text::{Format, parse};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Duration;

fn families(c: &mut Criterion) {
    let model = moire_models::load("ptx", &Variants::new()).expect("a shipped model loads");
    let mut group = c.benchmark_group("families");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for family in FAMILIES {
        let n = family.bench;
        let program = parse(&family.text(n), Format::Native).expect("a family parses");
        let run = || {
            let mut visitor = |_: &mut dyn LeafView| ControlFlow::Continue(());
            explore(&program, &model, &[], &Limits::default(), &mut visitor).expect("families are supported")
        };
        assert_eq!(run().complete, family.executions(n), "{}({n})", family.name);
        group.throughput(Throughput::Elements(family.executions(n)));
        group.bench_function(BenchmarkId::new(family.name, n), |b| b.iter(|| black_box(run())));
    }
    group.finish();
}

criterion_group!(benches, families);
criterion_main!(benches);
