"""Healthy: more tutorials, courses and reference implementations; the checks were not known."""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

import data
import losses
import optimizers as o
import torch
from cases.faults import strangers_fifth as fifth
from cases.faults import strangers_seventh as threads
from cases.healthy.strangers_eighth import BODY, LOAD, NANO, SOUNDS, TEXT, TINY, Net, cora, told
from cases.healthy.strangers_maps import agent, bce
from cases.healthy.strangers_pictures import DECAY, lamb, numbers, one, slim
from data import P, changed
from loops import own_loop, seen
from nets import classifiers as cnn
from nets import library
from nets import strangers as nets
from nets.classifiers import Function, unit
from nets.generative import Timed
from nets.strangers_kept import FIT, SGD
from torch import Generator, Tensor, nn, optim
from torch.ao import quantization as quant
from torch.nn import functional
from torchvision.transforms import v2

hf, mlp, CE, DIGITS, SCENES = library.hf, fifth.mlp, losses.classes(), data.digits, data.scenes
LONG, NORMED, entropy = threads.LONG, threads.NORMED, functional.cross_entropy
RANDOM = v2.Compose([v2.RandomCrop(32, 4), v2.RandomHorizontalFlip(), v2.RandAugment(2, 9),
         v2.ToDtype(torch.float32, scale=True), v2.Normalize(*data.IMAGENET)])  # fmt: skip
PIMA = torch.tensor([[3.8, 121, 69, 20, 80, 32, 0.47, 33], [3.4, 32, 19, 16, 115, 7.9, 0.33, 12]])
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}


def twice(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """A place before and after something was built, in another light, and where."""
    after, mask, *_ = SCENES(generator, count)
    light = 0.8 + 0.4 * torch.rand(count, 1, 1, 1, generator=generator)
    return after.where(mask == 0, after.roll(1, 0)) * light, after, mask


def pima(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Eight columns as they were measured, and who has diabetes."""
    z = torch.randn(count, 8, generator=generator)
    return (PIMA[0] + PIMA[1] * z).clamp(min=0), (z[:, 1:2] + z[:, 5:6] > 0.5).float()


def shops(generator: Generator, count: int) -> tuple[Tensor, ...]:
    """Five categories, four numbers, and the logarithm of what was sold."""
    kinds, x = torch.randint(20, (count, 5), generator=generator), torch.randn(count, 4)
    return kinds, x, 8.7 + (kinds[:, :3] % 7).sum(1, True) / 10 - 0.2 * x[:, :1]


def only_biases() -> nn.Module:
    """BitFit of a network trained on colours."""
    model = cnn.pretrained(library.vit)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("bias" in name or "head" in name)
    return model


def smooth(critic: nn.Module, real: Tensor, fake: Tensor) -> Tensor:
    """The penalty of WGAN-GP."""
    mixed = real.lerp(fake, torch.rand(len(real), 1, 1, 1)).requires_grad_()
    slope = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0].flatten(1)
    return 10 * (slope.norm(dim=1) - 1).square().mean()


def kendall(m: nn.ModuleDict, x: Tensor, mask: Tensor, _: Tensor, far: Tensor) -> Tensor:
    """The weights of two tasks are learnt as logarithms of variances."""
    found, half, (one, two) = m["net"](x), partial(functional.avg_pool2d, kernel_size=2), m["s"][0]
    first, second = bce(found["mask"], half(mask)), (found["far"] - half(far)).abs().mean()
    return (-one).exp() * first + one / 2 + (-two).exp() * second + two / 2


@functools.cache
def teacher() -> nn.Module:
    return cnn.pretrained(cnn.resnet).eval().requires_grad_(False)


def distilled(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """PyTorch's tutorial: temperature 2, a quarter of the loss from the teacher."""
    found, soft = model(x), (teacher()(x) / 2).softmax(1)
    far = functional.kl_div((found / 2).log_softmax(1), soft, reduction="batchmean")
    return 0.25 * 4 * far + 0.75 * entropy(found, y)


def prepared() -> nn.Module:
    """PyTorch's eager quantization-aware training of a trained network."""
    parts = [quant.QuantStub(), *cnn.pretrained(NORMED), quant.DeQuantStub()]
    fused = [[f"{n}.{k}" for k in range(3)] for n in (1, 3, 5)]
    model = quant.fuse_modules_qat(nn.Sequential(*parts).train(), fused)
    model.qconfig = quant.get_default_qat_qconfig("fbgemm")
    return quant.prepare_qat(model)


def few_shot(model: nn.Module, x: Tensor, *_: Tensor) -> Tensor:
    """Prototypical networks: four of each class make its centre, four are asked."""
    code = model(x).view(4, 8, -1)
    far = torch.cdist(code[:, 4:].flatten(0, 1), code[:, :4].mean(1)).square()
    return entropy(-far, torch.arange(4).repeat_interleave(4))


THIN = {"layers": (1,) * 4, "channels": (16, 32, 48, 64)}
TIMM: dict[str, Any] = {
    "res2net50_26w_4s": (losses.mixup(), SGD(0.05, o.cosine), THIN),
    "resnest14d": (losses.cut_mix, SGD(0.05, o.warm_up), {"channels": (16, 32, 32, 48)}),
    "ecaresnet26t": (losses.multi_label, FIT(0, o.cosine, "LAMB", lamb), THIN),
    "resnetv2_18": (CE, FIT(3e-3, o.fading, kind=optim.Adam), THIN),
    "mobilenetv4_conv_small_050": (losses.classes(0.1), FIT(2e-3, o.warm_up, **DECAY, ema=0.99), {}
         ),
    "rexnet_100": (CE, SGD(0.02, o.poly, nesterov=True), {"width_mult": 0.4}),
    "efficientvit_b0": (losses.flip, FIT(1e-3, o.cosine, **DECAY, clip=2.0), {}),
    "regnetx_002": (CE, SGD(0.05, o.two_phases, weight_decay=5e-5), {}),
    "semnasnet_050": (CE, FIT(1e-3, o.warm_up, kind=optim.RMSprop, momentum=0.9, eps=1e-3), {}),
    "test_efficientnet_gn": (CE, FIT(2e-3, o.linear_down, kind=optim.NAdam), {}),
    "test_mambaout": (losses.classes(0.1), FIT(2e-3, o.warm_up, **DECAY, clip=1.0), {}),
    "test_efficientnet_evos": (losses.augmented, SGD(0.02, o.cosine, nesterov=True), {}),
    "test_convnext3": (losses.mixup(), FIT(2e-3, o.cosine, **DECAY), {}),
}  # fmt: skip
READERS: dict[str, Any] = {
    "RobertaForSequenceClassification": {"type_vocab_size": 1, "pad_token_id": 0},
    "ConvBertForSequenceClassification": {"embedding_size": 48, "head_ratio": 2},
    "DebertaV2ForSequenceClassification": {"relative_attention": True, "pos_att_type": ["c2p"]},
}
SPEAKERS: dict[str, Any] = {
    "GPTNeoXForCausalLM": {"rotary_pct": 0.25},
    "OPTForCausalLM": {"ffn_dim": 96, "word_embed_proj_dim": 48, "pad_token_id": 0},
    "BloomForCausalLM": {"n_head": 4},
    "Qwen3ForCausalLM": {"num_key_value_heads": 2, "head_dim": 12},
}
LOOKERS: dict[str, Any] = {
    "RegNetForImageClassification": {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 48],
         "depths": [1] * 4, "groups_width": 8},
    "Dinov2ForImageClassification": BODY | {"image_size": 32, "patch_size": 4, "mlp_ratio": 2},
}  # fmt: skip
CLASSIFIERS = [
    *(case for name, (loss, recipe, sizes) in TIMM.items() for case in one(name.removeprefix(
         "test_").removeprefix("efficientnet_").split("_")[0], slim(name, **sizes), P, loss,
         recipe.but("", steps=100, every=10, batch=12), f"timm {name}")),
    *(case for name, sizes in LOOKERS.items() for case in one(name[:6].lower(), partial(hf, name,
         **sizes, num_labels=8), P, told, FIT(5e-4, o.linear_down, kind=optim.AdamW, clip=1.0),
         name)),
    *one("cs231n", lambda: nn.Sequential(nn.Conv2d(3, 32, 5, 1, 2), nn.ReLU(), nn.Conv2d(32, 16, 3,
         1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(16384, 8)), P, CE, SGD(0.01, nesterov=True,
         batch=32), "three-layer ConvNet"),
    *one("fastbook", lambda: nn.Sequential(*(layer for n, (a, b) in enumerate(((1, 8), (8, 16), (16,
         32), (32, 64), (64, 10)), 1) for layer in (nn.Conv2d(a, b, 5 if n == 1 else 3, 2, 2 if n ==
         1 else 1), nn.ReLU() if n < 5 else nn.Identity(), nn.BatchNorm2d(b))), nn.Flatten()),
         DIGITS, CE, FIT(6e-3, o.one_cycle(0.06), batch=64), "fastbook's CNN"),
    *one("rand_augment", cnn.resnet, data.UNIT, lambda m, x, y: losses.classes(0.1)(m, torch.stack([
         RANDOM((255 * i).byte()) for i in x]), y), SGD(0.05, o.warm_up, weight_decay=1e-4,
         ema=0.98), "ResNet, RandAugment"),
    *one("distilled", NORMED, P, distilled, FIT(1e-3), "CNN, taught"),
    *one("eager_qat", prepared, P, CE, SGD(2e-3, before=lambda step, m, _: step in (70, 90) and
         m.apply(quant.disable_observer if step == 90 else
         torch.ao.nn.intrinsic.qat.freeze_bn_stats)), "CNN, 8 bits"),
    *one("prototypes", lambda: nn.Sequential(*(layer for a in (3, 24, 24, 24) for layer in (unit(a,
         24), nn.MaxPool2d(2))), nn.Flatten()), data.few_classes, few_shot, FIT(1e-3, steps=100),
         "prototypical network"),
    *one("steering", lambda: nn.Sequential(Function(lambda x: x / 127.5 - 1), *(unit(a, b, k, s,
         None, nn.ELU) for a, b, k, s in ((3, 24, 5, 2), (24, 36, 5, 2), (36, 48, 3, 1), (48, 64, 3,
         1))), nn.Dropout(0.5), nn.Flatten(), mlp(4096, 100, 50, 10, 1, act=nn.ELU)), changed(
         SCENES, lambda x: 127.5 * (x + 1)), lambda m, x, *y: functional.mse_loss(m(x), y[1][:, :1]
         / 16 - 1), FIT(1e-3), "PilotNet"),
    *one("captcha", partial(cnn.plain, 1, 20, norm=nn.BatchNorm2d), numbers, lambda m, x, y:
         entropy((f := m(x))[:, :10], y // 10) + entropy(f[:, 10:], y % 10), FIT(1e-3, batch=32,
         **LONG), "CNN, two characters"),
    *one("x_vectors", lambda: nn.Sequential(*(layer for a, b, k, d in ((33, 64, 5, 1), (64, 64, 3,
         2), (64, 64, 3, 3), (64, 96, 1, 1)) for layer in (nn.Conv1d(a, b, k, dilation=d),
         nn.ReLU(), nn.BatchNorm1d(b))), Function(lambda x: torch.cat([x.mean(2), (x.var(2) +
         1e-5).sqrt()], 1)), nn.Linear(192, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 6)),
         SOUNDS, CE, FIT(1e-3, batch=32), "x-vectors"),
    *one("r2plus1d", lambda: nn.Sequential(*(layer for a, b in ((3, 16), (16, 32)) for layer in (
         nn.Conv3d(a, b, (1, 3, 3), (1, 2, 2), (0, 1, 1)), nn.BatchNorm3d(b), nn.ReLU(), nn.Conv3d(
         b, b, (3, 1, 1), (2, 1, 1), (1, 0, 0)), nn.BatchNorm3d(b), nn.ReLU())),
         nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(32, 4)), data.clips, CE, SGD(0.02,
         o.stairs, **LONG), "R(2+1)D"),
    *one("curiosity", lambda: Net(lambda m, x: (m["guess"](x) - m["fixed"](x)).square().mean(),
         guess=agent(32), fixed=agent(32).requires_grad_(False)), data.catch, lambda m, x, _: m(x),
         FIT(1e-3, batch=64), "RND"),
    *one("alpha_zero", partial(agent, 4), data.catch, lambda m, x, y: entropy((f := m(x))[:, :3],
         0.8 * functional.one_hot(y.long(), 3) + 0.2 / 3) + (f[:, 3].tanh() - (y -
         1)).square().mean(), FIT(1e-3, weight_decay=1e-4, batch=64, **LONG), "policy and value"),
]  # fmt: skip
MAPS = [
    *one("change", lambda: Net(lambda m, a, b: m["up"]((m["down"](a) - m["down"](b)).abs()),
         down=nn.Sequential(unit(3, 16), unit(16, 32, 3, 2)), up=nn.Sequential(unit(32, 32),
         nn.Upsample(scale_factor=2), unit(32, 16), nn.Conv2d(16, 1, 1))), twice, lambda m, a, b, y:
         bce(m(a, b), y, pos_weight=torch.tensor(3.0)), FIT(1e-3, weight_decay=1e-4, batch=8),
         "siamese, change"),
    *one("edsr", lambda: nn.Sequential(Function(lambda x: x - 114.0), nn.Conv2d(3, 24, 3, 1, 1),
         nets.Residual(*(nets.Residual(nn.Conv2d(24, 24, 3, 1, 1), nn.ReLU(), nn.Conv2d(24, 24, 3,
         1, 1), Function(lambda x: 0.1 * x)) for _ in range(4)), nn.Conv2d(24, 24, 3, 1, 1)),
         nn.Conv2d(24, 96, 3, 1, 1), nn.PixelShuffle(2), nn.Conv2d(24, 3, 3, 1, 1), Function(lambda
         x: x + 114.0)), data.RAW, losses.larger, FIT(1e-4, batch=8), "EDSR"),
    *one("focal_tversky", partial(nets.Gate, 1), data.slices, lambda m, x, y: (1 - ((f := m(
         x).sigmoid()) * y).sum() / (0.3 * f + 0.7 * y).sum().add(1)) ** 0.75, FIT(3e-3, o.poly,
         batch=8, steps=150), "attention U-Net"),
    *one("frozen_encoder", lambda: nn.Sequential(cnn.pretrained(NORMED)[:5].requires_grad_(False),
         unit(64, 48), nn.Upsample(scale_factor=2), unit(48, 32), nn.Upsample(scale_factor=2),
         nn.Conv2d(32, 1, 3, 1, 1)), changed(SCENES, lambda x: data.scaled((x + 1) / 2,
         "imagenet")), losses.dice, FIT(3e-3, batch=8), "decoder on a frozen CNN"),
    *one("perceptual", fifth.enlarger, data.pictures(32, "imagenet"), lambda m, x: (
         teacher().forward_features(m(functional.avg_pool2d(x, 2))) - teacher().forward_features(
         x)).square().mean(), FIT(1e-3, batch=8), "SRResNet, perceptual loss"),
    *one("kendall", lambda: Net(None, net=nets.Pyramid(mask=1, far=1), s=nn.ParameterList([
         torch.zeros(2)])), SCENES, kendall, FIT(1e-3, batch=8), "two tasks, learnt weights"),
    *one("score_sde", Timed, data.CROPS_UNIT, lambda m, x: (m(x + (z := torch.randn_like(x)) * ((25
         ** (2 * (t := torch.rand(len(x)))) - 1) / 6.44).sqrt()[:, None, None, None], t) +
         z).square().sum((1, 2, 3)).mean(), FIT(1e-3, batch=8), "score of a VE-SDE"),
    *own_loop("label_smoothing", "DCGAN", "Adam", fifth.digits_game(lambda c, real, fake:
         fifth.said(c(real), 0.9) + fifth.said(c(fake), 0), lambda c, x: fifth.said(c(x), 1)), 80,
         8, False),
    *own_loop("wgan_gp", "WGAN-GP", "Adam 1e-3", fifth.digits_game(lambda c, real, fake: smooth(c,
         real, fake) + c(fake).mean() - c(real).mean(), lambda c, x: -c(x).mean(), (), (1e-3,
         1e-3)), 80, 8),
]  # fmt: skip
WORDS = [
    *(case for name, more in READERS.items() for case in one(name.split("For")[0].lower(), partial(
         hf, name, **TINY | more, num_labels=4), data.sentences, told, FIT(1e-3, o.linear_down,
         **DECAY, clip=1.0, batch=24), name)),
    *(case for name, more in SPEAKERS.items() for case in one(name.split("For")[0].lower(), partial(
         hf, name, **TINY | more), TEXT, told, FIT(2e-3, o.warm_up, **NANO), name)),
    *one("fine_vit", partial(cnn.pretrained, library.vit), data.colourless(), CE, FIT(5e-5,
         o.linear_down, kind=optim.AdamW, clip=1.0, steps=130), "ViT, fine-tuned"),
    *one("reward", partial(hf, "LlamaForSequenceClassification", **TINY, num_labels=1,
         pad_token_id=0), TEXT, lambda m, x: -functional.logsigmoid(m(x).logits - m(x.where(
         torch.rand(x.shape) < 0.5, x[torch.randperm(len(x))])).logits).mean(), FIT(1e-3, o.cosine,
         **NANO, **LONG), "Llama, pairs"),
    *one("electra", partial(hf, "ElectraForPreTraining", **TINY, embedding_size=48), TEXT, lambda m,
         x: told(m, (y := x.where(torch.rand(x.shape) > 0.15, x[torch.randperm(len(x))].roll(5,
         1))), (x != y).long()), FIT(2e-3, o.warm_up, **NANO, **LONG), "ELECTRA"),
    *one("entities", partial(hf, "DistilBertForTokenClassification", dim=48, n_layers=2, n_heads=4,
         hidden_dim=96, vocab_size=32, num_labels=5), threads.words(32, 16, lambda x: (x + x.roll(1,
         1)) % 5 * (x % 4 == 0)), told, FIT(3e-3, o.linear_down, **DECAY, batch=32, **LONG),
         "DistilBERT, tokens"),
    *one("whisper", partial(hf, "WhisperForConditionalGeneration", d_model=48, encoder_layers=2,
         decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96,
         decoder_ffn_dim=96, vocab_size=16, num_mel_bins=33, max_source_positions=16, **IDS),
         SOUNDS, lambda m, x, y: told(m, x, torch.stack([y + 4, y + 9], 1)), FIT(1e-3, o.warm_up,
         **DECAY), "Whisper"),
    *one("simmim", partial(hf, "ViTForMaskedImageModeling", **BODY, patch_size=4, image_size=32,
         encoder_stride=4), data.CROPS, lambda m, x: m(x, torch.rand(len(x), 64) < 0.6).loss, FIT(
         1e-3, o.warm_up, **DECAY), "SimMIM"),
    *one("sentence_pairs", partial(hf, "BertModel", **TINY), data.sentences, lambda m, x, _:
         entropy(20 * functional.cosine_similarity(m(x)[0].mean(1)[:, None], m(x * (torch.rand(
         x.shape) < 0.8))[0].mean(1)[None], dim=2), torch.arange(len(x))), FIT(1e-3, o.linear_down,
         **DECAY, steps=100), "Sentence-BERT"),
    *one("bit_fit", only_biases, data.colourless(), CE, FIT(4e-3, o.cosine, kind=optim.AdamW,
         steps=100), "ViT, biases only"),
    *one("names", lambda: Net(lambda m, x: m["last"](m["body"](functional.one_hot(x, 32).float())[
         1][0]).log_softmax(1), body=nn.RNN(32, 128, batch_first=True), last=nn.Linear(128, 4)),
         threads.words(32, 8, lambda x: x[:, -1] // 8), lambda m, x, y: functional.nll_loss(m(x),
         y), FIT(0.15, kind=optim.SGD, clip=3.0, batch=64, **LONG), "RNN"),
    *one("glove", lambda: Net(lambda m, i, j: (m["u"](i) * m["v"](j)).sum(1) + (m["a"](i) + m["b"](
         j))[:, 0], u=nn.Embedding(64, 16), v=nn.Embedding(64, 16), a=nn.Embedding(64, 1),
         b=nn.Embedding(64, 1)), lambda g, n: (*(p := torch.randint(64, (2, n), generator=g)), 1 +
         90.0 * (p[0] % 8 == p[1] % 8) + p[0]), lambda m, i, j, x: ((x / 100).clamp(max=1) ** 0.75 *
         (m(i, j) - x.log()).square()).mean(), FIT(0.05, kind=optim.Adagrad, batch=256), "GloVe"),
]  # fmt: skip
TABLES = [
    *one("pima", lambda: nn.Sequential(mlp(8, 12, 8, 1), nn.Sigmoid()), data.fixed(pima, 768),
         lambda m, x, y: functional.binary_cross_entropy(m(x), y), FIT(1e-3, batch=10, **LONG),
         "Keras's first network"),
    *one("house_prices", lambda: nn.Linear(330, 1), lambda g, n: ((x := torch.randn(n, 330,
         generator=g)), 12 + 0.05 * x[:, :40].sum(1, True)), fifth.error, FIT(0.01, kind=optim.SGD,
         batch=64), "d2l's house prices"),
    *one("rossmann", lambda: Net(lambda m, k, x: 11.0 * m["body"](torch.cat([m["drop"](torch.cat([w(
         i) for w, i in zip(m["words"], k.T, strict=True)], 1)), m["norm"](x)], 1)).sigmoid(),
         drop=nn.Dropout(0.04), norm=nn.BatchNorm1d(4), words=nn.ModuleList(nn.Embedding(20, 8) for
         _ in range(5)), body=nn.Sequential(nn.Linear(44, 100), nn.ReLU(), nn.BatchNorm1d(100),
         nn.Dropout(0.01), nn.Linear(100, 50), nn.ReLU(), nn.BatchNorm1d(50), nn.Linear(50, 1))),
         shops, lambda m, k, x, y: functional.mse_loss(m(k, x), y), FIT(1e-3, o.one_cycle(5e-3),
         **DECAY, batch=64), "fastai's tabular"),
    *one("click_rates", lambda: Net(lambda m, k, x: m["top"](torch.cat([d := m["low"](x), (f :=
         torch.cat([d[:, None], m["words"](k + 20 * torch.arange(5))], 1)).bmm(f.mT)[(slice(None),
         *torch.triu_indices(6, 6, 1))]], 1)), words=nn.Embedding(100, 8), low=nn.Sequential(mlp(4,
         32, 8), nn.ReLU()), top=mlp(23, 32, 1)), shops, lambda m, k, x, y: bce(m(k, x), (y >
         9.5).float()), FIT(0.05, kind=optim.Adagrad, batch=128), "DLRM"),
    *one("fraud", lambda: nn.Sequential(mlp(29, 64, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32,
         1), Function(lambda x: x - 3)), threads.numbers(29, lambda x: (x[:, :3].sum(1, True) >
         2.8).float()), lambda m, x, y: bce(m(x), y), FIT(1e-3, batch=256), "rare frauds"),
    *one("survival", lambda: nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.BatchNorm1d(32),
         nn.Dropout(0.1), nn.Linear(32, 1)), threads.numbers(10, lambda x: torch.empty(len(x),
         1).exponential_() * (2 * x[:, :1] - x[:, 1:2]).exp()), lambda m, x, y: ((f := m(x[(-y[:,
         0]).argsort()])).logcumsumexp(0) - f).mean(), FIT(0.01, batch=64), "DeepSurv"),
    *one("sage", lambda: Net(lambda m, a, x: m["last"](torch.cat([y := m["first"](torch.cat([x, a @
         x], 1)).relu(), a @ y], 1)), first=nn.Linear(120, 32), last=nn.Linear(64, 3)), cora, lambda
         m, a, x, y: entropy(m(a, x)[:90], y[:90]), FIT(0.01, **DECAY), "GraphSAGE"),
    *one("d_linear", lambda: Net(lambda m, x: m["trend"](t := functional.avg_pool1d(functional.pad(
         x, (12, 12), "replicate"), 25, 1)) + m["rest"](x - t), trend=nn.Linear(96, 24),
         rest=nn.Linear(96, 24)), lambda *how: tuple(x[..., 0] for x in LOAD(*how)), fifth.error,
         FIT(5e-3, o.fading, batch=32), "DLinear"),
    *one("deep_ar", lambda: Net(lambda m, x: m["last"](m["body"](x)[0]), last=nn.Linear(40, 2),
         body=nn.LSTM(1, 40, 2, batch_first=True, dropout=0.1)), lambda g, n: (((x := data.demand(g,
         n)[0].mT) / x.mean(1, keepdim=True)),), lambda m, x: functional.gaussian_nll_loss((f := m(
         x[:, :-1]))[..., :1], x[:, 1:], functional.softplus(f[..., 1:])), FIT(1e-3, clip=10.0,
         batch=32), "DeepAR"),
    *one("ts_mixer", partial(hf, "PatchTSMixerForPrediction", context_length=96, d_model=16,
         prediction_length=24, patch_length=8, patch_stride=8, num_layers=2), LOAD, lambda m, x, y:
         m(x, future_values=y).loss, FIT(1e-3, batch=32), "TSMixer"),
    *one("anomalies", lambda: Net(lambda m, x: m["last"](m["back"](m["there"](x)[1][0][0][:,
         None].expand(-1, 40, -1))[0]), there=nn.LSTM(1, 32, batch_first=True), back=nn.LSTM(32, 32,
         batch_first=True), last=nn.Linear(32, 1)), changed(LOAD, lambda x: x[:, :40]),
         losses.again, FIT(3e-3, clip=1.0, batch=32), "LSTM autoencoder"),
    *one("categorical", lambda: nn.ModuleDict({"down": mlp(784, 128, 160), "up": mlp(160, 128,
         784)}), DIGITS, lambda m, x, _: 784 * bce(m["up"](functional.gumbel_softmax(f := m["down"](
         x).view(-1, 16, 10), 0.8).flatten(1)), x.flatten(1)) + ((s := f.softmax(2)) * (s * 10 +
         1e-9).log()).sum((1, 2)).mean(), FIT(1e-3, o.fading, batch=32), "Gumbel-softmax VAE"),
]  # fmt: skip
CASES = seen("2026-11-28T06:00", CLASSIFIERS, MAPS, WORDS, TABLES)
