"""A twin shares the parameters of a model and none of its other state."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm

from fmapboard.capture.twin import NoTwin, Twin

IMAGES = torch.ones(2, 3, 6, 6)


class Changes(nn.Module):
    """A buffer is changed in place, one is replaced, one is created; so are attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("inplace", torch.zeros(2))
        self.register_buffer("replaced", torch.zeros(2))
        self.register_buffer("late", None)
        self.half = self.inplace[:1]
        self.seen = {"calls": [0]}

    def forward(self, x: Tensor) -> Tensor:
        self.inplace += 1
        self.replaced = self.replaced + 1
        self.late = torch.ones(3)
        self.seen["calls"].append(1)
        self.eval()
        return x


def test_what_a_pass_changes_is_changed_in_the_twin_alone() -> None:
    model = Changes()
    held = {name: getattr(model, name) for name in ("inplace", "replaced", "half")}
    twin: Any = Twin(model).module
    twin(IMAGES)
    assert (twin.inplace.tolist(), twin.replaced.tolist()) == ([1.0, 1.0], [1.0, 1.0])
    assert twin.half.tolist() == [1.0]
    assert (twin.seen, twin.training) == ({"calls": [0, 1]}, False)
    assert all(getattr(model, name) is tensor for name, tensor in held.items())
    assert [tensor.tolist() for tensor in held.values()] == [[0.0, 0.0], [0.0, 0.0], [0.0]]
    assert [tensor._version for tensor in held.values()] == [0, 0, 0]
    assert (model.late, model.seen, model.training) == (None, {"calls": [0]}, True)


def test_parameters_are_shared_also_tied_and_listed_ones() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)
            self.two.weight = self.one.weight
            self.listed = [nn.Parameter(torch.ones(2))]

    model = Tied()
    twin: Any = Twin(model).module
    assert [id(p) for p in twin.parameters()] == [id(p) for p in model.parameters()]
    assert twin.two.weight is model.one.weight
    assert twin.listed[0] is model.listed[0]
    assert type(twin) is Tied
    assert list(vars(twin.one)["_parameters"]) == ["weight", "bias"]


def test_a_pass_of_the_twin_reaches_the_parameters_and_nothing_else() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    Twin(model).module(IMAGES).sum().backward()
    assert model[0].weight.grad is not None
    assert model[1].num_batches_tracked.item() == 0


def test_a_shared_buffer_stays_shared_in_the_twin() -> None:
    model = nn.Sequential(nn.BatchNorm2d(2), nn.BatchNorm2d(2))
    model[1].running_mean = model[0].running_mean
    twin: Any = Twin(model).module
    assert twin[1].running_mean is twin[0].running_mean
    assert twin[0].running_mean is not model[0].running_mean


@pytest.mark.filterwarnings("ignore:.*weight_norm")
@pytest.mark.parametrize(
    "change",
    [parametrizations.spectral_norm, parametrizations.weight_norm, weight_norm,
     nn.utils.spectral_norm],
)  # fmt: skip
def test_computed_weights_are_computed_from_the_shared_ones(change: Callable[..., Any]) -> None:
    model = change(nn.Conv2d(3, 4, 3))
    model(IMAGES)
    before = [buffer.clone() for buffer in model.buffers()]
    expected = model.eval()(IMAGES)
    found = Twin(model).module(IMAGES)
    Twin(model.train()).module(IMAGES)
    assert torch.equal(found, expected)
    assert all(map(torch.equal, before, model.buffers()))


def test_compiled_and_parallel_parts_are_without_their_wrapper() -> None:
    def backend(module: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        raise AssertionError("compiled")

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    model[0].compile(backend=backend)
    model[1] = nn.DataParallel(model[1])
    model[2] = torch.compile(model[2], backend=backend)
    twin: Any = Twin(torch.compile(model, backend=backend)).module
    assert [type(module) for module in twin] == [nn.Conv2d, nn.ReLU, nn.Conv2d]
    assert twin(IMAGES).shape == (2, 4, 2, 2)


def test_hooks_are_called_with_modules_of_the_twin() -> None:
    seen = []

    class Own(nn.Conv2d):
        def note(self, *args: object) -> None:
            seen.append(self)

    model = Own(3, 4, 3)
    model.register_forward_hook(model.note)
    model.register_forward_hook(lambda module, args, output: seen.append(module))
    twin = Twin(model).module
    twin(IMAGES)
    assert [module is twin for module in seen] == [True, True]


def test_lazy_and_scripted_parts_are_copied() -> None:
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d())
    assert Twin(model).module(IMAGES).shape == (2, 4, 4, 4)
    assert isinstance(model[0], nn.LazyConv2d)
    assert model[0].has_uninitialized_params()


def _called(reference: Callable[[], Any], x: Tensor) -> Tensor:
    result: Tensor = reference()(x)
    return result


def _lambda(model: Any) -> Any:
    return lambda x: model.norm(x)


def _method(model: Any) -> Any:
    norm = model.norm.forward
    return lambda x: norm(x)


def _weak(model: Any) -> Any:
    return weakref.ref(model.norm)


def _partial(model: Any) -> Any:
    return functools.partial(_called, weakref.ref(model.norm))


def _nested(model: Any) -> Any:
    return {"blocks": [lambda x, norm=model.norm: norm(x)]}


@pytest.mark.parametrize("held", [_lambda, _method, _weak, _partial, _nested])
def test_a_function_that_refers_to_the_model_is_refused(held: Callable[[Any], Any]) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    model.norm = nn.BatchNorm2d(4)
    model.block = held(model)
    with pytest.raises(NoTwin, match=r"^Sequential\.block refers to the model, so a copy would"):
        Twin(model)


def test_a_method_of_the_model_is_one_of_the_twin() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    model.norm = nn.BatchNorm2d(4)
    model.block = functools.partial(model.norm.forward)
    Twin(model).module.block(torch.ones(2, 4, 3, 3))
    assert model.norm.num_batches_tracked.item() == 0


def test_a_hook_that_refers_to_the_model_is_refused() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
    model[0].register_forward_hook(lambda module, args, output: model[1](output))
    with pytest.raises(NoTwin, match=r"^a hook on Conv2d refers to the model"):
        Twin(model)


def test_what_cannot_be_copied_is_named() -> None:
    model = nn.Conv2d(3, 4, 3)
    model.lock = threading.Lock()
    with pytest.raises(NoTwin, match=r"^Conv2d\.lock cannot be copied \(cannot pickle"):
        Twin(model)
