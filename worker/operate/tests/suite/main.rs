//! Tests of the operational engine: alone, and beside the explorer.

mod cluster_turns;
mod conditions;
mod corpus;
mod families;
mod loops;
mod operational;
mod planted;
