"""A user of the tab in a real browser: the TensorBoard page, the tab's frame, console errors."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
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
RUN_MENU = ".toolbar .run-picker > .picker"
"""The button with the name of the shown run."""
WATCH_CSP = """document.addEventListener("securitypolicyviolation",
  (event) => console.error("securitypolicyviolation", event.violatedDirective));"""

_WAIT = f"""() => new Promise((done, fail) => {{
  const end = Date.now() + {PATIENCE_MS};
  const look = () => {{
    try {{
      if (IT_HOLDS) THEN;
      else if (Date.now() > end) fail(new Error("never true"));
      else requestAnimationFrame(look);
    }} catch (error) {{
      fail(error);
    }}
  }};
  requestAnimationFrame(() => requestAnimationFrame(look));
}})"""
_TURN_TO = """async (entries) => {
  const { href } = parent.location; // of TensorBoard's page around the tab, if there is one
  const followed = new Promise((done) =>
    parent.addEventListener("hashchange", done, { once: true }));
  parent.location.hash = entries;
  if (parent.location.href === href) return;
  await followed;
  delete document.documentElement.dataset.ready; // the tab sets it when it has drawn what was asked
}"""
_LEAVE = """() => {
  localStorage.clear();
  sessionStorage.clear();
  for (const each of document.querySelectorAll("dialog[open]")) each.close();
  document.activeElement?.blur();
  return document.documentElement.dataset.theme === "light";
}"""


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

    def choose_run(self, run: str) -> None:
        """Choose a run from the menu."""
        self.see(RUN_MENU).click()
        self.see(f".picker-panel li:has([title='{run}'])").click()
        self.settle()

    def listed_runs(self) -> list[str]:
        """What the menu of runs lists: "name · sign state"."""
        self.see(RUN_MENU).click()
        listed: list[str] = self.see(".picker-panel li").all_text_contents()
        self.press("Escape")
        return [" ".join(text.split()) for text in listed]

    @property
    def chosen_run(self) -> str:
        """The run that the menu shows."""
        label: str = self.see(RUN_MENU).get_attribute("aria-label")
        return label.removeprefix("Run: ")

    def settle(self) -> None:
        """Wait until everything requested is drawn."""
        self.wait(
            "document.documentElement.dataset.busy === 'false'", "requestAnimationFrame(done)"
        )

    def wait(self, expression: str, then: str = "done()") -> None:
        """Wait until a JavaScript expression is true in the frame.

        What was done before is drawn first: otherwise, an expression about what is drawn could be
        true of the picture before. All in one script, as each costs more than the frames.
        """
        self.frame.evaluate(_WAIT.replace("IT_HOLDS", expression).replace("THEN", then))

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

    def turn_to(self, entries: str) -> None:
        """Follow an address with other entries, what stands behind its `#`."""
        self.frame.evaluate(_TURN_TO, entries)
        self.wait("document.documentElement.dataset.ready === 'true'")

    def reopen(self) -> None:
        self.page.reload()
        if self.frame is not self.page:
            self.frame = frame_of(self.page)
        self.wait("document.documentElement.dataset.ready === 'true'")


def told(said: Any) -> str:
    """A message of the console; only its place tells which request failed."""
    return f"{said.text} ({said.location['url']})"


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


@pytest.fixture(scope="module")
def left_pages(browser: Any) -> Iterator[dict[str, Person]]:
    """Address of a page, without its entries -> that page as a visit of this module left it."""
    pages: dict[str, Person] = {}
    yield pages
    for person in pages.values():
        person.page.close()


@pytest.fixture
def visit(browser: Any, left_pages: dict[str, Person]) -> Iterator[Callable[..., Person]]:
    """A function that opens the tab, by default at its maps; a field that is None is left out.

    By default it opens the tab alone, which takes less than half the CPU time of TensorBoard's page
    around it; with ``inside=True``, in that page, whose size is passed. If the state names a run,
    the address is followed in the page of the visit before, of this test or an earlier one of the
    module, which takes a sixth of the time. With ``anew=True`` a page is loaded for this visit
    alone, as for tests of what happens then, and with ``routes``, functions that answer requests to
    these addresses. The test fails if the console showed an error.
    """
    people: list[Person] = []
    going_on: dict[str, Person] = {}

    def open_tab(
        address: str,
        width: int = 1400,
        height: int = 900,
        *,
        inside: bool = False,
        anew: bool = False,
        routes: Mapping[Any, Callable[[Any], None]] | None = None,
        **state: object,
    ) -> Person:
        state = {"view": "maps", **state}
        entries = "".join(
            f"&p.feature_maps.{field}={quote(str(value), '')}"
            for field, value in state.items()
            if value is not None
        )
        address += "" if inside else ALONE
        size = {"width": width, "height": height - (0 if inside else HEADER)}
        is_own = anew or routes is not None
        goes_on = bool(state.get("run")) and not is_own
        if goes_on and address in left_pages:
            going_on[address] = left_pages.pop(address)
            people.append(going_on[address])
        if goes_on and address in going_on:
            person = going_on[address]
            person.page.set_viewport_size(size)
            person.turn_to(f"feature_maps{entries}")
            return person
        page = browser.new_page()
        page.set_viewport_size(size)
        complaints: list[str] = []
        page.add_init_script(WATCH_CSP)
        page.on(
            "console", lambda said: complaints.append(told(said)) if is_complaint(said) else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for where, answer in (routes or {}).items():
            page.route(where, answer)
        page.goto(f"{address}#feature_maps{entries}")
        person = Person(page, frame_of(page) if inside else page, complaints)
        person.wait("document.documentElement.dataset.ready === 'true'")
        people.append(person)
        if not is_own:
            going_on.setdefault(address, person)
        return person

    yield open_tab
    said = [person.complaints for person in people]
    for address, person in going_on.items():
        if person.frame.evaluate(_LEAVE) and not person.complaints and address not in left_pages:
            person.page.mouse.move(0, 0)
            left_pages[address] = person
    for person in people:
        if person not in left_pages.values():
            person.page.evaluate("localStorage.clear(); sessionStorage.clear()")
            person.page.close()
    assert said == [[] for _ in people]
