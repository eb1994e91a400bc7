"""Later acceptance trainings under a framework's trainer, which logs through a callback."""

from __future__ import annotations

import logging
from pathlib import Path

import lightning.pytorch as pl
import torch
import transformers
from accelerate import Accelerator
from acceptance_case import Losses
from acceptance_data import photos
from acceptance_later_library import hf_convnext, timm_model
from acceptance_later_loops import encoder
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, TensorDataset

from fmapboard.integrations import accelerate, ignite, lightning
from fmapboard.integrations.transformers import FeatureMapCallback


class Crops(Dataset):
    """Photographs, under the names of transformers' arguments."""

    def __init__(self, count: int, size: int, seed: int) -> None:
        self.images, self.labels = photos(size)(torch.Generator().manual_seed(seed), count)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        return {"pixel_values": self.images[number], "labels": self.labels[number]}


class Labelled(nn.Module):
    """A network that returns its loss and logits, as transformers expects."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, pixel_values: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.net(pixel_values)
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


class Kept(transformers.TrainerCallback):
    def __init__(self) -> None:
        self.losses: Losses = []

    def on_log(self, args: object, state: object, control: object, logs: dict, **_: object) -> None:
        if "loss" in logs:
            self.losses.append(float(logs["loss"]))


def hf_trainer(place: Path, seed: int) -> Losses:
    """Trainer: accumulation of two batches, warm-up, clipping, evaluation."""
    kept = Kept()
    trainer = transformers.Trainer(
        Labelled(hf_convnext()),
        transformers.TrainingArguments(
            str(place),
            max_steps=80,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            learning_rate=2e-3,
            warmup_steps=10,
            eval_strategy="steps",
            eval_steps=20,
            logging_steps=1,
            save_strategy="no",
            report_to=["tensorboard"],
            disable_tqdm=True,
            use_cpu=True,
            seed=seed,
        ),
        train_dataset=Crops(256, 32, seed),
        eval_dataset=Crops(32, 32, seed + 1),
        callbacks=[kept, FeatureMapCallback(every=8, log_dir=str(place))],
    )
    logging.getLogger("transformers").setLevel(logging.ERROR)
    trainer.train()
    return kept.losses


class Classifier(pl.LightningModule):
    """A network with an own schedule; validation shares its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.losses = timm_model("test_efficientnet"), []

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        loss = functional.cross_entropy(self.net(batch[0]), batch[1])
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch: list[Tensor], _: int) -> None:
        self.net(batch[0])

    def configure_optimizers(self) -> object:
        optimizer = optim.AdamW(self.parameters(), lr=2e-3)
        schedule = optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, 100)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


def pl_trainer(place: Path, seed: int) -> Losses:
    """Lightning: one-cycle, clipping, validation per epoch."""
    model = Classifier()
    random = torch.Generator().manual_seed(seed)
    held_out = TensorDataset(*photos(48)(random, 32))
    trainer = pl.Trainer(
        max_steps=100,
        accelerator="cpu",
        default_root_dir=str(place),
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[lightning.FeatureMapCallback(every=10, log_dir=str(place))],
    )
    training = DataLoader(TensorDataset(*photos(48)(random, 256)), 16, shuffle=True)
    trainer.fit(model, training, DataLoader(held_out, 32))
    return model.losses


def hf_accelerate(place: Path, seed: int) -> Losses:
    """accelerate: accumulation of two batches, clipping."""
    helper = Accelerator(cpu=True, gradient_accumulation_steps=2)
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    crops = TensorDataset(*photos(32)(random, 256))
    model, optimizer, training = helper.prepare(
        model, optim.AdamW(model.parameters(), lr=2e-3), DataLoader(crops, 16, shuffle=True)
    )
    losses: Losses = []
    with accelerate.watch(helper, model, optimizer, every=5, log_dir=str(place)) as board:
        for _ in range(10):
            for images, labels in training:
                with helper.accumulate(model):
                    loss = functional.cross_entropy(model(images), labels)
                    helper.backward(loss)
                    if helper.sync_gradients:
                        board.before_clipping()
                        helper.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(loss.item())
    return losses


def ignite_engine(place: Path, seed: int) -> Losses:
    """ignite: SGD, an evaluation every 20 steps."""
    random, model = torch.Generator().manual_seed(seed), encoder(8)
    training = DataLoader(TensorDataset(*photos(32)(random, 256)), 16, shuffle=True)
    held_out = DataLoader(TensorDataset(*photos(32)(random, 32)), 32)
    optimizer = optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    trainer = create_supervised_trainer(model, optimizer, functional.cross_entropy)
    evaluator = create_supervised_evaluator(model)
    losses: Losses = []
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED, lambda engine: losses.append(engine.state.output)
    )
    trainer.add_event_handler(Events.ITERATION_COMPLETED(every=20), lambda: evaluator.run(held_out))
    ignite.FeatureMapHandler(model, every=10, log_dir=str(place)).attach(trainer)
    trainer.run(training, max_epochs=8)
    return losses
