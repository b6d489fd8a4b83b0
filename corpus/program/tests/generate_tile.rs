//! Random Tile IR kernels: valid, readable, explorable, the same for ever; and what becomes of them when they are made
//! smaller.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use moire_program::generate::tile_seed;
use moire_program::text::tile::{parse, print};
use moire_program::tile::verify;
use moire_program::tile_run::{lower, tile_entry};
use std::collections::BTreeMap;

#[test]
fn kernels_are_valid_and_read_back_and_can_be_explored() {
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let total = 2_000;
    for index in 0..total {
        let draw = tile_seed(7, index);
        let text = print(&draw.module);
        assert_eq!(verify(&draw.module), [], "{index}\n{text}");
        let again = parse(&text).unwrap_or_else(|e| panic!("{index}: {e}\n{text}"));
        assert_eq!(again, draw.module, "{text}");
        if let Err(why) = lower(tile_entry(&draw.module, None).unwrap(), &draw.launch) {
            *refusals.entry(why.to_string()).or_default() += 1;
        }
        assert_eq!(tile_seed(7, index), draw);
    }
    println!("{refusals:#?}");
    assert!(refusals.values().sum::<usize>() * 50 <= total as usize, "{refusals:#?}");
}
