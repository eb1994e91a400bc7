"""Which logged steps are on disk after a training process is killed without warning."""

from __future__ import annotations

import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest
from event_files import event_files, steps_in

from fmapboard.writers.backlog import MAX_STEPS

_CODE = """if 1:
    import os, sys, threading
    import torch
    from torch import nn
    import fmapboard
    from fmapboard.writers import backlog, worker
    from fmapboard.writers.tensorboard import TensorBoardWriter

    class Stalls(TensorBoardWriter):
        def write(self, step):
            if step.step == 20:
                threading.Event().wait()
            super().write(step)

    class Counting(backlog.Backlog):
        taken = 0

        def take(self):
            self.taken += 1
            return super().take()

        def is_full(self, nbytes, now):
            found = super().is_full(nbytes, now)
            if found and self.taken == 21:  # step 20, at which the writer stalls
                print("waits", flush=True)
            return found

    worker.Backlog, backlog.MAX_SECONDS = Counting, 0.0
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


@pytest.mark.skipif(sys.platform == "win32", reason="kills")
def test_a_killed_process_loses_no_more_than_the_bound(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CODE, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as training:
        assert training.stdout is not None
        done = list(takewhile(lambda line: line != "waits\n", training.stdout))
        training.kill()
    (path,) = event_files(tmp_path)
    assert steps_in(path) == list(range(20))
    assert len(done) == 20 + MAX_STEPS
