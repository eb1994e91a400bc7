"""Faults: BatchNorm in eval mode or with batches of two."""

from __future__ import annotations

from functools import partial

import data
import losses
from data import HALF, P
from draws.series import TONES
from loops import seen
from nets import classifiers as cnn
from nets import library, signals
from nets.dense import UNet
from nets.images import shuffled
from nets.maps import atrous
from nets.restoration import Denoiser
from nets.series import heart, keyword
from recipes import FEW, at, bad, sgd
from torch import nn

CASES = [
    *seen(
        "2026-11-28T09:25",
        bad(
            "masks_in_eval",
            "eval_mode",
            "no model.train() after the first validation",
            "U-Net",
            partial(UNet, base=8),
            data.scenes,
            losses.masks,
            sgd(0.1, 0.9),
            before=at(8, lambda model, _: model.eval()),
            **FEW,
        ),
        bad(
            "films_of_two",
            "batchnorm_small_batch",
            "batches of two",
            "3-D CNN",
            signals.clip_net,
            data.clips,
            optimizer=sgd(0.02, 0.9),
            batch=2,
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        bad(
            "m5_of_two",
            "batchnorm_small_batch",
            "batches of two",
            "M5",
            signals.waveform,
            TONES,
            optimizer=sgd(0.02, 0.9),
            batch=2,
        ),
    ),
    *seen(
        "2026-11-28T11:40",
        bad(
            "dense_eval",
            "eval_mode",
            "model.eval() in front of the loop",
            "DenseNet",
            library.densenet,
            P,
            optimizer=sgd(0.1, 0.9),
            prepare=nn.Module.eval,
            **FEW,
        ),
        bad(
            "mixed_eval",
            "eval_mode",
            "no model.train() after the first validation",
            "ConvMixer",
            cnn.convmixer,
            P,
            optimizer=sgd(0.1, 0.9),
            before=at(6, lambda model, _: model.eval()),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        bad(
            "heart_eval",
            "eval_mode",
            "no model.train() after the first validation",
            "residual 1-D CNN",
            partial(heart, 1, 6),
            TONES,
            optimizer=sgd(0.05, 0.9),
            before=at(6, lambda model, _: model.eval()),
        ),
        bad(
            "dense_twos",
            "batchnorm_small_batch",
            "batches of two",
            "DenseNet",
            library.densenet,
            P,
            optimizer=sgd(0.05, 0.9),
            batch=2,
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        bad(
            "denoiser_eval",
            "eval_mode",
            "no model.train() after the first validation",
            "DnCNN",
            Denoiser,
            HALF,
            losses.repaired,
            sgd(0.1, 0.9),
            before=at(6, lambda model, _: model.eval()),
            **FEW,
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        bad(
            "resnet_eval",
            "eval_mode",
            "model.eval() in front of the loop",
            "ResNet",
            cnn.resnet,
            P,
            optimizer=sgd(0.1, 0.9),
            prepare=nn.Module.eval,
            **FEW,
        ),
        bad(
            "atrous_eval",
            "eval_mode",
            "model.train() in front of an epoch, validation within it",
            "DeepLab",
            atrous,
            data.scenes,
            losses.masks,
            sgd(0.1, 0.9),
            before=lambda step, model, _: model.train(step % 26 < 4),
            **FEW,
        ),
        bad(
            "shuffle_twos",
            "batchnorm_small_batch",
            "batches of two",
            "ShuffleNet",
            shuffled,
            P,
            optimizer=sgd(0.05, 0.9),
            batch=2,
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        bad(
            "keyword_eval",
            "eval_mode",
            "no model.train() after the first validation",
            "DS-CNN",
            keyword,
            data.spectrograms,
            optimizer=sgd(0.02, 0.9),
            before=lambda step, model, _: model.train(step < 4),
            **FEW,
        ),
        bad(
            "keyword_twos",
            "batchnorm_small_batch",
            "batches of two",
            "DS-CNN",
            keyword,
            data.spectrograms,
            optimizer=sgd(0.05, 0.9),
            batch=2,
        ),
    ),
]
