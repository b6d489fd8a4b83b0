#include <cuda/atomic>
// A product whose inner dimension is split over blockIdx.z: the parts add to C in turns, as a semaphore of the tile tells.
extern "C" __global__ void __launch_bounds__(64) turns(const float *a, const float *b, float *c, int *turn, int n, int k) {
  __shared__ float as[8][8], bs[8][8];
  int x = threadIdx.x % 8, y = threadIdx.x / 8, row = blockIdx.y * 8 + y, col = blockIdx.x * 8 + x;
  int part = k / gridDim.z, z = blockIdx.z;
  float acc = 0;
  #pragma unroll 1
  for (int at = z * part; at < (z + 1) * part; at += 8) {
    as[y][x] = a[row * k + at + x];
    bs[y][x] = b[(at + y) * n + col];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 8; i++) acc += as[y][i] * bs[i][x];
    __syncthreads();
  }
  cuda::atomic_ref<int, cuda::thread_scope_device> now(turn[blockIdx.y * gridDim.x + blockIdx.x]);
  bool one = threadIdx.x == 0;
  if (z) {
    if (one) while (now.load(cuda::memory_order_acquire) != z);
    __syncthreads();
    acc += c[row * n + col];
  }
  c[row * n + col] = acc;
  __syncthreads();
  if (one) now.store(z + 1 == gridDim.z ? 0 : z + 1, cuda::memory_order_release);
}
