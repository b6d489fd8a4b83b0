"""Kernels of tirx-kernels, for `moire bench rivals`: without arguments their names, one a line; with a name and a folder the
module as FOLDER/NAME.ptx, if nvcc is there, and as JSON what TIRx Harness says. CUDA_INCLUDES: folders of CUDA's headers."""

import json
import os
import subprocess
import sys
import time

import tvm
from tirx_harness.dump_kernel import dump_cuda
from tirx_harness.numsim.checkers import racecheck, synccheck
from tirx_kernels.registry import kernel_index, load_kernel

ARCH = "sm_100a"


def functions(what):
    if isinstance(what, tvm.IRModule):
        return [f for _, f in what.functions_items()]
    if isinstance(what, dict):
        what = list(what.values())
    if isinstance(what, (list, tuple)):
        return [f for one in what for f in functions(one)]
    return [what]


def module(kernel, name, folder):
    target = tvm.target.Target({"kind": "cuda", "arch": ARCH})
    text = dump_cuda(tvm.compile(tvm.IRModule({"main": kernel}), target=target, tir_pipeline="tirx"))
    source = os.path.join(folder, f"{name}.cu")
    with open(source, "w") as file:
        file.write(text)
    includes = ["-I" + i for i in os.environ.get("CUDA_INCLUDES", "").split(":") if i]
    command = ["nvcc", "-ptx", f"-arch={ARCH}", "-O3", "-std=c++17", "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK"]
    out = os.path.join(folder, f"{name}.ptx")
    ran = subprocess.run([*command, *includes, "-o", out, source], capture_output=True, text=True)
    return None if ran.returncode else out


def judged(check, kernel):
    try:
        return check(kernel).verdict
    except Exception as error:
        return f"failed: {type(error).__name__}"


def main():
    if len(sys.argv) == 1:
        for name, record in sorted(kernel_index().items()):
            if ARCH in record.runtime_cuda_archs:
                print(name)
        return
    name, folder = sys.argv[1:]
    loaded = load_kernel(name, strict=True)
    config = {k: v for k, v in loaded.CONFIGS[0].items() if k != "label"}
    for at, kernel in enumerate(functions(loaded.get_kernel(**config))):
        label = name if at == 0 else f"{name}-{at}"
        told = {"kernel": label}
        try:
            told["ptx"] = module(kernel, label, folder)
        except Exception as error:
            told["why"] = f"{type(error).__name__}: {error}"[:200]
        print(json.dumps(told), flush=True)
        start = time.monotonic()
        told["said"] = [judged(check, kernel) for check in (synccheck, racecheck)]
        told["seconds"] = round(time.monotonic() - start, 2)
        print(json.dumps(told), flush=True)


main()
