//! Tests of the operational engine that need no other engine.

mod corpus;
