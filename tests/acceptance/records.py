"""What the checks read of trainings, kept on disk: judged again as often as needed, trained once.

    python tests/acceptance/records.py --out records --seconds 5 --minutes 60

Trains cases of ``cases/``, the pairs that were kept apart and the spoilt trainings of a table of
`spoilt`, in turn, those first that took the least time; what ``--out`` has is not trained again.
`conditions` reads
them, as long as the formats of records are the same.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import multiprocessing
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SPOILT = HERE / "results" / "2026-11-29T0430_spoilt.tsv"
APART = HERE / "results" / "2026-11-29T0815_kept_apart_first.tsv"
READERS = HERE / "results" / "2026-11-29T0815_kept_apart_judgement.tsv"


@dataclass(frozen=True)
class Job:
    """A training.

    Attributes:
        name: of the case, with its set, such as "healthy/tables/gates_2026-11-28T1000".
        group: "healthy", "fault" or "spoilt".
        expected: kinds or groups that name the planted fault, separated by commas.
        share: of a spoilt training, the share of the healthy progress that is left.
        twin: of a spoilt training, the name of the healthy one.
        seconds: that it once took.
        where: what finds the case again.
    """

    name: str
    group: str
    where: tuple[str, ...]
    expected: str = ""
    share: float = 1.0
    twin: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Kept:
    """A training and the records of its models."""

    job: Job
    records: tuple[Any, ...]

    @classmethod
    def read(cls, path: Path) -> Kept:
        job, records = pickle.loads(path.read_bytes())
        return cls(Job(**job), tuple(records))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def apart() -> Iterator[Job]:
    """The pairs that were kept apart; expected is what two readers took for the cause."""
    named = {
        (row["author"], row["case"])
        for row in rows_of(READERS)
        if row["first_reader"] == row["second_reader"] == "named"
    }
    for row in rows_of(APART):
        if row["version"] == "untrained":
            continue
        where = ("kept_apart", row["author"], row["case"], row["version"])
        is_fault = row["version"] == "wrong"
        is_named = is_fault and where[1:3] in named
        group = "fault" if is_fault else "healthy"
        yield Job("/".join(where), group, where, expected=row["kind"] if is_named else "")


def acceptance() -> Iterator[Job]:
    """The cases of ``cases/``."""
    from run import chosen
    from spoilt import durations

    seconds = durations()
    for file, case in chosen([]):
        where = ("cases", file, case.name, case.first_seen)
        yield Job(
            case_name(file, case.name, case.first_seen),
            "fault" if case.expected else "healthy",
            where,
            expected=case.expected,
            seconds=seconds.get((case.name, case.first_seen), 10.0),
        )


def case_name(file: str, name: str, first_seen: str) -> str:
    return f"{file}/{name}_{first_seen.replace(':', '')}"


def spoilt() -> Iterator[Job]:
    """The spoilt trainings of the table."""
    from spoilt_table import read

    for row in read(SPOILT):
        if row.group == "healthy" or row.left_out or row.seed:
            continue
        twin = case_name(row.file, row.name, row.first_seen)
        where = ("spoilt", row.file, row.name, row.first_seen, row.spoiling)
        name = f"{twin}/{row.spoiling.replace(' ', '_')}"
        yield Job(name, "spoilt", where, share=row.share, twin=twin, seconds=row.seconds)


def train(job: Job, run: Path) -> None:
    """Train it with its log below ``run``."""
    import torch

    torch.set_num_threads(1)
    kind, *where = job.where
    if kind == "kept_apart":
        from kept_apart.trainings import author_files, trainings

        author, case, version = where
        (file,) = (file for file in author_files(HERE / "kept_apart") if file.stem == author)
        for training in trainings(file):
            if (training.case, training.version) == (case, version):
                training.train(run, 0)
        return
    from run import cases

    (case,) = (c for c in cases(where[0]) if [c.name, c.first_seen] == where[1:3])
    if kind == "cases":
        case.train(run, 0)
        return
    from spoilings import SPOILINGS
    from spoilt import losses_of

    (spoiling,) = (spoiling for spoiling in SPOILINGS if spoiling.name == where[3])
    losses_of(case, spoiling, run, 0)


def work(job_and_out: tuple[Job, Path]) -> str:
    """Train, and keep what the checks read; the error, or ""."""
    from fmapboard.health.read_runs import read_runs

    job, out = job_and_out
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        run.mkdir()
        failure = ""
        try:
            train(job, run)
        except Exception:  # what was logged until then is read
            failure = traceback.format_exc(limit=-1).strip()
        try:
            records = [record for found in read_runs(run) for record in found.records]
        except Exception as error:
            return f"{failure} {error}"
        kept = pickle.dumps((asdict(job), records))
    (out / f"{job.name.replace('/', '__')}.pickle").write_bytes(kept)
    return failure


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--out", type=Path, required=True, help="folder of the records")
    parser.add_argument("--seconds", type=float, default=5, help="leave out what took longer")
    parser.add_argument("--minutes", type=float, default=1e9, help="end then, to be continued")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(HERE))
    end = time.monotonic() + 60 * args.minutes
    in_turn = itertools.zip_longest(
        apart(),
        sorted((job for job in acceptance() if job.expected), key=lambda job: job.seconds),
        sorted((job for job in acceptance() if not job.expected), key=lambda job: job.seconds),
        sorted(spoilt(), key=lambda job: job.seconds),
    )
    jobs = [job for round_ in in_turn for job in round_ if job is not None]
    done = {path.stem for path in args.out.glob("*.pickle")}
    todo = [
        (job, args.out)
        for job in jobs
        if job.seconds <= args.seconds and job.name.replace("/", "__") not in done
    ]
    context = multiprocessing.get_context("spawn")
    with context.Pool(1, maxtasksperchild=20) as pool:
        for (job, _), failure in zip(todo, pool.imap(work, todo), strict=False):
            print(job.name, failure.replace("\n", " "), sep="\t", file=sys.stderr, flush=True)
            if time.monotonic() > end:
                break
        pool.terminate()


if __name__ == "__main__":
    main()
