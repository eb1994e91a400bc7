"""Several threads of one process that train their own watched models, or share one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from marked_passes import Marked, filled, marks
from module_hooks import hook_count
from run_reader import read, steps_of
from torch import nn

import fmapboard
from fmapboard.writers.folder import MemoryWriter

THREADS, STEPS = 4, 12
LIMIT = 20.0  # s


def in_threads(*works: Callable[[], None]) -> None:
    """Run each in a thread of its own, all at once; raise the first exception of any."""
    failed: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            torch.get_num_threads()  # sets the number here too, so that the first step is logged
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def train(run: Path, *, begin: threading.Barrier) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    begin.wait()
    with fmapboard.watch(model, run, optimizer=optimizer, every=1):
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.rand(2, 3, 8, 8)).sum().backward()
            optimizer.step()


def test_threads_that_train_their_own_models_have_every_step_on_disk(tmp_path: Path) -> None:
    begin = threading.Barrier(THREADS)
    runs = [tmp_path / str(number) for number in range(THREADS)]
    in_threads(*(lambda run=run: train(run, begin=begin) for run in runs))
    for run in runs:
        assert steps_of(read(run), "feature_maps_4x3x3x3/0") == list(range(STEPS))


def test_a_pass_of_another_thread_during_a_logged_step_is_not_recorded() -> None:
    model, kept = Marked(), MemoryWriter()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    other: list[threading.Thread] = []

    def call_elsewhere() -> None:
        thread = threading.Thread(target=lambda: model(filled(100)))
        thread.start()
        thread.join()
        other.append(thread)

    trainer = threading.current_thread()

    def between(*given: object) -> None:
        if threading.current_thread() is trainer:
            call_elsewhere()

    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for step in range(4):
            call_elsewhere()
            handle = model.body.register_forward_pre_hook(between)
            loss = model(filled(step)).sum()
            handle.remove()
            call_elsewhere()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    assert marks(kept.steps) == [0.0, 1.0, 2.0, 3.0]
    for step in kept.steps:
        assert {m.layer_call.call for m in step.statistics} == {1}
    assert other


def test_a_pass_of_a_server_that_is_running_when_training_begins_is_dropped() -> None:
    model, kept = Marked(), MemoryWriter()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
    trainer, entered, go_on = threading.current_thread(), threading.Event(), threading.Event()
    answered: list[torch.Tensor] = []
    server = threading.Thread(target=lambda: answered.append(model(filled(100))))

    def between(*given: object) -> None:
        if threading.current_thread() is trainer:
            go_on.set()
            server.join(LIMIT)  # the server's pass ends inside this one
        else:
            entered.set()
            assert go_on.wait(LIMIT)

    with model.body.register_forward_pre_hook(between):
        server.start()
        assert entered.wait(LIMIT)
        loss = model(filled(0)).sum()
    loss.backward()
    optimizer.step()
    board.close()
    assert answered
    assert marks(kept.steps) == [0.0]
    assert [m.layer_call.label for m in kept.steps[0].statistics] == ["mark", "body", "head"]
    assert hook_count(model) == 0


@pytest.mark.parametrize("attempt", range(6))
def test_a_server_beside_the_training_costs_no_step(attempt: int) -> None:
    model, kept = Marked(), MemoryWriter()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    end, answered, served = threading.Event(), list[torch.Tensor](), threading.Event()

    def serve() -> None:
        while not end.is_set():
            answered.append(model(filled(100)))  # with gradients, and kept
            if len(answered) >= 12:
                served.set()

    server = threading.Thread(target=serve)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        server.start()
        assert served.wait(LIMIT)
        for step in range(3):
            model(filled(step)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        end.set()
        server.join(LIMIT)
    assert marks(kept.steps) == [0.0, 1.0, 2.0]
    for logged in kept.steps:
        assert [m.layer_call.label for m in logged.statistics] == ["mark", "body", "head"]


def test_a_model_that_was_watched_in_one_thread_may_train_in_another() -> None:
    model, kept = Marked(), MemoryWriter()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)

    def loop() -> None:
        for step in range(3):
            model(filled(step)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    in_threads(loop)
    board.close()
    assert marks(kept.steps) == [0.0, 1.0, 2.0]


_OPENMP_TEAMS = """
import os, sys, threading
import torch
from torch import nn
import fmapboard
from fmapboard.writers.folder import MemoryWriter

torch.set_num_threads(2)
model = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
images = torch.randn(4, 3, 48, 48)

def train():
    optimizer.zero_grad()
    model(images).sum().backward()
    optimizer.step()

def without_python():
    known = threading.enumerate()
    helped = sum(one.name.startswith("fmapboard") for one in known)  # a raw thread each: OwnThread
    return len(os.listdir("/proc/self/task")) - len(known) - helped

train()
before = without_python()
with fmapboard.watch(model, sys.argv[1], optimizer=optimizer, every=1) as board:
    for _ in range(2):
        train()
    board.flush()
    print(without_python() - before)
"""


_SECOND_THREAD = """
def trained(parts, side, watched):
    torch.manual_seed(0)
    model, batches = nn.Sequential(*parts()), torch.rand(4, 16, 3, side, side)
    optimizer, kept = torch.optim.SGD(model.parameters(), lr=0.05), MemoryWriter()

    def train():
        if watched:
            board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
        for batch in batches:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
        if watched:
            board.close()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    if watched:
        print("logged", *[step.step for step in kept.steps], sep=",")
    return torch.cat([p.detach().flatten() for p in model.parameters()])

torch.set_num_threads(1)
convolutions = lambda: [nn.Conv2d(3 if n == 0 else 8, 8, 3, padding=1) for n in range(6)]
pooled = lambda: [nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.MaxPool2d(2), nn.Conv2d(8, 4, 3)]
for parts in convolutions, pooled:
    for side in 12, 40:
        print(torch.equal(trained(parts, side, False), trained(parts, side, True)))
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What both programs print, in one process, whose OpenMP starts with two threads."""
    done = subprocess.run(
        [sys.executable, "-c", _OPENMP_TEAMS + _SECOND_THREAD, str(tmp_path_factory.mktemp("run"))],
        env={**os.environ, "OMP_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="lists threads in /proc")
def test_the_worker_has_no_openmp_team(printed: list[str]) -> None:
    """With a second team there are more OpenMP threads than cores: GNU's stop spinning."""
    assert printed[0] == "0"


def test_training_in_a_second_thread_is_bitwise_the_same_after_set_num_threads_in_the_first(
    printed: list[str],
) -> None:
    assert printed[2::2] == ["True"] * 4


def test_steps_in_such_a_thread_are_logged_once_torch_has_set_its_number_there(
    printed: list[str],
) -> None:
    assert printed[1] == "logged"  # nothing ran that may be parallel
    assert printed[3::2] == ["logged,1,2,3"] * 3
