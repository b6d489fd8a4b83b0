//! Tests that the checked-in bindings and descriptors are those of the .proto files. `BLESS=1` rewrites them.

use prost::Message;
use std::{fs, path::Path};

#[test]
fn bindings_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut set = protox::compile(["moire/v1/worker.proto", "moire/v1/control.proto"], [root]).unwrap();
    let fresh = tempfile::tempdir().unwrap();
    tonic_prost_build::configure().out_dir(fresh.path()).btree_map(".").compile_fds(set.clone()).unwrap();
    let text = fs::read_to_string(fresh.path().join("moire.v1.rs")).unwrap();
    let checked_in = root.join("src/gen/moire.v1.rs");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&checked_in, &text).unwrap();
    }
    assert!(fs::read_to_string(checked_in).unwrap() == text, "stale bindings: run with BLESS=1");
    set.file.iter_mut().for_each(|file| file.source_code_info = None);
    let descriptors = root.join("src/gen/moire.v1.bin");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&descriptors, set.encode_to_vec()).unwrap();
    }
    assert!(fs::read(descriptors).unwrap() == set.encode_to_vec(), "stale descriptors: run with BLESS=1");
}

#[test]
fn every_field_has_a_comment() {
    for name in ["worker", "control"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("moire/v1/{name}.proto"));
        let text = fs::read_to_string(path).unwrap();
        let mut before = "";
        for (number, line) in text.lines().map(str::trim).enumerate() {
            let says_something =
                line.contains(" = ") || line.starts_with("message ") || line.starts_with("rpc ");
            if says_something && !line.starts_with("//") {
                assert!(before.starts_with("//"), "{name}.proto:{}: no comment", number + 1);
            }
            before = line;
        }
    }
}
