"""Healthy: masks, boxes, key points and depth."""

from __future__ import annotations

from functools import partial

import data
import recipes.hundred as r100
import recipes.sixty as r60
from loops import Task, eighty, seen
from losses import centre, depth, detect, dice, heat, masks, own
from nets import dense
from nets.classifiers import plain, unit
from nets.library import Lraspp
from optimizers import MOMENTUM, by
from torch import nn, optim

CASES = seen(
    "2026-11-23T03:56",
    Task("U-Net", dense.UNet, data.scenes, masks).cases(unet=r100.EIGHTY_8),
    Task("U-Net", dense.UNet, data.scenes, dice).cases(
        unet_dice=r100.WARM.but("Dice loss", batch=8, steps=80)
    ),
    Task("depth U-Net", dense.UNet, data.scenes, depth).cases(unet_depth=r100.EIGHTY_8),
    Task("keypoint U-Net", dense.UNet, data.scenes, heat).cases(
        unet_heat=r100.ADAM.but("", batch=8, steps=150)
    ),
    Task("SegNet", dense.SegNet, data.scenes, masks).cases(segnet=r100.EIGHTY_8),
    Task("toy detector", dense.Spots, data.scenes, detect).cases(detector=r100.ADAMW),
    Task(
        "plain CNN, BatchNorm", partial(plain, classes=3, norm=nn.BatchNorm2d), data.scenes, centre
    ).cases(box_regression=r100.ADAM.but("box regression", steps=200)),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("LR-ASPP", Lraspp, data.scenes, depth).cases(
        unet_depth=r100.SIXTY.but("depth", batch=8, optimizer=by(optim.AdamW, lr=2e-3))
    ),
    Task(
        "dilated CNN",
        lambda: nn.Sequential(unit(1, 24), unit(24, 24, dilation=2), nn.Conv2d(24, 1, 1)),
        data.slices,
        masks,
    ).cases(empty_slices=r100.ADAM.but("some slices empty", batch=6, steps=120)),
    Task("VoxelMorph", dense.Register, data.moved, own).cases(registration=r100.ADAM),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("HED", dense.Holistic, data.edges, dense.balanced).cases(
        hed=eighty("SGD, side maps", MOMENTUM, batch=8)
    ),
)
CASES += seen(
    "2026-11-23T10:43",
    Task("LinkNet", dense.LinkNet, data.scenes, dense.tversky).cases(link_net=r60.WARM),
    held_out=True,
)
