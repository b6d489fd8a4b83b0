//! The closed vocabularies of Tile IR: each word, and its number in the bytecode.
//!
//! Source: operations chapter of the Tile IR specification; the numbers are those of its binary format.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$d:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$d])* $variant),+ }

        impl $name {
            /// In the order of the bytecode's numbers.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            /// Their words, in the same order.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// As texts have it.
            pub fn word(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            /// What that word means.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::WORDS.iter().position(|w| *w == word).map(|i| Self::ALL[i])
            }

            /// Number in the bytecode.
            pub fn code(self) -> u8 {
                self as u8
            }

            /// What that number means.
            pub fn from_code(code: u8) -> Option<Self> {
                Self::ALL.get(usize::from(code)).copied()
            }
        }
    };
}

words!(
    /// Memory ordering of an access.
    Order {
        /// No concurrent access is expected; has no scope.
        Weak = "weak",
        /// Strong, orders nothing else.
        Relaxed = "relaxed",
        /// Of reads.
        Acquire = "acquire",
        /// Of writes.
        Release = "release",
        /// Of atomics: both.
        AcqRel = "acq_rel",
    }
);
words!(
    /// Who an access may synchronise with.
    Scope {
        /// The same tile block.
        TileBlock = "tl_blk",
        /// The same GPU.
        Device = "device",
        /// Everything.
        System = "sys",
    }
);
words!(
    /// What an atomic does.
    AtomicMode {
        /// Bitwise.
        And = "and",
        /// Bitwise.
        Or = "or",
        /// Bitwise.
        Xor = "xor",
        /// Of integers.
        Add = "add",
        /// Of floats.
        AddF = "addf",
        /// Signed.
        Max = "max",
        /// Signed.
        Min = "min",
        /// Unsigned.
        UMax = "umax",
        /// Unsigned.
        UMin = "umin",
        /// Exchange.
        Xchg = "xchg",
    }
);
words!(
    /// What a multimem reduction does.
    Reduction {
        /// Sum.
        Add = "add",
        /// Signed.
        Min = "min",
        /// Signed.
        Max = "max",
        /// Bitwise.
        And = "and",
        /// Bitwise.
        Or = "or",
        /// Bitwise.
        Xor = "xor",
        /// Unsigned.
        UMin = "umin",
        /// Unsigned.
        UMax = "umax",
    }
);
words!(
    /// Of `cmpi`.
    Predicate {
        /// =
        Equal = "equal",
        /// ≠
        NotEqual = "not_equal",
        /// <
        Less = "less_than",
        /// ≤
        LessEqual = "less_than_or_equal",
        /// >
        Greater = "greater_than",
        /// ≥
        GreaterEqual = "greater_than_or_equal",
    }
);
words!(
    /// What integer arithmetic promises.
    Overflow {
        /// Nothing: it wraps.
        Wraps = "none",
        /// No signed wrap.
        NoSigned = "no_signed_wrap",
        /// No unsigned wrap.
        NoUnsigned = "no_unsigned_wrap",
        /// Neither.
        No = "no_wrap",
    }
);
words!(
    /// Of float arithmetic.
    Rounding {
        /// The default.
        NearestEven = "nearest_even",
        /// Towards zero.
        Zero = "zero",
        /// Down.
        NegativeInf = "negative_inf",
        /// Up.
        PositiveInf = "positive_inf",
    }
);
words!(
    /// What a view gives outside its tensor.
    Padding {
        /// 0
        Zero = "zero",
        /// -0
        NegZero = "neg_zero",
        /// NaN
        Nan = "nan",
        /// ∞
        PosInf = "pos_inf",
        /// -∞
        NegInf = "neg_inf",
    }
);
words!(
    /// How integers are read.
    Sign {
        /// As natural numbers.
        Unsigned = "unsigned",
        /// In two's complement.
        Signed = "signed",
    }
);
words!(
    /// Arithmetic on floats.
    FloatOp {
        /// `addf`
        Add = "addf",
        /// `subf`
        Sub = "subf",
        /// `mulf`
        Mul = "mulf",
    }
);
words!(
    /// Operations that give a value another type and change no element.
    Convert {
        /// Same elements in the same order, another shape.
        Reshape = "reshape",
        /// Dimensions of one element repeated.
        Broadcast = "broadcast",
        /// The same bits read otherwise.
        Bitcast = "bitcast",
        /// Pointers to something else.
        PtrToPtr = "ptr_to_ptr",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_codes_go_both_ways() {
        for (i, mode) in AtomicMode::ALL.iter().enumerate() {
            assert_eq!(AtomicMode::from_word(mode.word()), Some(*mode));
            assert_eq!(AtomicMode::from_code(u8::try_from(i).unwrap()), Some(*mode));
        }
        assert_eq!((Order::from_word("seq_cst"), Scope::from_code(3)), (None, None));
        assert_eq!((AtomicMode::Xchg.code(), Scope::System.code(), Order::AcqRel.code()), (9, 2, 4));
    }
}
