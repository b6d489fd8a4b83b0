//! What holds of any text given to the reader of models; fuzzers try it, and a test has it of all inputs that are kept.

use moire_cat::{Evaluator, Inputs, Stage, Variants, load as read};

/// Text is loaded or refused with a position; a loaded model can be planned and judges the empty graph.
pub fn load(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match read("fuzz.cat", text, &moire_models::Shipped, &Variants::new()) {
        Ok(model) => {
            let mut evaluator = Evaluator::<1>::new(&model);
            let mut inputs = Inputs::new();
            inputs.n = 3;
            evaluator.prepare(&inputs);
            evaluator.solve(&mut inputs, Stage::Leaf);
        }
        Err(error) => assert!(error.line >= 1 && error.column >= 1, "{error}"),
    }
}
