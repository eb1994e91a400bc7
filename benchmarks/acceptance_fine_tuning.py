"""Acceptance trainings that start from a trained network, and unusual optimizer calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from acceptance_case import Losses, Recipe, fit
from acceptance_data import fixed, photos
from acceptance_recipes import classes
from acceptance_tasks import colourless
from torch import nn, optim
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import fmapboard
from fmapboard.demo.network import load_trained


def bundled(keep_head: bool = False) -> nn.Module:
    """The bundled trained network, by default with a new head."""
    model = load_trained().train()
    if not keep_head:
        model.head = nn.Linear(96, 8)
    return model


def freeze(model: nn.Module) -> None:
    """All but the head keeps its weights; its BatchNorm keeps its statistics."""
    for name, module in model.named_children():
        if name != "head":
            module.requires_grad_(False).eval()


def freeze_weights(model: nn.Module) -> None:
    """All but the last block and the head keeps its weights."""
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(("conv4", "norm4", "head")))


def still_norms(model: nn.Module) -> None:
    """BatchNorm uses its stored statistics and keeps its parameters, as in detectors."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval().requires_grad_(False)


def still_statistics(model: nn.Module) -> None:
    """BatchNorm uses its stored statistics; scale and shift are trained."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()


def tune(recipe: Recipe, keep_head: bool = False) -> Callable[[Path, int], Losses]:
    """Photographs without colour, with the bundled network."""
    draw = colourless(48, "own")
    return lambda run, seed: fit(run, seed, bundled(keep_head), draw, classes(), recipe)


def pretrained(make: Callable[[], nn.Module], recipe: Recipe) -> Callable[[Path, int], Losses]:
    """Trains unwatched on the photographs, then, with a new last layer, watched on grey ones."""

    def run(place: Path, seed: int) -> Losses:
        model = make()
        optimizer = optim.Adam(model.parameters(), lr=1e-3)
        draw, random = photos(32), torch.Generator().manual_seed(seed + 1)
        for _ in range(60):
            images, labels = draw(random, 16)
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        linear = [name for name, part in model.named_modules() if isinstance(part, nn.Linear)]
        old = model.get_submodule(linear[-1])
        model.set_submodule(linear[-1], nn.Linear(old.in_features, 8))
        return fit(place, seed, model, colourless(), classes(), recipe)

    return run


def groups(model: nn.Module) -> optim.Optimizer:
    """A smaller rate for the backbone than for the head."""
    back = [p for name, p in model.named_parameters() if not name.startswith("head")]
    rates = [{"params": back, "lr": 1e-4}, {"params": model.head.parameters(), "lr": 3e-3}]
    return optim.AdamW(rates)


def two_optimizers(make: Callable[[], nn.Module], steps: int = 80, every: int = 10):
    """SGD for the kernels, Adam for everything else; steps are marked."""

    def run(place: Path, seed: int) -> Losses:
        model, draw, random = make(), photos(32), torch.Generator().manual_seed(seed)
        kernels = [p for p in model.parameters() if p.ndim == 4]
        rest = [p for p in model.parameters() if p.ndim != 4]
        both = [optim.SGD(kernels, lr=0.05, momentum=0.9), optim.Adam(rest, lr=1e-3)]
        losses = []
        with fmapboard.watch(model, place, every=every) as board:
            for step in range(steps):
                images, labels = draw(random, 16)
                with board.step(step):
                    for optimizer in both:
                        optimizer.zero_grad()
                    loss = functional.cross_entropy(model(images), labels)
                    loss.backward()
                    for optimizer in both:
                        optimizer.step()
                losses.append(loss.item())
        return losses

    return run


def lbfgs(make: Callable[[], nn.Module], steps: int = 12, every: int = 1):
    """L-BFGS on a fixed batch of 64."""

    def run(place: Path, seed: int) -> Losses:
        model, random = make(), torch.Generator().manual_seed(seed)
        images, labels = photos(24)(random, 64)
        optimizer = optim.LBFGS(model.parameters(), 1, 5, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            return loss

        with fmapboard.watch(model, place, optimizer=optimizer, every=every):
            return [float(optimizer.step(closure)) for _ in range(steps)]

    return run


def sharpness_aware(make: Callable[[], nn.Module], steps: int = 60, every: int = 10):
    """SAM: the gradient at the worst point nearby is used for the step."""

    def run(place: Path, seed: int) -> Losses:
        model, draw, random = make(), photos(32), torch.Generator().manual_seed(seed)
        optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        losses = []
        with fmapboard.watch(model, place, optimizer=optimizer, every=every):
            for _ in range(steps):
                images, labels = draw(random, 16)
                loss = functional.cross_entropy(model(images), labels)
                loss.backward()
                norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
                with torch.no_grad():
                    moves = [0.05 * p.grad / (norm + 1e-12) for p in model.parameters()]
                    for parameter, move in zip(model.parameters(), moves, strict=True):
                        parameter.add_(move)
                optimizer.zero_grad()
                functional.cross_entropy(model(images), labels).backward()
                with torch.no_grad():
                    for parameter, move in zip(model.parameters(), moves, strict=True):
                        parameter.sub_(move)
                optimizer.step()
                optimizer.zero_grad()
                losses.append(loss.item())
        return losses

    return run


def resumed(make: Callable[[], nn.Module], steps: int = 60, every: int = 10):
    """Half of the steps, a checkpoint, then the rest with new objects into the same run."""

    def run(place: Path, seed: int) -> Losses:
        draw, random = fixed(photos(32), 128), torch.Generator().manual_seed(seed)
        losses: Losses = []
        saved: dict[str, object] = {}
        for first in (0, steps // 2):
            model = make()
            optimizer = optim.AdamW(model.parameters(), lr=1e-3)
            if saved:
                model.load_state_dict(saved["model"])
                optimizer.load_state_dict(saved["optimizer"])
            options = {"optimizer": optimizer, "every": every, "start_step": first}
            with fmapboard.watch(model, place, **options):
                for _ in range(steps // 2):
                    images, labels = draw(random, 16)
                    loss = functional.cross_entropy(model(images), labels)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
            saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        return losses

    return run


def growing(make: Callable[[], nn.Module], steps: int = 90, every: int = 10):
    """Progressive resizing: 24, 32, then 48 px; gradient checkpointing in the middle."""

    def run(place: Path, seed: int) -> Losses:
        model, random = make(), torch.Generator().manual_seed(seed)
        optimizer = optim.Adam(model.parameters(), lr=1e-3)
        losses = []
        with fmapboard.watch(model, place, optimizer=optimizer, every=every):
            for step in range(steps):
                images, labels = photos((24, 32, 48)[step * 3 // steps])(random, 16)
                logits = model[1:](checkpoint(model[0], images, use_reentrant=False))
                loss = functional.cross_entropy(logits, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return losses

    return run
