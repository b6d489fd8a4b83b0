"""A pytest plugin: every Triton kernel that a test launches is checked, once for each shape.

    pytest --moire                 # a kernel that is wrong fails the test that launches it
    pytest --moire-target 90       # no device: kernels are compiled for sm_90 and checked, and nothing runs

Without a device no kernel computes anything. A test that fails after such a launch needs values, and is reported as skipped.
"""

from __future__ import annotations

from typing import Any

import pytest

from ._check import MoireError, Result, check
from ._triton import Launched, StandIn, watched

SEEN = pytest.StashKey["Seen"]()
LAUNCHED = pytest.StashKey[list]()


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
        help="the result of a test whose kernel could not be checked to the end (default: warn)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "moire(enabled=True): check the kernels of this test, or do not")
    config.stash[SEEN] = Seen()


class Seen:
    """The kernels of a session, each checked once for each launch."""

    def __init__(self) -> None:
        self.results: dict[Any, Result | MoireError] = {}

    def result(self, launched: Launched) -> Result | MoireError:
        if launched.key not in self.results:
            try:
                self.results[launched.key] = check(launched.kernel, grid=launched.grid, args=launched.args)
            except MoireError as error:
                self.results[launched.key] = error
        return self.results[launched.key]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    target = item.config.getoption("--moire-target")
    marker = item.get_closest_marker("moire")
    asked = item.config.getoption("--moire") or target is not None
    if not (asked if marker is None else marker.kwargs.get("enabled", True)):
        return (yield)
    launched: list[Launched] = []
    item.stash[LAUNCHED] = launched
    try:
        with watched(launched, None if target is None else StandIn(target)):
            result = yield
    except Exception:
        # The kernel may be the cause, and says more than the assertion that noticed.
        _judge(item, launched)
        if target is not None and launched:
            pytest.skip("needs values of a kernel, and there is no device")
        raise
    _judge(item, launched)
    return result


def _judge(item: pytest.Item, launched: list[Launched]) -> None:
    """Fails the test for a kernel that is wrong."""
    wrong, undecided = [], []
    for one in launched:
        result = item.config.stash[SEEN].result(one)
        if isinstance(result, MoireError):
            undecided.append(f"{one.name}: {result}")
        elif any(v != "clean" and not v.startswith(("bounded", "abstained")) for v in result.verdicts):
            wrong.append(f"{one.name}, grid {one.grid}: {result.text}")
        elif not result.ok:
            undecided.append(f"{one.name}, grid {one.grid}: {result.text}")
    if undecided and item.config.getoption("--moire-undecided") == "fail":
        wrong += undecided
    elif undecided:
        item.warn(pytest.PytestWarning("not checked to the end: " + "\n".join(dict.fromkeys(undecided))))
    if wrong:
        pytest.fail("\n".join(dict.fromkeys(wrong)), pytrace=False)
