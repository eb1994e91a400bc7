"""What ``fmapboard check`` says about trainings: healthy ones, and ones with a planted fault.

    python tests/acceptance/run.py healthy/audio faults              # files or folders of cases/
    python tests/acceptance/run.py --first-seen 2026-11-28T10:00     # one set, by when it was new
    python tests/acceptance/run.py faults/nonfinite --first-steps 3  # a dry run

Each training runs on one thread and logs into a temporary directory; then ``fmapboard check
--json`` reads it in a process of its own. Without ``--out`` the table goes to stdout: one row per
finding, that of the root cause first, and one with an empty kind for a run about which nothing was
said. With ``--out FILE``, rows of trainings that FILE has are kept, and those trainings are not
repeated. ``--runs DIR`` keeps what was logged; a training that DIR has is only read again, with the
checks of today. Places, names and dates without a case are an error (exit code 2).
"""

from __future__ import annotations

import argparse
import csv
import difflib
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import torch
from loops import Case
from torch.optim.optimizer import register_optimizer_step_post_hook

from fmapboard.health.rules import BUILT_IN, group_of

COLUMNS = (
    *("file", "name", "first_seen", "architecture", "recipe", "seed", "steps", "logged"),
    *("loss_start", "loss_end", "loss_eval", "healthy", "seconds"),
    *("class", "kind", "where", "since_step", "value", "message", "expected"),
)
HERE = Path(__file__).parent
Row = dict[str, Any]


def files(places: list[str]) -> list[str]:
    """The files of cases/ at or below ``places``, such as "healthy" or "faults/nonfinite"."""
    known = [path.relative_to(HERE / "cases") for path in HERE.glob("cases/*/*.py")]
    names = sorted(path.with_suffix("").as_posix() for path in known)
    for place in places:
        if place.strip("/") not in {*names, "healthy", "faults"}:
            usage_error(f"no cases at {place!r}; there are: healthy, faults, {', '.join(names)}")
    prefixes = tuple(place.strip("/") for place in places)
    return [name for name in names if not places or name.startswith(prefixes)]


def cases(file: str) -> list[Case]:
    return importlib.import_module(f"cases.{file.replace('/', '.')}").CASES


def chosen(places: list[str], only: str = "*", first_seen: str = "") -> list[tuple[str, Case]]:
    """Cases with the files that they stand in; an error if there is none.

    Args:
        places: files or folders of cases/; all if empty.
        only: a glob that the names match.
        first_seen: what the dates begin with.
    """
    known = [(file, case) for file in files(places) for case in cases(file)]
    named = [(file, case) for file, case in known if fnmatch.fnmatch(case.name, only)]
    if not named:
        near = difflib.get_close_matches(only, [case.name for _, case in known])
        usage_error(f"no case matches {only!r} among {len(known)}; closest: {', '.join(near)}")
    dated = [(file, case) for file, case in named if case.first_seen.startswith(first_seen)]
    if not dated:
        dates = sorted({case.first_seen for _, case in named})
        usage_error(f"no case was first seen at {first_seen!r}; there are: {', '.join(dates)}")
    return dated


def usage_error(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(2)


class Ended(BaseException):
    """The first steps of a dry run are over."""


@contextmanager
def first(steps: int) -> Iterator[None]:
    """Raise `Ended` after so many calls of an optimizer's ``step``; 0 lets the training go on."""
    left = steps

    def count(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Ended

    hook = register_optimizer_step_post_hook(count)
    try:
        yield
    finally:
        hook.remove()


def measure(job: tuple[str, str, str, int, int, Path | None]) -> list[Row]:
    """Train one case and read it; the rows of the table."""
    file, name, first_seen, seed, first_steps, kept = job
    torch.set_num_threads(1)
    (case,) = (c for c in cases(file) if (c.name, c.first_seen) == (name, first_seen))
    row: Row = dict.fromkeys(COLUMNS, "")
    row |= {"file": file, "name": name, "first_seen": first_seen, "seed": seed}
    row |= {"architecture": case.architecture, "recipe": case.recipe, "steps": case.steps}
    row |= {"logged": -(-case.steps // case.every), "expected": case.expected}
    with tempfile.TemporaryDirectory() as folder:
        run = (kept or Path(folder)) / str(seed) / file / f"{name}_{first_seen.replace(':', '')}"
        known = run.with_suffix(".json")
        if known.exists():
            row |= json.loads(known.read_text())
        else:
            shutil.rmtree(run, ignore_errors=True)
            start = time.perf_counter()
            try:
                with first(first_steps):
                    result = case.train(run, seed)
            except Ended:
                return [row | {"healthy": "dry run"}]
            except Exception:
                return [row | {"class": "error", "message": traceback.format_exc(limit=-2).strip()}]
            losses = {"loss_start": f"{result.start:.4g}", "loss_end": f"{result.end:.4g}"}
            if result.evaluated is not None:
                losses["loss_eval"] = f"{result.evaluated:.4g}"
            losses["healthy"] = health(case, result.healthy)
            losses["seconds"] = f"{time.perf_counter() - start:.1f}"
            row |= losses
            if kept:
                known.write_text(json.dumps(losses))
        return [row | found for found in findings(run)]


def health(case: Case, healthy: bool) -> str:
    if case.expected:
        return "planted"
    if not healthy:
        return "NO"
    return "falls" if case.falls else "moderate"


def findings(run: Path) -> list[Row]:
    """What ``fmapboard check`` says; one empty row for nothing."""
    # A check that is named judges the run anew: otherwise the stored judgement would be printed.
    command = [sys.executable, "-m", "fmapboard", "check", "--json", str(run)]
    command += ["--check", "fmapboard.checks:DeadCheck"]
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
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("places", nargs="*", help="files or folders of cases/ (default: all)")
    parser.add_argument("--only", default="*", help="glob on the names")
    parser.add_argument("--first-seen", default="", help="begin of the date, such as 2026-11-28")
    parser.add_argument("--seeds", default=1, type=int, help="trainings of each case")
    parser.add_argument("--out", type=Path, help="the table, which is continued if it exists")
    parser.add_argument("--jobs", default=1, type=int, help="trainings at a time")
    parser.add_argument("--minutes", default=1e9, type=float, help="end then, to be continued")
    parser.add_argument("--first-steps", default=0, type=int, help="end each training after these")
    parser.add_argument("--runs", type=Path, help="keep the runs below this directory")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    args = parser.parse_args()
    selected = chosen(args.places, args.only, args.first_seen)
    if args.list:
        for file, case in selected:
            print(file, case.name, case.first_seen, case.architecture, case.recipe, sep="\t")
        return
    rows = read(args.out)
    there = {(row["file"], row["name"], row["first_seen"], int(row["seed"])) for row in rows}
    todo = [(f, c.name, c.first_seen, seed) for seed in range(args.seeds) for f, c in selected]
    jobs = [(*one, args.first_steps, args.runs) for one in todo if one not in there]
    end = time.monotonic() + 60 * args.minutes
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.jobs, maxtasksperchild=20) as pool:
        for found in pool.imap_unordered(measure, jobs):
            rows += found
            write(rows, args.out)
            one = found[0]
            losses = f"{one['loss_start']} -> {one['loss_end']} {one['loss_eval']}"
            said = ", ".join(f"{row['class']} {row['kind']}" for row in found if row["class"])
            told = (losses, one["healthy"], one["seconds"], said)
            print(one["file"], one["name"], *told, sep="\t", file=sys.stderr, flush=True)
            if one["class"] == "error":
                print(one["message"], file=sys.stderr)
            if time.monotonic() > end:
                break
    if args.out is None:
        table(rows, sys.stdout)
    summarize(rows)


def read(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write(rows: list[Row], path: Path | None) -> None:
    if path is not None:
        with path.open("w", newline="") as file:
            table(rows, file)


def table(rows: list[Row], file: Any) -> None:
    writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def is_expected(row: Row) -> bool:
    """True if a finding is of a kind, or of a group of kinds, that names the planted fault."""
    groups = {rule.kind: group_of(rule) for rule in BUILT_IN}
    names = {row["kind"], groups.get(row["kind"], "")}
    return not names.isdisjoint(row["expected"].split(","))


def summarize(rows: list[Row]) -> None:
    """Counts, to stderr."""
    runs: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        key = (row["file"], row["name"], row["first_seen"], str(row["seed"]))
        runs.setdefault(key, []).append(row)
    kinds: dict[str, int] = {}
    for found in runs.values():
        for kind in {f"{row['class']} {row['kind']}" for row in found if row["class"]}:
            kinds[kind] = kinds.get(kind, 0) + 1
    groups = {"healthy": [], "planted": []}
    for found in runs.values():
        groups["planted" if found[0]["expected"] else "healthy"].append(found)

    def having(group: str, wanted: str) -> int:
        return sum(any(row["class"] == wanted for row in found) for found in groups[group])

    named = [found for found in groups["planted"] if any(map(is_expected, found))]
    on_top = [found for found in groups["planted"] if is_expected(found[0])]
    lines = {
        "healthy runs": len(groups["healthy"]),
        "networks in them": len({found[0]["architecture"] for found in groups["healthy"]}),
        "not healthy by their loss": sum(f[0]["healthy"] == "NO" for f in groups["healthy"]),
        "with a warning": having("healthy", "warning"),
        "with a note": having("healthy", "note"),
        "runs with a planted fault": len(groups["planted"]),
        "whose fault was named": len(named),
        "whose fault is the first cause": len(on_top),
        "errors": having("healthy", "error") + having("planted", "error"),
    }
    seconds = [float(found[0]["seconds"]) for found in runs.values() if found[0]["seconds"]]
    if seconds:
        lines["seconds of training, median"] = round(statistics.median(seconds), 1)
        lines["seconds of training, all"] = round(sum(seconds))
    for text, value in (lines | dict(sorted(kinds.items()))).items():
        print(f"{text}: {value}", file=sys.stderr)


if __name__ == "__main__":
    main()
