//! Programs per second: drawn from the stream, and made canonical.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use moire_generate::{Profile, Stream};
use moire_program::canon::canonical;

/// Programs per iteration: enough to average over their sizes.
const BATCH: u64 = 100;

fn generate(c: &mut Criterion) {
    let mut group = c.benchmark_group("generate");
    group.throughput(Throughput::Elements(BATCH));
    for profile in Profile::ALL {
        let stream = Stream::new(1, profile);
        group.bench_function(profile.name(), |b| {
            b.iter(|| (0..BATCH).map(|i| stream.item(i)).collect::<Vec<_>>())
        });
    }
    let programs: Vec<_> = (0..BATCH).map(|i| Stream::new(1, Profile::Core).item(i)).collect();
    group.bench_function("canonical", |b| {
        b.iter(|| programs.iter().map(|p| canonical(p).id).collect::<Vec<_>>())
    });
    group.finish();
}

criterion_group!(benches, generate);
criterion_main!(benches);
