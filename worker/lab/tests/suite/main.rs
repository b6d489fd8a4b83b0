//! Tests of the engines: against each other, closed forms, published verdicts and planted bugs.

mod closed_forms;
mod cluster_turns;
mod contract;
mod dead_ends;
mod descents;
mod golden;
mod joined;
mod kernels;
mod lab;
mod lanes;
mod lanes_lab;
mod lanes_table;
mod mistakes;
mod mutants;
mod naive;
mod operational;
mod protocols;
mod ptxref;
mod reductions;
mod self_check;
mod simt;
mod suites;
mod tile;
mod tile_mixed;
mod tile_ref;
mod tile_table;
