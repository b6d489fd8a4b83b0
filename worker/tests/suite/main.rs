//! Tests of the worker: its oracles on drawn programs and kernels, and the tables beside the models.

mod assembler;
mod atlas;
mod compiler;
mod coverage;
mod device;
mod differences;
mod lowering;
mod operational;
mod outside;
mod patterns;
mod pinned;
mod sass;
mod source_compilers;
mod source_second;
mod sources;
mod tile_examples;
mod trace;
mod trace_tile;
mod unread;
