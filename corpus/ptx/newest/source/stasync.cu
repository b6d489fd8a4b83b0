#include "ptx.h"
// A ring of two slots from CTA 0 to CTA 1: words go by st.async, the slot comes back by an arrival on the sender's barrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(32) stasync(const uint32_t *in, uint32_t *out, int n) {
  __shared__ uint32_t slot[2][32];
  __shared__ uint64_t full[2], empty[2];
  int t = threadIdx.x;
  if (t == 0) {
    for (int i = 0; i < 2; i++) init(&full[i], 1), init(&empty[i], 1);
    init_fence();
  }
  cluster_sync();
  if (rank() == 0) {
    for (int i = 0; i < n; i++) {
      int s = i & 1, p = i >> 1 & 1;
#ifdef BUG
      wait(&empty[s], p);
#else
      wait(&empty[s], p ^ 1);
#endif
      st_async(peer(sm(&slot[s][t]), 1), in[i * 32 + t], peer(sm(&full[s]), 1));
    }
  } else {
    for (int i = 0; i < n; i++) {
      int s = i & 1, p = i >> 1 & 1;
      if (t == 0) expect(&full[s], 128);
      wait(&full[s], p);
      out[i * 32 + t] = slot[s][t];
      __syncwarp();
      if (t == 0) arrive_peer(&empty[s], 0);
    }
  }
  cluster_sync();
}
