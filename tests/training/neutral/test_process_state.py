"""What belongs to the whole process stays as it is, from the import of fmapboard to the end."""

from __future__ import annotations

from pathlib import Path

import pytest
import warm_python

TRAINING = """
import gc, json, locale, logging, os, random, resource, signal, sys, threading, warnings
import numpy as np, torch
from torch import nn
from torch.nn.modules import module
from torch.optim import optimizer as optimizers

def state():
    return {
        "random": random.getstate(),
        "numpy": np.random.get_state()[1].tolist(),
        "numpy's settings": [np.geterr(), np.get_printoptions()],
        "torch": torch.get_rng_state().tolist(),
        "settings": [
            torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype(),
            torch.are_deterministic_algorithms_enabled(), torch.is_autocast_enabled("cpu"),
            torch.is_anomaly_enabled(), torch.get_float32_matmul_precision(),
            torch.backends.cudnn.benchmark, vars(torch._tensor_str.PRINT_OPTS),
        ],
        "hooks": [
            module._global_forward_hooks, module._global_forward_pre_hooks,
            module._global_backward_hooks, optimizers._global_optimizer_post_hooks,
        ],
        "warnings": warnings.filters,
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "log": [logging.root.level, logging.root.handlers, logging.root.manager.disable],
        "garbage": [gc.isenabled(), gc.get_threshold(), gc.callbacks],
        "system": [
            sys.path, sys.meta_path, sys.stdout, sys.stderr, sys.excepthook, threading.excepthook,
            sys.getswitchinterval(), sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(),
            locale.setlocale(locale.LC_ALL), os.getcwd(), os.nice(0),
            resource.getrlimit(resource.RLIMIT_NOFILE),
        ],
    }

for seed in (random.seed, np.random.seed, torch.manual_seed):
    seed(3)
images = torch.rand(8, 3, 8, 8, generator=torch.Generator().manual_seed(0))
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3))
optimizer = torch.optim.SGD(model.parameters(), 10.0)
options = json.loads(sys.argv[1])
before = {name: list(map(repr, values)) for name, values in state().items()}
import fmapboard
with fmapboard.watch(model, "run", optimizer=optimizer, every=2, **options) as board:
    for _ in range(8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), torch.arange(8) % 3).backward()
        optimizer.step()
print("logged", board.logged_steps)
for name, values in state().items():
    for old, new in zip(before[name], map(repr, values), strict=True):
        if new != old:
            print(name, old[:400], new[:400])
"""


@pytest.mark.parametrize("options", ['{"prove": 20}', '{"rehearse": true}'])
def test_a_watched_training_changes_nothing_of_the_process(options: str, tmp_path: Path) -> None:
    done = warm_python.run(TRAINING, options, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "logged 4"), done.stderr
