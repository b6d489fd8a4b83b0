//! The model on the command line.

use clap::Args;
use clap::builder::{PossibleValue, TypedValueParser};
use moire_cat::Variants;
use moire_console::input::{File, ModelSpec};
use moire_verdict::kernel::usual_model;
use std::ffi::OsStr;
use std::str::FromStr;

/// Which model, with which switches.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelArgs {
    /// A shipped model or a file that ends in .cat, with switches to set: ptx:Q6=B,Q1=B [default: ptx, tile-ir for Tile IR
    /// kernels, and rc11-scoped for source programs]
    #[arg(long, value_name = "NAME[:SWITCH=VALUE,..]", value_parser = Spec, hide_possible_values = true)]
    pub(crate) model: Option<ModelSpec>,
}

impl ModelArgs {
    /// The name of the model for a file: the one that was asked for, or that of the file's kind.
    pub(crate) fn name(&self, file: &File) -> &str {
        self.model.as_ref().map_or_else(|| usual_model(file), |m| &m.name)
    }

    /// The switches that are set.
    pub(crate) fn switches(&self) -> Variants {
        self.model.as_ref().map(|m| m.switches.clone()).unwrap_or_default()
    }
}

/// Reads a model; completion scripts offer the shipped ones.
#[derive(Clone)]
struct Spec;

impl TypedValueParser for Spec {
    type Value = ModelSpec;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<ModelSpec, clap::Error> {
        let read = |text: &str| ModelSpec::from_str(text).map_err(|e| format!("{e:#}"));
        read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(moire_models::names().map(PossibleValue::new)))
    }
}
