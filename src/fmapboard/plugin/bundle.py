"""The front end's files as one script, without comments and with short names, and a style sheet."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from itertools import count, islice, product
from pathlib import Path
from typing import NamedTuple

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
    async break catch continue default extends finally get import set static super switch this
    true false try null undefined AbortController Array Blob Boolean DataView Date Error
    Float32Array Element Float64Array FontFace HTMLElement ImageData Infinity Int32Array JSON Map
    Math MessageChannel MutationObserver NaN Node Number Object OffscreenCanvas Promise
    ResizeObserver Response Set String TextDecoder TextEncoder URL Uint32Array Uint8Array
    Uint8ClampedArray WeakMap console createImageBitmap decodeURIComponent document
    encodeURIComponent fetch getComputedStyle navigator parseInt performance requestAnimationFrame
    window
    """.split()  # noqa: SIM905
)  # fmt: skip
"""Words that are no variables of a module; a test finds missing ones."""
_LETTERS = "etaoinsrhldcumfpgwybvkxjqzETAOINSRHLDCUMFPGWYBVKXJQZ"


class Token(NamedTuple):
    """A token, with what is left of the space in front of it."""

    gap: str
    """A line, a space if it may be needed, or nothing."""
    text: str
    kind: str | None


def joined(tokens: list[Token]) -> str:
    """The tokens with the lines and spaces that they need."""
    parts: list[str] = []
    last = ""
    for each in tokens:
        is_needed = each.gap == "\n" or _APART.match(last[-1:] + each.text[:1])
        if is_needed and last[-1:] not in _NO_LINE_AFTER:
            parts.append(each.gap)
        parts.append(each.text)
        last = each.text
    return "".join(parts)


def tokens_of(code: str) -> list[Token]:
    """Tokens of JavaScript.

    A slash after an operand is a division, any other begins a regular expression. A ``}`` is read
    as the end of a block and not of an operand, and ``of`` as a name.

    Raises:
        ValueError: a string, a template or a regular expression has no end.
    """
    found: list[Token] = []
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
        found.append(Token("\n" if "\n" in gap else gap and " ", token, kind))
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


_Scope = tuple[int, ...]


class Variable(NamedTuple):
    """A token that begins with the name of a variable."""

    at: int
    name: str
    is_key_too: bool
    """It is also the name of a property, as in ``{a}``."""
    is_declared_outside: bool
    """The token declares it, outside of all functions and blocks."""
    within: _Scope
    """Numbers of the module's statement, and of the functions and blocks that it is in."""
    scope: _Scope | None
    """Where it is declared, if this token declares it."""


def _parentheses(tokens: list[Token]) -> dict[int, tuple[bool, bool]]:
    """Each opening one -> whether it holds parameters, and whether a block follows."""
    found: dict[int, tuple[bool, bool]] = {}
    opened: list[int] = []
    texts = [each.text for each in tokens] + ["", ""]
    for at, text in enumerate(texts):
        if text == "(":
            opened.append(at)
        elif text == ")":
            start, (one, two) = opened.pop(), texts[at + 1 : at + 3]
            has_block = one == "{" or (one, two) == ("=>", "{")
            is_control = texts[start - 1] in ("for", "if", "switch", "while")
            found[start] = (one == "=>" or (one == "{" and not is_control), has_block)
    return found


def variables_of(tokens: list[Token]) -> Iterator[Variable]:
    """The variables of a module, without properties, members of classes and `_KEPT` words.

    Braces hold an object, or a pattern for one, unless they follow what stands before a block.
    """
    parentheses, numbers = _parentheses(tokens), count()
    nested: list[str] = []
    within: _Scope = (0,)
    ended, outer = within, list[_Scope]()
    patterns: list[tuple[int, _Scope]] = []  # depth of parameters and patterns, and their scope
    last, before = "", ""
    is_class = is_case = is_declaring = False
    for at, (_, token, kind) in enumerate(tokens):
        inside = nested[-1] if nested else ""
        if token == "]" or (kind in ("close", "text") and token[0] in ")}"):
            nested.pop()
            ended, within = within, outer.pop()
            if patterns and patterns[-1][0] > len(nested):
                patterns.pop()
        if kind == "word" and (not last.endswith(".") or last == "..."):
            name = token.split(".")[0]
            if not nested and token in _DECLARING and last in (";", "}", "async", ""):
                within = (next(numbers),)
            following = tokens[at + 1].text if at + 1 < len(tokens) else ""
            begins = before if last in _MODIFIERS else last
            is_first = inside == "object" and begins in ("{", ",")
            is_key = is_first and following not in (",", "}", "=")
            follows_operand = last[-1:] in ("}", "]") or (last[-1:].isalnum() and last not in _KEPT)
            is_operator = token == "of" and inside == "(" and follows_operand
            is_other = is_key or is_operator or inside == "class" or name[0].isdigit()
            if not is_other and name not in _KEPT:
                is_new = last in _DECLARING and (last != "*" or before == "function")
                scope = within if is_new else None
                if patterns and last in ("(", "{", "[", ",", ":", "..."):
                    depth, around = patterns[-1]
                    is_part = all(each in ("object", "[") for each in nested[depth:])
                    scope = around if is_part else scope
                is_outside = is_declaring or (not nested and is_new)
                yield Variable(at, name, is_first, is_outside, within, scope)
            token = "in" if is_operator else token
            is_class |= token == "class" and not is_key
            is_case |= token in ("case", "default") and not is_key
        if not nested:
            is_declaring = token in ("{", "[") and last in ("const", "let")
        if token in ("{", "[", "(") or (kind == "text" and token[-1] == "{"):
            outer.append(within)
            is_block = token == "{" and (last in _BEFORE_BLOCK or (last == ":" and is_case))
            if token == "{" and (is_block or is_class):
                is_body = last == ")" or (last, before) == ("=>", ")")
                within = ended if is_body else (*within, next(numbers))
            of = "class" if is_class else "block" if is_block else "object"
            nested.append(of if token == "{" else token)
            is_class &= token != "{"
            has_parameters, has_block = parentheses.get(at, (False, False))
            within = (*within, next(numbers)) if has_block else within
            if has_parameters or (token != "(" and last in ("const", "let")):
                patterns.append((len(nested), within))
        is_case &= last != ":"
        before, last = last, token


def numbers_of(variables: list[Variable], owners: Mapping[str, object]) -> dict[int, int]:
    """Token of a variable that is declared inside of a function -> the number of its name.

    In its scope, no other variable that is declared or used there has this number.
    """
    local = [each for each in variables if each.name not in owners]
    scopes = {(each.name, each.scope) for each in local if each.scope}
    uses: dict[tuple[_Scope, str], list[Variable]] = {}
    for each in local:
        around = (each.within[:n] for n in range(len(each.within), 0, -1))
        scope = next((one for one in around if (each.name, one) in scopes), each.within[:1])
        uses.setdefault((scope, each.name), []).append(each)
    found: dict[int, int] = {}
    used: dict[_Scope, set[int]] = {}  # numbers of variables that are used in a scope
    for (scope, _), own in sorted(uses.items(), key=lambda each: len(each[0][0])):
        number = next(n for n in count() if n not in used.get(scope, ()))
        for each in own:
            found[each.at] = number
            for n in range(len(scope), len(each.within) + 1):
                used.setdefault(each.within[:n], set()).add(number)
    return found


def short_names() -> Iterator[str]:
    """Names of one, two, … letters that are no words of the language."""
    for length in count(1):
        for first, *others in product(_LETTERS, *[f"{_LETTERS}0123456789_$"] * (length - 1)):
            if (name := "".join([first, *others])) not in {*_KEPT, "of"}:
                yield name


_IMPORT = re.compile(r'^import (?:\{([^}]*)\}|\* as (\w+)) from "([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_EMPTY = re.compile(r"^export \{\};\n", re.MULTILINE)  # makes a file with only types a module
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_IMPORTED = re.compile(r'^@import url\("([^"]+)"\);\n', re.MULTILINE)


class _Module(NamedTuple):
    imports: list[tuple[str, dict[str, str]]]
    """Name of each imported module, and local name -> its name there, ``*`` for all of it."""
    exports: list[str]
    tokens: list[Token]


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
        ValueError: a module has an import or export of an unknown form, or see `tokens_of`.
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
    variables = {name: list(variables_of(modules[name].tokens)) for name in order}
    owners = {name: _owners(name, modules[name], variables[name]) for name in order}
    local = {name: numbers_of(variables[name], owners[name]) for name in order}
    most = max((number + 1 for of in local.values() for number in of.values()), default=0)
    names = short_names()
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
            new = short[owner] if owner else inside[local[name][each.at]]
            text = new + token.text[len(each.name) :]
            text = f"{each.name}:{text}" if each.is_key_too else text
            tokens[each.at] = Token(token.gap, text, token.kind)
        pairs = ",".join(
            f"{n}:{short[name, n]}" for n in modules[name].exports if (name, n) in short
        )
        code = joined(tokens)
        if name.startswith("vendor/"):
            code = (
                f"const{{{pairs}}}=(()=>{{{code}\nreturn{{{','.join(modules[name].exports)}}}}})();"
            )
        if (name, "*") in short:
            code += f"\nconst {short[name, '*']}={{{pairs}}};"
        parts.append(f"// {name}\n{code}\n")
    given = ",".join(f"{short[entry, n]} as {n}" for n in modules[entry].exports)
    return f"{''.join(parts)}export{{{given}}};\n"


def _owners(name: str, module: _Module, variables: list[Variable]) -> dict[str, tuple[str, str]]:
    """Each variable that belongs to a module -> that module and its name there."""
    own = {each.name: (name, each.name) for each in variables if each.is_declared_outside}
    exported = {each: (name, each) for each in module.exports}
    taken = {n: (path, there) for path, of in module.imports for n, there in of.items()}
    if len({*taken.values()}) < len(taken):
        raise ValueError(f"{name}: cannot bundle two names of one import")
    return {**own, **exported, **taken}


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
    tokens = [Token("", text, None)] if is_vendor else tokens_of(text)
    return _Module(imports, exports, tokens)


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
