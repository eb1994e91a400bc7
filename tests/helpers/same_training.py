"""One training in five loops: plain PyTorch and each framework. Every loop returns its run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from networks import NestedNet
from run_reader import read, tags_of
from tensorboard.util.tensor_util import make_ndarray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import fmapboard
from fmapboard.formats.checks import unpack_checks
from fmapboard.formats.tab_records import unpack
from fmapboard.formats.tags import CHECKS, TRAINING_FACTS
from fmapboard.formats.training_facts import unpack_training_facts

STEPS = 10
BATCH = 4


class NetWithLoss(NestedNet):
    """Returns logits; with labels a dict with the loss too, as the Trainer of transformers asks."""

    def forward(self, pixels: Tensor, labels: Tensor | None = None) -> Any:
        logits = super().forward(pixels)
        if labels is None:
            return logits
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


def samples(count: int) -> TensorDataset:
    """The first of 80 fixed samples."""
    source = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 4, (80,), generator=source)
    return TensorDataset(torch.randn(80, 3, 12, 12, generator=source)[:count], labels[:count])


def loader(batches: int) -> DataLoader[Any]:
    return DataLoader(samples(batches * BATCH), batch_size=BATCH)


class Rows(IterableDataset[dict[str, Tensor]]):
    """The same samples, in order and in the form that the Trainer of transformers expects."""

    def __init__(self, count: int) -> None:
        self.samples = samples(count)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        return ({"pixels": pixels, "labels": label} for pixels, label in self.samples)


def network() -> tuple[NetWithLoss, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = NetWithLoss()
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def plain(directory: Path, *, accumulate: int = 1, clip: float | None = None) -> Path:
    model, optimizer = network()
    with fmapboard.watch(model, directory, optimizer=optimizer, every=3):
        for number, (pixels, labels) in enumerate(loader(STEPS * accumulate)):
            (functional.cross_entropy(model(pixels), labels) / accumulate).backward()
            if (number + 1) % accumulate == 0:
                if clip is not None:
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
    return directory


def lightning(
    directory: Path, *, accumulate: int = 1, clip: float | None = None, **options: Any
) -> Path:
    import lightning.pytorch as pl

    from fmapboard.integrations.lightning import FeatureMapCallback

    callback = FeatureMapCallback(every=3, **options)
    trainer = lightning_trainer(
        directory, [callback], accumulate_grad_batches=accumulate, gradient_clip_val=clip
    )
    trainer.fit(lightning_module(), loader(STEPS * accumulate), loader(2))
    assert isinstance(trainer.logger, pl.loggers.TensorBoardLogger)
    return Path(trainer.logger.log_dir) / "fmapboard"


def lightning_trainer(directory: Path, callbacks: list[Any], **options: Any) -> Any:
    import lightning.pytorch as pl

    return pl.Trainer(
        **{
            "max_steps": STEPS,
            "accelerator": "cpu",
            "devices": 1,
            "default_root_dir": directory,
            "callbacks": callbacks,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "log_every_n_steps": 1,
        }
        | options
    )


def lightning_module() -> Any:
    import lightning.pytorch as pl

    model, _ = network()

    class Module(pl.LightningModule, NetWithLoss):  # so that layer names are the same
        def training_step(self, batch: Any, number: int) -> Tensor:
            return functional.cross_entropy(self(batch[0]), batch[1])

        def validation_step(self, batch: Any, number: int) -> None:
            self.log("accuracy", (self(batch[0]).argmax(1) == batch[1]).float().mean())

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    module = Module()
    module.load_state_dict(model.state_dict())
    return module


def transformers(
    directory: Path, *, accumulate: int = 1, clip: float | None = None, **options: Any
) -> Path:
    from fmapboard.integrations.transformers import FeatureMapCallback

    callback = FeatureMapCallback(every=3, **options)
    trainer = transformers_trainer(
        directory,
        [callback],
        gradient_accumulation_steps=accumulate,
        max_grad_norm=clip or 0.0,
        eval_strategy="steps",
        eval_steps=5,
    )
    trainer.train()
    (run,) = (directory / "runs").iterdir()
    return run / "fmapboard"


def transformers_trainer(directory: Path, callbacks: list[Any], **options: Any) -> Any:
    import transformers

    model, optimizer = network()
    arguments = {
        "output_dir": str(directory),
        "max_steps": STEPS,
        "per_device_train_batch_size": BATCH,
        "report_to": ["tensorboard"],
        "use_cpu": True,
        "disable_tqdm": True,
        "save_strategy": "no",
        "dataloader_pin_memory": False,
    } | options
    return transformers.Trainer(
        model,
        transformers.TrainingArguments(**arguments),
        train_dataset=Rows(STEPS * BATCH * arguments.get("gradient_accumulation_steps", 1)),
        eval_dataset=Rows(2 * BATCH),
        optimizers=(optimizer, torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)),
        callbacks=callbacks,
    )


def ignite(
    directory: Path, *, accumulate: int = 1, clip: float | None = None, **options: Any
) -> Path:
    from ignite.engine import Engine, Events, create_supervised_evaluator
    from ignite.handlers import TensorboardLogger

    from fmapboard.integrations.ignite import FeatureMapHandler

    model, optimizer = network()
    trainer = ignite_trainer(model, optimizer, accumulate, clip)
    evaluator = create_supervised_evaluator(model)

    @trainer.on(Events.ITERATION_COMPLETED(every=5))
    def evaluate(engine: Engine) -> None:
        evaluator.run(loader(2))

    with TensorboardLogger(log_dir=directory) as logger:
        FeatureMapHandler(
            model,
            every=3,
            tb_logger=logger,
            gradient_accumulation_steps=accumulate,
            **options,
        ).attach(trainer, evaluator)
        trainer.run(loader(STEPS * accumulate))
    return directory / "fmapboard"


def ignite_trainer(
    model: nn.Module, optimizer: torch.optim.Optimizer, accumulate: int, clip: float | None
) -> Any:
    from ignite.engine import Engine, create_supervised_trainer

    if clip is None:
        return create_supervised_trainer(
            model, optimizer, functional.cross_entropy, gradient_accumulation_steps=accumulate
        )

    def update(engine: Engine, batch: Any) -> None:
        model.train()
        (functional.cross_entropy(model(batch[0]), batch[1]) / accumulate).backward()
        if engine.state.iteration % accumulate == 0:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            optimizer.zero_grad()

    return Engine(update)


def accelerate(
    directory: Path, *, accumulate: int = 1, clip: float | None = None, **options: Any
) -> Path:
    from fmapboard.integrations.accelerate import watch

    accelerator = accelerator_in(directory, gradient_accumulation_steps=accumulate)
    model, optimizer, data = accelerator.prepare(*network(), loader(STEPS * accumulate))
    with watch(accelerator, model, optimizer, every=3, **options):
        for pixels, labels in data:
            with accelerator.accumulate(model):
                accelerator.backward(functional.cross_entropy(model(pixels), labels))
                if clip is not None and accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
    accelerator.end_training()
    return directory / "run" / "fmapboard"


def accelerator_in(directory: Path, **options: Any) -> Any:
    from accelerate import Accelerator

    accelerator = Accelerator(
        cpu=True, log_with="tensorboard", project_dir=str(directory), **options
    )
    accelerator.init_trackers("run")
    return accelerator


FRAMEWORKS = {
    "lightning": lightning,
    "transformers": transformers,
    "ignite": ignite,
    "accelerate": accelerate,
}


def series(run: Path) -> dict[str, list[tuple[int, Any]]]:
    """Tag -> steps and values of a run, without the time that logging took."""
    accumulator = read(run)
    found: dict[str, list[tuple[int, Any]]] = {}
    for tag in tags_of(accumulator):
        plugin = accumulator.SummaryMetadata(tag).plugin_data.plugin_name
        for event in accumulator.Tensors(tag):
            found.setdefault(tag, []).append((event.step, _value(tag, plugin, event.tensor_proto)))
    return found


def _value(tag: str, plugin: str, proto: Any) -> Any:
    values = make_ndarray(proto)
    if tag.endswith(TRAINING_FACTS):
        return unpack_training_facts(values.tolist())
    if tag.endswith(CHECKS):
        return unpack_checks(values.tolist()[0])
    if plugin == "scalars":
        return values.item()
    if plugin != "feature_maps":
        return values.tolist()
    header, arrays = unpack(values.tolist())
    header.pop("training_thread_ms", None)  # an overview has none
    return header, {name: array.tobytes() for name, array in arrays.items()}


def steps(run: Path, tag: str = "gradient_norm/total") -> list[int]:
    return [step for step, _ in series(run)[tag]]
