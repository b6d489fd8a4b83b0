//! Facts known before a warp is run: arithmetic on values, control flow of the kernel, addresses, and the stores of the
//! previous round.

pub(crate) mod alu;
pub(crate) mod arms;
pub(super) mod classes;
pub(crate) mod depends;
pub(crate) mod equal;
pub(crate) mod flow;
pub(super) mod heap;
pub(crate) mod integer;
pub(crate) mod line;
pub(super) mod loops;
pub(super) mod map;
pub(super) mod region;
pub(super) mod strides;
mod studied;
pub(super) mod tickets;
pub(crate) mod value;
