"""The calls of a module are seen without a hook on it, and nothing stays behind."""

from __future__ import annotations

import copy
import pickle
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from module_hooks import hook_count
from torch import Tensor, nn

from fmapboard.capture import module_calls
from fmapboard.capture.module_calls import Call, CallWatch

SLOT = "_compiled_call_impl"
X = torch.ones(1, 2)


class Listener:
    """Notes what it is told."""

    def __init__(self, follows: bool = True) -> None:
        self.follows, self.seen = follows, list[Any]()

    def call_begins(self, call: Call) -> bool:
        self.seen.append(("begins", call.args[0].sum().item(), sorted(call.kwargs)))
        return self.follows

    def call_returned(self, call: Call, output: Any) -> None:
        self.seen.append(("returned", tuple(output.shape)))

    def call_left(self, call: Call) -> None:
        self.seen.append("left")

    @property
    def calls(self) -> int:
        return sum(one[0] == "begins" for one in self.seen)


class Doubling(nn.Module):
    """A user's own class, with a parameter and a hook of the user's."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((2,), 2.0))
        self.raises: BaseException | None = None

    def forward(self, x: Tensor, twice: bool = False) -> Tensor:
        if self.raises is not None:
            raise self.raises
        return x * self.weight


class OwnState(Doubling):
    """Decides itself what belongs into a copy."""

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)


@pytest.fixture(params=[Doubling, OwnState])
def model(request: pytest.FixtureRequest) -> Iterator[nn.Module]:
    made = request.param()
    yield made
    assert SLOT not in vars(made)
    assert hook_count(made) == 0


def watched(model: nn.Module, listener: Listener) -> CallWatch:
    watch = CallWatch(model, listener, allows_hooks=True)
    watch.place()
    return watch


def test_a_call_is_seen_from_its_beginning_to_its_end(model: nn.Module) -> None:
    listener = Listener()
    watch = watched(model, listener)
    assert torch.equal(model(X, twice=True), X * 2)
    assert listener.seen[-3:] == [("begins", 2.0, ["twice"]), ("returned", (1, 2)), "left"]
    watch.take()
    model(X)
    assert listener.calls == 1


def test_a_call_that_is_not_followed_runs_as_usual() -> None:
    model, listener = Doubling(), Listener(follows=False)
    watch = watched(model, listener)
    assert torch.equal(model(X), X * 2)
    assert listener.seen == [("begins", 2.0, []), "left"]
    watch.take()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_call_that_raises_is_left(error: type[BaseException]) -> None:
    model, listener = Doubling(), Listener()
    watch = watched(model, listener)
    model.raises = error()
    with pytest.raises(error):
        model(X)
    assert listener.seen == [("begins", 2.0, []), "left"]
    watch.take()


@pytest.mark.parametrize("first_taken", [0, 1])
def test_two_watches_end_in_any_order(first_taken: int, model: nn.Module) -> None:
    listeners = [Listener(), Listener()]
    watches = [watched(model, one) for one in listeners]
    model(X)
    watches[first_taken].take()
    model(X)
    again = watched(model, listeners[first_taken])
    model(X)
    assert [one.calls for one in listeners] == [3 - (first_taken == 0), 3 - (first_taken == 1)]
    watches[1 - first_taken].take()
    again.take()


def test_what_compile_left_is_called_and_stays() -> None:
    model, listener, ran = Doubling(), Listener(), list[str]()

    def compiled(*args: Any) -> Tensor:
        ran.append("compiled")
        return model._call_impl(*args)  # type: ignore[no-any-return]

    vars(model)[SLOT] = compiled
    watch = watched(model, listener)
    assert torch.equal(model(X), X * 2)
    assert (listener.calls, ran) == (1, ["compiled"])
    watch.take()
    assert vars(model)[SLOT] is compiled


@pytest.mark.parametrize("watches", [1, 2])
def test_what_compile_leaves_later_is_called_and_stays(watches: int) -> None:
    model, ran, listeners = Doubling(), list[str](), [Listener() for _ in range(watches)]

    def compiled(*args: Any) -> Tensor:
        ran.append("compiled")
        return model._call_impl(*args)  # type: ignore[no-any-return]

    placed = [watched(model, listener) for listener in listeners]
    for calls in (1, 2):  # `model.compile()`, twice
        vars(model)[SLOT] = compiled
        assert torch.equal(model(X), X * 2)
        assert ([one.calls for one in listeners], len(ran)) == ([calls] * watches, calls)
    assert SLOT not in vars(copy.deepcopy(model))
    assert SLOT not in vars(pickle.loads(pickle.dumps(model)))
    for watch in placed:
        watch.take()
    assert vars(model)[SLOT] is compiled
    vars(model)[SLOT] = other = Doubling().forward
    assert vars(model)[SLOT] is other


def test_nothing_is_put_where_a_watch_ended_or_nothing_is_left() -> None:
    model, listener = Doubling(), Listener()
    watch = watched(model, listener)
    del vars(model)[SLOT]
    assert SLOT not in vars(model)
    watch.take()
    taken = watched(model, listener)
    function = vars(model)[SLOT]
    taken.take()
    vars(model)[SLOT] = model.forward
    del function
    assert vars(model)[SLOT] == model.forward
    del vars(model)[SLOT]
    watched(model, listener)
    gone = weakref.ref(model)
    del model
    assert gone() is None


@pytest.mark.parametrize("make", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_is_not_watched(make: Any, model: nn.Module) -> None:
    listener = Listener()
    watch = watched(model, listener)
    twin = make(model)
    assert torch.equal(twin(X), X * 2)
    assert listener.seen == []
    assert SLOT not in vars(twin)
    watch.take()


def test_a_copy_with_all_attributes_runs_itself_and_is_not_seen() -> None:
    model, listener = Doubling(), Listener()
    watch = watched(model, listener)
    twin = Doubling()
    vars(twin).update({SLOT: vars(model)[SLOT]})
    twin.weight.data.fill_(5.0)
    assert torch.equal(twin(X), X * 5)
    assert listener.seen == []
    watch.take()
    assert torch.equal(twin(X), X * 5)


def test_a_replica_of_data_parallel_runs_itself_and_is_seen() -> None:
    model, listener = Doubling(), Listener()
    watch = watched(model, listener)
    replica = model._replicate_for_data_parallel()
    replica.weight = torch.full((2,), 5.0)
    done = []
    thread = threading.Thread(target=lambda: done.append(replica(X)))
    thread.start()
    thread.join()
    assert torch.equal(done[0], X * 5)
    assert listener.calls == 1
    watch.take()


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_without_torchs_private_names_there_is_a_hook_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module_calls, "_torch_has_slot", lambda: False)
    model, listener = Doubling(), Listener()
    watch = watched(model, listener)
    assert (SLOT in vars(model), hook_count(model)) == (False, 2)
    model(X)
    assert listener.calls == 1
    model.raises = KeyError()
    with pytest.raises(KeyError):
        model(X)
    model.raises = None
    model(X)
    begins = ("begins", 2.0, [])
    assert listener.seen[-5:] == [begins, "left", begins, ("returned", (1, 2)), "left"]
    twin = copy.deepcopy(model)
    twin(X)
    assert listener.calls == 3
    with pytest.raises(AttributeError, match=r"script the model before fmapboard\.watch"):
        torch.jit.script(model)
    watch.take()
    assert hook_count(model) == 0


@pytest.mark.parametrize("missing", ["skip", "slot"])
def test_a_torch_without_a_private_name_is_recognized(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module_calls._torch_has_slot.cache_clear()
    if missing == "slot":
        monkeypatch.setattr(module_calls, "_SLOT", "_no_such_name")
    else:

        def no_skip() -> Any:
            raise AttributeError

        monkeypatch.setattr(module_calls, "_skip_code", no_skip)
    assert not module_calls._torch_has_slot()
    module_calls._torch_has_slot.cache_clear()
