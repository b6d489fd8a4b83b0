//! Verdicts and rules in the words of the reader: what each means, what to do, and a small program that shows it. What
//! `moire explain` prints; answers take their words from here.
//!
//! A rule is a flag of a model or of the engines. Each shipped model's flags are here, and each program gives its answer: both are
//! tested beside `moire explain`.

/// What is told of a verdict or a rule.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The word of the verdict, or the name of the rule.
    pub name: &'static str,
    /// In a phrase.
    pub title: &'static str,
    /// What it means.
    pub why: &'static str,
    /// What to do.
    pub mend: &'static str,
    /// A program; empty if there is none.
    pub example: &'static str,
}

/// The verdict of this word.
pub fn verdict(word: &str) -> Option<&'static Told> {
    VERDICTS.iter().find(|v| v.name == word)
}

/// The rule of this name.
pub fn rule(name: &str) -> Option<&'static Told> {
    RULES.iter().find(|r| r.name == name)
}

macro_rules! told {
    ($($name:literal, $title:literal, $why:literal, $mend:literal $(, $example:literal)?;)*) => {
        &[$(Told {
            name: $name,
            title: $title,
            why: $why,
            mend: $mend,
            example: concat!($(include_str!(concat!("../../../corpus/litmus/", $example, ".litmus")))?),
        },)*]
    };
}

/// The verdicts.
pub const VERDICTS: &[Told] = told! {
    "race", "conflicting accesses without an order",
        "Two threads access the same bytes, at least one of them writes, and nothing orders the two: no barrier between them, and no write with release whose value the other side reads with acquire. Relaxed and volatile accesses do not order what stands around them. The second side may see old bytes, new ones, or some of each.",
        "Put the barrier or the release and acquire between the two accesses that the answer names. Making the accesses themselves relaxed silences the race and leaves the bug.",
        "mp/mp-weak";
    "hang", "some threads wait for ever",
        "There is an execution in which no thread can go on. The answer names who waits, for which barrier, in which phase, and how many arrivals or bytes are still missing.",
        "Look for the thread that would have to arrive and does not: a branch around the barrier, an arrival count or an expected number of bytes that is too high, a parity that is one phase ahead.",
        "barriers/bar-count-exit";
    "condition", "the condition of the text is not as stated",
        "`exists` found no execution, `~exists` found one, or `forall` found one that differs. The execution is shown.",
        "Nothing, if the program asks whether the outcome is possible; else the order that forbids it is missing.",
        "book/mad-far";
    "early-pass", "a wait returns before the event that it stands for",
        "A wait on an mbarrier is answered by an earlier phase, or at once, so that what follows it runs while the data is not there yet.",
        "The parity is wrong, or a phase is missing: a wait for parity 1 on a fresh mbarrier passes at once. Keep a parity for each barrier, and flip it after each wait.",
        "mbarrier/early-pass";
    "lifetime", "an object is used outside its life",
        "An mbarrier is valid from `init` to `inval`, columns of tensor memory from `alloc` to `dealloc`, shared memory until its CTA exits. Each use must be ordered with both ends.",
        "Order the use with the end that the rule names, mostly by a barrier of the CTA or of the cluster.",
        "mbarrier/never-initialised";
    "protocol", "a precondition of an instruction is broken",
        "The documents ask something of the caller that does not hold in some execution.",
        "See the rule that the answer names.",
        "consan/row67-buggy";
    "undefined", "the program has no meaning under the model",
        "Accesses of different sizes race, or the model admits no execution at all.",
        "Order the accesses, or make them of one size.",
        "mixed/halves-racing";
    "contested", "a disputed reading changes the verdict",
        "The documents can be read in two ways, and the answer depends on it. The answer names the reading, and what it says.",
        "Write the order that holds under both.";
    "bounded", "a limit was hit before everything was seen",
        "Nothing wrong was found up to there. That is no promise about the rest.",
        "The answer names the option that raises the limit. `bounded(coverage)` names instructions that no launch ran, with options that reach them.";
    "abstained", "something stands in the program that no engine models",
        "The answer names it, with its line. No verdict is given, because it could be wrong.",
        "Leave the instruction out, or ask about the part of the program around it.",
        "book/pending-count";
    "clean", "explored completely, and nothing is wrong",
        "Every execution was seen: of this launch, with these trip counts, under this model, with what stands beside the verdict as assumed.",
        "Nothing.",
        "coherence/coww";
    "rejected", "the text is malformed, or ptxas would refuse it",
        "Each error has a position, a rule and mostly a hint.",
        "Correct the text.";
};

/// The rules that executions break, by name.
pub const RULES: &[Told] = told! {
    "uniform-race", "conflicting accesses of the same bytes without an order",
        "Both accesses are of the same bytes, and nothing orders them (PTX 8.7.1, 8.7.2). Copies and products that run asynchronously count from when they are issued until their completion is waited for.",
        "See `moire explain race`.",
        "barriers/strong-load-early";
    "mixed-race", "racing accesses of different sizes",
        "A race between accesses whose bytes are not the same: the memory model gives the whole program no meaning (8.7.1).",
        "Order them, or make them of one size.",
        "mixed/halves-racing";
    "undefined-race", "a race that leaves the whole program undefined",
        "The model of source programs, or of Tile IR, gives a program with a race no meaning.",
        "Order the accesses.",
        "tile/race-across";
    "tensor-race", "conflicting accesses of tensor memory without an order",
        "Tensor memory has no strong accesses: each conflict needs a wait (`tcgen05.wait`, `tcgen05.commit` and its mbarrier) and a fence (9.7.16.6).",
        "Wait for the completion of the first, and fence before the second: `tcgen05.fence::before_thread_sync`, barrier, `tcgen05.fence::after_thread_sync`.",
        "tmem-table/st-ld";
    "register-race", "registers of a pending warpgroup product are used",
        "The product reads and writes its registers until it is waited for.",
        "`wgmma.fence` before the first product, `wgmma.wait_group` before the registers are used.",
        "copies/wgmma-no-fence";
    "early-pass", "a wait passes before what it was meant to wait for",
        "Two accesses race that a wait was meant to keep apart. The wait was answered by a phase that ended before the first of them.",
        "Wait for the other parity, or for one phase more.",
        "mbarrier/early-pass";
    "early-again", "a thread waits twice for the same phase",
        "The second wait passes at once, and the thread then arrives in a phase whose predecessor nobody waited for.",
        "Flip the parity after each wait.",
        "mbarrier/early-again";
    "lifetime-again", "an mbarrier is initialised twice",
        "There is no `inval` between the two.",
        "Initialise once, by one thread, before the barrier that starts the work.",
        "consan/row68-buggy";
    "lifetime-bytes", "the bytes of an mbarrier are accessed as data while it is valid",
        "Only mbarrier operations may touch them.",
        "Move the access before the `init`, or after the `inval`, with an order between.",
        "mbarrier/bytes-as-data";
    "lifetime-columns", "an access leaves the columns of its allocation",
        "The address plus the shape of the instruction reaches columns that were not allocated.",
        "Allocate more columns, or correct the address.",
        "tcgen05/outside-columns";
    "lifetime-exited", "memory of a CTA is accessed that may have exited",
        "Nothing keeps the owner alive until the access has happened.",
        "A cluster barrier before the owner exits.",
        "exit/remote-arrive";
    "lifetime-freed", "columns of tensor memory are given back while they are still accessed",
        "`tcgen05.dealloc` must come after every access, in both CTAs of a pair.",
        "Wait for the accesses before the `dealloc`.",
        "tcgen05/dealloc-no-wait";
    "lifetime-outside", "an mbarrier is used before `init`, or after `inval`",
        "Nothing initialised it in this execution when it was used.",
        "Initialise it, and put a barrier between the `init` and the first use.",
        "mbarrier/never-initialised";
    "lifetime-pending", "a CTA exits while its memory is still accessed asynchronously",
        "A copy or an arrival of the hardware may land in shared memory that already belongs to another CTA.",
        "Wait for it before the exit.",
        "exit/small-pending";
    "lifetime-polled", "a wait asks an mbarrier that may not be initialised yet",
        "Its last answer comes after the `init`, but its earlier polls are not ordered behind it.",
        "Put the barrier in front of the wait.",
        "mbarrier/poll-before-init";
    "lifetime-repeated", "several lanes initialise or invalidate one mbarrier",
        "Each lane does it again.",
        "Elect one lane.",
        "lanes/init-by-all";
    "lifetime-taken", "the other CTA of a pair frees columns before they are allocated here",
        "Both CTAs of a pair allocate and free together.",
        "Order the two by the cluster barrier.",
        "tcgen05/pair-dealloc-peer-late";
    "lifetime-unallocated", "tensor memory that is not allocated is accessed or freed",
        "There is no allocation, or it was given back.",
        "Allocate before, and free once.",
        "tcgen05/dealloc-twice";
    "lifetime-unordered", "an mbarrier is used without an order to its `init` or `inval`",
        "In this execution the use comes in time, but nothing guarantees it.",
        "A barrier behind the `init` (`fence.mbarrier_init` and the cluster barrier for other CTAs), and one in front of the `inval`.",
        "tcgen05/lanes-wait-inval";
    "lifetime-unstarted", "memory of a CTA is accessed that may not have started",
        "The CTAs of a cluster start one after another.",
        "A cluster barrier before the first access.",
        "tcgen05/launch-remote-arrive";
    "protocol-barrier", "threads name different counts at one barrier at the same time",
        "Phases of a barrier with different counts must not overlap.",
        "One count for each use of a barrier number, or another number.",
        "barriers/bar-counts-meet";
    "protocol-barrier-count", "more threads are at a barrier than its count",
        "The count of `bar.sync` says how many threads meet.",
        "Raise the count, or let fewer threads arrive.",
        "barriers/bar-count-below";
    "protocol-cluster-arrives-twice", "a thread arrives twice at the cluster barrier without a wait between",
        "`barrier.cluster.arrive` must be followed by `barrier.cluster.wait` of the same thread.",
        "Add the wait.",
        "barrier.cluster/cluster-arrive-twice";
    "protocol-cluster-waits-unarrived", "a thread waits at the cluster barrier and has not arrived",
        "`barrier.cluster.wait` needs an arrival of the same thread before it.",
        "Add the arrival.",
        "barrier.cluster/cluster-wait-alone";
    "protocol-columns", "a number of columns that no allocation has",
        "`tcgen05.alloc` takes a power of two from 32 to 512.",
        "Take one of them.";
    "protocol-converged", "only some lanes execute an instruction of the whole warp",
        "The instruction needs all lanes.",
        "Move it out of the branch.",
        "tcgen05/lanes-load";
    "protocol-dealloc", "columns are given back with another address or count than they were allocated with",
        "Both must be those of the allocation.",
        "Keep address and count.",
        "tcgen05/dealloc-count";
    "protocol-growth", "a later allocation is larger than an earlier one",
        "Later allocations of a CTA may not be larger (9.7.16.7).",
        "Allocate the largest first.",
        "tcgen05/alloc-grows";
    "protocol-issue-granularity", "each of several lanes issues a whole operation",
        "One thread issues `mma`, `cp`, `shift` and `commit`.",
        "Elect one lane.",
        "tcgen05/warp-issues";
    "protocol-lanes", "a warp accesses lanes of tensor memory that belong to another warp",
        "Warp w of a warpgroup has the lanes 32w to 32w+31.",
        "Add the lane of the warp to the address, or let the right warp do it.",
        "tcgen05/wrong-lanes";
    "protocol-leak", "a CTA exits while columns of tensor memory are allocated",
        "They are not given back by the exit.",
        "`tcgen05.dealloc` before the exit.",
        "tcgen05/no-dealloc";
    "protocol-no-complete", "an arrival with `.noComplete` completes its phase",
        "It promises that it does not.",
        "Leave out `.noComplete`, or raise the count.",
        "mbarrier/no-complete";
    "protocol-overarrival", "more arrivals in a phase than the mbarrier expects",
        "The pending count falls below zero.",
        "Raise the count of `mbarrier.init`, or let fewer threads arrive: mostly one elected lane.",
        "consan/row67-buggy";
    "protocol-pending", "a CTA exits while an operation of the tensor core is pending",
        "Its completion must be waited for.",
        "Commit, and wait at the mbarrier.";
    "protocol-permit", "columns are allocated after the permit was given up",
        "No allocation follows `tcgen05.relinquish_alloc_permit` in the CTA.",
        "Move it behind the last allocation.",
        "tcgen05/alloc-relinquish-other";
    "protocol-range", "a count is out of range",
        "Counts of an mbarrier have 20 bits.",
        "Take a smaller count.";
    "protocol-target", "a form for objects of the own CTA is used on one of another CTA",
        "Some instructions know only `shared::cta`.",
        "Use the form for `shared::cluster`.",
        "mbarrier/local-form-remote";
    "protocol-unobserved", "a thread arrives for a phase although nobody waited for the phase before it",
        "The phase before may still be waited for: its waiters can miss it (9.7.13.15.5.1).",
        "Wait for a phase before arriving in the next one.",
        "mbarrier/expect-tx-unfinished";
    "protocol-unstarted", "the tensor core accesses a CTA that may not have started",
        "Both CTAs of a pair must run.",
        "A cluster barrier before the first use.",
        "tcgen05/launch-pair-not-started";
    "undefined-mask", "a lane executes an instruction whose mask leaves it out",
        "The mask of `.sync` must name every lane that executes it.",
        "Name the lane, or branch around.",
        "lanes/outside-its-mask";
};
