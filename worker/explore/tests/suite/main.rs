//! Tests of the explorer: the enumerator finds the same executions, closed forms have as many, and each planted bug is found.

mod closed_forms;
mod contract;
mod dead_ends;
mod descents;
mod marks;
mod mistakes;
mod reductions;
mod self_check;
