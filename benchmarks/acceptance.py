"""What ``fmapboard check`` says about trainings that its authors had not seen.

python benchmarks/acceptance.py [--networks first] [--only GLOB] [--seeds 1] [--out FILE.tsv]

``--networks`` chooses the set: "first", "later", "third", "fourth" and "fifth" are healthy
trainings, "faults", "third_faults" and "fourth_faults" are trainings with a planted fault each.
Each training runs on one thread and logs into a temporary directory; then ``fmapboard check
--json`` reads it in a process of its own. One row per finding, and one with an empty kind for a run
about which nothing was said. Rows of trainings that FILE already has are kept, and those trainings
are not repeated.
``--losses`` trains only. ``--runs DIR`` keeps what was logged; a training that DIR has is only read
again, with the checks of today.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import importlib
import json
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import torch
from acceptance_case import HealthyCase

COLUMNS = (
    *("name", "architecture", "recipe", "seed", "steps", "logged", "loss_start", "loss_end"),
    "loss_eval",
    *("healthy", "seconds", "class", "kind", "where", "since_step", "value", "message"),
    "expected",
)
SETS = {
    "first": ("acceptance_networks", "ACCEPTANCE"),
    "later": ("acceptance_later", "LATER"),
    "faults": ("acceptance_later_faults", "FAULTS"),
    "third": ("acceptance_third", "THIRD"),
    "third_faults": ("acceptance_third_faults", "FAULTS"),
    "fourth": ("acceptance_fourth", "FOURTH"),
    "fifth": ("acceptance_fifth", "FIFTH"),
    "fourth_faults": ("acceptance_fourth_faults", "FAULTS"),
}
Row = dict[str, Any]


def cases(networks: str) -> dict[str, HealthyCase]:
    module, name = SETS[networks]
    return getattr(importlib.import_module(module), name)


def measure(job: tuple[str, str, int, bool, Path | None]) -> list[Row]:
    """Train one case and read it; the rows of the table."""
    networks, name, seed, check, kept = job
    torch.set_num_threads(1)
    case = cases(networks)[name]
    row: Row = dict.fromkeys(COLUMNS, "")
    logged = -(-case.steps // case.every)
    row |= {"name": name, "architecture": case.architecture, "recipe": case.recipe, "seed": seed}
    row |= {"steps": case.steps, "logged": logged, "expected": case.expected}
    with tempfile.TemporaryDirectory() as folder:
        run = (kept or Path(folder)) / str(seed) / name
        known = run.with_suffix(".json")
        if known.exists():
            row |= json.loads(known.read_text())
        else:
            shutil.rmtree(run, ignore_errors=True)
            start = time.perf_counter()
            try:
                result = case.train(run, seed)
            except Exception:
                row |= {"class": "error", "message": traceback.format_exc(limit=-2).strip()}
                return [row]
            losses = {"loss_start": f"{result.start:.4g}", "loss_end": f"{result.end:.4g}"}
            if result.evaluated is not None:
                losses["loss_eval"] = f"{result.evaluated:.4g}"
            losses["healthy"] = health(case, result.healthy)
            losses["seconds"] = f"{time.perf_counter() - start:.1f}"
            row |= losses
            known.write_text(json.dumps(losses))
        return [row | found for found in findings(run)] if check else [row]


def health(case: HealthyCase, healthy: bool) -> str:
    if case.expected:
        return "planted"
    if not healthy:
        return "NO"
    return "falls" if case.falls else "moderate"


def findings(run: Path) -> list[Row]:
    """What ``fmapboard check`` says; one empty row for nothing."""
    command = [sys.executable, "-m", "fmapboard", "check", "--json", str(run)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        message = done.stderr.strip()[-500:].replace(str(run.parent), "")
        return [{"class": "error", "message": message}]
    rows = []
    for found in json.loads(done.stdout):
        row: Row = {key: found.get(key) for key in ("class", "kind", "since_step", "value")}
        row["where"] = found.get("layer") or found.get("parameter") or ""
        row["message"] = found["message"].replace(str(run.parent), "")
        rows.append(row)
    return rows or [{}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Raw)
    parser.add_argument("--networks", default="first", choices=SETS, help="set of trainings")
    parser.add_argument("--only", default="*", help="glob on the names")
    parser.add_argument("--seeds", default=1, type=int, help="trainings of each case")
    parser.add_argument("--out", type=Path, help="the table, which is continued if it exists")
    parser.add_argument("--jobs", default=1, type=int, help="trainings at a time")
    parser.add_argument("--minutes", default=1e9, type=float, help="end then, to be continued")
    parser.add_argument("--losses", action="store_true", help="train only, do not check")
    parser.add_argument("--runs", type=Path, help="keep the runs below this directory")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    args = parser.parse_args()
    chosen = cases(args.networks)
    names = [name for name in chosen if fnmatch.fnmatch(name, args.only)]
    if args.list:
        for name in names:
            print(name, chosen[name].architecture, chosen[name].recipe, sep="\t")
        return
    rows = read(args.out)
    there = {(row["name"], int(row["seed"])) for row in rows}
    todo = [(name, seed) for seed in range(args.seeds) for name in names]
    jobs = [(args.networks, *one, not args.losses, args.runs) for one in todo if one not in there]
    end = time.monotonic() + 60 * args.minutes
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.jobs, maxtasksperchild=20) as pool:
        for found in pool.imap_unordered(measure, jobs):
            rows += found
            write(rows, args.out)
            first = found[0]
            losses = f"{first['loss_start']} -> {first['loss_end']} {first['loss_eval']}"
            losses = f"{losses} {first['healthy']}"
            said = ", ".join(f"{row['class']} {row['kind']}" for row in found if row["class"])
            print(first["name"], losses, first["seconds"], said, sep="\t", flush=True)
            if first["class"] == "error":
                print(first["message"])
            if time.monotonic() > end:
                break
    summarize(rows)


Raw = argparse.RawDescriptionHelpFormatter


def read(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write(rows: list[Row], path: Path | None) -> None:
    if path is None:
        return
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def summarize(rows: list[Row]) -> None:
    """Counts, to stderr."""
    runs: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        runs.setdefault((row["name"], str(row["seed"])), []).append(row)
    kinds: dict[str, set[tuple[str, str]]] = {}
    for key, found in runs.items():
        for row in found:
            if row["class"]:
                kinds.setdefault(f"{row['class']} {row['kind']}", set()).add(key)

    def having(wanted: str) -> int:
        return sum(any(row["class"] == wanted for row in found) for found in runs.values())

    lines = {
        "runs": len(runs),
        "architectures": len({row["architecture"] for row in rows}),
        "not healthy by their loss": sum(found[0]["healthy"] == "NO" for found in runs.values()),
        "errors": having("error"),
        "runs with a warning": having("warning"),
        "runs with a note": having("note"),
    }
    seconds = [float(found[0]["seconds"]) for found in runs.values() if found[0]["seconds"]]
    if seconds:
        lines["seconds of training, median"] = round(statistics.median(seconds), 1)
        lines["seconds of training, all"] = round(sum(seconds))
    for text, value in lines.items():
        print(f"{text}: {value}", file=sys.stderr)
    for kind, where in sorted(kinds.items()):
        print(f"  {kind}: {len(where)} runs", file=sys.stderr)


if __name__ == "__main__":
    main()
