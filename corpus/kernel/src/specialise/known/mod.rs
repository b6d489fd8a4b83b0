//! What is known before a warp is run: arithmetic on values, the control flow of the kernel, addresses, and what warps
//! stored in the round before.

pub(crate) mod alu;
pub(super) mod classes;
pub(crate) mod flow;
pub(super) mod heap;
pub(crate) mod integer;
pub(super) mod map;
pub(crate) mod value;
