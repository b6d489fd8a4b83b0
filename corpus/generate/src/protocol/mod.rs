//! Whole protocols of tensor-core kernels, in one CTA or a pair, built correctly from the documented patterns; and mutants
//! of them with one mistake.
//!
//! Contract: a protocol is correct by the letter of the documents; a mutant differs from it in one step or in the CTA of
//! one warp. A protocol is a valid program. Its warps are producer, issuer, relay and epilogue, with mbarriers between
//! them.

mod columns;
mod draw;
mod dress;
mod gemm;
mod mutate;
mod plan;

pub use columns::Columns;
pub use draw::Scheme;
pub use gemm::Gemm;
pub use mutate::{Mutant, Mutation, mutants};
pub use plan::{Feed, Plan};

use moire_program::ir::Program;
use moire_program::text::{Format, parse};
use std::fmt::Write;

/// The kind of a step. Each mutation changes steps of certain kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A step that no mutation changes.
    Frame,
    /// A tensor-core instruction, or an access ordered with one.
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
        /// The mbarrier.
        at: String,
        /// Arrivals of a phase.
        count: u16,
    },
    /// `fence.mbarrier_init`
    InitFence,
    /// A barrier of all warps of the CTA, or of the cluster.
    Sync,
    /// An allocation or a deallocation of columns, or the end of the right to allocate. The text is the address operand.
    Columns {
        /// The operation.
        act: Act,
        /// Whether both CTAs of a pair execute it.
        pair: bool,
        /// The number of columns.
        columns: usize,
    },
    /// A bulk copy that reports to an mbarrier. The text is the instruction up to that operand.
    Copy {
        /// The mbarrier.
        at: String,
        /// The CTA of the mbarrier, if it is not the warp's own.
        cta: Option<u16>,
    },
    /// An `expect_tx` operation.
    Expect {
        /// The mbarrier.
        at: String,
        /// The number of bytes.
        bytes: usize,
        /// Whether it arrives too; otherwise the arrival is another step.
        arrives: bool,
    },
    /// A commit to an mbarrier.
    Commit {
        /// The mbarrier.
        at: String,
        /// For a commit of a pair, the mask of the CTAs in which it arrives.
        pair: Option<u16>,
    },
    /// An arrival at an mbarrier.
    Arrive {
        /// The mbarrier.
        at: String,
        /// Release instead of relaxed.
        release: bool,
        /// Cluster scope instead of CTA scope.
        wide: bool,
        /// The CTA of the mbarrier, if it is not the warp's own.
        cta: Option<u16>,
    },
    /// A loop that waits for a phase of an mbarrier.
    Wait {
        /// The mbarrier.
        at: String,
        /// The parity of the phase.
        parity: u8,
        /// Acquire instead of relaxed.
        acquire: bool,
        /// Cluster scope instead of CTA scope.
        wide: bool,
    },
}

/// An operation on columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// `tcgen05.alloc`
    Take,
    /// `tcgen05.dealloc`
    Give,
    /// `tcgen05.relinquish_alloc_permit`
    Relinquish,
}

/// One step of a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleStep {
    /// The kind.
    pub kind: Kind,
    /// The text, or the part of it that the kind does not determine.
    pub text: String,
}

/// One warp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The CTA it runs in.
    pub cta: u16,
    /// Its number in the CTA.
    pub warp: u16,
    /// The number of its lanes: 1 or the whole warp.
    pub lanes: u8,
    /// Its steps, in program order.
    pub steps: Vec<RoleStep>,
}

/// A protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// A summary in words.
    pub name: String,
    /// Declarations of its memory.
    pub memory: Vec<String>,
    /// Its warps.
    pub roles: Vec<Role>,
}

/// `.cluster` or `.cta`.
fn scope(wide: bool) -> &'static str {
    if wide { "cluster" } else { "cta" }
}

/// The instruction that computes the address of an mbarrier in another CTA, empty for the own CTA; and the operand.
fn operand(at: &str, cta: Option<u16>) -> (String, String) {
    match cta {
        Some(cta) => (format!("mapa.shared::cluster.u32 ra, {at}, {cta};\n  "), "[ra]".to_owned()),
        None => (String::new(), format!("[{at}]")),
    }
}

impl RoleStep {
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
    /// The text in the native format.
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

    /// The program; none if the text of a mutant cannot be read.
    pub fn program(&self) -> Option<Program> {
        parse(&self.text(), Format::Native).ok()
    }
}
