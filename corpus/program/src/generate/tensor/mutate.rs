//! One mistake in a protocol.

use super::{Kind, Protocol, Step};

/// What was done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// A step is gone.
    Drop,
    /// A step has changed places with its neighbour, to the side where it orders less: what keeps earlier steps back
    /// comes later, what publishes them earlier.
    Move,
    /// Release or acquire has become relaxed.
    Weaken,
    /// A commit or an arrival is there twice.
    Duplicate,
    /// A wait names the other parity.
    Parity,
    /// A commit, arrival or wait names another mbarrier.
    Barrier,
    /// A warp runs in another CTA.
    Cta,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Mutation; 7] = [
        Mutation::Drop,
        Mutation::Move,
        Mutation::Weaken,
        Mutation::Duplicate,
        Mutation::Parity,
        Mutation::Barrier,
        Mutation::Cta,
    ];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Mutation::Drop => "drop",
            Mutation::Move => "move",
            Mutation::Weaken => "weaken",
            Mutation::Duplicate => "duplicate",
            Mutation::Parity => "parity",
            Mutation::Barrier => "barrier",
            Mutation::Cta => "cta",
        }
    }
}

/// A protocol with a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Which mistake.
    pub mutation: Mutation,
    /// Where, in words.
    pub what: String,
    /// The result.
    pub protocol: Protocol,
}

/// Every mutant of `protocol`, in a fixed order.
pub fn mutants(protocol: &Protocol) -> Vec<Mutant> {
    let mut out = Vec::new();
    for (r, role) in protocol.roles.iter().enumerate() {
        for (s, step) in role.steps.iter().enumerate() {
            for mutation in Mutation::ALL {
                let changed = match mutation {
                    Mutation::Cta => None,
                    _ => changed(protocol, &role.steps, s, mutation),
                };
                let Some(steps) = changed else { continue };
                let mut mutated = protocol.clone();
                mutated.roles[r].steps = steps;
                let what = format!("{} of {} in warp {}, step {s}", mutation.name(), word(step), role.warp);
                out.push(mutant(mutation, what, mutated));
            }
        }
        let mut mutated = protocol.clone();
        mutated.roles[r].cta = 1;
        out.push(mutant(Mutation::Cta, format!("warp {} in the other CTA", role.warp), mutated));
    }
    out
}

fn mutant(mutation: Mutation, what: String, mut protocol: Protocol) -> Mutant {
    protocol.name = format!("{}; {what}", protocol.name);
    Mutant { mutation, what, protocol }
}

/// A kind in one word.
fn word(step: &Step) -> &'static str {
    match step.kind {
        Kind::Frame => "frame",
        Kind::Work => "work",
        Kind::Complete => "tcgen05.wait",
        Kind::Before => "before",
        Kind::After => "after",
        Kind::ProxyFence => "proxy fence",
        Kind::Commit(_) => "commit",
        Kind::Arrive { .. } => "arrival",
        Kind::Wait { .. } => "wait",
    }
}

/// The steps with one changed; nothing where the mutation is not about it.
fn changed(protocol: &Protocol, steps: &[Step], s: usize, mutation: Mutation) -> Option<Vec<Step>> {
    let mut out = steps.to_vec();
    let fixed = matches!(out[s].kind, Kind::Frame | Kind::Work);
    let early = matches!(out[s].kind, Kind::Commit(_) | Kind::Arrive { .. });
    let place = if early { s.checked_sub(1) } else { Some(s + 1) };
    let place = place.filter(|p| !fixed && steps.get(*p).is_some_and(|step| step.kind != Kind::Frame));
    match (mutation, &mut out[s].kind) {
        (Mutation::Drop, _) if !fixed => drop(out.remove(s)),
        (Mutation::Move, _) => out.swap(s, place?),
        (Mutation::Weaken, Kind::Arrive { release: strong, .. } | Kind::Wait { acquire: strong, .. })
            if *strong =>
        {
            *strong = false;
        }
        (Mutation::Duplicate, Kind::Commit(_) | Kind::Arrive { .. }) => out.insert(s, steps[s].clone()),
        (Mutation::Parity, Kind::Wait { parity, .. }) => *parity ^= 1,
        (Mutation::Barrier, Kind::Commit(at) | Kind::Arrive { at, .. } | Kind::Wait { at, .. }) => {
            *at = other(protocol, at)?;
        }
        _ => return None,
    }
    (out != steps).then_some(out)
}

/// The mbarrier declared behind this one, the first behind the last.
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
