"""A pytest plugin: every kernel that a test launches is checked, once for each shape, whichever front end compiled it.

    pytest --moire                 # a kernel that is wrong fails the first test that launches it
    pytest --moire-target 90       # no device: kernels are compiled for sm_90 and checked, and nothing runs
    pytest --moire --moire-undecided fail    # what was not checked to the end fails, and so does a session that saw no kernel

The session runs under ``moire record``. Where that is not possible, the kernels of Triton are seen. Without a device no kernel
computes anything. A test that fails after such a launch needs values, and is reported as skipped.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from . import _record
from ._check import MoireError, Result, check
from ._triton import Launched, StandIn, watched

SEEN = pytest.StashKey["Seen"]()
LAUNCHED = pytest.StashKey[list]()
NO_DEVICE = "there is no device here; --moire-target 90 (or 100) compiles and checks kernels without one"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("moire", "checks of GPU kernels")
    group.addoption("--moire", action="store_true", help="check every kernel that a test launches")
    group.addoption(
        "--moire-target",
        type=int,
        metavar="SM",
        help="check without a device: compile for this compute capability (90, 100), launch nothing",
    )
    group.addoption(
        "--moire-undecided",
        choices=("fail", "warn"),
        default="warn",
        help="the result of a test whose kernel could not be checked to the end, and of a session that saw no kernel (default: warn)",
    )
    group.addoption("--moire-record", metavar="DIR", help="keep the record of what was launched in this folder")
    group.addoption(
        "--moire-timeout",
        type=float,
        default=60,
        metavar="SECONDS",
        help="how long one kernel is checked before it counts as not checked to the end (default: 60)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "moire(enabled=True): check the kernels of this test, or do not")
    config.stash[SEEN] = Seen(config.getoption("--moire-timeout"))
    target = config.getoption("--moire-target")
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        _record.split(worker["workerid"])
    if (config.getoption("--moire") or target is not None) and worker is None and _record.can_record():
        capture = config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        code = _record.again(config.invocation_params.args, target, config.getoption("--moire-record"))
        sys.stdout.flush()
        os._exit(code)


def has_device() -> bool:
    """Whether there may be a device: its files are there, or this is a system that shows none."""
    names = ("nvidia[0-9]*", "dxg", "nvhost-gpu", "nvgpu")
    return not sys.platform.startswith("linux") or any(any(Path("/dev").glob(name)) for name in names)


def pytest_report_header(config: pytest.Config) -> str | None:
    if config.getoption("--moire") and config.getoption("--moire-target") is None and not has_device():
        return f"moire: {NO_DEVICE}"
    return None


def _saw_nothing(config: pytest.Config) -> bool:
    """Whether kernels were to be checked and none was seen. Workers of a session see theirs alone."""
    asked = config.getoption("--moire") or config.getoption("--moire-target") is not None
    alone = not hasattr(config, "workerinput") and not config.getoption("numprocesses", None)
    return asked and alone and not config.stash[SEEN].results


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    fails = session.config.getoption("--moire-undecided") == "fail"
    if fails and exitstatus == pytest.ExitCode.OK and _saw_nothing(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if _saw_nothing(config):
        hint = "" if has_device() or config.getoption("--moire-target") is not None else f": {NO_DEVICE}"
        terminalreporter.write_line(f"moire: no kernel was seen, and none was checked{hint}")


class Seen:
    """The kernels of a session, each checked once for each launch."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.results: dict[Any, Result | MoireError] = {}

    def result(self, launched: Launched | Path) -> Result | MoireError:
        key = launched if isinstance(launched, Path) else launched.key
        if key not in self.results:
            try:
                if isinstance(launched, Path):
                    self.results[key] = check(launched, timeout=self.timeout)
                else:
                    self.results[key] = check(
                        launched.kernel, grid=launched.grid, args=launched.args, timeout=self.timeout
                    )
            except MoireError as error:
                self.results[key] = error
        return self.results[key]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    target = item.config.getoption("--moire-target")
    marker = item.get_closest_marker("moire")
    asked = item.config.getoption("--moire") or target is not None
    if not (asked if marker is None else marker.kwargs.get("enabled", True)):
        return (yield)
    launched: list[Launched | Path] = []
    item.stash[LAUNCHED] = launched
    # What reaches a device is recorded; the kernels of Triton without one are seen before.
    triton = target is not None or _record.folder() is None
    try:
        with _record.watched(launched), watched(launched, None if target is None else StandIn(target), triton):
            result = yield
    except Exception:
        # The kernel may be the cause, and says more than the assertion that noticed.
        _judge(item, launched)
        if target is not None and launched:
            pytest.skip("needs values of a kernel, and there is no device")
        raise
    _judge(item, launched)
    return result


def _judge(item: pytest.Item, launched: list[Launched | Path]) -> None:
    """Fails the test for a kernel that is wrong."""
    wrong, undecided = [], []
    for one in launched:
        result = item.config.stash[SEEN].result(one)
        name = one.stem if isinstance(one, Path) else f"{one.name}, grid {one.grid}"
        if isinstance(result, MoireError):
            undecided.append(f"{name}: {result}")
        elif any(v != "clean" and not v.startswith(("bounded", "abstained")) for v in result.verdicts):
            wrong.append(f"{name}: {result.text}\n")
        elif not result.ok:
            undecided.append(f"{name}: {result.text}")
    if undecided and item.config.getoption("--moire-undecided") == "fail":
        wrong += undecided
    elif undecided:
        item.warn(pytest.PytestWarning("not checked to the end: " + "\n".join(dict.fromkeys(undecided))))
    if wrong:
        pytest.fail("\n".join(dict.fromkeys(wrong)), pytrace=False)
