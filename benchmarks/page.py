"""The tab from fmapboard's own server beside the tab in TensorBoard, on the same log, interleaved.

    python benchmarks/page.py                # a log of 700 MB, 3 rounds
    python benchmarks/page.py --mb 100 --rounds 1

Trains a ResNet-18 for some logged steps and repeats them up to the size (or takes --log, a
directory that it wrote there before). In each round, `fmapboard serve --standalone` and `fmapboard
serve` are started one after the other on the log, each with a browser that has nothing cached:

- page: from the start of the command until the address answers
- first screen: from there until the overview can be used
- all read: from the start until the server has read the newest step (TensorBoard samples the steps)
- click: to another step, until its maps are drawn; the median of ten
- live: from the moment at which a new step is written until the page shows it
- memory: of the server with its children, at the end

Needs `pip install playwright torchvision`, and a browser: chromium or google-chrome on PATH.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from tab_cost import memory
from tab_page import PATIENCE_MS, QUIET, READY, chromium
from tensorboard.compat.proto import event_pb2

from fmapboard.formats import framing

RUN = "resnet18"
TRAINED = 40
"""Logged steps that are trained; further ones repeat them."""
SERVERS = {"standalone": ("--standalone",), "TensorBoard": ()}
FIGURES = ("page s", "first screen s", "all read s", "click ms", "live s", "memory MB")
NEWEST = "(step) => Number(document.documentElement.dataset.step) >= step"
FRAMED = """() => [...document.querySelectorAll("iframe")]
  .some((each) => each.contentWindow.location.href.includes("feature_maps"))"""
# Time from the slider's event until the tab reports that other maps are drawn, ms.
CLICK = """async (index) => {
  const slider = document.querySelector("input[aria-label=Step]");
  const at = document.documentElement;
  const { drawn } = at.dataset;
  const started = performance.now();
  slider.value = String(index);
  slider.dispatchEvent(new Event("input"));
  while (at.dataset.drawn === drawn) await new Promise(requestAnimationFrame);
  return performance.now() - started;
}"""


@dataclass
class Log:
    """An event file that can grow.

    Attributes:
        file: the event file.
        last: the events of its last logged step.
    """

    file: Path
    last: list[Any] = field(default_factory=list)

    @property
    def newest(self) -> int:
        """The newest step."""
        return int(self.last[-1].step)

    def grow(self) -> None:
        """Write one more step, as a training would."""
        for event in self.last:
            event.step += 1
            event.wall_time = time.time()
        with self.file.open("ab") as opened:
            opened.write(b"".join(framed(event) for event in self.last))


def framed(event: Any) -> bytes:
    """An event as it is stored."""
    return b"".join(framing.frame(event.SerializeToString()))


def train(run: Path) -> None:
    """Log some steps of a ResNet-18 on noise."""
    import torch
    from torchvision import models

    import fmapboard

    torch.manual_seed(0)
    model = models.resnet18()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with fmapboard.watch(model, run, every=1, optimizer=optimizer):
        for _ in range(TRAINED):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy
            loss(model(torch.randn(2, 3, 96, 96)), torch.tensor([1, 2])).backward()
            optimizer.step()


def events_of(file: Path) -> list[Any]:
    """The events of a file."""
    found = []
    with file.open("rb") as opened:
        for _, size in framing.records(opened):
            found.append(event_pb2.Event.FromString(opened.read(size)))
    return found


def repeat(file: Path, size: int) -> None:
    """Repeat the steps of an event file until it has a size in bytes, one second per step."""
    events = events_of(file)
    head = [event for event in events if not event.summary.value]
    steps = [event for event in events if event.summary.value]
    each = sum(len(framed(event)) for event in steps)
    copies = max(1, -(-size // each))
    span = 1 + max(event.step for event in steps)
    start = time.time() - copies * span
    with file.open("wb") as opened:
        for event in head:
            opened.write(framed(event))
        for copy in range(copies):
            for event in steps:
                repeated = event_pb2.Event()
                repeated.CopyFrom(event)
                repeated.step += copy * span
                repeated.wall_time = start + repeated.step
                opened.write(framed(repeated))


def log_in(folder: Path, size: int) -> Log:
    """The log in a folder, written there if it is missing."""
    run = folder / RUN
    if not run.exists():
        train(run)
        (file,) = run.glob("*tfevents*")
        repeat(file, size)
    (file,) = run.glob("*tfevents*")
    last: list[Any] = []
    with file.open("rb") as opened:
        for _, length in framing.records(opened):
            event = event_pb2.Event.FromString(opened.read(length))
            if last and event.step != last[-1].step:
                last = []
            last.append(event)
    return Log(file, last)


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Run ``fmapboard serve`` and yield the tab's address and the process id."""
    command = [sys.executable, "-m", "fmapboard", "serve", str(folder), "--port", "0", "--no-open"]
    server = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        if found is None:
            raise SystemExit("the server ended before it printed its address")
        yield found[0], server.pid
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def tab_of(page: Any) -> Any:
    """The frame of the tab in TensorBoard's page, or the page itself."""
    if "#feature_maps" not in page.url:
        return page
    element = page.wait_for_selector("iframe", state="attached", timeout=PATIENCE_MS)
    page.wait_for_function(FRAMED, timeout=PATIENCE_MS)
    frame = element.content_frame()
    frame.wait_for_load_state()
    return frame


def measured(browser: Any, log: Log, options: tuple[str, ...]) -> list[float]:
    """The figures of one visit to a fresh server, as in `FIGURES`."""
    started = time.perf_counter()
    with serve(log.file.parents[1], *options) as (address, pid):
        urllib.request.urlopen(address).read()
        ready = time.perf_counter()
        page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
        page.goto(address)
        tab = tab_of(page)
        tab.wait_for_function(READY, timeout=PATIENCE_MS)
        screen = time.perf_counter()
        tab.get_by_role("button", name="Maps").first.click()
        tab.wait_for_function(NEWEST, arg=log.newest, timeout=PATIENCE_MS)
        read = time.perf_counter()
        tab.wait_for_function(QUIET, timeout=PATIENCE_MS)
        clicks = click_times(tab)
        tab.evaluate("document.querySelector('input[aria-label=Step]').focus()")
        page.keyboard.press("End")
        tab.wait_for_function(NEWEST, arg=log.newest, timeout=PATIENCE_MS)
        log.grow()
        written = time.perf_counter()
        tab.wait_for_function(NEWEST, arg=log.newest, timeout=PATIENCE_MS)
        shown = time.perf_counter()
        used = sum(memory(pid).values())
        page.context.close()
    return [
        ready - started,
        screen - ready,
        read - started,
        statistics.median(clicks),
        shown - written,
        used,
    ]


def click_times(tab: Any) -> list[float]:
    """Times to draw steps that the browser has not loaded, ms."""
    most = int(tab.evaluate("document.querySelector('input[aria-label=Step]').max"))
    took = []
    for number in range(10):
        tab.wait_for_function(QUIET, timeout=PATIENCE_MS)
        took.append(float(tab.evaluate(CLICK, 1 + number * most // 11)))
    return took


def report(found: dict[str, list[list[float]]], size: float) -> None:
    """Print the medians, and the range of the rounds behind each."""
    rounds = len(next(iter(found.values())))
    load = os.getloadavg()[0]
    title = f"log of {size:.0f} MB, {rounds} rounds, {os.cpu_count()} cores, load {load:.1f}"
    table = Table(title=title)
    for name in ("", *FIGURES):
        table.add_column(name, justify="left" if not name else "right")
    for server, rows in found.items():
        cells = []
        for values in zip(*rows, strict=True):
            median, least, most = statistics.median(values), min(values), max(values)
            cells.append(f"{median:.3g} ({least:.3g}–{most:.3g})")
        table.add_row(server, *cells)
    Console(width=None if os.isatty(1) else 140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=700, help="size of the log, 10⁶ bytes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--log", type=Path, help="a directory to write the log to, and to keep")
    options = parser.parse_args()
    found: dict[str, list[list[float]]] = {name: [] for name in SERVERS}
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        log = log_in(options.log or Path(folder), options.mb * 10**6)
        log.grow()  # of a kept log, too, the page then expects more steps
        for _ in range(options.rounds):
            for name, flags in SERVERS.items():
                found[name].append(measured(browser, log, flags))
                print(name, [round(value, 2) for value in found[name][-1]], flush=True)
        report(found, log.file.stat().st_size / 1e6)


if __name__ == "__main__":
    main()
