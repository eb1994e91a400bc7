"""A few training steps of the networks of libraries, watched or not, and what is left of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from default_layers import NETWORKS
from torch import Tensor, nn

import fmapboard
from fmapboard.model.tensors import tensors
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

STEPS = 3
EVERY = 2
"""Steps 0 and 2 are logged."""

_SIDES = {
    **dict.fromkeys(("swin_tiny_patch4",), 56),
    **dict.fromkeys(("coatnet", "maxvit", "vit_tiny_r_s16", "mixer", "convnext", "SegFormer"), 64),
    **dict.fromkeys(("eva02", "DINOv2"), 28),
}
"""Part of a network's name -> height and width of its images; 32 of all others."""


def inputs(name: str) -> Mapping[str, Any] | tuple[Any, ...]:
    """What a network of ``default_layers`` receives: keywords of its forward, or arguments."""
    words = torch.randint(3, 50, (2, 12))
    special: dict[str, Mapping[str, Any] | tuple[Any, ...]] = {
        "transformers CLIP": {"input_ids": words, "pixel_values": torch.randn(2, 3, 32, 32)},
        "transformers Whisper": {
            "input_features": torch.randn(2, 80, 100),
            "decoder_input_ids": words[:, :6],
        },
        "diffusers UNet2DConditionModel": (
            torch.randn(2, 4, 16, 16),
            torch.tensor([3, 4]),
            torch.randn(2, 5, 16),
        ),
        "diffusers DiTTransformer2DModel": {
            "hidden_states": torch.randn(2, 4, 8, 8),
            "timestep": torch.tensor([3, 4]),
            "class_labels": torch.tensor([1, 2]),
        },
        "MONAI UNETR": (torch.randn(1, 1, 32, 32, 32),),
        "MONAI SwinUNETR": (torch.randn(1, 1, 32, 32, 64),),
        "torch nn.TransformerEncoder": (torch.randn(2, 7, 32),),
        "torch nn.LSTM": (torch.randn(2, 7, 8),),
    }
    if name.removeprefix("transformers ") in ("BERT", "GPT-2", "Llama", "Mixtral"):
        return {"input_ids": words}
    if name in special:
        return special[name]
    side = next((side for part, side in _SIDES.items() if part in name), 32)
    return (torch.randn(2, 3, side, side),)


@dataclass
class Trained:
    """What is left of a training.

    Attributes:
        state: digest of the losses, parameters, buffers, gradients and the random state.
        steps: what was logged.
    """

    state: str
    steps: list[LoggedStep]


def train(name: str, *, watched: bool, backend: str = "") -> Trained:
    """Train a network of ``default_layers``, compiled if there is a backend."""
    torch.compiler.reset()
    torch.manual_seed(0)
    network: nn.Module = NETWORKS[name]()
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    model: Any = torch.compile(network, backend=backend) if backend else network
    kept, losses = MemoryWriter(), list[Tensor]()
    board = None
    if watched:
        board = fmapboard.watch(model, writer=kept, every=EVERY, optimizer=optimizer)
    for _ in range(STEPS):
        given = inputs(name)
        outputs = model(**given) if isinstance(given, Mapping) else model(*given)
        loss = loss_of(outputs)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here
        optimizer.step()
        losses.append(loss.detach())
    if board is not None:
        board.close()
    left = [*losses, *network.parameters(), *network.buffers()]
    left += [p.grad for p in network.parameters() if p.grad is not None]
    left.append(torch.get_rng_state())
    digest = hashlib.sha256()
    for tensor in left:
        digest.update(tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return Trained(digest.hexdigest(), kept.steps)


def loss_of(outputs: Any) -> Tensor:
    """The mean square of all that a network returns and a gradient goes through."""
    values = outputs.values() if isinstance(outputs, Mapping) else [outputs]
    found = [tensor for value in values for tensor in tensors(value) if tensor.requires_grad]
    return torch.stack([tensor.float().square().mean() for tensor in found]).sum()
