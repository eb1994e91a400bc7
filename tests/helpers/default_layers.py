"""Networks of libraries, small, and the table of the layers that are watched of each by default.

``PYTHONPATH=src python tests/helpers/default_layers.py`` writes the table into
``docs/transformers.md``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from fmapboard.model.kernel_shapes import is_convolution
from fmapboard.model.layers import WatchedLayers

PAGE = Path(__file__).parents[2] / "docs" / "transformers.md"
_BEGIN = "<!-- default layers: written by tests/helpers/default_layers.py -->\n"
_END = "<!-- end of default layers -->\n"
_SIZE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
_TEXT = {**_SIZE, "vocab_size": 50, "max_position_embeddings": 16}
_TOKENS: dict[str, Any] = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def _of(library: str, name: str, *args: Any, **options: Any) -> Callable[[], nn.Module]:
    """Makes a network with a class or a function of a library, imported only then."""

    def make() -> nn.Module:
        made: nn.Module = getattr(importlib.import_module(library), name)(*args, **options)
        return made

    return make


def _timm(name: str, **options: Any) -> Callable[[], nn.Module]:
    return _of("timm", "create_model", name, num_classes=5, **options)


def _of_config(network: str, config: str, **options: Any) -> Callable[[], nn.Module]:
    """Makes a network of transformers from a configuration."""

    def make() -> nn.Module:
        transformers = importlib.import_module("transformers")
        configuration = getattr(transformers, config)(**options)
        made: nn.Module = getattr(transformers, network)(configuration)
        return made

    return make


def _encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


NETWORKS: Mapping[str, Callable[[], nn.Module]] = {
    "timm vit_tiny_patch16_224": _timm("vit_tiny_patch16_224", img_size=32, depth=2),
    "timm deit_tiny_distilled_patch16_224": _timm(
        "deit_tiny_distilled_patch16_224", img_size=32, depth=2
    ),
    "timm swin_tiny_patch4_window7_224": _timm(
        "swin_tiny_patch4_window7_224", img_size=56, depths=(1, 1, 1, 1)
    ),
    "timm coatnet_0_rw_224": _timm("coatnet_0_rw_224", img_size=64),
    "timm maxvit_nano_rw_256": _timm("maxvit_nano_rw_256", img_size=64),
    "timm eva02_tiny_patch14_224": _timm("eva02_tiny_patch14_224", img_size=28),
    "timm vit_tiny_r_s16_p8_224": _timm("vit_tiny_r_s16_p8_224", img_size=64),
    "timm mixer_s32_224": _timm("mixer_s32_224", img_size=64),
    "timm convnext_atto": _timm("convnext_atto"),
    "torchvision ViT": _of("torchvision.models", "VisionTransformer", 32, 8, 2, 4, 32, 64),
    "torchvision Swin": _of(
        "torchvision.models", "SwinTransformer", [4, 4], 32, [2, 2], [2, 4], [7, 7]
    ),
    "transformers ViT": _of_config("ViTModel", "ViTConfig", image_size=32, patch_size=8, **_SIZE),
    "transformers DINOv2": _of_config(
        "Dinov2Model", "Dinov2Config", image_size=28, patch_size=14, mlp_ratio=2,
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
    ),
    "transformers SegFormer": _of_config(
        "SegformerModel", "SegformerConfig", depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 40, 64]
    ),
    "transformers CLIP": _of_config(
        "CLIPModel", "CLIPConfig", text_config={**_TEXT, **_TOKENS},
        vision_config={"image_size": 32, "patch_size": 8, **_SIZE},
    ),
    "transformers BERT": _of_config("BertModel", "BertConfig", **_TEXT),
    "transformers GPT-2": _of_config(
        "GPT2LMHeadModel", "GPT2Config",
        vocab_size=50, n_positions=16, n_embd=32, n_layer=2, n_head=4, **_TOKENS,
    ),
    "transformers Llama": _of_config(
        "LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, **_TEXT
    ),
    "transformers Mixtral": _of_config(
        "MixtralForCausalLM", "MixtralConfig",
        num_key_value_heads=2, num_local_experts=4, **_TEXT,
    ),
    "transformers Whisper": _of_config(
        "WhisperModel", "WhisperConfig", vocab_size=50, d_model=32, encoder_layers=2,
        decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=50,
        max_target_positions=20, decoder_start_token_id=1, **_TOKENS,
    ),
    "diffusers UNet2DConditionModel": _of(
        "diffusers", "UNet2DConditionModel", sample_size=16, block_out_channels=(32, 64),
        layers_per_block=1, cross_attention_dim=16, attention_head_dim=8,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    ),
    "diffusers DiTTransformer2DModel": _of(
        "diffusers", "DiTTransformer2DModel", num_attention_heads=2, attention_head_dim=8,
        in_channels=4, num_layers=2, sample_size=8, patch_size=2,
    ),
    "MONAI UNETR": _of(
        "monai.networks.nets", "UNETR", 1, 2, (32, 32, 32), feature_size=8, hidden_size=32,
        mlp_dim=64, num_heads=4,
    ),
    "MONAI SwinUNETR": _of(
        "monai.networks.nets", "SwinUNETR", in_channels=1, out_channels=2, feature_size=12
    ),
    "torch nn.TransformerEncoder": _encoder,
    "torch nn.LSTM": partial(nn.LSTM, 8, 16, batch_first=True),
}  # fmt: skip


def default_layers(model: nn.Module) -> str:
    """What is watched of a network by default, in a line."""
    watched = WatchedLayers(model)
    convolutions = sum(map(is_convolution, watched.layers.values()))
    counts: dict[str, int] = {}
    if convolutions:
        counts["convolution" if convolutions == 1 else "convolutions"] = convolutions
    for name, module in watched.layers.items():
        part = watched.parts.get(name)
        if part is not None:
            counts[part.shape] = counts.get(part.shape, 0) + 1
        elif not is_convolution(module):
            kind = type(module).__name__
            counts[kind] = counts.get(kind, 0) + 1
    return ", ".join(f"{count} × {what}" for what, count in counts.items())


def table() -> str:
    """The table of all networks, as Markdown."""
    rows = ["| network (small) | watched by default |", "|---|---|"]
    for name, make in NETWORKS.items():
        rows.append(f"| {name} | {default_layers(make())} |")
    return "\n".join(rows) + "\n"


def written() -> str:
    """The table as it stands in the page."""
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(_BEGIN)[2].partition(_END)[0]


def write() -> None:
    """Write the table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(_BEGIN)
    after = rest.split(_END)[1]
    PAGE.write_text(f"{before}{_BEGIN}{table()}{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
