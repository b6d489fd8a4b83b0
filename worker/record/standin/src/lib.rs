//! A stand-in of CUDA's driver, `libcuda.so.1`: it accepts what programs ask, and computes nothing.
//!
//! A program starts, allocates, loads modules and launches; kernels do not run. Device memory is memory of the process, so copies and fills
//! are real ones, and what a kernel would have written is not there. The device is described by a file of attributes
//! (`device`). Functions that are not here are found by `cuGetProcAddress` and answer `CUDA_ERROR_NOT_SUPPORTED`. With
//! `MOIRE_STANDIN_TRACE` set, each of these and each private table that is asked for is named on stderr.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(
    unsafe_code,
    reason = "the driver's interface is C; the caller's pointers are taken as the driver takes them"
)]

mod calls;
mod device;
mod known;
mod runtime;
