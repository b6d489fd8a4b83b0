"""Sees the kernels that Triton launches, and stands in for a device where there is none."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any, Iterator


@dataclass(frozen=True)
class Launched:
    """A launch of a compiled kernel."""

    kernel: Any
    name: str
    grid: tuple[int, ...]
    #: Integer parameters of the PTX by position.
    args: dict[int, int]

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal launches of one kernel are checked once."""
        return (self.kernel.hash, self.grid, tuple(sorted(self.args.items())))


class StandIn:
    """What Triton asks of a driver before it compiles. It has no device, and launches nothing."""

    def __init__(self, capability: int) -> None:
        self.capability = capability

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.capability, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_device_capability(self, _device: int = 0) -> tuple[int, int]:
        return divmod(self.capability, 10)


@contextlib.contextmanager
def watched(launched: list[Any], stand_in: StandIn | None, wanted: bool) -> Iterator[None]:
    """Notes every launch, if that is wanted. With a stand-in kernels are compiled and not launched. Without Triton there is
    nothing to see."""
    if not wanted:
        yield
        return
    try:
        from triton.runtime import driver
        from triton.runtime.jit import JITFunction
    except ImportError:
        yield
        return
    original = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = original(self, *args, grid=grid, warmup=warmup or stand_in is not None, **kwargs)
        if kernel is not None and not warmup:
            launched.append(_launched(self, kernel, grid, args, kwargs))
        return kernel

    before = driver._active
    JITFunction.run = run
    if stand_in is not None:
        driver.set_active(stand_in)
    try:
        yield
    finally:
        JITFunction.run = original
        driver._active = before


def _launched(function: Any, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Launched:
    kernel = kernel.result() if hasattr(kernel, "result") else kernel
    values = {**dict(zip(function.arg_names, args)), **kwargs}
    size = grid(values) if callable(grid) else grid
    size = (size,) if isinstance(size, int) else tuple(int(n) for n in size)
    # What is constant or specialised is no parameter of the PTX.
    parameters = [name for name, kind in kernel.src.signature.items() if kind != "constexpr"]
    integers = {
        index: int(values[name])
        for index, name in enumerate(parameters)
        if isinstance(values.get(name), int) and not isinstance(values.get(name), bool)
    }
    return Launched(kernel, function.__name__, size, integers)
