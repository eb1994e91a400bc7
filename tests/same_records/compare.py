"""Compares two digests that `record.py` wrote; prints each difference.

python tests/same_records/compare.py OLD.json NEW.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_PRINTED = 200
ABSENT = "absent"


def leaves(value: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is not a dict, with the keys that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, *path, key)
    else:
        yield path, value


def differences(old: Any, new: Any) -> list[str]:
    """One line per value that is not the same on both sides."""
    before, after = dict(leaves(old)), dict(leaves(new))
    return [
        f"{' | '.join(path)}: {_both(before.get(path, ABSENT), after.get(path, ABSENT))}"
        for path in dict.fromkeys([*before, *after])
        if before.get(path, ABSENT) != after.get(path, ABSENT)
    ]


def _both(old: Any, new: Any) -> str:
    while isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f"{len(old)} -> {len(new)} items; only in one: {_only_in_one(old, new)}"
        old, new = next(pair for pair in zip(old, new, strict=True) if pair[0] != pair[1])
    return f"{_short(old)} -> {_short(new)}"


def _only_in_one(old: list[Any], new: list[Any]) -> str:
    only = [item for item in old if item not in new] + [item for item in new if item not in old]
    return _short(only)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 300 else f"{text[:300]}..."


def _counts(digest: dict[str, Any]) -> str:
    places = [place for run in digest.values() for place in run["events"].values()]
    tags = [tag for place in places for tags in place["series"].values() for tag in tags.values()]
    records = sum(len(values) for tag in tags for values in tag["steps"].values())
    files = sum(len(run["files"]) for run in digest.values())
    values = sum(1 for _ in leaves(digest))
    return (
        f"{len(digest)} runs, {len(tags)} tags, {records} records, {files} other files, "
        f"{values} values"
    )


def main() -> int:
    old, new = (json.loads(Path(path).read_text()) for path in sys.argv[1:3])
    found = differences(old, new)
    for line in found[:MOST_PRINTED]:
        print(line)
    if len(found) > MOST_PRINTED:
        print(f"... and {len(found) - MOST_PRINTED} more")
    runs = sorted({line.split(" | ")[0] for line in found})
    print(f"compared {_counts(old)} with {_counts(new)}: {len(found)} differences")
    if runs:
        print(f"in {len(runs)} runs: {', '.join(runs)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
