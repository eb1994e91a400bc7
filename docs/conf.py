"""Configuration of the documentation site.

Build it, without network, into ``build/docs``::

    pip install '.[docs]'
    sphinx-build -W --keep-going docs build/docs

The pages are plain Markdown that GitHub shows as well, so what only Sphinx understands (the tables
of contents) is added here while a page is read.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import inspect

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "src"))

import fmapboard  # noqa: E402  # found through the line above

project, author = "fmapboard", "the fmapboard authors"
version = release = fmapboard.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["README.md"]
myst_heading_anchors = 3
templates_path: list[str] = []

html_theme = "furo"
html_title = f"fmapboard {release}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["tables.css"]
highlight_language = "none"  # of blocks that name no language
pygments_style, pygments_dark_style = "friendly", "monokai"

default_role = "code"  # single backticks in a docstring are code, too
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar, napoleon_use_rtype, napoleon_attr_annotations = True, False, False
napoleon_custom_sections = [("Keys", "params_style")]
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_mock_imports = ["lightning", "transformers", "ignite", "accelerate"]
maximum_signature_line_length = 80

nitpicky = (
    True  # a name in a docstring or signature that is documented nowhere is an error, but for:
)
nitpick_ignore_regex = [
    (
        "py:class",
        r"fmapboard\.(formats|checks\.health_table|health\.(record|verdict))\..*",
    ),
    (
        "py:.*",
        r"(typing_extensions|torch|nn|np|numpy|npt|typing|collections|contextlib|datetime|pathlib|types|re)\..*",
    ),
    ("py:.*", r"(Tensor|Optimizer|Path|Any|Callable|Mapping|Sequence|Iterator|Unpack|Literal)"),
    (
        "py:.*",
        r"(Layers|Routers|Proof|Schedule|Predicate|Sides?|Aside|Twin|PassPolicy|Scale|Layout|TensorKind|Unit|Normalization|WhenFull|Checks|Changes|Arguments)",
    ),
    (
        "py:.*",
        r"(TrainingFacts|RateHistory|Steps|FirstNonfinite|LayerFacts|Class|Floats|Bytes8|TracebackType|StepBlock|Options|WatchOptions|CommonOptions|Normalizing|Compiled)",
    ),
    ("py:.*", r"(PIL\.)?Image\.Image|Mapping\[str|fmapboard\.capture\.taps\.T"),
    (
        "py:.*",
        r"fmapboard\.(logger|session|options|schedule|model|writers\.remote|capture\.(passes|twin))\..*",
    ),
    ("py:.*", r"tensorboard\..*"),
]

CONTENTS = {
    "index": {
        "Start": [
            "get_started",
            "run",
            "plain_pytorch",
            "options",
            "rehearse",
            "visualize",
            "notebooks",
            "patches",
            "diff",
        ],
        "Look": [
            "tab",
            "tab_keys",
            "reading_the_pictures",
            "checks",
            "why",
            "prove",
            "agents",
            "check_command",
            "troubleshooting",
            "report",
            "what_is_written",
        ],
        "Integrate": [
            "frameworks",
            "transformers",
            "setups",
            "trackers",
            "log_directories",
            "recipes",
        ],
        "Understand": ["costs", "how_we_know", "beside", "how_it_works", "hooks"],
        "Extend": ["extending", "reference/index", "contributing"],
    },
    "checks": {
        "Groups": sorted(f"checks/{path.stem}" for path in (DOCS / "checks").glob("*.md")),
    },
}
"""Page -> heading in the side bar -> the pages below it."""


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Append a page's table of contents; to the page on contributing, CONTRIBUTING.md itself."""
    for caption, names in CONTENTS.get(page, {}).items():
        pages = [name for name in names if list(DOCS.glob(f"{name}.*"))]
        options = f":hidden:\n:caption: {caption}\n"
        source[0] += "\n```{toctree}\n" + options + "\n" + "\n".join(pages) + "\n```\n"
    if page == "contributing":
        text = (DOCS.parent / "CONTRIBUTING.md").read_text("utf-8")
        source[0] = re.sub(r"\]\((?!https?:|#)", "](../", text).replace("](../docs/", "](")
    folder = (DOCS / page).parent
    source[0] = re.sub(r"\]\(([^)#:]+\.md)\)", lambda link: _as_download(link, folder), source[0])


def _as_download(link: re.Match[str], folder: Path) -> str:
    """A link to Markdown outside of docs/, which is no page of the site, as MyST writes it."""
    is_page = DOCS in (folder / link.group(1)).resolve().parents
    return link.group(0) if is_page else f"](path:{link.group(1)})"


COLON = "\ue000"


def before_napoleon(app: Sphinx, what: str, *given: Any) -> None:
    """Keep napoleon from reading "text: more text" of an attribute as "type: description"."""
    lines: list[str] = given[-1]
    if what in ("attribute", "property", "data"):
        lines[:] = [line.replace(":", COLON) for line in lines]


def after_napoleon(app: Sphinx, what: str, *given: Any) -> None:
    """Keep Sphinx from reading the field "lo, hi" as the name "hi" of type "lo"."""
    lines: list[str] = given[-1]
    lines[:] = [line.replace(COLON, ":") for line in lines]
    lines[:] = [re.sub(r"^(:(?:ivar|param) [\w*\\]+), (\w+:)", r"\1,\2", line) for line in lines]


def readable_signature(
    app: Sphinx, what: str, name: str, thing: Any, *given: Any
) -> tuple[str | None, str | None]:
    """A callback's own signature, not its mocked base's; "..." for a default factory."""
    signature, returns = given[-2:]
    if what == "class" and signature == "(*args: Any, **kwargs: Any)":
        own = inspect.signature(thing.__init__, bound_method=True)
        signature = inspect.stringify_signature(
            own, show_return_annotation=False, unqualified_typehints=True
        )
    return (signature and signature.replace("<factory>", "..."), returns)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
    app.connect("autodoc-process-signature", readable_signature)
