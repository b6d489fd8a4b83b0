//! Items per second, end to end, as `moire fuzz` runs them on one thread: generate, parse, every oracle, canaries.
//!
//! The plan is that of the README's first command. One iteration is a batch of items of the stream, which evens out their
//! sizes. Minimising and verifying claims is the coordinator's task and not part of an item.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use moire_worker::job::{Cancel, Engine, Item, Plan, Source};
use moire_worker::oracle::{Oracles, oracles};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// Items of one iteration.
const BATCH: u64 = 60;

fn item(plan: &Arc<Plan>, index: u64) -> Item {
    let source = Source::Generated { seed: 1, profile: "core".into(), index };
    Item { plan: Arc::clone(plan), index, source }
}

fn items(c: &mut Criterion) {
    let engine = Oracles::new();
    let mut group = c.benchmark_group("items");
    group.throughput(Throughput::Elements(BATCH)).sample_size(10);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
    let mut measure = |name: &str, plan: Plan| {
        let plan = Arc::new(plan);
        group.bench_function(name, |b| {
            b.iter(|| {
                for index in 0..BATCH {
                    black_box(engine.run(&item(&plan, index), &Cancel::new()));
                }
            });
        });
    };
    measure("all", Plan { canaries: true, ..Plan::default() });
    for about in oracles() {
        measure(about.name, Plan { oracles: vec![about.name.to_owned()], ..Plan::default() });
    }
    group.finish();
}

criterion_group!(benches, items);
criterion_main!(benches);
