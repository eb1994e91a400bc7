"""What fmapboard and six packages that promise the same say of one set of trainings.

    pip install -e '.[beside]'
    python benchmarks/beside.py --runs runs/beside                       # all tools, two at a time
    python benchmarks/beside.py --runs runs/beside --sheet sheets/beside  # then for a blind judge
    python benchmarks/beside.py --runs runs/beside --judged sheets/beside # the table

The set is that of one author of `tests/acceptance/kept_apart`, written before anybody saw what a
tool says of it: each training right and with one mistake, with the same seed. Each tool is attached
as its README says (`beside_tools`) and trains in a process of its own. ``--runs`` is continued: a
training that it has is not repeated. Where a tool cannot be attached, the table counts that apart
and ``--reasons`` says why.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "acceptance"))

from beside_tools import TOOLS, says  # noqa: E402
from kept_apart.sheet import (  # noqa: E402
    ANYWHERE,
    FAULTY_WORDS,
    Item,
    anonymous,
    judged,
    write_sheet,
)
from kept_apart.trainings import (  # noqa: E402
    UNTRAINED,
    WRONG,
    Training,
    isolated,
    start_server,
    trainings,
)

CASES = ROOT / "tests" / "acceptance" / "kept_apart" / "alder.py"
NAMES = {
    "fmapboard": ("the Feature maps tab", "fmapboard"),
    "torch-audit": ("torch-audit", "torch_audit", "torch audit"),
}
"""Names in a tool's texts, if there are others than its own."""
COLUMNS = "200"
"""Width of the terminal that is claimed, so that no table wraps a sentence."""
_NOT_ATTACHED = "not attached"

Key = tuple[str, Training]


def place(runs: Path, tool: str, training: Training) -> Path:
    return training.directory(runs / tool)


def ask(tool: str, training: Training, runs: Path, seed: int) -> None:
    """Train with a tool and store what it said."""
    import torch

    os.environ["COLUMNS"] = COLUMNS
    torch.set_num_threads(1)
    folder = place(runs, tool, training)
    run = folder / "run"
    run.mkdir(exist_ok=True)
    text, error = says(tool, lambda watch: training.train(run, seed, watch))
    store(folder, text, error)


def store(folder: Path, text: str, error: str) -> None:
    new = folder / "answer.new"
    new.write_text(json.dumps({"text": text, "error": error}, indent=1))
    new.replace(folder / "answer.json")


def answers(
    runs: Path, tools: Sequence[str], selected: Sequence[Training]
) -> Iterator[tuple[Key, dict[str, str]]]:
    """What the tools said: ``text``, and ``error`` if it was not attached or training ended."""
    for tool in tools:
        for training in selected:
            path = place(runs, tool, training) / "answer.json"
            if path.exists():
                yield (tool, training), json.loads(path.read_text())


def run(args: argparse.Namespace, selected: Sequence[Training]) -> None:
    """Ask each tool about each training that it was not asked about."""
    start_server("torch", "torchvision", "beside_tools", "beside")
    known = {key for key, _ in answers(args.runs, args.tools, selected)}
    todo = [(tool, one) for tool in args.tools for one in selected if (tool, one) not in known]

    def work(job: Key) -> None:
        tool, training = job
        folder = place(args.runs, tool, training)
        folder.mkdir(parents=True, exist_ok=True)
        ended = isolated(folder / "log.txt", args.limit, ask, tool, training, args.runs, args.seed)
        if ended:
            store(folder, "", ended)
        print(tool, training.case, training.version, ended, sep="\t", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work, todo))


def items(args: argparse.Namespace, selected: Sequence[Training]) -> list[Item]:
    """The answers for the sheet."""
    found = []
    for (tool, training), answer in answers(args.runs, args.tools, selected):
        if answer["text"]:
            path = str(place(args.runs, tool, training) / "run")
            text = anonymous(answer["text"], NAMES.get(tool, (tool,)), path)
            where = (tool, training.author, training.case, training.version)
            mistake = training.mistake if training.version == WRONG else ""
            found.append(Item(*where, training.description, mistake, text))
    return found


def table(
    words: Mapping[tuple[str, str, str, str], str],
    said: Sequence[tuple[Key, Mapping[str, str]]],
    versions: Mapping[str, str],
) -> str:
    """One row per tool, as Markdown.

    Args:
        words: tool, author, case, version -> the judge's word.
        said: what the tools said.
        versions: of the tools.
    """
    lines = [
        "| tool | faults | named | symptom | wrong | silent | not attached "
        "| healthy | warned | not attached |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for tool in dict.fromkeys(tool for (tool, _), _ in said):
        faulty: Counter[str] = Counter()
        healthy: Counter[str] = Counter()
        for (asked, training), answer in said:
            if asked == tool:
                key = (tool, training.author, training.case, training.version)
                word = words.get(key, "") if answer["text"] else _NOT_ATTACHED
                group = faulty if training.version == WRONG else healthy
                group[word or "not judged"] += 1
        cells: list[Any] = [f"{tool} {versions.get(tool, '')}".strip(), faulty.total()]
        cells += [faulty[word] for word in (*FAULTY_WORDS, _NOT_ATTACHED)]
        cells += [healthy.total(), healthy["warned"], healthy[_NOT_ATTACHED]]
        lines.append(f"| {' | '.join(map(str, cells))} |")
        unjudged = faulty["not judged"] + healthy["not judged"]
        if unjudged:
            lines[-1] += f" {unjudged} not judged"
    return "\n".join(lines)


def installed_versions(tools: Sequence[str]) -> dict[str, str]:
    found = {}
    for tool in tools:
        try:
            found[tool] = version(tool)
        except PackageNotFoundError:
            found[tool] = ""
    return found


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--runs", type=Path, required=True, help="where answers are kept")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--cases", type=Path, default=CASES, help="file of an author")
    parser.add_argument("--seed", type=int, default=0, help="of data, weights and batches")
    parser.add_argument("--jobs", type=int, default=2, help="trainings at a time")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one training")
    parser.add_argument(
        "--sheet", type=Path, metavar="DIR", help="write the judging sheet, and end"
    )
    parser.add_argument("--judged", type=Path, metavar="DIR", help="print the table, and end")
    parser.add_argument("--reasons", action="store_true", help="why tools have no answer, and end")
    args = parser.parse_args()
    selected = [one for one in trainings(args.cases) if one.version != UNTRAINED]
    if args.sheet:
        write_sheet(items(args, selected), args.sheet, ANYWHERE)
    elif args.judged:
        said = list(answers(args.runs, args.tools, selected))
        print(table(judged(args.judged), said, installed_versions(args.tools)))
    elif args.reasons:
        for (tool, training), answer in answers(args.runs, args.tools, selected):
            if answer["error"]:
                print(tool, training.case, training.version, answer["error"], sep="\t")
    else:
        run(args, selected)


if __name__ == "__main__":
    main()
