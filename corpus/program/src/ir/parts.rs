//! The registers and operands of an instruction, each once, in the order of the text.
//!
//! Every type of instruction says in one table what its parts are and what each is for.
//! Renaming, liveness, dependencies and canonical forms ask the table and need no knowledge of the instructions.

use super::{Address, Guard, Operand, Reg};

/// What an instruction does with something it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Must know it to take place: an address, a count, a mask, a value to compare with.
    Known,
    /// Passes it on: stores it, copies it, computes with it.
    Data,
    /// Hands it to a unit whose values no engine keeps: tensor memory, a product.
    Opaque,
}

/// One place of an instruction that holds a register or an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<O, R> {
    /// A source operand or the base of an address.
    Source(O, Role),
    /// A register that is read and cannot be anything else: a predicate, an element of a vector.
    Read(R, Role),
    /// A register that is written.
    Write(R),
}

/// Things with parts.
pub trait Parts {
    /// Calls `see` with every part.
    fn each(&self, see: &mut impl FnMut(Part<&Operand, &Reg>));

    /// Calls `see(register, written)` with every register, sources first.
    fn registers(&self, see: &mut impl FnMut(Reg, bool)) {
        self.each(&mut |part| match part {
            Part::Source(Operand::Reg(reg), _) | Part::Read(reg, _) => see(*reg, false),
            Part::Source(Operand::Imm(_) | Operand::Address(_), _) | Part::Write(_) => {}
        });
        self.each(&mut |part| {
            if let Part::Write(reg) = part {
                see(*reg, true);
            }
        });
    }

    /// All source operands and bases of addresses.
    fn sources(&self) -> Vec<Operand> {
        let mut out = Vec::new();
        self.each(&mut |part| {
            if let Part::Source(operand, _) = part {
                out.push(*operand);
            }
        });
        out
    }
}

/// Things whose parts can be replaced.
pub trait PartsMut {
    /// Calls `see` with every part.
    fn each(&mut self, see: &mut impl FnMut(Part<&mut Operand, &mut Reg>));
}

/// Implements [`Parts`] and [`PartsMut`] for a type by one expression over `$value`, which is `&self` in the one and
/// `&mut self` in the other. Patterns bind what they bind by reference, so that the same words fit both.
macro_rules! parts_of {
    ($of:ty, |$value:ident, $see:ident| $table:expr) => {
        #[allow(clippy::into_iter_on_ref, reason = "one table for shared and mutable references")]
        impl $crate::ir::Parts for $of {
            fn each(&self, $see: &mut impl FnMut($crate::ir::Part<&$crate::ir::Operand, &$crate::ir::Reg>)) {
                #[allow(unused_imports, reason = "only where a part has parts of its own")]
                use $crate::ir::Parts as _;
                let $value = self;
                $table
            }
        }

        #[allow(clippy::into_iter_on_ref, reason = "one table for shared and mutable references")]
        impl $crate::ir::PartsMut for $of {
            fn each(
                &mut self,
                $see: &mut impl FnMut($crate::ir::Part<&mut $crate::ir::Operand, &mut $crate::ir::Reg>),
            ) {
                #[allow(unused_imports, reason = "only where a part has parts of its own")]
                use $crate::ir::PartsMut as _;
                let $value = self;
                $table
            }
        }
    };
}
pub(crate) use parts_of;

parts_of!(Address, |address, see| {
    let Address { base, .. } = address;
    see(Part::Source(base, Role::Known));
});

parts_of!(Guard, |guard, see| {
    let Guard { reg, .. } = guard;
    see(Part::Read(reg, Role::Known));
});
