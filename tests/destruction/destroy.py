"""Try to break fmapboard: ``.ci/destroy``; prints a table, and ends with 1 if anything failed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attempts import Tried
from damaged_files import attempts_on_files
from ended_trainings import attempts_to_interrupt, attempts_to_kill
from hostile_folders import attempts_on_images, attempts_on_runs
from long_trainings import attempts_at_many_steps, attempts_beside_tensorboard
from model_folders import attempts_on_models
from run_to_read import written_run
from servers import attempts_to_examine, attempts_to_serve

Part = Callable[[Path, argparse.Namespace], Iterator[Tried]]


def _runs(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_on_runs(work, options.run)


def _images(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_on_images(work)


def _files(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_on_files(work, options.run, options.damages, options.seed)


def _kills(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_to_kill(work, options.kills, options.seed)


def _interrupts(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_to_interrupt(work, options.interrupts, options.each, options.seed)


def _steps(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_at_many_steps(work, options.steps)


def _beside(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_beside_tensorboard(work, options.minutes)


def _models(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_on_models(work)


def _serve(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_to_serve(work, options.run)


def _doctor(work: Path, options: argparse.Namespace) -> Iterator[Tried]:
    return attempts_to_examine(work)


PARTS: dict[str, Part] = {
    "kills": _kills,
    "interrupts": _interrupts,
    "steps": _steps,
    "beside": _beside,
    "runs": _runs,
    "images": _images,
    "files": _files,
    "models": _models,
    "serve": _serve,
    "doctor": _doctor,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--damages", type=int, default=40, help="random damages of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of what is random")
    parser.add_argument("--kills", type=int, default=30, help="trainings to kill")
    parser.add_argument("--interrupts", type=int, default=40, help="trainings to interrupt")
    parser.add_argument("--each", type=int, default=25, help="interrupts of each of these")
    parser.add_argument("--steps", type=int, default=100_000, help="logged steps of one training")
    parser.add_argument("--minutes", type=float, default=40, help="beside a TensorBoard")
    options = parser.parse_args()
    rows, failures = [], []
    with tempfile.TemporaryDirectory(prefix="destroy-") as folder:
        options.run = written_run(Path(folder, "run"))
        for name in options.parts or PARTS:
            work, began, tried, failed = Path(folder, name), time.monotonic(), 0, 0
            work.mkdir()
            for one in PARTS[name](work, options):
                tried += 1
                if one.failure:
                    failed += 1
                    failures.append(f"{name}: {one.name}: {one.failure}")
                    print(failures[-1], file=sys.stderr, flush=True)
            rows.append((name, tried, failed, time.monotonic() - began))
    print(f"{'part':<12} {'tried':>6} {'failed':>6} {'seconds':>8}")
    for name, tried, failed, seconds in rows:
        print(f"{name:<12} {tried:>6} {failed:>6} {seconds:>8.0f}")
    for failure in failures:
        print(failure)
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
