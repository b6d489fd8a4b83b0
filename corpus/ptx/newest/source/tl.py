# Kernels in TileLang, lowered without a device; nvcc makes PTX of the CUDA text (CUDA_INCLUDES: folders of CUDA's headers).
import os, subprocess
import tilelang, tilelang.language as T
from tilelang.env import env


def softmax(M=8, N=512):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 4, threads=128) as bx:
            x = T.alloc_fragment((4, N), "float32")
            top = T.alloc_fragment((4,), "float32")
            total = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            T.reduce_max(x, top, dim=1)
            for i, j in T.Parallel(4, N):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(4, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[bx * 4, 0])
    return main


def gemm(M=128, N=128, K=128):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, acc)
            T.copy(acc, C[by * 64, bx * 64])
    return main


def relay(bug, n=4):
    @T.prim_func
    def main(A: T.Tensor((n, 128), "float32"), B: T.Tensor((n, 128), "float32")):
        with T.Kernel(1, threads=256) as _:
            buf = T.alloc_shared((2, 128), "float32")
            full = T.alloc_barrier([128, 128])
            empty = T.alloc_barrier([128, 128])
            t = T.get_thread_binding()
            if t < 128:
                for k in T.serial(n):
                    T.mbarrier_wait_parity(empty[k % 2], (k // 2 + 1) % 2)
                    buf[k % 2, t] = A[k, t]
                    T.mbarrier_arrive(full[k % 2])
            else:
                for k in T.serial(n):
                    T.mbarrier_wait_parity(full[k % 2], (k // 2 + bug) % 2)
                    B[k, t - 128] = buf[k % 2, 255 - t]
                    T.mbarrier_arrive(empty[k % 2])
    return main


# Weights of four bits are spread out to half precision, and scaled at the end.
def dequant(M=64, N=32, K=128):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), W: T.Tensor((N, K // 2), "uint8"), S: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(N // 32, M // 64, threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            w = T.alloc_shared((32, 16), "uint8")
            packed = T.alloc_fragment((32, 16), "uint8")
            wide = T.alloc_fragment((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            acc = T.alloc_fragment((64, 32), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(W[bx * 32, k * 16], w)
                T.copy(w, packed)
                for i, j in T.Parallel(32, 32):
                    wide[i, j] = T.cast((packed[i, j // 2] >> T.cast(j % 2 * 4, "uint8")) & T.uint8(15), "float16") - T.float16(8)
                T.copy(wide, b)
                T.gemm(a, b, acc, transpose_B=True)
            for i, j in T.Parallel(64, 32):
                acc[i, j] = acc[i, j] * S[bx * 32 + j]
            T.copy(acc, C[by * 64, bx * 32])
    return main


# The four largest numbers of each row, and where they stand.
def top_k(rows, M=8, N=256, k=4):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), V: T.Tensor((M, k), "float32"), I: T.Tensor((M, k), "int32")):
        with T.Kernel(M // 4, threads=128) as bx:
            x = T.alloc_fragment((4, N), "float32")
            at = T.alloc_fragment((4, N), "int32")
            top = T.alloc_fragment((4,), "float32")
            where = T.alloc_fragment((4,), "int32")
            T.copy(X[bx * 4, 0], x)
            for n in T.serial(k):
                T.reduce_max(x, top, dim=1)
                for i, j in T.Parallel(4, N):
                    at[i, j] = T.if_then_else(x[i, j] == top[i], j, -1)
                T.reduce_max(at, where, dim=1)
                for i, j in T.Parallel(4, N):
                    x[i, j] = T.if_then_else(j == where[i], T.float32(-1e30), x[i, j])
                for i in T.Parallel(4):
                    V[bx * rows + i, n] = top[i]
                    I[bx * rows + i, n] = where[i]
    return main


def write(name, func, target, arch, **config):
    target = tilelang.tvm.target.Target(target)
    with target, tilelang.tvm.transform.PassContext(config={f"tl.{key}": True for key in config}):
        code = tilelang.lower(func, target=target).kernel_source
    open(f"{name}.cu", "w").write(code)
    inc = [*os.environ["CUDA_INCLUDES"].split(":"), env.CUTLASS_INCLUDE_DIR, env.TILELANG_TEMPLATE_PATH]
    subprocess.run(["nvcc", "-ptx", f"-arch={arch}", "-O3", "-std=c++17", "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK", *("-I" + i for i in inc), "-o", f"{name}.ptx", f"{name}.cu"], check=True)
    print(name)


write("tl-softmax", softmax(), {"kind": "cuda", "arch": "sm_90a"}, "sm_90a")
write("tl-gemm", gemm(), {"kind": "cuda", "arch": "sm_90a"}, "sm_90a")
write("tl-relay", relay(0), {"kind": "cuda", "arch": "sm_90a"}, "sm_90a")
write("tl-relay-bug", relay(1), {"kind": "cuda", "arch": "sm_90a"}, "sm_90a")
hopper = {"kind": "cuda", "arch": "sm_90a"}, "sm_90a"
write("tl-dequant", dequant(), *hopper, disable_warp_specialized=1, disable_tma_lower=1)
write("tl-top-k", top_k(4), *hopper)
write("tl-top-k-bug", top_k(2), *hopper)
