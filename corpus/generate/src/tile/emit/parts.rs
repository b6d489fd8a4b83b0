//! Addresses, values, masks and tokens of accesses.

use super::super::plan::{Access, Combine, HALF, Mapping, Mask, Role, STRIDE, Source, Turn, Wait, Where};
use super::{Emit, Number, Read, numbers, row};
use moire_tile_ir::{Constant, Elem, IntegerOp, Op, Overflow, Predicate, Scalar, Sign, Type, Value};

impl Emit<'_> {
    /// The number of elements before the first of a tile.
    pub(super) fn first(&mut self, place: &Where) -> Number {
        self.counted(place, 1)
    }

    /// The number of elements before the first of a tile, in units that divide each of its parts.
    pub(super) fn counted(&mut self, place: &Where, unit: u32) -> Number {
        let mut sum = Number::Known(place.at / unit);
        if place.turn != Turn::Fixed {
            let mut part = self.block;
            if place.turn == Turn::Other {
                let last = self.constant(Scalar::I32, 0, u64::from(self.plan.blocks - 1));
                part = self.integer(IntegerOp::Sub(Overflow::Wraps), last, part);
            }
            sum = self.add(sum, part, STRIDE / unit);
        }
        if let (Some((counter, _)), true) = (self.turn, place.step > 0) {
            sum = self.add(sum, counter, place.step / unit);
        }
        sum
    }

    pub(super) fn add(&mut self, sum: Number, value: Value, times: u32) -> Number {
        let mut value = value;
        if times != 1 {
            let times = self.constant(Scalar::I32, 0, u64::from(times));
            value = self.integer(IntegerOp::Mul(Overflow::Wraps), value, times);
        }
        let before = match sum {
            Number::Known(0) => return Number::Computed(value),
            Number::Known(n) => self.constant(Scalar::I32, 0, u64::from(n)),
            Number::Computed(before) => before,
        };
        Number::Computed(self.integer(IntegerOp::Add(Overflow::Wraps), before, value))
    }

    /// Pointers to all elements of a tile that starts `first` elements after `base`.
    pub(super) fn pointers(
        &mut self,
        base: Value,
        elem: Scalar,
        first: Number,
        width: u32,
        mapping: Mapping,
    ) -> Value {
        let to = Elem::pointer(elem);
        let offset = match first {
            Number::Known(0) => None,
            Number::Known(n) => Some(self.constant(Scalar::I32, 0, u64::from(n))),
            Number::Computed(value) => Some(value),
        };
        let mut pointer = base;
        if let Some(offset) = offset {
            pointer = self.op(Op::Offset { pointer, offset }, row(to, 0));
        }
        if width == 0 {
            return pointer;
        }
        let pointer = self.splat(pointer, to, width);
        match self.index(mapping, width) {
            Some(offset) => self.op(Op::Offset { pointer, offset }, row(to, width)),
            None => pointer,
        }
    }

    pub(super) fn index(&mut self, mapping: Mapping, width: u32) -> Option<Value> {
        let wraps = Overflow::Wraps;
        if mapping == Mapping::One {
            return None;
        }
        let last = u64::from(width.max(1) - 1);
        let ends = (mapping == Mapping::Reversed).then(|| self.constant(Scalar::I32, width, last));
        let iota = self.op(Op::Iota, numbers(Scalar::I32, width));
        let with = |emit: &mut Self, op, value: u32| {
            let b = emit.constant(Scalar::I32, width, u64::from(value));
            emit.integer(op, iota, b)
        };
        Some(match mapping {
            Mapping::InOrder | Mapping::One => iota,
            Mapping::Reversed => self.integer(IntegerOp::Sub(wraps), ends.unwrap_or(iota), iota),
            Mapping::Shifted(k) => with(self, IntegerOp::Add(wraps), k),
            Mapping::Rotated(k) => {
                let moved = with(self, IntegerOp::Add(wraps), k);
                let mask = self.constant(Scalar::I32, width, last);
                self.integer(IntegerOp::And, moved, mask)
            }
            Mapping::Spread => with(self, IntegerOp::Mul(wraps), 2),
            Mapping::Pairs => with(self, IntegerOp::Shr(Sign::Unsigned), 1),
        })
    }

    /// An earlier value read with this type, counted from the last. A scalar is repeated in all elements of a tile.
    pub(super) fn earlier(&mut self, which: u8, elem: Scalar, width: u32) -> Option<Value> {
        let fits = |r: &&Read| r.elem == elem && (r.width == width || r.width == 0);
        let read = self.seen.reads.iter().rev().filter(fits).nth(usize::from(which)).copied()?;
        Some(if read.width == width { read.value } else { self.splat(read.value, Elem::Scalar(elem), width) })
    }

    pub(super) fn combined(
        &mut self,
        value: Value,
        how: Combine,
        with: u64,
        elem: Scalar,
        width: u32,
    ) -> Value {
        let op = match how {
            Combine::Not => return value,
            // The same for a bit.
            Combine::Add if elem == Scalar::I1 => IntegerOp::Xor,
            Combine::Add => IntegerOp::Add(Overflow::Wraps),
            Combine::Xor => IntegerOp::Xor,
            Combine::And => IntegerOp::And,
            Combine::Or => IntegerOp::Or,
        };
        let with = self.constant(elem, width, with);
        self.integer(op, value, with)
    }

    pub(super) fn source(&mut self, source: Source, elem: Scalar, width: u32) -> Value {
        match source {
            Source::Constant(value) => self.constant(elem, width, value),
            Source::Counted(from) if elem == HALF => {
                let bits = (from..).take(width as usize).map(|value| value & elem.mask()).collect();
                self.op(Op::Constant(Constant { bits }), numbers(elem, width))
            }
            Source::Counted(from) if width > 0 && elem != Scalar::I1 => {
                let iota = self.op(Op::Iota, numbers(elem, width));
                self.combined(iota, Combine::Add, from, elem, width)
            }
            Source::Counted(value) => self.constant(elem, width, value),
            Source::Read(which, how, with) => match self.earlier(which, elem, width) {
                Some(value) => self.combined(value, how, with, elem, width),
                None => self.constant(elem, width, with),
            },
            Source::Block(value) if elem == Scalar::I32 => {
                let number = self.combined(self.block, Combine::Add, value, elem, 0);
                self.splat(number, Elem::Scalar(elem), width)
            }
            Source::Block(value) => self.constant(elem, width, value),
        }
    }

    pub(super) fn mask(&mut self, mask: Mask, width: u32) -> Option<Value> {
        let compared = |emit: &mut Self, predicate, value: Value, with: u32| {
            let read = Read { value, elem: Scalar::I32, width };
            emit.compare(predicate, read, u64::from(with))
        };
        match mask {
            Mask::All => None,
            Mask::On => Some(self.constant(Scalar::I1, width, 1)),
            Mask::Off => Some(self.constant(Scalar::I1, width, 0)),
            Mask::Read(which, with) => {
                let value = self.earlier(which, Scalar::I32, width)?;
                let with = u32::try_from(with).unwrap_or(0);
                Some(compared(self, Predicate::NotEqual, value, with))
            }
            Mask::Below(_) | Mask::Odd if width == 0 => None,
            Mask::Below(n) => {
                let iota = self.op(Op::Iota, numbers(Scalar::I32, width));
                Some(compared(self, Predicate::Less, iota, n))
            }
            Mask::Odd => {
                let iota = self.op(Op::Iota, numbers(Scalar::I32, width));
                let low = self.combined(iota, Combine::And, 1, Scalar::I32, width);
                Some(compared(self, Predicate::Equal, low, 1))
            }
        }
    }

    pub(super) fn waits(&mut self, wait: Wait) -> Option<Value> {
        let tokens = &self.seen.tokens;
        match wait {
            Wait::Nothing => None,
            Wait::Last => tokens.last().copied(),
            Wait::Earlier(n) => tokens.iter().rev().nth(usize::from(n)).or(tokens.first()).copied(),
            Wait::New => Some(self.op(Op::MakeToken, Type::Token)),
            Wait::Joined(n) => {
                let several: Vec<Value> = tokens.iter().rev().take(n).copied().collect();
                self.join(several)
            }
        }
    }

    pub(super) fn join(&mut self, mut tokens: Vec<Value>) -> Option<Value> {
        tokens.sort_unstable();
        tokens.dedup();
        match tokens[..] {
            [] => None,
            [one] => Some(one),
            _ => Some(self.op(Op::JoinTokens(tokens), Type::Token)),
        }
    }

    /// The token that an access waits for. An access to a private parameter always waits for the previous one.
    pub(super) fn token(&mut self, access: &Access) -> Option<Value> {
        let chain = self.seen.chains.get(&access.place.param).copied();
        let wait = self.waits(access.wait);
        match (chain, wait) {
            (Some(chain), Some(wait)) => self.join(vec![chain, wait]),
            (chain, wait) => chain.or(wait),
        }
    }

    pub(super) fn role(&self, param: usize) -> Role {
        self.plan.params.get(param).map_or(Role::Shared, |p| p.role)
    }

    pub(super) fn leaves(&mut self, access: &Access, token: Value) {
        self.seen.tokens.push(token);
        if self.role(access.place.param) == Role::Private {
            self.seen.chains.insert(access.place.param, token);
        }
    }
}
