//! Every bound that a program must obey, in one place.

/// Bytes of a source text. Real kernel dumps are below 400 KiB.
pub const TEXT_BYTES: usize = 1 << 20;
/// Threads (columns) of one program.
pub const THREADS: usize = 256;
/// Instructions of one thread.
pub const INSTRUCTIONS: usize = 16_384;
/// Most times that a loop with a number is repeated.
pub const REPEATS: u32 = 1 << 16;
/// Registers of one thread.
pub const REGISTERS: usize = 8_192;
/// Memory objects.
pub const OBJECTS: usize = 1_024;
/// Names of memory objects. An object may have several.
pub const SYMBOLS: usize = 2_048;
/// Bytes of one object.
pub const OBJECT_BYTES: u32 = 1 << 24;
/// Bytes that one instruction fills with zeros: each eight are an event.
pub const RANGE_BYTES: u32 = 256;
/// Conditions of one program.
pub const CONDITIONS: usize = 256;
/// Comparisons in one condition.
pub const EXPRESSION_NODES: usize = 4_096;
/// Nesting of one condition.
pub const EXPRESSION_DEPTH: usize = 64;
/// Length of one name.
pub const NAME_BYTES: usize = 128;
/// Length of one name in a PTX module, where names of kernels hold those of all their types.
pub const MANGLED_BYTES: usize = 4_096;
/// Most instructions of a program that gets advice, because some advice compares every pair of instructions.
pub const LINTED_INSTRUCTIONS: usize = 2_048;
