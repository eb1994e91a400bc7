"""The front end's files as one script and one style sheet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

_IMPORT = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_EMPTY = re.compile(r"^export \{\};\n", re.MULTILINE)  # makes a file with only types a module
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_IMPORTED = re.compile(r'^@import url\("([^"]+)"\);\n', re.MULTILINE)

_GAP = r"((?:\s|//[^\n]*|/\*[\s\S]*?\*/)*)"
_TEXT = r"(?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)"  # of a template, up to its end or a hole
_HOLE_END = re.compile(rf"{_GAP}(?P<text>\}}{_TEXT})")
_REGEX = re.compile(rf"{_GAP}(?P<end>/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/\w*)")
_TOKEN = re.compile(
    rf"""{_GAP}(?:(?P<word>[\w$\#]+(?:\.[\w$\#]+)*)
    |(?P<end>\]|\+\+|--|"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*')
    |(?P<text>`{_TEXT})|(?P<open>[({{])|(?P<close>[)}}])|(?P<slash>/)
    |(?P<sign>[\[+-]|[^\w\s"'`/(){{}}[\]+-]+)|$)""",
    re.VERBOSE,
)
_APART = re.compile(r"[\w$][\w$#.]|\+\+|--|/[/\w]")
"""Ends of two tokens that would be other tokens without a space between them."""
_CONTROL = frozenset({"for", "if", "while", "with"})
_BEFORE_OPERAND = _CONTROL | frozenset(
    re.findall(r"\w+", "await case delete do else in instanceof new return throw typeof void yield")
)


@dataclass(frozen=True, slots=True)
class _Module:
    imports: list[tuple[str, str]]
    """Name of each imported module, and the pattern by which `const` takes from its exports."""
    exports: list[str]
    body: str


def script(folder: Path, entry: str) -> str:
    """The module ``entry`` and everything that it imports as one ES module with its exports.

    Comments and indentation are left out, but not those of ``vendor``. The line ``// <name>``
    stands ahead of each module, and line n of the module's file is the n-th line after it.

    Args:
        folder: of the modules.
        entry: name of the first module, which lies in ``folder`` itself; the browser must load
            the result from that place.

    Raises:
        ValueError: a module has an import or export of an unknown form, or see `stripped`.
        graphlib.CycleError: modules import each other in a circle.
    """
    modules: dict[str, _Module] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules[name] = _read(folder, name)
            waiting += [imported for imported, _ in modules[name].imports]
    needs = {name: [n for n, _ in module.imports] for name, module in modules.items()}
    order = list(TopologicalSorter(needs).static_order())
    variable = {name: f"module{index}" for index, name in enumerate(order)}
    parts = []
    for name in order:
        module = modules[name]
        given = [f"const {p}={variable[n]};" for n, p in module.imports]
        exported = ",".join(module.exports)
        parts.append(
            f"// {name}\nconst {variable[name]}=(()=>{{{''.join(given)}"
            f"{module.body}\nreturn{{{exported}}}}})();\n"
        )
    names = ", ".join(modules[entry].exports)
    return f"{''.join(parts)}export const {{ {names} }} = {variable[entry]};\n"


def stripped(code: str) -> str:
    """JavaScript without comments and indentation; each token stays on its line.

    A slash after an operand is a division, any other begins a regular expression. A ``}`` is read
    as the end of a block and not of an operand, and ``of`` as a name.

    Raises:
        ValueError: a string, a template or a regular expression has no end.
    """
    parts: list[str] = []
    nested: list[str] = []
    pattern, last, at, is_operand = _TOKEN, "", 0, False
    while at < len(code):
        match = pattern.match(code, at)
        if match is None:
            raise ValueError(f"no end of what begins in {code[at : at + 40]!r}")
        gap, token, kind = match[1], code[match.end(1) : match.end()], match.lastgroup
        ends_hole = kind == "close" and nested[-1:] == ["`"]
        if ends_hole or (kind == "slash" and not is_operand):
            pattern = _HOLE_END if ends_hole else _REGEX
            continue
        if gap and ("\n" in gap or _APART.match(last[-1:] + token[:1])):
            parts.append("\n" * gap.count("\n") or " ")
        parts.append(token)
        closed = nested.pop() if token[:1] in (")", "}") else ""
        if kind == "open":
            is_control = token == "(" and last in _CONTROL and not is_operand
            nested.append("control" if is_control else token)
        elif kind == "text" and token[-1] == "{":
            nested.append("`")
        is_name = kind == "word" and (token not in _BEFORE_OPERAND or last in (".", "?."))
        is_operand = is_name or kind == "end" or closed == "(" or token[-1:] == "`"
        pattern, last, at = _TOKEN, token, match.end()
    return "".join(parts)


def _read(folder: Path, name: str) -> _Module:
    text = folder.joinpath(name).read_text("utf-8")
    imports = []
    for names, everything, path in _IMPORT.findall(text):
        found = (folder / name).parent.joinpath(path).resolve().relative_to(folder.resolve())
        taken = everything or f"{{{''.join(names.replace(' as ', ':').split())}}}"
        imports.append((found.as_posix(), taken))
    text = _EMPTY.sub("\n", _IMPORT.sub(lambda found: "\n" * found[0].count("\n"), text))
    exports = _EXPORT.findall(text)
    text = _EXPORT.sub("", text)
    if other := _OTHER.search(text):
        raise ValueError(f"{name}: cannot bundle {other[0]!r}")
    own = f'new URL("{name}",import.meta.url).href'
    text = text if name.startswith("vendor/") else stripped(text)  # a licence must not get lost
    return _Module(imports, exports, text.replace("import.meta.url", own))


def styles(folder: Path, entry: str) -> str:
    """The style sheet ``entry`` with the ones that it imports in front, in their order."""
    text = folder.joinpath(entry).read_text("utf-8")
    before = [folder.joinpath(name).read_text("utf-8") for name in _IMPORTED.findall(text)]
    return "".join([*before, _IMPORTED.sub("", text)])


ENTRY = "/index.js"
"""The module that TensorBoard imports in the tab's frame."""

FOLDER = Path(__file__).with_name("static")

# `mimetypes` would read the Windows registry, where other programs may have set wrong types.
_SCRIPT, _STYLES = "text/javascript", "text/css"


def static_files() -> dict[str, tuple[str, str]]:
    """Path -> text and content type, read once, when TensorBoard starts.

    Raises:
        FileNotFoundError: a file is missing, so the installation is incomplete.
        ValueError: see `script`.
    """
    try:
        return {
            ENTRY: (FOLDER.joinpath(ENTRY[1:]).read_text("utf-8"), _SCRIPT),
            "/app.js": (script(FOLDER, "app.js"), _SCRIPT),
            "/style.css": (styles(FOLDER, "style.css"), _STYLES),
        }
    except OSError as error:
        raise FileNotFoundError(f"no {error.filename}; reinstall fmapboard") from error
