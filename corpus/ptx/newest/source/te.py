# Kernels in CuTe DSL, compiled without a device (CUTE_DSL_ARCH says for which).
import os, re, tempfile
os.environ.update(CUTE_DSL_ARCH="sm_100a", CUTE_DSL_KEEP="ptx", CUTE_DSL_DUMP_DIR=tempfile.mkdtemp())
import cutlass, cutlass.cute as cute, cutlass.pipeline as pipeline
from cutlass.cute.nvgpu import cpasync
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


# Both CTAs of a cluster read all tiles: each loads half of a tile for both.
@cute.kernel
def multicast(atom: cute.CopyAtom, x: cute.Tensor, y: cute.Tensor, layout: cute.Layout, n: cutlass.Int32, bug: cutlass.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    smem = SmemAllocator()
    ring = smem.allocate_tensor(cutlass.Float32, layout, 128)
    bars = smem.allocate_array(cutlass.Int64, 4)
    group = lambda n: pipeline.CooperativeGroup(pipeline.Agent.Thread, n)
    producer, consumer = pipeline.PipelineTmaAsync.create(
        num_stages=2, producer_group=group(1), consumer_group=group(2 if bug else 4), tx_count=64 * 32 * 4, barrier_storage=bars,
        cta_layout_vmnk=cute.make_layout((1, 1, 2, 1)), mcast_mode_mn=(1, 0),
    ).make_participants()
    tiles = cute.local_tile(x, (64, 32), (0, None))
    to, here = cpasync.tma_partition(atom, rank, cute.make_layout(2), cute.group_modes(ring, 0, 2), cute.group_modes(tiles, 0, 2))
    if warp == 2:
        for k in cutlass.range(n, unroll=1):
            h = producer.acquire_and_advance()
            cute.copy(atom, here[None, k], to[None, h.index], tma_bar_ptr=h.barrier, mcast_mask=cutlass.Int16(3))
        producer.tail()
    else:
        s = cutlass.Float32(0)
        for k in cutlass.range(n, unroll=1):
            h = consumer.wait_and_advance()
            for j in cutlass.range_constexpr(2):
                s += ring[t, (block + j) % 32, h.index]
            h.release()
        y[block, t] = s


# Rows that a list names come by cp.async, a stage ahead, and leave as columns.
@cute.kernel
def gather(x: cute.Tensor, ids: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    ring = SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((32, 32, 2), stride=(36, 1, 1152)), 16)
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    row, piece = t // 8, t % 8
    source = ids[block * 32 + row]
    for k in cutlass.range(n + 1, unroll=1):
        if k < n:
            words, place = x[source, None], ring[row, None, k % 2]
            cute.copy(atom, cute.local_tile(words, (4,), (k * 8 + piece,)), cute.local_tile(place, (4,), (piece,)))
        cute.arch.cp_async_commit_group()
        if k > 0:
            cute.arch.cp_async_wait_group(1)
            cute.arch.sync_threads()
            for j in cutlass.range_constexpr(4):
                c = t // 32 + j * 8
                y[(k - 1) * 32 + c, block * 32 + t % 32] = ring[t % 32, c, (k - 1) % 2]
            cute.arch.sync_threads()


@cute.jit
def run_rms(x: cute.Tensor, y: cute.Tensor, bug: cutlass.Constexpr):
    rms_norm(x, y, bug).launch(grid=(x.shape[0], 1, 1), block=(128, 1, 1))


@cute.jit
def run_ring(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    row_ring(x, y, n).launch(grid=(1, 1, 1), block=(96, 1, 1))


@cute.jit
def run_multicast(x: cute.Tensor, y: cute.Tensor, n: cutlass.Int32, bug: cutlass.Constexpr):
    layout = cute.make_layout((64, 32, 2), stride=(32, 1, 2048))
    atom, tiles = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SMulticastOp(), x, cute.select(layout, mode=[0, 1]), (64, 32), num_multicast=2
    )
    multicast(atom, tiles, y, layout, n, bug).launch(grid=(4, 1, 1), block=(96, 1, 1), cluster=(2, 1, 1))


@cute.jit
def run_gather(x: cute.Tensor, ids: cute.Tensor, y: cute.Tensor, n: cutlass.Int32):
    gather(x, ids, y, n).launch(grid=(4, 1, 1), block=(256, 1, 1))


def write(name, *args):
    text = cute.compile(*args).__ptx__
    text = re.sub(r"(?m)^\t\.(loc|file)\t.*\n|^\$L__(tmp|func_(begin|end))\d+:\n", "", text)
    open(f"{name}.ptx", "w").write(re.sub(r"(?ms)^\t\.section.*", "", text).rstrip("\0\n") + "\n")


f = lambda *s, of=cutlass.Float32: make_fake_compact_tensor(of, s, stride_order=tuple(reversed(range(len(s)))), assumed_align=16)
write("te-rms-norm", run_rms, f(64, 512), f(64, 512), False)
write("te-rms-norm-bug", run_rms, f(64, 512), f(64, 512), True)
write("te-row-ring", run_ring, f(4096), f(64), cutlass.Int32(3))
write("te-multicast", run_multicast, f(64, 4096), f(4, 64), cutlass.Int32(3), False)
write("te-multicast-bug", run_multicast, f(64, 4096), f(4, 64), cutlass.Int32(3), True)
write("te-gather", run_gather, f(512, 1024), f(128, of=cutlass.Int32), f(1024, 128), cutlass.Int32(3))
