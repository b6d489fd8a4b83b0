//! The operations of the register machine on rows of bits.

use super::Machine;
use crate::bits::{self, Row};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Union,
    Inter,
    Diff,
    Complement,
    Seq,
    /// `c & (a ; b)`
    SeqUnder,
    /// `[a] ; b`
    Rows,
    /// `a ; [b]`
    Columns,
    Cross,
    Inverse,
    Plus,
    /// `(a | b)+`, a closed
    PlusOver,
    Star,
    Opt,
    Lift,
    Domain,
    Range,
}

/// An operation with its registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op3 {
    pub(super) op: Op,
    pub(super) out: u32,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
}

impl<const W: usize> Machine<W> {
    pub(super) fn compute(&mut self, op: Op3, set: bool) {
        let n = self.n;
        if n == 0 {
            return;
        }
        let height = if set { 1 } else { n };
        let (before, rest) = self.values.split_at_mut(op.out as usize * n);
        let (out, after) = rest.split_at_mut(n);
        let out = &mut out[..height];
        // A register in use again comes before what it is made of.
        let rows = |r: u32| match r.checked_sub(op.out + 1) {
            None => &before[r as usize * n..][..n],
            Some(r) => &after[r as usize * n..][..n],
        };
        let (a, b) = (rows(op.a), rows(op.b));
        match op.op {
            Op::Union => zip(out, a, b, |x, y| x | y),
            Op::Inter => zip(out, a, b, |x, y| x & y),
            Op::Diff => zip(out, a, b, |x, y| x & !y),
            Op::Complement => {
                let everyone = bits::first::<W>(n);
                for (o, row) in out.iter_mut().zip(a) {
                    *o = bits::minus(&everyone, row);
                }
            }
            Op::Seq => bits::compose(a, b, out),
            Op::SeqUnder => {
                for ((o, row), mask) in out.iter_mut().zip(a).zip(rows(op.c)) {
                    let mut reached = bits::empty();
                    if !bits::is_empty(mask) {
                        for j in bits::iter(row) {
                            bits::or(&mut reached, &b[j]);
                        }
                    }
                    *o = bits::and(&reached, mask);
                }
            }
            Op::Inverse => bits::transpose(a, out),
            Op::Plus => {
                out.copy_from_slice(a);
                bits::close(out);
            }
            Op::PlusOver => {
                out.copy_from_slice(a);
                bits::extend_closed(out, b);
            }
            Op::Star | Op::Opt => {
                out.copy_from_slice(a);
                if matches!(op.op, Op::Star) {
                    bits::close(out);
                }
                for (i, o) in out.iter_mut().enumerate() {
                    bits::set(o, i);
                }
            }
            Op::Rows | Op::Columns | Op::Cross | Op::Lift | Op::Domain | Op::Range => {
                restrict(op.op, a, b, out);
            }
        }
    }
}

/// Between sets and relations: a set is row 0.
fn restrict<const W: usize>(op: Op, a: &[Row<W>], b: &[Row<W>], out: &mut [Row<W>]) {
    match op {
        Op::Rows => {
            for (i, (o, row)) in out.iter_mut().zip(b).enumerate() {
                *o = if bits::has(&a[0], i) { *row } else { bits::empty() };
            }
        }
        Op::Columns => {
            for (o, row) in out.iter_mut().zip(a) {
                *o = bits::and(row, &b[0]);
            }
        }
        Op::Cross => {
            for (i, o) in out.iter_mut().enumerate() {
                *o = if bits::has(&a[0], i) { b[0] } else { bits::empty() };
            }
        }
        Op::Lift => {
            for (i, o) in out.iter_mut().enumerate() {
                *o = bits::empty();
                bits::put(o, i, bits::has(&a[0], i));
            }
        }
        Op::Domain => {
            out[0] = bits::empty();
            for (i, row) in a.iter().enumerate() {
                bits::put(&mut out[0], i, !bits::is_empty(row));
            }
        }
        Op::Range => {
            out[0] = bits::empty();
            for row in a {
                bits::or(&mut out[0], row);
            }
        }
        _ => unreachable!("`compute` does the others"),
    }
}

#[inline]
fn zip<const W: usize>(out: &mut [Row<W>], a: &[Row<W>], b: &[Row<W>], f: impl Fn(u64, u64) -> u64) {
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        for w in 0..W {
            o[w] = f(x[w], y[w]);
        }
    }
}
