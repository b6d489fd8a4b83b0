"""Runs ``moire check`` on a kernel and reads its answer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence, Union

#: Exit codes of ``moire``: clean, bad input, finding, incomplete, an error of moire itself.
CLEAN, USAGE, FINDING, INCOMPLETE, INTERNAL = 0, 2, 10, 11, 70

#: Version of the JSON that is read.
FORMAT = 2

Size = Union[int, Sequence[int]]


class MoireError(Exception):
    """The kernel was not judged: it is no PTX, the arguments make no sense, or the command is not there."""


@dataclass(frozen=True)
class Place:
    """A place of a finding."""

    #: The warp, as ``warp3`` or ``cta1_warp0``.
    thread: str | None
    #: The line of the PTX, from 1.
    line: int
    #: The file that the kernel was written in, if the PTX says.
    file: str | None = None
    #: Its line, from 1.
    source_line: int | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.source_line}" if self.file else f"PTX line {self.line}"
        return f"{where} ({self.thread})" if self.thread else where


@dataclass(frozen=True)
class Finding:
    """Something that is wrong."""

    #: ``race``, ``lifetime``, ``protocol``, ``early-pass`` or ``undefined``.
    verdict: str
    #: The rule that is broken.
    kind: str
    places: tuple[Place, ...]
    #: What would mend it, if that is known.
    missing: str | None = None

    def __str__(self) -> str:
        text = f"{self.verdict}: {' and '.join(str(p) for p in self.places)}"
        return f"{text}; missing: {self.missing}" if self.missing else text


@dataclass(frozen=True)
class Launch:
    """The launch that a verdict is about."""

    grid: tuple[int, ...]
    #: Whether something in it was assumed and not given.
    assumed: bool
    #: The command that repeats the verdict with nothing assumed.
    command: str
    #: What was taken for granted, in words.
    taken: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The answer about one kernel."""

    #: ``clean``, or what is wrong: ``race``, ``hang``, ..; ``bounded(..)`` and ``abstained(..)`` are no answer.
    verdicts: tuple[str, ...]
    findings: tuple[Finding, ...]
    launch: Launch | None
    #: The answer as the command line prints it, all of it.
    text: str
    #: Everything, as ``moire check --format json`` prints it.
    json: Mapping[str, Any] = field(repr=False, default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the kernel is clean: explored completely, nothing wrong, for this launch and its assumptions (see ``launch``)."""
        return self.verdicts == ("clean",)

    @property
    def decided(self) -> bool:
        """Whether nothing was too large or not modelled."""
        return not any(v.startswith(("bounded", "abstained")) for v in self.verdicts)

    def __bool__(self) -> bool:
        return self.ok


def command() -> str:
    """The path of the command ``moire``: ``MOIRE``, the one beside this Python, or the one on ``PATH``."""
    named = os.environ.get("MOIRE")
    if named:
        return named
    name = "moire.exe" if sys.platform == "win32" else "moire"
    for folder in (sysconfig.get_path("scripts"), Path(sys.executable).parent):
        path = Path(folder) / name
        if path.is_file():
            return str(path)
    found = shutil.which("moire")
    if found is None:
        raise MoireError("there is no command `moire`: install the wheel, or set MOIRE to its path")
    return found


def _ptx(kernel: Any) -> tuple[str, dict[str, Any], str]:
    """The PTX of a compiled kernel, its metadata, and a name."""
    asm = getattr(kernel, "asm", None)
    if isinstance(asm, Mapping) and "ptx" in asm:
        metadata = getattr(kernel, "metadata", None)
        known = metadata._asdict() if hasattr(metadata, "_asdict") else dict(metadata or {})
        keep = {k: known[k] for k in ("name", "num_warps", "num_ctas", "cluster_dims", "shared") if k in known}
        return _text(asm["ptx"]), keep, str(known.get("name", "kernel"))
    for attribute in ("__ptx__", "ptx"):
        text = getattr(kernel, attribute, None)
        if isinstance(text, (str, bytes)) and text:
            return _text(text), {}, str(getattr(kernel, "__name__", "kernel"))
    if isinstance(kernel, (str, bytes)) and ".version" in _text(kernel):
        return _text(kernel), {}, "kernel"
    raise MoireError(
        f"{type(kernel).__name__} has no PTX: pass a path, the text of a module, a Triton CompiledKernel, or a CuTe function "
        "that was compiled with its PTX kept (CUTE_DSL_KEEP_PTX=1)"
    )


def _text(text: str | bytes) -> str:
    return text.decode() if isinstance(text, bytes) else text


def _size(size: Size) -> str:
    sizes = [size] if isinstance(size, int) else list(size)
    if not 1 <= len(sizes) <= 3 or any(n < 1 for n in sizes):
        raise MoireError(f"{size!r} is no size: give one to three positive numbers")
    return ",".join(str(n) for n in sizes)


def check(
    kernel: Any,
    *,
    grid: Size | None = None,
    block: Size | None = None,
    cluster: Size | None = None,
    args: Mapping[int, int] | Sequence[int | None] | None = None,
    entry: str | None = None,
    profile: str | None = None,
    options: Sequence[str] = (),
    timeout: float | None = None,
) -> Result:
    """Judges a kernel.

    kernel: path of a file, text of a PTX module, Triton ``CompiledKernel``, or CuTe DSL compiled function.
    grid, block, cluster: sizes of the launch; what is not given is chosen, and the result names it.
    args: values of parameters by position; ``None`` in a sequence leaves one open. Pointers need no value.
    entry: the kernel, where the module has several.
    profile: ``letter`` or ``practice``. Without one a kernel is judged under both, and the verdict is that of ``practice``.
    options: further options of ``moire check``.
    timeout: seconds after which the check is ended with ``MoireError``.
    """
    words: list[str] = []
    for flag, size in (("--grid", grid), ("--block", block), ("--cluster", cluster)):
        if size is not None:
            words += [flag, _size(size)]
    pairs = args.items() if isinstance(args, Mapping) else enumerate(args or ())
    for index, value in pairs:
        if value is not None:
            words += ["--param", f"{index}={int(value)}"]
    for flag, value in (("--entry", entry), ("--profile", profile)):
        if value is not None:
            words += [flag, value]
    words += options
    if isinstance(kernel, os.PathLike) or (isinstance(kernel, str) and "\n" not in kernel):
        return _run(Path(os.fspath(kernel)), words, timeout)
    text, metadata, name = _ptx(kernel)
    with tempfile.TemporaryDirectory(prefix="moire-") as folder:
        stem = "".join(c if c.isalnum() or c in "_-" else "_" for c in name)[:100] or "kernel"
        path = Path(folder) / f"{stem}.ptx"
        path.write_text(text)
        if metadata:
            path.with_suffix(".json").write_text(json.dumps(metadata))
        return _run(path, words, timeout)


def _run(path: Path, words: list[str], timeout: float | None) -> Result:
    with tempfile.TemporaryDirectory(prefix="moire-") as folder:
        report = Path(folder) / "report"
        call = [command(), "check", str(path), *words, "--format", "json", "--report", f"text={report}"]
        answer = _call(call, timeout)
        text = report.read_text() if report.is_file() else ""
    lines = [line for line in answer.stdout.splitlines() if line.startswith("{")]
    if answer.returncode in (USAGE, INTERNAL) or not lines:
        raise MoireError((answer.stderr or answer.stdout).strip() or f"moire ended with {answer.returncode}")
    if len(lines) > 1:
        raise MoireError("the module has several kernels: name one with `entry`")
    said = json.loads(lines[0])
    if said.get("version") != FORMAT:
        raise MoireError(f"moire prints format {said.get('version')}, this module reads {FORMAT}: install matching versions")
    return _result(said, text)


def _call(call: list[str], timeout: float | None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(call, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired as error:
        raise MoireError(f"no answer within {timeout} s") from error
    except OSError as error:
        raise MoireError(f"cannot run {call[0]}: {error}") from error


def _result(said: Mapping[str, Any], text: str) -> Result:
    parts = said["parts"]
    findings = [_finding(one, part, said["lines"]) for part in parts for one in part["findings"]]
    launch = said["launch"]
    told = None
    if launch:
        taken = tuple(one["text"] for one in said["taken"])
        told = Launch(tuple(launch["grid"]["size"]), launch["assumed"], launch["command"], taken)
    # A kernel that is no file has one for the time of the call.
    folder = str(Path(said["file"]).parent)
    if Path(folder).name.startswith("moire-"):
        text = text.replace(f"{folder}{os.sep}", "")
    return Result(tuple(said["verdicts"]), tuple(findings), told, text.rstrip("\n"), said)


def _finding(one: Mapping[str, Any], part: Mapping[str, Any], lines: Mapping[str, Any]) -> Finding:
    places = []
    for place in one["places"]:
        source = lines.get(str(place["line"]), {}).get("source")
        file, line = (source["file"], source["line"]) if source else (None, None)
        places.append(Place(place["thread"], place["line"], file, line))
    edits = (part["advice"] or {}).get("edits")
    return Finding(one["verdict"], one["kind"], tuple(places), "; ".join(edits) if edits else one["missing"])

