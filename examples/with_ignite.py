"""Train ResNet-18 on bundled photographs with ignite, and log its feature maps."""

import argparse

import torch
import torchvision
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import TensorboardLogger, global_step_from_engine
from ignite.metrics import Accuracy
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from fmapboard.demo.photographs import Photographs
from fmapboard.integrations.ignite import FeatureMapHandler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=60, type=int)
    parser.add_argument("--logdir", default="runs/ignite")
    args = parser.parse_args()

    photographs = Photographs.load()
    crops = photographs.training_batch(512, torch.Generator().manual_seed(0))
    training = DataLoader(TensorDataset(*crops), 16, shuffle=True)
    validation = DataLoader(TensorDataset(*photographs.validation_crops()), 64)

    model = torchvision.models.resnet18(num_classes=len(photographs.names))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    trainer = create_supervised_trainer(model, optimizer, functional.cross_entropy)
    evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy()})
    trainer.add_event_handler(
        Events.ITERATION_COMPLETED(every=20), lambda: evaluator.run(validation)
    )

    with TensorboardLogger(log_dir=args.logdir) as logger:
        FeatureMapHandler(model, every=10, tb_logger=logger, validation=True).attach(
            trainer, evaluator
        )
        logger.attach_output_handler(
            trainer,
            Events.ITERATION_COMPLETED(every=5),
            tag="training",
            output_transform=lambda loss: {"loss": loss},
        )
        logger.attach_output_handler(
            evaluator,
            Events.COMPLETED,
            tag="validation",
            metric_names=["accuracy"],
            global_step_transform=global_step_from_engine(trainer, Events.ITERATION_COMPLETED),
        )
        trainer.run(training, max_epochs=1, epoch_length=args.steps)
    print(f"tensorboard --logdir {args.logdir}")


if __name__ == "__main__":
    main()
