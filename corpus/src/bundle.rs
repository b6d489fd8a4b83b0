//! Bundle: one self-contained JSON file with everything needed to replay a finding.
//!
//! Reading trusts nothing: size, encoding, kind and version are checked before any use.

use crate::finding::Finding;
use crate::record::Provenance;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest bundle.
pub const BYTES_MAX: usize = 8 << 20;
/// Bundle format written.
pub const VERSION: u32 = 1;
const KIND: &str = "moire-bundle";
const MODELS_MAX: usize = 64;

/// A model with its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelText {
    /// Name.
    pub name: String,
    /// Variants set.
    #[serde(default)]
    pub variants: BTreeMap<String, String>,
    /// Resolved cat text.
    pub text: String,
}

/// The content of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// The finding's record.
    pub finding: Finding,
    /// Program, native litmus text.
    pub program: String,
    /// Program before reduction.
    #[serde(default)]
    pub original: String,
    /// Origin of the program before reduction.
    #[serde(default)]
    pub provenance: Provenance,
    /// Models, with their texts.
    pub models: Vec<ModelText>,
    /// Witness: an execution that shows the discrepancy, as JSON.
    #[serde(default)]
    pub witness: String,
    /// Versions of the tools, by name.
    #[serde(default)]
    pub tools: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Envelope<B> {
    kind: String,
    version: u32,
    bundle: B,
}

/// Why a bundle is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// It has more of something than a bundle may have.
    #[error("bundle has {found} {what}, the limit is {limit}")]
    Limit {
        /// The things counted, such as `bytes`.
        what: &'static str,
        /// Their number.
        found: usize,
        /// Most of them that a bundle may have.
        limit: usize,
    },
    /// Not a bundle.
    #[error("not a bundle: {0}")]
    Malformed(String),
    /// Written by a later version.
    #[error("bundle has format {0}, this version knows {VERSION}: use a newer moire")]
    Newer(u32),
}

fn within(what: &'static str, found: usize, limit: usize) -> Result<(), BundleError> {
    if found > limit { Err(BundleError::Limit { what, found, limit }) } else { Ok(()) }
}

/// The bundle as bytes; equal bundles give equal bytes.
pub fn write(bundle: &Bundle) -> Result<Vec<u8>, BundleError> {
    within("models", bundle.models.len(), MODELS_MAX)?;
    let envelope = Envelope { kind: KIND.to_owned(), version: VERSION, bundle };
    let mut out = serde_json::to_vec_pretty(&envelope).map_err(|e| BundleError::Malformed(e.to_string()))?;
    out.push(b'\n');
    within("bytes", out.len(), BYTES_MAX)?;
    Ok(out)
}

/// Reads a bundle from anywhere.
pub fn read(bytes: &[u8]) -> Result<Bundle, BundleError> {
    #[derive(Deserialize)]
    struct Head {
        kind: String,
        version: u32,
    }
    within("bytes", bytes.len(), BYTES_MAX)?;
    let malformed = |e: serde_json::Error| BundleError::Malformed(e.to_string());
    let head: Head = serde_json::from_slice(bytes).map_err(malformed)?;
    if head.kind != KIND {
        return Err(BundleError::Malformed(format!(
            "kind is `{}`, expected `{KIND}`",
            head.kind.escape_debug()
        )));
    }
    if head.version > VERSION {
        return Err(BundleError::Newer(head.version));
    }
    let envelope: Envelope<Bundle> = serde_json::from_slice(bytes).map_err(malformed)?;
    within("models", envelope.bundle.models.len(), MODELS_MAX)?;
    Ok(envelope.bundle)
}
