//! Tests of the operational engine that need no other engine.

mod conditions;
mod corpus;
mod families;
mod loops;
mod planted;
