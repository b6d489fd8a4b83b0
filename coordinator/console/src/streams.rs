//! A stream of programs on the command line: the registry reads its name, and help and completion scripts show all of them.

use clap::builder::{PossibleValue, TypedValueParser};
use moire_generate::Profile;
use std::ffi::OsStr;

/// Reads the name of a stream.
#[derive(Clone, Copy, Debug)]
pub struct StreamName;

impl TypedValueParser for StreamName {
    type Value = Profile;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Profile, clap::Error> {
        let read = |name: &str| name.parse::<Profile>();
        read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let all = Profile::ALL.into_iter().map(Profile::about);
        Some(Box::new(all.map(|about| PossibleValue::new(about.name).help(about.about))))
    }
}
