"""Speed of the Feature maps tab in a real browser: time until usable, and to draw a step.

The tab has two pages: the overview, which opens first, and the maps.

    python benchmarks/tab.py                 # ResNet-50, 53 layers, 50 steps, at most 64 channels
    python benchmarks/tab.py --all-channels  # the same with all channels, up to 2048
    python benchmarks/tab.py --layers 3000 --runs 500 --kept 200  # synthetic, takes long to write

Trains ResNet-50 with random weights for 50 logged steps (or uses --run), starts TensorBoard on the
run and drives headless Chromium. With --layers it writes one run of that many layers and --kept
steps, and small ones beside it, without training, and also reports the server's answers and memory.
Needs `pip install playwright` and a chromium or google-chrome on PATH.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from synthetic_runs import write_runs
from tab_server import answers, memory, wait_until_loaded

STEPS = 50
LAYERS = ("conv1", "layer1.0.conv3", "layer4.2.conv3")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
PATIENCE_MS = 120_000
READY = "() => document.documentElement.dataset.ready === 'true'"
# Time from the slider's event until the tab reports that the canvas is drawn, ms.
CHANGE = """async (index) => {
  const slider = document.querySelector("input[aria-label=Step]");
  const at = document.documentElement;
  const drawn = at.dataset.drawn;
  const started = performance.now();
  slider.value = String(index);
  slider.dispatchEvent(new Event("input"));
  await new Promise((done) => {
    const look = () => {
      if (at.dataset.drawn !== drawn && Number(at.dataset.step) === index) done();
    };
    new MutationObserver(look).observe(at, { attributes: true });
  });
  return performance.now() - started;
}"""
QUIET = "() => document.documentElement.dataset.busy === 'false'"


def train(run: Path, all_channels: bool) -> None:
    """Log 50 steps of ResNet-50 on noise; the content of the maps does not matter here."""
    import torch
    from torchvision.models import resnet50

    import fmapboard

    torch.manual_seed(0)
    model = resnet50()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    most = None if all_channels else 64
    with fmapboard.watch(model, run, every=1, max_channels=most) as board:
        for step in range(STEPS):
            with board.step(step):
                model(torch.randn(2, 3, 224, 224)).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()


@contextmanager
def serve(logdir: Path, kept: int) -> Iterator[tuple[str, int]]:
    """Run TensorBoard on a directory and yield its address and process id."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(logdir), "--port", "0"]
    command += ["--samples_per_plugin", f"images={kept},feature_maps={kept}"]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        for line in server.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+/", line)
            if found:
                yield found[0], server.pid
                return
        raise SystemExit("TensorBoard ended before it printed its address")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def alone(browser: Any, address: str, *, layer: str = "", view: str = "maps") -> Any:
    """Open the tab outside of TensorBoard's page, in a browser with an empty cache."""
    page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
    state = f"#p.feature_maps.view={view}"
    if layer:
        state += f"&p.feature_maps.layer=fmapboard%2F{layer}"
    page.goto(f"{address}data/plugin_entry.html?name=feature_maps{state}")
    page.wait_for_function(READY, timeout=PATIENCE_MS)
    return page


def usable(browser: Any, address: str, view: str = "maps") -> float:
    """Time from opening a page of the tab until it is usable, ms."""
    page = alone(browser, address, view=view)
    took = float(page.evaluate("performance.getEntriesByName('usable')[0].startTime"))
    page.context.close()
    return took


def in_tensorboard(browser: Any, address: str, view: str = "maps") -> float:
    """Time from a click on the tab in TensorBoard until a page of it is usable, ms."""
    page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
    page.goto(f"{address}#images&p.feature_maps.view={view}")
    tab = page.get_by_role("tab", name="Feature maps")
    tab.wait_for(timeout=PATIENCE_MS)
    started = time.perf_counter()
    tab.click()
    frame = page.wait_for_selector("iframe").content_frame()
    frame.wait_for_function(READY, timeout=PATIENCE_MS)
    took = 1000 * (time.perf_counter() - started)
    shown = frame.evaluate("document.documentElement.dataset.view")
    if shown != view:
        raise SystemExit(f"the tab shows its page {shown}, not {view}")
    page.context.close()
    return took


def step_changes(
    browser: Any, address: str, layer: str, steps: int
) -> tuple[list[float], list[float]]:
    """Times to draw steps that the browser has not loaded, and the step after each, ms."""
    page = alone(browser, address, layer=layer)
    new, after = [], []
    for index in range(0, steps - 10, max(17, steps // 8)):
        for offset in (0, 9):  # 9 steps are more than the tab prefetches
            page.wait_for_function(QUIET)
            new.append(float(page.evaluate(CHANGE, index + offset)))
            page.wait_for_timeout(600)  # time that a person spends on a step
            after.append(float(page.evaluate(CHANGE, index + offset + 1)))
    page.context.close()
    return new, after


def measure(
    address: str, rounds: int, layers: Sequence[str], steps: int
) -> list[tuple[str, list[float], float]]:
    """Rows of name, times and target, ms."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        first = usable(browser, address)
        rows = [
            ("usable, first visit of a fresh server", [first], 2000.0),
            (
                "usable, opened outside TensorBoard",
                [usable(browser, address) for _ in range(rounds)],
                2000.0,
            ),
            (
                "usable, click inside TensorBoard",
                [in_tensorboard(browser, address) for _ in range(rounds)],
                2000.0,
            ),
            (
                "overview usable, opened outside TensorBoard",
                [usable(browser, address, "overview") for _ in range(rounds)],
                2000.0,
            ),
            (
                "overview usable, click inside TensorBoard",
                [in_tensorboard(browser, address, "overview") for _ in range(rounds)],
                2000.0,
            ),
        ]
        for layer in layers:
            new, after = step_changes(browser, address, layer, steps)
            rows += [
                (f"step not loaded yet, {layer}", new, 100.0),
                (f"the step after it, {layer}", after, 100.0),
            ]
        browser.close()
    return rows


def heap(address: str) -> float:
    """JavaScript heap of the page on the large run, MB."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        flags = [*FLAGS, "--enable-precise-memory-info"]
        browser = driver.chromium.launch(executable_path=program, args=flags)
        page = alone(browser, address)
        page.wait_for_timeout(3000)
        used = float(page.evaluate("performance.memory.usedJSHeapSize")) / 2**20
        browser.close()
    return used


def report(rows: list[tuple[str, list[float], float]], what: str) -> None:
    table = Table(title=f"{what}; {platform.machine()}, {os.cpu_count()} cores")
    for name in ("", "median ms", "slowest ms", "runs", "target ms"):
        table.add_column(name, justify="left" if not name else "right")
    for name, took, aim in rows:
        median = statistics.median(took)
        table.add_row(name, f"{median:.0f}", f"{max(took):.0f}", str(len(took)), f"{aim:.0f}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, help="log directory that already contains such a run")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--all-channels", action="store_true")
    parser.add_argument("--layers", type=int, help="layers of a synthetic run")
    parser.add_argument("--runs", type=int, default=1, help="runs, with --layers")
    parser.add_argument("--kept", type=int, default=STEPS, help="steps that TensorBoard keeps")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logdir = options.run or Path(folder)
        steps = options.kept
        if options.layers:
            if options.run is None:
                write_runs(logdir, layers=options.layers, runs=options.runs, steps=steps)
            large(logdir, options.runs, steps, options.rounds)
            return
        if options.run is None:
            train(logdir / "resnet50", options.all_channels)
        with serve(logdir, steps) as (address, _):
            rows = measure(address, options.rounds, LAYERS, STEPS)
    report(rows, "Feature maps tab, ResNet-50, 53 layers, 50 steps")


def large(logdir: Path, runs: int, steps: int, rounds: int) -> None:
    """Measure on synthetic runs."""
    with serve(logdir, steps) as (address, pid):
        wait_until_loaded(address, runs, steps)
        rows = answers(address, rounds)
        rows += measure(address, rounds, ["block0.conv3"], steps)
        console, page = Console(), heap(address)
        for name, used in memory(pid).items():
            console.print(f"memory of {name}: {used:.0f} MB")
        console.print(f"memory of the page's JavaScript: {page:.0f} MB")
    report(rows, f"Feature maps tab, {runs} runs, {steps} steps")


if __name__ == "__main__":
    main()
