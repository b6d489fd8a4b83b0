//! The canonical form: one text for all programs that differ in names, in the order of threads and objects, or in the
//! numbers of places.

use crate::syntax::{Source, Thread};
use crate::text::print;
use crate::walk;
use std::collections::BTreeMap;

/// Most threads whose orders are all tried. Programs with more keep the order of their threads.
const THREADS_TRIED: usize = 5;

/// The canonical form. It has no name and no condition.
pub fn canonical(source: &Source) -> Source {
    let mut orders = vec![(0..source.threads.len()).collect::<Vec<_>>()];
    if source.threads.len() <= THREADS_TRIED {
        orders = permutations(source.threads.len());
    }
    let forms = orders.iter().map(|order| in_order(source, order));
    forms.min_by_key(print).unwrap_or_default()
}

/// The text of the canonical form.
pub fn text(source: &Source) -> String {
    print(&canonical(source))
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |part: &Vec<usize>| {
            let free: Vec<usize> = (0..n).filter(|i| !part.contains(i)).collect();
            let part = part.clone();
            free.into_iter().map(move |i| [part.as_slice(), &[i]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The program with its threads in this order, and everything else named by first use.
fn in_order(source: &Source, order: &[usize]) -> Source {
    let mut out = Source::default();
    out.threads.extend(order.iter().filter_map(|t| source.threads.get(*t)).cloned());
    objects(source, &mut out);
    out.threads.iter_mut().for_each(registers);
    places(&mut out);
    out
}

fn objects(source: &Source, out: &mut Source) {
    let mut used: Vec<usize> = Vec::new();
    for thread in &out.threads {
        walk::each(&thread.body, &mut |step| used.extend(step.object()));
    }
    let mut seen = Vec::new();
    used.retain(|o| {
        !seen.contains(o) && {
            seen.push(*o);
            true
        }
    });
    let mut idle: Vec<usize> = (0..source.objects.len()).filter(|o| !used.contains(o)).collect();
    idle.sort_by_key(|o| (source.objects[*o].space, source.objects[*o].bits, source.objects[*o].init));
    used.extend(idle);
    let position = |o: usize| used.iter().position(|u| *u == o).unwrap_or(o);
    for thread in &mut out.threads {
        walk::each_mut(&mut thread.body, &mut |step| walk::rename_object(step, &position));
    }
    let renamed = |(n, o): (usize, &usize)| {
        let object = source.objects.get(*o)?.clone();
        Some(crate::Object { name: format!("x{n}"), ..object })
    };
    out.objects = used.iter().enumerate().filter_map(renamed).collect();
}

fn registers(thread: &mut Thread) {
    let mut order: Vec<usize> = Vec::new();
    walk::each(&thread.body, &mut |step| {
        order.extend(step.dst().filter(|d| !order.contains(d)));
    });
    let position = |r: usize| order.iter().position(|o| *o == r).unwrap_or(r);
    walk::each_mut(&mut thread.body, &mut |step| walk::rename_register(step, &position));
    let renamed = |(n, r): (usize, &usize)| {
        let register = thread.registers.get(*r)?.clone();
        Some(crate::Register { name: format!("r{n}"), ..register })
    };
    thread.registers = order.iter().enumerate().filter_map(renamed).collect();
}

/// Numbers GPUs, clusters and CTAs by first use. Equal places stay equal, and different ones different.
fn places(out: &mut Source) {
    let mut gpus = BTreeMap::new();
    let mut clusters = BTreeMap::new();
    let mut ctas = BTreeMap::new();
    let number = |map: &mut BTreeMap<(u16, u16, u16), u16>, key: (u16, u16, u16)| {
        let next = u16::try_from(map.len()).expect("a source has at most 8 threads");
        *map.entry(key).or_insert(next)
    };
    for thread in &mut out.threads {
        let p = thread.place;
        thread.place.gpu = number(&mut gpus, (p.gpu, 0, 0));
        thread.place.cluster = number(&mut clusters, (p.gpu, p.cluster, 0));
        thread.place.cta = number(&mut ctas, (p.gpu, p.cluster, p.cta));
    }
}
