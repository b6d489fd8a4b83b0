//! Readings of practice about lanes that run together, and about products: the letter does not grant them, shipped kernels rely on them.
//!
//! Each is one promise, with the page that supports it. A launch is run ahead with all of them, or by the letter with none.

/// A reading of practice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Practice {
    /// BW: who stores one value to one word by one instruction does not race.
    OneValue,
    /// UB: a bulk copy that lanes execute together is issued once.
    Once,
    /// LW: lanes that wait together pass the wait together.
    InStep,
    /// OA: lanes that read one flag or try one phase together get one answer.
    OneAnswer,
    /// AM: `activemask` gives the lanes that come there together.
    Together,
    /// WF: a proxy fence behind a `wgmma.fence` orders what products read, too.
    Products,
}

impl Practice {
    /// The name of its switch.
    pub fn switch(self) -> &'static str {
        match self {
            Practice::OneValue => "BW",
            Practice::Once => "UB",
            Practice::InStep => "LW",
            Practice::OneAnswer => "OA",
            Practice::Together => "AM",
            Practice::Products => "WF",
        }
    }

    /// The setting of its switch.
    pub fn setting(self) -> String {
        format!("{}=B", self.switch())
    }

    /// What the letter says (A), what the reading says (B), and the page.
    pub fn says(self) -> &'static str {
        match self {
            Practice::OneValue => {
                "weak stores of one value to one word by one instruction, of lanes of a warp, or of warps of a CTA in its shared \
                 memory, and mbarrier.init of one mbarrier by lanes of a warp, are A in a race, B not: one of them remains, and \
                 all are the same (CUDA C++ Programming Guide, SIMT architecture: which thread performs the final write is \
                 undefined)"
            }
            Practice::Once => {
                "a bulk copy that lanes of a warp execute together with the same operands is A issued by each of them, B issued \
                 once (CUDA Binary Utilities, instruction set reference: such a copy becomes UBLKCP or UTMASTG, \
                 which take uniform registers of the warp)"
            }
            Practice::InStep => {
                "lanes of a warp that wait at one instruction pass it A each in its time, so that one may come when the next \
                 phase is over, B before any of them does what others see (CUDA C++ Programming Guide, SIMT architecture: \
                 a schedule optimizer groups active threads of one warp into SIMT units)"
            }
            Practice::OneAnswer => {
                "lanes of a warp that read one flag, or try one phase, by one instruction get A each an answer of its own, \
                 B one answer (CUDA C++ Programming Guide, device memory accesses: a warp coalesces the accesses of its \
                 threads to one address into one transaction)"
            }
            Practice::Together => {
                "activemask gives A any set of lanes with the executing one (PTX ISA, activemask; CUDA C++ Programming Guide, \
                 __activemask), B the lanes that come there together (CUDA blog, Using CUDA Warp-Level Primitives: opportunistic \
                 warp-level programming)"
            }
            Practice::Products => {
                "what a warpgroup product reads of shared memory comes after earlier operations of its thread A by a wgmma.fence \
                 alone, B by an async proxy fence between a wgmma.fence and the product, too (PTX ISA, program order of \
                 asynchronous operations; wgmma.fence: it is needed for registers, an async proxy fence for matrices in memory)"
            }
        }
    }
}
