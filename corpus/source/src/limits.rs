//! Every bound that a source program must obey.

/// Bytes of a text.
pub const TEXT_BYTES: usize = 1 << 16;
/// Threads of a program.
pub const THREADS: usize = 8;
/// Objects of a program.
pub const OBJECTS: usize = 8;
/// Registers of a thread.
pub const REGISTERS: usize = 16;
/// Steps of a program, nested ones included.
pub const STEPS: usize = 64;
/// Deepest nesting of `if`.
pub const NESTING: usize = 4;
/// Bytes of a name.
pub const NAME_BYTES: usize = 32;
/// Nodes of a condition.
pub const CONDITION_NODES: usize = 64;
/// Largest number of a CTA, a cluster or a GPU.
pub const PLACE: u16 = 63;
