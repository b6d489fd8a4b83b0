//! The closed vocabularies of Tile IR: each word and its number in the bytecode.
//!
//! Source: operations chapter of the Tile IR specification; the numbers are those of its binary format.

/// A vocabulary: what its words say, the words in the order of their numbers, and how an operation states one.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) what: &'static str,
    pub(crate) words: &'static [&'static str],
    pub(crate) stated: Stated,
}

/// How an operation states a word.
#[derive(Debug)]
pub(crate) enum Stated {
    /// `word`
    Bare,
    /// `name<word>`; nothing for the first word.
    Named(&'static str),
    /// `attributes {name = #kind<word>}`; nothing for the first word.
    Attribute(&'static str, &'static str),
}

/// A word of any vocabulary.
pub(crate) trait Word {
    fn vocabulary(&self) -> &'static Vocabulary;
    /// Its number.
    fn number(&self) -> u8;
    /// Becomes the word with this number; `false` if there is none.
    fn become_number(&mut self, number: u8) -> bool;
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident $what:literal ($($stated:tt)+) {
        $(#[$d0:meta])* $first:ident = $word0:literal $(, $(#[$d:meta])* $variant:ident = $word:literal)* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { #[default] $(#[$d0])* $first $(, $(#[$d])* $variant)* }

        impl $name {
            /// All variants, in the order of their numbers in the bytecode.
            pub const ALL: &'static [$name] = &[$name::$first $(, $name::$variant)*];
            /// The words, in the same order.
            pub const WORDS: &'static [&'static str] = &[$word0 $(, $word)*];

            /// The word in texts.
            pub fn word(self) -> &'static str {
                Self::WORDS[self as usize]
            }

            /// The variant with this word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::WORDS.iter().position(|w| *w == word).map(|i| Self::ALL[i])
            }

            /// The number in the bytecode.
            pub fn code(self) -> u8 {
                self as u8
            }

            /// The variant with this number.
            pub fn from_code(code: u8) -> Option<Self> {
                Self::ALL.get(usize::from(code)).copied()
            }
        }

        impl Word for $name {
            fn vocabulary(&self) -> &'static Vocabulary {
                &Vocabulary { what: $what, words: $name::WORDS, stated: Stated::$($stated)+ }
            }

            fn number(&self) -> u8 {
                self.code()
            }

            fn become_number(&mut self, number: u8) -> bool {
                Self::from_code(number).map(|word| *self = word).is_some()
            }
        }
    };
}

words!(
    /// Memory ordering of an access.
    Order "memory ordering" (Bare) {
        /// No concurrent access is expected. Has no scope.
        Weak = "weak",
        /// Strong, but orders no other access.
        Relaxed = "relaxed",
        /// For reads.
        Acquire = "acquire",
        /// For writes.
        Release = "release",
        /// Both, for atomics.
        AcqRel = "acq_rel",
    }
);
words!(
    /// The threads that an access may synchronise with.
    Scope "memory scope" (Bare) {
        /// The same tile block.
        TileBlock = "tl_blk",
        /// The same GPU.
        Device = "device",
        /// The whole system.
        System = "sys",
    }
);
words!(
    /// The operation of an atomic.
    AtomicMode "atomic operation" (Bare) {
        /// Bitwise.
        And = "and",
        /// Bitwise.
        Or = "or",
        /// Bitwise.
        Xor = "xor",
        /// Integer sum.
        Add = "add",
        /// Float sum.
        AddF = "addf",
        /// Signed maximum.
        Max = "max",
        /// Signed minimum.
        Min = "min",
        /// Unsigned maximum.
        UMax = "umax",
        /// Unsigned minimum.
        UMin = "umin",
        /// Exchange.
        Xchg = "xchg",
    }
);
words!(
    /// The operation of a multimem reduction.
    Reduction "reduction" (Attribute("reduction", "cuda_tile.multimem_reduction_kind")) {
        /// Sum.
        Add = "add",
        /// Signed minimum.
        Min = "min",
        /// Signed maximum.
        Max = "max",
        /// Bitwise.
        And = "and",
        /// Bitwise.
        Or = "or",
        /// Bitwise.
        Xor = "xor",
        /// Unsigned minimum.
        UMin = "umin",
        /// Unsigned maximum.
        UMax = "umax",
    }
);
words!(
    /// The predicate of a `cmpi`.
    Predicate "comparison" (Bare) {
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
    /// The promise of integer arithmetic about overflow.
    Overflow "promise about overflow" (Named("overflow")) {
        /// No promise; the result wraps.
        Wraps = "none",
        /// No signed wrap.
        NoSigned = "no_signed_wrap",
        /// No unsigned wrap.
        NoUnsigned = "no_unsigned_wrap",
        /// No wrap of either kind.
        No = "no_wrap",
    }
);
words!(
    /// The rounding of float arithmetic.
    Rounding "rounding" (Named("rounding")) {
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
    /// The value that a view gives outside its tensor.
    Padding "padding" (Bare) {
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
    /// The signedness of integers.
    Sign "signedness" (Bare) {
        /// Natural numbers.
        Unsigned = "unsigned",
        /// Two's complement.
        Signed = "signed",
    }
);
words!(
    /// Arithmetic on floats.
    FloatOp "operation" (Bare) {
        /// `addf`
        Add = "addf",
        /// `subf`
        Sub = "subf",
        /// `mulf`
        Mul = "mulf",
    }
);
words!(
    /// Operations that change the type of a value and no bit of its elements.
    Convert "operation" (Bare) {
        /// The same elements in the same order, in another shape.
        Reshape = "reshape",
        /// Repeats dimensions of extent one.
        Broadcast = "broadcast",
        /// The same bits as another type.
        Bitcast = "bitcast",
        /// The same addresses with another pointee type.
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
