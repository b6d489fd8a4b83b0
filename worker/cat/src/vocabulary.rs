//! The names a model may use without defining them: what the engines supply.
//!
//! Sets and relations follow herd and Dat3M where they have the idea (`W`, `po`, `loc`, `sr`, `syncbar`, ..); the
//! rest is ours and says what it means. `M` are memory events, `F` all fences, `B` barrier events.

macro_rules! vocabulary {
    ($(#[$doc:meta])* $module:ident: $($constant:ident = $name:literal, $meaning:literal;)*) => {
        $(#[$doc])*
        pub mod $module {
            #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "positions in the table; the table says what each means")]
            enum Position { $($constant),* }
            $(#[doc = $meaning] pub const $constant: usize = Position::$constant as usize;)*
            /// Name and meaning, by position.
            pub const ALL: &[(&str, &str)] = &[$(($name, $meaning)),*];
        }
    };
}

vocabulary! {
    /// Sets of events.
    sets:
    ANY = "_", "every event";
    M = "M", "memory accesses";
    R = "R", "reads";
    W = "W", "writes";
    IW = "IW", "initial writes";
    F = "F", "fences, memory and proxy";
    MF = "MF", "memory fences";
    PF = "PF", "proxy fences";
    B = "B", "barrier events";
    BAR_ARRIVE = "BAR_ARRIVE", "bar.arrive";
    BAR_SYNC = "BAR_SYNC", "bar.sync and bar.red";
    CLUSTER_ARRIVE = "CLUSTER_ARRIVE", "barrier.cluster.arrive, any form";
    CLUSTER_RELAXED = "CLUSTER_ARRIVE_RLX", "barrier.cluster.arrive.relaxed";
    CLUSTER_WAIT = "CLUSTER_WAIT", "barrier.cluster.wait";
    WARP_SYNC = "WARPSYNC", "bar.warp.sync";
    COLLECTIVE = "COLLECTIVE", "vote, shfl, match, redux and elect.sync, and what a whole warp executes, among threads of one warp";
    MBAR = "MBAR", "operations on mbarrier objects, answered waits among them";
    MBAR_INIT = "MBAR_INIT", "mbarrier.init";
    MBAR_INVAL = "MBAR_INVAL", "mbarrier.inval";
    MBAR_ARRIVE = "MBAR_ARRIVE", "mbarrier.arrive and arrive_drop, any form";
    MBAR_EXPECT = "MBAR_EXPECT", "operations with expect_tx";
    MBAR_COMPLETE = "MBAR_COMPLETE", "mbarrier.complete_tx";
    MBAR_WAIT = "MBAR_WAIT", "mbarrier.test_wait and try_wait";
    MBAR_FENCE = "MBAR_FENCE", "fence.mbarrier_init";
    TC_ISSUE = "TC_ISSUE", "issue of an asynchronous tcgen05 instruction";
    TC_COMMIT = "TC_COMMIT", "issue of tcgen05.commit";
    TC_ACCESS = "TC_ACCESS", "tensor memory accesses of an asynchronous tcgen05 instruction, to its completion; not in po";
    TC_SHARED = "TC_SHARED", "shared memory reads of such an instruction; not in po, without a source";
    TC_TENSOR = "TC_TENSOR", "accesses of mma, cp and shift, in either memory";
    TC_MMA = "TC_MMA", "accesses of mma to tensor memory";
    TC_USE = "TC_USE", "instruction that has read the last register of a tcgen05.ld";
    TC_ARRIVE = "TC_ARRIVE", "arrival of a commit; not in po";
    TC_WAIT = "TC_WAIT", "tcgen05.wait::ld and wait::st";
    TC_BEFORE = "TC_BEFORE", "tcgen05.fence::before_thread_sync";
    TC_AFTER = "TC_AFTER", "tcgen05.fence::after_thread_sync";
    COPY_ISSUE = "COPY_ISSUE", "issue of an asynchronous copy, of st.async and red.async, of a request to launch control";
    COPY_ACCESS = "COPY_ACCESS", "accesses of these and of warpgroup products; not in po, reads without a source";
    COPY_DONE = "COPY_DONE", "what they do to an mbarrier when complete; not in po";
    COPY_WAIT = "COPY_WAIT", "waits for groups of copies or warpgroup products";
    COPY_REDUCE = "COPY_REDUCE", "accesses of reducing bulk copies";
    WGMMA_ISSUE = "WGMMA_ISSUE", "issue of a warpgroup product";
    WGMMA_FENCE = "WGMMA_FENCE", "wgmma.fence";
    SHARED = "SHARED", "accesses to shared memory";
    FAR = "FAR", "asynchronous events on memory or an mbarrier of another CTA than that of their thread";
    TC_GET = "TC_GET", "tcgen05.alloc, before its store of the address";
    TC_SLOT = "TC_SLOT", "that store";
    TC_PUT = "TC_PUT", "tcgen05.dealloc";
    EXIT = "EXIT", "end of a thread, in programs whose CTAs start and exit";
    GRID_WAIT = "GRID_WAIT", "griddepcontrol.wait in a grid that has others ahead of it on its stream";
    TC_REL = "TC_REL", "tcgen05.relinquish_alloc_permit";
    WEAK = "WEAK", "weak accesses";
    RLX = "RLX", "relaxed accesses; the read half of a release rmw, the write half of an acquire rmw";
    ACQ = "ACQ", "acquiring reads and fence.acquire";
    REL = "REL", "releasing writes and fence.release";
    ACQ_REL = "ACQ_REL", "fence.acq_rel and fence.sc";
    SC = "SC", "fence.sc";
    VOLATILE = "VOLATILE", "volatile accesses";
    MMIO = "MMIO", "mmio accesses";
    RED = "RED", "both halves of a red";
    ATOM = "ATOM", "both halves of an atom";
    GEN = "GEN", "accesses of the generic proxy, and memory fences";
    SUR = "SUR", "surface accesses and fences";
    TEX = "TEX", "texture accesses and fences";
    CON = "CON", "constant accesses and fences";
    ASYNC = "ASYNC", "async-proxy accesses and fences";
    TMAP = "TMAP", "tensormap-proxy accesses and fences";
    ALIAS = "ALIAS", "fence.proxy.alias";
    PF_CLUSTER = "PF_CLUSTER", "proxy fences that speak of shared::cluster, or are one half of a pair";
    PF_READ = "PF_READ", "the one-sided proxy fence that is about earlier reads";
    RESTRICTED = "RESTRICTED", "memory fences restricted to shared memory";
    CTA = "CTA", "operations of scope cta";
    CLUSTER = "CLUSTER", "operations of scope cluster";
    GPU = "GPU", "operations of scope gpu";
    SYS = "SYS", "operations of scope sys";
    HOST = "HOST", "events of host threads";
    TILE = "TILE", "accesses of tile blocks";
    SCA = "SCA", "seq_cst accesses of source programs, both halves of a read-modify-write";
}

vocabulary! {
    /// Relations. From [`FIRST_DYNAMIC`] on they depend on the engine's choices and only grow with the graph.
    rels:
    ID = "id", "identity";
    INT = "int", "same thread";
    EXT = "ext", "different threads";
    PO = "po", "program order, transitive";
    PO_LOC = "po-loc", "po between accesses whose virtual ranges share a byte";
    LOC = "loc", "accesses that share a byte of memory";
    VLOC = "vloc", "accesses whose virtual ranges share a byte";
    COMPLETE = "complete", "accesses with identical virtual ranges";
    SAME_RANGE = "same-range", "accesses of identical bytes";
    SR = "sr", "each strong and of a scope that includes the other's thread";
    SR_HOME = "sr-home", "sr, where an asynchronous event stands in the CTA whose memory or mbarrier it touches";
    SCTA = "scta", "same CTA";
    SCTA_HOME = "scta-home", "scta, where an asynchronous event stands in the CTA whose memory it touches";
    SCLUSTER = "scluster", "same cluster";
    SGPU = "sgpu", "same GPU";
    UNORDERED = "unordered", "elements of one vector, packed or multimem instruction; symmetric";
    RMW = "rmw", "read half to write half";
    RMW_DEP = "rmw-dep", "rmw whose write needs the value read";
    ADDR = "addr", "address dependency";
    DATA = "data", "data dependency";
    CTRL = "ctrl", "control dependency, to every later event";
    CTRL_RECONV = "ctrl-reconv", "control dependency, up to the reconvergence point";
    SYNC_API = "sync_api", "a grid to a later one of its stream; to its griddepcontrol.wait only, if both may run at the same time";
    ISSUE = "issue", "issue of an instruction to its asynchronous events";
    TC_CONFLICT = "tc-conflict", "accesses of different instructions to one cell of tensor memory, at least one a write; symmetric";
    TC_PIPE = "tc-pipe", "accesses of two instructions, two mma aside, that pipeline in this order";
    TC_SAME_SHAPE = "tc-same-shape", "accesses of two mma with one address and shape of the accumulator";
    TC_SAME_BASE = "tc-same-base", "accesses of two mma with one address of the accumulator";
    TC_SAME_CELL = "tc-same-cell", "accesses of two mma whose accumulators share a cell";
    TC_SAME_KIND = "tc-same-kind", "accesses of two mma of one kind";
    TC_GOT = "tc-got", "allocation to the accesses of its columns";
    TC_FREED = "tc-freed", "accesses to what frees their columns, in either CTA of a pair";
    TC_TAKEN = "tc-taken", "allocation, in either CTA of a pair, to what frees the columns";
    REACHES = "reaches", "in programs whose CTAs start and exit: an event in program order of one CTA to what another one does in its memory";
    TC_GROWS = "tc-grows", "allocation to a larger one of the same CTA";
    TC_TRACKED = "tc-tracked", "accesses to the wait or the arrival that their completion precedes";
    COPY_TRACKED = "copy-tracked", "access of a copy or a warpgroup product to the wait, or the change of an mbarrier, that its completion precedes";
    COVERS = "covers", "proxy fence to the accesses it is about";
    TC_USED = "tc-used", "accesses of a tcgen05.ld to the instruction that has read the last of its registers";
    BAR_MIXED = "bar-mixed", "events of one CTA at barriers of one number that name different counts; symmetric";
    TOKEN = "token", "accesses of a tile block, the later one behind tokens that the instruction of the earlier one is behind or made";
    TOKEN_DIRECT = "token-direct", "accesses of a tile block, the later one waiting for tokens of which the instruction of the earlier one made one";
    RF = "rf", "reads from";
    CO = "co", "coherence, partial, transitive";
    FR = "fr", "from read, per byte";
    TORN = "torn", "a read to a write of which it saw only a part";
    SYNC_FENCE = "sync_fence", "order of fence.sc, some order is enough";
    SYNCBAR = "syncbar", "barrier arrival to the sync it releases";
    SYNC_CLUSTER = "sync_cluster", "cluster arrive to wait of one generation";
    SYNC_WARP = "sync_warp", "bar.warp.sync pairs of one generation";
    RENDEZVOUS = "rendezvous", "collective instructions of one generation; symmetric";
    BAR_PHASE = "bar-phase", "events of one barrier, earlier phase to later phase";
    MBAR_ORDER = "mbar-order", "operations on one mbarrier, earlier to later as far as its phases and answers tell";
    MBAR_SYNC = "mbar-sync", "operation of a phase to a wait answered true for it";
    MBAR_CHAIN = "mbar-chain", "mbar-sync, where the scopes of the operation and of all others of its phase include each other";
    MBAR_LIFE = "mbar-life", "mbarrier.init to the operations of the life it starts, what ends it included";
    MBAR_STEP = "mbar-step", "operation of a phase to operation of the next phase of one mbarrier";
    MBAR_AGAIN = "mbar-again", "waits answered true for the same phase of one mbarrier; symmetric";
    MBAR_SEEN = "mbar-seen", "wait answered true to operations of the phase after the one it answered for";
}

/// Position of the first relation that depends on choices.
pub const FIRST_DYNAMIC: usize = rels::RF;

/// Position of a set by name.
pub fn set(name: &str) -> Option<usize> {
    sets::ALL.iter().position(|(n, _)| *n == name)
}

/// Position of a relation by name; `overlap` is another word for `loc`.
pub fn rel(name: &str) -> Option<usize> {
    let name = if name == "overlap" { "loc" } else { name };
    rels::ALL.iter().position(|(n, _)| *n == name)
}
