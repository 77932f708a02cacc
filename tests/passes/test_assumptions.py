"""Reports of pruned branches that some data could reach."""

from __future__ import annotations

from pathlib import Path
from time import process_time

import onnx.parser
import pytest

import bridge
from bridge.passes.impossible import prune_impossible
from tests.support.command_line import bridge as command
from tests.support.graphs import context

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
WEIGHTS = "float[2, 1, 3] w = {1, 0, -1, 0.5, 2, 0.5}, int64[1] zero = {0}, int64 rate = {16000}"
TWICE = """
  %(n)s = If (%(c)s) <
    then_branch = t_%(n)s () => (float[] a_%(n)s) { a_%(n)s = Unsqueeze (x, zero) },
    else_branch = e_%(n)s () => (float[] b_%(n)s) { b_%(n)s = Identity (x) }
  >
  y_%(n)s = Conv (%(n)s, w)"""


def model(folder: Path, condition: str, again: str = "", size: str = "8") -> Path:
    """A model of Ifs whose else_branch makes a value that Conv refuses."""
    ifs = TWICE % {"n": "p", "c": "c"} + (TWICE % {"n": "q", "c": again} if again else "")
    last = "Add (y_p, y_q)" if again else "Identity (y_p)"
    inputs = f"int64 sr, bool go, float[1, {size}] x"
    text = (
        f"{HEAD}g ({inputs}) => (float[1, 2, m] y) <{WEIGHTS}> {{ {condition} {ifs} y = {last} }}"
    )
    onnx.save(onnx.parser.parse_model(text), folder / "m.onnx")
    return folder / "m.onnx"


CASES = {
    "c = Equal (sr, rate)": "sr == 16000",
    "c = Less (sr, rate)": "sr < 16000",
    "d = Identity (go) c = Not (d)": "not go",
    "s = Cast <to = 7> (go) n = Add (s, sr) c = Greater (n, rate)": "go + sr > 16000",
}


@pytest.mark.parametrize("condition", CASES)
def test_what_is_assumed(condition: str, tmp_path: Path) -> None:
    source, target = model(tmp_path, condition), tmp_path / "m.xml"
    report = bridge.convert(source, target)
    assert list(report.assumed.values()) == [CASES[condition]]
    (line,) = (line for line in report.short_lines() if line.startswith("pruned: "))
    assert line == f"pruned: {report.pruned[0]}; only {CASES[condition]} is left"


def test_what_shapes_decide_is_not_assumed(tmp_path: Path) -> None:
    source = model(tmp_path, "s = Size (x) k = Cast <to = 7> (s) c = Less (k, rate)")
    report = bridge.convert(source, tmp_path / "m.xml", strict=True)
    assert not report.assumed


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("c = Equal (sr, rate)", "only sr == 16000 is left"),
        (
            "s = Size (x) k = Cast <to = 7> (s) c = Less (k, rate)",
            "each of which gives a rank that no consumer of the If takes",
        ),
    ],
)
def test_one_line_a_cause(condition: str, told: str, tmp_path: Path) -> None:
    source, target = model(tmp_path, condition, again="c", size="n"), tmp_path / "m.xml"
    separator = ";" if told.startswith("only") else ","
    lines = command("convert", source, target).out.splitlines()[1:]
    assert lines == [f"pruned: 2 branches{separator} {told} (-v lists them)"]
    lines = command("convert", source, target, "-v").out.splitlines()[1:]
    assert [line.split(":")[1] for line in lines] == [' graph / If "p"', ' graph / If "q"']


def test_strict(tmp_path: Path) -> None:
    source, target = model(tmp_path, "c = Equal (sr, rate)"), tmp_path / "m.xml"
    refused = command("convert", source, target, "--strict")
    assert refused.code == 2 and not target.exists()
    assert "only sr == 16000 would be left; say so (--value sr=16000)" in refused.err
    assert command("convert", source, target, "--strict", "--value", "sr=16000").code == 0
    assert 'name="sr"' not in target.read_text(encoding="utf-8")


def _seconds(count: int) -> float:
    """The seconds to prune a branch of each of `count` Ifs."""
    ifs = "".join(
        f"""
        p_{i} = If (go) <
          then_branch = t_{i} () => (float[] a_{i}) {{ n_{i} = Squeeze (x, zero) a_{i} = Conv (n_{i}, w) }},
          else_branch = e_{i} () => (float[] b_{i}) {{ b_{i} = Relu (x) }}
        >"""  # noqa: E501
        for i in range(count)
    )
    head = f"g (bool go, float[1, 1, 8] x) => (float[1, 1, 8] p_0) <{WEIGHTS}>"
    loaded = bridge.load(onnx.parser.parse_model(f"{HEAD}{head} {{ {ifs} }}"))
    given = context()
    start = process_time()
    prune_impossible(loaded, given)
    assert len(given.report.assumed) == count
    return process_time() - start


def test_many_branches_are_pruned_in_linear_time() -> None:
    assert min(_seconds(400) for _ in range(2)) < 8 * max(_seconds(100) for _ in range(2))
