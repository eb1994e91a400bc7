"""The trainings of the third set with library models and without labels, by the shared loop."""

from __future__ import annotations

from functools import partial

import acceptance_third_data as data
import acceptance_third_library as library
import acceptance_third_selfsup as views
import timm.optim
from acceptance_data import photos, scenes, spectrograms
from acceptance_data import pictures as crops
from acceptance_later_optimizers import poly
from acceptance_recipes import by, decay_weights_only, restarts, warm_up
from acceptance_third_loop import Plan
from acceptance_third_tuning import named
from torch import Tensor, nn, optim
from torch.nn import functional

ADAM, QUICK = by(optim.Adam, lr=1e-3), by(optim.Adam, lr=3e-3)
ADAMW = by(optim.AdamW, lr=2e-3, weight_decay=0.05)
MOMENTUM = by(optim.SGD, lr=0.02, momentum=0.9, weight_decay=5e-4)
FEW = {"steps": 60, "every": 6}
NORMAL = decay_weights_only(2e-3, 0.05)


def smooth(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return functional.cross_entropy(model(images), labels, label_smoothing=0.1)


def timm_defaults(model: nn.Module) -> optim.Optimizer:
    return timm.optim.create_optimizer_v2(model, "adamw", 2e-3, 0.05, filter_bias_and_bn=True)


Made = tuple[str, str, Plan]
P = photos(32)
NET = library.timm_net


LIBRARY: dict[str, Made] = {
    "tv_efficientnet_v2": (
        *("torchvision EfficientNet v2", "AdamW, decay not for norms, warm-up, stochastic depth"),
        Plan(library.efficientnet_v2, photos(48), smooth, NORMAL, schedule=warm_up, clip=1.0),
    ),
    "tv_maxvit": (
        *("torchvision MaxViT", "AdamW, smoothing"),
        Plan(library.maxvit, photos(64), smooth, ADAMW, **FEW),
    ),
    "tv_regnet": (
        *("torchvision RegNet Y", "SGD, warm restarts"),
        Plan(library.regnet, photos(48), named, MOMENTUM, schedule=restarts),
    ),
    "tv_faster_rcnn": (
        *("torchvision Faster R-CNN", "SGD, photographs of 0 to 1"),
        Plan(library.faster_rcnn, scenes, library.found, MOMENTUM, batch=4, **FEW),
    ),
    "tv_mask_rcnn": (
        *("torchvision Mask R-CNN", "Adam, clipping"),
        Plan(
            partial(library.faster_rcnn, True),
            scenes,
            library.found,
            ADAM,
            batch=4,
            clip=5.0,
            **FEW,
        ),
    ),
    "tv_ssd": (
        *("torchvision SSD", "Adam"),
        Plan(library.ssd, scenes, library.found, ADAM, batch=4, **FEW),
    ),
    "tv_deeplab": (
        *("torchvision DeepLab v3", "SGD, poly, side head"),
        Plan(
            library.deeplab,
            scenes,
            library.with_aux,
            MOMENTUM,
            batch=4,
            schedule=poly,
            steps=40,
            every=4,
        ),
    ),
    "timm_starnet": (
        *("timm StarNet", "AdamW of timm, drop path"),
        Plan(partial(NET, "starnet_s050", drop_path_rate=0.05), photos(64), smooth, timm_defaults),
    ),
    "timm_xcit": (
        *("timm XCiT", "AdamW, clipping"),
        Plan(
            partial(NET, "xcit_nano_12_p16_224", img_size=64),
            photos(64),
            named,
            ADAMW,
            clip=1.0,
            schedule=partial(warm_up, first=10),
            **FEW,
        ),
    ),
    "hf_clip": (
        *("transformers CLIP", "AdamW, contrast of pictures and captions"),
        Plan(library.clip, data.captions(), library.alike, ADAMW, batch=24),
    ),
    "hf_upernet": (
        *("transformers UPerNet", "AdamW, side head"),
        Plan(library.upernet, scenes, library.labelled, ADAM, batch=8, **FEW),
    ),
    "hf_swin2sr": (
        *("transformers Swin2SR", "Adam"),
        Plan(library.swin2sr, crops(32, "unit"), library.sharper, QUICK, batch=8, **FEW),
    ),
    "hf_whisper": (
        *("transformers Whisper encoder (1-D)", "AdamW"),
        Plan(library.whisper, spectrograms, library.heard, ADAMW),
    ),
    "hf_video_mae": (
        *("transformers VideoMAE (3-D)", "AdamW"),
        Plan(library.video_mae, data.films, library.hidden_patches, ADAMW, batch=8),
    ),
    "simsiam": (
        *("SimSiam", "SGD"),
        Plan(views.Siamese, P, views.simsiam, by(optim.SGD, lr=0.05, momentum=0.9), batch=32),
    ),
    "vicreg": ("VICReg", "AdamW", Plan(views.Expanded, P, views.vicreg, ADAM, batch=32)),
    "swav": (
        *("SwAV", "SGD, prototypes normalized after each step"),
        Plan(
            views.Swapped,
            P,
            views.swav,
            by(optim.SGD, lr=0.1, momentum=0.9),
            batch=32,
            before=views.normalize_prototypes,
        ),
    ),
    "sup_con": (
        *("residual CNN", "supervised contrast"),
        Plan(views.classifier, P, views.supervised_contrast, MOMENTUM, batch=24),
    ),
    "sim_mim": (
        *("masked convolutional autoencoder", "AdamW"),
        Plan(views.MaskedConvolutions, P, views.own_loss, ADAM),
    ),
}
