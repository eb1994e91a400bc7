"""The Hugging Face callback under its own Trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from module_hooks import hook_count
from same_training import loader, network, series, steps, transformers_trainer
from torch import Tensor, nn
from torch.utils.data import Dataset

import fmapboard
from fmapboard.integrations.transformers import FeatureMapCallback


def run_of(directory: Path) -> Path:
    (run,) = (directory / "runs").iterdir()
    return run / "fmapboard"


class Photographs(Dataset[dict[str, Any]]):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, number: int) -> dict[str, Any]:
        source = torch.Generator().manual_seed(number)
        pixels = torch.randn(3, 32, 32, generator=source)
        return {"pixel_values": pixels, "labels": number % 4}


def resnet() -> nn.Module:
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=4
    )
    return transformers.ResNetForImageClassification(config)


def vit() -> nn.Module:
    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=32,
        patch_size=8,
        num_labels=4,
    )
    return transformers.ViTForImageClassification(config)


def train(model: nn.Module, directory: Path, callback: Any, **options: Any) -> Any:
    arguments = {
        "output_dir": str(directory),
        "max_steps": 4,
        "per_device_train_batch_size": 4,
        "report_to": ["tensorboard"],
        "use_cpu": True,
        "disable_tqdm": True,
        "save_strategy": "no",
        "dataloader_pin_memory": False,
    } | options
    trainer = transformers.Trainer(
        model,
        transformers.TrainingArguments(**arguments),
        train_dataset=Photographs(),
        callbacks=[callback],
    )
    trainer.train()
    return trainer


def test_a_resnet_from_a_config_is_recorded_by_its_layers_names(tmp_path: Path) -> None:
    train(resnet(), tmp_path, FeatureMapCallback(every=2))
    run = series(run_of(tmp_path))
    name = "resnet.embedder.embedder.convolution"
    assert [step for step, _ in run[f"feature_maps_8x3x7x7/{name}"]] == [0, 2]
    assert [step for step, _ in run[f"gradient_norm/{name}.weight"]] == [0, 2]
    assert "network_input/sample_0" in run


def test_the_blocks_of_a_vit_are_drawn_as_patches(tmp_path: Path) -> None:
    callback = FeatureMapCallback(every=2, layers=["*patch_embeddings.projection"], inputs=True)
    train(vit(), tmp_path / "patches", callback)
    run = series(run_of(tmp_path / "patches"))
    assert any(tag.startswith("feature_maps_16x3x8x8/") for tag in run)
    blocks = FeatureMapCallback(every=2, layers=lambda name, m: "Layer" in type(m).__name__)
    train(vit(), tmp_path / "blocks", blocks)
    run = series(run_of(tmp_path / "blocks"))
    assert any(tag.startswith("feature_maps_Block 16/") for tag in run)


def test_without_tensorboard_the_run_has_a_directory_below_the_output(tmp_path: Path) -> None:
    train(resnet(), tmp_path, FeatureMapCallback(every=2), report_to="none")
    (run,) = (tmp_path / "runs").iterdir()
    assert steps(run) == [0, 2]


def test_a_tensorboard_callback_added_after_ours_is_found_too(tmp_path: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter
    from transformers.integrations import TensorBoardCallback

    writer = SummaryWriter(str(tmp_path / "theirs"))
    trainer = transformers_trainer(tmp_path, [FeatureMapCallback(every=5)], report_to="none")
    trainer.add_callback(TensorBoardCallback(writer))
    trainer.train()
    assert steps(tmp_path / "theirs" / "fmapboard") == [0, 5]


def test_share_writer_without_tensorboard_is_refused(tmp_path: Path) -> None:
    callback = FeatureMapCallback(share_writer=True)
    with pytest.raises(fmapboard.ConfigurationError, match="has no TensorBoard logger"):
        train(resnet(), tmp_path, callback, report_to="none")


def test_under_bfloat16_the_records_are_those_of_the_trainers_autocast(tmp_path: Path) -> None:
    callback = FeatureMapCallback(every=5)
    transformers_trainer(tmp_path, [callback], bf16=True, max_grad_norm=0.0).train()
    model, _ = network()
    pixels, labels = next(iter(loader(1)))
    with torch.autocast("cpu", torch.bfloat16):
        model(pixels, labels)["loss"].backward()
    norm = model.stem.weight.grad.norm().item()
    first = series(run_of(tmp_path))["gradient_norm/stem.weight"][0]
    assert first == (0, pytest.approx(norm, rel=1e-5))


def test_a_resumed_training_continues_from_the_checkpoint(tmp_path: Path) -> None:
    def trained(until: int, **resume: Any) -> None:
        callback = FeatureMapCallback(every=2, log_dir=tmp_path / "maps")
        trainer = transformers_trainer(
            tmp_path, [callback], max_steps=until, save_strategy="steps", save_steps=5
        )
        trainer.train(**resume)

    trained(8)
    assert steps(tmp_path / "maps") == [0, 2, 4, 6]
    trained(10, resume_from_checkpoint=str(tmp_path / "checkpoint-5"))
    assert steps(tmp_path / "maps") == [0, 2, 4, 6, 8]
    assert len(list((tmp_path / "maps").glob("*tfevents*"))) == 2


def test_an_evaluation_does_not_enter_the_records_of_training(tmp_path: Path) -> None:
    def maps(**options: Any) -> Any:
        directory = tmp_path / str(len(options))
        transformers_trainer(directory, [FeatureMapCallback(every=1)], **options).train()
        return series(run_of(directory))["feature_maps_8x3x5x5/stem"]

    evaluated = maps(eval_strategy="steps", eval_steps=1, eval_on_start=True)
    assert evaluated == maps()


def test_the_next_training_cleans_up_after_one_that_failed(tmp_path: Path) -> None:
    class Breaking(transformers.Trainer):  # type: ignore[misc]  # untyped
        breaks = True

        def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
            loss = super().training_step(*args, **kwargs)
            if self.breaks and self.state.global_step == 3:
                raise RuntimeError("a bug of the user's")
            return loss

    trainer = transformers_trainer(tmp_path, [FeatureMapCallback(every=1)])
    trainer.__class__ = Breaking
    with pytest.raises(RuntimeError, match="a bug of the user's"):
        trainer.train()
    trainer.breaks = False
    trainer.train()
    assert hook_count(trainer.model) == 0
    assert steps(run_of(tmp_path)) == list(range(10))
