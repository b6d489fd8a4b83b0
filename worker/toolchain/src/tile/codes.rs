//! Numbers of the bytecode: operations, types, attributes, sections.

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

codes!(op u64 {
    ADDF = 0x02,
    ADDI = 0x03,
    ANDI = 0x04,
    ASSUME = 0x06,
    ATOMIC_CAS = 0x07,
    ATOMIC_RMW = 0x08,
    BITCAST = 0x09,
    BREAK = 0x0a,
    BROADCAST = 0x0b,
    CMPI = 0x0f,
    CONSTANT = 0x10,
    CONTINUE = 0x11,
    EXTI = 0x25,
    FOR = 0x29,
    NUM_TILE_BLOCKS = 0x2e,
    TILE_BLOCK_ID = 0x30,
    IF = 0x32,
    IOTA = 0x3a,
    JOIN_TOKENS = 0x3c,
    LOAD_PTR = 0x3d,
    LOAD_VIEW = 0x3e,
    LOOP = 0x41,
    PARTITION_VIEW = 0x42,
    TENSOR_VIEW = 0x43,
    MAKE_TOKEN = 0x44,
    MAXI = 0x46,
    MINI = 0x48,
    MULF = 0x4c,
    MULI = 0x4e,
    OFFSET = 0x51,
    ORI = 0x52,
    PTR_TO_PTR = 0x57,
    REMI = 0x5a,
    RESHAPE = 0x5b,
    RETURN = 0x5c,
    SELECT = 0x5f,
    SHLI = 0x60,
    SHRI = 0x61,
    STORE_PTR = 0x65,
    STORE_VIEW = 0x66,
    SUBF = 0x67,
    SUBI = 0x68,
    TRUNCI = 0x6b,
    XORI = 0x6c,
    YIELD = 0x6d,
    STRIDED_VIEW = 0x74,
    ATOMIC_RED_VIEW = 0x75,
    GDC_LAUNCH = 0x77,
    GDC_WAIT = 0x78,
    ALIAS_FENCE = 0x7a,
    MULTIMEM_LOAD_REDUCE = 0x7b,
    MULTIMEM_REDUCE = 0x7c,
    MULTIMEM_STORE = 0x7d,
});
