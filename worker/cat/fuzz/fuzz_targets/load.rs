//! Any text is loaded or refused with a position; a loaded one can be planned and judges the empty graph.
#![no_main]

use libfuzzer_sys::fuzz_target;
use moire_cat::{Evaluator, Inputs, Stage, Variants, builtin, load};

fuzz_target!(|text: &str| {
    match load("fuzz.cat", text, &builtin::Shipped, &Variants::new()) {
        Ok(model) => {
            let mut evaluator = Evaluator::<1>::new(&model);
            let mut inputs = Inputs::new();
            inputs.n = 3;
            evaluator.prepare(&inputs);
            evaluator.solve(&mut inputs, Stage::Leaf);
        }
        Err(error) => assert!(error.line >= 1 && error.column >= 1),
    }
});
