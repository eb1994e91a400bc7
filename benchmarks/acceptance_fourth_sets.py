"""The trainings of the fourth set that share a loop: architectures, tasks and their recipes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import acceptance_fourth_blocks as blocks
import acceptance_fourth_generative as generative
import acceptance_fourth_library as library
import acceptance_fourth_loop as r
import acceptance_fourth_pictures as shown
import acceptance_fourth_plain as plain
import acceptance_fourth_signals as signals
import acceptance_third_data as data
from acceptance_case import HealthyCase, Loss, Recipe
from acceptance_data import Draw, clips, photos, scenes, spectrograms, tones
from acceptance_data import pictures as crops
from acceptance_later_data import points
from acceptance_tasks import centre, depth, larger, repaired
from acceptance_third_tuning import named
from torch import nn
from torch.nn import functional

P, UNIT, HALF, EACH = (photos(32, s) for s in ("imagenet", "unit", "half", "each"))
P64 = photos(64)
adam, staged, convs = r.adam, blocks.staged, plain.convs
Row = tuple[str, Callable[[], nn.Module], Draw, Loss, tuple[Recipe, ...]]


def small(recipe: Recipe, batch: int = 8, **options: object) -> Recipe:
    """For larger networks; the batch is named."""
    return replace(recipe, name=f"{recipe.name}, batch {batch}", batch=batch, **options)


def smooth(model: nn.Module, images: object, labels: object) -> object:
    return functional.cross_entropy(model(images), labels, label_smoothing=0.05)


BLOCKS: dict[str, Row] = {
    "cbam": ("CBAM ResNet", partial(staged, blocks.Cbam), P, named, (r.MOMENTUM, r.EPOCHS)),
    "eca": ("ECA ResNet", partial(staged, blocks.Eca), HALF, named, (r.CYCLIC, r.BIG)),
    "non_local": (
        *("non-local ResNet", partial(staged, blocks.NonLocal), P, named),
        (r.WARM, r.CENTRED),
    ),
    "res2": ("Res2Net", partial(staged, blocks.Res2), EACH, named, (r.NADAM, r.KEPT)),
    "involution": ("involution CNN", partial(staged, blocks.Involution), P, smooth, (r.LATE,)),
    "fractal": ("FractalNet", partial(staged, blocks.Fractal), UNIT, named, (r.FADING, r.MOMENTUM)),
    "highway": ("highway CNN", partial(staged, blocks.Highway), P, named, (r.AMSGRAD, r.PAIRS)),
    "ode": ("neural ODE", partial(staged, blocks.Ode), HALF, named, (r.RADAM, r.BETAS)),
    "equilibrium": (
        *("equilibrium network", partial(staged, blocks.Equilibrium), P, named),
        (adam(1e-3), r.EMA),
    ),
    "reversible": ("RevNet", partial(staged, blocks.Reversible), P, named, (r.ADAGRAD, r.HUGE)),
    "shake": ("shake-shake ResNet", partial(staged, blocks.ShakeShake), P, named, (r.PEAK,)),
    "latents": ("Perceiver", blocks.Latents, P, named, (r.WARM, r.FEW)),
}
PLAIN: dict[str, Row] = {
    "standardized": (
        *("weight-standardized CNN, GroupNorm", plain.standardized, P, named),
        (r.PAIRS, r.CYCLIC, r.MORE),
    ),
    "response": (
        *("FRN CNN", partial(convs, plain.Response, nn.Identity), UNIT, named),
        (adam(3e-3), r.ADAMAX),
    ),
    "switchable": (
        *("SwitchNorm CNN", partial(convs, plain.Switchable, nn.ReLU), P, named),
        (r.MOMENTUM, r.EMA),
    ),
    "snake": (
        *("Snake CNN, no norm", partial(convs, None, plain.Snake), HALF, named),
        (r.FADING, r.CENTRED),
    ),
    "crelu": (
        *("CReLU CNN", partial(convs, None, plain.both_signs, grow=2), P, named),
        (r.ADAGRAD, r.LATE),
    ),
    "squared": (
        *("squared-ReLU CNN", partial(convs, nn.BatchNorm2d, plain.squared_relu), P, named),
        (r.WARM, r.AVERAGED),
    ),
    "softplus": (
        *("Softplus CNN", partial(convs, nn.BatchNorm2d, nn.Softplus), P, named),
        (r.NADAM,),
    ),
    "hard_swish": (
        *("Hardswish CNN", partial(convs, nn.BatchNorm2d, nn.Hardswish), EACH, smooth),
        (r.HUGE, r.ADADELTA),
    ),
    "rrelu": (
        *("RReLU CNN", partial(convs, nn.BatchNorm2d, nn.RReLU), UNIT, named),
        (r.BIG, r.FEW),
    ),
    "celu": (
        *("CELU CNN, no norm", partial(convs, None, nn.CELU), P, generative.poly_one),
        (adam(2e-3, steps=100, every=10), r.WHOLE),
    ),
    "light": ("LightCNN", plain.max_feature, P, named, (r.KEPT, r.AMSGRAD)),
    "local_response": ("AlexNet with LRN", plain.local_response, HALF, named, (adam(1e-3),)),
    "norm_last": ("CNN, BatchNorm after ReLU", plain.norm_last, UNIT, named, (r.CYCLIC, r.EPOCHS)),
    "isometric": (
        *("15 tanh layers, orthogonal", plain.isometric, P, named),
        (adam(5e-4, steps=80, every=8),),
    ),
    "unit_variance": ("LSUV CNN", plain.unit_variance, P, named, (r.MOMENTUM, r.RADAM)),
    "re_zero": ("ReZero CNN", plain.re_zero, P, named, (r.PEAK, r.LATE)),
    "fixup": ("Fixup ResNet", plain.fixup, P, named, (adam(2e-3), r.ADAMAX)),
    "bag_net": ("BagNet", plain.bag_net, P, named, (r.MOMENTUM, r.HALF)),
    "spatial": ("SPP network", plain.spatial_pyramid, P, named, (r.FADING,)),
    "bilinear": ("bilinear CNN", plain.Bilinear, P, named, (r.BIG, r.NADAM)),
    "wavelets": ("Haar-wavelet CNN", plain.Wavelets, UNIT, named, (r.ADADELTA, r.WARM)),
    "coordinates": ("CoordConv", plain.coordinates, scenes, centre, (adam(3e-3), r.MOMENTUM)),
}
PICTURES: dict[str, Row] = {
    "nested": ("U-Net++", shown.Nested, scenes, shown.all_masks, (adam(2e-3), r.KEPT)),
    "link_net": ("LinkNet", shown.LinkNet, scenes, shown.tversky, (r.WARM,)),
    "link_depth": ("LinkNet", shown.LinkNet, scenes, depth, (r.CENTRED,)),
    "psp": ("PSPNet", shown.PyramidScene, scenes, shown.all_masks, (r.MOMENTUM, r.NADAM)),
    "bisenet": ("BiSeNet", shown.TwoPaths, scenes, shown.all_masks, (r.CYCLIC, r.EMA)),
    "hrnet": ("HRNet", shown.HighResolution, scenes, depth, (small(r.FADING),)),
    "erfnet": ("ERFNet", shown.Factorized, scenes, shown.all_masks, (adam(1e-3), r.BIG)),
    "u2net": ("U2-Net", shown.Regions, scenes, shown.tversky, (small(r.AMSGRAD),)),
    "red": ("RED-Net", shown.RedNet, crops(), repaired, (small(adam(1e-3)), small(r.PEAK))),
    "nafnet": ("NAFNet", shown.SimpleGate, UNIT, shown.unblurred, (small(r.WARM),)),
    "naf_noise": ("NAFNet", shown.SimpleGate, crops(), repaired, (small(r.LATE),)),
    "rcan": ("RCAN", shown.ChannelAttention, crops(32, "unit"), larger, (adam(1e-3), r.FEW)),
    "srcnn": ("SRCNN", shown.srcnn, crops(32, "unit"), shown.sharpened, (small(adam(1e-3)),)),
    "aod": ("AOD-Net", shown.Hazy, crops(32, "unit"), shown.hazed, (adam(2e-3), r.RADAM)),
    "beta_vae": (
        *("beta-VAE", generative.BetaVae, crops(32, "unit"), generative.beta),
        (adam(1e-3, steps=100, every=10), r.ADAMAX),
    ),
    "wae": (
        "WAE-MMD",
        partial(generative.BetaVae, True),
        crops(32, "unit"),
        generative.wasserstein_codes,
        (r.FADING,),
    ),
    "glow": ("Glow", generative.Glow, HALF, generative.unlikely, (r.BETAS, small(r.AMSGRAD))),
    "score": ("NCSN", generative.Score, HALF, generative.denoising_score, (small(adam(1e-3)),)),
    "angle": (
        *("Mish CNN", partial(generative.Turned, 2), HALF, generative.angle),
        (adam(3e-3, steps=100, every=10),),
    ),
    "adversarial": (
        *("Mish CNN", partial(generative.Turned, 8), UNIT, generative.perturbed),
        (r.CYCLIC,),
    ),
    "double_backward": (
        *("Mish CNN", partial(generative.Turned, 8), P, generative.smooth_input),
        (r.AMSGRAD,),
    ),
    "ordinal": (
        *("Mish CNN", partial(generative.Turned, 8), P, generative.ordinal),
        (r.EPOCHS,),
    ),
    "quantiles": (
        *("Mish CNN", partial(generative.Turned, 3), P, generative.quantiles),
        (r.LATE,),
    ),
}
SIGNALS: dict[str, Row] = {
    "eeg": ("EEGNet", signals.Eeg, data.gestures, named, (adam(3e-3), r.HUGE)),
    "sinc": ("SincNet (1-D)", signals.Sinc, tones(512), named, (adam(2e-3),)),
    "wave_unet": ("Wave-U-Net (1-D)", signals.WaveUnet, data.mixtures, signals.apart, (r.PEAK,)),
    "demucs": ("Demucs (1-D)", signals.Gated, data.mixtures, signals.apart, (r.FADING,)),
    "quartz": ("QuartzNet (1-D)", signals.Separable, tones(512), named, (r.WARM, r.CYCLIC)),
    "sample": ("SampleCNN (1-D)", signals.sample_cnn, tones(729), named, (r.KEPT, r.ADADELTA)),
    "lstm_fcn": ("LSTM-FCN (1-D)", signals.LstmFcn, data.gestures, named, (r.NADAM,)),
    "broadcast": ("BC-ResNet", signals.Broadcast, spectrograms, named, (r.MOMENTUM, r.EMA)),
    "fourier": ("FNet (1-D)", signals.Fourier, tones(512), named, (r.WARM,)),
    "conv_gru": ("ConvGRU", signals.ConvGru, clips, signals.next_frame, (small(adam(1e-3)),)),
    "slow_fast": ("SlowFast (3-D)", signals.SlowFast, library.panned, named, (r.FADING,)),
    "shifted": ("TSM", signals.Shifted, library.panned, named, (small(adam(2e-3)),)),
    "dense_3d": ("3-D DenseNet", signals.Dense3d, data.voxels, named, (r.LATE,)),
    "edges": ("DGCNN", signals.Edges, points, named, (small(adam(2e-3)),)),
}
NET = library.timm_net
LIBRARY: dict[str, Row] = {
    "tv_mobile": ("torchvision MobileNet v3", library.mobilenet_v3, P64, named, (adam(3e-3),)),
    "tv_video": (
        *("torchvision R3D", library.video_resnet, library.panned, named),
        (small(r.WARM, 12, steps=40, every=8),),
    ),
    "tv_mixed": (
        *("torchvision MC3", partial(library.video_resnet, True), library.panned, named),
        (small(r.MOMENTUM, 12, steps=40, every=8),),
    ),
    "tv_swin_3d": (
        "torchvision Video Swin",
        library.swin_3d,
        library.panned,
        named,
        (small(r.WARM),),
    ),
    "tv_fcn": ("torchvision FCN", library.fcn, scenes, library.masked_out, (small(r.FADING),)),
    "tv_raft": (
        *("torchvision RAFT", library.optical_flow, library.moved, library.updates),
        (small(r.WARM, 2, steps=36),),
    ),
    "tv_fpn": ("semantic FPN", library.Panoptic, scenes, shown.all_masks, (small(r.MOMENTUM),)),
    "hf_cvt": ("transformers CvT", library.cvt, P, library.labelled, (r.WARM,)),
    "hf_dino": ("transformers DINOv2", library.dino_v2, P, library.labelled, (r.LATE,)),
    "hf_pool": ("transformers PoolFormer", library.pool_former, P, library.labelled, (r.PEAK,)),
    "hf_hg": ("transformers HGNet v2", library.hg_net, P64, library.labelled, (small(r.CYCLIC),)),
    "hf_ast": (
        *("transformers AST", library.spectrogram_transformer, spectrograms, library.heard),
        (adam(1e-3),),
    ),
    "hf_backbone": (
        *("transformers ResNet backbone", library.Pairs, scenes, shown.all_masks),
        (adam(1e-3),),
    ),
    "ghost": ("timm GhostNet", partial(NET, "ghostnet_050"), P64, named, (small(r.FADING),)),
    "dla": ("timm DLA", partial(NET, "dla46_c"), P64, named, (r.WARM,)),
    "vovnet": ("timm VoVNet", partial(NET, "ese_vovnet19b_slim_dw"), P64, named, (small(r.PEAK),)),
    "levit": ("timm LeViT", partial(NET, "levit_conv_128s", img_size=64), P64, named, (r.WARM,)),
    "mobilenet_4": (
        *("timm MobileNet v4", partial(NET, "mobilenetv4_conv_small_035"), P64, named),
        (r.BIG,),
    ),
    "efficient_vit": (
        *("timm EfficientViT", partial(NET, "efficientvit_b0"), P64, smooth),
        (small(r.WARM),),
    ),
    "inception_next": (
        *("timm InceptionNeXt", partial(NET, "inception_next_atto"), P64, named),
        (small(r.LATE),),
    ),
    "convit": ("timm ConViT", partial(NET, "convit_tiny", img_size=64), P64, named, (r.FEW,)),
}


def spread(rows: dict[str, Row]) -> dict[str, HealthyCase]:
    """One case per architecture and recipe; the second and later ones have a number."""
    found = {}
    for name, (architecture, make, draw, loss, recipes) in rows.items():
        for number, recipe in enumerate(recipes, 1):
            own = name if number == 1 else f"{name}_{number}"
            note = getattr(loss, "__name__", "") if loss not in (named, library.labelled) else ""
            made = r.Trained(make, draw, loss, recipe)
            found[own] = made.case(architecture, note.replace("_", " "))
    return found


SHARED = spread(BLOCKS | PLAIN | PICTURES | SIGNALS | LIBRARY)
