//! Prints source programs as NVVM IR, which NVIDIA's libNVVM compiles: the LLVM IR of [`crate::llvm`] with the layout and the
//! version that its specification asks for.
//!
//! For GPUs before `sm_100` the language is that of LLVM 7, where a pointer names what it points to; from there on pointers
//! are opaque.

use crate::llvm::{Pointers, kernels};
use crate::syntax::Source;

const HEAD: &str = "target triple = \"nvptx64-nvidia-cuda\"
target datalayout = \"e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-\
v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64\"

";
const TAIL: &str = "!nvvmir.version = !{!0}\n!0 = !{i32 2, i32 0, i32 3, i32 2}\n";
/// The first target with opaque pointers.
const OPAQUE: u32 = 100;

/// One module with the kernels of all these programs for a target such as `sm_90`. Program `n` has the number `first + n`.
pub fn module(programs: &[&Source], first: usize, target: &str) -> String {
    HEAD.to_owned() + &kernels(programs, first, pointers(target)) + TAIL
}

/// How pointers are written for a target.
fn pointers(target: &str) -> Pointers {
    let digits = target.trim_start_matches("sm_").trim_end_matches(|c: char| !c.is_ascii_digit());
    match digits.parse::<u32>() {
        Ok(n) if n < OPAQUE => Pointers::Typed,
        _ => Pointers::Opaque,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    const TEXT: &str = "source \"x\"\n.global .b32 x;\n.generic .b64 y;\n.shared .b32 s;\n\
        P0 { r0 = add.release.gpu x, 1; r1 = cas.acquire.relaxed.sys y, 0, 1; store.plain s, 1; }\n";

    #[test]
    fn pointers_have_types_before_sm_100() {
        let source = parse(TEXT).expect("reads");
        let old = module(&[&source], 3, "sm_90a");
        for line in [
            "define ptx_kernel void @moire_3_0_(i32 addrspace(1)* %x0, i64* %x1, i32 addrspace(1)* %o0_0, i64 addrspace(1)* %o0_1) {",
            "  %v1 = atomicrmw add i32 addrspace(1)* %x0, i32 1 syncscope(\"device\") release",
            "  %v2 = cmpxchg i64* %x1, i64 0, i64 1 acquire monotonic",
            "  store i32 1, i32 addrspace(3)* @moire_s3_2, align 4",
        ] {
            assert!(old.lines().any(|l| l == line), "{line}\n{old}");
        }
        assert!(!old.contains("ptr"), "{old}");
        let new = module(&[&source], 3, "sm_103");
        let line = "  %v1 = atomicrmw add ptr addrspace(1) %x0, i32 1 syncscope(\"device\") release, align 4";
        assert!(new.lines().any(|l| l == line) && !new.contains('*'), "{new}");
    }
}
