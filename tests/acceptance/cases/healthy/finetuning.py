"""Healthy: training that starts from a trained network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import recipes.hundred as r100
import torch
from data import P, colourless, photos
from loops import Losses, Task, descend, eighty, own_loop, seen, train
from losses import gram, named
from nets.classifiers import bundled, classifier, pretrained
from nets.library import vit
from optimizers import by
from torch import Generator, Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils import parametrize, prune

GREY = colourless(48, "own")
BUNDLED = "bundled network, fine-tuned"


def freeze(model: nn.Module) -> None:
    """All but the head keeps its weights; its BatchNorm keeps its statistics."""
    for name, module in model.named_children():
        if name != "head":
            module.requires_grad_(False).eval()


def freeze_weights(model: nn.Module) -> None:
    """All but the last block and the head keeps its weights."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(("conv4", "norm4", "head")))


def still_norms(model: nn.Module, parameters: bool = False) -> None:
    """BatchNorm uses its stored statistics, as in detectors; ``parameters`` are trained or not."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval().requires_grad_(parameters)


def groups(model: nn.Module) -> optim.Optimizer:
    """A smaller rate for the backbone than for the head."""
    back = [p for name, p in model.named_parameters() if not name.startswith("head")]
    rates = [{"params": back, "lr": 1e-4}, {"params": model.head.parameters(), "lr": 3e-3}]
    return optim.AdamW(rates)


def renewed(make: Callable[[], nn.Module]) -> nn.Module:
    """Trained unwatched on the photographs; the last layer is new."""
    model = pretrained(make)
    *_, name = (name for name, part in model.named_modules() if isinstance(part, nn.Linear))
    model.set_submodule(name, nn.Linear(model.get_submodule(name).in_features, 8))
    return model


def thaw(step: int, model: nn.Module, optimizer: optim.Optimizer) -> None:
    """Only the head at first; from steps 30 and 60 on, another block, at a smaller rate."""
    if step == 0:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith("head"))
    for when, parts in ((30, ("conv4", "norm4")), (60, ("conv3", "norm3"))):
        if step == when:
            chosen = [p for name, p in model.named_parameters() if name.startswith(parts)]
            for parameter in chosen:
                parameter.requires_grad_(True)
            optimizer.add_param_group({"params": chosen, "lr": 2e-4})


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


def frozen_stages(model: nn.Module) -> None:
    """Stages up to the last are frozen, their BatchNorm in eval mode."""
    for name, part in model.named_children():
        if name not in ("conv4", "norm4", "head"):
            part.requires_grad_(False).eval()


def norms_and_head(model: nn.Module) -> None:
    """Only scales, shifts and the head learn."""
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.requires_grad_(True)


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


RECIPES = {
    "fine_frozen": r100.ADAM.but("frozen backbone, BatchNorm in eval mode", prepare=freeze),
    "fine_late": r100.ADAM.but("only the last block trained", prepare=freeze_weights, steps=80),
    "fine_still": r100.MOMENTUM.but(
        "at 0.002, BatchNorm frozen in eval mode",
        prepare=still_norms,
        optimizer=by(optim.SGD, lr=0.002, momentum=0.9),
    ),
    "fine_statistics": r100.ADAM.but(
        "BatchNorm's statistics frozen",
        prepare=partial(still_norms, parameters=True),
        optimizer=by(optim.Adam, lr=3e-4),
    ),
    "fine_rates": r100.ADAMW.but("smaller rate for the backbone", optimizer=groups),
    "fine_low": r100.WARM.but("fine-tuning at 1e-4", optimizer=by(optim.AdamW, lr=1e-4)),
    "fine_all": r100.MOMENTUM.but("", batch=32, steps=60),
}
TINY = r100.ADAM.but(
    "fine-tuning at 1e-5", optimizer=by(optim.AdamW, lr=1e-5), steps=200, examples=64, every=20
)
CASES = seen(
    "2026-11-23T03:56",
    Task(BUNDLED, bundled, GREY, named).cases(**RECIPES),
    Task(BUNDLED, partial(bundled, keep_head=True), GREY, named).cases(fine_tiny=TINY),
    Task("ViT", partial(renewed, vit), colourless(), named).cases(
        fine_vit=r100.ADAMW.but("fine-tuned", steps=80)
    ),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("bundled network", bundled, GREY, named).cases(
        unfreeze=eighty(
            "unfrozen step by step",
            lambda model: optim.Adam(model.head.parameters(), lr=3e-3),
            steps=90,
            every=10,
            before=thaw,
        ),
        probe=eighty("linear probe in eval mode", probing, steps=90, every=5),
    ),
    Task("bundled network", adapted, GREY, named).cases(
        lora=eighty("LoRA in eval mode", by(optim.AdamW, lr=3e-3), prepare=nn.Module.eval)
    ),
    Task("bundled network", pruned, GREY, named).cases(
        pruned=eighty("a quarter of the channels pruned", by(optim.Adam, lr=5e-4))
    ),
)
SHORT = {"steps": 60, "every": 6}
CASES += seen(
    "2026-11-23T08:43",
    Task("bundled network", bundled, GREY, named).cases(
        frozen_stages=eighty(
            "frozen stages are given to SGD",
            lambda model: optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
            prepare=frozen_stages,
            **SHORT,
        ),
        norms_only=eighty(
            "only norms and head", by(optim.Adam, lr=3e-3), prepare=norms_and_head, **SHORT
        ),
    ),
    Task("residual CNN", sure_norms, P, unsure).cases(
        tent=eighty("Tent, norms only", by(optim.Adam, lr=3e-3), batch=32, **SHORT)
    ),
    own_loop("gatys", "frozen network", "Gatys, the picture learns", painted, 100, 10),
)
