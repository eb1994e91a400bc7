"""Does ``fmapboard.diff`` name the exact place of planted differences, and nothing in equal models?

    python tests/accuracy/first_difference.py --out tests/accuracy/results/first_difference.tsv
    python tests/accuracy/first_difference.py --only unet     # one network; raw table on stdout
    python tests/accuracy/first_difference.py --noise         # what equal layers add, on networks
                                                          # without planted differences

One row per planted difference (``difference_cases``) and per pair of equal models; then a summary
on stderr. Each difference is also searched with the second model in bfloat16.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from difference_cases import CASES
from difference_networks import NETWORKS, TUNED_ON, images, network
from torch import nn

import fmapboard


class Row(NamedTuple):
    """One line of the raw table."""

    group: str
    network: str
    change: str
    dtype: str
    expected: str
    found: str
    exact: bool
    added: float


def channels_last(model: nn.Module) -> nn.Module:
    return model.to(memory_format=torch.channels_last)


def compiled(model: nn.Module) -> nn.Module:
    return torch.compile(model)


def threads(count: int) -> Callable[[nn.Module], nn.Module]:
    def changed(model: nn.Module) -> nn.Module:
        before = torch.get_num_threads()
        model.register_forward_pre_hook(lambda *_: torch.set_num_threads(count))
        model.register_forward_hook(lambda *_: torch.set_num_threads(before), always_call=True)
        return model

    return changed


EQUAL: dict[str, Callable[[nn.Module], nn.Module]] = {
    "identical": lambda model: model,
    "2 threads": threads(2),
    "4 threads": threads(4),
    "channels_last": channels_last,
    "compiled": compiled,
}
"""Variants of a model that must not count as different."""


def equal(name: str, variant: str, dtype: torch.dtype) -> Row:
    first = network(name)
    second = EQUAL[variant](copy.deepcopy(first).to(dtype))
    found = fmapboard.diff(first.to(dtype), second, images())
    added = max((row.added or 0.0 for row in found.layers), default=0.0)
    return _row("equal", name, variant, dtype, "", found.first or "", added)


def planted(dtype: torch.dtype, names: Iterable[str]) -> Iterable[Row]:
    for case in CASES:
        if case.network not in names:
            continue
        first = network(case.network)
        second = copy.deepcopy(first)
        case.plant(second)
        found = fmapboard.diff(first, second.to(dtype), images())
        added = [row.added or 0.0 for row in found.layers if row.name == case.where]
        yield _row(
            "planted", case.network, case.change, dtype, case.where, found.first or "",
            added[0] if added else 0.0,
        )  # fmt: skip


def _row(
    group: str, name: str, change: str, dtype: torch.dtype, expected: str, found: str, added: float
) -> Row:
    short = str(dtype).removeprefix("torch.")
    return Row(group, name, change, short, expected, found, expected == found, added)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=[*NETWORKS], help="one network")
    parser.add_argument("--noise", action="store_true", help="equal models of TUNED_ON alone")
    parser.add_argument("--out", type=Path, help="write the raw table here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = [options.only] if options.only else list(TUNED_ON if options.noise else NETWORKS)
    dtypes = (torch.float32, torch.bfloat16)
    out = options.out.open("w") if options.out else sys.stdout
    found: list[Row] = []

    def keep(row: Row) -> None:
        found.append(row)
        print(*row[:-1], f"{row.added:.3g}", sep="\t", file=out, flush=True)

    print(*Row._fields, sep="\t", file=out)
    for dtype in dtypes:
        for name in names:
            for variant in EQUAL:
                keep(equal(name, variant, dtype))
        for row in planted(dtype, names):
            keep(row)
    for group in ("planted", "equal"):
        for dtype in ("float32", "bfloat16"):
            rows = [row for row in found if (row.group, row.dtype) == (group, dtype)]
            print(f"{group}, {dtype}: {sum(row.exact for row in rows)} of {len(rows)}",
                  file=sys.stderr)  # fmt: skip


if __name__ == "__main__":
    main()
