"""Runs a test session under ``moire record``, and tells what each test has launched, whichever front end compiled it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator, Optional, Sequence

from ._check import MoireError, command

#: The variable by which the recorder finds its folder.
FOLDER = "MOIRE_RECORD"


def folder() -> Optional[Path]:
    """The folder of the record, if this process is recorded."""
    named = os.environ.get(FOLDER)
    return Path(named) if named else None


def can_record() -> bool:
    """Whether this process can be run again under the recorder: it is ``pytest`` itself, on Linux, and there is a command."""
    if not sys.platform.startswith("linux") or folder() is not None:
        return False
    try:
        command()
    except MoireError:
        return False
    return Path(sys.argv[0]).name in ("pytest", "py.test", "__main__.py")


def again(words: Sequence[str], target: Optional[int], keep: Optional[str]) -> int:
    """Runs ``pytest`` with these words under the recorder; its exit code. The record goes, unless a folder is named for it."""
    record = Path(keep or tempfile.mkdtemp(prefix="moire-record-"))
    device = [] if target is None else ["--target", str(target)]
    call = [command(), "record", "--out", str(record), *device, "--", sys.executable, "-m", "pytest", *words]
    try:
        return subprocess.call(call)
    finally:
        if keep is None:
            shutil.rmtree(record, ignore_errors=True)


def split(name: str) -> None:
    """Gives a process of several that share a record a folder of its own in it."""
    record = folder()
    if record is not None:
        own = record / name
        for part in ("launches", "modules"):
            (own / part).mkdir(parents=True, exist_ok=True)
        shutil.copy(record / "record.json", own / "record.json")
        os.environ[FOLDER] = str(own)


@contextlib.contextmanager
def watched(seen: list[Path]) -> Iterator[None]:
    """Notes the launches, and the compiled kernels without one, that the record did not have before."""
    record = folder()
    if record is None:
        yield
        return
    before = _files(record)
    try:
        yield
    finally:
        new = _files(record) - before
        if any(json.loads(p.read_text())["module"].endswith(".cubin") for p in new if p.suffix == ".json"):
            subprocess.run([command(), "record", "--settle", "--out", str(record)], capture_output=True, check=False)
        seen += sorted(_files(record) - before)


def _files(record: Path) -> set[Path]:
    return set((record / "launches").glob("*.json")) | set((record / "unlaunched").glob("*.ptx"))
