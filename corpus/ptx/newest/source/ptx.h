#pragma once
#include <stdint.h>
#define DEV __device__ __forceinline__
DEV uint32_t sm(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
DEV uint32_t peer(uint32_t a, uint32_t cta) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(cta));
  return r;
}
DEV uint32_t rank() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
DEV void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
DEV void init(uint64_t *b, int n) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(sm(b)), "r"(n) : "memory"); }
DEV void init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void arrive(uint64_t *b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sm(b)) : "memory"); }
DEV void expect(uint64_t *b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(sm(b)), "r"(n) : "memory"); }
DEV void arrive_peer(uint64_t *b, uint32_t cta) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(peer(sm(b), cta)) : "memory");
}
DEV void wait(uint64_t *b, int parity) {
  uint32_t done;
  do
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(done) : "r"(sm(b)), "r"(parity) : "memory");
  while (!done);
}
DEV void st_async(uint32_t to, uint32_t v, uint32_t bar) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" :: "r"(to), "r"(v), "r"(bar) : "memory");
}
