//! The elements that kernels move and add up.

use crate::numbers::Choose;

/// What a thread moves at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    /// The type in accesses.
    pub(super) of: &'static str,
    pub(super) bytes: u32,
    /// The class of its registers.
    class: char,
    /// Registers of one.
    count: usize,
}

const fn element(of: &'static str, bytes: u32, class: char, count: usize) -> Element {
    Element { of, bytes, class, count }
}

/// What is moved.
const MOVED: [Element; 8] = [
    element("b32", 4, 'r', 1),
    element("u32", 4, 'r', 1),
    element("f32", 4, 'f', 1),
    element("b64", 8, 'd', 1),
    element("b16", 2, 'h', 1),
    element("v2.b32", 8, 'r', 2),
    element("v4.b32", 16, 'r', 4),
    element("v2.b64", 16, 'd', 2),
];

impl Element {
    /// Draws one to move.
    pub(super) fn moved(d: &mut dyn Choose) -> Element {
        d.pick(&MOVED)
    }

    /// Draws one of 16 bytes, which small copies have.
    pub(super) fn wide(d: &mut dyn Choose) -> Element {
        d.pick(&MOVED[6..])
    }

    /// The operand for the registers of this name.
    pub(super) fn named(self, name: &str) -> String {
        let class = self.class;
        match self.count {
            1 => format!("{class}_{name}"),
            count => {
                let each: Vec<String> = (0..count).map(|n| format!("{class}_{name}{n}")).collect();
                format!("{{{}}}", each.join(", "))
            }
        }
    }
}

/// What is added up: an element of one register, and the instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub(super) element: Element,
    pub(super) instruction: &'static str,
}

impl Sum {
    /// Draws a sum of 32 or 64 bits.
    pub(super) fn draw(d: &mut dyn Choose) -> Sum {
        let (element, instruction) = d.pick(&[
            (element("u32", 4, 'r', 1), "add.u32"),
            (element("s32", 4, 'r', 1), "max.s32"),
            (element("u32", 4, 'r', 1), "min.u32"),
            (element("b32", 4, 'r', 1), "xor.b32"),
            (element("f32", 4, 'f', 1), "add.f32"),
            (element("u64", 8, 'd', 1), "add.u64"),
        ]);
        Sum { element, instruction }
    }
}
