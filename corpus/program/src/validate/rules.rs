//! The table of rules. `PTX` sections are those of the PTX ISA 9.2; `ptxas` means its answers, see the parent module.

/// The authority of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// NVIDIA's assembler refuses the program, and so does this rule.
    PtxasEqual,
    /// The text leaves open what it means, so it is refused.
    Unclear,
    /// The rule only advises: the program is explored anyway.
    Lint,
}

/// One rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Stable name, as reports show it.
    pub id: &'static str,
    /// Its authority.
    pub kind: RuleKind,
    /// The rule, or the fault it finds, in one sentence.
    pub doc: &'static str,
    /// The document or tool it comes from.
    pub source: &'static str,
}

const fn ptxas(id: &'static str, doc: &'static str, source: &'static str) -> Rule {
    Rule { id, kind: RuleKind::PtxasEqual, doc, source }
}

const fn unclear(id: &'static str, doc: &'static str, source: &'static str) -> Rule {
    Rule { id, kind: RuleKind::Unclear, doc, source }
}

const fn lint(id: &'static str, doc: &'static str, source: &'static str) -> Rule {
    Rule { id, kind: RuleKind::Lint, doc, source }
}

/// Every rule, those of the assembler first.
pub const RULES: [Rule; 23] = [
    ptxas("form", "PTX has no such form of the instruction", "ptxas; the book of instructions, `moire-isa`"),
    ptxas("state-space", "the state space of an access is that of the memory it names", "ptxas; PTX 5.1"),
    ptxas("cta-group", "a kernel is for single CTAs or for pairs, not for both", "ptxas; PTX 9.7.16.5"),
    ptxas("target", "some architecture has every instruction of the program", "ptxas"),
    unclear(
        "ambiguous-warp",
        "an instruction about the lanes of a warp, and threads of that warp that do not name their lanes",
        "PTX 9.7.13.2, 9.7.13.14",
    ),
    lint(
        "narrow-scope",
        "the scope of a fence or strong access includes no other thread that it could synchronise with",
        "PTX 8.5, 8.7.1",
    ),
    lint(
        "static-address",
        "an access lies outside its object or is not aligned to its size",
        "PTX 6.4.1, 9.7.9",
    ),
    lint(
        "multimem-address",
        "multimem instructions use multimem addresses, and no other instructions do",
        "PTX 8.2.3, 9.7.9.14",
    ),
    lint(
        "unfenced-proxies",
        "memory is reached through two names or proxies and the program has no fence between them",
        "PTX 8.2.2, 8.6",
    ),
    lint("idle-fence", "a fence has nothing to order before it or after it", "PTX 8.8"),
    lint(
        "barrier-count",
        "a barrier waits for more threads than can arrive, or two counts differ",
        "PTX 9.7.13.1",
    ),
    lint(
        "barrier-pairing",
        "an arrival that no thread waits for, or a wait without an arrival",
        "PTX 9.7.13.1, 9.7.13.3",
    ),
    lint("divergent-barrier", "a thread can bypass a barrier at which others wait", "PTX 9.7.13.1"),
    lint(
        "placement",
        "an instruction or a lane that cannot be where the thread is",
        "PTX 2.2, 5.1, 9.7.13.2",
    ),
    lint("ignored-instruction", "an instruction that has no effect in the model", "this program's limits"),
    lint(
        "tensor-address",
        "a tensor-core instruction reaches outside what its name declares, or outside the lanes of its warp",
        "PTX 9.7.16.2, 9.7.16.8",
    ),
    lint("unreachable-code", "an instruction that never runs, or a thread that never ends", "control flow"),
    lint("unused-name", "a name is declared and never used", "names"),
    lint("unwritten-register", "a register that is never written is read, or occurs in a condition", "names"),
    lint("truncated-immediate", "a literal has more bits than the type", "PTX 4.5.1"),
    lint("register-width", "no register declaration fits all uses of a register", "PTX 9.4.1"),
    lint(
        "float-arithmetic",
        "floating-point values are bits here: arithmetic on them is integer arithmetic",
        "this program's limits",
    ),
    lint("impossible-condition", "no value that the program can produce satisfies a comparison", "values"),
];

/// The rule with this name.
pub fn rule(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.id == id)
}
