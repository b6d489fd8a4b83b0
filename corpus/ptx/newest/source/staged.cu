#include <cooperative_groups.h>
#include <cuda/pipeline>
// Batches of 128 words come ahead into two stages by cuda::pipeline; each thread sums what another one copied.
extern "C" __global__ void __launch_bounds__(128) staged(const int *in, int *out, int batches) {
  auto block = cooperative_groups::this_thread_block();
  __shared__ alignas(16) int stage[2][128];
  #pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipe = cuda::make_pipeline(block, &state);
  int t = threadIdx.x, sum = 0, ahead = 0;
  in += blockIdx.x * batches * 128;
  for (int i = 0; i < batches; i++) {
    for (; ahead < batches && ahead < i + 2; ahead++) {
      pipe.producer_acquire();
      cuda::memcpy_async(stage[ahead % 2] + t, in + ahead * 128 + t, cuda::aligned_size_t<4>(4), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += stage[i % 2][127 - t];
    pipe.consumer_release();
  }
  out[blockIdx.x * 128 + t] = sum;
}
