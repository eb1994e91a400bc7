"""Whether equal tokens of a text have equal outputs although their labels differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fmapboard.gradients.loss import NOTHING
from fmapboard.gradients.output_facts import _ignores_places, _labels_ahead
from fmapboard.gradients.rounding import Array

OWN = np.array([3, 3, 5, 5] * 6)
TEXTS = np.repeat([0, 1], 12)
ROWS = np.random.default_rng(0).normal(size=(8, 7))[OWN + TEXTS]
LABELS = np.arange(24) % 7


def ignores(rows: Array = ROWS, labels: Array = LABELS, dtype: torch.dtype = torch.float32) -> bool:
    reading = replace(NOTHING, rows=np.arange(24), labels=labels)
    return _ignores_places(np.stack([OWN, OWN, OWN, TEXTS]), rows, reading, dtype)


def test_equal_tokens_with_equal_outputs_and_other_labels_are_found() -> None:
    assert ignores()
    assert ignores(ROWS + 1e-6 * np.arange(24)[:, None])


def test_outputs_that_differ_and_labels_that_do_not_tell_nothing() -> None:
    other = ROWS.copy()
    other[1] += 0.01
    assert not ignores(other)
    assert not ignores(labels=OWN)


def test_texts_whose_last_and_first_tokens_are_equal_are_told_apart() -> None:
    own = np.sort(OWN.reshape(2, 12), axis=1)
    own[0] = [3] * 6 + [5] * 6
    own[1] = [5] * 6 + [6] * 6
    rows = np.random.default_rng(0).normal(size=(2, 8, 7))[TEXTS, own.ravel()]
    tokens = np.stack([own.ravel()] * 3 + [TEXTS])
    reading = replace(NOTHING, rows=np.arange(24), labels=LABELS)
    assert _ignores_places(tokens, rows, reading, torch.float32)


def test_half_precision_tells_nothing() -> None:
    assert not ignores(dtype=torch.bfloat16)


@pytest.mark.parametrize(("shift", "ahead"), [(0, 0), (1, 1), (2, 2), (3, None)])
def test_labels_are_compared_with_the_next_two_tokens(shift: int, ahead: int | None) -> None:
    ids = np.arange(12)
    tokens = np.stack([np.append(ids[n:], [-1] * n) for n in range(3)] + [np.zeros(12, int)])
    reading = replace(NOTHING, rows=np.arange(12), labels=np.roll(ids, -shift))
    assert _labels_ahead(tokens, reading) == ahead
    constant = replace(reading, labels=np.zeros(12, int))
    assert _labels_ahead(np.zeros_like(tokens), constant) is None
