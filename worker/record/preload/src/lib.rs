//! The recorder: a library that is loaded before a program (`LD_PRELOAD`) and sees what the program asks of CUDA's driver.
//!
//! It defines the functions of `libcuda.so.1` that load modules, allocate, encode tensor maps, build graphs and launch. Programs get
//! its functions instead of the driver's however they ask: as symbols, by `dlsym` (`lookup`), or by `cuGetProcAddress` (`hooks`).
//! Each one calls the driver's function, returns what that returned, and notes what it saw (`state`) in the folder that
//! the environment names (`folder`). Without that folder nothing is noted.
//!
//! The program must not notice. Memory that the program names is read by the kernel, which refuses where a copy would fault
//! ([`moire_record::memory`]). A panic ends at the function that it is in. Until the first function of the driver is asked for, nothing is
//! allocated, locked or opened: the library is loaded into every process that the program starts.

#![cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![expect(unsafe_code, reason = "the driver's interface is C; each place says why it is sound")]

mod folder;
mod hooks;
mod launched;
mod lookup;
mod state;
