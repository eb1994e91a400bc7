"""Healthy: transformers, each another network, recipe, norm or dtype."""

from __future__ import annotations

from functools import partial
from typing import Any

import optimizers as o
import timm
import torchvision
from data import HALF, P, digits
from draws.texts import docs, letters, two_manuals
from loops import Case, seen
from losses import CE, classes, told
from nets import attention as a
from nets import library
from recipes import ADAMW, DECAY, FIT, NANO, NESTEROV, one
from torch import nn, optim
from torchvision.transforms import v2

BRIEF = {"steps": 96, "every": 8}
DOCS = partial(docs, 32)
LINES = partial(docs, 12)
T5 = {
    "d_model": 48, "d_kv": 12, "d_ff": 96, "num_layers": 2, "num_decoder_layers": 2,
    "num_heads": 4, "vocab_size": 128, "dropout_rate": 0.0, "decoder_start_token_id": 0,
}  # fmt: skip
TEXT = library.BODY | {"vocab_size": 128, "max_position_embeddings": 64, "num_hidden_layers": 2}
LLAMA = TEXT | {"num_key_value_heads": 2, "head_dim": 12, "pad_token_id": 0}
GPT = {"n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": 128, "n_positions": 48}
SWIN = {"img_size": 32, "patch_size": 2, "window_size": 4, "embed_dim": 24, "depths": (2, 2)}
SWIN |= {"num_heads": (2, 4), "num_classes": 8}
IMAGES = library.SMALL | {"num_labels": 8}


def wide(draw: Any, side: int = 32) -> Any:
    """Grey digits in three channels."""
    grow = v2.Resize((side, side))
    return lambda g, n: ((found := draw(g, n)) and grow(found[0]).expand(-1, 3, -1, -1), found[1])


def vit(name: str, recipe: Any, text: str, **how: Any) -> list[Case]:
    return one(name, partial(a.timm_vit, **how), P, CE, recipe, text)


def spoken(name: str, net: Any, recipe: Any, text: str, loss: Any = told) -> list[Case]:
    return one(name, net, DOCS, loss, recipe, text)


def hf(model: str, **options: Any) -> Any:
    return partial(library.hf, model, **options)


CASES = [
    *seen(
        "2026-11-29T13:55",
        vit("warmed", FIT(1e-3, o.warm_up, **DECAY), "ViT"),
        vit("descent", FIT(0.05, o.cosine, **NESTEROV, clip=1.0), "ViT"),
        vit("query_norm", FIT(1e-3, o.warm_up, **DECAY), "ViT, QK norm", qk_norm=True),
        vit("registers", FIT(2e-3, o.one_cycle(2e-3), **DECAY), "ViT, registers", reg_tokens=4),
        vit("halves", FIT(1e-3, o.warm_up, **DECAY, autocast=True), "ViT, bfloat16"),
        vit("few_images", FIT(1e-3, examples=64, **ADAMW), "ViT, 64 images", global_pool="avg"),
        one(
            "frozen_tower",
            lambda: a.frozen(a.timm_vit(), "blocks.2", "norm.", "head"),
            P,
            CE,
            FIT(1e-3, **ADAMW),
            "ViT, first blocks frozen",
        ),
        one(
            "head_only",
            lambda: a.frozen(a.timm_vit(num_classes=10), "head"),
            wide(digits),
            CE,
            FIT(3e-2, o.cosine),
            "ViT, linear probe",
        ),
        one("low_rank", lambda: a.lora(a.timm_vit()), P, CE, FIT(5e-3, o.warm_up), "ViT, LoRA"),
        one(
            "post_norm",
            partial(a.Transformer, norm="post", out=8, patch=4),
            P,
            CE,
            FIT(5e-4, o.warm_up),
            "ViT, post-norm",
        ),
        one("hf_vit", hf("ViTForImageClassification", **IMAGES), HALF, told, FIT(5e-4), "ViT"),
        one(
            "dinov2",
            hf("Dinov2ForImageClassification", **IMAGES),
            P,
            told,
            FIT(1e-3, o.warm_up, **DECAY),
            "DINOv2",
        ),
        one(
            "mae",
            hf(
                "ViTMAEForPreTraining",
                **library.SMALL,
                decoder_hidden_size=32,
                decoder_num_hidden_layers=1,
                decoder_num_attention_heads=4,
                decoder_intermediate_size=64,
            ),
            P,
            lambda m, x, _: m(x).loss,
            FIT(1.5e-3, o.warm_up, **DECAY),
            "ViT-MAE",
        ),
        one(
            "swin",
            partial(timm.models.SwinTransformer, **SWIN),
            P,
            CE,
            FIT(1e-3, o.warm_up, **DECAY, **BRIEF),
            "Swin",
        ),
        one(
            "torch_swin",
            partial(
                torchvision.models.SwinTransformer,
                [2, 2],
                24,
                [2, 2],
                [2, 4],
                [4, 4],
                num_classes=8,
            ),
            P,
            classes(0.1),
            FIT(0.03, o.cosine, **NESTEROV, **BRIEF),
            "torchvision Swin",
        ),
        spoken("gpt2", hf("GPT2LMHeadModel", **GPT), FIT(1e-3, o.warm_up, **NANO), "GPT-2"),
        spoken(
            "unwarmed",
            hf("GPT2LMHeadModel", **GPT, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
            FIT(3e-3),
            "GPT-2, constant rate",
        ),
        spoken("llama", hf("LlamaForCausalLM", **LLAMA), FIT(3e-3, o.warm_up, **NANO), "Llama"),
        spoken("qwen", hf("Qwen2ForCausalLM", **LLAMA), FIT(2e-3, kind=optim.RMSprop), "Qwen2"),
        spoken(
            "neox",
            hf("GPTNeoXForCausalLM", **TEXT),
            FIT(1e-2, kind=o.adafactor),
            "GPT-NeoX, Adafactor",
        ),
        spoken("lion", a.language, FIT(1e-3, kind=o.lion), "GPT, Lion", a.sent),
        spoken(
            "post_norm_gpt",
            partial(a.language, norm="post"),
            FIT(5e-4, o.warm_up, clip=1.0),
            "GPT, post-norm",
            a.sent,
        ),
        spoken(
            "half_gpt",
            lambda: a.language().bfloat16(),
            FIT(1e-3, **ADAMW),
            "GPT, weights in bfloat16",
            a.sent,
        ),
        one(
            "copies",
            partial(a.language, depth=2),
            partial(docs, 20),
            a.copied,
            FIT(3e-3, o.warm_up, steps=400, every=20, batch=64, **ADAMW),
            "GPT that copies",
        ),
        spoken(
            "mixtral",
            hf("MixtralForCausalLM", **LLAMA, num_local_experts=4, output_router_logits=True),
            FIT(2e-3, o.warm_up, **NANO, **BRIEF),
            "Mixtral",
        ),
        spoken("mixture", a.mixed, FIT(2e-3, **ADAMW, **BRIEF), "GPT, 8 experts", a.balanced),
        one(
            "backwards",
            a.translator,
            LINES,
            a.turned,
            FIT(1e-3, o.warm_up, steps=300, every=20, batch=32),
            "nn.Transformer, post-norm",
        ),
        one(
            "t5",
            hf("T5ForConditionalGeneration", **T5),
            LINES,
            lambda m, x: m(input_ids=x, labels=x.flip(1)).loss,
            FIT(1e-2, kind=o.adafactor),
            "T5",
        ),
        spoken(
            "bert",
            hf("BertForMaskedLM", **TEXT, hidden_dropout_prob=0.0),
            FIT(2e-3, o.warm_up, **DECAY),
            "BERT",
            a.hidden_words,
        ),
        one(
            "padded",
            partial(a.Transformer, out=2, padding=0),
            two_manuals,
            CE,
            FIT(1e-3, o.warm_up, **ADAMW),
            "classifier of padded texts",
        ),
    ),
    *seen(
        "2026-11-29T14:40",
        vit("lamb", FIT(2e-3, o.warm_up, kind=optim.NAdam), "ViT, large blocks", init_values=1e-5),
        one(
            "eva",
            partial(
                timm.models.Eva,
                img_size=32,
                patch_size=4,
                embed_dim=48,
                depth=3,
                num_heads=4,
                mlp_ratio=2.0,
                num_classes=8,
                use_rot_pos_emb=True,
                swiglu_mlp=True,
            ),
            P,
            CE,
            FIT(1e-3, o.warm_up, **DECAY),
            "EVA-02",
        ),
        one(
            "swin2",
            hf(
                "Swinv2ForImageClassification",
                image_size=32,
                patch_size=2,
                window_size=4,
                embed_dim=24,
                depths=[2, 2],
                num_heads=[2, 4],
                num_labels=8,
            ),
            P,
            told,
            FIT(1e-3, o.warm_up, **DECAY, **BRIEF),
            "Swin v2",
        ),
        one(
            "class_attention",
            partial(
                timm.models.Cait,
                img_size=32,
                patch_size=4,
                embed_dim=48,
                depth=3,
                num_heads=4,
                num_classes=8,
            ),
            P,
            CE,
            FIT(1e-3, o.warm_up, **DECAY),
            "CaiT",
        ),
        spoken("gemma", hf("Gemma2ForCausalLM", **LLAMA), FIT(2e-3, **NANO), "Gemma 2"),
        spoken(
            "olmoe",
            hf(
                "OlmoeForCausalLM",
                **LLAMA,
                num_experts=8,
                num_experts_per_tok=2,
                output_router_logits=True,
            ),
            FIT(2e-3, o.warm_up, **NANO, **BRIEF),
            "OLMoE",
        ),
        one(
            "bart",
            hf(
                "BartForConditionalGeneration",
                d_model=48,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                encoder_ffn_dim=96,
                decoder_ffn_dim=96,
                vocab_size=128,
                max_position_embeddings=32,
            ),
            LINES,
            lambda m, x: m(input_ids=x, labels=x.flip(1)).loss,
            FIT(1e-3, o.warm_up, **ADAMW),
            "BART",
        ),
        one(
            "manual",
            hf("RobertaForMaskedLM", **TEXT, hidden_dropout_prob=0.0),
            letters,
            a.hidden_words,
            FIT(1e-3, o.warm_up, **DECAY, autocast=True, batch=32),
            "RoBERTa, bfloat16",
        ),
        one(
            "last_layers",
            lambda: a.frozen(
                library.hf(
                    "DistilBertForSequenceClassification",
                    dim=48,
                    n_layers=2,
                    n_heads=4,
                    hidden_dim=96,
                    vocab_size=128,
                    num_labels=2,
                ),
                "layer.1",
                "classifier",
            ),
            two_manuals,
            lambda m, x, y: m(x, attention_mask=(x > 0).long(), labels=y).loss,
            FIT(1e-3, **ADAMW, batch=32),
            "DistilBERT, first block frozen",
        ),
        one(
            "long_copy",
            partial(a.language, depth=3, act=nn.ReLU),
            partial(docs, 16),
            a.copied,
            FIT(2e-3, o.cosine, steps=500, every=25, batch=64, **ADAMW),
            "GPT that copies, ReLU",
        ),
    ),
]
