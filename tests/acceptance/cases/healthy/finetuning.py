"""Healthy: training that starts from a trained network."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import recipes.hundred as r100
import torch
from data import P, colourless, photos
from loops import Losses, Task, descend, eighty, own_loop, seen, train
from losses import gram, named
from nets.classifiers import bundled, classifier, pretrained
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils import parametrize, prune

GREY = colourless(48, "own")


def freeze(model: nn.Module) -> None:
    """All but the head keeps its weights; its BatchNorm keeps its statistics."""
    for name, module in model.named_children():
        if name != "head":
            module.requires_grad_(False).eval()


def still_norms(model: nn.Module) -> None:
    """BatchNorm uses its stored statistics, as in detectors."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()


def probing(model: nn.Module) -> optim.Optimizer:
    """Only the head is given to the optimizer, and the rest runs in eval mode."""
    model.requires_grad_(False).eval()
    model.head.requires_grad_(True)
    return optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9)


class LowRank(nn.Module):
    """LoRA for a convolution: a frozen kernel and a product of two small ones, begun at zero."""

    def __init__(self, weight: Tensor, rank: int = 4) -> None:
        super().__init__()
        self.down = nn.Parameter(torch.randn(rank, weight[0].numel()) / weight[0].numel() ** 0.5)
        self.up = nn.Parameter(torch.zeros(len(weight), rank))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + (self.up @ self.down).view_as(weight)


def adapted() -> nn.Module:
    model = bundled().requires_grad_(False)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            parametrize.register_parametrization(module, "weight", LowRank(module.weight))
            module.parametrizations.weight.original.requires_grad_(False)
    model.head.requires_grad_(True)
    return model


def pruned() -> nn.Module:
    """A trained network, a quarter of its channels pruned, to be fine-tuned."""
    model = bundled()
    for name in ("conv2", "conv3"):
        prune.ln_structured(model.get_submodule(name), "weight", 0.25, n=2, dim=0)
    return model


def sure_norms() -> nn.Module:
    """A trained network of which only norms learn, with the statistics of each batch."""
    model = pretrained(classifier).requires_grad_(False)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.requires_grad_(True)
            module.track_running_stats = False
            module.running_mean = module.running_var = None
    return model


def unsure(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """Tent: the entropy of the answers to noisy, dark pictures."""
    share = model(images * 0.6 + 0.4 * torch.randn_like(images)).softmax(1)
    return -(share * (share + 1e-8).log()).sum(1).mean()


def painted(place: Path, seed: int) -> Losses:
    """Gatys: the picture is what learns; the network is frozen, in eval mode, and watched."""
    judge, kept = bundled().eval().requires_grad_(False), {}
    for name in ("conv1", "conv2", "conv3"):
        part = judge.get_submodule(name)
        part.register_forward_hook(lambda _m, _i, out, name=name: kept.update({name: out}))

    def look(picture: Tensor) -> list[Tensor]:
        judge(picture)
        return list(kept.values())

    content, style = photos(48, "own")(Generator().manual_seed(seed), 2)[0].split(1)
    with torch.no_grad():
        goal, grams = look(content)[2].clone(), [gram(x).clone() for x in look(style)]
    picture = content.clone().requires_grad_()
    optimizer = optim.Adam([picture], lr=0.05)

    def step(_: int, random: Generator) -> float:
        maps = look(picture)
        pairs = zip(maps, grams, strict=True)
        styles = sum(functional.mse_loss(gram(m), g) for m, g in pairs)
        return descend(optimizer, functional.mse_loss(maps[2], goal) + styles)

    return train(place, seed, judge, step, 100, 10, optimizer)


TINY = r100.ADAM.but(
    "fine-tuning at 1e-5", optimizer=by(optim.AdamW, lr=1e-5), steps=200, examples=64, every=20
)
CASES = seen(
    "2026-11-23T03:56",
    Task("bundled network, fine-tuned", bundled, GREY, named).cases(
        fine_frozen=r100.ADAM.but("frozen backbone, BatchNorm in eval mode", prepare=freeze),
        fine_statistics=r100.ADAM.but(
            "BatchNorm's statistics frozen",
            prepare=still_norms,
            optimizer=by(optim.Adam, lr=3e-4),
        ),
    ),
    Task("bundled network, fine-tuned", partial(bundled, keep_head=True), GREY, named).cases(
        fine_tiny=TINY
    ),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("bundled network", bundled, GREY, named).cases(
        probe=eighty("linear probe in eval mode", probing, steps=90, every=5)
    ),
    Task("bundled network", adapted, GREY, named).cases(
        lora=eighty("LoRA in eval mode", by(optim.AdamW, lr=3e-3), prepare=nn.Module.eval)
    ),
    Task("bundled network", pruned, GREY, named).cases(
        pruned=eighty("a quarter of the channels pruned", by(optim.Adam, lr=5e-4))
    ),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("residual CNN", sure_norms, P, unsure).cases(
        tent=eighty("Tent, norms only", by(optim.Adam, lr=3e-3), batch=32, steps=60, every=6)
    ),
    own_loop("gatys", "frozen network", "Gatys, the picture learns", painted, 100, 10),
)
