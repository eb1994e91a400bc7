"""A user of the tab in a real browser: the TensorBoard page, the tab's frame, console errors."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from local_servers import tensorboard

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
PATIENCE_MS = 30_000
ALONE = "data/plugin_entry.html?name=feature_maps"
HEADER = 64
"""Height of TensorBoard's bar above the tab's frame, px."""
WATCH_CSP = """document.addEventListener("securitypolicyviolation",
  (event) => console.error("securitypolicyviolation", event.violatedDirective));"""


@dataclass
class Person:
    """A user of the tab.

    ``page`` is TensorBoard and ``frame`` the tab, or both the tab, opened alone; ``complaints`` are
    the console's errors.
    """

    page: Any
    frame: Any
    complaints: list[str]

    def see(self, selector: str) -> Any:
        return self.frame.locator(selector)

    def press(self, *keys: str) -> None:
        self.frame.evaluate("document.hasFocus() || window.focus()")
        for key in keys:
            self.page.keyboard.press(key)

    def menu(self, name: str) -> None:
        """Open a group of controls, if the row has no room for it."""
        self.settle()
        fold = self.see(f".toolgroup[aria-label='{name}']:not(.open) > .fold")
        if fold.is_visible():
            fold.click()

    def settle(self) -> None:
        """Wait until everything requested is drawn."""
        self.wait("document.documentElement.dataset.busy === 'false'")
        self.frame.evaluate("() => new Promise((d) => requestAnimationFrame(d))")

    def wait(self, expression: str) -> None:
        """Wait until a JavaScript expression is true in the frame.

        What was done before is drawn first: otherwise, an expression about what is drawn could be
        true of the picture before.
        """
        self.frame.evaluate(
            "() => new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))"
        )
        self.frame.wait_for_function(f"() => {expression}", timeout=PATIENCE_MS)

    def drawn(self, step: int, layer: str | None = None) -> None:
        """Wait until this step (and layer) is shown and no request is pending."""
        self.wait(f"document.documentElement.dataset.step === '{step}'")
        if layer is not None:
            self.wait(f"document.documentElement.dataset.layer === 'fmapboard/{layer}'")
        self.wait("document.documentElement.dataset.busy === 'false'")

    def canvas(self, selector: str) -> str:
        """The content of a canvas as a data URL."""
        script = f"document.querySelector({selector!r}).toDataURL()"
        return str(self.frame.evaluate(script))

    def choose_theme(self, theme: str) -> None:
        """Choose the ``light`` or ``dark`` theme of TensorBoard, or of the system."""
        if self.frame is self.page:
            self.page.emulate_media(color_scheme=theme)
        else:
            act = "add" if theme == "dark" else "remove"
            self.page.evaluate(f"document.body.classList.{act}('dark-mode')")
        self.wait(f"document.documentElement.dataset.theme === '{theme}'")

    def reopen(self) -> None:
        self.page.reload()
        if self.frame is not self.page:
            self.frame = frame_of(self.page)
        self.wait("document.documentElement.dataset.ready === 'true'")


def is_complaint(said: Any) -> bool:
    """Whether a message of the console is an error; TensorBoard has no icon for the tab alone."""
    return said.type == "error" and not said.location["url"].endswith("/favicon.ico")


def frame_of(page: Any) -> Any:
    """The tab's frame, once it is loaded."""
    element = page.wait_for_selector("iframe", timeout=PATIENCE_MS, state="attached")
    page.wait_for_function(
        "() => [...document.querySelectorAll('iframe')]"
        ".some((f) => f.contentWindow.location.href.includes('feature_maps'))",
        timeout=PATIENCE_MS,
    )
    frame = element.content_frame()
    frame.wait_for_load_state()
    return frame


@contextmanager
def servers(make: pytest.TempPathFactory) -> Iterator[Callable[[Path], str]]:
    """A function that starts TensorBoard on a directory, once, and returns its address."""
    addresses: dict[Path, str] = {}
    with ExitStack() as running:

        def start(logdir: Path) -> str:
            if logdir not in addresses:
                output = make.mktemp("server") / "output"
                server = tensorboard(logdir, output, "--reload_interval=1", warm=True)
                addresses[logdir] = running.enter_context(server).address
            return addresses[logdir]

        yield start


@pytest.fixture(scope="package")
def serve_shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], str]]:
    """`serve` for runs that several modules read: a server per directory for all of them."""
    with servers(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], str]]:
    """A function that serves a directory of this module or test and returns the address."""
    with servers(tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="package")
def address(serve_shared: Callable[[Path], str], striped_runs: Path) -> str:
    return serve_shared(striped_runs)


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of the folder; tests of other folders run without it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("no browser: apt install chromium-headless-shell")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=FLAGS)
        # One context for all visits: TensorBoard's own scripts stay in its cache. Each visit has a
        # page of its own, and leaves no storage behind.
        context = opened.new_context(accept_downloads=True)
        context.new_page()  # keeps the window, whose frame Chromium draws with two processes
        yield context
        opened.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Person]]:
    """A function that opens the tab, by default at its maps; a field that is None is left out.

    By default it opens the tab alone, which takes less than half the CPU time of TensorBoard's page
    around it; with ``inside=True``, in that page, whose size is passed. The test fails if the
    console showed an error.
    """
    people: list[Person] = []

    def open_tab(
        address: str, width: int = 1400, height: int = 900, *, inside: bool = False, **state: object
    ) -> Person:
        page = browser.new_page()
        page.set_viewport_size({"width": width, "height": height - (0 if inside else HEADER)})
        complaints: list[str] = []
        page.add_init_script(WATCH_CSP)
        page.on(
            "console", lambda said: complaints.append(said.text) if is_complaint(said) else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        state = {"view": "maps", **state}
        entries = "".join(
            f"&p.feature_maps.{field}={quote(str(value), '')}"
            for field, value in state.items()
            if value is not None
        )
        page.goto(f"{address}{'' if inside else ALONE}#feature_maps{entries}")
        person = Person(page, frame_of(page) if inside else page, complaints)
        person.wait("document.documentElement.dataset.ready === 'true'")
        people.append(person)
        return person

    yield open_tab
    said = [person.complaints for person in people]
    for person in people:
        person.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        person.page.close()
    assert said == [[] for _ in people]
