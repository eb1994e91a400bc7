"""``watch``: check the arguments, and create the logger."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim.optimizer import Optimizer
from typing_extensions import Never, Unpack

from fmapboard.logger import FeatureMapLogger
from fmapboard.model.layers import Layers
from fmapboard.options import (
    Options,
    WatchOptions,
    check_names,
    check_place,
    check_positions,
    with_options,
)
from fmapboard.writers import Writer
from fmapboard.writers.tensorboard import TensorBoardWriter, as_writer, default_log_dir


def watch(
    model: nn.Module,
    log_dir: str | Path | None = None,
    *others: Never,
    writer: Any = None,
    optimizer: Optimizer | None = None,
    scaler: Any = None,
    layers: Layers = None,
    comment: str = "",
    filename_suffix: str = "",
    **options: Unpack[WatchOptions],
) -> FeatureMapLogger:
    """Log a model's feature maps, histograms and gradient norms to TensorBoard while it trains.

    >>> import torch, fmapboard
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5), torch.nn.ReLU())
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with fmapboard.watch(model, "runs/exp1", optimizer=optimizer, every=2) as board:
    ...     for images in torch.rand(4, 16, 3, 32, 32):  # four batches
    ...         optimizer.zero_grad()
    ...         model(images).mean().backward()
    ...         optimizer.step()
    >>> board.logged_steps  # steps 0 and 2
    2

    Hooks are on the model only while it runs in a logged step. Training stays bitwise the same, and
    an error inside fmapboard is logged once as a warning instead of being raised.

    Args:
        model: any module; DistributedDataParallel, DataParallel and torch.compile are unwrapped.
        log_dir: the run's directory, created if missing: a path or a URL (``s3://``, ``gs://``,
            ``memory://``, ...). Default: ``runs/<time>_<host><comment>``. If it holds another
            writer's event files, the run goes into its subdirectory ``fmapboard``.
        optimizer: count its completed steps; of several optimizers, pass the one that steps last.
            Wrappers of accelerate and Fabric are unwrapped. Without it: ``with board.step(i):``.
        every: log each step whose number is divisible by this, or for which this function is true.
        layers: which layers to watch: a glob (``"layer1.*"``), a compiled regular expression, a
            module type, a list of these (``"!stem*"`` excludes), or a function of name and module
            that returns a bool. Globs and regular expressions select convolutions, or any module if
            no convolution matches. Default: every convolution, or every leaf layer with parameters
            if the model has no convolution.
        samples: draw this many samples of the batch, one grid each.
        probe: draw these images (a tensor [N, C, H, W] or a tuple of positional arguments) instead,
            in a separate forward pass in eval mode; numbers are still those of the training batch.
        normalization: the ``(mean, std)`` per channel of the input, or torchvision's ``Normalize``;
            undone before the input is drawn.
        max_channels: draw at most this many channels per layer; None draws all.
        max_tile: average larger maps to this many px per side (sequences: 8×); None keeps the size.
        name: prefix of every tag, to keep several models in one process apart.
        start_step: number of the first step, for a resumed run. TensorBoard discards what fmapboard
            logged in ``log_dir`` from this step on.

    Other Parameters:
        writer: log here instead of ``log_dir``: a ``SummaryWriter``, which stays open, or an object
            with ``write``, ``flush`` and ``close`` (``fmapboard.writers.Writer``), which is closed,
            such as ``fmapboard.writers.WandbWriter``.
        scaler: a ``torch.amp.GradScaler`` whose skipped steps are to be counted.
        comment: appended to the default directory's name, as in ``SummaryWriter``.
        filename_suffix: appended to the event file's name, as in ``SummaryWriter``.
        inputs: also log the layers' inputs, as grids and histograms.
        activation_gradients: also log the layers' output gradients, as grids and histograms.
        effective: draw what the next layer receives where your own forward hook changes an output.
        attribution: also draw where activations lower the loss: a glob on layers, or True.
        attribution_loss: of the model's output on ``probe``; draw its attribution instead.
        kernels: draw convolution kernels at every n-th logged step; True: every 10th, False: never.
        depth: which depth slice of 3-D maps (Conv3d) to draw, from 0; None draws the middle one.
        max_bytes_per_step: limit on disk space; from then on tiles shrink, or channels are omitted.
        reduce_statistics: compute channel statistics over the batches of all ranks, each of which
            must call ``watch``; excludes dropping steps. Images and histograms are rank 0's.
        graph: also write the network's graph, from a copy of the model that runs once (in a single
            process). What ``forward`` changes outside the model (a cache) changes once more.
        update_ratios: also log by how much each optimizer step changes each parameter.
        compiled: of a model under ``torch.compile``, record one uncompiled pass without gradients
            beside the training's own; ``"eager"`` runs logged steps uncompiled instead, which
            activation gradients and attribution need, and which is not bitwise neutral.
        scale: the range drawn from black to white: that of each ``"channel"``, of the whole
            ``"layer"``, or ``"locked"`` to each channel's range at the first logged step.
        colormap: ``"grey"``, ``"viridis"``, ``"magma"`` or the zero-centered ``"signed"``.
        when_full: if steps are logged faster than written, ``"wait"`` blocks the training thread;
            ``"drop_oldest"`` drops queued steps, counted in ``dropped_steps``.
        checks: say what is wrong; False or ``{"dead": False}`` for less, ``[MyCheck()]`` for more.

    Returns:
        The logger, usually named ``board``. Use it as a context manager or call its ``close``.

    Raises:
        ConfigurationError: an argument is invalid.
        LayerNotFound: ``layers`` selects no layer, or one of its patterns matches none.
        NoConvolution: the model has no convolution although ``layers`` names a convolution type, or
            no layer with parameters to watch by default.
        WriteError: the directory cannot be written to.
        MissingExtra: a package for the URL in ``log_dir`` is not installed.
    """
    check_positions(log_dir, others)
    check_names(options, inspect.signature(watch).parameters)
    check_place(log_dir, writer, comment, filename_suffix)
    checked = Options.of(**options)

    def open_writer() -> Writer:
        if writer is not None:
            return as_writer(writer)
        place = default_log_dir(comment) if log_dir is None else log_dir
        first = checked.start_step
        return TensorBoardWriter(place, filename_suffix=filename_suffix, start_step=first)

    return FeatureMapLogger(
        model, open_writer, checked, layers=layers, optimizer=optimizer, scaler=scaler
    )


watch.__signature__ = with_options(watch)  # type: ignore[attr-defined]  # help() and editors read it
