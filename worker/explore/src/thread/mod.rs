//! What a thread does: its registers and control flow, and the events each instruction emits.
//!
//! Contract: a run is a function of the program text and of the answers its [`trace::View`] gives. Nothing here knows a
//! graph.
//!
//! From below: what an instruction says by its text (`operands`, `footprint`, `flow`, `tested`, `layout`, `may_arrive`,
//! `width`); events (`event`); the state of a run (`lanes`, `groups`, `busy`, `token`, `machine`); families of instructions,
//! each as functions of a machine (`arith` to `warpgroup`); the interpreter (`execute`, `run`, `runs`).

pub(crate) mod access;
pub(crate) mod allocator;
pub(crate) mod arith;
pub(crate) mod barrier;
pub(crate) mod book;
mod busy;
pub(crate) mod collective;
mod copies;
pub(crate) mod event;
mod execute;
pub(crate) mod flow;
pub(crate) mod footprint;
mod groups;
pub(crate) mod ids;
mod lanes;
pub(crate) mod layout;
mod machine;
pub(crate) mod may_arrive;
pub(crate) mod may_write;
mod mbarrier;
pub(crate) mod num;
pub(crate) mod operands;
mod proxies;
mod rmw;
pub(crate) mod run;
pub(crate) mod run_ahead;
pub(crate) mod runs;
mod tensor;
pub(crate) mod tested;
mod tile;
mod token;
pub(crate) mod trace;
mod warpgroup;
pub(crate) mod width;
