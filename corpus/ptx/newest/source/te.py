# Kernels in CuTe DSL, compiled without a device (CUTE_DSL_ARCH says for which).
import os, re, tempfile
os.environ.update(CUTE_DSL_ARCH="sm_100a", CUTE_DSL_KEEP="ptx", CUTE_DSL_DUMP_DIR=tempfile.mkdtemp())
import cutlass, cutlass.cute as cute, cutlass.pipeline as pipeline
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.memory import SmemAllocator


# Root mean square of a row of 512 by a block of 128 threads.
@cute.kernel
def rms_norm(x: cute.Tensor, y: cute.Tensor, bug: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    sums = SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(4), 16)
    v = cute.make_rmem_tensor(4, cutlass.Float32)
    s = cutlass.Float32(0)
    for i in cutlass.range_constexpr(4):
        v[i] = x[row, i * 128 + t]
        s += v[i] * v[i]
    for o in (16, 8, 4, 2, 1):
        s += cute.arch.shuffle_sync_bfly(s, o)
    warp = t // 32
    if cute.arch.lane_idx() == 0:
        if cutlass.const_expr(bug):
            warp = cute.arch.make_warp_uniform(warp)
        sums[warp] = s
    cute.arch.sync_threads()
    r = cute.math.rsqrt((sums[0] + sums[1] + sums[2] + sums[3]) / 512 + 1e-6)
    for i in cutlass.range_constexpr(4):
        y[row, i * 128 + t] = v[i] * r


# A warp reads ahead into a ring of three stages, two warps sum what stands there.
@cute.kernel
def row_ring(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = SmemAllocator()
    ring = smem.allocate_tensor(cutlass.Float32, cute.make_layout((64, 3)), 16)
    bars = smem.allocate_array(cutlass.Int64, 6)
    group = lambda n: pipeline.CooperativeGroup(pipeline.Agent.Thread, n)
    producer, consumer = pipeline.PipelineAsync.create(
        num_stages=3, producer_group=group(32), consumer_group=group(64), barrier_storage=bars
    ).make_participants()
    if warp == 2:
        for i in cutlass.range(n, unroll=1):
            h = producer.acquire_and_advance()
            for j in cutlass.range_constexpr(2):
                ring[j * 32 + t - 64, h.index] = x[i * 64 + j * 32 + t - 64]
            h.commit()
    else:
        s = cutlass.Float32(0)
        for i in cutlass.range(n, unroll=1):
            h = consumer.wait_and_advance()
            s += ring[t, h.index] + ring[63 - t, h.index]
            h.release()
        y[t] = s


@cute.jit
def run_rms(x: cute.Tensor, y: cute.Tensor, bug: cutlass.Constexpr):
    rms_norm(x, y, bug).launch(grid=(x.shape[0], 1, 1), block=(128, 1, 1))


@cute.jit
def run_ring(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    row_ring(x, y, n).launch(grid=(1, 1, 1), block=(96, 1, 1))


def write(name, *args):
    text = cute.compile(*args).__ptx__
    text = re.sub(r"(?m)^\t\.(loc|file)\t.*\n|^\$L__(tmp|func_(begin|end))\d+:\n", "", text)
    open(f"{name}.ptx", "w").write(re.sub(r"(?ms)^\t\.section.*", "", text).rstrip("\0\n") + "\n")


f = lambda *s: make_fake_compact_tensor(cutlass.Float32, s, stride_order=tuple(reversed(range(len(s)))), assumed_align=16)
write("te-rms-norm", run_rms, f(64, 512), f(64, 512), False)
write("te-rms-norm-bug", run_rms, f(64, 512), f(64, 512), True)
write("te-row-ring", run_ring, f(4096), f(64), cutlass.Int32(3))
