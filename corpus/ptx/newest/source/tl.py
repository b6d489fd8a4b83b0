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


def write(name, func, target, arch):
    target = tilelang.tvm.target.Target(target)
    with target:
        code = tilelang.lower(func, target=target).kernel_source
    open(f"{name}.cu", "w").write(code)
    inc = [*os.environ["CUDA_INCLUDES"].split(":"), env.CUTLASS_INCLUDE_DIR, env.TILELANG_TEMPLATE_PATH]
    subprocess.run(["nvcc", "-ptx", f"-arch={arch}", "-O3", "-std=c++17", "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK", *("-I" + i for i in inc), "-o", f"{name}.ptx", f"{name}.cu"], check=True)
    print(name)


write("tl-softmax", softmax(), {"kind": "cuda", "arch": "sm_90a"}, "sm_90a")
write("tl-gemm", gemm(), {"kind": "cuda", "arch": "sm_90a"}, "sm_90a")
write("tl-relay", relay(0), {"kind": "cuda", "arch": "sm_90a"}, "sm_90a")
write("tl-relay-bug", relay(1), {"kind": "cuda", "arch": "sm_90a"}, "sm_90a")
