"""A training of a tiny network in which every step is logged, to be ended from outside.

    python endless_training.py LOGDIR marked|counted kill|SIGINT|SIGUSR1 [STEPS]

Prints one line per thing that happened: ``ready``, ``step N`` after step N has closed, ``caught N``
when N exceptions of signals have reached the training loop, and at the end one JSON object.
SIGUSR1 has a handler of the user that raises TimeoutError. SIGTERM ends the training.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

import torch
from torch import nn

import fmapboard

_ENTRIES = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip


class Ended(Exception):
    """The training is to end."""


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Training:
    """A model, and where its training is."""

    def __init__(self, logdir: str, form: str) -> None:
        self.model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.images = torch.rand(2, 3, 9, 9)
        self.is_marked = form == "marked"
        optimizer = None if self.is_marked else self.optimizer
        self.board = fmapboard.watch(self.model, logdir, optimizer=optimizer, every=1)
        self.closed = 0

    def step(self) -> None:
        if self.is_marked:
            with self.board.step(self.closed):
                self.update()
        else:
            self.update()
        number, self.closed = self.closed, self.closed + 1
        say("step", number)

    def update(self) -> None:
        self.optimizer.zero_grad()
        self.model(self.images).square().mean().backward()
        self.optimizer.step()

    def left(self) -> dict[str, Any]:
        """What is not as before ``watch``."""
        modules = list(self.model.modules())
        found: dict[str, Any] = {
            name: hooks
            for name in _ENTRIES
            if (hooks := sum(len(getattr(m, name)) for m in modules))
        }
        found |= {k: v for k, v in vars(self.model).items() if k == "_compiled_call_impl" and v}
        if not torch.is_grad_enabled():
            found["no gradients"] = True
        if torch.get_num_threads() != 1:
            found["threads"] = torch.get_num_threads()
        if torch._C._len_torch_dispatch_stack():
            found["dispatch modes"] = torch._C._len_torch_dispatch_stack()
        return found


def end(*_: object) -> None:
    raise Ended


def time_out(*_: object) -> None:
    raise TimeoutError("from the user's handler")


def main(logdir: str, form: str, way: str, steps: int) -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGUSR1, time_out)
    training = Training(logdir, form)
    say("ready")
    if way == "kill":
        while training.closed < steps:
            training.step()
    raised = {"SIGINT": KeyboardInterrupt, "SIGUSR1": TimeoutError}[way] if way != "kill" else ()
    reached = False
    try:
        with training.board:
            _train(training, raised)
    except Ended:
        reached = True
    began = time.monotonic()
    training.board.close()
    said = {"reached": reached, "closing": time.monotonic() - began, "left": str(training.left())}
    threads = [thread.name for thread in threading.enumerate()]
    say(json.dumps({**said, "threads": threads, "grad": torch.is_grad_enabled()}))


def _train(training: Training, raised: Any) -> None:
    caught = 0
    while True:
        try:
            if caught:  # said where the next exception, which may come at once, is caught too
                say("caught", caught)
            while True:
                training.step()
        except raised:
            caught += 1


if __name__ == "__main__":
    main(*sys.argv[1:4], int((sys.argv[4:] or [10**9])[0]))
