"""Trainings of the networks of docs/transformers.md are bitwise the same when they are watched."""

from __future__ import annotations

import pytest
import torch
from default_layers import NETWORKS
from library_training import EVERY, STEPS, train

from fmapboard.capture import passes

OFTEN = ("torchvision ViT", "transformers GPT-2", "transformers Mixtral")
"""What CI trains, without torch.compile; ``pytest -m sweep`` has all networks, compiled too."""
BACKENDS = ("eager", "aot_eager")
"""Backends of torch.compile that change no operation."""
BESIDE = "nothing is compiled, but something was"
"""Attention is then read in passes of its modules alone."""
SWEPT = [
    pytest.param(name, backend, marks=() if not backend and name in OFTEN else pytest.mark.sweep)
    for backend in ("", BESIDE, *BACKENDS)
    for name in NETWORKS
]


@pytest.mark.timeout(900)  # SwinUNETR is large, and torch.compile slow
@pytest.mark.filterwarnings("ignore")  # of the libraries and of torch.compile
@pytest.mark.parametrize(("name", "backend"), SWEPT)
def test_a_network_of_a_library_trains_bitwise_the_same(
    name: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend in ("", BESIDE):
        is_used = bool(backend)
        monkeypatch.setattr(passes, "is_compile_used", lambda: is_used)
        backend = ""
    try:
        unwatched = train(name, watched=False, backend=backend)
    except torch._dynamo.exc.TorchDynamoException as error:
        pytest.skip(f"torch.compile cannot compile it: {error}")

    watched = train(name, watched=True, backend=backend)

    assert watched.state == unwatched.state
    assert [step.step for step in watched.steps] == list(range(0, STEPS, EVERY))
    for step in watched.steps:
        assert any(picture.kind == "feature_maps" for picture in step.pictures)
