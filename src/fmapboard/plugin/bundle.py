"""The front end's files as one script and one style sheet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import count, islice, product
from pathlib import Path
from typing import NamedTuple

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
_NO_LINE_AFTER = frozenset("{}(,;[=>:?&|")
"""Ends of tokens after which a line cannot end a statement."""
_CONTROL = frozenset({"for", "if", "while", "with"})
_BEFORE_OPERAND = _CONTROL | frozenset(
    re.findall(r"\w+", "await case delete do else in instanceof new return throw typeof void yield")
)


_BEFORE_BLOCK = frozenset({"=>", ")", "else", "do", "try", "catch", "finally", "{", "}", ";", ""})
_DECLARING = frozenset({"const", "let", "class", "function", "*"})
_MODIFIERS = ("async", "get", "set")
_KEPT = _BEFORE_OPERAND | _DECLARING | frozenset(
    """
    async break catch continue default extends finally get import set static super switch this true
    false try null undefined AbortController Array Blob Boolean DataView Date Error Float32Array
    Float64Array FontFace HTMLElement ImageData Infinity Int32Array JSON Map Math MessageChannel
    MutationObserver NaN Node Number Object OffscreenCanvas Promise ResizeObserver Response Set
    String TextDecoder TextEncoder URL Uint32Array Uint8Array Uint8ClampedArray WeakMap console
    createImageBitmap decodeURIComponent document encodeURIComponent fetch getComputedStyle
    navigator parseInt performance requestAnimationFrame window
    """.split()  # noqa: SIM905
)  # fmt: skip
"""Words that are no variables of a module; a test finds what is missing."""
_LETTERS = "etaoinsrhldcumfpgwybvkxjqzETAOINSRHLDCUMFPGWYBVKXJQZ"


class _Token(NamedTuple):
    gap: str
    """What is left of the space in front of it: a line, a space if it may be needed, or nothing."""
    text: str
    kind: str | None


@dataclass(frozen=True, slots=True)
class _Module:
    imports: list[tuple[str, dict[str, str]]]
    """Name of each imported module, and local name -> its name there, ``*`` for all of it."""
    exports: list[str]
    tokens: list[_Token]


def script(folder: Path, entry: str) -> str:
    """The module ``entry`` and everything that it imports as one ES module with its exports.

    Comments and indentation are left out, and variables have short names: all that is declared
    outside of functions one of its own, other variables one per name and statement of a module.
    What is in ``vendor`` stays as it is. The line ``// <name>`` stands ahead of each module.

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
    variables = {name: list(_variables(modules[name].tokens)) for name in order}
    owners = {name: _owners(name, modules[name], variables[name]) for name in order}
    units = {name: _units(variables[name], owners[name]) for name in order}
    most = max((len(unit) for of in units.values() for unit in of.values()), default=0)
    names = _short_names()
    inside = list(islice(names, most))
    uses = Counter(owners[n].get(v.name) for n in order for v in variables[n])
    uses.update(owner for of in owners.values() for owner in of.values())
    del uses[None]
    short = dict(zip((each for each, _ in uses.most_common()), names, strict=False))
    parts = []
    for name in order:
        of, tokens = owners[name], list(modules[name].tokens)
        for each in variables[name]:
            token, owner = tokens[each.at], of.get(each.name)
            new = short[owner] if owner else inside[units[name][each.unit][each.name]]
            text = new + token.text[len(each.name) :]
            text = f"{each.name}:{text}" if each.is_key_too else text
            tokens[each.at] = _Token(token.gap, text, token.kind)
        pairs = ",".join(
            f"{n}:{short[name, n]}" for n in modules[name].exports if (name, n) in short
        )
        code = _joined(tokens)
        if name.startswith("vendor/"):
            code = (
                f"const{{{pairs}}}=(()=>{{{code}\nreturn{{{','.join(modules[name].exports)}}}}})();"
            )
        if (name, "*") in short:
            code += f"\nconst {short[name, '*']}={{{pairs}}};"
        parts.append(f"// {name}\n{code}\n")
    given = ",".join(f"{short[entry, n]} as {n}" for n in modules[entry].exports)
    return f"{''.join(parts)}export{{{given}}};\n"


def _short_names() -> Iterator[str]:
    """Names of one, two, … letters that are no words of the language."""
    for length in count(1):
        for first, *others in product(_LETTERS, *[f"{_LETTERS}0123456789_$"] * (length - 1)):
            if (name := "".join([first, *others])) not in {*_KEPT, "of"}:
                yield name


def _units(variables: list[_Variable], owners: Mapping[str, object]) -> dict[int, dict[str, int]]:
    """Statement of a module -> its own variables, inside of functions -> their order in it."""
    found: dict[int, dict[str, int]] = {}
    for each in variables:
        if each.name not in owners:
            own = found.setdefault(each.unit, {})
            own.setdefault(each.name, len(own))
    return found


def _owners(name: str, module: _Module, variables: list[_Variable]) -> dict[str, tuple[str, str]]:
    """Each variable that belongs to a module -> that module and its name there."""
    own = {each.name: (name, each.name) for each in variables if each.is_declared_outside}
    exported = {each: (name, each) for each in module.exports}
    taken = {n: (path, there) for path, of in module.imports for n, there in of.items()}
    if len({*taken.values()}) < len(taken):
        raise ValueError(f"{name}: cannot bundle two names of one import")
    return {**own, **exported, **taken}


def stripped(code: str) -> str:
    """JavaScript without comments, and without lines and spaces that it does not need.

    Raises:
        ValueError: a string, a template or a regular expression has no end.
    """
    return _joined(_tokens(code))


def _joined(tokens: list[_Token]) -> str:
    parts: list[str] = []
    last = ""
    for each in tokens:
        is_needed = each.gap == "\n" or _APART.match(last[-1:] + each.text[:1])
        if is_needed and last[-1:] not in _NO_LINE_AFTER:
            parts.append(each.gap)
        parts.append(each.text)
        last = each.text
    return "".join(parts)


def _tokens(code: str) -> list[_Token]:
    """Tokens of JavaScript.

    A slash after an operand is a division, any other begins a regular expression. A ``}`` is read
    as the end of a block and not of an operand, and ``of`` as a name.
    """
    found: list[_Token] = []
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
        found.append(_Token("\n" if "\n" in gap else gap and " ", token, kind))
        closed = nested.pop() if token[:1] in (")", "}") else ""
        if kind == "open":
            is_control = token == "(" and last in _CONTROL and not is_operand
            nested.append("control" if is_control else token)
        elif kind == "text" and token[-1] == "{":
            nested.append("`")
        is_name = kind == "word" and (token not in _BEFORE_OPERAND or last in (".", "?."))
        is_operand = is_name or kind == "end" or closed == "(" or token[-1:] == "`"
        pattern, last, at = _TOKEN, token, match.end()
    return found


class _Variable(NamedTuple):
    """A token that begins with the name of a variable."""

    at: int
    name: str
    is_key_too: bool
    """It is also the name of a property, as in ``{a}``."""
    is_declared_outside: bool
    """The token declares it, outside of all functions and blocks."""
    unit: int
    """Number of the module's statement that it is in."""


def _variables(tokens: list[_Token]) -> Iterator[_Variable]:
    """The variables of a module, without properties, members of classes and `_KEPT` words.

    Braces hold an object, or a pattern for one, unless they follow what stands before a block.
    """
    nested: list[str] = []
    last, before = "", ""
    is_class = is_case = is_declaring = False
    unit = 0
    for at, (token, kind) in enumerate((each.text, each.kind) for each in tokens):
        within = nested[-1] if nested else ""
        if token == "]" or (kind in ("close", "text") and token[0] in ")}"):
            nested.pop()
        if kind == "word" and (not last.endswith(".") or last == "..."):
            name = token.split(".")[0]
            unit += not nested and token in _DECLARING and last in (";", "}", "async", "")
            following = tokens[at + 1].text if at + 1 < len(tokens) else ""
            begins = before if last in _MODIFIERS else last
            is_first = within == "object" and begins in ("{", ",")
            is_key = is_first and following not in (",", "}", "=")
            follows_operand = last[-1:] in ("}", "]") or (last[-1:].isalnum() and last not in _KEPT)
            is_operator = token == "of" and within == "(" and follows_operand
            is_other = is_key or is_operator or within == "class" or name[0].isdigit()
            if not is_other and name not in _KEPT:
                is_outside = is_declaring or (not nested and last in _DECLARING)
                yield _Variable(at, name, is_first, is_outside, unit)
            token = "in" if is_operator else token
            is_class |= token == "class" and not is_key
            is_case |= token in ("case", "default") and not is_key
        if not nested:
            is_declaring = token in ("{", "[") and last in ("const", "let")
        if token == "{":
            is_block = last in _BEFORE_BLOCK or (last == ":" and is_case)
            nested.append("class" if is_class else "block" if is_block else "object")
            is_class = False
        elif token in ("(", "[") or (kind == "text" and token[-1] == "{"):
            nested.append(token)
        is_case &= last != ":"
        before, last = last, token


def _read(folder: Path, name: str) -> _Module:
    text = folder.joinpath(name).read_text("utf-8")
    imports = []
    for names, everything, path in _IMPORT.findall(text):
        found = (folder / name).parent.joinpath(path).resolve().relative_to(folder.resolve())
        taken = [each.split(" as ") for each in re.findall(r"\w+(?: as \w+)?", names)]
        pairs = {everything: "*"} if everything else {each[-1]: each[0] for each in taken}
        imports.append((found.as_posix(), pairs))
    text = _EMPTY.sub("\n", _IMPORT.sub(lambda found: "\n" * found[0].count("\n"), text))
    exports = _EXPORT.findall(text)
    text = _EXPORT.sub("", text)
    if other := _OTHER.search(text):
        raise ValueError(f"{name}: cannot bundle {other[0]!r}")
    own = f'new URL("{name}",import.meta.url).href'
    text = text.replace("import.meta.url", own)
    is_vendor = name.startswith("vendor/")  # a licence must not get lost
    return _Module(imports, exports, [_Token("", text, None)] if is_vendor else _tokens(text))


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
