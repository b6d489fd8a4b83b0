//! Which programs of a stream are compiled together.
//!
//! Some neighbours in a stream have one setting of the compiler, and the next ones the next: settings take turns. A batch holds
//! programs of one turn. A small one holds neighbours, as a lease does. A large one reaches over some rounds, because a start of a
//! compiler costs as much as dozens of programs; it pays only where the same process is asked about nearly all of it. So it
//! follows a stretch of which that was so. Answers do not depend on it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Neighbours with one setting, and the programs of a small batch.
pub(super) const SIZE: usize = 64;
/// The programs of a large batch, which is a stretch.
pub(super) const LARGE: usize = 4 * SIZE;
const EACH: u64 = SIZE as u64;
/// Small batches of a stretch.
const SMALL: u64 = LARGE as u64 / EACH;

/// Small batches of a stretch that a process has to be asked about, so that it compiles the next one as a whole.
const NEARLY_ALL: u32 = 3;
/// Most stretches that are remembered.
const MAX_KEPT: usize = 64;

/// One of the settings that take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// Its number.
    own: u64,
    /// How many there are.
    all: u64,
}

impl Turn {
    /// The turn of a program, where so many settings take turns.
    pub(super) fn of(index: u64, all: u64) -> Turn {
        Turn { own: index / EACH % all, all }
    }

    /// The number of the setting.
    pub(super) fn own(self) -> u64 {
        self.own
    }

    /// The place of a program of this turn among those of its turn.
    pub(super) fn place(self, index: u64) -> u64 {
        index / EACH / self.all * EACH + index % EACH
    }

    /// The index of the program at a place.
    pub(super) fn index(self, place: u64) -> u64 {
        let batch = (place / EACH).saturating_mul(self.all).saturating_add(self.own);
        batch.saturating_mul(EACH).saturating_add(place % EACH)
    }
}

/// A stretch of a stream: its seed, its turn and its number.
type Stretch = (u64, Turn, u64);

/// Of the latest stretches, the small batches that were asked about, a bit each, and whether they are one large batch.
#[derive(Debug, Default)]
pub(super) struct Stretches(Mutex<VecDeque<(Stretch, u8, bool)>>);

impl Stretches {
    /// The size of the batch of the program at a place, about which somebody asks now.
    pub(super) fn size(&self, seed: u64, turn: Turn, place: u64) -> usize {
        let (number, bit) = (place / EACH / SMALL, 1 << (place / EACH % SMALL));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = |number: u64| (seed, turn, number);
        let before = number.checked_sub(1).and_then(|n| all.iter().find(|s| s.0 == at(n)));
        let large = turn.all > 1 && before.is_some_and(|s| s.1.count_ones() >= NEARLY_ALL);
        let known = all.iter().position(|s| s.0 == at(number));
        let known = known.unwrap_or_else(|| {
            if all.len() >= MAX_KEPT {
                all.pop_front();
            }
            all.push_back((at(number), 0, large));
            all.len() - 1
        });
        all[known].1 |= bit;
        if all[known].2 { LARGE } else { SIZE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_that_of_one_program_of_its_turn() {
        for all in 1..4 {
            for index in (0..2000).chain([u64::MAX / 2, u64::MAX - 1000]) {
                let turn = Turn::of(index, all);
                let place = turn.place(index);
                assert_eq!((turn.index(place), turn.own()), (index, index / EACH % all));
                let own = |place: u64| Turn::of(turn.index(place), all) == turn;
                assert!(own(place - place % EACH) && own(place | (EACH - 1)), "{index} of {all}");
            }
        }
    }

    #[test]
    fn a_batch_is_large_where_one_process_is_asked_about_all() {
        let turn = |index| Turn::of(index, 2);
        let sizes = |step: usize, all: u64| -> Vec<usize> {
            let stretches = Stretches::default();
            let each = (0..4096).step_by(step * SIZE);
            each.map(|i| stretches.size(7, Turn::of(i, all), Turn::of(i, all).place(i))).collect()
        };
        let alone = sizes(1, 2);
        assert!(alone[..8].iter().all(|size| *size == SIZE) && alone[8..].iter().all(|size| *size == LARGE));
        assert!(sizes(3, 2).iter().chain(&sizes(1, 1)).all(|size| *size == SIZE));
        // A question that is asked again has the same answer.
        let stretches = Stretches::default();
        let asked = |i: u64| stretches.size(7, turn(i), turn(i).place(i));
        let first: Vec<usize> = (0..1024).map(asked).collect();
        assert_eq!(first, (0..1024).map(asked).collect::<Vec<_>>());
    }
}
