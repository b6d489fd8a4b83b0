//! Computes the thread orders that can give the least text: colour refinement, then all orders within each colour.
//!
//! Contract: the set of orders is invariant under renaming the program, unless there are too many (second result false).

use std::collections::BTreeMap;

use super::arrange::arrange;
use super::{ORDERS_MAX, key};
use crate::features::accesses;
use crate::ir::{Placement, Program};

pub(super) fn orders(program: &Program, values: bool) -> (Vec<Vec<usize>>, bool) {
    let n = program.threads.len();
    let colours = colours(program, values);
    let mut classes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (t, colour) in colours.into_iter().enumerate() {
        classes.entry(colour).or_default().push(t);
    }
    let count = classes.values().try_fold(1usize, |all, class| {
        (1..=class.len()).try_fold(all, |a, k| a.checked_mul(k)).filter(|&c| c <= ORDERS_MAX)
    });
    let mut orders = vec![Vec::with_capacity(n)];
    for class in classes.values() {
        let choices = if count.is_some() { permutations(class) } else { vec![class.clone()] };
        let mut longer = Vec::with_capacity(orders.len() * choices.len());
        for order in &orders {
            for choice in &choices {
                let mut next: Vec<usize> = order.clone();
                next.extend(choice);
                longer.push(next);
            }
        }
        orders = longer;
    }
    (orders, count.is_some())
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    let Some((first, rest)) = items.split_first() else { return vec![Vec::new()] };
    let mut all = Vec::new();
    for shorter in permutations(rest) {
        for at in 0..=shorter.len() {
            let mut next = shorter.clone();
            next.insert(at, *first);
            all.push(next);
        }
    }
    all
}

/// Colours the threads: first by their own text, then repeatedly by the colours and relative places of the other threads
/// and by the threads that share their locations.
fn colours(program: &Program, values: bool) -> Vec<usize> {
    let n = program.threads.len();
    let own: Vec<_> = (0..n).map(|t| key(&arrange(program, &[t], values))).collect();
    let mut colours = rank(&own);
    let uses = object_uses(program);
    for _ in 0..n {
        let objects: Vec<Vec<(usize, usize)>> = uses
            .iter()
            .map(|users| {
                let mut users: Vec<(usize, usize)> = users.iter().map(|&(t, k)| (colours[t], k)).collect();
                users.sort_unstable();
                users
            })
            .collect();
        let signatures: Vec<_> = (0..n)
            .map(|t| {
                let mine = &program.threads[t].place;
                let mut others: Vec<(usize, u8)> = (0..n)
                    .filter(|&o| o != t)
                    .map(|o| (colours[o], relation(mine, &program.threads[o].place)))
                    .collect();
                others.sort_unstable();
                let mut shared: Vec<(usize, &Vec<(usize, usize)>)> = Vec::new();
                for (object, users) in uses.iter().enumerate() {
                    shared.extend(users.iter().filter(|u| u.0 == t).map(|u| (u.1, &objects[object])));
                }
                shared.sort_unstable();
                (colours[t], others, shared)
            })
            .collect();
        let next = rank(&signatures);
        if next == colours {
            break;
        }
        colours = next;
    }
    colours
}

fn rank<T: Ord>(items: &[T]) -> Vec<usize> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort();
    sorted.dedup();
    items.iter().map(|i| sorted.binary_search(&i).unwrap_or(0)).collect()
}

/// For each object, the thread and the index of each access.
fn object_uses(program: &Program) -> Vec<Vec<(usize, usize)>> {
    let mut uses = vec![Vec::new(); program.objects.len()];
    for access in accesses(program) {
        if let Some(symbol) = access.symbol.and_then(|s| program.symbols.get(s.index())) {
            uses[symbol.object.index()].push((access.thread, access.at));
        }
    }
    uses
}

/// The relation of one place to another. It is symmetric, except for the order of the grids of a stream.
fn relation(a: &Placement, b: &Placement) -> u8 {
    use crate::ir::Scope::{Cluster, Gpu};
    let earlier = u8::from((a.gpu, a.stream) == (b.gpu, b.stream) && a.grid < b.grid);
    u8::from(a.includes(Gpu, b))
        | u8::from(a.includes(Cluster, b)) << 1
        | u8::from(a.same_cta(b)) << 2
        | u8::from(a.same_cta(b) && a.warp == b.warp) << 3
        | u8::from(a.stream == b.stream) << 4
        | u8::from((a.stream, a.grid) == (b.stream, b.grid)) << 5
        | earlier << 6
}
