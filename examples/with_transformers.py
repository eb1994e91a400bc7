"""Train a ResNet on bundled photographs with transformers' Trainer, and log its feature maps."""

import argparse

import torch
import transformers
from torch.utils.data import Dataset

from fmapboard.demo.photographs import Photographs
from fmapboard.integrations.transformers import FeatureMapCallback


class Crops(Dataset):
    """A data set whose keys are the arguments of the model's ``forward``."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        return {"pixel_values": self.images[number], "labels": self.labels[number]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=60, type=int)
    parser.add_argument("--logdir", default="runs/transformers")
    args = parser.parse_args()

    photographs = Photographs.load()
    config = transformers.ResNetConfig(
        embedding_size=32,
        hidden_sizes=[32, 64],
        depths=[2, 2],
        layer_type="basic",
        num_labels=len(photographs.names),
    )
    trainer = transformers.Trainer(
        transformers.ResNetForImageClassification(config),
        transformers.TrainingArguments(
            args.logdir,
            max_steps=args.steps,
            per_device_train_batch_size=16,
            learning_rate=1e-3,
            eval_strategy="steps",
            eval_steps=20,
            logging_steps=5,
            report_to=["tensorboard"],
        ),
        train_dataset=Crops(*photographs.training_batch(512, torch.Generator().manual_seed(0))),
        eval_dataset=Crops(*photographs.validation_crops()),
        callbacks=[FeatureMapCallback(every=10, validation=True)],
    )
    trainer.train()
    print(f"tensorboard --logdir {args.logdir}")


if __name__ == "__main__":
    main()
