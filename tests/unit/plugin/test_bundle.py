"""The script and the style sheet that the browser gets do what the separate files would do."""

from __future__ import annotations

import graphlib
import json
import re
import subprocess
from pathlib import Path

import pytest
from node import required_node

from fmapboard.plugin import bundle

PRETTIER = Path(__file__).parents[2] / "js" / "node_modules" / "prettier" / "plugins"


def write(folder: Path, **modules: str) -> None:
    for name, text in modules.items():
        path = folder / f"{name.replace('__', '/')}.js"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")


def stripped(code: str) -> str:
    return bundle.joined(bundle.tokens_of(code))


def run(code: str, folder: Path) -> str:
    path = folder / "app.js"
    path.write_text(code, "utf-8")
    command = [required_node(), "--input-type=module", "--eval"]
    show = "const app = await import(process.argv[1]); console.log(app.shown());"
    done = subprocess.run(
        [*command, show, path.as_uri()], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_modules_with_the_same_names_inside_keep_them_apart(tmp_path: Path) -> None:
    write(
        tmp_path,
        app='import {\n  SIZE as OTHER,\n  twice,\n} from "./data/one.js";\n'
        'import * as two from "./data/two.js";\nimport { Thing } from "./data/two.js";\n'
        "const SIZE = 1;\nexport function shown() {\n"
        "  return [SIZE, OTHER, twice(4), two.SIZE, new Thing().size];\n}\n",
        data__one="export const SIZE = 20;\nexport function twice(n) {\n  return 2 * n;\n}\n",
        data__two='import { twice } from "./one.js";\nexport const SIZE = twice(150);\n'
        "export class Thing {\n  size = 4000;\n}\nexport {};\n",
    )
    assert run(bundle.script(tmp_path, "app.js"), tmp_path) == "[ 1, 20, 8, 300, 4000 ]"


def test_a_module_knows_the_address_that_it_would_have_alone(tmp_path: Path) -> None:
    write(
        tmp_path,
        app='import { BASE } from "./server/api.js";\nexport const shown = () => BASE.href;\n',
        server__api='export const BASE = new URL("../data/", import.meta.url);\n',
    )
    said = run(bundle.script(tmp_path, "app.js"), tmp_path)
    assert said == f"{(tmp_path / 'data').as_uri()}/"


@pytest.mark.parametrize(
    "line",
    ["export default 3;", 'export * from "./b.js";', "export let n = 1;", 'import "./b.js";'],
)
def test_an_unknown_form_is_an_error_and_not_a_wrong_script(tmp_path: Path, line: str) -> None:
    write(tmp_path, app=f"{line}\n", b="export const b = 1;\n")
    with pytest.raises(ValueError, match=re.escape(f"app.js: cannot bundle {line!r}")):
        bundle.script(tmp_path, "app.js")


def test_a_circle_of_imports_is_an_error(tmp_path: Path) -> None:
    write(
        tmp_path,
        app='import { b } from "./b.js";\nexport const a = 1;\n',
        b='import { a } from "./app.js";\nexport const b = 2;\n',
    )
    with pytest.raises(graphlib.CycleError):
        bundle.script(tmp_path, "app.js")


NASTY = {
    "a = b / c / d; // e": "a=b/ c/ d;",
    "a = (b) / c /* / */ / 2": "a=(b)/ c/ 2",
    "a = b[0] / c + `/*` / d": "a=b[0]/ c+`/*`/ d",
    "if (a) /'/.test(b)": "if(a)/'/.test(b)",
    "x.if(a) / b / c": "x.if(a)/ b/ c",
    "return /[/*'\\]]/g.exec(a)": "return/[/*'\\]]/g.exec(a)",
    "a.return / b; // '": "a.return/ b;",
    "a?.in / b // `": "a?.in/ b",
    'a = /b\\/"/ in c': 'a=/b\\/"/ in c',
    "a = b / /c/.exec(d)": "a=b/ /c/.exec(d)",
    "a++ / 2; b = a + ++c - -d - --e": "a++/ 2;b=a+ ++c- -d- --e",
    "a ? /b/ : c / 2": "a?/b/:c/ 2",
    '`// ${a /* b */ + `}  ${c /  2}` + "}"} /* d */` // e': '`// ${a+`}  ${c/ 2}`+"}"} /* d */`',
    "`\\` $ ${{ a: `${b}` }.a}\\${` + c": "`\\` $ ${{a:`${b}`}.a}\\${`+c",
    "a = '// \\' /*'; b = \"it's\"": "a='// \\' /*';b=\"it's\"",
    "if (c) { a; }\n  /b/.test(c)": "if(c){a;}/b/.test(c)",
    "a /* two\n lines */ b\n\n  // c\n  d": "a\nb\nd",
    "{\n  a = {\n    b,\n  };\n  c = d\n    .e(f)\n  g++\n  h\n}": "{a={b,};c=d\n.e(f)\ng++\nh\n}",
    "f(a, [, b,], [,], { c, }); { for (;;); }": "f(a,[,b,],[,],{c,});{for(;;);}",
    "if (a) { b; }": "if(a){b;}",
    "static #a = 1 .b; #c in d; async *e() {}": "static #a=1 .b;#c in d;async*e(){}",
}
"""Code -> what is left of it."""


@pytest.mark.parametrize("code", NASTY)
def test_comments_and_indentation_are_left_out_and_nothing_else(code: str) -> None:
    assert stripped(code) == NASTY[code]


@pytest.mark.parametrize("code", ["a = 'b\n", "`${a}", '`${"}`', "a = /b\n/"])
def test_a_string_template_or_expression_without_an_end_is_an_error(code: str) -> None:
    with pytest.raises(ValueError, match="no end of what begins in "):
        stripped(code)


COMPARED = r"""
import { readFileSync } from "node:fs";
const { parsers } = await import(process.argv[1]);
const SKIPPED = /^(type|start|end|loc|range|extra|tokens|(\w+C|c)omments|__contentEnd|shorthand)$/;
const isFunction = (node) => /Function|Method/.test(node.type);
const isScope = (node) => isFunction(node) || /^(Block|For|Switch|Catch)/.test(node.type);
const isKey = (node, field) =>
  node.type === "MetaProperty" ||
  (!node.computed && field === (/Member/.test(node.type) ? "property" : "key"));

/** The names that a declaration or a parameter declares. */
function named(node) {
  if (Array.isArray(node)) return node.flatMap(named);
  if (node?.type === "Identifier") return [node.name];
  const { left, argument, elements, properties, value } = node ?? {};
  return left || argument || elements || properties || value
    ? named(left ?? argument ?? elements ?? properties ?? value)
    : [];
}
function declaredBy(node) {
  if (node.type === "VariableDeclaration") return node.declarations.flatMap(({ id }) => named(id));
  return /^(Function|Class)Decl/.test(node.type) ? named(node.id) : [];
}
function declaredIn(node) {
  const inside = [node.params, node.param].flatMap(named);
  const body = isFunction(node) || node.type === "CatchClause" ? node.body?.body : node.body;
  const parts = [node.init, node.left, body, node.cases?.flatMap((each) => each.consequent)];
  for (const each of parts.flat()) if (each?.type) inside.push(...declaredBy(each));
  return new Set(inside);
}

/** Calls `found` with each variable's name and the scope that declares it, in order. */
function walk(node, scopes, path, found) {
  if (Array.isArray(node)) node.forEach((each, i) => walk(each, scopes, `${path}.${i}`, found));
  else if (node?.type === "ParenthesizedExpression") walk(node.expression, scopes, path, found);
  else if (node?.type === "Identifier") {
    const at = scopes.findLastIndex(({ names }) => names.has(node.name));
    found(path, node.name, at < 0 ? null : scopes[at].place);
  } else if (node?.type) {
    found(path, node.type);
    const own = isScope(node) && scopes.at(-1).body !== node; // a function's body is of its scope
    const body = isFunction(node) || node.type === "CatchClause" ? node.body : null;
    const names = declaredIn(node);
    const inside = own ? [...scopes, { place: path, names, body }] : scopes;
    if (own) found(path, `${names.size} names`);
    for (const field of Object.keys(node).sort()) {
      if (SKIPPED.test(field)) continue;
      if (isKey(node, field)) found(path, JSON.stringify(node[field].name ?? node[field].value));
      else walk(node[field], field === "id" ? scopes : inside, `${path}.${field}`, found);
    }
  } else if (node !== undefined) found(path, JSON.stringify(node));
}
function listed(body, names) {
  const found = [];
  const note = (...each) => found.push(each);
  walk(body, [{ place: "", names, body: null }], "", note);
  return found;
}

const { texts, isShort } = JSON.parse(readFileSync(0, "utf8"));
const wrong = [];
let size = 0;
for (const [name, codes] of Object.entries(texts)) {
  const [whole, left] = codes.map((code) => parsers.babel.parse(code, {}).program.body);
  const imported = whole.flatMap((node) => node.specifiers ?? []);
  const isOwn = (node) => node.declaration || !node.specifiers;
  const own = isShort ? whole.filter(isOwn).map((node) => node.declaration ?? node) : whole;
  const names = new Set([...own.flatMap(declaredBy), ...imported.map(({ local }) => local.name)]);
  const before = listed(own, names);
  // Outside of functions a name stands for another one everywhere, inside for one of its scope.
  const after = listed(left.slice(0, own.length), new Set());
  const to = new Map();
  before.forEach(([place, one, scope], i) => {
    const [there, other, its] = after[i] ?? [];
    const isOutside = scope === "";
    if (isOutside && !to.has(one)) to.set(one, other);
    const isSame = isOutside
      ? its === null && to.get(one) === other && (!isShort || one !== other)
      : scope === undefined || scope === null
        ? one === other && its === scope
        : its === scope && (isShort || one === other);
    if (place !== there || !isSame) wrong.push([name, place, one, scope, other, its]);
  });
  if (before.length !== after.length || new Set(to.values()).size !== to.size) wrong.push(name);
  size += before.length;
}
console.log(JSON.stringify([wrong.slice(0, 9), size]));
"""


def compared(texts: dict[str, list[str]], is_short: bool) -> None:
    if not PRETTIER.is_dir():
        pytest.skip("prettier is missing: npm ci --prefix tests/js")
    command = [required_node(), "--input-type=module", "--eval", COMPARED]
    done = subprocess.run(
        [*command, (PRETTIER / "babel.mjs").as_uri()],
        input=json.dumps({"texts": texts, "isShort": is_short}),
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    wrong, size = json.loads(done.stdout)
    assert wrong == []
    assert size > 50_000


def test_every_module_has_the_syntax_tree_that_it_had_with_comments() -> None:
    texts = {path.name: path.read_text("utf-8") for path in bundle.FOLDER.rglob("*.js")}
    texts |= {code: f"async function* f() {{\n{code}\n}}" for code in NASTY if "#" not in code}
    compared({name: [text, stripped(text)] for name, text in texts.items()}, False)


@pytest.mark.parametrize("entry", ["app.js", "report.js"])
def test_every_variable_has_a_short_name_of_its_own_and_all_else_keeps_its_name(entry: str) -> None:
    sent = bundle.script(bundle.FOLDER, entry).rsplit("export{", 1)[0]
    parts = dict(
        part.split("\n", 1) for part in re.split(r"^// (?=\S+\.js$)", sent, flags=re.M)[1:]
    )
    own = {name: code for name, code in parts.items() if not name.startswith("vendor/")}
    texts = {name: bundle.FOLDER.joinpath(name).read_text("utf-8") for name in own}
    for name, text in texts.items():
        place = f'new URL("{name}",import.meta.url).href'
        texts[name] = text.replace("import.meta.url", place)
    compared({name: [texts[name], code] for name, code in own.items()}, True)


SHORTENED = {
    "const one = { one, two: one, get three() {}, async four() {} };":
        "const a={one:a,two:a,get three(){},async four(){}};",
    "const { one, two: [other = one], ...rest } = one.two;":
        "const{one:a,two:[b=a],...c}=a.two;",
    "function of({ of = 1 }) {\n  for (const one of of) of.one?.(`${of} one`);\n}":
        "function b({of:b=1}){for(const a of b)b.one?.(`${b} one`);}",
    "switch (1) {\n  case Math.PI: {\n    let one = 2;\n  }\n}":
        "switch(1){case Math.PI:{let a=2;}}",
    "class One extends Set {\n  size() {\n    return this.size;\n  }\n}":
        "class a extends Set{size(){return this.size;}}",
    'const one = (two) => ({ class: two, x: two ? { two } : [two, { "a": two }] });':
        'const b=(a)=>({class:a,x:a?{two:a}:[a,{"a":a}]});',
}  # fmt: skip
"""Code -> the same with short names."""


@pytest.mark.parametrize("code", SHORTENED)
def test_properties_and_the_words_of_the_language_keep_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setattr(bundle, "_LETTERS", "abcdef")
    write(tmp_path, app=f"{code}\n")
    assert bundle.script(tmp_path, "app.js") == f"// app.js\n{SHORTENED[code]}\nexport{{}};\n"


def test_two_names_of_one_import_are_an_error(tmp_path: Path) -> None:
    write(tmp_path, app='import { b, b as c } from "./b.js";\n', b="export const b = 1;\n")
    with pytest.raises(ValueError, match=r"app\.js: cannot bundle two names of one import"):
        bundle.script(tmp_path, "app.js")


def test_the_licences_of_what_is_vendored_are_sent_with_it() -> None:
    for entry in ("app.js", "report.js"):
        sent = bundle.script(bundle.FOLDER, entry)
        assert sent.count("The MIT License (MIT)") == sent.count("Apache License") == 1


def test_every_module_of_the_tab_is_in_the_script_and_every_sheet_in_the_styles() -> None:
    folder = bundle.FOLDER
    joined = bundle.script(folder, "app.js") + bundle.script(folder, "report.js")
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.js")}
    parts = set(re.findall(r"^// (\S+\.js)$", joined, re.MULTILINE))
    assert parts == files - {"server/answers.js", "index.js", "report_start.js"}
    styles = bundle.styles(folder, "style.css")
    assert "@import" not in styles
    for sheet in folder.glob("*.css"):
        assert sheet.read_text("utf-8").splitlines()[-3] in styles, sheet.name
