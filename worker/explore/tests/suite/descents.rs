//! Random descents: every execution can be reached, the path of an execution leads to it again, and the estimate of the
//! number of executions is unbiased, which is shown exactly by enumerating all sequences of draws.

use moire_cat::{Model, Variants};
use moire_execution::leaf::LeafKey;
use moire_explore::judge::{About, Questions, Verdict, judge_some};
use moire_explore::search::{Descents, LeafView, Sample, descend};
use moire_explore::{Bound, Limits, explore};
use moire_generate::families::named;
use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

fn model() -> Model {
    moire_models::load("ptx", &Variants::new()).expect("loads")
}

fn family(name: &str, size: usize) -> (Program, u64) {
    let family = named(name).unwrap_or_else(|| panic!("no family {name}"));
    (parse(&family.text(size), Format::Native).expect("reads"), family.executions(size))
}

/// A small random number generator, for tests.
fn numbers(seed: u64) -> impl Fn(u64) -> u64 {
    let state = Cell::new(seed);
    move |n| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) % n
    }
}

fn made(program: &Program, count: u64, below: &dyn Fn(u64) -> u64) -> (Sample, BTreeSet<LeafKey>) {
    let mut keys = BTreeSet::new();
    let visitor = &mut |leaf: &mut dyn LeafView| {
        keys.insert(leaf.facts().key);
        ControlFlow::Continue(())
    };
    let sample = descend(program, &model(), Descents { count, below }, &Limits::default(), visitor);
    (sample.expect("supported"), keys)
}

/// All sequences of draws of one descent, one after the other.
#[derive(Default)]
struct Odometer {
    /// Each number drawn, and the number it had to be below.
    digits: RefCell<Vec<(u64, u64)>>,
    at: Cell<usize>,
}

impl Odometer {
    fn below(&self, n: u64) -> u64 {
        let mut digits = self.digits.borrow_mut();
        let at = self.at.replace(self.at.get() + 1);
        if at == digits.len() {
            digits.push((0, n));
        }
        assert_eq!(digits[at].1, n, "equal draws lead to equal decisions");
        digits[at].0
    }

    /// Computes the probability of the sequence.
    fn chance(&self) -> f64 {
        self.digits.borrow().iter().map(|(_, n)| 1.0 / *n as f64).product()
    }

    /// Moves to the next sequence, if there is one.
    fn next(&self) -> bool {
        self.at.set(0);
        let mut digits = self.digits.borrow_mut();
        while let Some((digit, n)) = digits.pop() {
            if digit + 1 < n {
                digits.push((digit + 1, n));
                return true;
            }
        }
        false
    }
}

#[test]
fn the_expected_estimate_of_one_descent_is_the_number_of_executions() {
    for (name, size) in [
        ("sb", 2),
        ("lb", 2),
        ("nw1r", 2),
        ("readers", 2),
        ("ainc", 2),
        ("lastzero", 1),
        ("casrot", 2),
        ("mp", 1),
    ] {
        let (program, executions) = family(name, size);
        let (draws, mut expected, mut chances, mut seen) = (Odometer::default(), 0.0, 0.0, BTreeSet::new());
        loop {
            let (sample, keys) = made(&program, 1, &|n| draws.below(n));
            expected += draws.chance() * sample.executions.mean;
            chances += draws.chance();
            seen.extend(keys);
            if !draws.next() {
                break;
            }
        }
        assert!(
            (chances - 1.0).abs() < 1e-9,
            "{name}({size}): the probabilities of all draws add up to {chances}"
        );
        let wrong = (expected - executions as f64).abs();
        assert!(
            wrong < 1e-6 * executions as f64,
            "{name}({size}): estimated {expected}, but there are {executions}"
        );
        assert_eq!(seen.len() as u64, executions, "{name}({size}): not every execution can be reached");
    }
}

#[test]
fn many_descents_estimate_well_and_soon_show_all_communications() {
    for (name, size) in [("sb", 8), ("nw1r", 5), ("readers", 8), ("mp", 8), ("seqlock", 2)] {
        let (program, executions) = family(name, size);
        let (sample, keys) = made(&program, 2_000, &numbers(7));
        assert_eq!(sample.different, keys.len() as u64, "{name}({size})");
        assert_eq!(sample.summary.bounded, Some(Bound::Descents), "{name}({size})");
        let off = (sample.executions.mean - executions as f64).abs();
        assert!(off <= 5.0 * sample.executions.error + 1e-6, "{name}({size}): {executions}, {sample:?}");
    }
    // Each of sixteen threads has a read with two possible sources: 32 communications, all seen soon.
    let (program, _) = family("sb", 16);
    let (sample, _) = made(&program, 40, &numbers(1));
    assert_eq!((sample.lost, sample.communications), (0, 32), "{sample:?}");
}

#[test]
fn a_path_leads_to_its_execution_again() {
    let (program, _) = family("ainc", 4);
    let mut shown = Vec::new();
    let visitor = &mut |leaf: &mut dyn LeafView| {
        shown.push((leaf.path().to_vec(), leaf.facts()));
        ControlFlow::Continue(())
    };
    let below = numbers(3);
    let descents = Descents { count: 20, below: &below };
    descend(&program, &model(), descents, &Limits::default(), visitor).expect("supported");
    assert!(shown.len() > 5);
    for (path, facts) in shown {
        let mut again = Vec::new();
        explore(&program, &model(), &path, &Limits::default(), &mut |leaf: &mut dyn LeafView| {
            again.push(leaf.facts());
            ControlFlow::Continue(())
        })
        .expect("supported");
        assert_eq!(again, [facts]);
    }
}

#[test]
fn an_outcome_that_no_descent_saw_is_not_called_unreachable() {
    let program = |condition: &str| {
        let text = format!(
            "moire \"sb\"\n.global .b32 x;\n.global .b32 y;\n\
             P0 (gpu 0, cta 0) {{ st.relaxed.gpu.u32 [x], 1; ld.relaxed.gpu.u32 r0, [y]; }}\n\
             P1 (gpu 0, cta 1) {{ st.relaxed.gpu.u32 [y], 1; ld.relaxed.gpu.u32 r0, [x]; }}\n{condition}\n"
        );
        parse(&text, Format::Native).unwrap_or_else(|e| panic!("{e}\n{text}"))
    };
    let questions = Questions { witnesses: true, about: About::All };
    let asked = |condition: &str| {
        let below = numbers(5);
        let descents = Descents { count: 30, below: &below };
        judge_some(&program(condition), &model(), descents, &Limits::default(), questions).0
    };
    let bounded = Verdict::Bounded(Bound::Descents.to_string());
    // All four outcomes are seen soon, and there is no fifth.
    let never = asked("exists (P0:r0 == 2)");
    assert_eq!(never.verdicts, std::slice::from_ref(&bounded));
    let seen = asked("~exists (P0:r0 == 0 /\\ P1:r0 == 0)");
    assert_eq!(seen.verdicts, [Verdict::Condition(String::new()), bounded]);
    assert!(seen.conditions[0].witness.is_some());
}
