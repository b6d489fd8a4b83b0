//! Advice for the programs of the corpus, verified by both engines; bugs planted in the search.

mod corpus;
mod intent;
mod planted;
mod redundant;
mod shared;
