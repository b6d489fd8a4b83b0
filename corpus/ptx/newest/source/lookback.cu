#include <cuda/atomic>
// Prefix sums in one pass: a block takes the next tile, publishes its sum, and adds up what stands before it, tile by tile.
enum { EMPTY, SUM, PREFIX };
extern "C" __global__ void __launch_bounds__(64) lookback(const unsigned *in, unsigned *out, unsigned *ticket, int *state, unsigned *sums, unsigned *prefixes) {
  __shared__ unsigned tile, before, first;
  int t = threadIdx.x, lane = t & 31;
  if (t == 0) tile = atomicAdd(ticket, 1);
  __syncthreads();
  unsigned mine = tile, v = in[mine * 64 + t];
  for (int o = 1; o < 32; o <<= 1) {
    unsigned w = __shfl_up_sync(~0u, v, o);
    if (lane >= o) v += w;
  }
  if (t == 31) first = v;
  __syncthreads();
  if (t >= 32) v += first;
  if (t == 63) {
    using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;
#ifdef BUG
    auto publish = cuda::memory_order_relaxed;
#else
    auto publish = cuda::memory_order_release;
#endif
    unsigned sum = 0;
    if (mine) {
      sums[mine] = v;
      Flag(state[mine]).store(SUM, publish);
      for (int back = mine - 1;; back--) {
        int f;
        while ((f = Flag(state[back]).load(cuda::memory_order_acquire)) == EMPTY);
        if (f == PREFIX) {
          sum += prefixes[back];
          break;
        }
        sum += sums[back];
      }
    }
    prefixes[mine] = sum + v;
    Flag(state[mine]).store(PREFIX, publish);
    before = sum;
  }
  __syncthreads();
  out[mine * 64 + t] = before + v;
}
