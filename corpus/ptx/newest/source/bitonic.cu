// Bitonic sort of 128 keys of a block in shared memory.
extern "C" __global__ void __launch_bounds__(64) bitonic(unsigned *keys) {
  __shared__ unsigned a[128];
  int t = threadIdx.x;
  unsigned *mine = keys + blockIdx.x * 128;
  a[t] = mine[t];
  a[t + 64] = mine[t + 64];
  for (int size = 2; size <= 128; size <<= 1)
    for (int step = size >> 1; step; step >>= 1) {
      __syncthreads();
      int i = 2 * t - (t & (step - 1)), j = i + step;
      bool up = (i & size) == 0;
      unsigned x = a[i], y = a[j];
      if ((x > y) == up) a[i] = y, a[j] = x;
    }
  __syncthreads();
  mine[t] = a[t];
  mine[t + 64] = a[t + 64];
}
