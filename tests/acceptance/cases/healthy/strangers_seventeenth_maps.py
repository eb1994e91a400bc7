"""Healthy: pictures, maps and volumes of a seventeenth set; the checks were not known."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.healthy.strangers_eighth import Net, told
from cases.healthy.strangers_maps import bce, projected, soft_tissue
from cases.healthy.strangers_pictures import DECAY, NESTEROV, numbers, one
from data import P64, P, changed
from loops import Losses, descend, duel, own_loop, seen
from nets import classifiers as cnn
from nets import generative, library
from nets.dense import UNet
from nets.strangers import Residual
from nets.strangers_kept import FIT, SGD
from timm import models as timm
from torch import Generator, nn, optim
from torch.nn import functional
from torchvision import models

SCENES, UNITS, S, cat, CE = data.scenes, data.CROPS_UNIT, nn.Sequential, torch.cat, losses.classes()
mse, entropy, hf, unit = functional.mse_loss, functional.cross_entropy, library.hf, cnn.unit
conv, line, deconv, half, act = nn.Conv2d, nn.Linear, nn.ConvTranspose2d, nn.MaxPool2d(2), nn.ReLU()
resize, leaky, up = functional.interpolate, partial(nn.LeakyReLU, 0.2), nn.Upsample(scale_factor=2)
FLAT, SHORT, DIMS, BODY = [1] * 4, {"steps": 80, "every": 8}, (16, 24, 32, 48), library.BODY
LONG, conv3 = {"steps": 182, "every": 13}, nn.Conv3d
TIMM: dict[str, Any] = {
    "inception_next": (losses.classes(0.1), FIT(2e-3, o.warm_up, **DECAY), lambda: timm.MetaNeXt(
        num_classes=8, depths=(1, 1, 2, 1), dims=DIMS)),
    "mamba_out": (losses.mixup(), FIT(1e-3, o.warm_up, **DECAY, clip=1.0), lambda:
        timm.mambaout.MambaOut(num_classes=8, depths=(1, 1, 2, 1), dims=DIMS)),
    "res2net": (losses.flip, SGD(0.05, o.stairs, batch=12), lambda: timm.ResNet(
        timm.res2net.Bottle2neck, FLAT, 8, base_width=26, channels=DIMS, stem_width=16)),
    "res_nest": (losses.mixup(), FIT(0.02, o.two_phases, **NESTEROV, batch=24), lambda: timm.ResNet(
        timm.resnest.ResNestBottleneck, FLAT, 8, stem_type="deep", stem_width=12, avg_down=True,
        channels=DIMS, zero_init_last=False, block_args={"radix": 2, "avd": True})),
    "vov_net": (losses.augmented, SGD(0.05, o.cosine, weight_decay=1e-4), lambda: timm.VovNet({
        "stem_chs": [16, 16, 24], "stage_conv_chs": [16, 20, 24, 28], "stage_out_chs": [32, 48, 64,
        80], "layer_per_block": 3, "block_per_stage": FLAT, "residual": True, "depthwise": False,
        "attn": "ese"}, num_classes=8)),
    "efficient_vit": (losses.classes(0.1), FIT(1e-3, o.warm_up, **DECAY, clip=2.0), lambda:
        timm.EfficientVit(widths=(8, 16, 24, 32, 48), depths=(1, 1, 1, 2, 2), head_dim=8,
        head_widths=(128, 128), num_classes=8)),
    "big_transfer": (losses.mixup(0.1), SGD(0.03, o.ramp), lambda: timm.ResNetV2(FLAT, (32, 64, 96,
        128), 8, stem_chs=16, norm_layer=partial(library.timm.layers.GroupNormAct, num_groups=8))),
    "fast_vit": (losses.cut_mix, FIT(2e-3, o.cosine, **DECAY, ema=0.99, batch=12), lambda:
        timm.FastVit(layers=FLAT, token_mixers=("repmixer",) * 3 + ("attention",), embed_dims=(16,
        32, 64, 128), num_classes=8)),
}  # fmt: skip
HUGGING: dict[str, Any] = {
    "Cvt": (P64, FIT(1e-3, o.warm_up, **DECAY), {"embed_dim": [16, 32, 48], "num_heads": [1, 2, 3],
        "depth": [1, 2, 3], "mlp_ratio": [2.0] * 3}),
    "RegNet": (P64, FIT(0.05, o.cosine, **NESTEROV), {"embedding_size": 16, "hidden_sizes": [24, 32,
        48, 64], "depths": FLAT, "groups_width": 8}),
    "PoolFormer": (P64, FIT(1e-3, o.warm_up, **DECAY), {"hidden_sizes": list(DIMS), "depths": FLAT,
        "mlp_ratio": 4.0, "drop_path_rate": 0.0}),
    "TextNet": (P64, FIT(1e-3, o.linear_down, kind=optim.AdamW, weight_decay=0.01), {
        "stem_out_channels": 16, "hidden_sizes": [16, *DIMS], "conv_layer_kernel_sizes": [[[3, 3]]]
        * 4, "conv_layer_strides": [[2]] * 4}),
    "Segformer": (P64, FIT(1e-3, o.warm_up, **DECAY), {"hidden_sizes": list(DIMS), "depths": FLAT,
        "num_attention_heads": [1, 1, 2, 3], "mlp_ratios": FLAT}),
    "Dinov2": (P, FIT(5e-4, o.linear_down, kind=optim.AdamW, weight_decay=0.01), library.SMALL),
}  # fmt: skip


def dcgan(place: Path, seed: int) -> Losses:
    maker = S(*(z for a, b, s in ((64, 64, 1), (64, 48, 2), (48, 24, 2)) for z in (deconv(a, b, 4,
        s, s // 2), nn.BatchNorm2d(b), leaky())), deconv(24, 3, 4, 2, 1), nn.Tanh())  # fmt: skip
    critic = S(*(z for a, b in ((3, 24), (24, 48)) for z in (unit(a, b, 5, 2, None, leaky),
        nn.Dropout(0.3))), nn.Flatten(), line(3072, 1))  # fmt: skip

    def step(_: int, random: Generator, first: optim.Optimizer, second: optim.Optimizer) -> float:
        (x,), fake = data.CROPS(random, 24), maker(torch.randn(24, 64, 1, 1))
        right, wrong = critic(x), critic(fake.detach())
        loss = descend(second, bce(right, right * 0 + 1) + bce(wrong, wrong * 0))
        return (loss, descend(first, bce(z := critic(fake), z * 0 + 1)))[0]

    return duel(place, seed, (maker, critic), (1e-4, 1e-4), step, 120, 10, (0.9, 0.999))


CASES = seen("2026-11-28T14:55",
    *(one(name, make, data.photos(48 if "res" in name else 64), loss, recipe.but("",
         **SHORT), f"timm {name}") for name, (loss, recipe, make) in TIMM.items()),
    *(one(name.lower(), partial(hf, f"{name}ForImageClassification", **sizes, num_labels=8), draw,
         told, recipe.but("", **SHORT), f"transformers {name}") for name, (draw, recipe, sizes) in
         HUGGING.items()),
    one("sim_mim", partial(hf, "ViTForMaskedImageModeling", **library.SMALL, encoder_stride=4), P,
         lambda m, x, _: m(x, bool_masked_pos=torch.rand(len(x), 64).argsort(1) < 38).loss, FIT(
         8e-4, o.warm_up, **DECAY, clip=5.0), "SimMIM"),
    one("vjepa2", partial(hf, "VJEPA2ForVideoClassification", **BODY, crop_size=24, patch_size=6,
         frames_per_clip=8, mlp_ratio=2, num_pooler_layers=1, pred_hidden_size=48, num_labels=8,
         pred_num_attention_heads=4, pred_num_hidden_layers=1), data.panned, lambda m, x, y: told(
         lambda x, labels: m(x, labels=labels), x.transpose(1, 2), y), FIT(1e-3, o.warm_up, **DECAY,
         batch=8), "V-JEPA 2, classifier"),
    one("tr_ocr", lambda: library.transformers.VisionEncoderDecoderModel(encoder=hf("ViTModel",
         **BODY, image_size=(28, 56), patch_size=7, num_channels=1), decoder=hf("TrOCRForCausalLM",
         d_model=48, vocab_size=13, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=96,
         max_position_embeddings=8, cross_attention_hidden_size=48)), numbers, lambda m, x, y:
         entropy(m(x, decoder_input_ids=torch.stack([y * 0 + 11, y // 10, y % 10], 1)).logits.mT,
         torch.stack([y // 10, y % 10, y * 0 + 12], 1)), FIT(1e-3, o.linear_down, kind=optim.AdamW,
         weight_decay=1e-4, **LONG), "TrOCR"),
    one("shuffle_net", lambda: models.ShuffleNetV2([1, 2, 1], [16, 24, 48, 96, 128], 8), P64,
         losses.classes(0.1), SGD(0.05, o.two_phases, weight_decay=2e-5), "torchvision ShuffleNet"),
    one("keras_mlp", lambda: S(nn.Flatten(), *(z for a in (784, 512) for z in (line(a, 512), act,
         nn.Dropout(0.2))), line(512, 10)), data.digits, CE, FIT(1e-3, kind=optim.RMSprop,
         batch=128), "Keras' MLP of MNIST"),
    one("keras_mnist", lambda: S(conv(1, 32, 3), act, half, conv(32, 64, 3), act, half,
         nn.Flatten(), nn.Dropout(), line(1600, 10)), data.digits, CE, FIT(1e-3, batch=64),
         "Keras' convnet of MNIST"),
    one("mnist_example", cnn.tutorial, changed(data.digits, lambda x: (x - 0.1307) / 0.3081), CE,
         FIT(1, o.stairs, kind=optim.Adadelta, batch=64), "PyTorch's example of MNIST"),
    one("ssd", lambda: models.detection.ssd.SSD(library.Pyramid(nn.BatchNorm2d), k :=
         models.detection.ssd.DefaultBoxGenerator([[2], [2]], scales=[0.2, 0.4, 0.7]), (64, 64), 2,
         head=models.detection.ssd.SSDHead([32, 32], k.num_anchors_per_location(), 2)), SCENES,
         library.found, SGD(2e-3, o.stairs, weight_decay=5e-4, batch=8), "torchvision SSD"),
    one("deep_lab_plus", lambda: Net(lambda m, x: (z := m["body"](x), resize(m["last"](cat([m[
         "low"](z["low"]), resize(m["aspp"](z["out"]), z["low"].shape[2:], mode="bilinear")], 1)), (
         32, 32), mode="bilinear"))[1], body=models._utils.IntermediateLayerGetter(cnn.resnet(
         output_stride=8), {"layer1": "low", "layer4": "out"}), low=unit(16, 12, 1), last=S(unit(44,
         32), conv(32, 2, 1)), aspp=models.segmentation.deeplabv3.ASPP(64, [2, 4, 6], 32)), SCENES,
         losses.two_classes, SGD(0.01, o.poly, weight_decay=1e-4), "DeepLab v3+"),
    one("nested", lambda: Net(lambda m, x: (a := m["a"](x), b := m["b"](half(a)), c := m["c"](half(
         b)), d := m["d"](cat([a, up(b)], 1)), e := m["e"](cat([b, up(c)], 1)), f := m["f"](cat([a,
         d, up(e)], 1)), [m["p"](d), m["q"](f)])[-1], **{k: S(unit(n, w), unit(w, w)) for k, n, w in
         zip("abcdef", (3, 12, 24, 36, 72, 48), (12, 24, 48, 12, 24, 12), strict=True)}, p=conv(12,
         1, 1), q=conv(12, 1, 1)), SCENES, lambda m, x, *y: sum(losses.dice(k := lambda _, h=h: h,
         x, *y) + losses.masks(k, x, *y) / 2 for h in m(x)), FIT(1e-3, batch=8), "UNet++"),
    one("tversky", partial(UNet, 3, 1, 12), SCENES, lambda m, x, y, *_: (p := m(x).sigmoid(), k := [
         z.sum((1, 2, 3)) for z in (p * y, y - p * y, p - p * y)], ((1 - (k[0] + 1) / (k[0] + 0.7 *
         k[1] + 0.3 * k[2] + 1)) ** 0.75).mean())[2], FIT(3e-3, o.fading, batch=8),
         "U-Net, focal Tversky"),
    one("v_net", lambda: Net(lambda m, x: (a := m["a"](x), b := m["b"](m["down"](a)), m["last"](m[
         "c"](cat([a, m["up"](b)], 1))))[2], **{k: Residual(conv3(n, w, 5, 1, 2), nn.BatchNorm3d(w),
         nn.PReLU(w), skip=conv3(n, w, 1)) for k, n, w in (("a", 1, 8), ("b", 16, 16), ("c", 16,
         8))}, down=S(conv3(8, 16, 2, 2), nn.PReLU(16)), up=nn.ConvTranspose3d(16, 8, 2, 2),
         last=conv3(8, 1, 1)), soft_tissue, lambda m, x, y: (p := m(x).sigmoid(), 1 - 2 * (p *
         y).sum() / ((p**2).sum() + y.sum() + 1e-5))[1], FIT(1e-3, o.fading, weight_decay=1e-5,
         batch=2, **SHORT), "V-Net, Dice with squares"),
    one("cell_pose", partial(UNet, 3, 3, 16), SCENES, lambda m, x, y, d, _: (k := d[:, :2, None,
         None] - torch.stack(torch.meshgrid(*[torch.arange(32.0)] * 2, indexing="xy")), z := m(x),
         mse(z[:, :2], 5 * y * functional.normalize(k)) / 2 + bce(z[:, 2:], y))[2], FIT(0.2, o.ramp,
         kind=optim.SGD, momentum=0.9, nesterov=True, weight_decay=1e-5, batch=8), "Cellpose"),
    one("changes", lambda: Net(lambda m, x, y: (a := m["a"](x), c := m["a"](y), b := m["b"](a) - m[
         "b"](c), m["last"](cat([(a - c).abs(), m["up"](b.abs())], 1)))[3], a=S(unit(3, 16), unit(
         16, 16)), b=S(half, unit(16, 32), unit(32, 32)), up=deconv(32, 16, 2, 2), last=S(unit(32,
         16), nn.Dropout2d(0.2), conv(16, 1, 1))), lambda g, n: (z := SCENES(g, n), k := data.CROPS(
         g, n)[0], z[0], z[0].lerp(k, z[1]) + 0.1 * torch.randn_like(k), z[1])[2:], lambda m, x, k,
         y: bce(m(x, k), y), FIT(1e-3, o.fading, batch=8), "FC-Siam-diff"),
    one("kendall", lambda: Net(lambda m, x: m["net"](x), net=UNet(3, 2, 12), s=nn.ParameterList([
         torch.zeros(2)])), SCENES, lambda m, x, y, _, z: (k := m(x), s := m["s"][0], (-s[0]).exp()
         * bce(k[:, :1], y) + (-s[1]).exp() * (k[:, 1:] - z).abs().mean() + s.sum() / 2)[2], FIT(
         1e-3, o.stairs, batch=8), "two tasks, learned weights"),
    one("edsr", lambda: S(conv(3, 32, 3, 1, 1), Residual(*(Residual(conv(32, 32, 3, 1, 1), act,
         conv(32, 32, 3, 1, 1)) for _ in range(4)), conv(32, 32, 3, 1, 1)), conv(32, 128, 3, 1, 1),
         nn.PixelShuffle(2), conv(32, 3, 3, 1, 1)), changed(UNITS, lambda x: 255 * (x -
         torch.tensor([0.449, 0.437, 0.404])[:, None, None])), losses.larger, FIT(1e-4, o.stairs,
         batch=8), "EDSR, 255 levels"),
    one("sr_resnet", lambda: S(conv(3, 32, 9, 1, 4), nn.PReLU(), Residual(*(Residual(unit(32, 32,
         act=nn.PReLU), conv(32, 32, 3, 1, 1), nn.BatchNorm2d(32)) for _ in range(4)), conv(32, 32,
         3, 1, 1), nn.BatchNorm2d(32)), conv(32, 128, 3, 1, 1), nn.PixelShuffle(2), nn.PReLU(),
         conv(32, 3, 9, 1, 4), nn.Tanh()), data.CROPS, lambda m, x: mse(m(data.scaled(resize(x / 2 +
         0.5, (16, 16), mode="area"), "imagenet")), x), FIT(1e-4, batch=8), "SRResNet"),
    one("slow_fast", lambda: Net(lambda m, x: (a := m["a"](x[:, :, ::4]), b := m["b"](x), c := m[
         "c"](cat([a, m["side"](b)], 1)), d := m["d"](b), m["last"](cat([c.mean((2, 3, 4)), d.mean((
         2, 3, 4))], 1)))[4], **{k: S(conv3(n, w, (t, 3, 3), (1, 2, 2), (t // 2, 1, 1)),
         nn.BatchNorm3d(w), nn.ReLU()) for k, n, w, t in (("a", 3, 32, 1), ("b", 3, 8, 5), ("c", 48,
         64, 3), ("d", 8, 16, 3))}, side=conv3(8, 16, (5, 1, 1), (4, 1, 1), (2, 0, 0)), last=S(
         nn.Dropout(), line(80, 8))), data.panned, CE, FIT(0.05, o.two_phases, **NESTEROV),
         "SlowFast"),
    one("ncsn", generative.Timed, UNITS, lambda m, x: (t := torch.rand(len(x)), s := 0.01 ** t[:,
         None, None, None], e := torch.randn_like(x), ((m(x + s * e, t) + e) ** 2).sum((1, 2,
         3)).mean() / 2)[3], FIT(1e-3, ema=0.999, batch=12), "NCSN, scores over deviations"),
    one("beta_vae", lambda: nn.ModuleDict({"down": S(*(unit(a, b, 3, 2, act=nn.LeakyReLU) for a, b
         in ((3, 16), (16, 32), (32, 64))), nn.Flatten(), line(1024, 64)), "up": S(line(32, 1024),
         nn.Unflatten(1, (64, 4, 4)), *(z for a, b in ((64, 32), (32, 16), (16, 16)) for z in (
         deconv(a, b, 3, 2, 1, 1), nn.BatchNorm2d(b), nn.LeakyReLU())), conv(16, 3, 3, 1, 1),
         nn.Tanh())}), UNITS, lambda m, x: (f := m["down"](x).chunk(2, 1), mse(m["up"](f[0] + (f[1]
         / 2).exp() * torch.randn_like(f[0])), x) - 2.5e-4 * (1 + f[1] - f[0] ** 2 - f[
         1].exp()).sum(1).mean() / 2)[1], FIT(5e-3, o.fading), "PyTorch-VAE"),
    one("vic_reg", projected, data.pictures(40), lambda m, x: (z := [m(v) for v in
         losses.both_views(x)], 25 * mse(*z) + sum(25 * (1 - (k.var(0) + 1e-4).sqrt()).relu().mean()
         / 2 + (k.T.cov().fill_diagonal_(0) ** 2).sum() / 32 for k in z))[1], FIT(0.3, o.warm_up,
         kind=library.timm.optim.Lars, momentum=0.9, weight_decay=1e-4, batch=32, **SHORT),
         "VICReg"),
    one("distilled", lambda: nn.ModuleDict({"own": cnn.small_classifier(), "big": cnn.pretrained(
         cnn.resnet).requires_grad_(False)}), P, lambda m, x, y: (z := m["own"](x), 0.1 * entropy(z,
         y) + 0.9 * 16 * functional.kl_div((z / 4).log_softmax(1), (m["big"](x) / 4).softmax(1),
         reduction="batchmean"))[1], FIT(1e-3, watched=lambda m: m["own"], prepare=lambda m: m[
         "big"].eval()), "distillation"),
    own_loop("dcgan", "DCGAN, TensorFlow's tutorial", "Adam 1e-4", dcgan, 120, 10, False),
)  # fmt: skip
