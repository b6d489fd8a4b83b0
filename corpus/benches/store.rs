//! Benchmarks of the store.
fn main() {}
