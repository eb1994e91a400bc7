"""Train ResNet-18 on bundled photographs with Lightning, and log its feature maps."""

import argparse

import lightning.pytorch as pl
import torch
import torchvision
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from fmapboard.demo.photographs import Photographs
from fmapboard.integrations.lightning import FeatureMapCallback


class Classifier(pl.LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net = torchvision.models.resnet18(num_classes=classes)

    def forward(self, images):
        return self.net(images)

    def training_step(self, batch, number):
        loss = functional.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, number):
        self.log("accuracy", (self(batch[0]).argmax(1) == batch[1]).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=60, type=int)
    parser.add_argument("--logdir", default=".")
    args = parser.parse_args()

    photographs = Photographs.load()
    crops = photographs.training_batch(512, torch.Generator().manual_seed(0))
    trainer = pl.Trainer(
        max_steps=args.steps,
        default_root_dir=args.logdir,
        gradient_clip_val=1.0,
        log_every_n_steps=5,
        callbacks=[FeatureMapCallback(every=10, validation=True)],
    )
    trainer.fit(
        Classifier(len(photographs.names)),
        DataLoader(TensorDataset(*crops), 16, shuffle=True),
        DataLoader(TensorDataset(*photographs.validation_crops()), 64),
    )
    print(f"tensorboard --logdir {trainer.logger.log_dir}")


if __name__ == "__main__":
    main()
