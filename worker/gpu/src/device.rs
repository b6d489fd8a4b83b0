//! Devices: what the lane asks of them, and their answers.

use crate::histogram::Histogram;
use crate::kernel::Kernel;
use crate::strategy::Strategy;
use moire_program::ir::Program;

/// The identity of a device. Results of two devices are never combined.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// The maker's name for it.
    pub name: String,
    /// Its unique number.
    pub uuid: String,
    /// Compute capability, major and minor; 0 if it has none.
    pub capability: (u32, u32),
    /// Version of the driver.
    pub driver: String,
}

/// The unique number of every stand-in. No device has it: theirs are hexadecimal.
pub(crate) const STAND_IN: &str = "stand-in";

impl Identity {
    /// Whether it is no device, but something in the place of one.
    pub fn is_stand_in(&self) -> bool {
        self.uuid == STAND_IN
    }
    /// The architecture for its kernels.
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
    /// The way it is run.
    pub strategy: &'a Strategy,
    /// The seed of the placement.
    pub seed: u64,
}

/// The outcomes of a launch.
pub type Samples = Histogram;

/// The reason that there are no samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The driver, or the device, failed.
    #[error("{call}: {why}")]
    Failed {
        /// The call that failed.
        call: &'static str,
        /// Its error.
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
    /// Its identity.
    fn identity(&self) -> &Identity;
    /// Runs a launch and counts the outcomes of its instances.
    ///
    /// # Errors
    /// See [`DeviceError`]. The launch then counts for nothing.
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError>;
}

impl<D: Device + ?Sized> Device for &mut D {
    fn identity(&self) -> &Identity {
        (**self).identity()
    }
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        (**self).run(batch)
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn identity(&self) -> &Identity {
        (**self).identity()
    }
    fn run(&mut self, batch: &Batch<'_>) -> Result<Samples, DeviceError> {
        (**self).run(batch)
    }
}
