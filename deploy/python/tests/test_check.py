"""The wheel from outside. ``MOIRE`` names the command; parts that need Triton are skipped without it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from moire_check import MoireError, check
from moire_check._check import command
from moire_check.plugin import has_device

pytest_plugins = ["pytester"]

KERNEL = """.version 8.7
.target sm_90a
.address_size 64
.file 1 "handover.py"

.visible .entry handover()
.reqntid 64
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .shared .align 4 .b32 word;
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p0, %r0, 0;
    setp.ne.u32 %p1, %r0, 32;
    .loc 1 7 1
    @!%p0 st.shared.b32 [word], 1;
    BARRIER
    @%p1 bra DONE;
    .loc 1 9 1
    ld.shared.b32 %r1, [word];
DONE:
    ret;
}
"""
RACE, CLEAN = KERNEL.replace("BARRIER", ""), KERNEL.replace("BARRIER", "bar.sync 0;")

TRITON = '''
import triton
import triton.language as tl

@triton.jit
def together(out):
    tl.store(out, tl.program_id(0))

@triton.jit
def apart(out):
    tl.store(out + tl.program_id(0), tl.program_id(0))
'''


def test_a_race_has_its_lines():
    result = check(RACE)
    assert result.verdicts == ("race",) and not result and result.decided
    places = result.findings[0].places
    assert {(p.file, p.source_line) for p in places} == {("handover.py", 7), ("handover.py", 9)}
    assert "handover.py:7" in result.text and result.launch.grid == (1, 1, 1)


def test_the_text_is_that_of_the_terminal(tmp_path: Path):
    path = tmp_path / "kernel.ptx"
    path.write_text(RACE)
    said = subprocess.run([command(), "check", str(path)], capture_output=True, text=True, check=False)
    result = check(path)
    assert said.returncode == 10 and result.text == (said.stderr + said.stdout).rstrip("\n")
    assert "in this execution" in result.text and "repeat with:" in result.text
    # A kernel without a file has the same text, without the name of a folder.
    assert check(RACE).text == result.text.replace(f"{tmp_path}/", "")


def test_a_clean_kernel_is_ok(tmp_path: Path):
    path = tmp_path / "k.ptx"
    path.write_text(CLEAN)
    for kernel in (CLEAN, path, str(path), CLEAN.encode()):
        assert check(kernel, grid=2).ok
    assert check(CLEAN, grid=(2, 1), cluster=1).launch.assumed is False


def test_what_cannot_be_judged_says_why():
    with pytest.raises(MoireError, match="no PTX"):
        check(object())
    with pytest.raises(MoireError, match="no size"):
        check(CLEAN, grid=(0,))
    with pytest.raises(MoireError, match="cannot read"):
        check("absent.ptx")
    with pytest.raises(MoireError):
        check(CLEAN.replace("{", "").replace("}", ""))


def test_a_compiled_triton_kernel():
    triton = pytest.importorskip("triton")
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    for target in (90, 100):
        for kernel, verdicts in ((together(triton, tl), ("race",)), (apart(triton, tl), ("clean",))):
            source = ASTSource(fn=kernel, signature={"out": "*i32"}, constexprs={})
            compiled = triton.compile(source, target=GPUTarget("cuda", target, 32))
            result = check(compiled, grid=(2,))
            assert result.verdicts == verdicts, result.text
            assert all(p.file.endswith("test_check.py") for f in result.findings for p in f.places)


def together(triton, tl):
    return triton.jit(store_together)


def apart(triton, tl):
    return triton.jit(store_apart)


def store_together(out):
    tl.store(out, tl.program_id(0))


def store_apart(out):
    tl.store(out + tl.program_id(0), tl.program_id(0))


try:
    import triton.language as tl
except ImportError:
    pass


def test_the_plugin_fails_the_right_test(pytester: pytest.Pytester):
    pytest.importorskip("triton")
    pytester.makepyfile(
        kernels=TRITON,
        test_kernels="""
        import pytest
        from triton.runtime.jit import MockTensor
        import triton.language as tl
        from kernels import apart, together

        def test_together():
            together[(2,)](MockTensor(tl.int32))

        def test_apart():
            apart[lambda meta: (4,)](MockTensor(tl.int32))

        def test_values():
            apart[(2,)](MockTensor(tl.int32))
            assert False, "the value that a device would have made"

        @pytest.mark.moire(enabled=False)
        def test_left_alone():
            pass

        def test_without_a_kernel():
            assert 1 + 1 == 2
        """,
    )
    result = session(pytester, "--moire-target", "90", "-rA")
    result.assert_outcomes(passed=3, failed=1, skipped=1)
    result.stdout.fnmatch_lines(["*together, grid (2,): *race*", "*kernels.py:*"])
    result.stdout.fnmatch_lines(["*SKIPPED*needs values of a kernel*"])


@pytest.mark.skipif(has_device(), reason="a device is here")
def test_the_plugin_says_what_to_do_without_a_device(pytester: pytest.Pytester):
    pytester.makepyfile("def test_nothing():\n    pass\n")
    said = session(pytester, "--moire")
    assert said.ret == 0
    said.stdout.fnmatch_lines(["moire: there is no device here; --moire-target 90*", "moire: no kernel was seen*"])
    assert session(pytester, "--moire", "--moire-undecided", "fail").ret == 1
    assert session(pytester, "--moire-target", "90", "--moire-undecided", "fail").ret == 1
    assert "moire:" not in session(pytester).stdout.str()


def session(pytester: pytest.Pytester, *words: str) -> pytest.RunResult:
    """A session with the plugin."""
    installed = any(e.value == "moire_check.plugin" for e in entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "moire_check.plugin")
    return pytester.runpytest_subprocess(*plugin, *words)


#: Launches a kernel by the driver, as any front end does in the end.
DRIVER = """
import ctypes

def launch(text):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), text.encode()) == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"handover") == 0
    assert cuda.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, None, None) == 0
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the recorder is for Linux")
def test_the_plugin_sees_every_launch(pytester: pytest.Pytester):
    pytester.makepyfile(
        driver=DRIVER,
        test_launches=f"""
        from driver import launch

        def test_race():
            launch({RACE!r})

        def test_clean():
            launch({CLEAN!r})

        def test_values():
            launch({CLEAN!r})
            assert 1 == 1
        """,
    )
    result = session(pytester, "--moire-target", "90", "-rA")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*handover-*: *race*", "*handover.py:*"])
    words = ("--moire-target", "90", "--moire-timeout", "0.001", "--moire-undecided", "fail")
    late = session(pytester, *words, "--moire-record", "kept")
    late.assert_outcomes(passed=1, failed=2)
    late.stdout.fnmatch_lines(["*no answer within 0.001 s*"])
    kept = sorted((pytester.path / "kept" / "launches").glob("handover-*.json"))
    assert sorted(check(path).verdicts for path in kept) == [("clean",), ("race",)]
