//! The wire contract: messages and services of `moire/v1/*.proto`, bindings checked in.
//!
//! Contract: programs travel as litmus text, never as a serialised representation. Messages are converted once. A test
//! regenerates the bindings and compares.

pub mod needs;
mod token;

pub use token::{Linked, Token};

/// Version of the contract, sent in `Hello`.
pub const PROTOCOL: u32 = 1;
/// Largest message decoded, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The reason of an item that needs more memory than an item may have.
pub const MEMORY: &str = "the limit on memory";
/// The reason of an item that needs more stack than there is.
pub const STACK: &str = "the limit on the stack";

/// Decisions of one node of a tree of decisions, at most.
pub const NODE_MAX: usize = 2048;
/// Decisions of all nodes of one message, at most.
pub const NODES_MAX: usize = 512 * 1024;

/// The contract in the form that server reflection hands out: an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!("gen/moire.v1.bin");

/// Messages, clients and servers of package `moire.v1`.
#[allow(missing_docs, clippy::all, clippy::pedantic, clippy::allow_attributes_without_reason, unreachable_pub, reason = "generated")]
#[rustfmt::skip]
#[path = "gen/moire.v1.rs"]
pub mod v1;
