"""For Lightning: ``Trainer(callbacks=[FeatureMapCallback(every=100)])``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import nn
from typing_extensions import Unpack

from fmapboard.errors import optional
from fmapboard.integrations.training_run import RunOptions, TrainingRun
from fmapboard.schedule import Schedule
from fmapboard.writers import WandbWriter
from fmapboard.writers.folder import MemoryWriter

pl = optional("lightning.pytorch", extra="lightning", why="fmapboard.integrations.lightning")


class FeatureMapCallback(pl.Callback):  # type: ignore[misc, name-defined]  # known at run time
    """Logs feature maps, histograms and gradient norms of the module that a `Trainer` trains.

    Args:
        every: log each optimizer step whose number it divides, or a function from number to bool.
        module: dotted name of the submodule to watch, "" for the whole LightningModule. None
            watches its network, see `network_of`; with ``layers``, the whole LightningModule.
        options: see `training_run.RunOptions`; with ``rehearse``, the loss is that of
            ``training_step``, which logs nothing then.

    Attributes:
        rehearsal: what ``rehearse=True`` has shown; None before, and without it.
    """

    def __init__(
        self, every: int | Schedule = 100, module: str | None = None, **options: Unpack[RunOptions]
    ) -> None:
        self._run = TrainingRun(every, **options)
        if module is None and options.get("layers") is not None:
            module = ""
        self._module = module
        self._steps_before = 0
        self.rehearsal: Any = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Rehearse the training, if that is asked for."""
        if not self._run.rehearses:
            return
        from fmapboard.integrations.rehearsed import not_rehearsed, rehearsed

        if not pl_module.automatic_optimization or len(trainer.optimizers) != 1:
            not_rehearsed("training_step calls optimizers itself")
            return
        loader = trainer.train_dataloader
        if isinstance(loader, (list, tuple, Mapping)):
            not_rehearsed("its batches come from several loaders")
            return
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        loss = _TrainingStep(trainer, pl_module)
        self.rehearsal = rehearsed(pl_module, trainer.optimizers[0], loader, loss, scaler=scaler)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        """Begin an optimizer step, or its next micro-batch."""
        number = trainer.global_step
        self._steps_before = number
        if len(trainer.optimizers) > 1:
            # `global_step` is the sum over the optimizers; Lightning's own charts count batches.
            number = trainer.fit_loop.epoch_loop._batches_that_stepped
        if not self._run.started:
            if self._module is None:
                network = network_of(pl_module)
            else:
                network = pl_module.get_submodule(self._module)
            wandb_run = _experiment(trainer, "WandbLogger")
            self._run.start(
                network,
                _experiment(trainer, "TensorBoardLogger"),
                trainer.default_root_dir,
                start_step=number,
                scaler=getattr(trainer.precision_plugin, "scaler", None),
                writer=MemoryWriter() if trainer.fast_dev_run else None,  # it must leave no files
                wandb=wandb_run and partial(WandbWriter, wandb_run, commit=True),
            )
        self._run.begin(number)

    def on_before_optimizer_step(self, trainer: Any, *_: Any) -> None:
        """Read the norms before clipping: gradients are unscaled and not yet clipped."""
        if trainer.gradient_clip_val:
            self._run.before_clipping()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """End the step, unless gradients are still being accumulated."""
        if trainer.global_step != self._steps_before:
            self._run.end()

    def on_validation_batch_start(self, *_: Any) -> None:
        """Begin a validation batch; does nothing in the sanity check, before training starts."""
        self._run.begin_validation()

    def on_validation_batch_end(self, *_: Any) -> None:
        """End a validation batch."""
        self._run.end_validation()

    def on_train_end(self, *_: Any) -> None:
        """Write pending steps and close."""
        self._run.close()

    def on_exception(self, *_: Any) -> None:
        """Write pending steps and close; no cause is proven."""
        self._run.failed()


def _silent(trainer: Any) -> Any:
    """What stands for a trainer in a copy of a module: the same, but it logs nothing."""
    module = importlib.import_module(f"{pl.__name__}.loggers.logger")

    class Silent:
        logger = module.DummyLogger()
        loggers = (logger,)

        def __getattr__(self, name: str) -> Any:
            return getattr(trainer, name)

    return Silent()


_TRANSFERS = ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer")
"""Hooks through which a batch goes, in this order."""


class _TrainingStep:
    """What ``training_step`` of a copy of a module returns, see `FrameworkLoss`.

    Args:
        trainer: the Trainer.
        module: the module that it trains.
    """

    def __init__(self, trainer: Any, module: Any) -> None:
        self._trainer = trainer
        self._module = module
        self._silent = _silent(trainer)

    def __call__(self, module: Any, batch: Any) -> Any:
        """What it returns for a batch."""
        own = vars(module)
        own["_trainer"] = self._silent
        own["log"] = own["log_dict"] = own["print"] = _ignore
        plugin = self._trainer.precision_plugin
        arguments = (self._transferred(module, plugin.convert_input(batch)), 0, 0)
        count = len(inspect.signature(module.training_step).parameters)
        with plugin.forward_context():
            return module.training_step(*arguments[:count])

    def own(self, own: Callable[[Any], Any]) -> _TrainingStep:
        """The step itself: what it refers to is read, and nothing in it is changed."""
        return self

    def _transferred(self, module: Any, batch: Any) -> Any:
        """The batch after the hooks of the module, or of its data module, that transfer batches."""
        selector = self._trainer._data_connector._datahook_selector
        device = self._trainer.strategy.root_device
        for name in _TRANSFERS:
            holder = selector.get_instance(name)
            hook = getattr(module if holder is self._module else holder, name)
            places = (device, 0) if name == "transfer_batch_to_device" else (0,)
            batch = hook(batch, *places)
        return batch


def _ignore(*_: Any, **__: Any) -> None:
    """In place of what logs."""


def network_of(pl_module: nn.Module) -> nn.Module:
    """The outermost network of a LightningModule, whose input and output are read.

    ``training_step`` may call ``self.net(images)`` instead of ``self(images)``: the LightningModule
    itself is then never called. Its network is its only submodule with parameters, if that has
    layers and a ``forward`` of its own; otherwise, as with several networks or parameters, it is
    the LightningModule.
    """
    networks = [child for child in pl_module.children() if list(child.parameters())]
    if len(networks) != 1 or list(pl_module.parameters(recurse=False)):
        return pl_module
    (network,) = networks
    has_layers = bool(list(network.children()))
    has_forward = type(network).forward is not nn.Module.forward
    return network if has_layers and has_forward else pl_module


def _experiment(trainer: Any, kind: str) -> Any:
    """What the first logger of ``lightning`` or ``pytorch_lightning`` of a kind writes to, or None.

    Args:
        trainer: the `Trainer`.
        kind: name of the logger's class or of one that it inherits from.
    """
    for logger in trainer.loggers:
        names = [base.__name__ for base in type(logger).__mro__]
        if kind in names:
            return logger.experiment
    return None
