//! The GPU lane: runs litmus programs on a device many times and compares the outcomes with those that are allowed.
//!
//! Contract: a sample can refute, never confirm. The allowed outcomes come from the caller; this crate knows programs and
//! devices and no model. A [`Device`] is NVIDIA's driver (feature `gpu`, loaded at run time), the [`StandIn`] that
//! interleaves threads by a seed where there is no device, or a [`Replayer`] of recorded results. Everything but the calls
//! of the driver runs and is tested with the last two.

mod batch;
mod device;
#[cfg(feature = "gpu")]
mod driver;
mod histogram;
mod kernel;
mod lane;
mod reach;
mod record;
mod standin;
mod strategy;
mod takes;

pub use batch::{Asked, BATCH, Request};
pub use device::{Batch, Device, DeviceError, Identity, Samples};
#[cfg(feature = "gpu")]
pub use driver::Nvidia;
pub use histogram::{Histogram, Seen, Unseen, Verdict, judge};
pub use kernel::{Kernel, LANES, PTX_VERSION, kernel};
pub use lane::{Lane, LaneError, Locked, Settings};
pub use record::{Recorder, Replayer, Sampled};
pub use standin::StandIn;
pub use strategy::{STRATEGIES, Strategy, roles};
pub use takes::{copies, may_hang, observed, seen, takes};
