//! The device that a command lends to its oracles.

use anyhow::{Context, Result, anyhow};
use clap::Args;
use moire_worker::oracle::{Host, Processes};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

/// Folder of the locks, one for each device.
pub(crate) const LOCKS: &str = ".moire/gpu";
/// The word for what interleaves threads here in the place of a device.
pub(crate) const STAND_IN: &str = "stand-in";
/// The word for a stand-in that sometimes shows what no model allows.
pub(crate) const LYING: &str = "lying-stand-in";

/// The device that is lent.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Lent {
    /// Lend this device to the oracle `device`, by number; `stand-in` runs threads here, for the oracle `stand-in`
    #[arg(long, value_name = "DEVICE", value_parser = word)]
    pub(crate) device: Option<String>,
}

/// The device behind processes of this program, with its lock in this folder.
///
/// # Errors
/// There is none.
pub(crate) fn opened(device: &str, locks: &Path) -> Result<Processes> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let args = ["gpu", "--device", device, "--batch"].into_iter().map(OsString::from).collect();
    let host = Processes::open(program, args, locks.to_owned());
    host.map_err(|why| anyhow!("there is no device {device}: {why}"))
}

/// The number of a device, or a word for a stand-in.
fn word(text: &str) -> Result<String> {
    let known = [STAND_IN, LYING].contains(&text) || text.parse::<u32>().is_ok();
    anyhow::ensure!(known, "the number of a device, or `{STAND_IN}`");
    Ok(text.to_owned())
}

impl Lent {
    /// The device behind processes of this program.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn host(&self) -> Result<Option<Arc<dyn Host>>> {
        let open = |device: &String| Ok(Arc::new(opened(device, Path::new(LOCKS))?) as Arc<dyn Host>);
        self.device.as_ref().map(open).transpose()
    }

    /// The arguments that lend it to another process of this program.
    pub(crate) fn args(&self) -> impl Iterator<Item = OsString> {
        self.device.iter().flat_map(|device| ["--device".into(), device.into()])
    }
}
