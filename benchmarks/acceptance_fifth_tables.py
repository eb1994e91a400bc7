"""The networks of the fifth set that return pictures, and those of libraries."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import acceptance_fifth_library as library
import acceptance_fifth_losses as tasks
import acceptance_fifth_nets as n
import acceptance_fifth_recipes as r
import torch
from acceptance_data import photos, pictures, scenes
from acceptance_fifth_dense import Bottle, Flat, Hourglass
from acceptance_fourth_library import labelled, timm_net
from acceptance_fourth_pictures import unblurred
from acceptance_fourth_sets import Row
from acceptance_tasks import again, centre, colours, depth, filled
from acceptance_third_data import edges
from acceptance_third_tuning import named
from torch import nn

P, UNIT, HALF, P64 = photos(32), photos(32, "unit"), photos(32, "half"), photos(64)
CROPS, CROPS_UNIT = pictures(), pictures(32, "unit")
LONGER = replace(r.SUPER, name=f"{r.SUPER.name} in 110 steps", steps=110, every=11)
adam, momentum, NET = r.adam, r.momentum, timm_net
LEAKY = partial(nn.LeakyReLU, 0.1)

PLAIN = partial(Hourglass, skip="join", up="transposed")
SILU = partial(Hourglass, n.double, norm=n.GROUP, act=nn.SiLU, skip="add", up="nearest")
POOLED = partial(Hourglass, n.separable, down="max", up="bilinear", skip="join", act=nn.GELU)
SHUFFLED = partial(
    Hourglass, n.Branches, (16, 24, 32), norm=None, act=LEAKY, up="shuffle", skip="add"
)
CLOSED = partial(Hourglass, n.single, down="space", up="shuffle", act=nn.ELU)
MEANS = partial(Hourglass, n.excited, (16, 32), norm=n.INSTANCE, down="mean", up="nearest")

PICTURES: dict[str, Row] = {
    "bottle_ae": ("autoencoder, a vector inside", Bottle, CROPS, again, (adam(2e-3), r.SUPER)),
    "bottle_ae_silu": (
        *("autoencoder, SiLU, GroupNorm", partial(Bottle, n.GROUP, nn.SiLU, "shuffle")),
        *(CROPS, again, (r.NADAM, r.WARM)),
    ),
    "closed": ("ELU autoencoder, space to depth", CLOSED, CROPS, again, (adam(1e-3, r.stairs),)),
    "closed_noise": (
        "ELU autoencoder, space to depth",
        CLOSED,
        CROPS,
        tasks.denoised,
        (r.RMSPROP,),
    ),
    "plain_masks": (
        *("U-Net, strides and transposed", partial(PLAIN, out=1), scenes, tasks.both_masks),
        (r.ADAMW, momentum(0.05, r.poly)),
    ),
    "plain_colour": (
        *("U-Net, strides and transposed", partial(PLAIN, channels=1, last=torch.tanh)),
        *(CROPS, colours, (adam(2e-3),)),
    ),
    "silu_depth": ("SiLU U-Net, added", partial(SILU, out=1), scenes, depth, (r.BETAS,)),
    "silu_fill": ("SiLU U-Net, added", partial(SILU, channels=4), CROPS, filled, (adam(1e-3),)),
    "silu_noise": ("SiLU U-Net, added", SILU, CROPS_UNIT, tasks.rebuilt, (r.RESTARTS,)),
    "pooled_masks": (
        *("separable GELU U-Net", partial(POOLED, out=2), scenes, tasks.two_classes),
        (r.SUPER, r.NESTEROV),
    ),
    "pooled_edges": (
        "separable GELU U-Net",
        partial(POOLED, out=1),
        edges,
        tasks.boundary,
        (r.WARM,),
    ),
    "shuffled_masks": (
        *("branches U-Net, no norm", partial(SHUFFLED, out=1), scenes, tasks.both_masks),
        (adam(2e-3),),
    ),
    "means_fill": (
        "squeezed InstanceNorm U-Net",
        partial(MEANS, skip="join"),
        UNIT,
        tasks.rebuilt,
        (r.ADAMW,),
    ),
    "means_edges": (
        "squeezed InstanceNorm U-Net",
        partial(MEANS, skip="join", out=1),
        edges,
        tasks.boundary,
        (adam(0.002),),
    ),
    "flat_noise": (
        "flat 5 × 5 CNN, residual",
        partial(Flat, partial(n.single, size=5)),
        CROPS,
        tasks.denoised,
        (adam(0.0005),),
    ),
    "flat_blur": (
        "flat dense CNN",
        partial(Flat, n.single, 12, 4, dense=True),
        UNIT,
        unblurred,
        (r.SUPER,),
    ),
    "flat_fill": (
        "flat inverted CNN",
        partial(Flat, n.inverted, 16, 2, norm=n.LAYER, act=nn.GELU),
        UNIT,
        tasks.rebuilt,
        (r.NADAM,),
    ),
    "flat_edges": (
        "flat dilated CNN",
        partial(Flat, partial(n.Branches, dilated=True), 16, 2, norm=n.BATCH, out=1, around=False),
        *(edges, tasks.boundary, (momentum(0.05),)),
    ),
}

LIBRARY: dict[str, Row] = {
    "tv_resnext": ("torchvision ResNeXt", library.resnext, P64, named, (r.ADAMW,)),
    "tv_group": (
        "torchvision ResNet, GroupNorm",
        library.wide_resnet,
        P64,
        named,
        (momentum(0.01),),
    ),
    "tv_convnext": ("torchvision ConvNeXt", library.convnext, P64, named, (r.WARM,)),
    "tv_efficient": ("torchvision EfficientNet", library.efficientnet, P64, named, (r.SUPER,)),
    "tv_vgg": ("torchvision VGG, BatchNorm", library.vgg, P, named, (adam(1e-3), r.NESTEROV)),
    "tv_deeplab_3": (
        "torchvision DeepLab on MobileNet",
        library.deeplab,
        scenes,
        library.masked,
        (adam(0.002),),
    ),
    "tv_squeeze": ("torchvision SqueezeNet 1.1 body", library.Two, scenes, centre, (adam(1e-3),)),
    "mnasnet": ("timm MNASNet", partial(NET, "mnasnet_small"), P64, named, (r.SUPER,)),
    "mobilenet_2": ("timm MobileNet v2", partial(NET, "mobilenetv2_035"), P64, named, (LONGER,)),
    "regnet_x": ("timm RegNet X", partial(NET, "regnetx_002"), P64, named, (r.BETAS,)),
    "regnet_y": ("timm RegNet Y", partial(NET, "regnety_002"), P64, tasks.smoothed, (r.NESTEROV,)),
    "rep_ghost": ("timm RepGhostNet", partial(NET, "repghostnet_050"), P64, named, (r.NADAM,)),
    "mobile_vit": ("timm MobileViT", partial(NET, "mobilevit_xxs"), P64, named, (r.WARM,)),
    "mobile_vit_2": ("timm MobileViT v2", partial(NET, "mobilevitv2_050"), P64, named, (r.SUPER,)),
    "darknet": ("timm CS3DarkNet", partial(NET, "cs3darknet_focus_s"), P64, named, (r.ADAMW,)),
    "pit": ("timm PiT", partial(NET, "pit_ti_224", img_size=64), P64, named, (r.BETAS,)),
    "vit_3": (
        "timm ViT, registers",
        partial(NET, "test_vit3", img_size=64),
        P64,
        named,
        (r.SUPER,),
    ),
    "layer_net": (
        "timm EfficientNet, LayerNorm",
        partial(NET, "test_efficientnet_ln"),
        P64,
        named,
        (r.RESTARTS,),
    ),
    "hf_mobile_1": (
        "transformers MobileNet v1",
        library.mobilenet_v1,
        P64,
        labelled,
        (adam(2e-3),),
    ),
    "hf_regnet": ("transformers RegNet", library.regnet, P64, labelled, (momentum(0.05),)),
    "hf_resnet": ("transformers ResNet", library.resnet, P64, labelled, (r.NESTEROV,)),
    "hf_swin_2": ("transformers Swin v2", library.swin_v2, P, labelled, (r.WARM,)),
    "hf_focal": ("transformers FocalNet", library.focal_net, P, labelled, (r.BETAS,)),
    "hf_pvt": ("transformers PVT v2", library.pvt_v2, P64, labelled, (r.ADAMW,)),
    "hf_beit": ("transformers BEiT", library.beit, P, labelled, (r.SUPER,)),
}
