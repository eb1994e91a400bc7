"""The rows of attention are those of an eager softmax, in the networks that people train."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from attending_networks import slow_path
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from fmapboard.capture import passes
from fmapboard.capture.attention import PEAK_ROWS, ROWS, AttentionRows
from fmapboard.capture.hooks import HookRegistry
from fmapboard.capture.passes import CaptureListener, Side
from fmapboard.model.layers import WatchedLayers
from fmapboard.records import LayerCall

pytestmark = pytest.mark.slow

IMAGES = (2, 3, 32, 32)
TOLERANCE = 1e-6


@pytest.fixture(autouse=True)
def as_in_a_process_without_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once other tests have used it, attention is read in a pass of its own."""
    monkeypatch.setattr(passes, "is_compile_used", bool)


@dataclass
class Rows(CaptureListener):
    """The rows of a pass, by name of the layer."""

    rows: dict[str, Tensor] = field(default_factory=dict)
    shapes: set[str] = field(default_factory=set)

    def captured(self, layer_call: LayerCall, side: Side, value: Any, module: nn.Module) -> None:
        if isinstance(value, AttentionRows):
            assert layer_call.part is not None
            with torch.no_grad():
                self.rows[layer_call.label] = value.read().values
            self.shapes.add(layer_call.group)


Matrices = Mapping[str, Tensor]
"""Name of a watched attention module -> its attention [N, H, T, K]."""


@dataclass(frozen=True)
class Case:
    """A network, what it is called with, and how its attention is found in another way."""

    build: Callable[[], nn.Module]
    arguments: Callable[[], dict[str, Any]]
    eager: Callable[[nn.Module, dict[str, Any], list[str]], Matrices]
    shape: str
    count: int
    causal: tuple[str, ...] = ()


def images(name: str = "x") -> Callable[[], dict[str, Any]]:
    return lambda: {name: torch.randn(IMAGES)}


def ids(**more: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {"input_ids": torch.randint(2, 40, (2, 9)), **more}


def of_timm(model: nn.Module, arguments: dict[str, Any], names: list[str]) -> Matrices:
    """What the dropout of eager attention receives; windows follow one another."""
    seen: dict[str, Tensor] = {}
    for name in names:
        module = model.get_submodule(name)
        module.fused_attn = False
        drop: Any = module.attn_drop
        drop.register_forward_pre_hook(lambda _, args, name=name: seen.update({name: args[0]}))
    model(**arguments)
    return seen


def of_torch(model: nn.Module, arguments: dict[str, Any], names: list[str]) -> Matrices:
    """The weights that ``MultiheadAttention`` returns."""
    seen: dict[str, Tensor] = {}

    def ask(name: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        asked = {**kwargs, "need_weights": True, "average_attn_weights": False}
        seen[name] = module.forward(*args, **asked)[1]

    for name in names:
        module = model.get_submodule(name)
        module.register_forward_hook(lambda *given, name=name: ask(name, *given), with_kwargs=True)
    model(**arguments)
    return seen


def of_transformers(*keys: str) -> Callable[[Any, dict[str, Any], list[str]], Matrices]:
    """The attentions that a model of transformers returns, in the order of its layers."""

    def eager(model: Any, arguments: dict[str, Any], names: list[str]) -> Matrices:
        model.set_attn_implementation("eager")
        output = model(**arguments, output_attentions=True)
        listed: list[Tensor] = []
        for key in keys:
            part: Any = output
            for step in key.split("."):
                part = part[step]
            listed += part
        assert len(listed) == len(names)
        return dict(zip(names, listed, strict=True))

    return eager


class SoftmaxOutputs(TorchFunctionMode):
    """Keeps what each softmax returns, by the innermost of the modules that run."""

    def __init__(self, running: list[str]) -> None:
        super().__init__()
        self.running = running
        self.seen: dict[str, Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if func in (functional.softmax, torch.softmax, Tensor.softmax) and self.running:
            self.seen[self.running[-1]] = output
        return output


def of_softmax(switch: Callable[[Any], object] = lambda _: None) -> Callable[..., Matrices]:
    """What the softmaxes of the network return once ``switch`` has made it compute them."""

    def eager(model: nn.Module, arguments: dict[str, Any], names: list[str]) -> Matrices:
        switch(model)
        running: list[str] = []
        for name in names:
            module = model.get_submodule(name)
            module.register_forward_pre_hook(lambda *_, name=name: running.append(name))
            module.register_forward_hook(lambda *_: running.pop() and None)
        with SoftmaxOutputs(running) as mode:
            model(**arguments)
        batch = len(next(iter(arguments.values())))
        return {name: by_head(matrix, batch) for name, matrix in mode.seen.items()}

    return eager


def by_head(matrix: Tensor, batch: int) -> Tensor:
    """Attention [N · windows, H, T, K]; of diffusers it comes as [N · H, T, K]."""
    return matrix.unflatten(0, (batch, -1)) if matrix.dim() == 3 else matrix


def switch_timm(model: nn.Module) -> None:
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = False  # type: ignore[assignment]


def switch_transformers(model: Any) -> None:
    model.set_attn_implementation("eager")


def switch_diffusers(model: Any) -> None:
    from diffusers.models.attention_processor import AttnProcessor

    for module in model.modules():
        if hasattr(module, "set_processor"):
            module.set_processor(AttnProcessor())


def vit_of_timm() -> nn.Module:
    timm = pytest.importorskip("timm")
    return timm.create_model(
        "vit_tiny_patch16_224", img_size=32, patch_size=8, num_classes=5, depth=2
    )


def swin_of_timm() -> nn.Module:
    timm = pytest.importorskip("timm")
    return timm.create_model(
        "swin_tiny_patch4_window7_224",
        img_size=32,
        window_size=4,
        num_classes=5,
        depths=(2, 1),
        embed_dim=24,
        num_heads=(2, 4),
    )


def vit_of_torchvision() -> nn.Module:
    models = pytest.importorskip("torchvision.models")
    return models.VisionTransformer(
        image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64
    )


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)

    def forward(self, src: Tensor) -> Tensor:
        padding = torch.zeros(src.shape[:2], dtype=torch.bool)
        padding[:, -1] = True
        hidden = torch.ones(7, 7, dtype=torch.bool).triu(1)
        return self.layers(src, mask=hidden, src_key_padding_mask=padding)


def of(kind: str, config: str, **options: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        transformers = pytest.importorskip("transformers")
        return getattr(transformers, kind)(getattr(transformers, config)(**options))

    return build


SMALL = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4}
CASES = {
    "timm ViT": Case(vit_of_timm, images(), of_timm, "Attention 3×64", 2),
    "timm Swin": Case(swin_of_timm, images(), of_timm, "Attention 2×12", 3),
    "torchvision ViT": Case(vit_of_torchvision, images(), of_torch, "Attention 4×8", 2),
    "nn.TransformerEncoder": Case(
        Encoder, lambda: {"src": torch.randn(2, 7, 32)}, of_torch, "Attention 4×8", 2, ("layers",)
    ),
    "ViT": Case(
        of("ViTModel", "ViTConfig", image_size=32, patch_size=8, **SMALL, **HEADS),
        images("pixel_values"), of_transformers("attentions"), "Attention 4×8", 2,
    ),
    "BERT": Case(
        of("BertModel", "BertConfig", vocab_size=40, **SMALL, **HEADS),
        ids(attention_mask=torch.tensor([[1] * 9, [1] * 6 + [0] * 3])),
        of_transformers("attentions"), "Attention 4×8", 2,
    ),
    "GPT-2": Case(
        of("GPT2Model", "GPT2Config", vocab_size=40, n_positions=16, n_embd=32, n_layer=2,
           n_head=4),
        ids(), of_transformers("attentions"), "Attention 4×8", 2, ("h",),
    ),
    "Llama": Case(
        of("LlamaModel", "LlamaConfig", vocab_size=40, num_key_value_heads=2, **SMALL, **HEADS),
        ids(attention_mask=torch.tensor([[1] * 9, [0] * 3 + [1] * 6])),
        of_transformers("attentions"), "Attention 4×8", 2, ("layers",),
    ),
    "Whisper": Case(
        of("WhisperModel", "WhisperConfig", vocab_size=40, num_mel_bins=8, encoder_layers=1,
           decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, d_model=32,
           encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=12,
           max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=1,
           decoder_start_token_id=1),
        lambda: {"input_features": torch.randn(2, 8, 24),
                 "decoder_input_ids": torch.randint(2, 40, (2, 5))},
        of_transformers("encoder_attentions", "decoder_attentions", "cross_attentions"),
        "Attention 4×8", 3, ("decoder.layers.0.self_attn",),
    ),
    "CLIP": Case(
        of("CLIPModel", "CLIPConfig",
           text_config={"vocab_size": 40, "max_position_embeddings": 16, "eos_token_id": 1,
                        **SMALL, **HEADS},
           vision_config={"image_size": 32, "patch_size": 8, **SMALL, **HEADS}),
        lambda: {**ids()(), **images("pixel_values")()},
        of_transformers("vision_model_output.attentions", "text_model_output.attentions"),
        "Attention 4×8", 4, ("text_model",),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Swept:
    """How a network of ``default_layers`` is called, and made to compute a softmax."""

    arguments: Callable[[], dict[str, Any]]
    switch: Callable[[Any], object] = lambda _: None
    causal: tuple[str, ...] = ()


def floats(*sides: int, name: str = "x", **more: Any) -> Callable[[], dict[str, Any]]:
    return lambda: {name: torch.randn(2, *sides), **more}


SWEPT = {
    "timm vit_tiny_patch16_224": Swept(floats(3, 32, 32), switch_timm),
    "timm deit_tiny_distilled_patch16_224": Swept(floats(3, 32, 32), switch_timm),
    "timm swin_tiny_patch4_window7_224": Swept(floats(3, 56, 56), switch_timm),
    "timm maxvit_nano_rw_256": Swept(floats(3, 64, 64), switch_timm),
    "timm eva02_tiny_patch14_224": Swept(floats(3, 28, 28), switch_timm),
    "timm vit_tiny_r_s16_p8_224": Swept(floats(3, 64, 64), switch_timm),
    "torchvision Swin": Swept(floats(3, 64, 64)),
    "transformers ViT": Swept(floats(3, 32, 32, name="pixel_values"), switch_transformers),
    "transformers DINOv2": Swept(floats(3, 28, 28, name="pixel_values"), switch_transformers),
    "transformers SegFormer": Swept(floats(3, 64, 64, name="pixel_values"), switch_transformers),
    "transformers CLIP": Swept(
        lambda: {**ids()(), **images("pixel_values")()}, switch_transformers, ("text_model",)
    ),
    "transformers BERT": Swept(ids(), switch_transformers),
    "transformers GPT-2": Swept(ids(), switch_transformers, ("transformer.h",)),
    "transformers Llama": Swept(ids(), switch_transformers, ("model.layers",)),
    "transformers Mixtral": Swept(ids(), switch_transformers, ("model.layers",)),
    "transformers Whisper": Swept(
        lambda: {"input_features": torch.randn(2, 80, 100),
                 "decoder_input_ids": torch.randint(2, 40, (2, 5))},
        switch_transformers, ("decoder.layers.0.self_attn", "decoder.layers.1.self_attn"),
    ),
    "diffusers UNet2DConditionModel": Swept(
        floats(4, 16, 16, name="sample", timestep=1,
               encoder_hidden_states=torch.linspace(-2, 2, 224).sin().reshape(2, 7, 16)),
        switch_diffusers,
    ),
    "diffusers DiTTransformer2DModel": Swept(
        floats(4, 8, 8, name="hidden_states", timestep=torch.tensor([1, 2]),
               class_labels=torch.tensor([3, 4])),
        switch_diffusers,
    ),
    "MONAI UNETR": Swept(floats(1, 32, 32, 32, name="x_in")),
    "MONAI SwinUNETR": Swept(floats(1, 64, 32, 32, name="x_in")),
}  # fmt: skip
"""Networks of ``default_layers`` that compute a softmax, at least if they are made to.

Of torchvision's ViT and ``nn.TransformerEncoder`` this is in ``CASES``: torch's own attention
returns its weights. CoAtNet's attention consists of convolutions; the others have none.
"""


@pytest.mark.sweep
@pytest.mark.parametrize("name", SWEPT)
def test_rows_of_each_network_of_the_docs_are_those_of_its_eager_softmax(name: str) -> None:
    from default_layers import NETWORKS

    swept = SWEPT[name]
    parts = WatchedLayers(NETWORKS[name]()).parts.values()
    shapes = [part.shape for part in parts if part.heads is not None]
    case = Case(
        NETWORKS[name], swept.arguments, of_softmax(swept.switch), shapes[0], len(shapes),
        swept.causal,
    )  # fmt: skip
    assert_rows_are_eager(case)


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_the_eager_softmax(name: str) -> None:
    assert_rows_are_eager(CASES[name])


def assert_rows_are_eager(case: Case) -> None:
    torch.manual_seed(0)
    model = case.build().eval()
    for parameter in model.parameters():  # attention of a new network is all but uniform
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    arguments = case.arguments()
    found = Rows()
    registry = HookRegistry(model)
    with torch.enable_grad(), slow_path(), registry.listening(found, attention=True):
        model(**arguments)

    assert torch._C._len_torch_function_stack() == 0
    names = [label.removesuffix(ROWS) for label in found.rows if label.endswith(ROWS)]
    assert len(names) == case.count
    assert case.shape in found.shapes
    with torch.no_grad(), slow_path():
        matrices = case.eager(model, arguments, names)
    for own in names:
        matrix = matrices[own]
        windows = len(matrix) // 2
        first = matrix[::windows]
        row = -1 if own.startswith(case.causal or "-") else 0
        torch.testing.assert_close(found.rows[own + ROWS], first[:, :, row], rtol=0, atol=TOLERANCE)
        by_image = matrix.unflatten(0, (2, windows)).transpose(1, 2).flatten(2, 3)
        peak = found.rows[own + PEAK_ROWS].unsqueeze(2)
        nearest = (by_image - peak).abs().amax(-1).amin(-1)  # [N, H], over all rows
        assert nearest.max() < TOLERANCE
