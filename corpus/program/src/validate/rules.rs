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
pub const RULES: [Rule; 39] = [
    ptxas(
        "access-type",
        "ld and st move integers, bits, .f32 and .f64, not .pred or .f16",
        "ptxas; PTX 9.7.9.8, 9.7.9.12",
    ),
    ptxas(
        "vector-width",
        "a vector has at most 128 bits, in .global memory 256 bits of 32- or 64-bit elements",
        "ptxas; PTX 9.7.9.8",
    ),
    ptxas("mmio-form", "a mmio access is scalar and not in shared memory", "ptxas; PTX 8.4.1"),
    ptxas(
        "update-type",
        "atom and red have each operation for some types only",
        "ptxas; PTX 9.7.13.5, 9.7.13.7",
    ),
    ptxas("red-form", "red has no exch and no cas, and is relaxed or release", "ptxas; PTX 9.7.13.7"),
    ptxas(
        "multimem-form",
        "multimem instructions have each operation and order for some types only",
        "ptxas; PTX 9.7.9.14",
    ),
    ptxas("state-space", "the state space of an access is that of the memory it names", "ptxas; PTX 5.1"),
    ptxas("absolute-address", "an address is a name or a register, not a number", "ptxas"),
    ptxas(
        "symbol-operand",
        "only mov, at an integer type, turns the address of a name into a value",
        "ptxas; PTX 6.6",
    ),
    ptxas("float-immediate", "an integer literal cannot be a floating-point operand", "ptxas; PTX 4.5.2"),
    ptxas(
        "arithmetic-type",
        "arithmetic, comparison and moves exist for some types only",
        "ptxas; PTX 9.7.1",
    ),
    ptxas("barrier-number", "a CTA has the barriers 0 to 15", "ptxas; PTX 9.7.13.1"),
    ptxas("arrive-count", "bar.arrive names a positive number of threads", "ptxas; PTX 9.7.13.1"),
    ptxas(
        "proxy-fence",
        "the fence of the tensormap proxy is one-sided and names a range",
        "ptxas; PTX 9.7.13.4",
    ),
    ptxas(
        "tensor-form",
        "tensor-core instructions have each shape, kind and modifier in some combinations only",
        "ptxas; PTX 9.7.15, 9.7.16",
    ),
    ptxas(
        "tensor-columns",
        "columns of tensor memory are allocated by powers of two from 32 to 512, exclusively by multiples of 32",
        "ptxas; PTX 9.7.16.7",
    ),
    ptxas("cta-group", "a kernel is for single CTAs or for pairs, not for both", "ptxas; PTX 9.7.16.5"),
    ptxas(
        "copy-form",
        "asynchronous copies have each space, size, mode and operation in some combinations only",
        "ptxas; PTX 9.7.9.25",
    ),
    ptxas("fence-form", "a one-sided proxy fence exists for certain memory only", "ptxas; PTX 9.7.13.4"),
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
