"""The tab in headless Chromium: times until it is usable, of changes of step, and its memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tab_cost import Row, cpu_ms

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
PATIENCE_MS = 120_000
READY = "() => document.documentElement.dataset.ready === 'true'"
QUIET = "() => document.documentElement.dataset.busy === 'false'"
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
# Times from scrolling the overview until the pictures in sight are drawn, ms, until its end.
SCREENS = """async (most) => {
  const page = document.querySelector("main.overview");
  const at = document.documentElement;
  const took = [];
  while (took.length < most && page.scrollTop + page.clientHeight < page.scrollHeight - 2) {
    const started = performance.now();
    page.scrollTop += 2.5 * page.clientHeight;  // beyond the screen that is asked for ahead
    for (let frames = 0; frames < 2 || at.dataset.busy !== "false"; frames += 1) {
      await new Promise(requestAnimationFrame);
    }
    took.push(performance.now() - started);
    await new Promise((done) => setTimeout(done, 300));
  }
  return took;
}"""
# Notes when the next click is, ms.
CLICKED = """() => addEventListener("pointerdown",
  () => { window.clicked = performance.timeOrigin + performance.now(); },
  { capture: true, once: true })"""
# The document of the tab in TensorBoard, and the time from the click until it was usable, ms.
FRAME = "() => document.querySelector('iframe')?.contentDocument?.documentElement?"
SINCE_CLICK = """() => {
  const { performance } = document.querySelector("iframe").contentWindow;
  const [usable] = performance.getEntriesByName("usable");
  return performance.timeOrigin + usable.startTime - window.clicked;
}"""
# The time since the page was asked for once so many further runs are judged, ms; otherwise false.
LISTED = """(further) => {
  const summary = document.querySelector(".run-summary")?.textContent ?? "";
  return summary.includes(`${further} further runs:`) && performance.now();
}"""
FOLDED = 10
"""So many runs are more than the folded list shows."""
PLAYED = 200
"""Steps that are played before the memory is read."""
# Plays until so many steps have been drawn; the button starts again at the first one.
PLAY = """async (count) => {
  const at = document.documentElement;
  const button = document.querySelector("button[aria-label^=Play], button[aria-label^=Pause]");
  for (let played = 0, step = at.dataset.step; played < count; ) {
    if (button.getAttribute("aria-label").startsWith("Play")) button.click();
    await new Promise(requestAnimationFrame);
    if (at.dataset.step !== step) played += 1;
    step = at.dataset.step;
  }
  if (button.getAttribute("aria-label").startsWith("Pause")) button.click();
}"""
VIEWS = {"overview": "overview", "maps": "list of layers and maps"}


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser, found on PATH or else playwright's own."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "google-chrome", "chromium-headless-shell")
    program = next(filter(None, map(shutil.which, names)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


def alone(browser: Any, address: str, *, layer: str = "", view: str = "maps") -> Any:
    """Open the tab outside of TensorBoard's page, in a browser with an empty cache."""
    page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
    state = f"#p.feature_maps.view={view}"
    if layer:
        state += f"&p.feature_maps.layer=fmapboard%2F{layer}"
    page.goto(f"{address}data/plugin_entry.html?name=feature_maps{state}")
    page.wait_for_function(READY, timeout=PATIENCE_MS)
    return page


def listed(browser: Any, address: str, runs: int) -> float:
    """Time from opening the overview until all further runs are judged in its list, ms."""
    page = alone(browser, address, view=next(iter(VIEWS)))
    took = page.wait_for_function(LISTED, arg=runs - 1, timeout=PATIENCE_MS).json_value()
    page.context.close()
    return float(took)


def usable(browser: Any, address: str, view: str) -> float:
    """Time from opening a page of the tab until it is usable, ms."""
    page = alone(browser, address, view=view)
    took = float(page.evaluate("performance.getEntriesByName('usable')[0].startTime"))
    page.context.close()
    return took


def in_tensorboard(browser: Any, address: str, view: str) -> float:
    """Time from a click on the tab in TensorBoard until a page of it is usable, ms.

    The click is in the Text dashboard: that of images would still be loading thousands of them.
    The time is taken in the page, from the press of the button on: what the driver does before it,
    and the script that it would bring into the frame to wait there, take 180 ms.
    """
    page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
    page.goto(f"{address}#text&p.feature_maps.view={view}")
    tab = page.get_by_role("tab", name="Feature maps")
    tab.wait_for(timeout=PATIENCE_MS)
    page.evaluate(CLICKED)
    tab.click()
    page.wait_for_function(FRAME + ".dataset.ready === 'true'", timeout=PATIENCE_MS, polling=50)
    took = float(page.evaluate(SINCE_CLICK))
    shown = page.evaluate(FRAME + ".dataset.view")
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


def screens(browser: Any, address: str) -> list[float]:
    """Times to draw further parts of the overview, ms; none if it is in sight as a whole."""
    page = alone(browser, address, view=next(iter(VIEWS)))
    page.wait_for_function(QUIET)
    took = [float(ms) for ms in page.evaluate(SCREENS, 6)]
    page.context.close()
    return took


def measure(
    address: str, server: int, rounds: int, layers: Sequence[str], steps: int, runs: int = 1
) -> list[Row]:
    """Times of the tab's pages in the browser.

    Args:
        address: TensorBoard's address.
        server: its process id.
        rounds: visits of each page.
        layers: the layers whose steps are changed.
        steps: number of kept steps.
        runs: number of runs; from `FOLDED` on, their list is timed too.
    """
    rows = []
    target = 500.0 if steps <= 10 else 1000.0 if steps <= 50 else 2000.0

    def visits(name: str, visit: Callable[[], float], count: int) -> None:
        """Add a row with the times, and the CPU times of server and browser together."""
        is_first = count == 1 and steps <= 10
        row = Row(name, [], 800.0 if is_first else target, cpu=[])
        for _ in range(count):
            before = cpu_ms(server, os.getpid())
            row.ms.append(visit())
            row.cpu.append(cpu_ms(server, os.getpid()) - before)
        rows.append(row)

    with chromium() as browser:
        first = next(iter(VIEWS))
        visits(
            f"{VIEWS[first]}: usable, first visit of a fresh server",
            lambda: usable(browser, address, first),
            1,
        )
        if runs >= FOLDED:
            visits(
                f"{VIEWS[first]}: all runs in the list",
                lambda: listed(browser, address, runs),
                rounds,
            )
        for view, name in VIEWS.items():
            visits(
                f"{name}: usable, opened outside TensorBoard",
                lambda view=view: usable(browser, address, view),
                rounds,
            )
            visits(
                f"{name}: usable, click inside TensorBoard",
                lambda view=view: in_tensorboard(browser, address, view),
                rounds,
            )
        if further := screens(browser, address):
            rows.append(Row(f"{VIEWS[first]}: a further screenful", further, 500.0))
        for layer in layers:
            new, after = step_changes(browser, address, layer, steps)
            rows += [
                Row(f"step not loaded yet, {layer}", new, 100.0),
                Row(f"the step after it, {layer}", after, 100.0),
            ]
    return rows


def page_sizes(address: str, layer: str) -> dict[str, dict[str, float]]:
    """Page of the tab -> its JavaScript heap after a collection, MB, and number of DOM nodes.

    Args:
        address: TensorBoard's address.
        layer: that is open while steps are played.
    """
    found = {}
    with chromium() as browser:
        for view, name in VIEWS.items():
            page = alone(browser, address, view=view)
            found[name] = page_size(page)
            page.context.close()
        page = alone(browser, address, layer=layer)
        found[f"{layer}, before play"] = page_size(page)
        page.evaluate(PLAY, PLAYED)
        found[f"{layer}, after {PLAYED} steps of play"] = page_size(page)
        page.context.close()
    return found


def page_size(page: Any) -> dict[str, float]:
    """JavaScript heap and array buffers after a collection, MB, and number of DOM nodes."""
    page.wait_for_function(QUIET)
    page.wait_for_timeout(1000)
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")
    return {
        "heap": heap["usedSize"] / 2**20,
        "buffers": heap.get("backingStorageSize", 0.0) / 2**20,
        "nodes": float(session.send("Memory.getDOMCounters")["nodes"]),
    }
