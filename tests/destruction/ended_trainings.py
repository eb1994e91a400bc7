"""Trainings that are killed or interrupted at random moments, and what is read of them."""

from __future__ import annotations

import json
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from attempts import Tried

from fmapboard.formats import tags
from fmapboard.runs.log import EventLog

PROGRAM = Path(__file__).with_name("endless_training.py")
MOST_LOST = 8
"""Closed logged steps that may be missing after a process has ended without warning."""
CLOSING = 10.0
"""s that closing may take after an interrupt."""
_START, _SILENCE = 300.0, 60.0  # s
_TOGETHER = 5
"""Trainings at once, so that the machine is loaded and each is interrupted anywhere."""


@dataclass(slots=True)
class Training:
    """A running training, and the lines that it has printed."""

    process: subprocess.Popen[bytes]
    logdir: Path
    errors: Path
    lines: list[str] = field(default_factory=list)
    _rest: bytes = b""

    @property
    def closed(self) -> int:
        """Number of steps that it said to have closed."""
        return sum(line.startswith("step ") for line in self.lines)

    def wait_for(self, line: str, limit: float) -> bool:
        """Read until a line has been printed; False after ``limit`` s or at the end."""
        until = time.monotonic() + limit
        while line not in self.lines:
            left = until - time.monotonic()
            if left < 0 or not self._read(left):
                return False
        return True

    def read_to_end(self, limit: float) -> bool:
        """Read until the process has ended; False after ``limit`` s."""
        until = time.monotonic() + limit
        while self._read(max(0.0, until - time.monotonic())):
            pass
        try:
            self.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def _read(self, limit: float) -> bool:
        output: IO[bytes] | None = self.process.stdout
        assert output is not None
        if not select.select([output], [], [], limit)[0]:
            return False
        found = output.read1(2**16)  # type: ignore[attr-defined]  # a BufferedReader
        *lines, self._rest = (self._rest + found).split(b"\n")
        self.lines += [line.decode() for line in lines]
        return bool(found)


def attempts_to_kill(work: Path, count: int, seed: int) -> Iterator[Tried]:
    """Kill trainings without warning; all but the last eight closed steps must be read."""
    chance = random.Random(seed)
    for first in range(0, count, _TOGETHER):
        numbers = range(first, min(first + _TOGETHER, count))
        trainings = [_started(work, number, "kill") for number in numbers]
        for number, training in zip(numbers, trainings, strict=True):
            yield Tried(f"kill {number}", _killed(training, chance))


def attempts_to_interrupt(work: Path, count: int, each: int, seed: int) -> Iterator[Tried]:
    """Interrupt trainings, each ``each`` times; every interrupt must reach the training loop."""
    chance = random.Random(seed)
    for first in range(0, count, _TOGETHER):
        numbers = range(first, min(first + _TOGETHER, count))
        ways = [("SIGINT", "SIGUSR1")[number // 2 % 2] for number in numbers]
        trainings = [_started(work, n, way) for n, way in zip(numbers, ways, strict=True)]
        for number, way, training in zip(numbers, ways, trainings, strict=True):
            yield Tried(f"{way} {number}", _interrupted(training, way, each, chance))


def _started(work: Path, number: int, way: str) -> Training:
    logdir, errors = work / f"{way}-{number}", work / f"{way}-{number}.err"
    words = [sys.executable, str(PROGRAM), str(logdir), ("marked", "counted")[number % 2], way]
    with errors.open("wb") as file:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=file)
    return Training(process, logdir, errors)


def _killed(training: Training, chance: random.Random) -> str:
    if not training.wait_for("ready", _START):
        training.process.kill()
        return f"did not start: {training.errors.read_text()[-300:]}"
    moment = chance.choice((0.0, chance.uniform(0, 0.2), chance.uniform(0, 3)))
    select.select([], [], [], moment)
    training.process.kill()
    training.read_to_end(_SILENCE)
    return _lost(training, MOST_LOST)


def _interrupted(training: Training, way: str, each: int, chance: random.Random) -> str:
    process = training.process
    try:
        if not training.wait_for("ready", _START):
            return f"did not start: {training.errors.read_text()[-300:]}"
        for number in range(1, each + 1):
            select.select([], [], [], chance.uniform(0.002, 0.06))
            process.send_signal(getattr(signal, way))
            if not training.wait_for(f"caught {number}", _SILENCE):
                goes_on = "training went on" if training.closed else "nothing went on"
                state = "ended" if process.poll() is not None else goes_on
                errors = " ".join(training.errors.read_text().split())[-300:]
                return f"interrupt {number} of {each} did not reach the user, {state}: {errors}"
        select.select([], [], [], chance.uniform(0.002, 0.06))
        process.send_signal(signal.SIGTERM)
        if not training.read_to_end(CLOSING + _SILENCE):
            return f"had not ended {CLOSING + _SILENCE:.0f} s after the last one"
    finally:
        process.kill()
        process.wait()
    return _end(training, each)


def _end(training: Training, most: int) -> str:
    """What is wrong at the end; each interrupt may cost the step that it hits, ``most`` in all."""
    errors = training.errors.read_text()
    if training.process.returncode or not training.lines[-1:] or training.lines[-1][:1] != "{":
        return f"exit status {training.process.returncode}: {' '.join(errors.split())[-300:]}"
    said = json.loads(training.lines[-1])
    if not said["reached"]:
        return "the last interrupt did not reach the user"
    if said["left"] != "{}":
        return f"left on the model or in torch: {said['left']}"
    if said["closing"] > CLOSING:
        return f"closing took {said['closing']:.1f} s"
    return _lost(training, most)


def _lost(training: Training, most: int) -> str:
    """Which closed steps are not in the files, if they are more than ``most``."""
    log = EventLog(training.logdir)
    series = log.series.get(tags.OVERVIEW)
    read: Sequence[int] = [] if series is None else list(series.steps)
    if log.started is None:
        return "there is no readable event file"
    missing = sorted(set(range(training.closed)) - set(read))
    if len(missing) > most:
        ends = f"{missing[0]} to {missing[-1]}"
        return f"{len(missing)} of {training.closed} closed steps are lost: {ends}"
    return ""
