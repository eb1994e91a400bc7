"""Run code in processes of their own, within limits, and judge how they ended."""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT = 120.0  # s
MOST_MEMORY = (
    1_500_000_000  # bytes; this process, from which the others are forked, has about 0.5e9
)
_ADDRESS_SPACE = 12 * 2**30  # bytes; a bomb that goes off ends its own process only
_PR_CAPBSET_DROP, _CAPABILITIES_V3 = 24, 0x20080522  # linux/prctl.h, linux/capability.h
_READS_ANYTHING = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_DEFECT = 99


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt, and how it failed; "" if what must hold held."""

    name: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        code: exit status, or the negative number of the signal that ended it.
        output: what it printed on stdout.
        errors: what it printed on stderr.
        seconds: how long it ran.
        memory: its largest resident set, bytes.
        is_late: True if it had to be killed at the limit.
    """

    code: int
    output: str
    errors: str
    seconds: float
    memory: int
    is_late: bool


def in_process(work: Callable[[], object], *, typed: bytes = b"", limit: float = LIMIT) -> Ended:
    """Run a function in a forked process that cannot read what its permissions forbid.

    Args:
        work: the function.
        typed: what comes from its stdin, which does not end, so that a further question waits and
            is noticed.
        limit: after which it is killed, s.
    """
    with tempfile.TemporaryDirectory(prefix="destroy-") as folder:
        files = [Path(folder, name) for name in ("out", "err")]
        reads, writes = os.pipe()
        os.write(writes, typed)
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            _become_child(reads, files, work)
        os.close(reads)
        watched = os.pidfd_open(child)
        is_late = not select.select([watched], [], [], limit)[0]
        if is_late:
            os.kill(child, signal.SIGKILL)
        _, status, used = os.wait4(child, 0)
        for descriptor in (watched, writes):
            os.close(descriptor)
        output, errors = (file.read_bytes().decode(errors="replace") for file in files)
        return Ended(
            os.waitstatus_to_exitcode(status), output, errors, time.monotonic() - began,
            used.ru_maxrss * 1024, is_late,
        )  # fmt: skip


def command(*words: str | Path, folder: Path | None = None) -> Callable[[], None]:
    """A function that runs ``fmapboard`` with these words, as in a process of its own."""

    def work() -> None:
        from fmapboard.cli import main

        if folder is not None:
            os.chdir(folder)
        sys.argv = ["fmapboard", *map(str, words)]
        main.run()

    return work


def judged(
    ended: Ended, codes: Collection[int], *, names: str = "", memory: int = MOST_MEMORY
) -> str:
    """What is wrong with the end of a command; "" if nothing is.

    Args:
        ended: the end.
        codes: exit statuses that are right.
        names: text that must be in what it printed.
        memory: the most that it may use, bytes.
    """
    printed = ended.output + ended.errors
    last = " ".join(ended.errors.split())[-300:]
    if ended.is_late:
        return f"had not ended after {ended.seconds:.0f} s"
    found = []
    if "Traceback (most recent call last)" in printed or ended.code == _DEFECT:
        found.append(f"traceback: {last}")
    elif ended.code not in codes:
        found.append(f"exit status {ended.code}, expected {sorted(codes)}: {last}")
    elif names and names not in printed:
        found.append(f"{names!r} is not in what it printed: {last}")
    controls = sorted({c for c in printed if (c < " " and c not in "\n\t\r") or c == "\x7f"})
    if controls:
        found.append(f"prints control characters {controls}")
    if ended.memory > memory:
        found.append(f"took {ended.memory / 1e6:.0f} MB")
    return "; ".join(found)


def attempts(
    work: Iterable[tuple[str, Callable[[], object], Collection[int], str]],
) -> Iterable[Tried]:
    """Run each (name, function, right exit statuses, text that must be printed) and judge it."""
    for name, function, codes, names in work:
        yield Tried(name, judged(in_process(function), codes, names=names))


def _become_child(reads: int, files: Sequence[Path], work: Callable[[], object]) -> None:
    try:
        _restrict()
        os.dup2(reads, 0)
        for number, file in enumerate(files, 1):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        code = 0
        try:
            work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(_DEFECT)


def _restrict() -> None:
    """Limit the memory; as root, give up reading what the permissions forbid."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    if os.geteuid() == 0:
        library = ctypes.CDLL(None, use_errno=True)
        version, sets = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)()
        library.capget(version, sets)
        for capability in _READS_ANYTHING:
            library.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # for what this process executes
            for which in range(3):
                sets[which] &= ~(1 << capability)
        library.capset(version, sets)
