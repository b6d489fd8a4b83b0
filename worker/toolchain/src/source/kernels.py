"""Compiles the kernels of a module to PTX, without a device.

`kernels.py --version` prints the release of Triton; `kernels.py -arch=sm_90 -o FILE FILE` writes the PTX of the last file to the first.
The module names its kernels and the types of their parameters in KERNELS. A kernel that is refused is named by its number there.
Shared memory, whose size a launch would give, becomes a variable of the module with a name and a size of its own.
"""

import importlib.metadata
import importlib.util
import os
import re
import sys

WARPS = 2


def words(why):
    """The last line of a message that says something."""
    lines = [line.strip() for line in str(why).splitlines()]
    said = [line for line in lines if line.strip(" ^")]
    return said[-1] if said else type(why).__name__


def kernel(name, ptx, shared):
    """The head of a module, the variable of the kernel, and the kernel."""
    lines = ptx.splitlines()
    head = [line for line in lines if line.startswith((".version", ".target", ".address_size"))]
    start = next(n for n, line in enumerate(lines) if line.startswith(".visible .entry"))
    end = next(n for n, line in enumerate(lines) if n > start and line == "}")
    body = lines[start : end + 1]
    program, thread = re.fullmatch(r"moire_(\d+)_(\d+)_", name).groups()
    own = f"moire_s{program}_t{thread}"
    if not any("global_smem" in line for line in body):
        return head, [], body
    variable = f".shared .align 16 .b8 {own}[{max(shared, 1)}];"
    return head, [variable], [line.replace("global_smem", own) for line in body]


def compiled(path, arch):
    """The lines of the PTX, and what is said of each kernel that is refused."""
    os.environ["TRITON_ALWAYS_COMPILE"] = os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    os.environ["TRITON_CACHE_DIR"] = os.environ["TRITON_HOME"] = os.path.abspath("cache")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    target, refused = GPUTarget("cuda", arch, 32), []
    head, variables, kernels = [], [], []
    for number, (name, signature) in enumerate(module.KERNELS, 1):
        source = ASTSource(fn=getattr(module, name), signature=signature, constexprs={})
        try:
            made = triton.compile(source, target=target, options={"num_warps": WARPS})
        except MemoryError:
            raise
        except Exception as why:
            refused.append(f"{path}({number}): error: {words(why)}")
            continue
        head, variable, body = kernel(name, made.asm["ptx"], made.metadata.shared)
        variables += variable
        kernels += body
    return head + variables + kernels, refused


def main(arguments):
    if arguments == ["--version"]:
        print("Triton, V" + ".".join(re.findall(r"\d+", importlib.metadata.version("triton"))[:3]))
        return 0
    arch, _, to, path = arguments
    out, refused = compiled(path, int(re.search(r"\d+", arch).group()))
    if refused:
        print("\n".join(refused), file=sys.stderr)
        return 1
    with open(to, "w") as file:
        file.write("\n".join(out) + "\n")
    return 0


sys.exit(main(sys.argv[1:]))
