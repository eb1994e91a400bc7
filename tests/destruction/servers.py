"""``serve`` on hostile log directories, and ``doctor`` in hostile places."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attempts import Tried, command, in_process, judged
from hostile_folders import EVENTS
from long_trainings import address_of, asked, question

import fmapboard

_LOADED = 60.0  # s until TensorBoard has read the good run
_PACKAGE = str(Path(fmapboard.__file__).parent)


def attempts_to_serve(work: Path, run: Path) -> Iterator[Tried]:
    """A good run in a log directory with hostile entries: it is served, and every route answers."""
    (file,) = run.glob("*tfevents*")
    for name, spoil in _spoiled().items():
        logs = work / f"logs-{len(list(work.iterdir()))}"
        (logs / "good").mkdir(parents=True)
        shutil.copy(file, logs / "good")
        spoil(logs)
        yield Tried(f"serve, {name}", _served(logs, work / "server.out"))
    for name, make in _refused().items():
        logs = work / f"refused-{len(list(work.iterdir()))}"
        make(logs)
        ended = in_process(command("serve", logs, "--port", "0", "--no-open"))
        yield Tried(f"serve, {name}", judged(ended, {1, 2}, names=logs.name))


def _served(logs: Path, output: Path) -> str:
    words = [sys.executable, "-m", "fmapboard", "serve", logs, "--port", "0", "--no-open"]
    with output.open("wb") as file:
        server = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    try:
        address = address_of(output, server)
        if address is None:
            return f"does not start: {output.read_text(errors='replace')[-300:]}"
        until = time.monotonic() + _LOADED
        while not question(address, "layers", run="good")[1].get("steps"):
            if time.monotonic() > until:
                return "does not show the good run"
            time.sleep(0.5)
        wrong = [
            f"{route}: {status}" for route, status, _ in asked(address, "good") if status != 200
        ]
        printed = output.read_text(errors="replace")
        has_our_traceback = "Traceback" in printed and _PACKAGE in printed
        if "could not answer" in printed or has_our_traceback:
            wrong.append(printed[-300:])
        return "; ".join(wrong)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _spoiled() -> dict[str, Callable[[Path], None]]:
    def linked(logs: Path) -> None:
        (logs / "good" / "up").symlink_to(logs)
        (logs / "self").symlink_to(logs / "self")

    def garbage(logs: Path) -> None:
        (logs / "good" / f"{EVENTS}.0").write_bytes(os.urandom(10_000))
        (logs / "bad").mkdir()
        (logs / "bad" / EVENTS).write_bytes(b"\xff" * 10_000)
        (logs / "bad" / f"{EVENTS}.1").touch()
        (logs / "bad" / f"{EVENTS}.2").mkdir()

    def names(logs: Path) -> None:
        for name in (b"red\x1b[31m", b"one\ntwo", b"[/red]x".replace(b"/", b""), b"n" * 240):
            shutil.copytree(logs / "good", logs / os.fsdecode(name))

    def pipe(logs: Path) -> None:
        (logs / "bad").mkdir()
        os.mkfifo(logs / "bad" / EVENTS)

    return {
        "links that lead upwards and to themselves": linked,
        "garbage, empty files and folders named as event files": garbage,
        "runs with hostile names": names,
        "a pipe named as an event file in another run": pipe,
    }


def _refused() -> dict[str, Callable[[Path], object]]:
    return {
        "no such folder": lambda path: None,
        "a file": Path.touch,
        "a pipe": os.mkfifo,
        "a link to itself": lambda path: path.symlink_to(path),
    }


def attempts_to_examine(work: Path) -> Iterator[Tried]:
    """``doctor`` with hostile programs on PATH, files in the working directory and server notes."""
    for name, make in _places().items():
        place = work / f"place-{len(list(work.iterdir()))}"
        (place / "bin").mkdir(parents=True)
        (place / "notes" / ".tensorboard-info").mkdir(parents=True)
        make(place)

        def examine(place: Path = place) -> None:
            os.environ["PATH"] = f"{place / 'bin'}:{os.environ['PATH']}"
            os.environ["TMPDIR"] = str(place / "notes")
            command("doctor", folder=place)()

        yield Tried(f"doctor, {name}", judged(in_process(examine, limit=90.0), {0, 1}))


def _places() -> dict[str, Callable[[Path], None]]:
    def program(content: bytes) -> Callable[[Path], None]:
        def make(place: Path) -> None:
            path = place / "bin" / "tensorboard"
            path.write_bytes(content)
            path.chmod(0o755)

        return make

    def note(content: bytes) -> Callable[[Path], None]:
        return lambda place: _write(place / "notes" / ".tensorboard-info" / "pid-7.info", content)

    def modules(place: Path) -> None:
        for name in ("tensorboard", "torch", "json", "fmapboard", "tabulate", "sitecustomize"):
            _write(
                place / f"{name}.py", b"raise SystemError('imported from the working directory')"
            )

    def unreadable(place: Path) -> None:
        program(b"#!/bin/sh\n")(place)
        (place / "bin" / "tensorboard").chmod(0o111)

    python = sys.executable.encode()
    return {
        "a program that is a folder": lambda place: (place / "bin" / "tensorboard").mkdir(),
        "a program that is empty": program(b""),
        "a program of random bytes": program(os.urandom(5000)),
        "a program with a first line of 1 MB": program(b"#!" + b"x" * 1_000_000),
        "a program of a Python that is missing": program(b"#!/nowhere/python\n"),
        "a program of something else": program(b"#!/bin/cat\n"),
        "a program with an open quote": program(b"#!/bin/sh\n'''exec' \"/x\n"),
        "a program with zero bytes": program(b"#!" + python + b"\0x\n"),
        "a program of a folder": program(b"#!/tmp\n"),
        "a program that cannot be read": unreadable,
        "a program that links to itself": lambda p: (p / "bin" / "tensorboard").symlink_to(
            p / "bin" / "tensorboard"
        ),
        "modules in the working directory": modules,
        "garbage as the note of a server": note(os.urandom(1000)),
        "a list as the note of a server": note(b"[]"),
        "a note of wrong types": note(
            b'{"version": 1, "start_time": "x", "port": [], "logdir": 5, "pid": "\\ud800"}'
        ),
        "a pipe as the note of a server": lambda place: os.mkfifo(
            place / "notes" / ".tensorboard-info" / "pid-7.info"
        ),
    }


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
