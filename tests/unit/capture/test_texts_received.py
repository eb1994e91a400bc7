"""Whether a network receives one text per sample and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fmapboard.capture.texts import is_only_text

IDS = torch.ones(2, 5, dtype=torch.long)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((IDS,), {}),
        ((IDS, IDS > 0), {}),
        (({"input_ids": IDS, "attention_mask": torch.ones(2, 5)},), {}),
        ((), {"input_ids": IDS, "labels": IDS, "token_type_ids": IDS, "position_ids": IDS}),
    ],
)
def test_masks_labels_types_and_positions_are_no_other_input(
    args: Any, kwargs: dict[str, Any]
) -> None:
    assert is_only_text(args, kwargs)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((IDS, IDS), {}),
        ((torch.rand(2, 3, 8, 8), IDS), {}),
        ((), {"input_ids": IDS, "decoder_input_ids": IDS}),
        ((torch.rand(2, 5),), {}),
    ],
)
def test_a_second_text_and_images_are(args: Any, kwargs: dict[str, Any]) -> None:
    assert not is_only_text(args, kwargs)
