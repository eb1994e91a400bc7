"""Healthy: classifiers written by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import data
import losses
import optimizers as o
import recipes.hundred as r100
import recipes.sixty as r60
import torch
import torchvision
from data import EACH, HALF, UNIT, P
from loops import Case, Loss, Recipe, Task, eighty, seen
from losses import named
from nets import classifiers as cnn
from nets import library, unusual
from nets.composed import GROUP, INSTANCE, LAYER, Branches, excited, net
from nets.dense import autoencoder
from nets.library import timm_model
from nets.signals import Bag, WithTable, agent, joined, positive
from timm.layers import GroupNorm
from torch import Tensor, nn, optim


def heavy_dropout() -> nn.Module:
    layers: list[nn.Module] = []
    for into, out in ((3, 32), (32, 64), (64, 64)):
        conv = nn.Conv2d(into, out, 3, padding=1)
        layers += [conv, nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.2)]
    layers += [nn.Flatten(), nn.Linear(1024, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 8)]
    return nn.Sequential(*layers)


def ensemble() -> nn.Module:
    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.nets = nn.ModuleList(cnn.small_classifier() for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            return torch.stack([net(x) for net in self.nets]).mean(0)

    return Mean()


def swept(optimizer: object) -> Recipe:
    return Recipe("", optimizer, steps=160, every=16, zero="before")


def sweep_case(name: str, make: Callable[[], nn.Module], loss: Loss = named) -> list[Case]:
    """A network of 2026-11-22 with two optimizers."""
    recipes = {f"{name}, Adam": swept(o.ADAM), f"{name}, SGD": swept(o.SGD)}
    return Task(name, make, data.photos(48, "own"), loss).cases(**recipes)


def named_by(make: Callable[..., nn.Module], **options: object) -> Task:
    """Classes of photographs, told by a network with these options."""
    kinds = {cnn.resnet: "ResNet", cnn.plain: "plain CNN"}
    return Task(kinds[make], partial(make, **options), P, named)


SWEEP = {
    "plain": cnn.sweep_net,
    "plain leaky": partial(cnn.sweep_net, act=nn.LeakyReLU),
    "plain tanh": partial(cnn.sweep_net, act=nn.Tanh),
    "plain gelu": partial(cnn.sweep_net, act=nn.GELU),
    "plain elu": partial(cnn.sweep_net, act=nn.ELU),
    "batch norm": partial(cnn.sweep_net, nn.BatchNorm2d),
    "batch norm hardswish": partial(cnn.sweep_net, nn.BatchNorm2d, nn.Hardswish),
    "group norm": partial(cnn.sweep_net, GROUP),
    "instance norm": partial(cnn.sweep_net, nn.InstanceNorm2d),
    "residual": cnn.resnet,
    "separable": cnn.mobilenet_v1,
    "inception": partial(net, Branches),
    "gated": partial(net, excited),
    "transformer": partial(library.vit, img_size=48, patch_size=8, global_pool="avg"),
    "resnet18": partial(torchvision.models.resnet18, num_classes=8),
    "mobilenet": partial(torchvision.models.mobilenet_v3_small, num_classes=8),
    "shufflenet": partial(torchvision.models.shufflenet_v2_x0_5, num_classes=8),
    "squeezenet": partial(torchvision.models.squeezenet1_1, num_classes=8),
}
CASES = seen(
    "2026-11-22T18:59",
    *(sweep_case(name, make) for name, make in SWEEP.items()),
    sweep_case("autoencoder", autoencoder, losses.again),
)
SLOW_ADAM = r100.ADAM.but("at 3e-4", optimizer=o.by(optim.Adam, lr=3e-4), steps=150)
WIDTHS = (8, 16, 24, 24)
CASES += seen(
    "2026-11-23T03:56",
    named_by(cnn.resnet).cases(
        resnet_sgd=r100.SGD,
        resnet_high_cycle=r100.HIGH_CYCLE,
        resnet_large_batch=r100.LARGE_BATCH,
        resnet_epochs=r100.EPOCHS,
        resnet_small_set=r100.SMALL_SET,
        resnet_half_precision=r100.HALF,
        resnet_rmsprop=r100.RMSPROP,
        resnet_ema=r100.EMA,
        resnet_compiled=r100.MOMENTUM.but("torch.compile", compile=True, evaluate=0),
    ),
    named_by(cnn.resnet, blocks=2).cases(resnet_nesterov=r100.NESTEROV),
    named_by(cnn.resnet, zero_init_last=True).cases(resnet_zero_init=r100.ONE_CYCLE),
    named_by(cnn.resnet, bottleneck=True, widths=WIDTHS, cardinality=4, base_width=32).cases(
        resnext=r100.MOMENTUM
    ),
    named_by(cnn.resnet, bottleneck=True, widths=WIDTHS).cases(bottleneck=r100.WARM),
    named_by(cnn.resnet, block_args={"attn_layer": "se"}).cases(se_resnet=r100.ADAMW),
    named_by(cnn.resnet, widths=(24, 48, 96, 96), drop_rate=0.3).cases(wide_resnet=r100.NESTEROV),
    named_by(cnn.resnet, blocks=2, drop_path_rate=0.2).cases(stochastic_depth=r100.ADAM),
    named_by(cnn.resnet, norm_layer=partial(GroupNorm, num_groups=4)).cases(
        group_norm_resnet=r100.TINY_BATCH
    ),
    named_by(cnn.resnet, norm_layer=INSTANCE).cases(instance_norm_resnet=r100.ADAM),
    named_by(cnn.resnet, act_layer=nn.ELU).cases(elu_resnet=r100.MOMENTUM),
    Task("ResNet", cnn.resnet, P, losses.classes(0.1)).cases(
        resnet_smoothing=r100.MOMENTUM.but("label smoothing 0.1")
    ),
    Task("ResNet", cnn.resnet, P, losses.mixup()).cases(
        resnet_mixup=r100.ADAMW.but("mixup", steps=200, every=20)
    ),
    Task("ResNet", cnn.resnet, P, losses.cut_out).cases(
        resnet_cut_out=r100.ADAM.but("", steps=150)
    ),
    Task("ResNet", cnn.resnet, UNIT, named).cases(
        resnet_unit_range=r100.ADAM.but("images in [0, 1]")
    ),
    Task("ResNet", cnn.resnet, EACH, named).cases(
        resnet_each_image=r100.MOMENTUM.but("each image on its own")
    ),
    Task("ResNet", partial(cnn.resnet, channels=4), data.photos(32, channels=4), named).cases(
        resnet_four_channels=r100.ADAMW.but("4 channels")
    ),
    Task("ResNet", partial(cnn.resnet, channels=6), data.photos(32, channels=6), named).cases(
        resnet_six_channels=r100.MOMENTUM.but("6 channels")
    ),
    Task("ResNet", cnn.resnet, P, losses.focal).cases(resnet_focal=r100.ADAM),
    Task("ResNet", cnn.resnet, P, losses.multi_label).cases(resnet_multi_label=r100.ADAM),
    named_by(cnn.plain).cases(
        plain_adam=r100.ADAM,
        plain_momentum=r100.MOMENTUM.but("", steps=150),
        plain_adagrad=r100.ADAGRAD,
        plain_tiny_batch=r100.TINY_BATCH,
        plain_nadam=r100.ADAM.but("NAdam", optimizer=o.by(optim.NAdam, lr=1e-3)),
        plain_adamax=r100.ADAM.but("Adamax", optimizer=o.by(optim.Adamax, lr=2e-3)),
        plain_radam=r100.ADAM.but("RAdam", optimizer=o.by(optim.RAdam, lr=2e-3), steps=150),
        plain_kept_zeros=r100.ADAM.but("gradients kept as zeros", zero="keep"),
        plain_marked=r100.MOMENTUM.but("marked steps", marked=True),
        plain_samples=r100.ADAM.but("three samples", watch={"probe": None, "samples": 3}),
    ),
    named_by(cnn.plain, norm=nn.BatchNorm2d).cases(plain_bn=r100.SGD),
    named_by(cnn.plain, norm=GROUP).cases(plain_gn=r100.MICRO),
    named_by(cnn.plain, norm=LAYER).cases(plain_ln=r100.ADAMW),
    named_by(cnn.plain, norm=INSTANCE).cases(plain_in=r100.ADAM),
    named_by(cnn.plain, act=nn.PReLU).cases(plain_prelu=r100.ADAM),
    named_by(cnn.plain, act=nn.SiLU, norm=nn.BatchNorm2d).cases(plain_swish=r100.EMA),
    named_by(cnn.plain, norm=nn.BatchNorm2d, dropout=0.5).cases(plain_dropout=r100.ADAM),
    Task("plain CNN", partial(cnn.plain, 1), data.photos(32, channels=1), named).cases(
        plain_gray=r100.ADAM.but("grey")
    ),
    Task("plain CNN", cnn.plain, HALF, losses.flip).cases(plain_symmetric=r100.ADAM),
    Task("plain CNN", partial(cnn.plain, classes=4), P, losses.regression).cases(
        plain_regression=r100.ADAM
    ),
    Task("MNIST tutorial", cnn.tutorial, data.digits, named).cases(
        digits_tutorial=r100.ADAM.but("", batch=64),
        digits_adadelta=r100.ADAM.but("Adadelta", optimizer=o.by(optim.Adadelta, lr=1.0), batch=32),
    ),
    Task("LeNet", cnn.lenet, data.digits, named).cases(
        lenet_tanh=r100.ADAM.but("", batch=32, steps=150)
    ),
    Task("LeNet", partial(cnn.lenet, nn.ReLU), data.digits, named).cases(
        lenet_relu=r100.MOMENTUM.but("", steps=250, batch=32)
    ),
    Task("VGG, BatchNorm", library.vgg, P, named).cases(vgg_bn=r100.MOMENTUM),
    Task("VGG", partial(library.vgg, batch_norm=False), P, named).cases(vgg_plain=SLOW_ADAM),
    Task("AlexNet", cnn.alexnet, data.photos(48), named).cases(
        alexnet=r100.ADAM.but("at 5e-4", optimizer=o.by(optim.Adam, lr=5e-4), steps=150)
    ),
    Task("All-CNN", cnn.all_convolutions, P, named).cases(all_conv=r100.MOMENTUM),
    Task("ResNet without norm", cnn.skip_init, P, named).cases(
        skip_init=r100.ADAM.but("", steps=80)
    ),
    Task("DenseNet", library.densenet, P, named).cases(
        densenet=r100.MOMENTUM.but("", steps=80), densenet_adamw=r100.WARM.but("", steps=80)
    ),
    Task("MobileNet v1", cnn.mobilenet_v1, P, named).cases(mobilenet_v1=r100.RMSPROP),
    Task("MobileNet v3", library.mobilenet_v3, P, named).cases(mobilenet_v3=r100.ADAMW),
    Task("EfficientNet", library.efficientnet, P, named).cases(efficientnet=r100.EMA),
    Task("EfficientNet", library.efficientnet, P, losses.mixup()).cases(
        efficientnet_warm=r100.WARM.but("mixup")
    ),
    Task("RegNet", library.regnet, P, named).cases(
        regnet=r100.NESTEROV.but("", steps=80, every=10)
    ),
    Task("ConvNeXt", library.convnext, P, named).cases(convnext=r100.WARM),
    Task("ConvNeXt", library.convnext, P, losses.classes(0.1)).cases(
        convnext_drop=r100.EMA.but("smoothing")
    ),
    Task("ConvMixer", cnn.convmixer, P, named).cases(convmixer=r100.ADAMW),
    Task("RepVGG", cnn.repvgg, P, named).cases(repvgg=r100.MOMENTUM.but("", steps=80)),
    Task("ViT", library.vit, P, named).cases(
        vit=r100.WARM.but("", steps=200, every=20),
        vit_everything=r100.ADAMW.but("all layers", steps=120, watch={"layers": "*"}),
    ),
    Task("MLP-Mixer", library.mixer, P, named).cases(mixer=r100.WARM),
    Task("maxout network", unusual.maxout, P, named).cases(maxout=r100.MOMENTUM.but("", steps=200)),
    Task("SELU network", unusual.selu, P, named).cases(selu=r100.ADAM.but("alpha dropout")),
    Task("SELU network", unusual.selu, EACH, named).cases(
        selu_sgd=r100.SGD.but("at 0.01", optimizer=o.by(optim.SGD, lr=0.01), steps=150)
    ),
    Task("weight-norm CNN", partial(unusual.reparametrized, "weight_norm"), P, named).cases(
        weight_norm=r100.ADAM
    ),
    Task("spectral-norm CNN", partial(unusual.reparametrized, "spectral_norm"), P, named).cases(
        spectral_norm=r100.ADAM.but("", steps=150)
    ),
    Task("spatial transformer", unusual.Steered, data.digits, named).cases(
        transformer_spatial=r100.ADAM.but("", batch=32, steps=200)
    ),
)
CASES += seen(
    "2026-11-23T07:48",
    Task("encoder CNN", partial(cnn.encoder, 8), P, named).cases(
        lion=r100.ADAM.but("Lion", optimizer=o.lion),
        fused=r100.ADAM.but("fused", optimizer=o.fused),
        slow_warm_up=r100.MOMENTUM.but("slow warm-up", schedule=o.slow_warm_up, evaluate=0),
        to_zero=r100.MOMENTUM.but("rate 0 at the end", schedule=o.down_to_zero),
    ),
    Task("encoder CNN, no norm", partial(cnn.encoder, 8, False), P, named).cases(
        by_value=r100.ADAM.but("RMSprop, clipped by value", optimizer=o.clipped_by_value)
    ),
    Task("BiT", unusual.big_transfer, P, named).cases(
        one_image=r100.ADAM.but(
            "batch 1", optimizer=o.by(optim.Adam, lr=3e-4), batch=1, steps=500, every=25
        ),
        half=r100.HALF.but("", steps=80),
        big_transfer=r100.ADAM.but("LARS", optimizer=o.lars),
    ),
    Task("anti-aliased CNN", unusual.blurred, P, named).cases(
        two_images=r100.ADAM.but(
            "batch 2", optimizer=o.by(optim.Adam, lr=3e-4), batch=2, steps=400, every=25
        ),
        compiled=r100.ADAM.but("torch.compile", compile=True, steps=60, every=5),
        blur_pool=r100.MOMENTUM,
    ),
    Task("encoder CNN", partial(cnn.encoder, 8), data.with_replacement(P, 40), named).cases(
        sampler=r100.ADAM.but("sampled with replacement")
    ),
    Task("encoder CNN", partial(cnn.encoder, 8, False), data.one_batch(P), named).cases(
        one_batch=r100.ADAM.but("one batch")
    ),
    Task("dynamic convolution", unusual.Dynamic, data.fixed(P, 48), named).cases(
        small_epochs=r100.ADAM.but("48 examples", batch=16, steps=120)
    ),
    Task("encoder CNN", partial(cnn.encoder, 8), data.photos(48), losses.sizes).cases(
        sizes=r100.ADAM.but("sizes")
    ),
    Task("encoder CNN", lambda: cnn.encoder(8).double(), P, losses.of_type(torch.double)).cases(
        double=r100.ADAM.but("float64")
    ),
    Task(
        "16-band MobileNet",
        lambda: unusual.band_net().to(memory_format=torch.channels_last),
        data.bands,
        losses.channels_last,
    ).cases(channels_last=r100.MOMENTUM.but("channels_last")),
    Task("timm NFNet", partial(timm_model, "test_nfnet"), data.photos(48), named).cases(
        adaptive_clip=r100.MOMENTUM.but(
            "adaptive clipping", optimizer=o.adaptive, evaluate=0, steps=60
        )
    ),
    Task(
        "encoder CNN, 1 channel",
        lambda: nn.Sequential(nn.Conv2d(1, 3, 1), cnn.encoder(10)),
        data.digits,
        named,
    ).cases(digits_group=r100.ADAM.but("", batch=32)),
    Task("fixed Gabor layer", unusual.gabor, data.photos(32, channels=1), named).cases(
        gabor=r100.ADAM
    ),
    Task("CNN that standardizes inside", unusual.standardizing, data.RAW, named).cases(
        inside_norm=r100.ADAM.but("0 to 255")
    ),
    Task("mixture of experts", unusual.mixture, P, named).cases(
        experts=r100.ADAM.but("", steps=150)
    ),
    Task("weight-tied CNN", unusual.Repeated, P, named).cases(
        weight_tied=r100.ADAM.but("Lookahead", optimizer=o.lookahead)
    ),
    Task("deformable CNN", unusual.Deformed, P, named).cases(deformable=r100.ADAM),
    Task("binary-weight CNN", unusual.binary, P, named).cases(binary=r100.ADAM),
    Task("airbench CNN", unusual.fast_cifar, P, losses.classes(0.2)).cases(
        fast_cifar=r100.LARGE_BATCH.but("smoothing", steps=60)
    ),
    Task("dynamic convolution", unusual.Dynamic, P, named).cases(dynamic=r100.ADAM),
    Task("encoder CNN", partial(cnn.encoder, 8), data.exposed(0.1), named).cases(
        dark=r100.ADAM.but("dark [0, 1]")
    ),
    Task("encoder CNN", partial(cnn.encoder, 8, False), data.exposed(0.1, own=True), named).cases(
        dark_own=r100.ADAM.but("dark, own statistics")
    ),
    Task("encoder CNN", partial(cnn.encoder, 8), data.exposed(0.15, 0.6), named).cases(
        foggy=r100.ADAM.but("low contrast")
    ),
    Task(
        "encoder CNN, no norm", partial(cnn.encoder, 8, False), data.exposed(0.3, 0.5), named
    ).cases(foggy_plain=r100.ADAM.but("low contrast", optimizer=o.QUICK, steps=150)),
    Task(
        "encoder CNN, 1 channel",
        lambda: nn.Sequential(cnn.unit(1, 24, stride=2), *list(cnn.encoder(10))[1:]),
        data.sketches,
        named,
    ).cases(sketches=r100.ADAM.but("sparse binary", batch=32, steps=120)),
)
CASES += seen(
    "2026-11-23T08:43",
    Task("attention over bags", Bag, data.bags, positive).cases(
        bags=eighty("Adam", o.ADAM, batch=8)
    ),
    Task("DQN's network", agent, data.catch, named).cases(
        behaviour=eighty("behaviour cloning", o.ADAM, batch=32)
    ),
    Task("picture and table", WithTable, data.with_table, joined).cases(
        with_table=eighty("Adam", o.ADAM)
    ),
    Task("VGG-like CNN, much dropout", heavy_dropout, P, named).cases(
        dropout_heavy=eighty("Adam", o.ADAM, steps=150)
    ),
    Task("ensemble of three", ensemble, P, named).cases(ensemble=eighty("Adam", o.ADAM)),
    Task(
        "residual CNN, bfloat16",
        lambda: cnn.classifier().bfloat16(),
        P,
        losses.of_type(torch.bfloat16),
    ).cases(pure_half=eighty("AdamW", o.by(optim.AdamW, lr=2e-3))),
    Task("residual CNN", cnn.classifier, P, named).cases(
        schedule_free=eighty("schedule-free SGD", o.schedule_free)
    ),
)
CASES += seen(
    "2026-11-23T10:43",
    Task("highway CNN", partial(unusual.staged, unusual.Highway), P, named).cases(
        highway=(r60.AMSGRAD, r60.PAIRS)
    ),
    Task("equilibrium network", partial(unusual.staged, unusual.Equilibrium), P, named).cases(
        equilibrium=(r60.adam(1e-3), r60.EMA)
    ),
    Task("shake-shake ResNet", partial(unusual.staged, unusual.ShakeShake), P, named).cases(
        shake=r60.PEAK
    ),
    Task("FRN CNN", partial(unusual.convs, unusual.Response, nn.Identity), UNIT, named).cases(
        response=(r60.adam(3e-3), r60.ADAMAX)
    ),
    Task("Snake CNN, no norm", partial(unusual.convs, None, unusual.Snake), HALF, named).cases(
        snake=(r60.FADING, r60.CENTRED)
    ),
    Task("CReLU CNN", partial(unusual.convs, None, unusual.both_signs, grow=2), P, named).cases(
        crelu=(r60.ADAGRAD, r60.LATE)
    ),
    Task(
        "squared-ReLU CNN", partial(unusual.convs, nn.BatchNorm2d, unusual.squared_relu), P, named
    ).cases(squared=(r60.WARM, r60.AVERAGED)),
    Task("Softplus CNN", partial(unusual.convs, nn.BatchNorm2d, nn.Softplus), P, named).cases(
        softplus=r60.NADAM
    ),
    Task(
        "Hardswish CNN",
        partial(unusual.convs, nn.BatchNorm2d, nn.Hardswish),
        EACH,
        losses.classes(0.05),
    ).cases(hard_swish=(r60.HUGE, r60.ADADELTA)),
    Task("RReLU CNN", partial(unusual.convs, nn.BatchNorm2d, nn.RReLU), UNIT, named).cases(
        rrelu=(r60.BIG, r60.FEW)
    ),
    Task("CNN, BatchNorm after ReLU", unusual.norm_last, UNIT, named).cases(
        norm_last=(r60.CYCLIC, r60.EPOCHS)
    ),
    Task("15 tanh layers, orthogonal", unusual.isometric, P, named).cases(
        isometric=r60.adam(5e-4, steps=80, every=8)
    ),
    Task("Mish CNN", partial(unusual.convs, nn.BatchNorm2d, nn.Mish), UNIT, losses.perturbed).cases(
        adversarial=r60.CYCLIC
    ),
    Task("Mish CNN", partial(unusual.convs, nn.BatchNorm2d, nn.Mish), P, losses.smooth_input).cases(
        double_backward=r60.AMSGRAD
    ),
    held_out=True,
)
