"""What the tab costs: rows of the benchmark's table, and CPU time and memory of processes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


@dataclass
class Row:
    """A line of the table.

    Attributes:
        name: what was timed.
        ms: wall times, ms.
        target: what they should be below, ms.
        cpu: CPU times that belong to them, ms; they mean something on a busy machine too.
    """

    name: str
    ms: list[float]
    target: float
    cpu: list[float] = field(default_factory=list)


def cpu_ms(*pids: int) -> float:
    """CPU time of processes and all their descendants so far, ms; on Linux.

    The times of descendants that have ended count too, if their parent has waited for them.
    """
    return sum(_cpu_ms(pid) for root in pids for pid in _tree(root))


def memory(pid: int) -> dict[str, float]:
    """Resident memory of TensorBoard, and of its descendants by program, MB; on Linux."""
    found: dict[str, float] = {}
    for each in _tree(pid):
        status = Path(f"/proc/{each}/status").read_text()
        name, kib = (re.search(rf"{key}:\s+(\S+)", status) for key in ("Name", "VmRSS"))
        if name and kib:
            what = "TensorBoard" if each == pid else f"its child {name[1]!r}"
            found[what] = found.get(what, 0.0) + int(kib[1]) / 1024
    return found


def _tree(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for each in found:
        try:
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue  # ended in the meantime
    return found


def _cpu_ms(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    numbers = text.rpartition(")")[2].split()  # from the third field on
    return sum(map(int, numbers[11:15])) * _TICK_MS  # utime, stime, and those of ended children
