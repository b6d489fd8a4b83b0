//! Whole protocols of tensor-core kernels in one CTA, put together from the documented patterns so that nothing is wrong
//! with them, and what they become with one mistake.
//!
//! Contract: a protocol is right under the letter of the documents; a mutant differs from it in one step. Both are
//! valid programs. Warps: producer, issuer, relay, epilogue, with mbarriers between them.

mod gemm;
mod mutate;
mod protocol;

pub use gemm::Gemm;
pub use mutate::{Mutant, Mutation, mutants};
pub use protocol::{Feed, Plan};

use crate::ir::Program;
use crate::text::{Format, parse};
use std::fmt::Write;

/// What a step is for: mutations are about some kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing a mutation touches: barriers set up, a barrier of all.
    Frame,
    /// An instruction of the tensor cores, or an access they are ordered with.
    Work,
    /// `tcgen05.wait`
    Complete,
    /// `fence::before_thread_sync`
    Before,
    /// `fence::after_thread_sync`
    After,
    /// `fence.proxy.async`
    ProxyFence,
    /// A commit to an mbarrier.
    Commit(String),
    /// An arrival at an mbarrier.
    Arrive {
        /// Which.
        at: String,
        /// Release instead of relaxed.
        release: bool,
    },
    /// A loop that waits for a phase of an mbarrier.
    Wait {
        /// Which.
        at: String,
        /// Of the phase.
        parity: u8,
        /// Acquire instead of relaxed.
        acquire: bool,
    },
}

/// One step of a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is for.
    pub kind: Kind,
    /// Its text, for those whose kind does not say it.
    pub text: String,
}

/// One warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// CTA it runs in.
    pub cta: u16,
    /// Its warp.
    pub warp: u16,
    /// Lanes it stands for: 1 or the whole warp.
    pub lanes: u8,
    /// What it does.
    pub steps: Vec<Step>,
}

/// A protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// What it is made of, in words.
    pub name: String,
    /// Memory it declares.
    pub memory: Vec<String>,
    /// Its warps.
    pub roles: Vec<Role>,
}

impl Step {
    fn text(&self, label: usize) -> String {
        match &self.kind {
            Kind::Before => "tcgen05.fence::before_thread_sync;".into(),
            Kind::After => "tcgen05.fence::after_thread_sync;".into(),
            Kind::ProxyFence => "fence.proxy.async;".into(),
            Kind::Commit(at) => {
                format!("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{at}];")
            }
            Kind::Arrive { at, release } => {
                let order = if *release { "release.cta" } else { "relaxed.cta" };
                format!("mbarrier.arrive.{order}.shared::cta.b64 _, [{at}];")
            }
            Kind::Wait { at, parity, acquire } => {
                let order = if *acquire { "acquire.cta" } else { "relaxed.cta" };
                format!(
                    "L{label}:\n  mbarrier.try_wait.parity.{order}.shared::cta.b64 p, [{at}], {parity};\n  @!p bra L{label};"
                )
            }
            Kind::Frame | Kind::Work | Kind::Complete => self.text.clone(),
        }
    }
}

impl Protocol {
    /// Its text.
    pub fn text(&self) -> String {
        let mut out = format!("moire \"{}\"\n", self.name);
        for line in &self.memory {
            let _ = writeln!(out, "{line}");
        }
        let mut label = 0;
        for (n, role) in self.roles.iter().enumerate() {
            let lanes = if role.lanes > 1 { format!(", lanes 0-{}", role.lanes - 1) } else { String::new() };
            let _ = writeln!(out, "P{n} (gpu 0, cta {}, warp {}{lanes}) {{", role.cta, role.warp);
            for step in &role.steps {
                label += 1;
                let _ = writeln!(out, "  {}", step.text(label));
            }
            out.push_str("}\n");
        }
        out
    }

    /// The program; nothing where a mutation left no program, a warp without an instruction for example.
    pub fn program(&self) -> Option<Program> {
        parse(&self.text(), Format::Native).ok()
    }
}
