//! Which instructions litmus texts take from the book, and their operands as engines take them.
//!
//! A new one is a name in the list, and a function here if engines execute it.

use super::book::{book_address, book_operand, book_register};
use super::{Address, Book, Operand, Reg, Space, Ty};
use crate::limits::RANGE_BYTES;
use moire_isa::kinds::{CtaSpace, Half, Num, TernaryForm};
use moire_isa::operand::Role;
use moire_isa::{Instr, Tagged};

macro_rules! told {
    ($($id:ident),+ $(,)?) => {
        /// Which instruction it is.
        #[derive(Clone, Copy, Debug)]
        pub enum Told<'i> { $(#[doc = concat!("[`moire_isa::", stringify!($id), "`]")] $id(&'i moire_isa::$id)),+ }

        /// Tags of the entries that litmus texts take from the book.
        pub const TOLD: &[u16] = &[$(<moire_isa::$id as Tagged>::TAG),+];

        impl Book {
            /// An instruction that litmus texts take from the book. None of them reads and writes one operand, because a
            /// part of an instruction is one or the other.
            #[must_use]
            pub fn new(instr: Instr) -> Option<Book> {
                let entry = instr.entry();
                let updates = entry.operands.iter().any(|operand| operand.role == Role::Update);
                (TOLD.contains(&entry.tag) && !updates).then(|| Book(Box::new(instr)))
            }

            /// Which instruction it is.
            ///
            /// # Panics
            /// Never: [`Book::new`] takes no other.
            #[must_use]
            pub fn told(&self) -> Told<'_> {
                match &*self.0 {
                    $(Instr::$id(instr) => Told::$id(instr),)+
                    other => unreachable!("`{}` is not told by the book alone", other.name()),
                }
            }
        }
    };
}
told!(StBulk, MbarrierPending, Ternary);

/// Zeros are stored so many bytes at a time: the size of a range is a multiple of it.
pub const RANGE_PIECE: u32 = 8;

impl Book {
    /// The range that `st.bulk` fills with zeros: its state space, its start and its bytes, a multiple of 8. `None` for a size
    /// that is no number or is beyond [`RANGE_BYTES`].
    #[must_use]
    pub fn range(&self) -> Option<(Space, Address, u32)> {
        let Told::StBulk(st) = self.told() else { return None };
        let Some(Operand::Imm(bytes)) = book_operand(&st.bytes) else { return None };
        let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes <= RANGE_BYTES)?;
        let space = match st.space {
            CtaSpace::Generic => Space::Generic,
            CtaSpace::SharedCta => Space::SharedCta,
        };
        Some((space, book_address(&st.addr)?, bytes))
    }

    /// The type of `mad.lo`, the register that it writes, the two factors and what is added. `None` for any other form.
    #[must_use]
    pub fn product(&self) -> Option<(Ty, Reg, [Operand; 3])> {
        let Told::Ternary(i) = self.told() else { return None };
        let plain = i.form == TernaryForm::Mad && i.half == Some(Half::Lo) && !i.sat.is() && !i.carry.is();
        let ty = match i.ty.first {
            Num::U16 => Ty::U(16),
            Num::U32 => Ty::U(32),
            Num::U64 => Ty::U(64),
            Num::S16 => Ty::S(16),
            Num::S32 => Ty::S(32),
            Num::S64 => Ty::S(64),
            _ => return None,
        };
        let [a, b, c] = [&i.a, &i.b, &i.c].map(book_operand);
        plain.then_some((ty, book_register(i.dst.reg()?), [a?, b?, c?]))
    }
}
