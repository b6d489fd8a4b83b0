//! Numbers of the bytecode: types, attributes, sections. Those of operations stand in the book.

/// The first bytes of a file.
pub(super) const MAGIC: &[u8; 8] = b"\x7fTileIR\x00";

macro_rules! codes {
    ($module:ident $ty:ty { $($name:ident = $code:literal),+ $(,)? }) => {
        pub(super) mod $module {
            $(pub(in super::super) const $name: $ty = $code;)+
        }
    };
}

// 7 is the name of the producer.
codes!(section u8 { STRING = 1, FUNC = 2, DEBUG = 3, CONSTANT = 4, TYPE = 5, GLOBAL = 6 });

codes!(ty u8 {
    POINTER = 12,
    TILE = 13,
    TENSOR = 14,
    PARTITION = 15,
    FUNCTION = 16,
    TOKEN = 17,
    GATHER = 20,
    STRIDED = 21,
});

codes!(attribute u8 {
    INTEGER = 1,
    BOOL = 3,
    ARRAY = 6,
    DIV_BY = 8,
    DICTIONARY = 10,
    HINTS = 11,
    BOUNDED = 12,
});

/// Flag of a function that can be launched; 1 is the flag of a private one.
pub(super) const FLAG_ENTRY: u8 = 2;
/// Flag of a function with hints, before 13.5.
pub(super) const FLAG_HINTS: u8 = 4;
/// The kind of a pointer that reaches all replicas.
pub(super) const MULTICAST: u8 = 2;
/// An extent or stride that is known only when the program runs.
pub(super) const DYNAMIC: i64 = i64::MIN;
