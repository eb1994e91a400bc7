"""Reading rows of attention changes nothing, and its function mode is gone after each pass."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from attending_networks import LABELS, NETWORKS, UNSEEN, AttendingNet, Attention, fused, images
from compiled_training import SETUPS, train, train_unwatched
from logged_step import measurement
from networks import NestedNet, Raises
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

import fmapboard
from fmapboard.capture import attention as read_attention
from fmapboard.capture.module_calls import _Process
from fmapboard.capture.passes import PassRecorder
from fmapboard.model.distributed import whole
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


@pytest.fixture(autouse=True)
def _nothing_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier tests have compiled in this process, where attention is then read beside the pass."""
    torch.compiler.reset()
    monkeypatch.setattr(_Process, "compiles", False)


SWEEP = pytest.mark.sweep


def modes() -> int:
    return torch._C._len_torch_function_stack()


def labels(step: LoggedStep) -> list[str]:
    """Of the rows of attention."""
    found = [part.layer_call for part in step.statistics]
    return [call.label for call in found if call.unit == "head"]


def trained(
    make: Callable[[], nn.Module], writer: MemoryWriter | None, steps: int = 4
) -> list[Tensor]:
    """What a training leaves: losses, parameters, and the random state."""
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    watching: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if writer is not None:
        watching = fmapboard.watch(model, writer=writer, optimizer=optimizer, every=2)
    left = []
    with watching:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images()), torch.arange(6) % 4)
            loss.backward()
            optimizer.step()
            left.append(loss.detach())
            assert modes() == 0
    left += [parameter.detach() for parameter in model.parameters()]
    return [*left, torch.get_rng_state()]


def assert_same(one: list[Tensor], other: list[Tensor]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_training_whose_attention_is_read_is_bitwise_the_same(name: str) -> None:
    kept = MemoryWriter()
    assert_same(trained(NETWORKS[name], kept), trained(NETWORKS[name], None))
    assert [labels(step) for step in kept.steps] == [LABELS, LABELS]


def saves_products(context: object, operation: object, *args: Any, **kwargs: Any) -> Any:
    aten = torch.ops.aten
    saved = (aten.mm.default, aten.addmm.default, aten.bmm.default, aten._softmax.default)
    return CheckpointPolicy.MUST_SAVE if operation in saved else CheckpointPolicy.PREFER_RECOMPUTE


CHECKPOINTS: dict[str, dict[str, Any]] = {
    "reentrant": {"use_reentrant": True},
    "non-reentrant": {"use_reentrant": False},
    "selective": {
        "use_reentrant": False,
        "context_fn": lambda: create_selective_checkpoint_contexts(saves_products),
    },
}


@pytest.mark.each_once
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("how", CHECKPOINTS)
def test_a_checkpointed_training_is_bitwise_the_same(how: str, name: str) -> None:
    def make() -> nn.Module:
        model = NETWORKS[name]()
        for block in model.blocks:
            block.forward = partial(checkpoint, block.forward, **CHECKPOINTS[how])
        return model

    kept = MemoryWriter()
    assert_same(trained(make, kept), trained(make, None))
    assert [labels(step) for step in kept.steps] == [LABELS, LABELS]


@pytest.fixture
def one_process() -> Iterator[None]:
    """A process group of gloo with this process alone."""
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield
    dist.destroy_process_group()


def sharded_part(part: nn.Module) -> nn.Module:
    """FSDP2's."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    return fully_shard(part, mesh=init_device_mesh("cpu", (1,)))


def sharded(model: nn.Module) -> nn.Module:
    """FSDP2's, each block by itself."""
    for block in model.blocks:
        sharded_part(block)
    return sharded_part(model)


@pytest.mark.usefixtures("one_process")
@pytest.mark.each_once
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("wrap", [nn.parallel.DistributedDataParallel, sharded])
def test_a_distributed_training_is_bitwise_the_same(
    wrap: Callable[[nn.Module], nn.Module], name: str
) -> None:
    kept = MemoryWriter()
    seen = trained(lambda: wrap(NETWORKS[name]()), kept)
    bare = trained(lambda: wrap(NETWORKS[name]()), None)
    assert_same(list(map(whole, seen)), list(map(whole, bare)))
    assert [labels(step) for step in kept.steps] == [LABELS, LABELS]


@pytest.mark.parametrize(
    ("setup", "name"),
    [
        pytest.param("watch(torch.compile(m))", "scaled_dot_product_attention", marks=SWEEP),
        pytest.param("m.compile(), watch(m)", "softmax", marks=SWEEP),
        ("watch(m), m.compile()", "MultiheadAttention"),
    ],
)
def test_a_compiled_training_is_bitwise_the_same_and_is_compiled_as_often(
    setup: str, name: str
) -> None:
    run: dict[str, Any] = {"setup": SETUPS[setup], "make": NETWORKS[name]}
    seen = train(True, **run)
    seen.assert_is(train_unwatched(**run))
    assert seen.compiled["calls"] > 0
    assert [labels(step) for step in seen.steps] == [LABELS] * 3


@pytest.fixture
def after_a_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something in this process was passed to torch.compile."""
    monkeypatch.setattr(_Process, "compiles", True)


class Counts(Attention):
    """Attention that changes with the number of its calls."""

    calls = 0

    def forward(self, tokens: Tensor) -> Tensor:
        self.calls += 1
        return super().forward(tokens) / self.calls


class Cache:
    """Queries of earlier layers, as in caches of transformers."""

    def __init__(self) -> None:
        self.layers: list[Any] = []


class Caching(Attention):
    """Attention that depends on how many layers have used a cache before."""

    def forward(self, tokens: Tensor, cache: Cache) -> Tensor:
        cache.layers.append(SimpleNamespace(keys=tokens * 2))
        added = sum(layer.keys.mean() for layer in cache.layers)
        return super().forward(tokens) * len(cache.layers) + added


class CachingNet(AttendingNet):
    """Blocks that share a cache.

    Args:
        cache: makes it.
    """

    def __init__(self, cache: Callable[[], Cache] = Cache) -> None:
        super().__init__(lambda: Caching(fused))
        self.cache = cache

    def forward(self, x: Tensor) -> Tensor:
        cache = self.cache()
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            tokens = tokens + block.attn(tokens, cache)
        return self.head(tokens.mean(1))


class Uncopied(Cache):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("no copy of a cache")


BESIDE: dict[str, Callable[[], nn.Module]] = {
    **NETWORKS,
    "state": lambda: AttendingNet(lambda: Counts(fused)),
    "cache": CachingNet,
}


def checkpointed(make: Callable[[], nn.Module], how: str) -> nn.Module:
    model = make()
    if isinstance(model, CachingNet):
        how = ""  # its forward does not call the blocks
    for block in model.blocks if how else ():
        block.forward = partial(checkpoint, block.forward, **CHECKPOINTS[how])
    return model


@pytest.mark.usefixtures("after_a_compilation")
@pytest.mark.each_once
@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("how", ["", "reentrant", "non-reentrant", "selective"])
def test_after_a_compilation_attention_is_read_beside_and_training_stays_bitwise_the_same(
    how: str, name: str
) -> None:
    make = partial(checkpointed, BESIDE[name], how)
    kept = MemoryWriter()
    assert_same(trained(make, kept), trained(make, None))
    assert [labels(step) for step in kept.steps] == [LABELS, LABELS]


@pytest.mark.usefixtures("after_a_compilation")
def test_attention_whose_arguments_cannot_be_copied_is_not_run_beside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    make = partial(CachingNet, Uncopied)
    kept = MemoryWriter()
    assert_same(trained(make, kept), trained(make, None))
    assert [labels(step) for step in kept.steps] == [[], []]
    assert [m for m in caplog.messages if "rows of attention" in m] == [
        "fmapboard: the rows of attention in blocks.0.attn are not recorded: torch.compile is "
        "used, and its arguments cannot be copied (no copy of a cache)"
    ]


def test_rows_that_are_read_beside_are_those_of_the_pass_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directly, beside = MemoryWriter(), MemoryWriter()
    trained(NETWORKS["softmax"], directly)
    monkeypatch.setattr(_Process, "compiles", True)
    trained(NETWORKS["softmax"], beside)
    for label in LABELS:
        for one, other in zip(directly.steps, beside.steps, strict=True):
            expected, found = measurement(one, label), measurement(other, label)
            assert expected.planes is not None
            assert found.planes is not None
            assert found.layer_call == expected.layer_call
            assert (found.planes.hi == expected.planes.hi).all()


def attention_sharded(model: nn.Module) -> nn.Module:
    """FSDP2's, each attention by itself."""
    for block in model.blocks:
        sharded_part(block.attn)
    return sharded(model)


@pytest.mark.filterwarnings("ignore:FSDP2-wrapped module")  # whose output is a view
@pytest.mark.usefixtures("after_a_compilation", "one_process")
@pytest.mark.parametrize("wrap", [sharded, attention_sharded])
def test_attention_whose_own_parameters_are_sharded_is_not_run_beside(
    wrap: Callable[[nn.Module], nn.Module], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    kept = MemoryWriter()
    make = NETWORKS["scaled_dot_product_attention"]
    seen = trained(lambda: wrap(make()), kept)
    bare = trained(lambda: wrap(make()), None)
    assert_same(list(map(whole, seen)), list(map(whole, bare)))
    said = [m for m in caplog.messages if "rows of attention" in m]
    if wrap is sharded:  # the block has gathered them
        assert [labels(step) for step in kept.steps] == [LABELS, LABELS]
        assert said == []
        return
    assert [labels(step) for step in kept.steps] == [[], []]
    assert said == [
        "fmapboard: the rows of attention in blocks.0.attn are not recorded: torch.compile is "
        "used, and its parameters are sharded over ranks, which would wait for each other"
    ]


@contextlib.contextmanager
def compiled(function: Callable[..., Any]) -> Iterator[list[Any]]:
    """Compile a function in the block, which yields how often that was done."""
    graphs: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    yield [torch.compile(function, backend=backend), graphs]
    torch.compiler.reset()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch's own, in compiling
def test_a_compiled_function_that_attention_calls_is_compiled_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query * 2, key, value)

    caplog.set_level(logging.INFO, "fmapboard")
    with compiled(attend) as (called, graphs):
        # A function behind a table, as in transformers: nothing tells that it is compiled.
        table = {"attend": called}

        def make() -> nn.Module:
            return AttendingNet(lambda: Attention(lambda *given: table["attend"](*given)))

        kept = MemoryWriter()
        watched = trained(make, kept)
        assert len(graphs) == 1
    table["attend"] = attend
    assert_same(watched, trained(make, None))
    assert [labels(step) for step in kept.steps] == [LABELS, LABELS]
    assert not [m for m in caplog.messages if "rows of attention" in m]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # torch's own, in compiling
def test_a_function_that_a_logged_pass_compiles_is_compiled_without_us() -> None:
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value)

    made: list[Any] = []

    def lazily(*given: Tensor) -> Tensor:
        if not made:
            made.append(torch.compile(attend, backend="aot_eager", fullgraph=True))
        return made[0](*given)

    kept = MemoryWriter()
    watched = trained(lambda: AttendingNet(lambda: Attention(lazily)), kept)
    assert_same(watched, trained(lambda: AttendingNet(lambda: Attention(attend)), None))
    assert len(made) == 1


class Flex(Attention):
    def __init__(self) -> None:
        super().__init__(lambda *given: flex_attention(*given))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize(
    ("is_used", "why"),
    [
        (False, "it is computed in a way that is not known here"),
        (True, "torch.compile is used, and uncompiled, flex_attention holds the whole matrix"),
    ],
)
def test_flex_attention_which_compiles_by_itself_runs_as_before_and_is_named_once(
    is_used: bool,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(_Process, "compiles", is_used)
    caplog.set_level(logging.INFO, "fmapboard")
    model = AttendingNet(Flex)
    kept = MemoryWriter()
    with torch.no_grad():
        with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
            watched = model(images())
        assert torch.equal(model(images()), watched)
    assert labels(kept.steps[0]) == []
    said = [m for m in caplog.messages if "rows of attention" in m]
    assert said == [f"fmapboard: the rows of attention in blocks.0.attn are not recorded: {why}"]


def test_attention_that_is_computed_in_another_way_is_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    kept = MemoryWriter()
    trained(UNSEEN, kept)
    assert [labels(step) for step in kept.steps] == [[], []]
    said = [m for m in caplog.messages if "rows of attention" in m]
    assert said == [
        "fmapboard: the rows of attention in blocks.0.attn are not recorded: it is computed in a "
        "way that is not known here"
    ]


def test_the_fast_path_of_torch_is_taken_as_without_us_and_rows_are_read_beside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fmapboard")
    fast = []
    native = torch._native_multi_head_attention

    def counted(*given: Any, **more: Any) -> Any:
        fast.append(given)
        return native(*given, **more)

    monkeypatch.setattr(torch, "_native_multi_head_attention", counted)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    tokens = torch.linspace(-1, 1, 96).sin().reshape(2, 6, 8)
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, layers="layers.0.self_attn", every=1) as board:
        with board.step(0), torch.no_grad():
            model(tokens)
        assert len(fast) == 1  # of the layer with hooks; the other one is fast as a whole
        model.train()
        with board.step(1), torch.no_grad():
            model(tokens)
    rows = ["layers.0.self_attn.rows", "layers.0.self_attn.peak_rows"]
    assert [labels(step) for step in kept.steps] == [rows, rows]
    assert not [m for m in caplog.messages if "rows of attention" in m]


class Frozen(nn.Module):
    """A frozen encoder of torch in eval mode in front of a head that is trained."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2).requires_grad_(False).eval()
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor, is_padding: torch.Tensor | None) -> torch.Tensor:
        found: torch.Tensor = self.head(self.encoder(tokens, src_key_padding_mask=is_padding))
        return found


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("is_padded", [False, True])
def test_a_frozen_encoder_on_the_fast_path_is_trained_behind_bitwise_the_same(
    is_padded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    kept = MemoryWriter()
    is_padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2]) if is_padded else None
    weights = []
    for is_watched in (True, False):
        torch.manual_seed(0)
        model = Frozen()
        optimizer = torch.optim.AdamW(model.head.parameters(), lr=0.01)
        with contextlib.ExitStack() as stack:
            if is_watched:
                watch = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=2)
                stack.enter_context(watch)
            for _ in range(5):
                optimizer.zero_grad()
                model(torch.randn(2, 6, 8), is_padding).square().mean().backward()
                optimizer.step()
        weights.append(model.head.weight.detach())
    assert torch.equal(*weights)
    rows = [label for step in kept.steps for label in labels(step)]
    assert len(rows) == (0 if is_padded else 3 * 4)
    assert not [m for m in caplog.messages if "failed" in m]


def test_a_network_without_attention_gets_no_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = []
    monkeypatch.setattr(
        PassRecorder, "_see_attention", lambda *given, **more: entered.append(given)
    )
    trained_without = NestedNet()
    optimizer = torch.optim.SGD(trained_without.parameters(), lr=0.1)
    with fmapboard.watch(trained_without, writer=MemoryWriter(), optimizer=optimizer, every=1):
        trained_without(torch.rand(2, 3, 12, 12)).sum().backward()
        optimizer.step()
    assert entered == []


@pytest.mark.parametrize("error", [ValueError("the user's"), KeyboardInterrupt()])
def test_the_mode_is_gone_where_a_pass_raises(error: BaseException) -> None:
    torch.manual_seed(0)
    model = NETWORKS["scaled_dot_product_attention"]()
    model.blocks[1].attn = nn.Sequential(model.blocks[1].attn, Raises(error))
    board = fmapboard.watch(model, writer=MemoryWriter(), every=1)
    with contextlib.suppress(type(error)), board.step(0):
        try:
            model(images())
        finally:
            assert modes() == 0
    assert modes() == 0
    board.close()


@pytest.mark.usefixtures("errors_are_only_logged")
@pytest.mark.parametrize("place", ["running_modules", "read_heads"])
def test_an_error_of_ours_does_not_reach_the_pass(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*given: object, **options: object) -> None:
        raise LookupError("a fault of ours")

    make = NETWORKS["scaled_dot_product_attention"]
    bare = trained(make, None)
    kept = MemoryWriter()
    monkeypatch.setattr(read_attention, place, fail)
    assert_same(trained(make, kept), bare)
    assert [labels(step) for step in kept.steps] == [[], []]
    assert "LookupError: a fault of ours; it is not logged; training continues" in caplog.text


def test_modes_of_the_user_stay_as_they_are() -> None:
    """One that was on before the pass, and one that the pass leaves on."""

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    class Enters(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            inner.__enter__()
            return x

    outer, inner = Mode(), Mode()
    model = NETWORKS["softmax"]()
    model.head = nn.Sequential(model.head, Enters())
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, every=1) as board, outer, board.step(0):
        model(images())
        on = [torch._C._get_function_stack_at(place) for place in range(modes())]
        inner.__exit__(None, None, None)
    assert on == [outer, inner]
    assert labels(kept.steps[0]) == LABELS
