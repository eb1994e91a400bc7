"""Planted faults that ``identical_images`` names."""

from __future__ import annotations

from functools import partial

import torch
from data import P, changed
from faults import bare, normed
from loops import Task, seen, sixty
from losses import named
from nets.classifiers import trunk
from nets.unusual import convs
from torch import Tensor, nn
from torch.nn import functional


def first_only(images: Tensor) -> Tensor:
    """A data set whose ``__getitem__`` returns its first image."""
    return images[:1].expand_as(images)


def cached(images: Tensor) -> Tensor:
    """A cache with a wrong key: runs of four examples share an image."""
    return images[::4].repeat_interleave(4, 0)[: len(images)]


def same_views(model: nn.Module, images: Tensor, *_: Tensor) -> Tensor:
    """SimCLR whose transform is applied once: both views are the same picture."""
    count = len(images)
    code = functional.normalize(model(torch.cat([images, images])), dim=1)
    alike = (code @ code.T / 0.2).masked_fill(torch.eye(2 * count, dtype=torch.bool), -1e4)
    return functional.cross_entropy(alike, (torch.arange(2 * count) + count) % (2 * count))


def two_only(images: Tensor) -> Tensor:
    """The index is taken modulo the number of workers, 2."""
    return images[torch.arange(len(images)) % 2]


CASES = seen(
    "2026-11-23T07:48",
    normed(changed(P, first_only), first_only=sixty("the index is ignored")),
    bare(changed(P, cached), cached=sixty("cache with a wrong key")),
    expected="identical_images",
)
CASES += seen(
    "2026-11-23T08:43",
    Task("residual CNN", trunk, P, same_views).cases(
        same_views=sixty("SimCLR, both views the same")
    ),
    expected="identical_images",
)
CASES += seen(
    "2026-11-23T10:59",
    Task("CELU CNN", partial(convs, None, nn.CELU), changed(P, two_only), named).cases(
        two_only=sixty("index modulo 2")
    ),
    expected="identical_images",
)
