"""Healthy: texts are classified, tagged, translated and compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce

import data
import losses
import optimizers as o
import torch
from data import changed
from draws.tables import TASTES, numbers
from draws.texts import TEXT, contexts, words
from loops import seen
from losses import CE, answered, told
from nets import library
from nets.classifiers import Function
from nets.parts import Net, changed_weights, mlp, small
from nets.texts import GPT, GROUPED, PAD, SIZES, TINY, TextNet, reader
from recipes import DECAY, FIT, LONG, LONGER, NANO, how, one
from torch import Tensor, nn, optim
from torch.nn import functional
from torch.nn.utils import rnn

LAYERS = {"layers": 2, "attention_heads": 4, "ffn_dim": 96}

SEQ = {f"{k}coder_{n}": v for k in ("en", "de") for n, v in LAYERS.items()}


def focus(n: int) -> nn.Module:
    """A bidirectional GRU, and attention over its states."""
    return Net(
        lambda m, x: (m["look"](h := m["body"](x)[0]).softmax(1) * h).sum(1),
        look=nn.Sequential(nn.Linear(n, n), nn.Tanh(), nn.Linear(n, 1, bias=False)),
        body=nn.GRU(n, n // 2, batch_first=True, bidirectional=True),
    )


class Words(nn.Module):
    """A transformer; ``pool`` is what its head sees."""

    def __init__(self, kinds: int, out: int, pool: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.words, self.place = nn.Embedding(kinds, 32), nn.Parameter(0.1 * torch.randn(16, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
        self.body, self.last, self.pool = nn.TransformerEncoder(layer, 2), nn.Linear(32, out), pool

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.pool(self.body(self.words(x) + self.place[: x.shape[1]])))


CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "words",
            TextNet,
            data.sentences,
            losses.named,
            how(2e-3, o.linear_down, batch=32),
            "text CNN (1-D)",
        ),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "reversed",
            partial(
                library.hf,
                "T5ForConditionalGeneration",
                d_model=48,
                d_kv=12,
                d_ff=96,
                num_layers=2,
                num_heads=4,
                vocab_size=32,
                decoder_start_token_id=0,
            ),
            words(32, 8, lambda x: x.flip(1)),
            told,
            FIT(0, None, "Adafactor", o.adafactor, steps=150),
            "T5",
        ),
        one(
            "shared_layers",
            partial(
                library.hf,
                "AlbertForSequenceClassification",
                **TINY,
                num_labels=4,
                embedding_size=24,
            ),
            data.sentences,
            told,
            FIT(1e-3, o.linear_down, **DECAY, clip=1.0, **LONGER),
            "ALBERT",
        ),
        one(
            "fourier",
            partial(library.hf, "FNetForSequenceClassification", **TINY, num_labels=4),
            data.sentences,
            told,
            FIT(1e-3, **DECAY, batch=32),
            "FNet",
        ),
        one(
            "tagger",
            partial(reader, 0.0, 16, 3, 16),
            words(16, 12, lambda x: x % 3),
            CE,
            FIT(0.1, kind=optim.SGD, batch=1, **LONGER),
            "LSTM tagger",
        ),
        one(
            "news",
            lambda: nn.Sequential(nn.EmbeddingBag(100, 32, padding_idx=0), nn.Linear(32, 4)),
            data.sentences,
            CE,
            FIT(5.0, o.stairs, kind=optim.SGD, clip=0.1, batch=64),
            "word bag",
        ),
        one(
            "packed",
            lambda: Net(
                lambda m, x: m["last"](
                    m["body"](rnn.pack_padded_sequence(m["words"](x), (x > 0).sum(1), True, False))[
                        1
                    ][0]
                    .transpose(0, 1)
                    .flatten(1)
                ),
                last=nn.Linear(64, 4),
                words=nn.Embedding(100, 32),
                body=nn.LSTM(32, 32, batch_first=True, bidirectional=True),
            ),
            data.sentences,
            CE,
            FIT(3e-3, batch=32),
            "bidirectional LSTM",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "preferences",
            lambda: mlp(6, 64, 64, 1, act=partial(nn.LeakyReLU, 0.01))[1:],
            numbers(
                120,
                lambda x: (
                    (r := x.view(-1, 2, 10, 6)[..., :2].tanh().sum((2, 3)))[:, 0] > r[:, 1]
                ).float(),
            ),
            lambda m, x, y: functional.binary_cross_entropy_with_logits(
                (r := m(x.view(-1, 2, 10, 6)).sum((2, 3)))[:, 0] - r[:, 1], y
            ),
            FIT(1e-3, batch=64, weight_decay=1e-4),
            "reward of preferences",
        ),
        one(
            "grokking",
            partial(Words, 24, 23, lambda x: x[:, -1]),
            lambda g, n: (
                x := torch.randint(23, (n, 3), generator=g).index_fill(1, torch.tensor([2]), 23),
                (x[:, 0] + x[:, 1]) % 23,
            ),
            CE,
            FIT(
                1e-3,
                o.ramp,
                kind=optim.AdamW,
                betas=(0.9, 0.98),
                weight_decay=1.0,
                batch=256,
                **LONG,
            ),
            "sums modulo 23",
        ),
        one(
            "bart",
            partial(
                library.hf,
                "BartForConditionalGeneration",
                d_model=48,
                vocab_size=128,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                encoder_ffn_dim=96,
                decoder_ffn_dim=96,
                max_position_embeddings=40,
            ),
            TEXT,
            lambda m, x: told(m, x.where(torch.rand(x.shape) > 0.2, 127), x),
            FIT(2e-3, o.warm_up, **NANO),
            "BART",
        ),
        [
            *(
                case
                for name, (sizes, *recipe) in {
                    "XLNet": (
                        {
                            "vocab_size": 128,
                            "d_model": 48,
                            "n_layer": 2,
                            "n_head": 4,
                            "d_inner": 96,
                        },
                        1e-3,
                        o.linear_down,
                    ),
                    "Funnel": (
                        {
                            "vocab_size": 128,
                            "d_model": 48,
                            "block_sizes": [1, 1],
                            "n_head": 4,
                            "d_head": 12,
                            "d_inner": 96,
                        },
                        1e-3,
                        o.warm_up,
                    ),
                    "RoFormer": (TINY, 1e-3, o.poly),
                }.items()
                for case in one(
                    name.lower(),
                    partial(library.hf, f"{name}ForSequenceClassification", **sizes, num_labels=4),
                    data.sentences,
                    told,
                    FIT(*recipe, kind=optim.AdamW, weight_decay=0.01, clip=1.0, batch=24),
                    name,
                )
            )
        ],
    ),
    *seen(
        "2026-11-28T11:40",
        one(
            "dictionary",
            lambda: nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 32)),
            lambda g, n: (
                torch.where(
                    torch.rand(n, 80, generator=g) < 0.05, torch.rand(n, 80, generator=g), 0
                )
                @ functional.normalize(
                    torch.randn(80, 32, generator=torch.Generator().manual_seed(7))
                )
                * 4,
            ),
            lambda m, x: (m[2](z := m[:2](x)) - x).square().sum(1).mean() + 0.3 * z.sum(1).mean(),
            FIT(
                1e-3,
                o.ramp,
                batch=512,
                after=lambda _, m, __: m[2].weight.data.div_(m[2].weight.data.norm(dim=0)),
                **LONG,
            ),
            "sparse autoencoder of activations",
        ),
        one(
            "translated",
            lambda: changed_weights(
                Net(
                    lambda m, x, y: (
                        e := m["in"](m["words"](x)),
                        d := m["out"](m["goal"](y), e[1])[0],
                        m["last"](
                            m["both"](torch.cat([d, (d @ e[0].mT).softmax(2) @ e[0]], 2)).tanh()
                        ).mT,
                    )[2],
                    words=nn.Embedding(32, 32),
                    goal=nn.Embedding(33, 32),
                    both=nn.Linear(128, 64, bias=False),
                    last=nn.Linear(64, 32),
                    **{k: nn.LSTM(32, 64, batch_first=True) for k in ("in", "out")},
                ),
                lambda p: p.uniform_(-0.1, 0.1),
            ),
            words(32, 8, lambda x: (x.flip(1) + 3) % 32),
            lambda m, x, y: functional.cross_entropy(
                m(x, functional.pad(y[:, :-1], (1, 0), value=32)), y
            ),
            FIT(3e-3, clip=5.0, batch=64, **LONG),
            "LSTM with Luong's attention",
        ),
        *(
            one(
                name.lower(),
                partial(
                    library.hf,
                    f"{name}ForSequenceClassification",
                    **TINY | {"max_position_embeddings": 44},
                    num_labels=4,
                ),
                data.sentences,
                told,
                recipe,
                name,
            )
            for name, recipe in {"Deberta": FIT(1e-3, o.cosine, **DECAY, clip=1.0)}.items()
        ),
        one(
            "pegasus",
            partial(
                library.hf,
                "PegasusForConditionalGeneration",
                d_model=48,
                vocab_size=128,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                encoder_ffn_dim=96,
                decoder_ffn_dim=96,
                max_position_embeddings=40,
            ),
            TEXT,
            lambda m, x: told(
                m, x.index_fill(1, torch.arange(8, 16), 127), x[:, 8:16].contiguous()
            ),
            FIT(0, None, "Adafactor", o.adafactor),
            "Pegasus, gaps",
        ),
        one(
            "pointers",
            lambda: changed_weights(
                Net(
                    lambda m, x, y: (
                        e := m["in"](x),
                        d := m["out"](functional.pad(y[:, :-1], (0, 0, 1, 0)), e[1])[0],
                        m["v"]((m["a"](e[0])[:, None] + m["b"](d)[:, :, None]).tanh())[..., 0],
                    )[2],
                    a=nn.Linear(64, 64),
                    b=nn.Linear(64, 64),
                    v=nn.Linear(64, 1),
                    **{k: nn.LSTM(1, 64, batch_first=True) for k in ("in", "out")},
                ),
                lambda p: p.uniform_(-0.08, 0.08),
            ),
            lambda g, n: (x := torch.rand(n, 6, 1, generator=g), *x.sort(1)),
            lambda m, x, y, k: functional.cross_entropy(m(x, y).mT, k[..., 0]),
            FIT(3e-3, clip=2.0, batch=128, **LONG),
            "pointer network, sorting",
        ),
        one(
            "inferred",
            lambda: Net(
                lambda m, x: (
                    a := m["words"](x[:, :8]),
                    b := m["words"](x[:, 8:]),
                    e := m["f"](a) @ m["f"](b).mT,
                    m["last"](
                        torch.cat(
                            [
                                m["g"](torch.cat([a, e.softmax(2) @ b], 2)).sum(1),
                                m["g"](torch.cat([b, e.mT.softmax(2) @ a], 2)).sum(1),
                            ],
                            1,
                        )
                    ),
                )[3],
                words=nn.Embedding(64, 32),
                f=nn.Sequential(nn.Dropout(0.2), *mlp(32, 64, 64)[1:], nn.ReLU()),
                g=nn.Sequential(nn.Dropout(0.2), *mlp(64, 64, 64)[1:], nn.ReLU()),
                last=mlp(128, 64, 2),
            ),
            lambda g, n: (
                torch.cat(
                    [
                        x := torch.randint(64, (n, 8), generator=g),
                        torch.where(
                            (y := torch.arange(n) % 2)[:, None] > 0,
                            x.gather(1, torch.randint(8, (n, 4), generator=g)),
                            torch.randint(64, (n, 4), generator=g),
                        ),
                    ],
                    1,
                ),
                y,
            ),
            CE,
            FIT(1e-3, batch=128, **LONG),
            "decomposable attention",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "biaffine",
            lambda: Net(
                lambda m, x: (
                    h := m["body"](m["words"](x))[0],
                    d := m["d"](h),
                    u := functional.pad(m["h"](h), (0, 1), value=1.0),
                    d @ m["w"][0] @ u.mT,
                )[3],
                words=nn.Embedding(32, 32),
                body=nn.LSTM(32, 48, batch_first=True, bidirectional=True),
                w=nn.ParameterList([torch.zeros(32, 33)]),
                **{
                    k: nn.Sequential(nn.Linear(96, 32), nn.LeakyReLU(0.1), nn.Dropout(0.33))
                    for k in "dh"
                },
            ),
            words(32, 10, lambda x: x.argmax(1, True).expand_as(x)),
            lambda m, x, y: functional.cross_entropy(m(x).mT, y),
            FIT(2e-3, o.fading, betas=(0.9, 0.9), eps=1e-12, clip=5.0, batch=64, **LONG),
            "biaffine parser",
        ),
        one(
            "hierarchy",
            lambda: Net(
                lambda m, x: m["last"](
                    m["b"](m["a"](m["words"](x).flatten(0, 1)).unflatten(0, (-1, 5)))
                ),
                words=nn.Embedding(100, 32),
                a=focus(32),
                b=focus(32),
                last=nn.Linear(32, 4),
            ),
            changed(data.sentences, lambda x: x.view(-1, 5, 8)),
            CE,
            FIT(1e-3, clip=5.0, batch=64),
            "hierarchical attention",
        ),
        one(
            "reviews",
            lambda: nn.Sequential(
                nn.Embedding(100, 16),
                nn.Dropout(0.2),
                Function(lambda x: x.mean(1)),
                nn.Dropout(0.2),
                nn.Linear(16, 1),
            ),
            words(100, 30, lambda x: ((x < 20).sum(1, True) > (x > 79).sum(1, True)).float()),
            answered,
            FIT(0.02, batch=128, **LONG),
            "averaged words",
        ),
        one(
            "proteins",
            partial(
                library.hf,
                "EsmForMaskedLM",
                **TINY,
                mask_token_id=127,
                pad_token_id=0,
                position_embedding_type="rotary",
            ),
            contexts,
            lambda m, x: told(
                m,
                (x + 1).where(k := torch.rand(x.shape).argsort(1) > 0, 127),
                (x + 1).masked_fill(k, -100),
            ),
            FIT(3e-3, o.warm_up, **NANO, batch=64, **LONG),
            "ESM-2",
        ),
        *(
            one(
                name.lower(),
                partial(
                    library.hf,
                    f"{name}ForSequenceClassification",
                    **TINY | sizes | {"max_position_embeddings": 48},
                    num_labels=4,
                ),
                data.sentences,
                told,
                recipe,
                name,
            )
            for name, (sizes, recipe) in {
                "EuroBert": (GROUPED, FIT(5e-4, o.warm_up, **DECAY)),
                "Canine": (
                    {"num_hash_buckets": 128, "local_transformer_stride": 8},
                    FIT(1e-3, o.linear_down, **DECAY, clip=1.0, batch=8),
                ),
                "Nystromformer": (
                    {"segment_means_seq_len": 40, "num_landmarks": 8},
                    FIT(1e-3, o.cosine, **DECAY),
                ),
            }.items()
        ),
        one(
            "marian",
            partial(
                library.hf,
                "MarianMTModel",
                d_model=48,
                vocab_size=128,
                **SEQ,
                pad_token_id=0,
                max_position_embeddings=40,
                decoder_start_token_id=0,
            ),
            TEXT,
            lambda m, x: told(m, x, (x + 5) % 128),
            FIT(2e-3, o.ramp, betas=(0.9, 0.98), clip=5.0),
            "Marian",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        one(
            "mem_n2n",
            lambda: Net(
                lambda m, x, q: m["c"](
                    reduce(
                        lambda u, _: (
                            a := m["a"](x).sum(2) + m["ta"].weight,
                            m["h"](u)
                            + (
                                (a @ u[..., None]).softmax(1) * (m["b"](x).sum(2) + m["tb"].weight)
                            ).sum(1),
                        )[1],
                        "abc",
                        m["q"](q)[:, 0],
                    )
                ),
                **{
                    k: small(nn.Embedding(n, 32))
                    for k, n in (("a", 10), ("b", 10), ("q", 4), ("ta", 8), ("tb", 8))
                },
                h=small(nn.Linear(32, 32)),
                c=small(nn.Linear(32, 6, bias=False)),
            ),
            lambda g, n: (
                a := torch.randint(4, (n, 8), generator=g),
                b := torch.randint(6, (n, 8), generator=g),
                torch.stack([a, b + 4], 2),
                q := a.gather(1, torch.randint(8, (n, 1), generator=g)),
                b.gather(1, ((a == q) * torch.arange(1, 9)).argmax(1, True))[:, 0],
            )[2:],
            lambda m, x, q, y: functional.cross_entropy(m(x, q), y),
            FIT(0.01, clip=40.0, batch=64, **LONG),
            "end-to-end memory network",
        ),
        *(
            one(
                name.lower(),
                partial(
                    library.hf,
                    f"{name}ForSequenceClassification",
                    **TINY | sizes | {"max_position_embeddings": 48, "num_labels": 4},
                ),
                data.sentences,
                told,
                recipe,
                name,
            )
            for name, (sizes, recipe) in {
                "Electra": ({"embedding_size": 24}, FIT(1e-3, o.linear_down, **DECAY, clip=1.0)),
                "BigBird": (
                    {"attention_type": "original_full"},
                    FIT(1e-3, o.cosine, **DECAY, batch=12),
                ),
                "DistilBert": (
                    {"dim": 48, "n_layers": 2, "n_heads": 4, "hidden_dim": 96},
                    FIT(1e-3, o.linear_down, **DECAY),
                ),
                "OpenAIGPT": (
                    SIZES | PAD | {"n_positions": 48},
                    FIT(
                        1e-3, o.linear_down, kind=optim.AdamW, weight_decay=0.01, clip=1.0, batch=12
                    ),
                ),
            }.items()
        ),
        one(
            "many",
            partial(
                library.hf,
                "M2M100ForConditionalGeneration",
                d_model=48,
                vocab_size=128,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                encoder_ffn_dim=96,
                decoder_ffn_dim=96,
                max_position_embeddings=40,
                decoder_start_token_id=2,
                **PAD,
            ),
            TEXT,
            lambda m, x: told(m, x, (x + 5) % 128),
            FIT(2e-3, o.ramp, betas=(0.9, 0.98), clip=1.0, batch=8, steps=90, every=9),
            "M2M100",
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        *(
            one(
                name.lower(),
                partial(
                    library.hf,
                    f"{name}ForSequenceClassification",
                    **TINY | sizes | {"max_position_embeddings": 48, "num_labels": 4},
                ),
                data.sentences,
                told,
                recipe,
                name,
            )
            for name, (sizes, recipe) in {
                "SqueezeBert": ({"embedding_size": 48}, FIT(2e-3, o.linear_down, **DECAY)),
                "ConvBert": (
                    {"embedding_size": 48, "conv_kernel_size": 5},
                    FIT(1e-3, o.linear_down, **DECAY, clip=1.0),
                ),
                "Longformer": ({"attention_window": 8}, FIT(1e-3, o.ramp, **DECAY, batch=8)),
            }.items()
        ),
        one(
            "prod_lda",
            lambda: nn.ModuleDict(
                {
                    "down": nn.Sequential(
                        nn.Linear(100, 64),
                        nn.Softplus(),
                        nn.Linear(64, 64),
                        nn.Softplus(),
                        nn.Dropout(0.2),
                        nn.Linear(64, 16),
                        nn.BatchNorm1d(16, affine=False),
                    ),
                    "up": nn.Sequential(
                        nn.Dropout(0.2), nn.Linear(8, 100, False), nn.BatchNorm1d(100, affine=False)
                    ),
                }
            ),
            numbers(
                8,
                lambda z: (
                    p := (2 * z).softmax(1)
                    @ torch.where(torch.arange(100) // 12 == torch.arange(8)[:, None], 8.0, 0.1),
                    functional.one_hot(p.multinomial(40, True), 100).sum(1).float(),
                )[1],
            ),
            lambda m, _, x: (
                f := m["down"](x).chunk(2, 1),
                z := (f[0] + (f[1] / 2).exp() * torch.randn_like(f[0])).softmax(1),
                -(x * m["up"](z).log_softmax(1)).sum(1).mean()
                - (1 + f[1] - f[0] ** 2 - f[1].exp()).sum(1).mean() / 2,
            )[2],
            FIT(0.01, betas=(0.95, 0.999), batch=64, **LONG),
            "ProdLDA",
        ),
        one(
            "sorted",
            partial(library.hf, "GPT2LMHeadModel", **GPT, vocab_size=3, n_positions=16),
            lambda g, n: (
                x := torch.randint(3, (n, 6), generator=g),
                torch.cat([x, x.sort(1)[0]], 1),
            )[1:],
            lambda m, x: told(m, x, x.masked_fill(torch.arange(12) < 6, -100)),
            FIT(5e-4, **NANO, batch=64),
            "minGPT sorts",
        ),
        one(
            "tags",
            lambda: Net(
                lambda m, x: m["last"](m["drop"](m["body"](m["drop"](m["words"](x)))[0])).mT,
                words=nn.Embedding(60, 48),
                body=nn.LSTM(48, 48, 2, batch_first=True, bidirectional=True, dropout=0.25),
                drop=nn.Dropout(0.25),
                last=nn.Linear(96, 8),
            ),
            words(60, 16, lambda x: (x % 8 + (x.roll(1, 1) > 29)) % 8),
            CE,
            FIT(3e-3, batch=64),
            "BiLSTM tagger, 2 layers",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "col_bert",
            lambda: Net(
                lambda m, x: functional.normalize(m["last"](m["body"](x).last_hidden_state), dim=2),
                body=library.hf("BertModel", **TINY),
                last=nn.Linear(48, 32, False),
            ),
            lambda g, n: (
                x := torch.rand(n, 120, generator=g).argsort(1)[:, :12] + 4,
                x[:, torch.randperm(12)[:4]],
            ),
            lambda m, x, q: (
                a := m(q),
                b := m(x),
                functional.cross_entropy(
                    torch.einsum("qid,kjd->qkij", a, b).amax(3).sum(2), torch.arange(len(x))
                ),
            )[2],
            FIT(5e-4, o.linear_down, kind=optim.AdamW, weight_decay=0.01, batch=24),
            "ColBERT",
        ),
        one(
            "names",
            lambda: Net(
                lambda m, x: m["last"](m["body"](x)[1][0]).log_softmax(1),
                body=nn.RNN(27, 128, batch_first=True),
                last=nn.Linear(128, 6),
            ),
            lambda g, n: (
                y := torch.randint(6, (n,), generator=g),
                functional.one_hot(
                    (2 * TASTES[1, :6] @ TASTES[0, :27].T / 2)
                    .softmax(1)[y]
                    .multinomial(8, True, generator=g),
                    27,
                ).float(),
                y,
            )[1:],
            lambda m, x, y: functional.nll_loss(m(x), y),
            FIT(0.15, kind=optim.SGD, clip=3.0, batch=64),
            "PyTorch's names",
        ),
        *(
            one(
                name.lower(),
                partial(
                    library.hf,
                    f"{name}ForSequenceClassification",
                    **TINY | sizes | {"max_position_embeddings": 48, "num_labels": 4},
                ),
                data.sentences,
                told,
                recipe.but("", batch=8),
                name,
            )
            for name, (sizes, recipe) in {
                "Llama": (PAD, FIT(1e-3, o.linear_down, **DECAY, clip=1.0)),
                "XLMRobertaXL": (PAD, FIT(5e-4, o.two_phases, **DECAY, clip=1.0)),
                "GPT2": (
                    PAD | {"n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 48},
                    FIT(1e-3, o.linear_down, **DECAY, clip=1.0),
                ),
                "IBert": (PAD, FIT(1e-3, o.linear_down, **DECAY)),
            }.items()
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "self_attentive",
            lambda: Net(
                lambda m, x: (
                    h := m["body"](m["words"](x))[0],
                    a := m["at"](h).softmax(1),
                    (m["last"](a.mT @ h), a.mT @ a),
                )[2],
                words=nn.Embedding(102, 32, padding_idx=0),
                body=nn.LSTM(32, 32, batch_first=True, bidirectional=True),
                at=nn.Sequential(nn.Linear(64, 32, False), nn.Tanh(), nn.Linear(32, 4, False)),
                last=nn.Sequential(
                    nn.Flatten(), nn.Dropout(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 4)
                ),
            ),
            data.sentences,
            lambda m, x, y: (
                z := m(x),
                functional.cross_entropy(z[0], y)
                + 0.03 * (z[1] - torch.eye(4)).square().sum((1, 2)).mean(),
            )[1],
            FIT(1e-3, clip=0.5, batch=32),
            "self-attentive sentences",
        ),
    ),
]
