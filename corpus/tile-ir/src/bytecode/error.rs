//! Why bytes are not a module, and why a module has no file.

use super::Bytecode;

/// The reason that bytes are not a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset}: {message}")]
pub struct ReadError {
    /// The position in the file.
    pub offset: usize,
    /// The reason, in lower case and without a full stop.
    pub message: String,
}

/// The reason that there is no file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The module uses something newer than the version asked for.
    #[error("{what} needs bytecode {least}, this is {version}")]
    Version {
        /// The newer feature.
        what: &'static str,
        /// The first version that has it.
        least: Bytecode,
        /// The version asked for.
        version: Bytecode,
    },
    /// A tensor has more elements along a dimension than the format can say.
    #[error("a dimension of {0} elements cannot be written")]
    Extent(u64),
    /// The module has faults: [`crate::verify`] names them.
    #[error("`@{0}` is no function that could be written: {1}")]
    Malformed(String, &'static str),
}
