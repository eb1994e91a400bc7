"""What fmapboard says of the trainings that were kept apart, once, after the rules are frozen.

    python tests/acceptance/kept_apart/run.py --runs kept_runs --out kept.tsv      # all authors
    python tests/acceptance/kept_apart/run.py alder birch --runs kept_runs --out kept.tsv
    python tests/acceptance/kept_apart/run.py --out kept.tsv --sheet kept_sheet    # for the judge
    python tests/acceptance/kept_apart/run.py --out kept.tsv --figures kept_sheet  # once judged

Each case is trained right, with its mistake, and untrained (the right one with optimizers that do
not step, from which the held-out measure of an untrained network is read), each in a process of its
own with one thread. Then every outlet is asked what it says of the run, with the judgement that was
stored while it trained. ``--runs`` is continued: what it has is neither trained nor read again, so
that a program that was interrupted goes on. The table has one row per training.

The judge gets a folder with ``sheet.md`` and a blank ``judgement.tsv``, without ``key.tsv``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from kept_apart import figures  # noqa: E402
from kept_apart.sheet import FIRST, Item, anonymous, judged, write_sheet  # noqa: E402
from kept_apart.trainings import (  # noqa: E402
    UNTRAINED,
    WRONG,
    Training,
    author_files,
    isolated,
    start_server,
    trainings,
)

NAMES = ("the Feature maps tab", "fmapboard")
"""What is not shown to the judge."""


def work(training: Training, runs: Path, seed: int) -> None:
    """Train, unless that was done before, and read what was logged."""
    import torch

    torch.set_num_threads(1)
    folder = training.directory(runs)
    run = folder / "run"
    trained = folder / "trained.json"
    failure: Exception | None = None
    if not trained.exists():
        run.mkdir()
        result: dict[str, Any] = {}
        try:
            outcome = training.train(run, seed)
            result = {"losses": outcome.losses, "held_out": outcome.held_out}
        except Exception as error:  # what was logged until then is read
            failure = error
            result = {"error": f"{type(error).__name__}: {error}"}
        store(trained, result)
    if failure is not None:
        raise failure
    if training.version != UNTRAINED:
        read_outlets(run, folder)


def read_outlets(run: Path, folder: Path) -> None:
    from kept_apart import outlets

    store(folder / "said.json", asdict(outlets.read(run)))


def store(path: Path, value: object) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1))
    new.replace(path)


def is_done(training: Training, runs: Path) -> bool:
    folder = training.directory(runs)
    if (folder / "ended.json").exists():
        return True
    last = "trained.json" if training.version == UNTRAINED else "said.json"
    return (folder / last).exists()


def train(selected: Sequence[Training], args: argparse.Namespace) -> None:
    """Work off what is not done; the table is written after each training."""
    import shutil

    start_server("torch", "torchvision", "kept_apart.outlets")
    todo = [training for training in selected if not is_done(training, args.runs)]

    def one(training: Training) -> None:
        folder = training.directory(args.runs)
        if not (folder / "trained.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        log = folder / "log.txt"
        ended = isolated(log, args.limit, work, training, args.runs, args.seed)
        if ended and training.version != UNTRAINED and (folder / "run").exists():
            ended_too = isolated(log, args.limit, read_outlets, folder / "run", folder)
            ended = f"{ended}; {ended_too}" if ended_too else ended
        if ended:
            store(folder / "ended.json", ended)
        figures.write(table(selected, args.runs), args.out)
        print(training.author, training.case, training.version, ended, sep="\t", file=sys.stderr)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, todo))


def table(selected: Sequence[Training], runs: Path) -> list[figures.Row]:
    """The rows of the trainings that are done."""
    rows = []
    for training in selected:
        if is_done(training, runs):
            rows.append(row_of(training, runs))
    return rows


def row_of(training: Training, runs: Path) -> figures.Row:
    folder = training.directory(runs)
    values: dict[str, Any] = {"author": training.author, "case": training.case}
    values["version"] = training.version
    if training.version == WRONG:
        values["mistake"] = training.mistake
    trained = loaded(folder / "trained.json")
    if "losses" in trained:
        values["held_out"] = trained["held_out"]
        start, end = figures.losses_of(trained["losses"])
        values |= {"loss_start": start, "loss_end": end}
    said = loaded(folder / "said.json")
    for name in ("state", "class_", "kind", "warnings", "notes", "outlets", "line", "screen"):
        if name in said:
            values[name] = said[name]
    if said:
        values["learns"] = str(said["learns"])
    ended = folder / "ended.json"
    if ended.exists():
        values["error"] = trained.get("error") or json.loads(ended.read_text())
    return figures.Row(**values)


def loaded(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def items(rows: Sequence[figures.Row], selected: Sequence[Training]) -> list[Item]:
    """What is judged: the first screen of each training with a mistake."""
    by_name = {(one.author, one.case): one for one in selected if one.version == WRONG}
    found = []
    for row in rows:
        if row.version == WRONG and row.pair in by_name:
            training = by_name[row.pair]
            text = anonymous(row.screen, NAMES)
            where = ("fmapboard", row.author, row.case, row.version)
            found.append(Item(*where, training.description, training.mistake, text))
    return found


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("authors", nargs="*", help="names of their files (default: all)")
    parser.add_argument("--cases", type=Path, default=HERE, help="folder of the authors' files")
    parser.add_argument("--runs", type=Path, help="where runs and results are kept")
    parser.add_argument("--out", type=Path, required=True, help="the table")
    parser.add_argument("--seed", type=int, default=0, help="of data, weights and batches")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at a time")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one training")
    parser.add_argument(
        "--sheet", type=Path, metavar="DIR", help="write the judging sheet, and end"
    )
    parser.add_argument("--figures", type=Path, metavar="DIR", help="join the judgement, and end")
    args = parser.parse_args()
    files = author_files(args.cases)
    names = [file.stem for file in files]
    unknown = set(args.authors).difference(names)
    if unknown:
        parser.error(f"no author {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    selected: list[Training] = []
    for file in files:
        if not args.authors or file.stem in args.authors:
            selected += trainings(file)
    if args.sheet:
        write_sheet(items(figures.read(args.out), selected), args.sheet, FIRST)
    elif args.figures:
        words = {(key[1], key[2]): word for key, word in judged(args.figures).items()}
        print(figures.figures(figures.read(args.out), words))
    elif args.runs is None:
        parser.error("--runs is needed to train")
    else:
        train(selected, args)


if __name__ == "__main__":
    main()
