//! Source programs: a small language of the atomics that compilers of GPU code accept.
//!
//! A program is read ([`text`]), checked ([`validate`]), and lowered to the program that the engines run ([`lower`]). It is
//! printed as LLVM IR ([`llvm`]), NVVM IR ([`nvvm`]), CUDA C++ ([`cuda`]) or Triton ([`triton`]), and what a compiler makes of its threads is
//! put together again ([`compiled`]); [`form`] says what a compiler needs to take for that, and [`mapping`] what a right one makes of it. Programs
//! are drawn ([`draw`]), made smaller ([`reduce`]) and named by their canonical form ([`canon`]).
//!
//! The model `rc11-scoped` gives a source program its meaning. A program with a race has no meaning.
//!
//! Pure: no I/O, no clock, no async, no global state.

pub mod canon;
pub mod cell;
pub mod compiled;
pub mod cuda;
pub mod cycle;
pub mod draw;
pub mod form;
pub mod limits;
pub mod llvm;
pub mod lower;
pub mod mapping;
pub mod nvvm;
pub mod reduce;
mod slots;
pub mod state;
mod syntax;
pub mod text;
pub mod triton;
pub mod validate;
mod walk;

pub use syntax::{
    Access, Condition, Exchange, Expr, Object, Order, Register, Source, Space, Step, Term, Thread, Update,
    Value,
};
