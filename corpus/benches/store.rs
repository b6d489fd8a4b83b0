//! Benchmarks of the store: acknowledged findings per second, opening, rebuilding, reading. `cargo bench -p moire-corpus`.
//!
//! Each commit ends with a sync, so the numbers depend on the disk that holds the temporary directory.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use moire_corpus::{Finding, Hash, Options, Store, Write};
use std::hint::black_box;
use std::path::Path;

const FINDINGS: u64 = 10_000;

fn options() -> Options {
    Options { reserve_bytes: 4096, ..Options::default() }
}

fn finding(n: u64) -> Finding {
    let n = n % FINDINGS;
    Finding {
        id: Hash::of(&n.to_le_bytes()),
        campaign: "bench".into(),
        oracle: "model-pair".into(),
        reduced: format!("program {n}\n").repeat(20),
        original: format!("program {n} as generated\n").repeat(20),
        witness: "rf: 0.1 -> 1.0\n".repeat(10),
        count: n,
        ..Finding::default()
    }
}

fn batch(from: u64, size: u64) -> Vec<Write> {
    (from..from + size).map(|n| Write::Finding(Box::new(finding(n)))).collect()
}

fn filled(dir: &Path) -> Store {
    let (mut store, _) = Store::open(dir, options()).unwrap();
    for from in (0..FINDINGS).step_by(500) {
        store.commit(batch(from, 500)).unwrap();
    }
    store
}

fn acknowledge(c: &mut Criterion) {
    let mut group = c.benchmark_group("acknowledge");
    for size in [1, 8, 64, 512] {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(dir.path(), options()).unwrap();
        let mut next = 0;
        group.throughput(Throughput::Elements(size)).sample_size(20);
        group.bench_function(BenchmarkId::new("findings a commit", size), |b| {
            b.iter(|| {
                store.commit(batch(next, size)).unwrap();
                next += size;
            });
        });
    }
    group.finish();
}

fn open(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    drop(filled(dir.path()));
    let mut group = c.benchmark_group("open 10,000 findings");
    group.sample_size(10);
    group.bench_function("after a clean close", |b| {
        b.iter(|| {
            let (store, recovery) = Store::open(dir.path(), options()).unwrap();
            assert!(!recovery.rebuilt);
            store
        });
    });
    group.bench_function("rebuilding the index", |b| {
        b.iter(|| {
            std::fs::remove_file(dir.path().join("index.clean")).unwrap();
            let (store, recovery) = Store::open(dir.path(), options()).unwrap();
            assert!(recovery.rebuilt);
            store
        });
    });
    group.finish();
}

fn read(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let store = filled(dir.path());
    let mut next = 0;
    c.bench_function("read a finding by id", |b| {
        b.iter(|| {
            next += 7919;
            let id = Hash::of(&(next % FINDINGS).to_le_bytes());
            black_box(store.finding(&id).unwrap().unwrap())
        });
    });
}

criterion_group!(benches, acknowledge, open, read);
criterion_main!(benches);
