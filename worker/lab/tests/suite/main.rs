//! Tests of the engines: against each other, closed forms, published verdicts and planted bugs.

mod golden;
mod herd;
mod joined;
mod kernels;
mod lab;
mod lanes;
mod lanes_lab;
mod lanes_table;
mod mutants;
mod protocols;
mod simt;
mod source_model;
mod suites;
mod tile;
mod tile_differences;
mod tile_mixed;
mod tile_table;
