//! The pinned stream of source programs.

use moire_generate::source::source_seed;
use moire_generate::{Profile, SOURCE_FINGERPRINT, Stream};
use moire_source::text::print;

/// The hash of the first 200 programs of seed 1. A change of it needs a new [`SOURCE_FINGERPRINT`].
const PINNED: (&str, &str) = ("source-3", "8bffb57d6467005d");

#[test]
fn the_stream_of_source_programs_is_pinned() {
    let mut hasher = blake3::Hasher::new();
    for index in 0..200 {
        hasher.update(print(&source_seed(1, index)).as_bytes());
    }
    let hash = hasher.finalize().to_hex();
    assert_eq!((SOURCE_FINGERPRINT, &hash.as_str()[..16]), PINNED);
}

#[test]
fn every_program_of_the_stream_can_be_run() {
    let stream = Stream::new(3, Profile::Source);
    for index in 0..300 {
        let source = stream.source(index).expect("a source program");
        let program = stream.item(index);
        assert!(program.threads.len() >= source.threads.len(), "{}", print(&source));
        assert_eq!(program.name, source.name);
    }
    assert_eq!(Stream::new(3, Profile::Core).source(0), None);
}
