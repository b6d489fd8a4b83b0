#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// A histogram of 128 bins that lie in the shared memory of both CTAs of a cluster.
extern "C" __global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(64) cluster_hist(const unsigned *data, int *hist, int n) {
  __shared__ int bins[64];
  auto cluster = cg::this_cluster();
  int t = threadIdx.x, me = cluster.block_rank();
  bins[t] = 0;
  cluster.sync();
  for (int i = blockIdx.x * 64 + t; i < n; i += gridDim.x * 64) {
    unsigned bin = data[i] & 127;
    atomicAdd(cluster.map_shared_rank(bins, bin / 64) + bin % 64, 1);
  }
#ifdef BUG
  __syncthreads();
#else
  cluster.sync();
#endif
  atomicAdd(&hist[me * 64 + t], bins[t]);
}
