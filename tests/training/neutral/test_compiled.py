"""A compiled training is bitwise the same when it is watched, and is compiled in the same way."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
import torch
from compiled_training import (
    EVERY,
    NETWORKS,
    SETUPS,
    STEPS,
    Block,
    Own,
    Setup,
    train,
    train_unwatched,
)  # fmt: skip
from logged_step import picture_tags, statistics_of
from torch import Tensor, nn
from torch._dynamo.eval_frame import OptimizedModule

import fmapboard
from fmapboard.capture.compiled import _Stance
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

pytestmark = pytest.mark.slow

DUE = list(range(0, STEPS, EVERY))
UNSEEN = {("torch.compile(m), watch(m)", "container"), ("watch(m), torch.compile(m)", "container")}
BACKENDS = {"own": "aot_eager", "container": "eager"}
"""What differs with a container is what is traced; the sweep has all backends."""
SELDOM = {
    *(("m.part = torch.compile(m.part)", network) for network in NETWORKS),
    ("torch.compile(m), watch(m)", "own"),
    *((setup, "container") for setup in ("watch(torch.compile(m))", "watch(m), torch.compile(m)")),
    *((setup, "container") for setup in ("watch(m), m.compile()", "m.part.compile()")),
    ("m.forward = torch.compile(m.forward)", "container"),
}
"""Pairs of a set-up and a network that only the sweep trains."""


def each(*pairs: tuple[str, str]) -> list[Any]:
    """The pairs as parameters, of which CI has the first."""
    return [pairs[0], *(pytest.param(*pair, marks=pytest.mark.sweep) for pair in pairs[1:])]


SCALAR = {"cpp.vec_isa_ok": False, "compile_threads": 1}
"""Vector code takes 20 s more: trial programs for each instruction set, and large headers."""
PASS_THE_COMPILED_ONE = "pass the compiled model, as in fmapboard.watch(torch.compile(model))"


def convolutions(step: LoggedStep) -> int:
    return sum("feature_maps_" in tag for tag in picture_tags(step))


def check(seen: Any, bare: Any) -> None:
    """Both trainings are the same, and every due step has the maps of both convolutions."""
    seen.assert_is(bare)
    assert [step.step for step in seen.steps] == DUE
    assert [convolutions(step) for step in seen.steps] == [2] * len(DUE)


@pytest.mark.parametrize(
    ("setup", "network"),
    [
        pytest.param(*pair, marks=pytest.mark.sweep if pair in SELDOM else ())
        for pair in itertools.product(SETUPS, NETWORKS)
    ],
)
def test_a_compiled_training_is_bitwise_the_same(
    setup: str, network: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = {"setup": SETUPS[setup], "make": NETWORKS[network], "backend": BACKENDS[network]}
    bare, seen = train_unwatched(**run), train(True, **run)
    seen.assert_is(bare)
    if network == "container" and not bare.compiled["calls"]:
        pytest.skip("this version of torch does not compile a container of its own in place")
    assert seen.compiled["calls"] == STEPS
    assert [step.step for step in seen.steps] == DUE
    unseen = [r.message for r in caplog.records if "no forward pass of the model was" in r.message]
    if (setup, network) in UNSEEN:
        assert [convolutions(step) for step in seen.steps] == [0] * len(DUE)
        (said,) = unseen
        assert PASS_THE_COMPILED_ONE in said
        assert all(step.scalars for step in seen.steps)
    else:
        assert unseen == []
        assert [convolutions(step) for step in seen.steps] == [2] * len(DUE)


@pytest.mark.parametrize(
    ("setup", "network"),
    each(
        ("watch(torch.compile(m))", "own"),
        ("m.compile(), watch(m)", "container"),
        ("watch(m), m.compile()", "own"),
    ),
)
def test_with_inductor_too(setup: str, network: str) -> None:
    run = {"setup": SETUPS[setup], "make": NETWORKS[network], "backend": "inductor"}
    with torch._inductor.config.patch(SCALAR):
        check(train(True, **run), train_unwatched(**run))


TOGETHER = {
    **{"fullgraph": True, "autocast": True, "shorter_batch": True},
    **{"probe": torch.ones(1, 3, 12, 12), "inputs": True},
}


@pytest.mark.parametrize(
    "setup",
    [
        pytest.param("watch(torch.compile(m))", marks=pytest.mark.sweep),
        pytest.param("m.compile(), watch(m)", marks=pytest.mark.sweep),
        "watch(m), m.compile()",
    ],
)
def test_with_all_other_options_too(setup: str) -> None:
    """In one training, as each of them means that the network is compiled again."""
    check(train(True, SETUPS[setup], **TOGETHER), train_unwatched(SETUPS[setup], **TOGETHER))


FULL = {
    "fullgraph": {"fullgraph": True},
    "autocast": {"autocast": True},
    "a shorter batch": {"shorter_batch": True},
    "probe and inputs": {"probe": torch.ones(1, 3, 12, 12), "inputs": True},
}


class TwoOutputs(nn.Module):
    """Returns an output that the loss does not use, from the same compiled graph."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        x = self.conv(x).tanh()
        return {"logits": self.head(x.mean((2, 3))), "maps": x}


def test_an_output_of_a_compiled_graph_that_no_loss_uses_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.compile(TwoOutputs(), backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    writer = MemoryWriter()
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1):
        for _ in range(2):
            model(torch.rand(16, 3, 12, 12))["logits"].square().mean().backward()
            optimizer.step()
    assert "it is not logged" not in caplog.text
    assert [step.step for step in writer.steps] == [0, 1]


@pytest.mark.sweep
@pytest.mark.parametrize("options", FULL.values(), ids=FULL)
@pytest.mark.parametrize(
    "setup", ["watch(torch.compile(m))", "m.compile(), watch(m)", "watch(m), m.compile()"]
)
def test_with_each_other_option_alone(setup: str, options: Any) -> None:
    check(train(True, SETUPS[setup], **options), train_unwatched(SETUPS[setup], **options))


def test_a_compiled_step_of_the_optimizer_too() -> None:
    def plain(model: nn.Module, watch: Any, how: Any) -> Any:
        watch(model)
        return model

    bare, seen = (train(watched, plain, compiled_step=True) for watched in (False, True))
    for counted in ("frames", "breaks"):  # torch itself has one inside, in another place then
        seen.compiled[counted] = bare.compiled[counted]
    check(seen, bare)
    assert bare.compiled["calls"] == STEPS


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, after a graph break
@pytest.mark.parametrize(("break_at", "calls"), [("", 1), ("end", 2), ("around", 2)])
def test_a_compiled_function_around_the_model_too(break_at: str, calls: int) -> None:
    def last(y: Tensor) -> Tensor:
        return torch.sin(y * 2)

    def around(model: nn.Module, watch: Any, how: Any) -> Any:
        watch(model)

        def function(x: Tensor) -> Tensor:
            y = model(x)
            if break_at == "end":
                torch._dynamo.graph_break()
            return last(y)

        if break_at == "around":  # the function runs as it is, and what it calls is compiled
            uncompiled = torch.compiler.disable(function, recursive=False)  # type: ignore[no-untyped-call]  # torch
            return torch.compile(lambda x: uncompiled(x), **how)
        return torch.compile(function, **how)

    fullgraph = not break_at
    bare, seen = (train(watched, around, fullgraph=fullgraph) for watched in (False, True))
    seen.assert_is(bare)
    assert bare.compiled["calls"] == STEPS * calls
    assert [step.step for step in seen.steps] == DUE


@pytest.mark.sweep
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("options", FULL.values(), ids=FULL)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("setup", SETUPS)
def test_all_set_ups_networks_options_and_backends(
    setup: str, network: str, options: Any, backend: str
) -> None:
    run = {"make": NETWORKS[network], "backend": backend, **options}
    train(True, SETUPS[setup], **run).assert_is(train_unwatched(SETUPS[setup], **run))


def test_the_maps_are_those_of_an_uncompiled_pass_and_the_gradients_of_the_compiled_one() -> None:
    def plain(model: nn.Module, watch: Any, how: Any) -> Any:
        watch(model)
        return model

    compiled = train(True, SETUPS["watch(torch.compile(m))"])
    eager = train(True, plain)
    for one, other in zip(compiled.steps[:1], eager.steps[:1], strict=True):
        for layer in ("layer1.conv", "layer2.conv"):
            a, b = statistics_of(one, layer), statistics_of(other, layer)
            assert a.maximum.tolist() == pytest.approx(b.maximum.tolist(), rel=1e-5)
        norms = {k: v for k, v in one.scalars.items() if k.startswith("gradient_norm/")}
        assert norms == pytest.approx({k: other.scalars[k] for k in norms}, rel=1e-4)


def test_no_execution_stance_is_set_while_the_users_code_runs() -> None:
    seen, other_graphs = list[tuple[int, bool]](), list[int]()

    def backend(graph: Any, inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            other_graphs.append(1)
            return graph.forward(*args)

        return run

    torch.compiler.reset()
    other = torch.compile(lambda x: x * 2 + 1, backend=backend)

    class Notes(Own):
        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_compiling():
                seen.append((len(_Stance.holders), torch.is_grad_enabled()))
            return super().forward(x)

    model = Notes()
    model.layer1 = torch.compile(model.layer1, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=1):
        for _ in range(3):
            other(torch.ones(2))
            model(torch.rand(2, 3, 12, 12)).sum().backward()
            other(torch.ones(2))
            optimizer.step()
    assert seen == [(1, False), (0, True)] * 3  # the side pass, and the user's own
    assert len(other_graphs) == 6


class Stateful(Own):
    """Leaves something on itself in each pass, as an auxiliary loss or a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("passes", torch.zeros(()))
        self.calls, self.losses, self.kept = 0, list[Tensor](), torch.zeros(4)
        self.aux: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        x.add_(0.5)
        self.passes.add_(1)
        self.passes = self.passes.clone()
        self.kept.add_(1)
        self.calls += 1
        out = super().forward(x)
        self.aux = out.square().mean()
        self.losses.append(self.aux)
        if not hasattr(self, "has_run"):
            self.has_run = True
            out = out * 2
        if "late" not in self._buffers:
            self.register_buffer("late", torch.zeros(()))
            out = out * 3
        return out + self.aux + self.passes * 0.01 + random.random() + np.random.rand()


def test_what_forward_leaves_on_the_model_is_as_without_us() -> None:
    class Summed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = Stateful()

        def forward(self, x: Tensor) -> Tensor:
            out = self.body(x)
            return out + self.body.aux + len(self.body.losses) + self.body.kept  # type: ignore[no-any-return]

    def part(model: Any, watch: Any, how: Any) -> Any:
        random.seed(0)
        np.random.seed(0)
        model.body.layer1 = torch.compile(model.body.layer1, **how)
        watch(model)
        return model

    bare, seen = train(False, part, Summed), train(True, part, Summed)
    check(seen, bare)


def test_a_forward_that_changes_parameters_is_refused_before_it_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Decaying(Own):
        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                self.head.weight.mul_(0.9)
            return super().forward(x)

    setup = SETUPS["m.part.compile()"]
    bare, seen = train(False, setup, Decaying), train(True, setup, Decaying)
    seen.assert_is(bare)
    (said,) = [r.message for r in caplog.records if "changes parameters" in r.message]
    assert "forward() changes parameters (head.weight), so it is not run a second time" in said
    assert [convolutions(step) for step in seen.steps] == [0, 0, 0]


@pytest.mark.parametrize("kind", ["SyncBatchNorm", "lazy"])
def test_no_pass_is_run_beside_where_it_would_change_something(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Special(Own):
        def __init__(self) -> None:
            super().__init__()
            if kind == "lazy":
                self.head = nn.LazyLinear(4)
            else:
                self.layer2.norm = nn.SyncBatchNorm(8)
                self.layer2.norm.eval()

    model = Special()
    model.layer1.compile(backend="eager")

    kept = MemoryWriter()
    optimizer = torch.optim.SGD(list(model.parameters()), lr=0.0)
    board = fmapboard.watch(model, writer=kept, every=1)
    for number in range(2):
        with board.step(number):
            model(torch.rand(2, 3, 12, 12)).sum().backward()
            optimizer.step()
    board.close()
    said = [r.message for r in caplog.records if "SyncBatchNorm" in r.message]
    if kind == "lazy":
        assert [convolutions(step) for step in kept.steps] == [0, 2]
        assert said == []
    else:
        assert [convolutions(step) for step in kept.steps] == [0, 0]
        assert len(said) == 1
        assert "ranks would wait for each other, so it is not run a second time" in said[0]
    assert "no watched layer ran" not in caplog.text


def test_eager_is_the_way_that_has_gradients_of_maps_and_says_that_it_is_not_neutral(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = {"activation_gradients": True, "attribution": True}
    setup: Setup = SETUPS["watch(torch.compile(m))"]
    beside = train(True, setup, **options)
    beside.assert_is(train_unwatched(setup))
    (said,) = [r.message for r in caplog.records if "compiled" in r.message]
    assert said.startswith("fmapboard: the model is compiled, so activation_gradients= and")
    caplog.clear()
    eager = train(True, setup, compiled="eager", **options)
    assert [convolutions(step) for step in eager.steps] == [2] * len(DUE)
    kinds = {picture.kind for picture in eager.steps[0].pictures}
    assert {"gradients_of_maps", "attribution"} <= kinds
    (said,) = [r.message for r in caplog.records if "eager" in r.message]
    assert "training is not bitwise the same as without fmapboard" in said
    assert eager.compiled["calls"] == STEPS - len(DUE)


def test_an_error_in_the_pass_beside_is_reported_and_training_is_the_same(
    caplog: pytest.LogCaptureFixture, errors_are_only_logged: None
) -> None:
    class Fails(Own):
        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_compiling():
                raise LookupError("only compiled")
            return super().forward(x)

    setup = SETUPS["watch(torch.compile(m))"]
    bare, seen = train(False, setup, Fails), train(True, setup, Fails)
    seen.assert_is(bare)
    assert caplog.text.count("compiled model: LookupError: only compiled") == 1
    assert "no watched layer ran" not in caplog.text


def test_a_compiled_network_whose_parent_is_watched_but_never_called() -> None:
    class Module(nn.Module):
        """As a LightningModule, whose own forward does not run."""

        def __init__(self) -> None:
            super().__init__()
            self.net = Own()

    def setup(model: Any, watch: Any, how: Any) -> Any:
        model.net = torch.compile(model.net, **how)
        watch(model)
        return model.net

    check(train(True, setup, Module), train(False, setup, Module))


def test_copies_of_a_compiled_model_leave_the_watch_behind() -> None:
    import copy

    model = Block(3, 4)
    compiled = torch.compile(model, backend="eager")
    kept = MemoryWriter()
    board = fmapboard.watch(compiled, writer=kept, every=1)
    with board.step(0):
        twin = copy.deepcopy(compiled)
        assert isinstance(twin, OptimizedModule)
        twin(torch.rand(1, 3, 12, 12))
        compiled(torch.rand(1, 3, 12, 12))
        assert "fmapboard" not in repr(vars(twin).get("forward"))
    assert "fmapboard" not in repr(vars(compiled).get("forward"))
    board.close()
    assert len(kept.steps) == 1
