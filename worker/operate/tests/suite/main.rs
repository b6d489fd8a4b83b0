//! Tests of the operational engine that need no other engine.

mod corpus;
mod families;
mod loops;
