"""An ImageNet-style training script with AMP, torchrun and resume; fmapboard's lines are marked.

python examples/plain_pytorch.py
torchrun --nproc-per-node 2 examples/plain_pytorch.py --data imagenet/train
python examples/plain_pytorch.py --resume runs/plain_pytorch/checkpoint.pt
"""

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist
import torchvision
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset
from torchvision.transforms import v2

import fmapboard  # <- fmapboard
from fmapboard.demo.photographs import Photographs


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help="folder with one subfolder per class (default: bundled)")
    parser.add_argument("--logdir", default="runs/plain_pytorch", type=Path)
    parser.add_argument("--resume", help="checkpoint to resume from")
    parser.add_argument("--steps", default=60, type=int, help="total number of optimizer steps")
    parser.add_argument("--batch", default=16, type=int, help="images per process and step")
    parser.add_argument("--every", default=10, type=int, help="log every N steps")
    return parser.parse_args()


def dataset(folder: str | None) -> tuple[Dataset, int]:
    if folder is None:
        photographs = Photographs.load()
        crops = photographs.training_batch(512, torch.Generator().manual_seed(0))
        return TensorDataset(*crops), len(photographs.names)
    prepare = v2.Compose(
        [
            v2.PILToTensor(),
            v2.RandomResizedCrop(224),
            v2.RandomHorizontalFlip(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ]
    )
    images = torchvision.datasets.ImageFolder(folder, prepare)
    return images, len(images.classes)


def main() -> None:
    args = options()
    distributed = "RANK" in os.environ  # started by torchrun
    cuda = torch.cuda.is_available()
    if distributed:
        dist.init_process_group("nccl" if cuda else "gloo")
    device = torch.device(f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if cuda else "cpu")
    precision = torch.float16 if cuda else torch.bfloat16
    is_first = not distributed or dist.get_rank() == 0

    data, classes = dataset(args.data)
    sampler = DistributedSampler(data) if distributed else None
    loader = DataLoader(data, args.batch, sampler=sampler, shuffle=not distributed, drop_last=True)

    torch.manual_seed(0)
    network = torchvision.models.resnet18(num_classes=classes).to(device)
    model = DistributedDataParallel(network) if distributed else network
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(enabled=cuda)
    step = 0
    if args.resume:
        saved = torch.load(args.resume, map_location=device)
        network.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        scaler.load_state_dict(saved["scaler"])
        step = saved["step"]

    board = fmapboard.watch(  # <- fmapboard: after resuming, on every rank
        model,
        args.logdir,
        optimizer=optimizer,
        scaler=scaler,
        every=args.every,
        start_step=step,
    )

    while step < args.steps:
        if sampler is not None:
            sampler.set_epoch(step // len(loader))
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            with torch.autocast(device.type, precision):
                loss = functional.cross_entropy(model(images), labels)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            board.before_clipping()  # <- fmapboard: optional
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            step += 1
            if step == args.steps:
                break

    board.close()  # <- fmapboard
    if is_first:
        parts = {"model": network, "optimizer": optimizer, "scaler": scaler}
        saved = {name: part.state_dict() for name, part in parts.items()}
        torch.save(saved | {"step": step}, args.logdir / "checkpoint.pt")
        print(f"loss {loss.item():.3f} at step {step}; tensorboard --logdir {args.logdir}")
    if distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
