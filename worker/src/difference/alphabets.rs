//! The instruction alphabets of the search. Each is small enough to try all its programs of a size. Together they cover
//! every switch and section of the models.

use moire_generate::exhaustive::{Alphabet, Bound, Near, Size};
use moire_program::ir::{AtomOp, FenceOrder, LoadOrder, Proxy, ProxyFence, RmwOrder, Scope, StoreOrder};

/// An alphabet with the bound of its programs.
#[derive(Clone, Debug)]
pub struct Named {
    /// One or two words.
    pub name: &'static str,
    /// Its instructions, in words.
    pub about: &'static str,
    /// Most locations.
    pub locations: usize,
    /// Most threads, memory events, instructions.
    pub most: Size,
    /// The alphabet.
    pub alphabet: Alphabet,
}

const LOADS: [LoadOrder; 3] =
    [LoadOrder::Weak, LoadOrder::Relaxed(Scope::Gpu), LoadOrder::Acquire(Scope::Gpu)];
const STORES: [StoreOrder; 3] =
    [StoreOrder::Weak, StoreOrder::Relaxed(Scope::Gpu), StoreOrder::Release(Scope::Gpu)];

impl Named {
    /// The bound of the enumeration.
    pub fn bound(&self) -> Bound {
        let (threads, memory_events, instructions) = self.most;
        let (locations, alphabet) = (self.locations, self.alphabet.clone());
        Bound { threads, memory_events, instructions, locations, alphabet }
    }
}

/// Relaxed loads and stores of threads in different clusters of a GPU.
fn relaxed() -> Alphabet {
    Alphabet {
        loads: vec![LOADS[1]],
        stores: vec![STORES[1]],
        places: vec![Near::Gpu],
        ..Alphabet::default()
    }
}

/// Weak loads and stores.
fn weak(places: Vec<Near>) -> Alphabet {
    Alphabet { loads: vec![LOADS[0]], stores: vec![STORES[0]], places, ..Alphabet::default() }
}

fn named(name: &'static str, about: &'static str, locations: usize, most: Size, alphabet: Alphabet) -> Named {
    Named { name, about, locations, most, alphabet }
}

/// Every alphabet, with its bound. The bounds separate the settings that can be separated within a minute.
pub fn all() -> Vec<Named> {
    [orders(), dependencies(), proxies(), barriers()].concat()
}

/// Orders, scopes and fences.
fn orders() -> Vec<Named> {
    vec![
        named(
            "orders",
            "weak, relaxed, acquire, release at gpu scope, two clusters",
            2,
            (2, 4, 4),
            Alphabet { loads: LOADS.to_vec(), stores: STORES.to_vec(), ..relaxed() },
        ),
        named(
            "scopes",
            "relaxed at cta and gpu scope; one CTA or two clusters",
            2,
            (2, 4, 4),
            Alphabet {
                loads: vec![LoadOrder::Relaxed(Scope::Cta), LoadOrder::Acquire(Scope::Gpu)],
                stores: vec![StoreOrder::Relaxed(Scope::Cta), StoreOrder::Release(Scope::Gpu)],
                places: vec![Near::Cta, Near::Gpu],
                ..Alphabet::default()
            },
        ),
        named(
            "fences",
            "relaxed accesses, fence.sc and fence.acq_rel at gpu scope, fence.sc at cta scope",
            2,
            (2, 4, 6),
            Alphabet {
                fences: vec![
                    (FenceOrder::Sc, Scope::Gpu),
                    (FenceOrder::AcqRel, Scope::Gpu),
                    (FenceOrder::Sc, Scope::Cta),
                ],
                ..relaxed()
            },
        ),
    ]
}

/// Dependencies, read-modify-writes and accesses of two halves.
fn dependencies() -> Vec<Named> {
    let rmw = |op, scope, red| (op, RmwOrder::Relaxed, scope, red);
    vec![
        named(
            "dependencies",
            "relaxed accesses; data, guards, branches that meet again",
            2,
            (2, 4, 6),
            Alphabet { data: true, ctrl: true, jumps: true, ..relaxed() },
        ),
        named(
            "atomics",
            "relaxed accesses of gpu scope with data, atom.exch.cta, atom.cas.cta, atom.add.gpu, red.add.gpu",
            1,
            (2, 5, 4),
            Alphabet {
                rmws: vec![
                    rmw(AtomOp::Exch, Scope::Cta, false),
                    rmw(AtomOp::Cas, Scope::Cta, false),
                    rmw(AtomOp::Add, Scope::Gpu, false),
                    rmw(AtomOp::Add, Scope::Gpu, true),
                ],
                data: true,
                ..relaxed()
            },
        ),
        named(
            "wide",
            "128-bit accesses, weak and relaxed, two clusters",
            2,
            (2, 3, 3),
            Alphabet { wide: true, loads: LOADS[..2].to_vec(), stores: STORES[..2].to_vec(), ..relaxed() },
        ),
    ]
}

/// Proxies and their fences.
fn proxies() -> Vec<Named> {
    vec![named(
        "proxies",
        "weak accesses, also of a surface and an alias; their fences; one CTA",
        1,
        (2, 3, 4),
        Alphabet {
            proxies: vec![Proxy::Generic, Proxy::Surface],
            proxy_fences: vec![ProxyFence::Alias, ProxyFence::Of(Proxy::Surface)],
            ..weak(vec![Near::Cta])
        },
    )]
}

/// Barriers of a CTA, a cluster and a warp.
fn barriers() -> Vec<Named> {
    let surface = vec![Proxy::Surface];
    let surface_fence = vec![ProxyFence::Of(Proxy::Surface)];
    vec![
        named(
            "barriers",
            "weak accesses, also of a surface; fence.proxy.surface; bar.sync; one CTA",
            1,
            (2, 2, 5),
            Alphabet {
                proxies: surface.clone(),
                proxy_fences: surface_fence.clone(),
                barriers: true,
                ..weak(vec![Near::Cta])
            },
        ),
        named(
            "cluster barriers",
            "weak accesses, also of a surface; fence.proxy.surface; cluster barriers; two CTAs of a cluster",
            1,
            (2, 2, 6),
            Alphabet {
                proxies: surface,
                proxy_fences: surface_fence,
                cluster_barriers: true,
                ..weak(vec![Near::Cluster])
            },
        ),
        named(
            "warp barriers",
            "weak accesses, bar.warp.sync; lanes of one warp",
            2,
            (2, 3, 5),
            Alphabet { warp_syncs: true, ..weak(vec![Near::Warp]) },
        ),
    ]
}
