//! What the products, loads and stores of a protocol have in common and its order does not depend on: the kind of numbers, the
//! collector, the columns of a product, the length of a load and of a store. A protocol stays right whichever are drawn.

use super::Protocol;
use crate::numbers::Choose;

/// The protocol with such choices.
pub(super) fn dressed(mut protocol: Protocol, d: &mut dyn Choose) -> Protocol {
    let kind = d.pick(&["f16", "f16", "tf32", "f8f6f4", "i8"]);
    let collector =
        d.pick(&["", "", ".collector::a::fill", ".collector::a::lastuse", ".collector::a::discard"]);
    let columns = d.pick(&[16, 32]);
    let (loaded, stored) = (d.pick(&[1, 2, 4]), d.pick(&[1, 2]));
    let steps = protocol.roles.iter_mut().flat_map(|role| &mut role.steps);
    for text in steps.map(|step| &mut step.text) {
        if text.starts_with("tcgen05.mma") {
            *text = text.replace("kind::f16", &format!("kind::{kind}{collector}"));
            for (rows, n) in [(128, 16), (128, 32), (256, 16), (256, 32)] {
                *text = text.replace(&format!("idesc({rows}, {n})"), &format!("idesc({rows}, {columns})"));
            }
        }
        if text.starts_with("tcgen05.ld") {
            *text = longer(text, loaded);
        }
        if text.starts_with("tcgen05.st") {
            *text = longer(text, stored);
        }
    }
    protocol
}

/// A move of one register as a move of so many.
fn longer(text: &str, times: usize) -> String {
    let Some((head, rest)) = text.split_once(".x1.b32 ") else { return text.to_owned() };
    let more: String = (1..times).map(|n| format!(", more{n}")).collect();
    format!("{head}.x{times}.b32 {}", rest.replacen('}', &format!("{more}}}"), 1))
}
