//! Small programs: each comes once, in order of size, and has the size that was asked for.

use std::collections::BTreeSet;

use moire_generate::exhaustive::{Alphabet, Bound, Enumeration, Near, programs, size, sizes};
use moire_program::canon::canonical;
use moire_program::ir::{AtomOp, FenceOrder, LoadOrder, Proxy, ProxyFence, RmwOrder, Scope, StoreOrder};
use moire_program::text::{Format, parse, print};

fn plain() -> Bound {
    let alphabet = Alphabet {
        loads: vec![LoadOrder::Relaxed(Scope::Gpu)],
        stores: vec![StoreOrder::Relaxed(Scope::Gpu)],
        places: vec![Near::Gpu],
        ..Alphabet::default()
    };
    Bound { threads: 2, memory_events: 4, instructions: 4, locations: 2, alphabet }
}

#[test]
fn all_small_programs_come_once_and_in_order() {
    let all: Vec<_> = programs(&plain()).collect();
    let ids: BTreeSet<_> = all.iter().map(|p| canonical(p).id).collect();
    assert_eq!(ids.len(), all.len());
    assert!(all.windows(2).all(|w| size(&w[0]) <= size(&w[1])));
    let mut message_passing = moire_generate::shapes::message_passing();
    message_passing.conditions.clear();
    // The shapes use 64-bit words; the enumeration uses 32-bit words if no address is computed.
    let four = all.iter().filter(|p| size(p) == (2, 4, 4)).count();
    assert!(four >= 6, "{four}");
}

/// Bounds that together use every kind of step. One bound is not enough, because some barriers need certain places.
fn all_kinds() -> [Bound; 4] {
    let base = Bound { threads: 2, memory_events: 3, instructions: 5, ..plain() };
    let with = |alphabet| Bound { alphabet, ..base.clone() };
    let weak = Alphabet {
        loads: vec![LoadOrder::Weak],
        stores: vec![StoreOrder::Weak],
        places: vec![Near::Cta],
        ..Alphabet::default()
    };
    [
        with(Alphabet { addr: true, data: true, ctrl: true, branches: true, jumps: true, ..weak.clone() }),
        with(Alphabet {
            rmws: vec![(AtomOp::Cas, RmwOrder::Relaxed, Scope::Gpu, false)],
            fences: vec![(FenceOrder::Sc, Scope::Gpu)],
            proxies: vec![Proxy::Generic, Proxy::Texture],
            proxy_fences: vec![ProxyFence::Alias],
            ..weak.clone()
        }),
        with(Alphabet {
            barriers: true,
            cluster_barriers: true,
            places: vec![Near::Cluster],
            ..weak.clone()
        }),
        with(Alphabet { warp_syncs: true, wide: true, places: vec![Near::Warp], ..weak }),
    ]
}

/// A size class holds only valid programs of its size, and all classes together have every kind of step.
#[test]
fn size_classes_hold_programs_of_their_size() {
    let mut kinds = BTreeSet::new();
    for bound in all_kinds() {
        let all = Enumeration::new(&bound);
        for asked in sizes((bound.threads, bound.memory_events, bound.instructions)) {
            for program in all.of_size(asked) {
                let text = print(&program);
                assert_eq!(size(&program), asked, "{text}");
                assert_eq!(parse(&text, Format::Native).as_ref(), Ok(&program), "{text}");
                let words = |line: &str| line.split_whitespace().next().map(str::to_owned);
                kinds.extend(text.lines().filter_map(words));
            }
        }
        assert_eq!(all.of_size((3, 3, 3)).count(), 0, "beyond the bound");
    }
    let expected = [
        "add.u64",
        "atom.relaxed.gpu.global.cas.b32",
        "bar.sync",
        "bar.warp.sync",
        "barrier.cluster.arrive;",
        "barrier.cluster.arrive.relaxed;",
        "barrier.cluster.wait;",
        "@r1",
        "@!r1",
        "fence.proxy.alias;",
        "fence.sc.gpu;",
        "ld.weak.global.b128",
        "tld.weak.u32",
    ];
    let missing: Vec<&str> = expected.into_iter().filter(|e| !kinds.contains(*e)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {kinds:?}");
}
