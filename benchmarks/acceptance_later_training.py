"""Later acceptance trainings that differ in how they train and how they log."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import timm.utils
import torch
from acceptance_case import Losses
from acceptance_data import Draw, photos, scenes
from acceptance_later_library import hf_convnext, timm_model
from acceptance_later_loops import Run, encoder
from acceptance_recipes import by
from acceptance_tasks import colourless
from torch import Tensor, nn, optim
from torch.ao.quantization import FakeQuantize, default_weight_fake_quant
from torch.nn import functional
from torch.nn.utils import parametrize, prune

import fmapboard
from fmapboard.demo.network import load_trained

ADAM = by(optim.Adam, lr=1e-3)


def loop(
    make: Callable[[], nn.Module],
    draw: Draw,
    steps: int,
    watch: Callable[[nn.Module, Path, optim.Optimizer], object],
    optimizer: Callable[[nn.Module], optim.Optimizer] = ADAM,
    batch: int = 16,
    before: Callable[[int, nn.Module, optim.Optimizer], object] | None = None,
) -> Run:
    """A loop in which ``before(step, model, optimizer)`` may change something."""

    def run(place: Path, seed: int) -> Losses:
        model, random = make(), torch.Generator().manual_seed(seed)
        chosen, losses = optimizer(model), []
        board = watch(model, place, chosen)
        for step in range(steps):
            if before is not None:
                before(step, model, chosen)
            images, labels = draw(random, batch)
            loss = functional.cross_entropy(model(images), labels)
            chosen.zero_grad()
            loss.backward()
            chosen.step()
            losses.append(loss.item())
        board.close()
        return losses

    return run


def counted(every: object, **options: object) -> Callable[..., object]:
    return lambda model, place, optimizer: fmapboard.watch(
        model, place, optimizer=optimizer, every=every, **options
    )


def powers_of_two(step: int) -> bool:
    return step & (step - 1) == 0


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


def bundled() -> nn.Module:
    model = load_trained().train()
    model.head = nn.Linear(96, 8)
    return model


def head_only(model: nn.Module) -> optim.Optimizer:
    return optim.Adam(model.head.parameters(), lr=3e-3)


def probing(model: nn.Module) -> optim.Optimizer:
    """Only the head is given to the optimizer, and the rest runs in eval mode."""
    model.requires_grad_(False).eval()
    model.head.requires_grad_(True)
    return optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9)


UNFREEZE = loop(bundled, colourless(48, "own"), 90, counted(10), head_only, before=thaw)
PROBE = loop(bundled, colourless(48, "own"), 90, counted(5), probing)
RESUMED = loop(encoder, photos(32), 80, counted(5, start_step=500), by(optim.AdamW, lr=2e-3))
FEW = loop(hf_convnext, photos(32), 100, counted(25), by(optim.AdamW, lr=2e-3))
POWERS = loop(
    lambda: timm_model("test_byobnet"), photos(48), 129, counted(powers_of_two), by(optim.Adam)
)


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
    return model.eval()


LORA = loop(adapted, colourless(48, "own"), 80, counted(8), by(optim.AdamW, lr=3e-3))


def pruned() -> nn.Module:
    """A trained network, a quarter of its channels pruned, to be fine-tuned."""
    model = bundled()
    for name in ("conv2", "conv3"):
        prune.ln_structured(model.get_submodule(name), "weight", 0.25, n=2, dim=0)
    return model


PRUNED = loop(pruned, colourless(48, "own"), 80, counted(8), by(optim.Adam, lr=5e-4))


class Quantized(nn.Module):
    """Weights and activations of 8 bits, simulated."""

    def __init__(self, into: int, out: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(into, out, 3, padding=1), nn.BatchNorm2d(out)
        self.weights, self.values = default_weight_fake_quant(), FakeQuantize()

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv._conv_forward(x, self.weights(self.conv.weight), self.conv.bias)
        return self.values(self.norm(y).relu())


def quantized() -> nn.Module:
    parts = [Quantized(3, 24), nn.MaxPool2d(2), Quantized(24, 48), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(48, 8))


QUANTIZED = loop(quantized, photos(32), 100, counted(10))


def micro_steps(place: Path, seed: int) -> Losses:
    """Each micro-batch is a marked step; the optimizer steps after every fourth."""
    model, random = encoder(8, norm=False), torch.Generator().manual_seed(seed)
    optimizer, losses = optim.AdamW(model.parameters(), lr=2e-3), []
    with fmapboard.watch(model, place, every=13) as board:
        for step in range(240):
            with board.step(step):
                images, labels = photos(32)(random, 4)
                loss = functional.cross_entropy(model(images), labels)
                (loss / 4).backward()
                if (step + 1) % 4 == 0:
                    optimizer.step()
                    optimizer.zero_grad()
            losses.append(loss.item())
    return losses


def epochs(place: Path, seed: int) -> Losses:
    """A marked step is an epoch: twelve batches, then validation in eval mode."""
    model, random = encoder(8), torch.Generator().manual_seed(seed)
    optimizer, losses = optim.SGD(model.parameters(), lr=0.03, momentum=0.9), []
    held_out = photos(32)(random, 32)
    with fmapboard.watch(model, place, every=1) as board:
        for epoch in range(12):
            with board.step(epoch):
                model.train()
                for _ in range(12):
                    images, labels = photos(32)(random, 16)
                    optimizer.zero_grad()
                    loss = functional.cross_entropy(model(images), labels)
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                model.eval()
                with torch.no_grad():
                    model(held_out[0])
    return losses


def in_backward(place: Path, seed: int) -> Losses:
    """An optimizer per parameter steps as soon as its gradient is there, and drops it."""
    model, random = encoder(8), torch.Generator().manual_seed(seed)
    own = {p: optim.AdamW([p], lr=1e-3) for p in model.parameters()}

    def update(parameter: Tensor) -> None:
        own[parameter].step()
        own[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    losses = []
    with fmapboard.watch(model, place, every=10) as board:
        for step in range(120):
            with board.step(step):
                images, labels = photos(32)(random, 16)
                loss = functional.cross_entropy(model(images), labels)
                loss.backward()
            losses.append(loss.item())
    return losses


def averaged(place: Path, seed: int) -> Losses:
    """SWA: from half of the training on, the mean of the weights; its norms are updated."""
    model, random = encoder(8), torch.Generator().manual_seed(seed)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    mean, losses = optim.swa_utils.AveragedModel(model), []
    slow = timm.utils.ModelEmaV3(copy.deepcopy(model), decay=0.98)
    with fmapboard.watch(model, place, optimizer=optimizer, every=8):
        for step in range(120):
            images, labels = photos(32)(random, 16)
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            slow.update(model, step)
            if step >= 60 and step % 5 == 0:
                mean.update_parameters(model)
            losses.append(loss.item())
        optim.swa_utils.update_bn([photos(32)(random, 16)[0] for _ in range(4)], mean)
    return losses


def scaled_half(place: Path, seed: int) -> Losses:
    """GradScaler and autocast; the scaler is given to the board."""
    model, random = encoder(8), torch.Generator().manual_seed(seed)
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    scaler, losses = torch.amp.GradScaler("cpu", init_scale=1024), []
    options = {"optimizer": optimizer, "scaler": scaler, "every": 8}
    with fmapboard.watch(model, place, **options):
        for _ in range(100):
            images, labels = photos(32)(random, 16)
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = functional.cross_entropy(model(images), labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    return losses


def several_tasks(place: Path, seed: int) -> Losses:
    """Mask and depth, weighted by learned uncertainties that are no part of the model."""
    random, back = torch.Generator().manual_seed(seed), encoder(32)[:3]
    model = nn.ModuleDict({"back": back, "mask": nn.Conv2d(64, 16, 1), "far": nn.Conv2d(64, 16, 1)})
    weights = nn.Parameter(torch.zeros(2))
    optimizer, losses = optim.Adam([*model.parameters(), weights], lr=2e-3), []
    with fmapboard.watch(model, place, optimizer=optimizer, every=8):
        for _ in range(100):
            images, mask, _, far = scenes(random, 8)
            code = model["back"](images)
            shown = [functional.pixel_shuffle(model[n](code), 4) for n in ("mask", "far")]
            terms = functional.binary_cross_entropy_with_logits(shown[0], mask)
            terms = torch.stack([terms, functional.l1_loss(shown[1], far)])
            optimizer.zero_grad()
            (terms * (-weights).exp() + weights / 2).sum().backward()
            optimizer.step()
            losses.append(terms.sum().item())
    return losses
