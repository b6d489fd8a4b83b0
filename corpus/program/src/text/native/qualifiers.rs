//! Qualifiers of arithmetic and of accesses of tile blocks, each at most once.

use super::reader::Reader;
use crate::ir::*;
use crate::text::print::ATOM_OPS;
use crate::text::scan::{Parsed, closest};

/// The qualifiers that were read.
#[derive(Default)]
pub(super) struct Qualifiers<'w> {
    pub(super) order: Option<&'w str>,
    pub(super) scope: Option<Scope>,
    pub(super) ty: Option<Ty>,
    pub(super) op: Option<AtomOp>,
    pub(super) lo: bool,
}

/// Groups of qualifiers that an instruction can have, beside its type.
#[derive(Clone, Copy, Default)]
pub(super) struct Takes {
    /// Order and scope.
    pub(super) access: bool,
    pub(super) op: bool,
    pub(super) lo: bool,
}

pub(super) const PLAIN: Takes = Takes { access: false, op: false, lo: false };

const ORDERS: [&str; 5] = ["weak", "relaxed", "acquire", "release", "acq_rel"];

impl Reader<'_, '_> {
    pub(super) fn qualifiers<'w>(&self, words: &[&'w str], takes: Takes) -> Parsed<Qualifiers<'w>> {
        let mut q = Qualifiers::default();
        for word in words {
            // Each kind of qualifier may occur once: is this the first of its kind?
            let new = if ORDERS.contains(word) && takes.access {
                q.order.replace(word).is_none()
            } else if let Some(scope) = scope_of(word).filter(|_| takes.access) {
                q.scope.replace(scope).is_none()
            } else if let Some(ty) = parse_type(word) {
                q.ty.replace(ty).is_none()
            } else if let Some((_, op)) = ATOM_OPS.iter().find(|(w, _)| w == word && takes.op) {
                q.op.replace(*op).is_none()
            } else if *word == "lo" && takes.lo {
                !std::mem::replace(&mut q.lo, true)
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
        let mut known = vec!["cta", "cluster", "gpu", "sys", "b32", "u32", "s32", "b64"];
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

    pub(super) fn only_type(&self, words: &[&str]) -> Parsed<Ty> {
        let q = self.qualifiers(words, PLAIN)?;
        self.ty(&q)
    }
}

fn scope_of(word: &str) -> Option<Scope> {
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
