//! Static validation: finds instructions that are illegal or suspicious.
//!
//! There are three kinds of rule. A [`RuleKind::PtxasEqual`] rule refuses exactly what NVIDIA's assembler refuses. Its source
//! is the assembler: every line of `tests/data/ptxas.csv` of `corpus/generate` was put into a kernel with registers of
//! every class (`r` 32 bit, `d` 64, `q` 128, `h` 16, `f` and `e` floating, `p` predicates) and two arrays `g` (.global)
//! and `s` (.shared), `.version 9.5`, `.target sm_100a`, and given to `ptxas -arch sm_100a -O0` in the version that the
//! row names. `error` means a diagnostic for that line, `ok` an exit status of 0. The tests compare [`validate`] with each
//! row. Left out are two forms on which that assembler crashes (`ld.v8` of 8- and 16-bit elements, and `atom.cas.b128`
//! with two immediates) and forms that no text has a meaning for (layout v1 of mbarriers, a literal for a state). A
//! [`RuleKind::Unclear`] rule refuses a text that could mean two things. A [`RuleKind::Lint`] rule is advice. Neither is
//! ever compared.
//!
//! What one instruction may look like, the book of instructions says. It reads litmus texts, and the rule `form` asks it
//! about programs that were drawn or changed. Rules of the first kind do not judge notations that PTX does not have, see
//! [`notation`]. Registers here are untyped: the lint `register-width` checks that one declaration fits all uses.

mod access;
mod barriers;
mod condition;
mod form;
mod ignored;
mod memory;
mod names;
mod operands;
mod places;
mod registers;
mod report;
mod rules;
mod targets;
mod tensor;
mod widths;

use crate::ir::{AtomOp, LoadOrder, Op, Operand, Program, Proxy, ProxyFence, RmwOrder, StoreOrder};
use crate::limits::LINTED_INSTRUCTIONS;
use crate::text::{Diagnostic, Severity};
pub use registers::classes;
use report::Report;
pub use rules::{RULES, Rule, RuleKind, rule};
pub use targets::{Target, targets};

/// All remarks of the rules about `program`: errors first, each group in the order of the text.
pub fn validate(program: &Program) -> Vec<Diagnostic> {
    let mut report = Report::new(program);
    let forms = form::Forms::of(program);
    for thread in &program.threads {
        forms.check(&mut report, thread);
        for instr in &thread.body {
            operands::check(&mut report, thread, instr);
            places::check(&mut report, thread, instr);
            barriers::lanes_said(&mut report, thread, instr);
        }
    }
    tensor::groups(&mut report);
    targets::check(&mut report);
    if program.threads.iter().map(|t| t.body.len()).sum::<usize>() <= LINTED_INSTRUCTIONS {
        lint(&mut report);
    }
    report.out.sort_by_key(|d| (d.severity != Severity::Error, d.line, d.column));
    report.out
}

/// Whether NVIDIA's assembler would refuse a program.
pub fn is_illegal(program: &Program) -> bool {
    let refused = |name: &str| rule(name).is_some_and(|r| r.kind != RuleKind::Lint);
    validate(program).iter().any(|d| d.severity == Severity::Error && d.rule.is_some_and(refused))
}

fn lint(report: &mut Report<'_>) {
    let accesses = access::accesses(report.program);
    memory::check(report, &accesses);
    ignored::check(report);
    barriers::check(report);
    registers::check(report);
    names::check(report);
    condition::check(report, &accesses);
}

/// The reason why an instruction is a notation of our own, if it is one. No assembler can judge it.
pub fn notation(op: &Op) -> Option<&'static str> {
    match op {
        Op::Load { proxy, .. } | Op::Store { proxy, .. } | Op::Rmw { proxy, .. }
            if *proxy != Proxy::Generic =>
        {
            Some("texture, surface and constant references stand for their instructions")
        }
        Op::Load { ty, .. } | Op::Store { ty, .. } if ty.packed() => {
            Some("a packed access is written with its packed type; PTX moves it as .b32")
        }
        Op::ProxyFence(kinds) => match kinds.as_slice() {
            [ProxyFence::Alias | ProxyFence::Of(Proxy::Async | Proxy::Tensormap)] => None,
            _ => Some("fences of the published proxy model, and several proxies in one fence"),
        },
        Op::Bar { instance: Some(_), .. } => Some("barrier instances of the Dat3M dialect"),
        Op::Bar { count: Some(Operand::Imm(n)), .. } if n % 32 != 0 => {
            Some("a thread of a litmus program counts as one; PTX counts whole warps")
        }
        Op::Rmw { op: AtomOp::Sub, .. }
        | Op::MultimemLoad { op: AtomOp::Sub, .. }
        | Op::MultimemRed { op: AtomOp::Sub, .. } => Some("PTX has no atomic subtraction"),
        Op::Tile(_) => Some("accesses of a tile block and tokens are those of Tile IR"),
        Op::Load { order: LoadOrder::SeqCst(_), .. }
        | Op::Store { order: StoreOrder::SeqCst(_), .. }
        | Op::Rmw { order: RmwOrder::SeqCst, .. } => Some("seq_cst accesses are those of source programs"),
        Op::Load { .. } | Op::Store { .. } | Op::Rmw { .. } | Op::Mbarrier(_) => places::notation(op),
        multimem_op!() => places::notation(op),
        register_op!() => None,
        unit_op!() | Op::Control(_) => places::notation(op),
        Op::Fence { .. } | Op::MbarrierInitFence | Op::ProxyOrder(_) | jump_op!() | barrier_op!() => None,
        Op::Book(_) => None,
    }
}
