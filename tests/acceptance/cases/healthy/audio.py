"""Healthy: sounds and speech."""

from __future__ import annotations

from functools import partial

import data
import losses
import optimizers as o
import timm
import torch
from data import changed
from loops import seen
from losses import CE, mu_law, told
from nets import classifiers as cnn
from nets import library, signals
from nets.classifiers import Function
from nets.parts import Net, Residual, glorot, mlp, norm1, slim
from nets.series import WaveNet
from recipes import DECAY, FIT, NANO, how, one
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

SOUNDS = changed(data.spectrograms, lambda x: x[:, 0])

CASES = [
    *seen(
        "2026-11-27T11:30",
        one(
            "wave_net",
            partial(WaveNet, 64),
            data.tones(256),
            mu_law,
            how(3e-3, batch=8),
            "WaveNet (1-D)",
        ),
        one(
            "spoken",
            slim("test_efficientnet", 6, in_chans=1),
            data.spectrograms,
            losses.classes(0.1),
            how(2e-3, o.warm_up, **DECAY),
            "timm EfficientNet, 1 channel",
        ),
    ),
    *seen(
        "2026-11-28T03:00",
        one(
            "ast",
            partial(
                library.hf,
                "ASTForAudioClassification",
                **library.BODY,
                patch_size=8,
                max_length=32,
                frequency_stride=6,
                time_stride=6,
                num_mel_bins=33,
                num_labels=6,
            ),
            changed(SOUNDS, lambda x: x.mT),
            told,
            FIT(1e-3, o.cosine, **DECAY, batch=32),
            "spectrogram transformer",
        ),
        one(
            "separable",
            lambda: nn.Sequential(
                nn.Conv2d(1, 32, (10, 4), 2, (5, 1)),
                nn.BatchNorm2d(32),
                nn.ReLU(),
                cnn.unit(32, 32, groups=32),
                cnn.unit(32, 32, 1),
                cnn.unit(32, 32, groups=32),
                cnn.unit(32, 32, 1),
                *cnn.head(32, 6, 0.2),
            ),
            data.spectrograms,
            CE,
            FIT(2e-3),
            "DS-CNN of sounds",
        ),
    ),
    *seen(
        "2026-11-28T10:00",
        one(
            "panns",
            lambda: nn.Sequential(
                cnn.unit(1, 32, 5),
                nn.AvgPool2d(2),
                cnn.unit(32, 64, 5),
                nn.AvgPool2d(2),
                Function(lambda x: (z := x.mean(2)).amax(2) + z.mean(2)),
                nn.Dropout(0.5),
                nn.Linear(64, 64),
                nn.ReLU(),
                nn.Linear(64, 6),
            ),
            data.spectrograms,
            lambda m, x, y: functional.binary_cross_entropy_with_logits(
                m(x), functional.one_hot(y, 6).float()
            ),
            FIT(1e-3, amsgrad=True, batch=8),
            "PANNs",
        ),
        one(
            "codec",
            lambda: nn.Sequential(
                *(
                    weight_norm(x) if hasattr(x, "weight") else x
                    for x in (
                        nn.Conv1d(1, 16, 7, 1, 3),
                        nn.ELU(),
                        nn.Conv1d(16, 32, 8, 4, 2),
                        nn.ELU(),
                        nn.Conv1d(32, 32, 3, 1, 1),
                        nn.ELU(),
                        nn.ConvTranspose1d(32, 16, 8, 4, 2),
                        nn.ELU(),
                        nn.Conv1d(16, 1, 7, 1, 3),
                    )
                )
            ),
            data.tones(1024),
            lambda m, x, _: (
                functional.l1_loss(y := m(x), x)
                + sum(
                    functional.l1_loss(
                        *(
                            torch.stft(
                                w[:, 0], n, n // 4, window=torch.hann_window(n), return_complex=True
                            ).abs()
                            for w in (y, x)
                        )
                    )
                    for n in (64, 256)
                )
                / 2
            ),
            FIT(1e-3, betas=(0.5, 0.9)),
            "codec of sounds, as EnCodec",
        ),
    ),
    *seen(
        "2026-11-28T12:40",
        one(
            "machines",
            lambda: nn.Sequential(
                *(
                    layer
                    for a, b in ((165, 64), (64, 64), (64, 8), (8, 64), (64, 64))
                    for layer in (nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU())
                ),
                nn.Linear(64, 165),
            ),
            data.spectrograms,
            lambda m, x, _: functional.mse_loss(
                m(z := x[:, 0].unfold(2, 5, 4).transpose(1, 2).reshape(-1, 165)), z
            ),
            FIT(1e-3, batch=48),
            "DCASE's autoencoder",
        ),
        one(
            "m5",
            signals.waveform,
            data.tones(512),
            CE,
            FIT(0.01, o.stairs, weight_decay=1e-4, batch=32),
            "M5",
        ),
    ),
    *seen(
        "2026-11-28T13:20",
        *(
            one(
                name.lower(),
                partial(
                    library.hf,
                    f"{name}ForSequenceClassification",
                    **library.BODY,
                    conv_dim=(24,) * 3,
                    conv_stride=(5, 4, 2),
                    conv_kernel=(10, 8, 4),
                    num_conv_pos_embeddings=16,
                    num_conv_pos_embedding_groups=4,
                    mask_time_length=2,
                    num_labels=6,
                ),
                changed(
                    data.tones(800),
                    lambda x: ((x - x.mean(2, True)) / x.std(2, keepdim=True))[:, 0],
                ),
                told,
                recipe,
                name,
            )
            for name, recipe in {
                "Hubert": FIT(1e-3, o.warm_up, **DECAY),
                "WavLM": FIT(1e-3, o.linear_down, **DECAY, clip=1.0),
            }.items()
        ),
    ),
    *seen(
        "2026-11-28T14:55",
        one(
            "x_vector",
            lambda: Net(
                lambda m, x: (h := m["body"](x), m["last"](torch.cat([h.mean(2), h.std(2)], 1)))[1],
                body=nn.Sequential(
                    norm1(33, 48, 5), norm1(48, 48, 3, 2), norm1(48, 48, 3, 3), norm1(48, 96)
                ),
                last=nn.Sequential(
                    nn.Linear(192, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 6)
                ),
            ),
            SOUNDS,
            CE,
            FIT(1e-3, o.fading, batch=32),
            "x-vectors",
        ),
        one(
            "unispeech",
            partial(
                library.hf,
                "UniSpeechSatForSequenceClassification",
                **library.BODY,
                conv_dim=(24,) * 3,
                conv_stride=(5, 4, 2),
                conv_kernel=(10, 8, 4),
                num_conv_pos_embeddings=16,
                num_conv_pos_embedding_groups=4,
                mask_time_length=2,
                num_labels=6,
            ),
            changed(
                data.tones(800), lambda x: ((x - x.mean(2, True)) / x.std(2, keepdim=True))[:, 0]
            ),
            told,
            FIT(1e-3, o.two_phases, **DECAY, clip=1.0, steps=80, every=8),
            "UniSpeech-SAT",
        ),
        one(
            "whisper",
            partial(
                library.hf,
                "WhisperForConditionalGeneration",
                num_mel_bins=33,
                d_model=48,
                encoder_layers=2,
                decoder_layers=2,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                encoder_ffn_dim=96,
                decoder_ffn_dim=96,
                vocab_size=64,
                max_source_positions=16,
                max_target_positions=16,
                pad_token_id=0,
                bos_token_id=1,
                eos_token_id=2,
                decoder_start_token_id=1,
            ),
            SOUNDS,
            lambda m, x, y: (
                m(
                    input_features=x,
                    labels=torch.stack([y + 10, y // 2 + 20, torch.full_like(y, 2)], 1),
                ).loss
            ),
            FIT(1e-3, o.warm_up, **NANO),
            "Whisper",
        ),
    ),
    *seen(
        "2026-11-28T15:30",
        one(
            "wav2vec2",
            partial(
                library.hf,
                "Wav2Vec2ForSequenceClassification",
                **library.BODY,
                conv_dim=(24,) * 3,
                conv_stride=(5, 4, 2),
                conv_kernel=(10, 8, 4),
                num_conv_pos_embeddings=16,
                num_conv_pos_embedding_groups=4,
                mask_time_length=2,
                num_labels=6,
            ),
            changed(
                data.tones(800), lambda x: ((x - x.mean(2, True)) / x.std(2, keepdim=True))[:, 0]
            ),
            told,
            FIT(1e-3, o.ramp, **DECAY, clip=1.0, steps=80, every=8),
            "wav2vec 2.0",
        ),
    ),
    *seen(
        "2026-11-28T16:05",
        one(
            "matchbox",
            lambda: nn.Sequential(
                norm1(33, 48, 5),
                *(
                    Residual(
                        nn.Conv1d(48, 48, k, 1, k // 2, groups=48),
                        nn.Conv1d(48, 48, 1),
                        nn.BatchNorm1d(48),
                        nn.ReLU(),
                        nn.Dropout(0.1),
                    )
                    for k in (7, 9, 11)
                ),
                norm1(48, 64),
                nn.AdaptiveAvgPool1d(1),
                nn.Flatten(),
                nn.Linear(64, 6),
            ),
            SOUNDS,
            CE,
            FIT(
                0,
                o.warm_up,
                "NovoGrad 0.05",
                lambda m: timm.optim.NvNovoGrad(
                    m.parameters(), 0.05, (0.95, 0.5), weight_decay=1e-3
                ),
                batch=32,
            ),
            "MatchboxNet",
        ),
        one(
            "ecapa",
            lambda: Net(
                lambda m, x: (
                    h := m["a"](x),
                    h := m["wide"](
                        torch.cat(
                            [h := h + f(h) * g(f(h).mean(2))[..., None] for f, g in m["body"]], 1
                        )
                    ),
                    w := m["at"](h).softmax(2),
                    c := (h * w).sum(2),
                    functional.normalize(
                        m["last"](
                            torch.cat([c, ((h**2 * w).sum(2) - c**2).clamp(min=1e-4).sqrt()], 1)
                        )
                    )
                    @ functional.normalize(m["goal"].weight).T,
                )[4],
                a=norm1(33, 48, 5),
                body=nn.ModuleList(
                    nn.ModuleList(
                        [
                            nn.Sequential(
                                norm1(48, 48),
                                nn.Conv1d(48, 48, 3, 1, k, k),
                                nn.ReLU(),
                                nn.BatchNorm1d(48),
                            ),
                            nn.Sequential(mlp(48, 24, 48), nn.Sigmoid()),
                        ]
                    )
                    for k in (2, 3)
                ),
                wide=nn.Sequential(nn.Conv1d(96, 96, 1), nn.ReLU()),
                at=nn.Sequential(norm1(96, 32), nn.Tanh(), nn.Conv1d(32, 96, 1)),
                last=nn.Sequential(nn.BatchNorm1d(192), nn.Linear(192, 48), nn.BatchNorm1d(48)),
                goal=glorot(nn.Embedding(6, 48)),
            ),
            SOUNDS,
            lambda m, x, y: functional.cross_entropy(
                30
                * torch.where(
                    functional.one_hot(y, 6) > 0,
                    ((c := m(x).clamp(-0.999, 0.999)).acos() + 0.2).cos(),
                    c,
                ),
                y,
            ),
            FIT(1e-3, o.stairs, weight_decay=2e-5, batch=24),
            "ECAPA-TDNN",
        ),
    ),
]
