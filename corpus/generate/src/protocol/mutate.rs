//! Makes one mistake in a protocol.

use super::{Act, Kind, Protocol, Role, RoleStep};

/// The kind of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// A step is missing.
    Drop,
    /// A step is swapped with a neighbour where it orders less: a commit or an arrival comes earlier, any other step
    /// later.
    Move,
    /// A release or an acquire is relaxed.
    Weaken,
    /// A commit, an arrival, an expectation, a copy, an allocation or a deallocation is repeated.
    Duplicate,
    /// A wait names the other parity.
    Parity,
    /// A commit, arrival or wait names another mbarrier.
    Barrier,
    /// A warp runs in the other CTA, an arrival or a copy reports to the other CTA, or a commit arrives only in its own.
    Cta,
    /// The scope of an arrival or a wait is the CTA instead of the cluster.
    Scope,
    /// The number of expected arrivals, of expected bytes, or of columns is wrong.
    Count,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 9] = [
        Mutation::Drop,
        Mutation::Move,
        Mutation::Weaken,
        Mutation::Duplicate,
        Mutation::Parity,
        Mutation::Barrier,
        Mutation::Cta,
        Mutation::Scope,
        Mutation::Count,
    ];

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Mutation::Drop => "drop",
            Mutation::Move => "move",
            Mutation::Weaken => "weaken",
            Mutation::Duplicate => "duplicate",
            Mutation::Parity => "parity",
            Mutation::Barrier => "barrier",
            Mutation::Cta => "cta",
            Mutation::Scope => "scope",
            Mutation::Count => "count",
        }
    }
}

/// A protocol with one mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The kind of the mistake.
    pub mutation: Mutation,
    /// The mistake and its place, in words.
    pub what: String,
    /// The changed protocol.
    pub protocol: Protocol,
}

/// Every mutant of `protocol`, in a fixed order.
pub fn mutants(protocol: &Protocol) -> Vec<Mutant> {
    let mut out = Vec::new();
    let pair = protocol.roles.iter().any(|role| role.cta > 0);
    for (r, role) in protocol.roles.iter().enumerate() {
        for (s, step) in role.steps.iter().enumerate() {
            for mutation in Mutation::ALL {
                for steps in changed(protocol, role, s, mutation, pair) {
                    let mut mutated = protocol.clone();
                    mutated.roles[r].steps = steps;
                    let place = if pair { format!("cta {}, ", role.cta) } else { String::new() };
                    let what = format!(
                        "{} of {} in {place}warp {}, step {s}",
                        mutation.name(),
                        word(step),
                        role.warp
                    );
                    out.push(mutant(mutation, what, mutated));
                }
            }
        }
        let mut mutated = protocol.clone();
        mutated.roles[r].cta ^= 1;
        let what = format!("cta {}, warp {} in the other CTA", role.cta, role.warp);
        out.push(mutant(Mutation::Cta, what, mutated));
    }
    out
}

fn mutant(mutation: Mutation, what: String, mut protocol: Protocol) -> Mutant {
    protocol.name = format!("{}; {what}", protocol.name);
    Mutant { mutation, what, protocol }
}

/// The name of a step's kind.
fn word(step: &RoleStep) -> &'static str {
    match step.kind {
        Kind::Frame => "frame",
        Kind::Work => "work",
        Kind::Complete => "tcgen05.wait",
        Kind::Before => "before",
        Kind::After => "after",
        Kind::ProxyFence => "proxy fence",
        Kind::Init { .. } => "init",
        Kind::InitFence => "init fence",
        Kind::Sync => "barrier",
        Kind::Columns { act: Act::Take, .. } => "columns taken",
        Kind::Columns { act: Act::Give, .. } => "columns given back",
        Kind::Columns { act: Act::Relinquish, .. } => "right given up",
        Kind::Copy { .. } => "copy",
        Kind::Expect { .. } => "expectation",
        Kind::Commit { .. } => "commit",
        Kind::Arrive { .. } => "arrival",
        Kind::Wait { .. } => "wait",
    }
}

/// Every way in which `mutation` changes step `s`; none if it does not apply to that step.
fn changed(protocol: &Protocol, role: &Role, s: usize, mutation: Mutation, pair: bool) -> Vec<Vec<RoleStep>> {
    let steps = &role.steps;
    let single = |change: &dyn Fn(&mut Kind) -> Option<()>| {
        let mut out = steps.clone();
        change(&mut out[s].kind).map(|()| out).into_iter().collect()
    };
    let all: Vec<Vec<RoleStep>> = match mutation {
        Mutation::Drop if !matches!(steps[s].kind, Kind::Frame | Kind::Work) => {
            let mut out = steps.clone();
            out.remove(s);
            vec![out]
        }
        Mutation::Move => moved(steps, s).into_iter().collect(),
        Mutation::Duplicate if repeatable(&steps[s].kind) => {
            let mut out = steps.clone();
            out.insert(s, steps[s].clone());
            vec![out]
        }
        Mutation::Weaken => single(&weaken),
        Mutation::Parity => single(&|kind| match kind {
            Kind::Wait { parity, .. } => {
                *parity ^= 1;
                Some(())
            }
            _ => None,
        }),
        Mutation::Barrier => single(&|kind| rename(protocol, kind)),
        Mutation::Scope => single(&narrow),
        Mutation::Cta if pair => single(&|kind| redirect(kind, role.cta)),
        Mutation::Count => {
            [false, true].iter().flat_map(|more| single(&|kind| recount(kind, *more))).collect()
        }
        _ => Vec::new(),
    };
    all.into_iter().filter(|out| out != steps).collect()
}

/// Whether repeating a step of this kind is a mistake.
fn repeatable(kind: &Kind) -> bool {
    let columns = matches!(kind, Kind::Columns { act, .. } if *act != Act::Relinquish);
    columns
        || matches!(kind, Kind::Commit { .. } | Kind::Arrive { .. } | Kind::Expect { .. } | Kind::Copy { .. })
}

/// The steps after swapping step `s` with its neighbour; none if that cannot be a mistake.
fn moved(steps: &[RoleStep], s: usize) -> Option<Vec<RoleStep>> {
    let fixed = matches!(steps[s].kind, Kind::Frame | Kind::Work | Kind::Copy { .. } | Kind::Expect { .. });
    let early = matches!(steps[s].kind, Kind::Commit { .. } | Kind::Arrive { .. });
    let place = if early { s.checked_sub(1)? } else { s + 1 };
    let other = steps.get(place).filter(|other| !fixed && other.kind != Kind::Frame)?;
    let alike = matches!((&steps[s].kind, &other.kind), (Kind::Init { .. }, Kind::Init { .. }));
    let mut out = steps.to_vec();
    out.swap(s, place);
    (!alike).then_some(out)
}

fn weaken(kind: &mut Kind) -> Option<()> {
    match kind {
        Kind::Arrive { release: strong, .. } | Kind::Wait { acquire: strong, .. } if *strong => {
            *strong = false
        }
        _ => return None,
    }
    Some(())
}

fn narrow(kind: &mut Kind) -> Option<()> {
    match kind {
        Kind::Arrive { wide, .. } | Kind::Wait { wide, .. } if *wide => *wide = false,
        _ => return None,
    }
    Some(())
}

fn rename(protocol: &Protocol, kind: &mut Kind) -> Option<()> {
    match kind {
        Kind::Commit { at, .. }
        | Kind::Arrive { at, .. }
        | Kind::Wait { at, .. }
        | Kind::Expect { at, .. }
        | Kind::Copy { at, .. } => *at = other(protocol, at)?,
        _ => return None,
    }
    Some(())
}

/// Redirects an arrival or a copy to the other CTA, and a commit to its own CTA alone.
fn redirect(kind: &mut Kind, own: u16) -> Option<()> {
    match kind {
        Kind::Commit { pair: Some(mask), .. } => *mask = 1 << own,
        Kind::Arrive { cta, .. } | Kind::Copy { cta, .. } => {
            *cta = if cta.is_some() { None } else { Some(own ^ 1) };
        }
        _ => return None,
    }
    Some(())
}

fn recount(kind: &mut Kind, more: bool) -> Option<()> {
    match kind {
        Kind::Init { count, .. } => {
            *count = if more { *count + 1 } else { count.checked_sub(1).filter(|c| *c > 0)? }
        }
        Kind::Expect { bytes: n, .. } | Kind::Columns { columns: n, act: Act::Take | Act::Give, .. } => {
            *n = if more { *n * 2 } else { *n / 2 }
        }
        _ => return None,
    }
    Some(())
}

/// The mbarrier declared after this one; after the last, the first.
fn other(protocol: &Protocol, at: &str) -> Option<String> {
    let names: Vec<&str> = protocol
        .memory
        .iter()
        .filter_map(|line| line.strip_prefix(".shared .b64 ")?.strip_suffix(';'))
        .collect();
    let here = names.iter().position(|n| *n == at)?;
    let next = names[(here + 1) % names.len()];
    (next != at).then(|| next.to_owned())
}
