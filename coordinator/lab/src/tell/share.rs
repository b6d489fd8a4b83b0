//! The share of drawn programs that tell: without all of their order, and without any one part of it.

use super::seen::{Models, breaks, meaning, outcomes};
use moire_generate::{Profile, Stream};
use moire_program::edit::{Edit, apply};
use moire_program::ir::Order;
use moire_program::ir::{LoadOrder, Op, Program, RmwOrder, Scope, StoreOrder};
use moire_program::{barrier_op, fence_op};
use moire_source::Source;
use moire_source::mapping::{Lost, Site, mapped, sites};
use std::collections::BTreeMap;

/// What is counted of some programs.
#[derive(Default)]
struct Counted {
    programs: u64,
    /// It is too large, or the engines do not model it.
    unanswered: u64,
    /// A race leaves it without a meaning.
    undefined: u64,
    /// It tells that all is lost.
    all: u64,
    /// It tells that some one part is lost.
    any: u64,
    parts: u64,
    told: u64,
}

/// What a program tells: of all order, and of each part.
enum Told {
    Unanswered,
    Undefined,
    Answer { all: bool, each: Vec<bool> },
}

impl Counted {
    fn add(&mut self, told: &Told) {
        self.programs += 1;
        match told {
            Told::Unanswered => self.unanswered += 1,
            Told::Undefined => self.undefined += 1,
            Told::Answer { all, each } => {
                self.all += u64::from(*all);
                self.any += u64::from(each.contains(&true));
                self.parts += each.len() as u64;
                self.told += each.iter().filter(|told| **told).count() as u64;
            }
        }
    }

    fn row(&self, name: &str) -> String {
        let percent = |n: u64, of: u64| 100.0 * n as f64 / of.max(1) as f64;
        let answered = self.programs - self.unanswered;
        format!(
            "| {name} | {} | {} | {} | {} ({:.0} %) | {} ({:.0} %) | {:.0} % |",
            self.programs,
            self.unanswered,
            self.undefined,
            self.all,
            percent(self.all, answered),
            self.any,
            percent(self.any, answered),
            percent(self.told, self.parts)
        )
    }
}

/// Prints the shares of the streams `source` and `core`, and of their families.
pub(super) fn print(models: &Models, seed: u64, programs: u64) {
    println!(
        "| stream | programs | no answer | undefined | tell that all is lost | tell that some part is lost | parts told |\n|---|---|---|---|---|---|---|"
    );
    for profile in [Profile::Source, Profile::Core] {
        let (whole, families) = counted(models, Stream::new(seed, profile), programs);
        println!("{}", whole.row(profile.name()));
        families
            .iter()
            .for_each(|(family, counted)| println!("{}", counted.row(&format!("{profile}: {family}"))));
    }
}

/// What programs of a stream tell, and those of each family.
fn counted(models: &Models, stream: Stream, programs: u64) -> (Counted, BTreeMap<String, Counted>) {
    let (mut whole, mut families) = (Counted::default(), BTreeMap::<String, Counted>::new());
    for index in 0..programs {
        let (family, told) = match stream.source(index) {
            Some(source) => {
                let family = source.name.split('-').next().unwrap_or_default().to_owned();
                (family, of_source(&source, models))
            }
            None => {
                let (family, program) = stream.drawn(index);
                (family.to_owned(), of_program(&program, models))
            }
        };
        whole.add(&told);
        families.entry(family).or_default().add(&told);
    }
    (whole, families)
}

fn of_source(source: &Source, models: &Models) -> Told {
    let Some(means) = meaning(source, &models.source) else { return Told::Unanswered };
    if !means.flags.is_empty() {
        return Told::Undefined;
    }
    let wrong = |lost: &dyn Fn(&Site) -> Option<Lost>| breaks(&mapped(source, lost), &means, &models.ptx);
    match wrong(&|_| None) {
        Some(false) => {}
        // The mapping itself is refused: nothing is said of what is lost.
        Some(true) | None => return Told::Unanswered,
    }
    let Some(all) = wrong(&|_| Some(Lost::Order)) else { return Told::Unanswered };
    let parts =
        sites(source).into_iter().flat_map(|site| parts(&site).into_iter().map(move |lost| (site.at, lost)));
    let each = parts.filter_map(|(at, lost)| wrong(&|site| (site.at == at).then_some(lost))).collect();
    Told::Answer { all, each }
}

/// What can be lost at a site.
fn parts(site: &Site) -> Vec<Lost> {
    let order = (site.order != moire_source::Order::Relaxed).then_some(Lost::Order);
    order.into_iter().chain((site.scope != Scope::Cta).then_some(Lost::Scope)).collect()
}

fn of_program(program: &Program, models: &Models) -> Told {
    let Some(right) = outcomes(program, &models.ptx) else { return Told::Unanswered };
    let differs = |edits: &[Edit]| Some(outcomes(&apply(program, edits)?, &models.ptx)? != right);
    let mut all = Vec::new();
    let mut each = Vec::new();
    for (thread, t) in program.threads.iter().enumerate() {
        for (at, instr) in t.body.iter().enumerate() {
            let replaced = |op| Edit::Replace { thread, at, op };
            match bare(&instr.op) {
                Bare::Same => {}
                Bare::Other(op) => all.push(replaced(op)),
                Bare::Nothing => all.push(Edit::Delete { thread, at }),
            }
            if matches!(instr.op, fence_op!()) {
                each.push(Edit::Delete { thread, at });
            }
            each.extend(instr.op.weaker().into_iter().chain(instr.op.narrower()).map(replaced));
        }
    }
    let Some(all) = differs(&all) else { return Told::Unanswered };
    let each = each.into_iter().filter_map(|edit| differs(&[edit])).collect();
    Told::Answer { all, each }
}

/// An instruction without its order.
enum Bare {
    Same,
    Other(Op),
    Nothing,
}

fn bare(op: &Op) -> Bare {
    if matches!(op, fence_op!() | barrier_op!()) {
        return Bare::Nothing;
    }
    let mut other = op.clone();
    match other.order_mut() {
        Some(Order::Load(order)) => {
            if let LoadOrder::Acquire(scope) | LoadOrder::SeqCst(scope) = *order {
                *order = LoadOrder::Relaxed(scope);
            }
        }
        Some(Order::Store(order)) => {
            if let StoreOrder::Release(scope) | StoreOrder::SeqCst(scope) = *order {
                *order = StoreOrder::Relaxed(scope);
            }
        }
        Some(Order::Update(order) | Order::Reduction(order)) => *order = RmwOrder::Relaxed,
        Some(Order::Flag(relaxed)) => *relaxed = true,
        Some(Order::Fence(_)) | None => {}
    }
    if other == *op { Bare::Same } else { Bare::Other(other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_drawn_programs_tell_that_their_order_is_lost() {
        let models = Models::load().expect("shipped");
        for profile in [Profile::Source, Profile::Core] {
            let (whole, _) = counted(&models, Stream::new(5, profile), 200);
            assert!(
                whole.all * 100 >= (whole.programs - whole.unanswered) * 75,
                "{}",
                whole.row(profile.name())
            );
        }
    }
}
