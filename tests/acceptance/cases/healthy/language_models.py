"""Healthy: networks that predict the next token or a masked one."""

from __future__ import annotations

from functools import partial

import losses
import optimizers as o
import torch
from data import changed
from draws.texts import CHARS, TEXT, contexts, text
from loops import seen
from losses import CE, told
from nets import library
from nets.parts import Net, changed_weights, mlp
from nets.texts import GPT, GROUPED, PAD, SIZES, TINY, reader
from recipes import DECAY, FIT, LONG, LONGER, NANO, one
from torch import Generator, Tensor, nn, optim
from torch.nn import functional


def next_one(model: nn.Module, x: Tensor) -> Tensor:
    return CE(model, x[:, :-1], x[:, 1:])


RARE = CHARS.bincount(minlength=128).argsort(descending=True).argsort()


def neighbours() -> Tensor:
    """How often each two of 64 words stand within five, [64, 64]."""
    words = contexts(Generator().manual_seed(3), 3000)[0][:, :5]
    counts = functional.one_hot(words, 64).sum(1).float()
    return counts.T @ counts


PAIRS = neighbours()

FEW = {"num_key_value_heads": 2}

CASES = [
    *seen(
        "2026-11-28T03:00",
        one(
            "gpt",
            partial(library.hf, "GPT2LMHeadModel", **GPT, vocab_size=128, n_positions=32),
            TEXT,
            told,
            FIT(1e-3, o.warm_up, **NANO),
            "GPT-2",
        ),
        one(
            "answers_only",
            partial(library.hf, "LlamaForCausalLM", **TINY),
            TEXT,
            lambda m, x: told(m, x, x.masked_fill(torch.arange(32) < 12, -100)),
            FIT(2e-3, o.warm_up, **NANO),
            "Llama",
        ),
        one(
            "sparse_experts",
            partial(
                library.hf,
                "MixtralForCausalLM",
                **TINY,
                num_key_value_heads=2,
                num_local_experts=4,
                output_router_logits=True,
            ),
            TEXT,
            told,
            FIT(2e-3, **NANO),
            "Mixtral",
        ),
        one(
            "state_space",
            partial(
                library.hf,
                "MambaForCausalLM",
                hidden_size=32,
                num_hidden_layers=1,
                vocab_size=128,
                state_size=8,
            ),
            partial(text, 20),
            told,
            FIT(3e-3, **NANO, batch=8),
            "Mamba",
        ),
        one(
            "masked",
            partial(library.hf, "BertForMaskedLM", **TINY, hidden_dropout_prob=0.0),
            contexts,
            lambda m, x: told(
                m, x.where((seen := torch.rand(x.shape) > 0.15), 127), x.masked_fill(seen, -100)
            ),
            FIT(3e-3, **DECAY, batch=64, **LONGER),
            "BERT",
        ),
        one("char_rnn", reader, TEXT, next_one, FIT(2e-3, kind=optim.RMSprop, clip=5.0), "LSTM"),
        one(
            "word_model",
            lambda: changed_weights(reader(0.2), lambda p: p.uniform_(-0.1, 0.1)),
            TEXT,
            next_one,
            FIT(20, kind=optim.SGD, clip=0.25, **LONGER),
            "LSTM, 2 layers",
        ),
        one(
            "makemore",
            lambda: nn.Sequential(nn.Embedding(128, 10), mlp(30, 200, 128, act=nn.Tanh)),
            partial(text, 4),
            lambda m, x: CE(m, x[:, :3], x[:, 3]),
            FIT(0.1, kind=optim.SGD, batch=32),
            "MLP of characters",
        ),
        one(
            "skip_gram",
            lambda: Net(
                lambda m, x: (
                    -(
                        functional.logsigmoid((m["u"](x[:, :1]) * m["v"](x[:, 1:5])).sum(2)).mean()
                        + functional.logsigmoid(-(m["u"](x[:, 0]) * m["v"](x[:, 5])).sum(1)).mean()
                    )
                ),
                u=nn.Embedding(64, 24, sparse=True),
                v=nn.Embedding(64, 24, sparse=True),
            ),
            contexts,
            losses.own,
            FIT(0.01, kind=optim.SparseAdam, batch=64),
            "word2vec",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "averaged",
            lambda: Net(
                lambda m, x: (
                    m["drop"](m["body"](m["drop"](m["words"](x)))[0]) @ m["words"].weight.T
                ),
                words=changed_weights(nn.Embedding(128, 64), lambda p: p.uniform_(-0.1, 0.1)),
                body=nn.LSTM(64, 64, 2, batch_first=True, dropout=0.2),
                drop=nn.Dropout(0.2),
            ),
            TEXT,
            lambda m, x: functional.cross_entropy(m(x[:, :-1]).mT, x[:, 1:]),
            FIT(20.0, kind=optim.ASGD, weight_decay=1.2e-6, clip=0.25, batch=20, **LONG),
            "AWD-LSTM, tied words",
        ),
        [
            *(
                case
                for name, recipe in {
                    "Falcon": FIT(1e-3, o.linear_down, **NANO),
                    "Persimmon": FIT(0, o.ramp, "Lion 2e-4", o.lion, batch=24),
                }.items()
                for case in one(
                    name.lower(),
                    partial(library.hf, f"{name}ForCausalLM", **TINY),
                    TEXT,
                    told,
                    recipe,
                    name,
                )
            )
        ],
    ),
    *seen(
        "2026-11-28T12:40",
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForCausalLM", **sizes),
                TEXT,
                told,
                recipe,
                name,
            )
            for name, (sizes, recipe) in {
                "GPTJ": (
                    {
                        "n_embd": 48,
                        "n_layer": 2,
                        "n_head": 4,
                        "rotary_dim": 8,
                        "vocab_size": 128,
                        "n_positions": 32,
                    },
                    FIT(1e-3, o.linear_down, **NANO),
                ),
                "Gemma3": (GROUPED, FIT(2e-3, o.poly, kind=optim.NAdam, clip=1.0)),
                "Mpt": (
                    {
                        "d_model": 48,
                        "n_layers": 2,
                        "n_heads": 4,
                        "expansion_ratio": 2,
                        "vocab_size": 128,
                        "max_seq_len": 32,
                    },
                    FIT(2e-3, o.ramp, **NANO),
                ),
            }.items()
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForCausalLM", **sizes),
                TEXT,
                told,
                recipe,
                name,
            )
            for name, (sizes, recipe) in {
                "Cohere": (TINY | FEW | PAD | {"logit_scale": 0.5}, FIT(2e-3, o.cosine, **NANO)),
                "GPTBigCode": (SIZES, FIT(2e-3, o.two_phases, **NANO, batch=8)),
                "XGLM": (
                    {
                        "d_model": 48,
                        "ffn_dim": 96,
                        "num_layers": 2,
                        "attention_heads": 4,
                        "vocab_size": 128,
                        "max_position_embeddings": 40,
                    },
                    FIT(1e-3, o.poly, **NANO),
                ),
            }.items()
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForCausalLM", **sizes),
                TEXT,
                told,
                recipe,
                name,
            )
            for name, (sizes, recipe) in {
                "OPT": (
                    TINY | {"ffn_dim": 96, "word_embed_proj_dim": 48},
                    FIT(1e-3, o.linear_down, **NANO),
                ),
                "Bloom": (
                    {"hidden_size": 48, "n_layer": 2, "n_head": 4, "vocab_size": 128},
                    FIT(1e-3, o.cosine, **NANO),
                ),
                "Qwen3": (
                    TINY | FEW | {"head_dim": 12},
                    FIT(1e-3, o.two_phases, **DECAY, clip=1.0),
                ),
                "GraniteMoe": (
                    TINY | FEW | PAD | {"num_local_experts": 4, "num_experts_per_tok": 2},
                    FIT(2e-3, o.ramp, **NANO, batch=8),
                ),
            }.items()
        ),
        one(
            "glove",
            lambda: changed_weights(
                nn.ModuleDict(
                    {k: nn.Embedding(64, n) for k, n in (("w", 24), ("v", 24), ("a", 1), ("b", 1))}
                ),
                lambda p: p.uniform_(-0.02, 0.02),
            ),
            lambda g, n: (
                k := PAIRS.nonzero(),
                k := k[torch.randint(len(k), (n,), generator=g)],
                k[:, 0],
                k[:, 1],
                PAIRS[k[:, 0], k[:, 1]],
            )[2:],
            lambda m, i, j, x: (
                (x / 100).clamp(max=1) ** 0.75
                * ((m["w"](i) * m["v"](j)).sum(1) + (m["a"](i) + m["b"](j))[:, 0] - x.log()) ** 2
            ).mean(),
            FIT(0.05, kind=optim.Adagrad, batch=256, **LONG),
            "GloVe",
        ),
        one(
            "adaptive",
            lambda: nn.ModuleDict(
                {
                    "words": nn.Embedding(128, 64),
                    "body": nn.GRU(64, 64, batch_first=True),
                    "last": nn.AdaptiveLogSoftmaxWithLoss(64, 128, [16, 48]),
                }
            ),
            changed(TEXT, lambda x: RARE[x]),
            lambda m, x: (
                m["last"](
                    m["body"](m["words"](x[:, :-1]))[0].flatten(0, 1), x[:, 1:].flatten()
                ).loss
            ),
            FIT(2e-3, clip=1.0),
            "adaptive heads",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "cbow",
            lambda: nn.ModuleDict(
                {
                    "w": changed_weights(
                        nn.Embedding(64, 24), lambda p: p.uniform_(-0.5 / 24, 0.5 / 24)
                    ),
                    "v": changed_weights(nn.Embedding(64, 24), torch.zero_),
                }
            ),
            lambda *how: (
                (x := contexts(*how)[0])[:, 1:5],
                torch.cat([x[:, :1], torch.randint(64, (len(x), 5))], 1),
            ),
            lambda m, x, y: (
                functional.softplus(
                    (m["w"](x).mean(1)[:, None] * m["v"](y)).sum(2)
                    * torch.tensor([-1.0, 1, 1, 1, 1, 1])
                )
                .sum(1)
                .mean()
            ),
            FIT(0.01, o.linear_down, batch=256, **LONG),
            "word2vec, bag of words",
        ),
        *(
            one(
                name.lower(),
                partial(library.hf, f"{name}ForCausalLM", **TINY | PAD | sizes),
                TEXT,
                told,
                recipe.but("", batch=8),
                name,
            )
            for name, (sizes, recipe) in {
                "DeepseekV3": (
                    {
                        "q_lora_rank": 16,
                        "kv_lora_rank": 16,
                        "qk_rope_head_dim": 6,
                        "qk_nope_head_dim": 12,
                        "v_head_dim": 12,
                        "n_routed_experts": 4,
                        "num_experts_per_tok": 2,
                        "n_group": 1,
                        "topk_group": 1,
                        "moe_intermediate_size": 48,
                        "first_k_dense_replace": 1,
                    },
                    FIT(2e-3, o.cosine, **NANO),
                ),
                "Lfm2": (
                    FEW
                    | {
                        "layer_types": ["conv", "full_attention", "conv"],
                        "block_auto_adjust_ff_dim": False,
                    },
                    FIT(2e-3, o.two_phases, **NANO),
                ),
                "GptOss": (
                    FEW
                    | {
                        "head_dim": 12,
                        "num_local_experts": 4,
                        "num_experts_per_tok": 2,
                        "num_hidden_layers": 2,
                    },
                    FIT(1e-3, o.ramp, **NANO),
                ),
                "SeedOss": (FEW | {"head_dim": 12}, FIT(1e-3, o.poly, kind=optim.NAdam, clip=1.0)),
            }.items()
        ),
    ),
]
