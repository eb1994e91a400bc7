"""Hooks that are there only while a step is logged, on every way out, and inert in copies."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from torch import Tensor, nn

from fmapboard import HookRegistry, KernelShape, LayerNotFound
from fmapboard.records import Site

torch.set_num_threads(1)


class _Sink:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.sites: list[Site] = []
        self.values: list[Any] = []
        self.begun = 0
        self.start_over = False

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.begun += 1
        self.told.clear()
        self.sites.clear()

    def again(self) -> bool:
        return self.start_over

    def captured(self, site: Site, side: str, value: Any, module: nn.Module) -> None:
        self.told.append((side, site.label))
        self.sites.append(site)
        self.values.append(value)

    @property
    def labels(self) -> list[str]:
        return [label for _, label in self.told]


def _hooks(model: nn.Module) -> int:
    return sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
        + len(m._forward_hooks_with_kwargs) + len(m._forward_pre_hooks_with_kwargs)
        for m in model.modules()
    )  # fmt: skip


def _model() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Conv2d(2, 2, 3))


X = torch.ones(1, 1, 8, 8)


def test_hooks_are_present_only_while_armed() -> None:
    model = torchvision.models.resnet18()
    registry = HookRegistry(model)
    assert (_hooks(model), registry.armed) == (0, False)
    registry.arm(_Sink(), sides=("output", "input"))
    assert (_hooks(model) > 0, registry.armed) == (True, True)
    registry.disarm()
    assert (_hooks(model), registry.armed) == (0, False)
    registry.disarm()
    assert _hooks(model) == 0


def test_a_forward_tells_each_layer_once_in_call_order() -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink, sides=("output", "input"))
    model(X)
    registry.disarm()
    assert sink.told == [("input", "0"), ("output", "0"), ("input", "2"), ("output", "2")]
    assert [(site.call, site.position, str(site.kernel_shape)) for site in sink.sites] == [
        (1, 0, "2x1x3x3"),
        (1, 0, "2x1x3x3"),
        (1, 1, "2x2x3x3"),
        (1, 1, "2x2x3x3"),
    ]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_hooks_are_gone_after_an_exception_in_the_forward(error: type[BaseException]) -> None:
    class Breaks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            raise error

    model = nn.Sequential(nn.Conv2d(1, 1, 1), Breaks())
    registry = HookRegistry(model)
    registry.arm(_Sink())
    with pytest.raises(error):
        model(X)
    registry.disarm()
    assert _hooks(model) == 0


def test_hooks_are_gone_when_the_registry_is_collected() -> None:
    model = _model()
    registry = HookRegistry(model)
    registry.arm(_Sink())
    reference = weakref.ref(registry)
    del registry
    gc.collect()
    assert reference() is None
    assert _hooks(model) == 0


def test_arming_twice_leaves_one_set_of_hooks() -> None:
    model, first, second = _model(), _Sink(), _Sink()
    registry = HookRegistry(model)
    registry.arm(first)
    once = _hooks(model)
    registry.arm(second)
    assert _hooks(model) == once
    model(X)
    registry.disarm()
    assert (first.labels, second.labels) == ([], ["0", "2"])
    assert _hooks(model) == 0


def test_arming_that_fails_leaves_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _model()
    registry = HookRegistry(model)

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no hook for you")

    monkeypatch.setattr(model[2], "register_forward_hook", broken)
    with pytest.raises(RuntimeError, match="no hook for you"):
        registry.arm(_Sink())
    assert (_hooks(model), registry.armed) == (0, False)


def test_a_layer_called_again_in_one_forward_is_numbered() -> None:
    class Thrice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 1, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.conv(self.conv(self.conv(x)))  # type: ignore[no-any-return]

    model, sink = Thrice(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink, sides=("output", "input"))
    model(X)
    registry.disarm()
    assert [label for side, label in sink.told if side == "output"] == [
        "conv",
        "conv.call2",
        "conv.call3",
    ]
    assert [site.position for site in sink.sites] == [0, 0, 1, 1, 2, 2]


def test_a_second_forward_is_ignored_unless_the_sink_wants_to_start_over() -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink)
    model(X)
    model(X)
    assert (sink.begun, sink.labels) == (1, ["0", "2"])
    sink.start_over = True
    model(X)
    registry.disarm()
    assert (sink.begun, sink.labels) == (2, ["0", "2"])


class _BreaksOnce(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1)
        self.broken = True

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        if self.broken:
            raise MemoryError
        return self.last(x)  # type: ignore[no-any-return]


def test_a_forward_that_raised_does_not_count_and_the_next_is_recorded_from_the_start() -> None:
    model, sink = _BreaksOnce(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink)
    with pytest.raises(MemoryError):
        model(X)
    model.broken = False
    model(X)
    model(X)
    registry.disarm()
    assert (sink.begun, sink.labels) == (2, ["conv", "last"])


def test_a_refused_forward_tells_nothing_even_after_one_that_raised() -> None:
    model, sink = _BreaksOnce(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink, accept=lambda: model.training)
    with pytest.raises(MemoryError):
        model(X)
    model.broken = False
    model.eval()(X)
    assert sink.labels == ["conv"]  # of the broken pass
    model.train()(X)
    registry.disarm()
    assert (sink.begun, sink.labels) == (2, ["conv", "last"])


def test_an_evaluating_forward_between_is_refused() -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink, accept=lambda: model.training)
    model.eval()(X)
    assert (sink.begun, sink.labels) == (0, [])
    model.train()(X)
    model.eval()(X)
    registry.disarm()
    assert (sink.begun, sink.labels) == (1, ["0", "2"])


def test_where_the_roots_forward_is_bypassed_each_layers_first_call_is_told() -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink)
    for _ in range(2):
        x = X
        for layer in model:
            x = layer(x)
    registry.disarm()
    assert (sink.begun, sink.labels) == (0, ["0", "2"])


def test_while_paused_nothing_is_told() -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink)
    with registry.paused():
        model(X)
    assert (sink.begun, sink.labels) == (0, [])
    model(X)
    registry.disarm()
    assert sink.labels == ["0", "2"]


def test_hooks_tell_what_forward_itself_returned_and_got() -> None:
    model, sink = nn.Sequential(nn.Conv2d(1, 1, 1, bias=False)), _Sink()
    nn.init.ones_(model[0].weight)
    model[0].register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    model[0].register_forward_hook(lambda module, args, out: out * 5)
    registry = HookRegistry(model)
    registry.arm(sink, sides=("output", "input"))
    out = model(X)
    registry.disarm()
    (args, kwargs), own = sink.values
    assert (args[0].max().item(), kwargs, own.max().item()) == (3.0, {}, 3.0)
    assert out.max().item() == 15.0


def test_the_users_own_hooks_keep_their_order_and_stay() -> None:
    model, calls = _model(), []
    for name in "ab":
        model[0].register_forward_hook(lambda *_, name=name: calls.append(name))
    before = list(model[0]._forward_hooks.values())
    registry = HookRegistry(model)
    registry.arm(_Sink(), sides=("output", "input"))
    later = model[0].register_forward_hook(lambda *_: calls.append("c"))
    model(X)
    registry.disarm()
    assert list(model[0]._forward_hooks.values())[:2] == before
    later.remove()
    assert calls == ["a", "b", "c"]
    assert list(model[0]._forward_hooks.values()) == before


def test_an_armed_model_computes_bitwise_the_same() -> None:
    model = torchvision.models.squeezenet1_1().eval()
    x = torch.rand(1, 3, 64, 64)
    expected = model(x)
    registry = HookRegistry(model)
    registry.arm(_Sink(), sides=("output", "input"))
    out = model(x)
    registry.disarm()
    assert torch.equal(out, expected)
    assert type(out.grad_fn) is type(expected.grad_fn)


def _saved(model: nn.Module) -> bytes:
    stream = io.BytesIO()
    torch.save(model, stream)
    return stream.getvalue()


def _loaded(data: bytes) -> nn.Module:
    model: nn.Module = torch.load(io.BytesIO(data), weights_only=False)
    return model


@pytest.mark.parametrize(
    "twin",
    [
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: _loaded(_saved(model)),
        lambda model: torch.optim.swa_utils.AveragedModel(model).module,
    ],
    ids=["deepcopy", "pickle", "torch.save", "EMA"],
)
def test_a_copy_made_while_armed_captures_nothing_and_computes_the_same(twin: Any) -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink, sides=("output", "input"))
    copied = twin(model)
    out = copied(X)
    assert (sink.begun, sink.told) == (0, [])
    expected = model(X)
    registry.disarm()
    assert torch.equal(out, expected)
    assert sink.begun == 1
    copied(X)
    assert sink.begun == 1


def test_a_shallow_copy_of_a_layers_hook_is_inert() -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink)
    own = next(iter(model[0]._forward_hooks.values()))
    assert copy.copy(own)(model[0], (X,), {}, X) is None
    assert sink.told == []
    assert own(model[0], (X,), {}, X) is None
    registry.disarm()
    assert sink.told == [("output", "0")]


_WITHOUT_FMAPBOARD = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "fmapboard":
            raise ModuleNotFoundError("fmapboard is not installed here")

sys.meta_path.insert(0, Blocker())
import pickle, torch
for path in sys.argv[1:]:
    model = torch.load(path, weights_only=False)
    print(tuple(model(torch.ones(1, 1, 8, 8)).shape))
    pickle.loads(pickle.dumps(model))
assert "fmapboard" not in sys.modules
"""


def test_a_model_saved_while_armed_loads_and_runs_where_fmapboard_is_not_installed(
    tmp_path: Path,
) -> None:
    model = _model()
    registry = HookRegistry(model, also={"1": model[1]})
    registry.arm(_Sink(), sides=("output", "input"))
    (tmp_path / "armed.pt").write_bytes(_saved(model))
    (tmp_path / "copied.pt").write_bytes(_saved(copy.deepcopy(model)))
    registry.disarm()
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_FMAPBOARD, tmp_path / "armed.pt", tmp_path / "copied.pt"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "(1, 2, 4, 4)\n(1, 2, 4, 4)\n"


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
def test_tracing_and_a_checkpoints_second_forward_tell_nothing() -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink)
    torch.jit.trace(model, X, check_trace=False)
    assert (sink.begun, sink.told) == (0, [])
    from torch.utils.checkpoint import checkpoint

    sink.start_over = True
    checkpoint(model, X.clone().requires_grad_(), use_reentrant=False).sum().backward()
    registry.disarm()
    assert sink.begun == 1


def test_nothing_is_told_while_a_cuda_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model)
    registry.arm(sink)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    model(X)
    assert (sink.begun, sink.told) == (0, [])
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    model(X)
    registry.disarm()
    assert sink.begun == 1


def test_two_registries_that_end_in_any_order_give_compiled_code_back() -> None:
    import torch._dynamo

    def stance() -> str:
        return str(torch._dynamo.eval_frame._stance.stance)

    first, second = HookRegistry(_model()), HookRegistry(_model())
    first.arm(_Sink())
    second.arm(_Sink())
    assert stance() == "force_eager"
    first.disarm()
    assert stance() == "force_eager"
    second.disarm()
    assert stance() == "default"


def test_groups_hold_the_watched_convolutions_by_kernel_shape() -> None:
    model = _model()
    registry = HookRegistry(model, also={"1": model[1]})
    assert registry.groups == {KernelShape((2, 1, 3, 3)): ["0"], KernelShape((2, 2, 3, 3)): ["2"]}
    assert HookRegistry(model, nn.ReLU).groups == {}
    with pytest.raises(LayerNotFound):
        HookRegistry(model, "conv1")


def test_layers_watched_besides_are_told_for_numbers_alone_and_without_their_input() -> None:
    model, sink = _model(), _Sink()
    registry = HookRegistry(model, "0", also={"0": model[0], "1": model[1]})
    registry.arm(sink, sides=("output", "input"))
    model(X)
    registry.disarm()
    assert sink.told == [("input", "0"), ("output", "0"), ("output", "1")]
    assert [site.pictures for site in sink.sites] == [True, True, False]


def test_a_layer_that_changes_its_place_between_passes_is_told_of_at_its_new_one() -> None:
    class Turning(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1)

        def forward(self, x: Tensor, turned: bool) -> Tensor:
            first, second = (self.b, self.a) if turned else (self.a, self.b)
            return second(first(x))  # type: ignore[no-any-return]

    model, sink = Turning(), _Sink()
    registry = HookRegistry(model)
    places = []
    for turned in (False, True, False):
        registry.arm(sink)
        model(X, turned)
        places.append({site.layer: site.position for site in sink.sites})
    registry.disarm()
    assert places == [{"a": 0, "b": 1}, {"a": 1, "b": 0}, {"a": 0, "b": 1}]


def test_only_what_an_activation_returns_has_its_floor() -> None:
    model, sink = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()), _Sink()
    registry = HookRegistry(model, (nn.Conv2d, nn.ReLU))
    registry.arm(sink, sides=("input", "output"))
    model(X)
    registry.disarm()
    sides = [side for side, _ in sink.told]
    floors = [(side, s.layer, s.floor) for side, s in zip(sides, sink.sites, strict=True)]
    assert floors == [
        ("input", "0", None),
        ("output", "0", None),
        ("input", "1", None),
        ("output", "1", 0.0),
    ]
