# Kernels in Triton and in Gluon, compiled without a device.
import json, re
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory, tcgen05_commit, tcgen05_mma
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma


@triton.jit
def layer_norm(x, w, b, y, mean, rstd, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    at = cols < n
    v = tl.load(x + row * stride + cols, mask=at, other=0.0).to(tl.float32)
    m = tl.sum(v, axis=0) / n
    d = tl.where(at, v - m, 0.0)
    r = tl.rsqrt(tl.sum(d * d, axis=0) / n + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    out = d * r * tl.load(w + cols, mask=at) + tl.load(b + cols, mask=at)
    tl.store(y + row * stride + cols, out, mask=at)


# A persistent product through descriptors that the host made: tiles dealt out by the number of the program.
@triton.jit
def persistent_mm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)):
        m, n = tile // tiles_n * BM, tile % tiles_n * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in tl.range(0, K, BK, num_stages=3):
            acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
        c.store([m, n], acc.to(tl.float16))


# A row of tiles is scaled in place: two stages of loads ahead, one buffer for the stores.
@gluon.jit
def scale_tiles(src, dst, tiles, factor, BUG: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    ring = gl.allocate_shared_memory(gl.float16, [2, 64, 64], src.layout)
    stage = gl.allocate_shared_memory(gl.float16, [64, 64], dst.layout)
    full = mbarrier.allocate_mbarrier(batch=2)
    for i in gl.static_range(2):
        mbarrier.init(full.index(i), count=1)
    for i in gl.static_range(2):
        mbarrier.expect(full.index(i), src.nbytes_per_cta, pred=i < tiles)
        tma.async_load(src, [0, i * 64], full.index(i), ring.index(i), pred=i < tiles)
    for i in range(tiles):
        s = i % 2
        mbarrier.wait(full.index(s), (i // 2) & 1)
        v = ring.index(s).load(layout) * factor.to(gl.float16)
        tma.store_wait(1 if BUG else 0)
        stage.store(v)
        fence_async_shared()
        tma.async_store(dst, [0, i * 64], stage)
        more = i + 2 < tiles
        mbarrier.expect(full.index(s), src.nbytes_per_cta, pred=more)
        tma.async_load(src, [0, (i + 2) * 64], full.index(s), ring.index(s), pred=more)
    tma.store_wait(0)
    for i in gl.static_range(2):
        mbarrier.invalidate(full.index(i))


# Attention, forward: a block of queries against all keys, with the running maximum and sum of each row.
@triton.jit
def attention(q, k, v, o, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.program_id(1).to(tl.int64) * n * D
    rows, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    mine = rows[:, None] * D + d[None, :]
    x = tl.load(q + at + mine, mask=rows[:, None] < n, other=0.0)
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in range(0, n, BN):
        cols = start + tl.arange(0, BN)
        kt = tl.load(k + at + cols[None, :] * D + d[:, None], mask=cols[None, :] < n, other=0.0)
        s = tl.where(cols[None, :] < n, tl.dot(x, kt) * scale, float("-inf"))
        now = tl.maximum(top, tl.max(s, 1))
        p, old = tl.exp2(s - now[:, None]), tl.exp2(top - now)
        total = total * old + tl.sum(p, 1)
        w = tl.load(v + at + cols[:, None] * D + d[None, :], mask=cols[:, None] < n, other=0.0)
        acc = tl.dot(p.to(tl.float16), w, acc * old[:, None])
        top = now
    tl.store(o + at + mine, (acc / total[:, None]).to(tl.float16), mask=rows[:, None] < n)


# Stream-K: each program does its share of all steps of all tiles. Who has the first step of a tile adds up the parts of the others.
@triton.jit
def stream_k(a, b, c, parts, locks, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BUG: tl.constexpr):
    steps, tiles_n = tl.cdiv(K, BK), tl.cdiv(N, BN)
    total = tl.cdiv(M, BM) * tiles_n * steps
    share = tl.cdiv(total, tl.num_programs(0))
    step = tl.program_id(0) * share
    end = tl.minimum(step + share, total)
    part = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    while step < end:
        tile = step // steps
        stop = tl.minimum(end, (tile + 1) * steps)
        m, n = tile // tiles_n * BM + tl.arange(0, BM), tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(step - tile * steps, stop - tile * steps):
            k = i * BK + tl.arange(0, BK)
            x = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            y = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(x, y, acc)
        if step == tile * steps:
            other, have = tl.program_id(0) + 1, stop
            while have < (tile + 1) * steps:
                while tl.atomic_cas(locks + other, 1, 1, sem="acquire") != 1:
                    pass
                acc += tl.load(parts + other * BM * BN + part)
                other, have = other + 1, have + share
            tl.store(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))
        else:
            tl.store(parts + tl.program_id(0) * BM * BN + part, acc)
            tl.debug_barrier()
            tl.atomic_xchg(locks + tl.program_id(0), 1, sem="relaxed" if BUG else "release")
        step = stop


# A persistent product by roles: one warp loads, one multiplies, four store. Two stages of operands, two accumulators.
@gluon.jit
def roles_load(a, b, tiles, steps, xs, ys, full, empty):
    at = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        for k in range(steps):
            s = at % 2
            mbarrier.wait(empty.index(s), at // 2 % 2 ^ 1)
            mbarrier.expect(full.index(s), a.nbytes_per_cta + b.nbytes_per_cta)
            tma.async_load(a, [tile * 128, k * 64], full.index(s), xs.index(s))
            tma.async_load(b, [0, k * 64], full.index(s), ys.index(s))
            at += 1


@gluon.jit
def roles_multiply(tiles, steps, xs, ys, full, empty, accs, done, free):
    at = 0
    turn = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(free.index(turn % 2), turn // 2 % 2 ^ 1)
        for k in range(steps):
            s = at % 2
            mbarrier.wait(full.index(s), at // 2 % 2)
            tcgen05_mma(xs.index(s), ys.index(s).permute((1, 0)), accs.index(turn % 2), use_acc=k != 0)
            tcgen05_commit(empty.index(s))
            at += 1
        tcgen05_commit(done.index(turn % 2))
        turn += 1


@gluon.jit
def roles_store(c, tiles, stage, accs, done, free):
    turn = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        mbarrier.wait(done.index(turn % 2), turn // 2 % 2)
        v = accs.index(turn % 2).load()
        mbarrier.arrive(free.index(turn % 2), count=1)
        tma.store_wait(0)
        stage.store(v.to(gl.float16))
        fence_async_shared()
        tma.async_store(c, [tile * 128, 0], stage)
        turn += 1
    tma.store_wait(0)


@gluon.jit
def roles(a, b, c, tiles, steps):
    xs = gl.allocate_shared_memory(gl.float16, [2, 128, 64], a.layout)
    ys = gl.allocate_shared_memory(gl.float16, [2, 64, 64], b.layout)
    stage = gl.allocate_shared_memory(gl.float16, [128, 64], c.layout)
    bars = mbarrier.allocate_mbarrier(batch=8)
    full, empty, done, free = bars.slice(0, 2), bars.slice(2, 2), bars.slice(4, 2), bars.slice(6, 2)
    for i in gl.static_range(8):
        mbarrier.init(bars.index(i), count=1)
    accs = allocate_tensor_memory(gl.float32, [2, 128, 64], TensorMemoryLayout([128, 64], 1))
    gl.warp_specialize([
        (roles_store, (c, tiles, stage, accs, done, free)),
        (roles_load, (a, b, tiles, steps, xs, ys, full, empty)),
        (roles_multiply, (tiles, steps, xs, ys, full, empty, accs, done, free)),
    ], [1, 1])


def write(name, src, arch, **options):
    built = triton.compile(src, target=GPUTarget("cuda", arch, 32), options=options)
    text = re.sub(r"(?ms)^\t\.section.*", "", built.asm["ptx"])
    text = re.sub(r"(?m)^\t\.(loc|file)\t.*\n|^\$L__(tmp|func_(begin|end))\d+:\n", "", text)
    open(f"{name}.ptx", "w").write(text)
    told = {key: getattr(built.metadata, key) for key in ["name", "num_ctas", "num_warps", "shared", "tmem_size"]}
    open(f"{name}.json", "w").write(json.dumps(told) + "\n")


fp = "*fp32"
write("tr-layer-norm", ASTSource(layer_norm, {**dict.fromkeys(["x", "w", "b", "y", "mean", "rstd"], fp), "stride": "i32", "n": "i32", "eps": "fp32", "BLOCK": "constexpr"}, {"BLOCK": 1024}), 90, num_warps=4)
lay = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
td = f"tensordesc<fp16[64, 64],{lay!r}>"
for bug in (False, True):
    write("tr-scale-tiles" + ("-bug" if bug else ""), GluonASTSource(scale_tiles, {"src": td, "dst": td, "tiles": "i32", "factor": "fp32", "BUG": "constexpr"}, {"BUG": bug}), 90, num_warps=4)
d = "tensordesc<fp16[%d, %d]>"
write("tr-persistent-mm", ASTSource(persistent_mm, {"a": d % (128, 64), "b": d % (128, 64), "c": d % (128, 128), "M": "i32", "N": "i32", "K": "i32", "BM": "constexpr", "BN": "constexpr", "BK": "constexpr"}, {"BM": 128, "BN": 128, "BK": 64}), 100, num_warps=4)
p = dict.fromkeys(["q", "k", "v", "o"], "*fp16")
write("tr-attention", ASTSource(attention, {**p, "scale": "fp32", "n": "i32", "D": "constexpr", "BM": "constexpr", "BN": "constexpr"}, {"D": 32, "BM": 64, "BN": 32}), 90, num_warps=4, num_stages=2)
p = {"a": "*fp16", "b": "*fp16", "c": fp, "parts": fp, "locks": "*i32", "M": "i32", "N": "i32", "K": "i32"}
for bug in (False, True):
    sizes = {"BM": 64, "BN": 32, "BK": 32, "BUG": bug}
    write("tr-stream-k" + ("-bug" if bug else ""), ASTSource(stream_k, {**p, **dict.fromkeys(sizes, "constexpr")}, sizes), 90, num_warps=4, num_stages=2)
ta, tb = (f"tensordesc<fp16[{rows}, 64],{lay!r}>" for rows in (128, 64))
write("tr-roles", GluonASTSource(roles, {"a": ta, "b": tb, "c": ta, "tiles": "i32", "steps": "i32"}, {}), 100, num_warps=4)
