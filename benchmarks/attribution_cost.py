"""Measure what attribution costs: ``python benchmarks/attribution_cost.py [--pairs N]``.

ResNet-18 (torchvision) with 8 images of 224 × 224 px, three drawn samples, one torch thread, every
step logged. Steps with and without ``attribution=True`` alternate, as do steps that are not logged
at all. Printed: the CPU time of the training thread (``time.thread_time``, so other processes do
not count), as medians over the pairs and as a share of forward and backward of an unlogged step;
the CPU time of the worker threads likewise; and the bytes that a logged step stores, all steps but
the first. Needs torchvision.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.nn import functional
from torchvision.models import resnet18

import fmapboard
from fmapboard.formats import tags

SAMPLES = 3


class Trained:
    """A network that is trained step by step on the same images."""

    def __init__(self, place: Path | None, *, attribution: bool) -> None:
        torch.manual_seed(0)
        self.model, self.place = resnet18(num_classes=10), place
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.images, self.labels = torch.randn(8, 3, 224, 224), torch.arange(8)
        self.board = None
        if place is not None:
            self.board = fmapboard.watch(
                self.model, place, optimizer=self.optimizer, every=1, samples=SAMPLES,
                attribution=attribution,
            )  # fmt: skip

    def step(self) -> tuple[float, float]:
        """CPU time of a step in s: of the training thread, and of all other threads."""
        if self.board is not None:
            self.board.flush()
        others = time.process_time() - time.thread_time()
        start = time.thread_time()
        self.optimizer.zero_grad()
        functional.cross_entropy(self.model(self.images), self.labels).backward()
        self.optimizer.step()
        took = time.thread_time() - start
        if self.board is not None:
            self.board.flush()
        return took, time.process_time() - time.thread_time() - others

    def own(self) -> float:
        """Median time in s that fmapboard measured on the training thread, without waiting."""
        accumulator = EventAccumulator(str(self.place))
        accumulator.Reload()
        return float(np.median([s.value for s in accumulator.Scalars(tags.LOGGED_STEP_MS)])) / 1e3

    def stored(self) -> int:
        """Bytes of the event files."""
        assert self.place is not None  # not asked of the unwatched one
        return sum(file.stat().st_size for file in self.place.rglob("*") if file.is_file())


def main() -> None:
    """Print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        kinds = {
            "unlogged": Trained(None, attribution=False),
            "without": Trained(root / "without", attribution=False),
            "with": Trained(root / "with", attribution=True),
        }
        for trained in kinds.values():
            trained.step()
            trained.step()
        before = {name: kinds[name].stored() for name in ("without", "with")}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
        for number in range(options.pairs):
            names = list(kinds) if number % 2 else list(reversed(kinds))
            for name in names:
                times[name].append(kinds[name].step())
        spent = {name: np.array(values) for name, values in times.items()}
        whole = float(np.median(spent["unlogged"][:, 0]))
        more = np.median(spent["with"] - spent["without"], axis=0)
        logged = np.median(spent["without"] - spent["unlogged"], axis=0)
        quartiles = np.quantile((spent["with"] - spent["without"])[:, 0], (0.25, 0.75)) / whole
        own = {name: kinds[name].own() for name in ("without", "with")}
        stored = {n: (kinds[n].stored() - b) / options.pairs for n, b in before.items()}
        print(
            json.dumps(
                {
                    "pairs": options.pairs,
                    "unlogged step, s": round(whole, 4),
                    "attribution, training thread, %": round(100 * float(more[0]) / whole, 2),
                    "by fmapboard's own clock, %": round(
                        100 * (own["with"] - own["without"]) / whole, 2
                    ),
                    "its quartiles, %": [round(100 * float(q), 2) for q in quartiles],
                    "attribution, other threads, %": round(100 * float(more[1]) / whole, 2),
                    "logged step without it, training thread, %": round(
                        100 * float(logged[0]) / whole, 2
                    ),
                    "attribution, bytes per step": round(stored["with"] - stored["without"]),
                }
            )
        )


if __name__ == "__main__":
    main()
