"""What ``fmapboard check`` says about healthy trainings that were spoilt in one thing.

    python tests/acceptance/spoilt.py healthy/tables --out spoilt.tsv --runs spoilt_runs
    python tests/acceptance/spoilt.py --random 1 --each 3 --seconds 6 --minutes 40 --out spoilt.tsv
    python tests/acceptance/spoilt.py --judge spoilt.tsv --plot plots  # figures of a table
    python tests/acceptance/spoilt.py --read-again --runs spoilt_runs --out spoilt.tsv

Each healthy case is trained as it is and once per spoiling (`spoilings`), with the same seed. A row
of the table says how much of the healthy progress is left: 1 if the loss ends where that of the
healthy training ends, 0 if it ends where that one starts, below 0 if it ends above. Losses are
means over the first three steps and over the last fifth of them. A case that cannot be spoilt in
some way has a row with the reason in ``left_out``. ``--out`` continues a table. ``--runs`` keeps
what was logged, so that ``--read-again`` can judge it with other rules.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import multiprocessing
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from click.testing import CliRunner
from loops import Case, Fit
from run import HERE, cases, chosen
from spoilings import SPOILINGS, Effect, NotApplicable, Spoiling
from spoilt_plots import plot
from spoilt_table import Trained, judged, read, write

from fmapboard.cli.main import fmapboard

HEALTHY = "healthy"
# A check that is named judges the run anew: otherwise the stored judgement would be printed.
JUDGED_ANEW = ("check", "--json", "--check", "fmapboard.checks:DeadCheck")
"""What stands for the spoiling in the row of a training that is not spoilt."""


@dataclass(frozen=True)
class Job:
    """A healthy training and the spoilings of it that are asked for.

    Attributes:
        file, name, first_seen: Which case.
        seed: Of the weights and of the batches.
        spoilings: Their names.
        twin: The row of the healthy training if it was trained before.
        runs: Where runs are kept, or None.
    """

    file: str
    name: str
    first_seen: str
    seed: int
    spoilings: tuple[str, ...]
    twin: Trained | None
    runs: Path | None


def work(job: Job) -> list[Trained]:
    """Train a case as it is, unless that was done before, and spoilt; a row per training."""
    torch.set_num_threads(1)
    (case,) = (
        case
        for case in cases(job.file)
        if (case.name, case.first_seen) == (job.name, job.first_seen)
    )
    rows = []
    twin = job.twin
    if twin is None:
        twin = trained(case, job, None, None)
        rows.append(twin)
    if twin.left_out:
        return rows
    for spoiling in SPOILINGS:
        if spoiling.name in job.spoilings:
            rows.append(trained(case, job, spoiling, twin))
    return rows


def trained(case: Case, job: Job, spoiling: Spoiling | None, twin: Trained | None) -> Trained:
    """Train once and read what was logged."""
    name = spoiling.name if spoiling else HEALTHY
    row = Trained(
        file=job.file,
        name=job.name,
        first_seen=job.first_seen,
        architecture=case.architecture,
        recipe=case.recipe,
        seed=job.seed,
        spoiling=name,
        group=spoiling.group if spoiling else HEALTHY,
    )
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = run_directory(job.runs or Path(folder), row)
        shutil.rmtree(run, ignore_errors=True)
        try:
            losses = losses_of(case, spoiling, run, job.seed)
        except NotApplicable as reason:
            shutil.rmtree(run, ignore_errors=True)
            return row.but(left_out=str(reason))
        except Exception as error:  # the training of a user would end here, too
            shutil.rmtree(run, ignore_errors=True)
            text = " ".join(f"{type(error).__name__}: {error}".split())
            return row.but(left_out=text[:200])
        last = max(5, len(losses) // 5)
        row = row.but(
            start=statistics.fmean(losses[:3]),
            end=statistics.fmean(losses[-last:]),
            seconds=round(time.perf_counter() - start, 1),
        )
        if twin is None:
            row = row.but(healthy_start=row.start, healthy_end=row.end)
        else:
            row = row.but(healthy_start=twin.start, healthy_end=twin.end)
        if twin is None and not (math.isfinite(row.end) and row.end < 0.93 * row.start):
            shutil.rmtree(run, ignore_errors=True)
            return row.but(left_out="the loss of the healthy training does not fall")
        return with_findings(row, run)


def losses_of(case: Case, spoiling: Spoiling | None, run: Path, seed: int) -> list[float]:
    """The loss of each step.

    Raises:
        NotApplicable: the case cannot be spoilt so.
    """
    if not isinstance(case.run, Fit):
        raise NotApplicable("the case has a loop of its own")
    fit = case.run
    effect = Effect()
    if spoiling is not None:
        fit = spoiling.spoil(fit, effect)
    torch.manual_seed(seed)
    losses = fit(run, seed)
    if spoiling is not None and not effect.is_seen:
        raise NotApplicable("nothing was spoilt")
    return list(losses)


def run_directory(runs: Path, row: Trained) -> Path:
    case = f"{row.name}_{row.first_seen.replace(':', '')}"
    return runs / str(row.seed) / row.file / case / row.spoiling.replace(" ", "_")


def with_findings(row: Trained, run: Path) -> Trained:
    """The row with what ``fmapboard check`` says today."""
    done = CliRunner().invoke(fmapboard, [*JUDGED_ANEW, str(run)])
    if done.exit_code not in (0, 1):
        return row.but(left_out=f"check: {done.stderr.strip()[-160:]}")
    found = json.loads(done.stdout)
    said = "; ".join(f"{finding['class']} {finding['kind']}" for finding in found)
    if not found:
        return row.but(class_="", kind="", said="", message="")
    first = found[0]
    return row.but(
        class_=first["class"],
        kind=first["kind"],
        said=said,
        message=" ".join(first["message"].replace(str(run), "run").split()),
    )


def read_again(rows: Iterable[Trained], runs: Path) -> list[Trained]:
    """Rows with what is said today of the runs that are there."""
    found = []
    for row in rows:
        run = run_directory(runs, row)
        found.append(with_findings(row, run) if run.exists() and not row.left_out else row)
    return found


def durations() -> dict[tuple[str, str], float]:
    """Seconds that the trainings once took, by name and date, from the tables in results/."""
    found: dict[tuple[str, str], float] = {}
    for path in HERE.glob("results/*_first.tsv"):
        with path.open(newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                if row.get("seconds") and row.get("first_seen"):
                    found[row["name"], row["first_seen"]] = float(row["seconds"])
    return found


def jobs(args: argparse.Namespace, rows: Sequence[Trained]) -> list[Job]:
    """What is to be trained: per case and seed the spoilings that have no row yet."""
    selected = chosen(args.places or [HEALTHY], args.only)
    selected = [(file, case) for file, case in selected if not case.expected]
    seconds = durations()
    if args.seconds:
        selected = [
            (file, case)
            for file, case in selected
            if seconds.get((case.name, case.first_seen), math.inf) < args.seconds
        ]
    drawn = random.Random(args.random)
    if args.random:
        drawn.shuffle(selected)
    names = [s.name for s in SPOILINGS if not args.spoilings or s.name in args.spoilings]
    known = {row.key: row for row in rows}
    found = []
    for seed in range(args.seeds):
        for file, case in selected:
            wanted = drawn.sample(names, min(args.each, len(names))) if args.each else names
            key = (file, case.name, case.first_seen, seed)
            twin = known.get((*key, HEALTHY))
            missing = tuple(name for name in wanted if (*key, name) not in known)
            if twin is not None and (twin.left_out or not missing):
                continue
            found.append(Job(*key, missing, twin, args.runs))
    return found


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("places", nargs="*", help="files or folders of cases/ (default: healthy)")
    parser.add_argument("--only", default="*", help="glob on the names")
    parser.add_argument("--spoilings", nargs="*", help="names, such as 'rate x0.1' (default: all)")
    parser.add_argument("--each", default=0, type=int, help="so many spoilings per case, at random")
    parser.add_argument("--random", default=0, type=int, help="seed: draw the cases in this order")
    parser.add_argument("--seconds", default=0, type=float, help="only cases that took less once")
    parser.add_argument("--seeds", default=1, type=int, help="trainings of each case")
    parser.add_argument("--out", type=Path, help="the table, which is continued if it exists")
    parser.add_argument("--runs", type=Path, help="keep the runs below this directory")
    parser.add_argument("--jobs", default=1, type=int, help="trainings at a time")
    parser.add_argument("--minutes", default=1e9, type=float, help="end then, to be continued")
    parser.add_argument("--read-again", action="store_true", help="judge the kept runs, and end")
    parser.add_argument("--judge", type=Path, metavar="TABLE", help="print its figures, and end")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="with --judge: a plot per group")
    args = parser.parse_args()
    if args.judge:
        rows = read(args.judge)
        print(judged(rows))
        if args.plot:
            plot(rows, args.plot)
        return
    if args.read_again and not (args.out and args.runs):
        parser.error("--read-again needs --out and --runs")
    rows = read(args.out)
    if args.read_again:
        write(read_again(rows, args.runs), args.out)
        return
    train(jobs(args, rows), rows, args)


def train(todo: list[Job], rows: list[Trained], args: argparse.Namespace) -> None:
    """Work the jobs off; the table is written after each."""
    end = time.monotonic() + 60 * args.minutes
    context = multiprocessing.get_context("spawn")
    with context.Pool(args.jobs, maxtasksperchild=20) as pool:
        for found in pool.imap_unordered(work, todo):
            rows = [*rows, *found]
            if args.out:
                write(rows, args.out)
            for row in found:
                print(row.line(), file=sys.stderr, flush=True)
            if time.monotonic() > end:
                break
    print(judged(rows))


if __name__ == "__main__":
    main()
