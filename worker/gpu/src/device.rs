//! What the lane asks of a device.

use crate::histogram::Histogram;
use crate::kernel::Kernel;
use crate::strategy::Strategy;
use moire_program::ir::Program;

/// Which device it is: results of two are never put together.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// As its maker calls it.
    pub name: String,
    /// Its own number.
    pub uuid: String,
    /// Compute capability, major and minor; 0 for none.
    pub capability: (u32, u32),
    /// Version of the driver.
    pub driver: String,
}

impl Identity {
    /// The architecture its kernels are made for.
    pub fn target(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }
}

/// One launch.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its kernel.
    pub kernel: &'a Kernel,
    /// How it is run.
    pub strategy: &'a Strategy,
    /// Decides the placement.
    pub seed: u64,
}

/// What a launch came to.
pub type Samples = Histogram;

/// Why there are no samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver, or the device, failed.
    #[error("{call}: {why}")]
    Failed {
        /// What was asked.
        call: &'static str,
        /// What it said.
        why: String,
    },
    /// It did not end in time.
    #[error("no answer in {0} seconds")]
    Late(u64),
    /// A record has no such launch.
    #[error("the record has no launch {0}")]
    NotRecorded(usize),
    /// The record is of another launch.
    #[error("launch {0} of the record is of another program, strategy or seed")]
    OtherLaunch(usize),
}

/// Runs launches, one at a time.
pub trait Device {
    /// Which it is.
    fn identity(&self) -> &Identity;
    /// Runs a launch and counts what its instances ended with.
    ///
    /// # Errors
    /// See [`DeviceError`]; nothing is then known of the launch.
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError>;
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn identity(&self) -> &Identity {
        (**self).identity()
    }
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        (**self).run(batch)
    }
}
