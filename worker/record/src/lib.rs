//! What `moire record` writes and reads: the images of modules, the sizes of parameters, launches as files.
//!
//! A *record* is a folder. [`MARK`] in it says so and names its format. `modules` has each PTX text once, and each image without
//! PTX as it was loaded; `launches` has one file for each kernel and shape ([`Launch`]); [`NOTES`] has a line for each thing that
//! was seen and could not be recorded. All names are made of a hash of the content, so that processes of one program write
//! into one folder without asking each other.
//!
//! Images come from the memory of any program: sizes in them may lie, texts may not end. Nothing here trusts them or panics.

mod cubin;
mod fatbin;
mod image;
mod launch;
mod layout;
#[cfg(target_os = "linux")]
pub mod memory;

pub use fatbin::{MAGIC, WRAPPER, length, unpack};
pub use image::{Image, hash};
pub use launch::{Encode, Launch, Map, Param, Pointer};
pub use layout::{Field, layouts};

/// The file that makes a folder a record.
pub const MARK: &str = "record.json";
/// What the file says.
pub const FORMAT: &str = "{\"moire_record\":1}\n";
/// The file with a line for each thing that was not recorded.
pub const NOTES: &str = "notes.txt";
/// The folder of the modules.
pub const MODULES: &str = "modules";
/// The folder of the launches.
pub const LAUNCHES: &str = "launches";
/// The variable of the environment that tells the recorder its folder.
pub const FOLDER: &str = "MOIRE_RECORD";
/// The most bytes of one image, compressed or not.
pub const IMAGE: usize = 1 << 28;
