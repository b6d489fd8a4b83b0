//! The GPU lane: litmus programs run on a device many times, and what was seen held to what is allowed.
//!
//! Contract: a sample can refute, never confirm. What is allowed comes from the caller; this crate knows programs and
//! devices and no model. A device is behind [`Device`]: the one of NVIDIA's driver (feature `gpu`, loaded at run time),
//! the [`StandIn`] that interleaves threads by a seed where there is none, or a [`Replayer`] of recorded results. All of
//! the lane but the driver's few calls runs and is tested with the last two. Source: design section 7 (oracle `device`).

mod device;
#[cfg(feature = "gpu")]
mod driver;
mod histogram;
mod kernel;
mod lane;
mod record;
mod standin;
mod strategy;
mod takes;

pub use device::{Batch, Device, DeviceError, Identity, Samples};
#[cfg(feature = "gpu")]
pub use driver::Nvidia;
pub use histogram::{Histogram, Seen, Unseen, Verdict, judge};
pub use kernel::{Kernel, LANES, PTX_VERSION, kernel};
pub use lane::{Lane, LaneError, Locked, Settings};
pub use record::{Recorder, Replayer};
pub use standin::StandIn;
pub use strategy::{STRATEGIES, Strategy, roles};
pub use takes::{Refusal, observed, takes};
