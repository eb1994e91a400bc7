"""Check what fmapboard records of all torchvision models and many timm families.

    python tests/accuracy/model_sweep.py --timm            # all; table in results/
    python tests/accuracy/model_sweep.py --only 'resnet*'  # some; table on stdout

Each model is checked by `model_checks.sweep` in its own process.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import platform
import shlex
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from model_checks import Outcome, sweep
from model_zoo import Case, cases

RESULTS = Path(__file__).parent / "results" / "model_sweep.md"
PRELOADED = ["torch", "torchvision", "timm", "fmapboard.logger", "fmapboard.writers.folder"]


def _child(case: Case, answer: Any) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        outcome = sweep(case)
    except Exception as error:
        reason = " ".join(str(error).split()) or "no reason given"
        outcome = Outcome(wrong=[f"{type(error).__name__}: {reason[:200]}"])
    answer.send(outcome)


def in_a_process(case: Case, limit: float) -> Outcome:
    """Run `sweep` in a separate process, which frees its memory and limits its time.

    Args:
        case: the model.
        limit: time after which the process is killed, s.
    """
    context = multiprocessing.get_context("forkserver")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(case, there))
    process.start()
    there.close()
    try:
        if not here.poll(limit):
            return Outcome(wrong=[f"not finished after {limit:.0f} s"])
        outcome: Outcome = here.recv()
        return outcome
    except EOFError:
        process.join()
        return Outcome(wrong=[f"the process died (exit code {process.exitcode})"])
    finally:
        process.kill()
        process.join()


def table(results: list[tuple[Case, Outcome]], command: str, seconds: float) -> str:
    """The results as Markdown."""
    failed = [case.name for case, outcome in results if outcome.wrong]
    calls = sum(outcome.calls for _, outcome in results)
    equal_records = sum(outcome.records for _, outcome in results)
    lines = [
        "# Recorded feature maps of third-party models, checked",
        "",
        f"`{command}` · {versions()} · one thread, CPU · {seconds / 60:.0f} min",
        "",
        f"{len(results)} models, {len(failed)} with a fault. {calls} calls of convolutions, for "
        f"{equal_records} of which `extract` returned a tensor equal to a clone of what `forward` "
        f"returned. {sum(outcome.same is True for _, outcome in results)} watched training steps "
        "bitwise equal to the unwatched one.",
        "",
        "Random weights, batch size 2, train mode unless noted. *Pictures*: calls of a `Conv2d` "
        "that are drawn; their histogram, minimum and maximum are checked too. *Training the "
        "same*: loss, gradients, parameters, buffers and random state after the step are equal.",
        "",
        "| model | task | convolutions | calls | records equal | pictures | training the same "
        "| s | note |",
        "|---|---|--:|--:|--:|--:|---|--:|---|",
    ]
    for case, outcome in results:
        same = {True: "yes", False: "**no**", None: "–"}[outcome.same]
        notes = [f"**{wrong}**" for wrong in outcome.wrong[:3]] + outcome.said
        if len(outcome.wrong) > 3:
            notes.insert(3, f"**{len(outcome.wrong) - 3} more**")
        lines.append(
            f"| {case.name} | {case.task} | {outcome.convolutions} | {outcome.calls} "
            f"| {outcome.records} | {outcome.pictures} of {outcome.drawable} | {same} "
            f"| {outcome.seconds:.0f} | {'; '.join(notes).replace('|', '/')} |"
        )
    return "\n".join(lines) + "\n"


def versions() -> str:
    """The versions that the result depends on."""
    found = [f"Python {platform.python_version()}"]
    for package in ("fmapboard", "torch", "torchvision", "timm"):
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return ", ".join(found)


def main() -> int:
    """Check the models and write the table; returns 1 if any model has a fault, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", help="glob for the names of models")
    parser.add_argument("--timm", action="store_true", help="also check timm families")
    parser.add_argument("--jobs", type=int, default=1, help="models in parallel (default 1)")
    parser.add_argument("--limit", type=float, default=180, help="seconds per model (default 180)")
    parser.add_argument(
        "--out", type=Path, help=f"file for the table (default {RESULTS.name}, without --only)"
    )
    options = parser.parse_args()
    chosen = [c for c in cases(timm=options.timm) if fnmatchcase(c.name, options.only or "*")]
    if not chosen:
        parser.error(f"no model matches {options.only!r}")
    begun = time.perf_counter()
    results = []
    with ThreadPoolExecutor(options.jobs) as threads:
        outcomes = threads.map(lambda case: in_a_process(case, options.limit), chosen)
        for case, outcome in zip(chosen, outcomes, strict=True):
            results.append((case, outcome))
            state = "; ".join(outcome.wrong[:2]) or f"{outcome.records} records, all equal"
            print(f"{case.task:15}{case.name:42}{outcome.seconds:6.1f} s  {state}", flush=True)
    command = f"python tests/accuracy/model_sweep.py {shlex.join(sys.argv[1:])}".strip()
    text = table(results, command, time.perf_counter() - begun)
    out = options.out or (None if options.only else RESULTS)
    if out is None:
        print(text)
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
        print(out)
    return int(any(outcome.wrong for _, outcome in results))


if __name__ == "__main__":
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    sys.exit(main())
