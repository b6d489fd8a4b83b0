//! The device: attributes from a file that is built in, or one that `MOIRE_DEVICE` names.

use std::collections::BTreeMap;
use std::sync::OnceLock;

const SM_90: &str = include_str!("../devices/sm_90.txt");
const SM_100: &str = include_str!("../devices/sm_100.txt");

/// What is known of the device.
pub(crate) struct Device {
    pub(crate) name: String,
    attributes: BTreeMap<i32, i32>,
}

impl Device {
    pub(crate) fn attribute(&self, which: i32) -> i32 {
        self.attributes.get(&which).copied().unwrap_or(0)
    }

    fn of(text: &str) -> Device {
        let mut out = Device { name: "Stand-in".to_owned(), attributes: BTreeMap::new() };
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            let Some((first, rest)) = line.split_once(' ') else { continue };
            match (first.parse(), rest.trim().parse()) {
                (Ok(which), Ok(value)) => drop(out.attributes.insert(which, value)),
                _ if first == "name" => rest.trim().clone_into(&mut out.name),
                _ => {}
            }
        }
        out
    }
}

/// The device: `sm_90`, `sm_100` with any letter, or the path of a file of attributes.
pub(crate) fn device() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| match std::env::var("MOIRE_DEVICE").unwrap_or_default().as_str() {
        "" | "90" | "90a" | "sm_90" | "sm_90a" => Device::of(SM_90),
        "100" | "100a" | "100f" | "sm_100" | "sm_100a" | "sm_100f" => Device::of(SM_100),
        path => Device::of(&std::fs::read_to_string(path).unwrap_or_else(|_| SM_90.to_owned())),
    })
}
