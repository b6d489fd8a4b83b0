# Kernels in Triton and in Gluon, compiled without a device.
import json, re
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
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
