"""What is on disk while a process trains: after `watch`, and when it is killed without warning."""

from __future__ import annotations

import os
import sys
from itertools import takewhile
from pathlib import Path

import pytest
from event_files import event_files, steps_in
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from torch import nn
from warm_python import WarmPython

import fmapboard
from fmapboard.writers.worker import MAX_STEPS

_CODE = """if 1:
    import os, sys, threading
    import torch
    from torch import nn
    import fmapboard
    from fmapboard.writers import pipeline
    from fmapboard.writers.tensorboard import TensorBoardWriter

    class Stalls(TensorBoardWriter):
        def write(self, step):
            if step.step == 20:
                threading.Event().wait()
            super().write(step)

    class Waiting(pipeline.Worker):
        taken = 0

        def _take(self):
            super()._take()
            self.taken += 1

        def _wait_until(self, condition, seconds=None):
            if self.taken == 21:  # step 20, at which the writer stalls
                print("waits", flush=True)
            return super()._wait_until(condition, seconds)

    pipeline.Worker = Waiting
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    board = fmapboard.watch(model, writer=Stalls(sys.argv[1]), every=1)
    for number in range(100):
        with board.step(number):
            optimizer.zero_grad()
            model(torch.rand(1, 3, 8, 8)).sum().backward()
            optimizer.step()
        print(number, flush=True)
    os._exit(0)
"""


def test_the_event_file_is_there_and_readable_when_watch_returns(tmp_path: Path) -> None:
    board = fmapboard.watch(nn.Conv2d(3, 4, 3), tmp_path / "run", every=1)
    (path,) = event_files(tmp_path / "run")
    (first, *_) = EventFileLoader(str(path)).Load()
    assert first.file_version == "brain.Event:2"
    board.close()


@pytest.mark.skipif(sys.platform == "win32", reason="kills")
def test_a_killed_process_loses_no_more_than_the_bound(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with open(reading) as printed:
        with open(writing, "wb") as output:
            training = WarmPython(_CODE, tmp_path, output=output)
        done = list(takewhile(lambda line: line != "waits\n", printed))
        training.kill()
        training.wait(60)
    (path,) = event_files(tmp_path)
    assert steps_in(path) == list(range(20))
    assert len(done) == 20 + MAX_STEPS
