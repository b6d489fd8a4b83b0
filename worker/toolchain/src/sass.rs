//! Machine code of a module, as NVIDIA's disassembler prints it: `ptxas` makes it, `nvdisasm` lists it.

use crate::find::{candidates, environment};
use crate::order::Listing;
use crate::ptxas::{Answer, Ptxas};
use crate::run::{Limits, RunError, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most bytes of a listing that are read. A listing is longer than a diagnostic.
const MAX_LISTING_BYTES: usize = 4 << 20;

/// A disassembler that was found.
#[derive(Clone, Debug)]
pub struct Nvdisasm {
    path: PathBuf,
}

/// The reason that there is no listing.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A tool did not run to its end.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The assembler did not take the module.
    #[error("not assembled: {0:?}")]
    NotAssembled(Answer),
    /// The disassembler did not take the object, or printed more than is read.
    #[error("not disassembled: {0}")]
    NotListed(String),
}

impl Nvdisasm {
    /// The first disassembler in the places of [`candidates`].
    pub fn find(venv: Option<&Path>) -> Option<Nvdisasm> {
        let found = candidates("nvdisasm", venv, &environment).into_iter().next()?;
        Some(Nvdisasm { path: found.path })
    }

    /// The disassembler in that file.
    pub fn at(path: &Path) -> Nvdisasm {
        Nvdisasm { path: path.to_owned() }
    }

    /// The instructions that `ptxas`, optimising, makes of a module for an architecture, in order, without addresses.
    ///
    /// # Errors
    /// See [`ListError`].
    pub fn instructions(&self, ptxas: &Ptxas, module: &str, target: &str) -> Result<Vec<String>, ListError> {
        let folder = tempfile::tempdir().map_err(RunError::Start)?;
        let (answer, object) = ptxas.object(folder.path(), module, target, "-O3")?;
        if answer != Answer::Accepted {
            return Err(ListError::NotAssembled(answer));
        }
        Ok(self.listing(&object)?.lines().filter_map(instruction).collect())
    }

    /// The instructions of each kernel of an object, in order, without addresses.
    ///
    /// # Errors
    /// See [`ListError`].
    pub fn kernels(&self, object: &[u8]) -> Result<BTreeMap<String, Vec<String>>, ListError> {
        let folder = tempfile::tempdir().map_err(RunError::Start)?;
        let path = folder.path().join("object.cubin");
        fs::write(&path, object).map_err(RunError::Start)?;
        Ok(listed(&self.listing(&path)?))
    }

    /// The machine code that `ptxas`, optimising, makes of a module for an architecture.
    ///
    /// # Errors
    /// See [`ListError`].
    pub fn code(&self, ptxas: &Ptxas, module: &str, target: &str) -> Result<Listing, ListError> {
        let folder = tempfile::tempdir().map_err(RunError::Start)?;
        let (answer, object) = ptxas.object(folder.path(), module, target, "-O3")?;
        if answer != Answer::Accepted {
            return Err(ListError::NotAssembled(answer));
        }
        Ok(read(&self.dumped(&[], &object)?))
    }

    fn listing(&self, object: &Path) -> Result<String, ListError> {
        self.dumped(&["-c"], object)
    }

    fn dumped(&self, options: &[&str], object: &Path) -> Result<String, ListError> {
        let mut command = Command::new(&self.path);
        command.args(options).arg(object);
        let out = run(command, Limits { output: MAX_LISTING_BYTES, ..Limits::default() })?;
        if !out.status.success() || out.cut {
            return Err(ListError::NotListed(out.stderr));
        }
        Ok(out.stdout)
    }
}

/// The instructions of each kernel in a listing, in order, without addresses.
pub fn listed(listing: &str) -> BTreeMap<String, Vec<String>> {
    let (mut out, mut kernel) = (BTreeMap::new(), None);
    for line in listing.lines() {
        if line.trim_start().starts_with(".section") {
            kernel = section(line).map(str::to_owned);
        } else if let (Some(kernel), Some(instruction)) = (&kernel, instruction(line)) {
            out.entry(kernel.clone()).or_insert_with(Vec::new).push(instruction);
        }
    }
    out
}

/// The code in a whole listing, with the names of constants.
pub(crate) fn read(listing: &str) -> Listing {
    let (mut out, mut kernel, mut constants) = (Listing::default(), None, false);
    for line in listing.lines() {
        let plain = line.trim();
        if plain.starts_with(".section") {
            kernel = section(line).map(str::to_owned);
            constants = plain.contains(".nv.constant4");
        } else if let Some((_, name)) = plain.split_once(".dword").filter(|_| constants) {
            out.slots.push(name.trim().to_owned());
        } else if let Some(kernel) = &kernel {
            let label = plain.strip_suffix(':').filter(|l| l.starts_with(".L"));
            let found = label.map(|l| format!("{l}:")).or_else(|| instruction(line));
            out.kernels.entry(kernel.clone()).or_default().extend(found);
        }
    }
    out
}

/// `.section .text.kernel,"ax",@progbits`
fn section(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix(".section")?.trim_start().strip_prefix(".text.")?;
    name.split([',', ' ', '\t']).next()
}

/// `/*0040*/ LDG.E R0, [R2] ;`
fn instruction(line: &str) -> Option<String> {
    let (address, rest) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
    let digits = address.len() >= 4 && address.bytes().all(|b| b.is_ascii_hexdigit());
    let text = rest.trim().trim_end_matches(';').trim_end();
    (digits && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_sections_of_their_own() {
        assert_eq!(section("\t.section\t.text.moire_kernel_1_,\"ax\",@progbits"), Some("moire_kernel_1_"));
        assert_eq!(section("\t.section\t.nv.info.k,\"\",@\"SHT_CUDA_INFO\""), None);
    }

    #[test]
    fn a_listing_has_labels_and_names_of_constants() {
        let text = "\t.section\t.nv.constant4,\"a\"\n .nv.constant4:\n /*0000*/ \t.dword\tm0\n\t.align 8\n /*0008*/ .dword m1\n\t.section\t.text.k0,\"ax\"\n.text.k0:\n .L_x_0:\n        /*0000*/  BRA `(.L_x_0);\n\t.section\t.nv.shared.k0\n.zero 8\n";
        let code = read(text);
        assert_eq!(code.slots, ["m0", "m1"]);
        assert_eq!(code.kernels["k0"], [".L_x_0:", "BRA `(.L_x_0)"]);
        assert_eq!(code.kernels.len(), 1);
    }

    #[test]
    fn instructions_are_told_from_the_rest() {
        let line = "        /*0320*/               @P0 ATOMG.E.ADD.STRONG.GPU PT, RZ, [R4.64], R3 ;";
        assert_eq!(instruction(line).unwrap(), "@P0 ATOMG.E.ADD.STRONG.GPU PT, RZ, [R4.64], R3");
        for other in [".L_x_1:", "        .global         k0", "//------ .text", "/* note */ x", "/*0010*/"] {
            assert_eq!(instruction(other), None, "{other}");
        }
    }
}
