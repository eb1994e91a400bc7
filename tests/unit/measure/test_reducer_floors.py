"""Dead channels lie at the floor of their activation module, for every module that has one."""

from __future__ import annotations

import pytest
import torch
from numpy_statistics import measure
from torch import Tensor, nn

from fmapboard.measure.reducer import Reducer
from fmapboard.model.roles import activations, floor_of
from fmapboard.records import LayerCall


def test_a_value_below_the_floor_of_an_activation_is_the_minimum() -> None:
    class Below(nn.ReLU6):
        def forward(self, x: Tensor) -> Tensor:
            return x

    maps = torch.zeros(2, 1, 3, 3)
    maps[1] = -4.0
    layer_call = LayerCall("act", "Below", floor=0.0, pictures=False)
    pending = Reducer()(layer_call, "feature_maps", maps, Below())
    assert pending.statistics is not None
    assert pending.statistics.to_host().minimum.tolist() == [-4.0]


# --- constant and dead, per activation


_ACTIVATIONS: list[tuple[nn.Module, float]] = [
    (nn.ReLU(), 0.0),
    (nn.ReLU(inplace=True), 0.0),
    (nn.ReLU6(), 0.0),
    (nn.Hardtanh(-0.3, 2.0), -0.3),
    (nn.Threshold(0.1, -0.7), -0.7),
    (nn.Hardsigmoid(), 0.0),
    (nn.Hardswish(), 0.0),
    (nn.ELU(1.3), -1.3),
    (nn.CELU(0.7), -0.7),
    (nn.SELU(), -1.7580993408473766),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("module", "floor"), _ACTIVATIONS, ids=lambda value: str(value))
def test_a_channel_at_the_floor_of_its_activation_is_dead_in_every_dtype(
    module: nn.Module, floor: float, dtype: torch.dtype
) -> None:
    x = torch.full((2, 3, 4, 4), -1e4, dtype=dtype)
    x[:, 1] = 1.0
    x[0, 2, 0, 0] = 1.0
    out = module(x)
    assert floor_of(module) == pytest.approx(floor, rel=1e-12)
    layer_call = LayerCall("act", type(module).__name__, floor=floor_of(module), pictures=False)
    pending = Reducer()(layer_call, "feature_maps", out, module)
    assert pending.statistics is not None
    found = pending.statistics.to_host()
    assert found.dead is not None
    assert found.dead.tolist() == [True, False, False]
    assert found.constant.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("module", "x"),
    [(nn.Hardswish(), -1.0), (nn.Threshold(1.0, 5.0), 2.0), (nn.ELU(), -1.0)],
    ids=["Hardswish", "Threshold", "ELU"],
)
def test_a_constant_channel_away_from_the_floor_is_not_dead(module: nn.Module, x: float) -> None:
    found = measure(module(torch.full((2, 1, 3, 3), x)), floor_of(module))
    assert found.constant.tolist() == [True]
    assert found.dead is not None
    assert found.dead.tolist() == [False]


@pytest.mark.parametrize(
    "module", [nn.LeakyReLU(), nn.PReLU(), nn.GELU(), nn.SiLU(), nn.Sigmoid(), nn.Conv2d(1, 1, 1)]
)
def test_a_module_without_a_constant_lower_region_has_no_floor(module: nn.Module) -> None:
    assert floor_of(module) is None


def test_activation_modules_with_a_floor_are_found_at_any_depth() -> None:
    inner = nn.Sequential(nn.Conv2d(1, 1, 1), nn.ReLU(), nn.GELU())
    assert list(activations(nn.Sequential(inner, nn.ELU()))) == ["0.1", "1"]
