//! Kinds of qualifiers: each is an enumeration whose rows tell word, stable tag, first version, and next weaker values.
//!
//! A kind is constant data. What reads, prints, compares and steps works on this data, once, and not for each type anew.

/// Which targets have something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All.
    Any,
    /// This number and greater ones.
    From(u16),
    /// These.
    Only(&'static [u16]),
}

impl On {
    /// Whether a target, such as 90 for `sm_90a`, has it.
    #[must_use]
    pub fn has(self, sm: u16) -> bool {
        match self {
            On::Any => true,
            On::From(least) => sm >= least,
            On::Only(some) => some.contains(&sm),
        }
    }
}

/// Since which `.version` (83 is 8.3), and on which targets.
pub type Since = (u16, On);

/// From the beginning, everywhere. Older versions than 7.0 know no target of today.
pub const EVER: Since = (70, On::Any);

/// One word of a kind.
#[derive(Debug)]
pub struct Row {
    /// The word without its dot.
    pub word: &'static str,
    /// Tag of the value it means.
    pub tag: u8,
    /// Who has the word.
    pub since: Since,
}

/// A kind as data.
#[derive(Debug)]
pub struct Kind {
    /// What no word means; `None`: a word must stand.
    pub default: Option<u8>,
    /// All words; the first of a value is its usual one.
    pub rows: &'static [Row],
    /// All values, each with those one step weaker.
    pub values: &'static [(u8, &'static [u8])],
}

impl Kind {
    /// The row of a word.
    #[must_use]
    pub fn row(&self, word: &str) -> Option<&'static Row> {
        self.rows.iter().find(|row| row.word == word)
    }

    /// The usual row of a value; none if only the absence of a word means it.
    #[must_use]
    pub fn usual(&self, tag: u8) -> Option<&'static Row> {
        self.rows.iter().find(|row| row.tag == tag)
    }

    /// All words.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().map(|row| row.word)
    }

    /// The values one step weaker, or all others.
    #[must_use]
    pub fn steps(&self, tag: u8, weaker: bool) -> Vec<u8> {
        let other = |&(value, _): &(u8, &[u8])| (value != tag).then_some(value);
        if !weaker {
            return self.values.iter().filter_map(other).collect();
        }
        self.values.iter().find(|v| v.0 == tag).map_or(Vec::new(), |v| v.1.to_vec())
    }
}

/// A kind as a type. The relations of its values stand once, in its rows.
pub trait Lattice: Copy + PartialEq + 'static {
    /// Words, values, and what is weaker.
    const KIND: &'static Kind;
    /// The name of the type.
    const NAME: &'static str;
    /// Number of the value on disk; never changes.
    fn tag(self) -> u8;
    /// The value of a tag of this kind.
    fn of(tag: u8) -> Self;

    /// All values.
    fn all() -> impl Iterator<Item = Self> {
        Self::KIND.values.iter().map(|(tag, _)| Self::of(*tag))
    }

    /// The values one step weaker (of a scope: narrower).
    fn weaker(self) -> Vec<Self> {
        Self::KIND.steps(self.tag(), true).into_iter().map(Self::of).collect()
    }

    /// The values of which this one is one step weaker (of a scope: wider).
    fn stronger(self) -> Vec<Self> {
        Self::all().filter(|other| other.weaker().contains(&self)).collect()
    }
}

/// Declares kinds of qualifiers: `Value = tag "word" @ (version, targets), "other word" => weaker values;`.
macro_rules! words {
    ($( $(#[$doc:meta])* $name:ident $(default $default:ident)? {
        $( $value:ident = $tag:literal $($word:literal $(@ $since:expr)?),* $(=> $($weaker:ident)+)? ; )+
    } )+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the values are the words of PTX")]
        pub enum $name { $($value = $tag),+ }

        impl $crate::kind::Lattice for $name {
            const KIND: &'static $crate::kind::Kind = &$crate::kind::Kind {
                default: words!(@default $($name::$default as u8)?),
                rows: &[ $($($crate::kind::Row { word: $word, tag: $tag, since: words!(@since $($since)?) },)*)+ ],
                values: &[ $(($tag, &[$($($name::$weaker as u8),+)?])),+ ],
            };
            const NAME: &'static str = stringify!($name);
            fn tag(self) -> u8 { self as u8 }
            fn of(tag: u8) -> Self {
                match tag { $($tag => $name::$value,)+ tag => unreachable!("no value has the tag {tag}") }
            }
        }
    )+ };
    (@default) => { None };
    (@default $value:expr) => { Some($value) };
    (@since) => { $crate::kind::EVER };
    (@since $since:expr) => { $since };
}

/// Declares kinds with one word: `Name = "word" @ since;`.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $word:literal $(@ $since:expr)?;)+) => { $(
        words! { $(#[$doc])* #[doc = concat!("Whether `.", $word, "` stands.")] $name default No { No = 0; Yes = 1 $word $(@ $since)?; } }
        impl $name {
            /// Whether the word stands.
            #[must_use]
            pub fn is(self) -> bool { self == $name::Yes }
        }
    )+ };
}

/// Targets with tensor memory.
pub(crate) const TENSOR: On = On::Only(&[100, 103, 107, 110]);
