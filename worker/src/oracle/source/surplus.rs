//! What a compiler emits for an operation beyond what the operation needs.
//!
//! Contract: something is surplus if two judges say so. Without it the sequence is still at least the published mapping
//! (`moire_source::mapping`), by the rules below, and each program that tells whether the operation is kept is right with what is
//! left. The rules hold in every program: a fence in front of a store releases all that the store would, because who reads the
//! store comes after it anyway; and an instruction of a wider scope does what one of the scope asked for does. A fence beside a
//! load or an update does not order the access itself, so these keep their own order. A `seq_cst` access keeps
//! its `fence.sc` in front, whatever the few programs of the cell say.
//!
//! A sequence is fences, at most one access, and fences. Of another one, such as a loop, nothing is said.

use moire_program::ir::Scope;
use moire_source::Order;
use moire_source::cell::{Cell, Operation};
use std::collections::BTreeSet;

/// An instruction that is emitted: how it orders, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    is_fence: bool,
    is_store: bool,
    acquires: bool,
    releases: bool,
    is_sequential: bool,
    scope: Scope,
}

/// The words of orders, the weakest first.
const ORDERS: [&str; 5] = ["relaxed", "release", "acquire", "acq_rel", "sc"];
const SCOPES: [(&str, Scope); 4] =
    [("cta", Scope::Cta), ("cluster", Scope::Cluster), ("gpu", Scope::Gpu), ("sys", Scope::Sys)];

impl Word {
    /// Reads an instruction without operands; `None` if it is another one.
    fn read(text: &str) -> Option<Word> {
        let mut parts = text.split('.');
        let (name, rest): (_, Vec<&str>) = (parts.next()?, parts.collect());
        let named = SCOPES.iter().find(|(word, _)| rest.contains(word)).map(|(_, scope)| *scope);
        let order = ORDERS.into_iter().find(|order| rest.contains(order));
        let (order, scope) = match name {
            "fence" => (order?, named?),
            "membar" => ("sc", if rest.contains(&"gl") { Scope::Gpu } else { named? }),
            "atom" | "red" => (order.unwrap_or("relaxed"), named.unwrap_or(Scope::Gpu)),
            "ld" | "st" if rest.contains(&"volatile") => ("relaxed", Scope::Sys),
            "ld" | "st" => (order?, named?),
            _ => return None,
        };
        Some(Word {
            text: text.to_owned(),
            is_fence: matches!(name, "fence" | "membar"),
            is_store: name == "st",
            acquires: matches!(order, "acquire" | "acq_rel" | "sc"),
            releases: matches!(order, "release" | "acq_rel" | "sc"),
            is_sequential: order == "sc",
            scope,
        })
    }

    /// The forms of it that are weaker, the weakest first; `None` stands for nothing at all. None has a wider scope than the one
    /// asked for. `one_sided`: fences may acquire or release alone.
    fn weaker(&self, asked: Scope, one_sided: bool) -> Vec<Option<String>> {
        let narrow = |text: &str| {
            let wide = SCOPES.iter().find(|(_, scope)| *scope == self.scope && asked < self.scope);
            let name = SCOPES.iter().find(|(_, scope)| *scope == asked.min(self.scope)).map_or("", |s| s.0);
            let part = |part: &'_ str| match part {
                "volatile" => format!("relaxed.{name}"),
                part if wide.is_some_and(|(word, _)| *word == part) => name.to_owned(),
                part => part.to_owned(),
            };
            text.split('.').map(part).collect::<Vec<_>>().join(".")
        };
        let order = ORDERS.iter().position(|order| self.text.split('.').any(|part| part == *order));
        let fits =
            |order: &&&str| !self.is_fence || **order == "acq_rel" || (one_sided && **order != "relaxed");
        let weaker = order.into_iter().flat_map(|n| {
            let with = |order: &&str| self.text.replacen(&format!(".{}", ORDERS[n]), &format!(".{order}"), 1);
            ORDERS[..n].iter().filter(fits).map(with).collect::<Vec<_>>()
        });
        let gone = self.is_fence.then_some(None);
        let same = std::iter::once(self.text.clone());
        let all = gone.into_iter().chain(weaker.chain(same).map(|text| Some(narrow(&text))));
        all.filter(|text| text.as_ref() != Some(&self.text)).collect()
    }
}

/// What an operation asks for.
fn asked(operation: Operation) -> (bool, bool, bool) {
    let of = |order: Order| (order.acquires(), order.releases(), order == Order::SeqCst);
    match operation {
        Operation::Load(order) => (order.acquires(), false, order == Order::SeqCst),
        Operation::Store(order) => (false, order.releases(), order == Order::SeqCst),
        Operation::Update(_, order, _) | Operation::Fence(order) => of(order),
        Operation::Cas(success, failure) => {
            let (a, b) = (of(success), of(failure));
            (a.0 || b.0, a.1 || b.1, a.2 || b.2)
        }
    }
}

/// Whether a sequence is at least what the published mapping gives the operation.
fn suffices(cell: &Cell, all: &[Word]) -> bool {
    let (acquires, releases, is_sequential) = asked(cell.operation);
    let reaches: Vec<&Word> = all.iter().filter(|word| word.scope >= cell.scope).collect();
    let Some(at) = reaches.iter().position(|word| !word.is_fence) else {
        let is = |word: &&Word| {
            (!acquires || word.acquires)
                && (!releases || word.releases)
                && (!is_sequential || word.is_sequential)
        };
        return matches!(cell.operation, Operation::Fence(_)) && reaches.iter().any(is);
    };
    (!is_sequential || reaches[..at].iter().any(|word| word.is_sequential))
        && (!acquires || reaches[at].acquires)
        && (!releases
            || reaches[at].releases
            || (reaches[at].is_store && reaches[..at].iter().any(|word| word.releases)))
}

/// A sequence in which some words are weaker or gone.
pub(super) type Least = Vec<Option<String>>;

/// The least sequence that is left of the one that is emitted. `right` judges a sequence in programs; `one_sided`: the PTX has
/// fences that acquire or release alone. `None`: nothing is said.
pub(super) fn least(
    cell: &Cell,
    emitted: &[String],
    one_sided: bool,
    right: &mut dyn FnMut(&Least) -> bool,
) -> Option<Least> {
    let words: Vec<Word> = emitted.iter().map(|word| Word::read(word)).collect::<Option<_>>()?;
    let accesses = words.iter().filter(|word| !word.is_fence).count();
    if accesses > 1 || !suffices(cell, &words) {
        return None;
    }
    let tries = |(at, word): (usize, &Word)| {
        word.weaker(cell.scope, one_sided).into_iter().map(move |weaker| (at, weaker)).collect::<Vec<_>>()
    };
    let mut tries: Vec<(usize, Option<String>)> = words.iter().enumerate().flat_map(tries).collect();
    // Fences that can go cost most.
    tries.sort_by_key(|(_, weaker)| weaker.is_some());
    let mut out: Least = emitted.iter().cloned().map(Some).collect();
    let mut done = BTreeSet::new();
    for (at, weaker) in tries {
        if done.contains(&at) {
            continue;
        }
        let before = std::mem::replace(&mut out[at], weaker);
        let left: Option<Vec<Word>> = out.iter().flatten().map(|word| Word::read(word)).collect();
        if left.is_some_and(|left| suffices(cell, &left)) && right(&out) {
            done.insert(at);
        } else {
            out[at] = before;
        }
    }
    Some(out)
}

/// Whether PTX has one-sided fences for the target and of the version that a module names.
pub(super) fn is_one_sided(module: &str) -> bool {
    let number = |start: &str| -> Option<f64> {
        let rest = module.lines().find_map(|line| line.trim().strip_prefix(start))?.trim();
        rest.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    };
    number(".version").is_some_and(|n| n >= 8.6) && number(".target sm_").is_some_and(|n| n >= 90.0)
}

/// A thread with another sequence wherever it has this one; `None` if it has it nowhere. `word` gives the instruction of a line.
pub(super) fn replaced(
    text: &str,
    emitted: &[String],
    by: &Least,
    word: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at: Vec<(usize, String)> =
        lines.iter().enumerate().filter_map(|(n, line)| Some((n, word(line)?))).collect();
    let mut out: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let runs = at.windows(emitted.len().max(1)).filter(|run| run.iter().map(|(_, w)| w).eq(emitted));
    let mut found = false;
    for run in runs {
        found = true;
        for ((n, old), new) in run.iter().zip(by) {
            out[*n] = match new {
                Some(new) => lines[*n].replacen(old.as_str(), new, 1),
                None => String::new(),
            };
        }
    }
    found.then(|| out.iter().flat_map(|line| [line.as_str(), "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use moire_source::Space;

    fn cell(operation: Operation) -> Cell {
        Cell { operation, scope: Scope::Gpu, bits: 32, space: Space::Global }
    }

    /// What is left if programs allow everything.
    fn left(operation: Operation, emitted: &[&str]) -> Option<Vec<String>> {
        let emitted: Vec<String> = emitted.iter().map(|word| (*word).to_owned()).collect();
        Some(least(&cell(operation), &emitted, true, &mut |_| true)?.into_iter().flatten().collect())
    }

    #[test]
    fn what_the_mapping_needs_stays_whatever_programs_say() {
        use Order::{AcqRel, Acquire, Relaxed, Release, SeqCst};
        let (load, store) = ("ld.acquire.gpu.global.b32", "st.release.gpu.global.b32");
        for (operation, kept) in [
            (Operation::Load(SeqCst), &["fence.sc.gpu", load][..]),
            (Operation::Load(Acquire), &[load]),
            (Operation::Store(Release), &[store]),
            (Operation::Store(SeqCst), &["fence.sc.gpu", "st.relaxed.gpu.global.b32"]),
            (Operation::Cas(Release, Acquire), &["atom.acq_rel.gpu.global.cas.b32"]),
            (Operation::Fence(Acquire), &["fence.acquire.gpu"]),
            (Operation::Fence(SeqCst), &["membar.gl"]),
            (Operation::Update(moire_program::ir::AtomOp::Add, Relaxed, true), &["atom.global.add.u32"]),
        ] {
            assert_eq!(
                left(operation, kept).as_deref(),
                Some(&kept.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..])
            );
        }
        for (operation, emitted, least) in [
            (
                Operation::Store(SeqCst),
                &["fence.sc.gpu", store][..],
                &["fence.sc.gpu", "st.relaxed.gpu.global.b32"][..],
            ),
            (Operation::Store(Release), &["fence.sc.gpu", store], &[store]),
            (Operation::Load(Acquire), &["fence.sc.sys", load, "fence.acq_rel.gpu"], &[load]),
            (Operation::Load(Relaxed), &["ld.volatile.b32"], &["ld.relaxed.gpu.b32"]),
            (
                Operation::Load(SeqCst),
                &["fence.sc.sys", "ld.acquire.sys.b32"],
                &["fence.sc.gpu", "ld.acquire.gpu.b32"],
            ),
            (Operation::Fence(AcqRel), &["membar.gl"], &["membar.gl"]),
            (Operation::Fence(Release), &["fence.sc.gpu"], &["fence.release.gpu"]),
        ] {
            let words: Vec<String> = least.iter().map(|w| (*w).to_owned()).collect();
            assert_eq!(left(operation, emitted), Some(words), "{emitted:?}");
        }
        // Too weak, of too narrow a scope, or with two accesses: nothing is said.
        assert_eq!(left(Operation::Load(SeqCst), &[load]), None);
        assert_eq!(left(Operation::Load(Acquire), &["ld.acquire.cta.b32"]), None);
        // The access itself is outside of what the fence orders.
        assert_eq!(left(Operation::Load(Acquire), &["ld.relaxed.gpu.b32", "fence.sc.gpu"]), None);
        let update = Operation::Update(moire_program::ir::AtomOp::Add, SeqCst, true);
        let whole = ["fence.sc.gpu", "atom.acq_rel.gpu.add.u32"].map(str::to_owned).to_vec();
        assert_eq!(left(update, &["fence.sc.gpu", "atom.acq_rel.gpu.add.u32"]), Some(whole));
        assert_eq!(left(update, &["fence.sc.gpu", "atom.acquire.gpu.add.u32"]), None);
        assert_eq!(
            left(Operation::Store(Relaxed), &["ld.relaxed.gpu.b32", "atom.relaxed.gpu.cas.b32"]),
            None
        );
    }

    #[test]
    fn one_sided_fences_are_of_hopper_and_of_8_6() {
        let module =
            |version: &str, target: &str| is_one_sided(&format!(".version {version}\n.target {target}\n"));
        assert!(module("8.6", "sm_90a") && module("9.5", "sm_100"));
        assert!(!module("8.5", "sm_90") && !module("8.6", "sm_80") && !is_one_sided(""));
    }

    #[test]
    fn a_sequence_is_replaced_where_it_stands() {
        let word = |line: &str| line.split_whitespace().next().filter(|w| w.contains('.')).map(str::to_owned);
        let text = "{\n\tfence.sc.gpu;\n\tst.release.gpu [a], 1;\n\tst.relaxed.gpu [b], 1;\n}\n";
        let emitted = ["fence.sc.gpu;", "st.release.gpu"].map(str::to_owned);
        let by = vec![None, Some("st.relaxed.gpu".to_owned())];
        let new = replaced(text, &emitted, &by, &word).expect("it is there");
        assert_eq!(new, "{\n\n\tst.relaxed.gpu [a], 1;\n\tst.relaxed.gpu [b], 1;\n}\n");
        assert_eq!(replaced("{\n}\n", &emitted, &by, &word), None);
    }
}
