"""A long training of a tiny network in which every step is logged.

    python long_training.py LOGDIR STEPS SECONDS PAUSE

Ends after STEPS steps or SECONDS s, and waits PAUSE s between steps. Prints ``ready``, and a line
``STEPS MEMORY SIZE`` at every tenth of either limit: the number of closed steps, the resident
memory and the size of the event files, bytes.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from pathlib import Path

import torch
from torch import nn

import fmapboard

_PARTS = 10


def main(logdir: str, steps: int, seconds: float, pause: float) -> None:
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    images = torch.rand(1, 1, 6, 6)
    pauses = threading.Event()
    with fmapboard.watch(model, logdir, optimizer=optimizer, every=1) as board:
        print("ready", flush=True)
        began, done, part = time.monotonic(), 0, 1
        while done < steps and time.monotonic() - began < seconds:
            optimizer.zero_grad()
            model(images).square().mean().backward()
            optimizer.step()
            done += 1
            if max(done / steps, (time.monotonic() - began) / seconds) >= part / _PARTS:
                part += 1
                board.flush()
                print(done, _memory(), _size(Path(logdir)), flush=True)
            if pause:
                pauses.wait(pause)
    print(done, _memory(), _size(Path(logdir)), flush=True)


def _memory() -> int:
    resident = int(Path("/proc/self/statm").read_text().split()[1])
    return resident * resource.getpagesize()


def _size(logdir: Path) -> int:
    return sum(os.path.getsize(file) for file in logdir.glob("*tfevents*"))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
