//! Litmus shapes and random skeletons: the reads and writes of each block, in order.

use super::Dice;

/// A read or a write of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) write: bool,
    pub(super) place: usize,
}

/// Blocks separated by `|`, events by blanks: `W` or `R` and the number of the place.
const SHAPES: &[&str] = &[
    // MP, SB, LB, S, R, 2+2W
    "W0 W1|R1 R0",
    "W0 W1|R1 R0",
    "W0 R1|W1 R0",
    "R0 W1|R1 W0",
    "W0 W1|R1 W0",
    "W0 W1|W1 R0",
    "W0 W1|W1 W0",
    // CoRR, CoRW, CoWR; MP and LB on one place
    "W0|R0 R0",
    "R0 W0|W0",
    "W0 R0|W0",
    "W0 W0|R0 R0",
    "R0 W0|R0 W0",
    // WRC, ISA2, RWC, WWC, WRW+WR, 3.SB, 3.LB
    "W0|R0 W1|R1 R0",
    "W0 W1|R1 W2|R2 R0",
    "W0|R0 R1|W1 R0",
    "W0|R0 W1|R1 W0",
    "W0|R0 W1|W1 R0",
    "W0 R1|W1 R2|W2 R0",
    "R0 W1|R1 W2|R2 W0",
    // Z6.0 to Z6.5, 3.2W
    "W0 W1|R1 W2|W2 R0",
    "W0 W1|W1 W2|R2 W0",
    "W0 W1|R1 W2|R2 W0",
    "W0 W1|W1 W2|R2 R0",
    "W0 W1|W1 R2|W2 R0",
    "W0 W1|R1 R2|W2 W0",
    "W0 W1|W1 W2|W2 W0",
];

fn read(shape: &str) -> Vec<Vec<Event>> {
    let event = |word: &str| Event {
        write: word.starts_with('W'),
        place: word.get(1..).and_then(|n| n.parse().ok()).unwrap_or(0),
    };
    shape.split('|').map(|block| block.split(' ').map(event).collect()).collect()
}

/// A litmus shape.
pub(super) fn shape(dice: &mut Dice<'_, '_>) -> Vec<Vec<Event>> {
    read(dice.of(SHAPES))
}

/// Two blocks of one to four events each, or three of one to three, over at most three places.
pub(super) fn free(dice: &mut Dice<'_, '_>) -> Vec<Vec<Event>> {
    let blocks = dice.of(&[2, 2, 2, 3]);
    let places = dice.of(&[1, 2, 2, 3]);
    let each = if blocks == 3 { [1, 1, 2, 2, 3] } else { [1, 2, 2, 3, 4] };
    (0..blocks).map(|_| (0..dice.of(&each)).map(|_| event(dice, places)).collect()).collect()
}

/// Events that all blocks perform.
pub(super) fn uniform(dice: &mut Dice<'_, '_>) -> Vec<Event> {
    let places = dice.of(&[1, 1, 2]);
    (0..dice.of(&[2, 2, 3, 4])).map(|_| event(dice, places)).collect()
}

fn event(dice: &mut Dice<'_, '_>, places: u32) -> Event {
    Event { write: dice.percent(50), place: dice.below(places) as usize }
}
