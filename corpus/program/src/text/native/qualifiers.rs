//! Qualifiers of an instruction: what may stand between the dots, each at most once.

use super::*;

/// What the dotted words of an access say.
#[derive(Default)]
pub(super) struct Qualifiers<'w> {
    pub(super) order: Option<&'w str>,
    pub(super) mmio: bool,
    pub(super) scope: Option<Scope>,
    pub(super) space: Option<Space>,
    pub(super) vector: Option<usize>,
    pub(super) ty: Option<Ty>,
    pub(super) op: Option<AtomOp>,
    pub(super) lo: bool,
}

/// Groups of qualifiers an instruction takes; a type always.
#[derive(Clone, Copy, Default)]
pub(super) struct Takes {
    /// Order, scope and state space.
    pub(super) access: bool,
    pub(super) mmio: bool,
    pub(super) vector: bool,
    pub(super) op: bool,
    pub(super) lo: bool,
}

pub(super) const ACCESS: Takes = Takes { access: true, mmio: true, vector: true, op: false, lo: false };
pub(super) const UPDATE: Takes = Takes { access: true, mmio: false, vector: false, op: true, lo: false };
pub(super) const PLAIN: Takes = Takes { access: false, mmio: false, vector: false, op: false, lo: false };

pub(super) const ORDERS: [&str; 6] = ["weak", "relaxed", "acquire", "release", "acq_rel", "volatile"];

impl Reader<'_, '_> {
    pub(super) fn qualifiers<'w>(&self, words: &[&'w str], takes: Takes) -> Parsed<Qualifiers<'w>> {
        let mut q = Qualifiers::default();
        for word in words {
            let space = match *word {
                "global" => Some(Space::Global),
                "shared" | "shared::cta" => Some(Space::SharedCta),
                "shared::cluster" => Some(Space::SharedCluster),
                _ => None,
            };
            let vector =
                word.strip_prefix('v').and_then(|n| n.parse().ok()).filter(|n| [2, 4, 8].contains(n));
            // Each kind of qualifier stands once; the answer is whether this one is new.
            let new = if ORDERS.contains(word) && takes.access {
                q.order.replace(word).is_none()
            } else if *word == "mmio" && takes.mmio {
                !std::mem::replace(&mut q.mmio, true)
            } else if let Some(scope) = scope_of(word).filter(|_| takes.access) {
                q.scope.replace(scope).is_none()
            } else if let Some(space) = space.filter(|_| takes.access) {
                q.space.replace(space).is_none()
            } else if let Some(vector) = vector.filter(|_| takes.vector) {
                q.vector.replace(vector).is_none()
            } else if let Some(ty) = parse_type(word) {
                q.ty.replace(ty).is_none()
            } else if let Some((_, op)) = ATOM_OPS.iter().find(|(w, _)| w == word && takes.op) {
                q.op.replace(*op).is_none()
            } else if *word == "lo" && takes.lo {
                !std::mem::replace(&mut q.lo, true)
            } else if matches!(*word, "uni" | "noftz") {
                true
            } else {
                return self.stranger(word);
            };
            if !new {
                return self.fail(format!("`.{word}` comes on top of another of its kind"), None);
            }
        }
        Ok(q)
    }

    pub(super) fn stranger<T>(&self, word: &str) -> Parsed<T> {
        let mut known = vec![
            "cta",
            "cluster",
            "gpu",
            "sys",
            "global",
            "shared::cta",
            "shared::cluster",
            "mmio",
            "b32",
            "u32",
            "s32",
            "b64",
        ];
        known.extend(ORDERS);
        let hint = closest(word, &known).filter(|k| *k != word).map(|k| format!("did you mean `.{k}`?"));
        self.fail(format!("`.{word}` is not a qualifier of this instruction"), hint)
    }
}

pub(super) fn scope_of(word: &str) -> Option<Scope> {
    match word {
        "cta" => Some(Scope::Cta),
        "cluster" => Some(Scope::Cluster),
        "gpu" => Some(Scope::Gpu),
        "sys" => Some(Scope::Sys),
        _ => None,
    }
}
