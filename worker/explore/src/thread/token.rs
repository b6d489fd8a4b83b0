//! Tokens of tile blocks (Tile IR specification, 7.6): the events a token stands for.

use super::event::deps::Deps;

/// What a token stands for, and on what it depends which one it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) all: Deps,
    pub(crate) direct: Deps,
    pub(crate) deps: Deps,
    pub(crate) pending: bool,
}

impl Token {
    pub(crate) fn with(self, other: Token) -> Token {
        Token {
            all: self.all.with(other.all),
            direct: self.direct.with(other.direct),
            deps: self.deps.with(other.deps),
            pending: self.pending || other.pending,
        }
    }
}
