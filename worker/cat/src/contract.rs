//! What a model declares to the engines beside its axioms, in lines of its text.
//!
//! - `(*| feature NAME : .. *)`: the model gives meaning to a part of the language. Engines abstain from programs that use
//!   a part without meaning.
//! - `(*| setting NAME = VALUE : .. *)`: how the engines run programs where readings differ. The value may depend on
//!   switches, `if "Q2=A" then whole else halves`. A setting that is not declared has its first value.
//! - `(*| licence NAME = RELATION by CHECK : .. *)`: what the explorer may rely on when it prunes ([`crate::licence`]).
//!
//! No engine knows a model by the name of a switch or a definition.

/// Declares an enum whose values have words in model texts.
macro_rules! words {
    ($(#[$doc:meta])+ $name:ident { $($(#[$value_doc:meta])+ $value:ident = $word:literal,)+ }) => {
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$value_doc])+ $value,)+ }

        impl $name {
            /// All values, in the order of their declaration.
            pub const ALL: [Self; [$($word,)+].len()] = [$(Self::$value,)+];

            /// The word a model text has for it.
            pub fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        }
    };
}
pub(crate) use words;

/// Declares the settings: an enum each, and [`Settings`] with a field each. The first value is the default.
macro_rules! settings {
    ($($(#[$doc:meta])+ $field:ident: $type:ident = $name:literal { $($(#[$value_doc:meta])+ $value:ident = $word:literal,)+ })+) => {
        $(
            words! { $(#[$doc])+ $type { $($(#[$value_doc])+ $value = $word,)+ } }

            impl Default for $type {
                fn default() -> Self {
                    Self::ALL[0]
                }
            }
        )+

        /// How engines run programs under a model.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Settings { $($(#[$doc])+ pub $field: $type,)+ }

        impl Settings {
            /// Every setting with its values; the first one holds where nothing is declared.
            pub const ALL: &[(&str, &[&str])] = &[$(($name, &[$($word,)+]),)+];

            /// Changes a setting; false when there is no such setting or value.
            pub(crate) fn set(&mut self, name: &str, word: &str) -> bool {
                match (name, word) {
                    $($(($name, $word) => self.$field = $type::$value,)+)+
                    _ => return false,
                }
                true
            }

            /// Names and values of all settings.
            pub fn words(&self) -> Vec<(&'static str, &'static str)> {
                vec![$(($name, self.$field.word()),)+]
            }
        }
    };
}

settings! {
    /// Which writes coherence orders.
    coherence: Coherence = "coherence" {
        /// Total in a model of a user that does not say which, partial in others; settled when the model is loaded.
        Asked = "asked",
        /// Those that the checks of the model ask for.
        Partial = "partial",
        /// Every two to a common byte, as in herd.
        Total = "total",
    }
    /// 128-bit loads and stores.
    wide_accesses: WideAccesses = "wide-accesses" {
        /// Two operations of 64 bits.
        Halves = "halves",
        /// One operation.
        Whole = "whole",
    }
    /// A compare-and-swap whose comparison fails.
    failed_cas: FailedCas = "failed-cas" {
        /// Writes nothing.
        Reads = "reads",
        /// Writes the old value back.
        WritesBack = "writes-back",
    }
    /// The reach of a control dependency.
    control: Control = "control-dependency" {
        /// Every later event.
        Lasts = "lasts",
        /// Events up to the point where the arms of the branch meet.
        Reconverges = "reconverges",
    }
    /// What an instruction depends on.
    dependencies: Dependencies = "dependencies" {
        /// Every register that it reads.
        Registers = "registers",
        /// What some value of a read can change (`moire_execution::settled`).
        Values = "values",
    }
    /// The tokens that an `if` of a tile block yields.
    yielded_tokens: YieldedTokens = "yielded-tokens" {
        /// Those of the arm that ran.
        OfArm = "of-arm",
        /// Those of both arms.
        OfBoth = "of-both",
    }
    /// Lanes of an accumulator that the mask of a product leaves out.
    masked_lanes: MaskedLanes = "masked-lanes" {
        /// Are not accessed.
        Untouched = "untouched",
        /// Are written with what they hold.
        Written = "written",
    }
    /// Whether `dealloc` and `relinquish` of a pair of CTAs wait for the other CTA.
    pair_release: PairRelease = "pair-release" {
        /// They wait or do not, one way an execution.
        Either = "either",
        /// They never wait.
        Alone = "alone",
        /// They always wait.
        Together = "together",
    }
    /// Lanes that have exited and that the mask of `bar.warp.sync` names.
    exited_lanes: ExitedLanes = "exited-lanes" {
        /// Are waited for, for ever.
        Awaited = "hang",
        /// Are not waited for.
        Skipped = "skip",
    }
    /// What `dealloc` may give back.
    deallocation: Deallocation = "deallocation" {
        /// A whole allocation.
        Whole = "whole",
        /// Also a part of one.
        Parts = "parts",
    }
}

words! {
    /// A part of the language that only some models give meaning to.
    Feature {
        /// Tile blocks. Of PTX such a model knows plain accesses and fences only.
        TileBlocks = "tile-blocks",
        /// Tensor memory and the instructions of `tcgen05`.
        TensorCores = "tensor-cores",
        /// Asynchronous copies, warpgroup products and launch control.
        Copies = "copies",
        /// Barriers that threads give different counts, which takes an order of execution to judge.
        MixedCounts = "mixed-counts",
        /// Accesses of order seq_cst, which source programs have and PTX has not.
        SeqCstAccesses = "seq-cst-accesses",
    }
}
