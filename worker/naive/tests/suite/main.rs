//! Tests of the enumerator: what it says of small programs, and two outside models of memory.

mod naive;
mod ptxref;
mod refutes;
mod tile_ref;
