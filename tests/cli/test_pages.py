"""The drawings of `inspect` and `check`: outlines, pictures, and pages in a real browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
from lxml import etree

import bridge
from bridge.check import check
from bridge.show.layers import layers_with_bodies
from bridge.show.outline import outline
from bridge.show.page import page
from bridge.show.picture import picture
from bridge.show.short import short
from tests import docs
from tests.benchmark.processes import ifs
from tests.docs import DOCS, PICTURE, README
from tests.engines.test_check import GATE, NEVER, saved
from tests.support.browser import Page, browser, found
from tests.support.command_line import bridge as run
from tests.support.model_files import FOLDER, IR_FILES, ONNX_FILES

NESTED = FOLDER / "if_nested_captures_every_scope.onnxtxt"
# Both branches of the inner If compute something else than GATE.
WRONG = GATE.replace("Neg(positive)", "Sigmoid(positive)").replace("Exp", "Neg")

ODD = '</script><script>alert("1")</script>&amp;'


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x", "x"),
        ("If_0_then_branch__Inline_0__/decoder/rnn/If_2_output_0", "…/decoder/rnn/If_2_output_0"),
        ("/model/layers.0/self_attn/q_proj/MatMul_output_0", "…/q_proj/MatMul_output_0"),
        ("a_long_name_without_any_separator_in_it", "a_long_name_wi…parator_in_it"),
    ],
)
def test_short_names(name: str, expected: str) -> None:
    assert short(name) == expected


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ("two = Constant<value = int64 {2}>() c = Equal(i, two)", "i == 2"),
        ("s = Shape(x) d = Gather(s, last) c = Greater(d, three)", "shape(x)[-1] > 3"),
        ("s = Shape<start = 1, end = 2>(x) c = Greater(s, three)", "shape(x)[1] > 3"),
        ("s = Shape(x) n = Size(s) c = Equal(n, three)", "rank(x) == 3"),
        ("a = Equal(i, three) c = Not(a)", "i != 3"),
        ("c = Cast<to = 9>(i)", "i != 0"),
        (
            "a = Less(i, three) b = Less(three, i) d = Or(a, b) e = Not(a) c = And(d, e)",
            "(i < 3 or 3 < i) and i >= 3",
        ),
        ("s = ReduceSum<keepdims = 0>(x) z = Cast<to = 7>(s) c = Less(z, i)", "ReduceSum(x) < i"),
        ("a = Add(i, three) b = Mul(a, i) d = Sub(b, a) c = Less(d, i)",
         "(i + 3) * i - (i + 3) < i"),
    ],
)  # fmt: skip
def test_conditions_read_as_formulas(nodes: str, says: str) -> None:
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (float[N, M] x, int64 i) => (float[N, M] y)
    <int64 last = {{-1}}, int64 three = {{3}}> {{
      {nodes}
      y = If (c) <
        then_branch = a () => (float[N, M] t) {{ t = Abs(x) }},
        else_branch = b () => (float[N, M] u) {{ u = Neg(x) }}>
    }}"""
    (node,) = outline(bridge.load(onnx.parser.parse_model(text)), "m")["nodes"]
    assert node["says"] == says


def ports(made: dict[str, Any], node: int, body: int, side: str) -> list[tuple[str, ...]]:
    """Ports with their names: inner name, type, other name, and the producer."""
    names = [full for _, full in made["names"]]
    return [
        (names[name], type, words.replace("#", names[other or 0]), near)
        for name, type, words, other, _, near in made["nodes"][node]["bodies"][body][side]
    ]


def test_outline_says_where_values_come_from_and_go() -> None:
    made = outline(bridge.load(NESTED), "m")
    assert [node["where"] for node in made["nodes"]] == [
        'graph / If "y"',
        'graph / If "y" / then_branch / If "y1"',
        'graph / If "y" / then_branch / If "y1" / then_branch / If "y2"',
    ]
    assert made["top"] == [0] and made["nodes"][0]["bodies"][0]["nodes"] == [1]
    assert ports(made, 2, 0, "inputs") == [
        ("x", "f32[2]", "x", "input"),
        ("s0", "f32[2]", "s0", "Add in graph"),
        ("s1", "f32[2]", "s1", "Mul in then of y"),
        ("s2", "f32[2]", "s2", "Sub"),
    ]
    assert ports(made, 2, 0, "outputs") == [("y3", "f32[2]", "y2", "")]
    assert made["nodes"][2]["bodies"][0]["inputs"][2][4].startswith("Mul in graph / If")
    made = outline(bridge.load(FOLDER / "loop_in_if.onnxtxt"), "m")
    assert [node["says"] for node in made["nodes"]] == ["choose", "trips times"]
    assert ("the number of the iteration", "") in [port[2:] for port in ports(made, 1, 0, "inputs")]


def test_layers_stand_beside_names(tmp_path: Path) -> None:
    bridge.convert(NESTED, tmp_path / "m.xml")
    layers = layers_with_bodies(tmp_path / "m.xml")
    for model in (bridge.load(NESTED), bridge.load(tmp_path / "m.xml")):
        made = outline(model, "m", layers)
        assert [node["layer"].startswith('If "') for node in made["nodes"]] == [True] * 3
    report = check(NESTED)
    assert report.outline is not None and '", id ' in report.outline["nodes"][0]["layer"]


@pytest.mark.parametrize("path", [*ONNX_FILES, *IR_FILES], ids=lambda path: path.name)
def test_every_model_can_be_drawn(path: Path) -> None:
    made = outline(bridge.load(path), str(path))
    etree.fromstring(picture(made).encode())
    sites = [node["site"] for node in made["nodes"] if node["op"] == "If"]
    assert sites == list(range(len(sites)))
    text = page(made)
    data = text.partition('type="application/json">')[2].partition("</script>")[0]
    assert json.loads(data)["outline"] == made


def named_oddly(path: Path) -> Path:
    model = onnx.parser.parse_model(GATE)
    node = next(node for node in model.graph.node if node.op_type == "If")
    node.name = ODD
    onnx.save(model, path)
    return path


def test_commands_write_pages_and_pictures(tmp_path: Path) -> None:
    model, html, svg = named_oddly(tmp_path / "m.onnx"), tmp_path / "m.html", tmp_path / "m.svg"
    found = run("check", model, "--json")
    assert found.code == 0
    (tmp_path / "check.json").write_text(found.out, encoding="utf-8")
    drawn = run("inspect", model, "--html", html, "--svg", svg, "--coverage",
                tmp_path / "check.json")  # fmt: skip
    assert drawn.code == 0, drawn.err
    assert drawn.out.count("wrote ") == 2
    root = etree.parse(svg).getroot()
    assert "state reached" in svg.read_text(encoding="utf-8")
    assert any(ODD in (title.text or "") for title in root.iter("{*}title"))
    assert "http://" not in html.read_text(encoding="utf-8").replace("http://www.w3.org/", "")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("inspect", NESTED, "--svg", "tree.png"), "give it a name that ends in .svg"),
        (("inspect", NESTED, "--html", "nowhere/tree.html"), "there is no such directory"),
        (("inspect", NESTED, "--coverage", "check.json"), "give --html or --svg"),
        (("inspect", NESTED, "--json", "--graph"), "ask for one of them"),
        (("inspect", NESTED, "--svg", "a.svg", "--coverage", "none.json"), "cannot be read"),
        (("inspect", NESTED, "--svg", "a.svg", "--coverage", "no.json"), "is no output of"),
        (("inspect", NESTED, "--svg", "a.svg", "--coverage", "other.json"), "has other Ifs than"),
        (("inspect", NESTED, "--svg", "a.svg", "--coverage", "odd.json"), "of the state lost"),
        (("inspect", NESTED, "--svg", "a.svg", "--coverage", "bare.json"), "is no output of"),
        (("check", NESTED, "--report", "report.pdf"), "give it a name that ends in .html"),
    ],
)
def test_what_cannot_be_drawn(
    arguments: tuple[str | Path, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no.json").write_text("[1]", encoding="utf-8")
    other = json.dumps(check(saved(GATE, tmp_path / "m.onnx")).as_json())
    (tmp_path / "other.json").write_text(other, encoding="utf-8")
    state = {"state": "lost", "text": ""}
    odd = {"ifs": [{"where": "graph", "then": state, "else": state}], "loops": []}
    (tmp_path / "odd.json").write_text(json.dumps(odd), encoding="utf-8")
    (tmp_path / "bare.json").write_text('{"ifs": [{"where": "graph"}]}', encoding="utf-8")
    before = sorted(tmp_path.iterdir())
    finished = run(*arguments)
    assert (finished.code, says in finished.err) == (2, True), finished.err
    assert sorted(tmp_path.iterdir()) == before


def test_the_picture_of_a_model_is_what_inspect_draws() -> None:
    assert PICTURE.read_text(encoding="utf-8") == docs.picture(), "python -m tests.docs"
    for file in (README, DOCS / "checks.md"):
        assert f"{PICTURE.relative_to(README.parent)})" in file.read_text(encoding="utf-8")


def test_a_check_for_scripts(tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(WRONG), tmp_path / "m.xml")
    model = saved(GATE, tmp_path / "m.onnx")
    finished = run("check", model, tmp_path / "m.xml", "--json")
    data = json.loads(finished.out)
    assert (finished.code, data["verdict"], data["format"]) == (1, "different", 2)
    (first, second) = data["ifs"]
    assert second["parents"] == [[0, "then"]]
    assert [first[role]["state"] for role in ("then", "else")] == ["different", "reached"]
    (output,) = data["outputs"]
    assert not output["equal"] and output["relative"] in ("inf", output["relative"])
    files = {file["name"]: file for version in data["versions"] for file in version["files"]}
    assert sorted(files) == ["m.bin", "m.onnx", "m.xml"]
    assert files["m.onnx"]["size"] == model.stat().st_size
    places = [near["place"] for near in data["first_difference"]["around"]["original"]]
    assert places == ["before", "itself", "after"]
    assert data["first_difference"]["around"]["m.xml"]
    assert data["inputs"][first["else"]["input"]]["tensors"]["x"]["type"] == "float32"


def test_a_check_that_fails_is_told_to_scripts_too(tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float x) => (float y) { y = my.F(x) }'
    )
    model, html = saved(text, tmp_path / "m.onnx"), tmp_path / "m.html"
    finished = run("check", model, "--json", "--report", html)
    assert (finished.code, json.loads(finished.out)["verdict"]) == (2, "nothing compared")
    assert "my::F" in finished.err and "my::F" in html.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    if found() is None:
        pytest.skip("no Chromium is installed, in which the pages could be opened")
    with browser() as page:
        yield page


def opened(tab: Page, path: Path) -> Page:
    tab.problems.clear()
    tab.open(path)
    return tab


def seek(tab: Page, text: str) -> list[str]:
    """The items of the tree after a search."""
    tab.run(
        f"const box = document.getElementById('search'); box.value = {json.dumps(text)};"
        "box.dispatchEvent(new Event('input'))".join(("{", "}"))
    )
    return shown(tab)


def shown(tab: Page) -> list[str]:
    return tab.run("[...document.querySelectorAll('[role=treeitem]')].map(row => row.innerText)")


def chosen(tab: Page) -> str:
    return tab.run("document.querySelector('[aria-selected=true]').innerText")


def test_a_report_in_a_browser(tab: Page, tmp_path: Path) -> None:
    model = named_oddly(tmp_path / "m.onnx")
    bridge.convert(onnx.parser.parse_model(WRONG), tmp_path / "m.xml")
    html = tmp_path / "report.html"
    allowed = ("--atol", "y=0.25")
    assert run("check", model, tmp_path / "m.xml", *allowed, "--report", html).code == 1
    opened(tab, html)
    text = tab.run("document.body.innerText")
    for words in (
        "NOT OK",
        "1 of 1 differ",
        "The first difference",
        "At fault: m.xml",
        "rtol 0.001, atol 0.25",
        "SHA-256",
        "3 DIFFERENT",
        ODD,
    ):
        assert words in text, words
    assert len(shown(tab)) == 6
    assert "DIFFERENT" in chosen(tab)
    tab.run("document.querySelector('#states button.reached').click()")
    assert ["else" in row for row in shown(tab)] == [False, True]
    assert not tab.problems


def test_a_tree_obeys_keys(tab: Page, tmp_path: Path) -> None:
    (tmp_path / "m.html").write_text(check(saved(NEVER, tmp_path / "m.onnx"), budget=4).as_html())
    opened(tab, tmp_path / "m.html")
    tab.run("document.getElementById('tree').focus()")
    for key, first, count in [
        ("ArrowDown", "▸ then", 3),
        ("ArrowRight", "▾ then", 4),
        ("ArrowRight", "Exp t", 4),
        ("ArrowLeft", "▾ then", 4),
        ("ArrowLeft", "▸ then", 3),
        ("ArrowDown", "▸ else", 3),
        ("ArrowLeft", "▾ If", 3),
        ("ArrowLeft", "▸ If", 1),
        ("ArrowRight", "▾ If", 3),
        ("End", "▸ else", 3),
        ("Home", "▾ If", 3),
    ]:
        tab.press(key)
        assert (" ".join(chosen(tab).split()[:2]), len(shown(tab))) == (first, count), key
    tab.press("/")
    tab.type("forced")
    assert [row.split()[1] for row in shown(tab)] == ["If", "then"]
    tab.press("Enter")
    assert "ReduceSum" not in tab.run("document.getElementById('details').innerText")
    assert "Takes" in tab.run("document.getElementById('details').innerText")
    tab.press("Escape")
    assert len(shown(tab)) == 3
    assert not tab.problems


def test_operators_stand_in_their_branch(tab: Page, tmp_path: Path) -> None:
    """The operators are folded, beside an If in a group. A search finds them."""
    assert run("inspect", NESTED, "--html", tmp_path / "m.html").code == 0
    opened(tab, tmp_path / "m.html")
    assert [row.split() for row in shown(tab) if "operator" in row] == [["▸", "1", "operator"]] * 2
    (row,) = [row for row in seek(tab, "s2") if row.split()[0] == "Sub"]
    assert row.split()[1] == "s2"
    tab.press("Enter")
    tab.run("document.querySelector('.operator').closest('[role=treeitem]').click()")
    assert "from s1" not in tab.run("document.getElementById('details').innerText")
    assert chosen(tab).split()[0] == "Sub"
    assert not tab.problems


def test_a_picture_of_many_ifs_folds(tmp_path: Path) -> None:
    """A picture shows a few Ifs at each place; Ifs with differences come first."""
    ifs(tmp_path / "m.onnx", 300)
    made = outline(bridge.load(tmp_path / "m.onnx"), "m")
    equal, wrong = ({"state": state, "text": ""} for state in ("reached", "different"))
    sites = [{"where": node["where"], "then": equal, "else": equal} for node in made["nodes"]]
    sites[250]["else"] = wrong
    text = picture(made, {"ifs": sites})
    assert "292 more Ifs" in text and text.count('class="if"') == 8
    assert text.count("DIFFERENT") == 1


def test_a_page_of_2000_ifs(tab: Page, tmp_path: Path) -> None:
    """The page appears in half a second on a quiet machine. Each branch can be found."""
    ifs(tmp_path / "m.onnx", 2000)
    assert run("inspect", tmp_path / "m.onnx", "--html", tmp_path / "m.html").code == 0
    opened(tab, tmp_path / "m.html")
    assert tab.first_paint() < 10
    rows = tab.run("document.getElementById('rows').style.height")
    assert rows == f"{2000 * 30}px"
    for number in range(0, 2000, 97):
        assert f"t{number}" in [row.split()[-1] for row in seek(tab, f"t{number}")]
    assert not tab.problems


@pytest.mark.parametrize("dark", [False, True])
def test_pages_follow_the_scheme(tab: Page, dark: bool, tmp_path: Path) -> None:
    assert run("inspect", NESTED, "--html", tmp_path / "m.html").code == 0
    opened(tab, tmp_path / "m.html").look(tmp_path / "m.png", 1200, 800, dark)
    ground = tab.run("getComputedStyle(document.body).backgroundColor")
    assert (int(ground.partition("(")[2].partition(",")[0]) < 64) == dark
    assert not tab.problems


def test_a_picture_in_a_browser(tab: Page) -> None:
    opened(tab, PICTURE)
    width, height = tab.run("(box => [box.width, box.height])(document.rootElement.getBBox())")
    texts = tab.run("[...document.querySelectorAll('text')].map(text => text.getBBox().x + "
                    "text.getBBox().width)")  # fmt: skip
    assert max(texts) <= width and height > 200
    assert not tab.problems


LONG = "a_name_of_a_file_that_no_line_of_a_phone_holds_" * 3


@pytest.mark.parametrize("kind", ["inspect", "check", "plain", "folder"])
def test_pages_on_a_phone(kind: str, tab: Page, tmp_path: Path) -> None:
    """No page scrolls sideways; what does scroll has the keyboard's focus. Headings are in order,
    and no head of a table is empty."""
    source = FOLDER / ("conv_bn_relu.onnxtxt" if kind == "plain" else "if_bool.onnxtxt")
    model, html = tmp_path / f"{LONG}.onnxtxt", tmp_path / "m.html"
    shutil.copy(source, model)
    match kind:
        case "inspect" | "plain":
            run("inspect", model, "--html", html)
        case "check":
            run("check", model, "--quick", "--report", html)
        case "folder":
            run("check", tmp_path, "--quick", "--report", tmp_path / "r")
            html = tmp_path / "r" / "index.html"
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1}
    tab.call("Emulation.setDeviceMetricsOverride", mobile=True, **size)
    try:
        opened(tab, html)
        assert tab.run("document.documentElement.scrollWidth") <= 390
        levels = tab.run(
            "[...document.querySelectorAll('h1, h2, h3')].filter(one => one.offsetParent)"
            ".map(one => Number(one.tagName[1]))"
        )
        assert levels[0] == 1 and all(b <= a + 1 for a, b in pairwise(levels))
        assert not tab.run(
            "[...document.querySelectorAll('th')].filter(one => !one.textContent.trim()).length"
        )
        assert not tab.run(
            "[...document.querySelectorAll('body *')].filter(one => one.tabIndex < 0 && "
            "one.scrollWidth > one.clientWidth && "
            "getComputedStyle(one).overflowX === 'auto').length"
        )
        if kind == "plain":
            assert "Conv" in shown(tab)[0] and "f32[1,3,3,3]" in shown(tab)[0]
        assert not tab.problems
    finally:
        tab.call("Emulation.clearDeviceMetricsOverride")
