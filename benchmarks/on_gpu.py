"""Is fmapboard right, neutral and cheap on a GPU? ``python benchmarks/on_gpu.py`` checks it.

Runs from a checkout, with torch, torchvision, tensorboard, numpy and pillow installed. Sections:

- right: all records equal clones of what ``forward`` returned, also NaN, infinite values and
  tensors that are hard to measure;
- neutral: training is bitwise the same with and without fmapboard;
- waits: a logged step never makes the training thread wait for the device;
- hazards: CUDA graphs, streams, full memory, a busy device;
- cost: time, kernels, traffic and memory of a logged step, against bare steps, budgets, the classic
  recipe and, if it is installed, wandb.

Prints a line per check, and writes all results to ``on_gpu.json`` and, as tables, to ``on_gpu.md``.
A check that cannot run says why and counts as skipped. Each section runs in a process of its own,
so that a crash or a hang ends only that section. The exit status is the number of failed checks, at
most 99. Dry run without a GPU: ``--device cpu --tiny``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # the profiler prints nothing
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic, set before CUDA starts
if importlib.util.find_spec("fmapboard") is None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
if importlib.util.find_spec("threadpoolctl") is None:  # limits OpenMP's threads on the CPU
    stand_in: Any = types.ModuleType("threadpoolctl")
    no_runtimes = types.SimpleNamespace(
        select=lambda **_: types.SimpleNamespace(lib_controllers=[])
    )
    stand_in.ThreadpoolController = lambda: no_runtimes
    sys.modules["threadpoolctl"] = stand_in

import torch
from gpu.device import Device, Settings  # found through the lines above
from gpu.report import FAILED, Report, Result, load
from gpu.trainings import MODES
from workloads import machine

import fmapboard

SECTIONS = ("right", "neutral", "waits", "hazards", "cost")
MAX_SECTION_S = 200
"""A section that takes longer is ended; cost, the last one, may take all the time left."""


def names(known: tuple[str, ...]) -> Any:
    """A type for argparse: names separated by commas."""

    def parse(text: str) -> tuple[str, ...]:
        chosen = tuple(filter(None, text.split(",")))
        if unknown := set(chosen) - set(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
        return chosen

    return parse


def parser() -> argparse.ArgumentParser:
    format_ = argparse.RawDescriptionHelpFormatter
    made = argparse.ArgumentParser(description=__doc__, formatter_class=format_)
    made.add_argument("--device", default="cuda", help="cuda, cuda:1, mps, xpu or cpu")
    made.add_argument(
        "--only", type=names(SECTIONS), default=SECTIONS, help=f"sections: {','.join(SECTIONS)}"
    )
    made.add_argument("--modes", type=names(tuple(MODES)), help=f"modes: {','.join(MODES)}")
    made.add_argument("--works", default="", help="workloads of cost whose name contains this text")
    made.add_argument("--tiny", action="store_true", help="sizes for a dry run")
    made.add_argument("--rounds", type=int, default=5, help="rounds of cost")
    made.add_argument(
        "--limit", type=float, default=460, help="seconds after which checks are skipped"
    )
    made.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    one = "run all sections in this process; always so on the CPU"
    made.add_argument("--one-process", action="store_true", help=one)
    made.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return made


def versions() -> str:
    """Versions that `machine` does not name; the revision is that of the checkout."""
    git = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    try:
        revision = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    except OSError:
        revision = ""
    own = f"fmapboard {fmapboard.__version__} {revision or '(no revision)'}"
    return f"{own}, CUDA {torch.version.cuda}"


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen sections; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    parse = parser()
    options = parse.parse_args(given)
    try:
        device = Device(options.device)
    except (RuntimeError, AssertionError) as error:
        parse.error(f"{str(error).splitlines()[0]}; a dry run: --device cpu --tiny")
    about = ["    python " + " ".join(["benchmarks/on_gpu.py", *given]), "", machine(), versions()]
    report = Report(options.out, about, options.limit)
    if not options.child:
        print(*about, sep="\n", flush=True)
    settings = Settings(device, options.modes, options.tiny, options.rounds, options.works)
    for section in options.only:
        if options.child or options.one_process or device.type == "cpu":
            importlib.import_module(f"gpu.{section}").run(report, settings)
        else:
            in_a_process(section, report, given)
    if not options.child:
        print(report.summary())
    return min(report.failed, 99)


def in_a_process(section: str, report: Report, given: list[str]) -> None:
    """Run one section in a new process, and take over its results, however it ends."""
    left = max(report.seconds_left, 1)
    most = left if section == "cost" else min(left, MAX_SECTION_S)
    with tempfile.TemporaryDirectory() as place:
        own = ["--only", section, "--child", "--limit", str(left), "--out", place]
        command = [sys.executable, str(Path(__file__).resolve()), *given, *own]
        try:
            status = subprocess.run(command, timeout=most + 15).returncode
        except subprocess.TimeoutExpired:
            status = None
        results = load(Path(place))
    for result in results:
        report.add(result, printed=False)
    failed = sum(result.verdict == FAILED for result in results)
    if status != min(failed, 99):
        how = "did not end in time" if status is None else f"ended with status {status}"
        note = f"the process {how}, after {len(results)} checks"
        report.add(Result(section, "all checks of the section ran", FAILED, notes=[note]))


if __name__ == "__main__":
    sys.exit(main())
