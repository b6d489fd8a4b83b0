//! Qualifiers of plain accesses and arithmetic, each at most once, and the memory orders they form.

use super::reader::Reader;
use crate::ir::*;
use crate::text::print::ATOM_OPS;
use crate::text::scan::{Parsed, closest};

/// The qualifiers that were read.
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

/// Groups of qualifiers that an instruction can have, beside its type.
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

pub(super) const ORDERS: [&str; 7] =
    ["weak", "relaxed", "acquire", "release", "acq_rel", "seq_cst", "volatile"];

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
            // Each kind of qualifier may occur once: is this the first of its kind?
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
                return self.fail(format!("`.{word}` follows another qualifier of its kind"), None);
            }
        }
        Ok(q)
    }

    fn stranger<T>(&self, word: &str) -> Parsed<T> {
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

    pub(super) fn ty(&self, q: &Qualifiers<'_>) -> Parsed<Ty> {
        match q.ty {
            Some(ty) => Ok(ty),
            None => self.fail("this instruction needs a type".into(), Some("for example `.u32`".into())),
        }
    }

    pub(super) fn scope(&self, q: &Qualifiers<'_>) -> Parsed<Scope> {
        match q.scope {
            Some(scope) => Ok(scope),
            None => {
                self.fail("this order needs a scope".into(), Some("add .cta, .cluster, .gpu or .sys".into()))
            }
        }
    }

    pub(super) fn load_order(&self, q: &Qualifiers<'_>) -> Parsed<LoadOrder> {
        let no_scope = q.scope.is_none();
        if q.mmio && q.scope != Some(Scope::Sys) {
            return self.fail("mmio is for the system scope".into(), Some("write .sys".into()));
        }
        Ok(match (q.order, q.mmio) {
            (Some("relaxed"), true) => LoadOrder::MmioRelaxed,
            (Some("acquire"), true) => LoadOrder::MmioAcquire,
            (Some("relaxed"), false) => LoadOrder::Relaxed(self.scope(q)?),
            (Some("acquire"), false) => LoadOrder::Acquire(self.scope(q)?),
            (Some("seq_cst"), false) => LoadOrder::SeqCst(self.scope(q)?),
            (Some("volatile"), false) if no_scope => LoadOrder::Volatile,
            (None | Some("weak"), false) if no_scope => LoadOrder::Weak,
            (None | Some("weak" | "volatile"), false) => {
                return self.fail("a weak or volatile access takes no scope".into(), None);
            }
            _ => {
                return self.fail(
                    "this is not an order of a load".into(),
                    Some("use .weak, .relaxed, .acquire or .volatile".into()),
                );
            }
        })
    }

    pub(super) fn store_order(&self, q: &Qualifiers<'_>) -> Parsed<StoreOrder> {
        let no_scope = q.scope.is_none();
        if q.mmio && q.scope != Some(Scope::Sys) {
            return self.fail("mmio is for the system scope".into(), Some("write .sys".into()));
        }
        Ok(match (q.order, q.mmio) {
            (Some("relaxed"), true) => StoreOrder::MmioRelaxed,
            (Some("release"), true) => StoreOrder::MmioRelease,
            (Some("relaxed"), false) => StoreOrder::Relaxed(self.scope(q)?),
            (Some("release"), false) => StoreOrder::Release(self.scope(q)?),
            (Some("seq_cst"), false) => StoreOrder::SeqCst(self.scope(q)?),
            (Some("volatile"), false) if no_scope => StoreOrder::Volatile,
            (None | Some("weak"), false) if no_scope => StoreOrder::Weak,
            (None | Some("weak" | "volatile"), false) => {
                return self.fail("a weak or volatile access takes no scope".into(), None);
            }
            _ => {
                return self.fail(
                    "this is not an order of a store".into(),
                    Some("use .weak, .relaxed, .release or .volatile".into()),
                );
            }
        })
    }

    pub(super) fn rmw_order(&self, q: &Qualifiers<'_>, red: bool) -> Parsed<RmwOrder> {
        Ok(match q.order {
            None | Some("relaxed") => RmwOrder::Relaxed,
            Some("release") => RmwOrder::Release,
            Some("acquire") if !red => RmwOrder::Acquire,
            Some("acq_rel") if !red => RmwOrder::AcqRel,
            Some("seq_cst") if !red => RmwOrder::SeqCst,
            _ if red => {
                return self.fail("red is relaxed or release".into(), Some("use atom for an acquire".into()));
            }
            _ => return self.fail("this is not an order of atom".into(), None),
        })
    }

    pub(super) fn only_type(&self, words: &[&str]) -> Parsed<Ty> {
        let q = self.qualifiers(words, PLAIN)?;
        self.ty(&q)
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

/// A type without its dot.
pub(super) fn parse_type(word: &str) -> Option<Ty> {
    let number = |rest: &str, widths: &[u8]| rest.parse::<u8>().ok().filter(|n| widths.contains(n));
    match word {
        "pred" => return Some(Ty::Pred),
        "f16x2" => return Some(Ty::F16x2),
        "bf16x2" => return Some(Ty::Bf16x2),
        _ => {}
    }
    let (kind, rest) = word.split_at_checked(1)?;
    match kind {
        "b" => number(rest, &[8, 16, 32, 64, 128]).map(Ty::B),
        "u" => number(rest, &[8, 16, 32, 64]).map(Ty::U),
        "s" => number(rest, &[8, 16, 32, 64]).map(Ty::S),
        "f" => number(rest, &[16, 32, 64]).map(Ty::F),
        _ => None,
    }
}
