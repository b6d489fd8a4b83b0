//! The launch that is asked for.

use crate::input::File;
use moire_kernel::Refusal;
use moire_kernel::ptx::Kernel;
use moire_kernel::specialise::{Actual, Assumed, Word};
use moire_program::ir::CmpOp;
use moire_program::limits::THREADS;
use std::collections::BTreeMap;

/// How a kernel is launched, as far as the user says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// CTAs or tile blocks of the grid.
    pub grid: Option<[u32; 3]>,
    /// Threads of a CTA.
    pub block: Option<[u32; 3]>,
    /// CTAs of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Values of parameters by their place in the list, from 0 on.
    pub params: BTreeMap<u16, u64>,
    /// Values of fields of parameters, by place and first byte.
    pub fields: BTreeMap<(u16, u32), u64>,
    /// Values of words of global memory behind parameters.
    pub words: BTreeMap<Word, u64>,
    /// What is assumed of parameters that have no value.
    pub assumed: Vec<Supposed>,
    /// What is known of a launch that happened.
    pub recorded: Option<Recorded>,
    /// Which kernel, where the module has several.
    pub entry: Option<String>,
    /// Whether the letter is in use: lanes are read without readings of practice.
    pub letter: bool,
    /// Whether the other profile is asked beside the one in use.
    pub both: bool,
    /// The kernels that are launched behind it on its stream.
    pub then: Vec<Behind>,
}

/// A kernel that is launched behind others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// Its module.
    pub file: File,
    /// How it is launched.
    pub wanted: Wanted,
    /// Its parameters that are one of a kernel ahead of it: the number of that kernel, from 0 on, and the parameter.
    pub same: BTreeMap<u16, (usize, u16)>,
}

/// What is assumed of a parameter, as it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supposed {
    /// The parameter: its position, with `+` and the first byte of a field, or its name in the module.
    pub parameter: String,
    /// What it is divided by.
    pub divisor: Option<u64>,
    /// How it compares.
    pub compared: CmpOp,
    /// With what.
    pub number: u64,
    /// The text.
    pub text: String,
}

impl Supposed {
    /// The same of a parameter of a kernel.
    ///
    /// # Errors
    /// The kernel has no such parameter.
    pub(super) fn of(&self, kernel: &Kernel) -> Result<Assumed, Refusal> {
        let (name, at) = match self.parameter.split_once('+') {
            Some((name, at)) => (name, at.parse().ok()),
            None => (self.parameter.as_str(), Some(0)),
        };
        let named = || kernel.params.iter().position(|p| p.name == name);
        let index = name.parse().ok().or_else(|| u16::try_from(named()?).ok());
        let found = index.filter(|n: &u16| usize::from(*n) < kernel.params.len()).zip(at);
        let Some(place) = found else {
            return Err(Refusal::Launch(format!("there is no parameter {}", self.parameter)));
        };
        Ok(Assumed { place, divisor: self.divisor, compared: self.compared, number: self.number })
    }
}

/// A launch that happened. What the command line says comes before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// CTAs of the grid.
    pub grid: [u32; 3],
    /// Threads of a CTA.
    pub block: [u32; 3],
    /// CTAs of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Numbers among the parameters.
    pub params: BTreeMap<u16, u64>,
    /// The others.
    pub actual: Actual,
    /// What is known of them in words.
    pub taken: Vec<String>,
    /// The file that has it.
    pub file: String,
}

impl Recorded {
    /// Whether it has as many warps as can be explored.
    pub fn fits(&self) -> bool {
        let count = |size: [u32; 3]| size.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
        count(self.grid).saturating_mul(count(self.block).div_ceil(32)) <= THREADS as u64
    }
}
