//! Whole protocols of tensor-core kernels, in one CTA or a pair of them, put together from the documented patterns so that
//! nothing is wrong with them, and what they become with one mistake.
//!
//! Contract: a protocol is right under the letter of the documents; a mutant differs from it in one step. Both are
//! valid programs. Warps: producer, issuer, relay, epilogue, with mbarriers between them.

mod columns;
mod draw;
mod gemm;
mod mutate;
mod protocol;

pub use columns::Columns;
pub use draw::Scheme;
pub use gemm::Gemm;
pub use mutate::{Mutant, Mutation, mutants};
pub use protocol::{Feed, Plan};

use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::fmt::Write;

/// What a step is for: mutations are about some kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing a mutation touches.
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
    /// `mbarrier.init`
    Init {
        /// Which.
        at: String,
        /// Arrivals of a phase.
        count: u16,
    },
    /// `fence.mbarrier_init`
    InitFence,
    /// A barrier of all warps of the CTA, or of the cluster.
    Sync,
    /// Columns taken, given back, or the right to them given up; its text is where the address is.
    Columns {
        /// Which of it.
        act: Act,
        /// By both CTAs of a pair.
        pair: bool,
        /// How many.
        columns: usize,
    },
    /// A bulk copy that reports to an mbarrier; its text is the instruction up to that operand.
    Copy {
        /// Which.
        at: String,
        /// In this CTA instead of the own one.
        cta: Option<u16>,
    },
    /// Bytes are announced.
    Expect {
        /// Which.
        at: String,
        /// How many.
        bytes: usize,
        /// By an arrival; otherwise the arrival is another step.
        arrives: bool,
    },
    /// A commit to an mbarrier.
    Commit {
        /// Which.
        at: String,
        /// Of the pair, and the CTAs that are told; otherwise of one CTA.
        pair: Option<u16>,
    },
    /// An arrival at an mbarrier.
    Arrive {
        /// Which.
        at: String,
        /// Release instead of relaxed.
        release: bool,
        /// At the scope of the cluster instead of the CTA.
        wide: bool,
        /// In this CTA instead of the own one.
        cta: Option<u16>,
    },
    /// A loop that waits for a phase of an mbarrier.
    Wait {
        /// Which.
        at: String,
        /// Of the phase.
        parity: u8,
        /// Acquire instead of relaxed.
        acquire: bool,
        /// At the scope of the cluster instead of the CTA.
        wide: bool,
    },
}

/// What is done with columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// They are taken.
    Take,
    /// They are given back.
    Give,
    /// The right to take more is given up.
    Relinquish,
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

/// `.cluster` or `.cta`.
fn scope(wide: bool) -> &'static str {
    if wide { "cluster" } else { "cta" }
}

/// The address of an mbarrier in another CTA, if it is there, and the operand.
fn operand(at: &str, cta: Option<u16>) -> (String, String) {
    match cta {
        Some(cta) => (format!("mapa.shared::cluster.u32 ra, {at}, {cta};\n  "), "[ra]".to_owned()),
        None => (String::new(), format!("[{at}]")),
    }
}

impl Step {
    fn text(&self, label: usize) -> String {
        match &self.kind {
            Kind::Before => "tcgen05.fence::before_thread_sync;".into(),
            Kind::After => "tcgen05.fence::after_thread_sync;".into(),
            Kind::ProxyFence => "fence.proxy.async;".into(),
            Kind::Init { at, count } => format!("mbarrier.init.shared::cta.b64 [{at}], {count};"),
            Kind::InitFence => "fence.mbarrier_init.release.cluster;".into(),
            Kind::Copy { at, cta } => {
                let (mapped, place) = operand(at, *cta);
                format!("{mapped}{}, {place};", self.text)
            }
            Kind::Expect { at, bytes, arrives: true } => {
                format!("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [{at}], {bytes};")
            }
            Kind::Expect { at, bytes, arrives: false } => {
                format!("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [{at}], {bytes};")
            }
            Kind::Columns { act, pair, columns } => {
                let group = if *pair { "cta_group::2" } else { "cta_group::1" };
                let place = &self.text;
                match act {
                    Act::Take => {
                        format!("tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 {place}, {columns};")
                    }
                    Act::Give => format!("tcgen05.dealloc.{group}.sync.aligned.b32 {place}, {columns};"),
                    Act::Relinquish => format!("tcgen05.relinquish_alloc_permit.{group}.sync.aligned;"),
                }
            }
            Kind::Commit { at, pair: None } => {
                format!("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{at}];")
            }
            Kind::Commit { at, pair: Some(mask) } => format!(
                "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [{at}], {mask};"
            ),
            Kind::Arrive { at, release, wide, cta } => {
                let (mapped, place) = operand(at, *cta);
                let order = if *release { "release" } else { "relaxed" };
                let space = scope(cta.is_some());
                format!("{mapped}mbarrier.arrive.{order}.{}.shared::{space}.b64 _, {place};", scope(*wide))
            }
            Kind::Wait { at, parity, acquire, wide } => {
                let order = if *acquire { "acquire" } else { "relaxed" };
                let scope = scope(*wide);
                format!(
                    "L{label}:\n  mbarrier.try_wait.parity.{order}.{scope}.shared::cta.b64 p, [{at}], {parity};\n  @!p bra L{label};"
                )
            }
            Kind::Frame | Kind::Work | Kind::Complete | Kind::Sync => self.text.clone(),
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
