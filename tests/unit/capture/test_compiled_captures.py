"""No wait of a worker thread and no capture of a CUDA graph run at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from fmapboard.capture import compiled
from fmapboard.capture.compiled import Captures

LIMIT = 20.0  # s; only broken code takes that long


def graph_class(captures: Captures) -> Any:
    """A class that begins and ends captures as `torch.cuda.CUDAGraph` does."""

    class Graph:
        begun: Callable[[], object] = staticmethod(list)

        def capture_begin(self, pool: object = None, *, mode: str = "global") -> str:
            self.begun()
            return f"{pool} {mode}"

        def capture_end_pre(self) -> None:
            return

        def capture_end(self) -> None:
            self.capture_end_pre()

    captures.follow(Graph)
    return Graph


def test_a_capture_receives_its_arguments_and_returns_its_result() -> None:
    graph = graph_class(Captures())()
    assert graph.capture_begin("pool", mode="relaxed") == "pool relaxed"
    assert graph.capture_end() is None


def test_no_wait_begins_while_any_graph_is_captured() -> None:
    captures = Captures(limit=0.0)
    one, two = (graph_class(captures)() for _ in range(2))
    one.capture_begin()
    two.capture_begin()
    one.capture_end()
    with pytest.raises(TimeoutError, match="a CUDA graph was still being captured"):
        captures.none_open().__enter__()


def test_a_wait_begins_when_the_last_capture_ends() -> None:
    captures = Captures(LIMIT)
    graph, events = graph_class(captures)(), []

    def wait() -> None:
        with captures.none_open():
            events.append("wait")

    graph.capture_begin()
    thread = threading.Thread(target=wait)
    thread.start()
    events.append("end")
    graph.capture_end()
    thread.join(LIMIT)
    assert events == ["end", "wait"]


def test_a_capture_begins_when_the_wait_under_way_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    captures = Captures(LIMIT)
    graph, events = graph_class(captures)(), []
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        with captures.none_open():
            inside.set()
            go_on.wait(LIMIT)
            events.append("wait")

    thread = threading.Thread(target=wait)
    thread.start()
    assert inside.wait(LIMIT)
    wait_for = captures._changed.wait_for

    def released(*args: Any) -> bool:
        go_on.set()  # the capture has come to its own wait
        return wait_for(*args)

    monkeypatch.setattr(captures._changed, "wait_for", released)
    graph.begun = lambda: events.append("begin")
    graph.capture_begin()
    go_on.set()
    thread.join(LIMIT)
    assert events == ["wait", "begin"]


def test_a_capture_that_fails_to_begin_or_to_end_is_over() -> None:
    captures = Captures(limit=0.0)

    class Failing:
        def capture_begin(self) -> None:
            raise RuntimeError("no capture")

        def capture_end(self) -> None:
            raise RuntimeError("invalidated")

    captures.follow(Failing)
    graph = Failing()
    with pytest.raises(RuntimeError, match="no capture"):
        graph.capture_begin()
    with captures.none_open():
        pass
    captures._open.add(id(graph))
    with pytest.raises(RuntimeError, match="invalidated"):
        graph.capture_end()
    with captures.none_open():
        pass


def test_a_capture_that_never_ends_is_waited_for_once() -> None:
    captures = Captures(limit=0.0)
    graph = graph_class(captures)()
    graph.capture_begin()
    with pytest.raises(TimeoutError):
        captures.none_open().__enter__()
    with captures.none_open():
        pass


@pytest.mark.parametrize("kind", [int, None, type("Graph", (), {"capture_begin": print})])
def test_a_class_without_captures_is_left_as_it_is(kind: type | None) -> None:
    before = dir(kind)
    Captures().follow(kind)
    assert dir(kind) == before
    assert getattr(kind, "capture_begin", print) is print


def test_the_graphs_of_torch_are_followed_and_their_methods_can_be_wrapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followed: list[type] = []
    monkeypatch.setattr(compiled.CAPTURES, "follow", followed.append)
    compiled._follow_all.__wrapped__()
    assert torch.cuda.CUDAGraph in followed
    own = type("OwnGraph", (torch.cuda.CUDAGraph,), {})
    Captures().follow(own)
    assert own.capture_begin.__wrapped__ is torch.cuda.CUDAGraph.capture_begin
    assert own.capture_end.__wrapped__ is torch.cuda.CUDAGraph.capture_end
