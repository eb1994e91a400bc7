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
    "() => { a; }\n  /b/.test(c)": "()=>{a;}\n/b/.test(c)",
    "a /* two\n lines */ b\n\n  // c\n  d": "a\nb\n\n\nd",
    "static #a = 1 .b; #c in d; async *e() {}": "static #a=1 .b;#c in d;async*e(){}",
}
"""Code -> what is left of it."""


@pytest.mark.parametrize("code", NASTY)
def test_comments_and_indentation_are_left_out_and_nothing_else(code: str) -> None:
    assert bundle.stripped(code) == NASTY[code]


@pytest.mark.parametrize("code", ["a = 'b\n", "`${a}", '`${"}`', "a = /b\n/"])
def test_a_string_template_or_expression_without_an_end_is_an_error(code: str) -> None:
    with pytest.raises(ValueError, match="no end of what begins in "):
        bundle.stripped(code)


def test_line_n_of_a_module_is_the_nth_after_its_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        app='// a\nimport {\n  one,\n} from "./data/one.js";\n\nexport const two = 2 * one;\n',
        data__one="/**\n * a\n */\n\nexport const one = `\n`.length; /*\n*/ const last = 7;\n",
    )
    lines = bundle.script(tmp_path, "app.js").splitlines()
    first, second = lines.index("// data/one.js"), lines.index("// app.js")
    assert (lines[first + 5], lines[first + 7]) == ("const one=`", "const last=7;")
    assert lines[second + 6] == "const two=2*one;"


SAME_TREE = """
import { readFileSync } from "node:fs";
const { parsers } = await import(process.argv[1]);
const PLACES = /^(start|end|loc|range|extra|tokens|(\\w+C|c)omments|__contentEnd)$/;
function bare(key, value) {
  while (value?.type === "ParenthesizedExpression") value = value.expression;
  return PLACES.test(key) ? undefined : value;
}
const trees = (codes) => codes.map((code) => JSON.stringify(parsers.babel.parse(code, {}), bare));
const pairs = Object.entries(JSON.parse(readFileSync(0, "utf8")));
const [unlike, sizes] = [[], []];
for (const [name, codes] of pairs) {
  const [whole, left] = trees(codes);
  sizes.push(whole.length);
  if (whole !== left) unlike.push(name);
}
console.log(JSON.stringify([unlike, sizes]));
"""


def test_every_module_has_the_syntax_tree_that_it_had_with_comments() -> None:
    if not PRETTIER.is_dir():
        pytest.skip("prettier is missing: npm ci --prefix tests/js")
    texts = {path.name: path.read_text("utf-8") for path in bundle.FOLDER.rglob("*.js")}
    texts |= {code: f"async function* f() {{\n{code}\n}}" for code in NASTY if "#" not in code}
    pairs = {name: [text, bundle.stripped(text)] for name, text in texts.items()}
    command = [required_node(), "--input-type=module", "--eval", SAME_TREE]
    done = subprocess.run(
        [*command, (PRETTIER / "babel.mjs").as_uri()],
        input=json.dumps(pairs), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    unlike, sizes = json.loads(done.stdout)
    assert unlike == []
    assert min(sizes) > 100
    assert sum(sizes) > 1_000_000


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
