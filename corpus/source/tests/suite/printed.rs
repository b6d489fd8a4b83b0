//! The texts for compilers.

use moire_source::text::parse;
use moire_source::{cuda, llvm};

const SOURCE: &str = "source \"t\"\n.global .b32 x;\n.generic .b16 y;\n.shared .b64 s;\nP0 (cta 0) { store.volatile.release.cluster x, 1; r0 = cas.acq_rel.acquire.sys y, 1, 2; fence.seq_cst.cta; min.relaxed.cta s, 4; }\nP1 (cta 0) { r0 = load.acquire.gpu x; if r0 == 1 { r0 = exch.seq_cst.sys x, 5; } store.plain s, 0; }\n";

#[test]
fn llvm_ir_has_every_order_and_scope() {
    let source = parse(SOURCE).unwrap_or_else(|e| panic!("{e}"));
    let module = llvm::module(&[&source, &source], 4);
    let first = module.split("define").nth(1).expect("a kernel");
    assert_eq!(
        first,
        " ptx_kernel void @moire_4_0_(ptr addrspace(1) %x0, ptr %x1, ptr addrspace(1) %o0_0, ptr addrspace(1) %o1_0) {\n\
         start:\n\
         \x20 store atomic volatile i32 1, ptr addrspace(1) %x0 syncscope(\"cluster\") release, align 4\n\
         \x20 %v1 = cmpxchg ptr %x1, i16 1, i16 2 acq_rel acquire, align 2\n\
         \x20 %v2 = extractvalue { i16, i1 } %v1, 0\n\
         \x20 fence syncscope(\"block\") seq_cst\n\
         \x20 %v3 = atomicrmw umin ptr addrspace(3) @moire_s4_2, i64 4 syncscope(\"block\") monotonic, align 8\n\
         \x20 store i16 %v2, ptr addrspace(1) %o0_0, align 2\n\
         \x20 ret void\n}\n\n"
    );
    let second = module.split("define").nth(2).expect("a kernel");
    assert!(second.contains("br i1 %v2, label %then2, label %join2\nthen2:\n"), "{second}");
    assert!(second.contains("%v4 = phi i32 [ %v1, %start ], [ %v3, %then2 ]\n"), "{second}");
    assert!(second.contains("store i32 %v4, ptr addrspace(1) %o1_0, align 4"), "{second}");
    assert_eq!(module.matches("define ptx_kernel").count(), 4);
    assert_eq!(module.matches("@moire_s5_2 = addrspace(3) global i64 undef").count(), 1);
}

#[test]
fn cuda_has_a_kernel_a_line() {
    let source = parse(SOURCE).unwrap_or_else(|e| panic!("{e}"));
    let unit = cuda::unit(&[&source], 0);
    let lines: Vec<&str> = unit.lines().collect();
    assert_eq!(lines.len(), 2);
    for part in [
        "extern \"C\" __global__ void moire_0_0_(unsigned int* x0, unsigned short* x1, unsigned short* o0_0, unsigned int* o1_0) {",
        "__nv_atomic_store(x0, &w, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_CLUSTER);",
        "__nv_atomic_compare_exchange(x1, &r0, &w, false, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_SYSTEM);",
        "__nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_BLOCK);",
        "__nv_atomic_fetch_min(x2, (unsigned long long)4u, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK);",
        "*o0_0 = r0;",
        "unsigned long long* x2 = &moire_s0_2; asm volatile(\"\" :: \"l\"(x2) : \"memory\");",
    ] {
        assert!(lines[0].contains(part), "{part}\n{}", lines[0]);
    }
    assert!(
        lines[1].contains("if (r0 == 1u) { { unsigned int w = 5u; __nv_atomic_exchange("),
        "{}",
        lines[1]
    );
}
