"""A check that cuts the smallest part that differs out of a model."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import bridge
from bridge.check import check
from bridge.errors import Unsupported, UnsupportedError, UsageError
from tests.support.command_line import bridge as run

OPS = ("Neg", "Abs")  # which keep a difference as it is


def chain(first: str, last: str, count: int) -> str:
    """Nodes in a row, from one value to another."""
    names = [first, *(f"{last}{number}" for number in range(count - 1)), last]
    return "".join(f"{names[i + 1]} = {OPS[i % len(OPS)]}({names[i]})\n" for i in range(count))


def rare(count: int, op: str = "Exp") -> str:
    """A model of about so many nodes, with one operator in a branch that few inputs take."""
    part = count // 3
    return f"""
    <ir_version: 9, opset_import: ["" : 18]>
    rare (float[N,4] x, int64 mode) => (float[N,4] y) {{
      {chain("x", "a", part)}
      seven = Constant<value = int64 {{7123}}>()
      is_seven = Equal(mode, seven)
      b = If (is_seven) <
        then_branch = t () => (float[N,4] p) {{
          {chain("a", "q", part // 2)}
          r = {op}(q)
          {chain("r", "p", part // 2)}
        }},
        else_branch = e () => (float[N,4] u) {{ u = Add(a, x) }}>
      {chain("b", "y", part)}
    }}"""


LOOP = """
<ir_version: 9, opset_import: ["" : 18]>
loop (float[4] x) => (float[4] y) {
  three = Constant<value = int64 {3}>()
  yes = Constant<value = bool {1}>()
  h = Softsign(x)
  w = Loop (three, yes, h) <body = body (int64 i, bool going, float[4] v)
      => (bool still, float[4] n) {
    a = Abs(v)
    b = OPERATOR(a)
    n = Neg(b)
    still = Identity(going)
  }>
  y = Tanh(w)
}
"""


def saved(text: str, path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def operators(path: Path) -> list[str]:
    return [node.op for node in bridge.load(path).graph.nodes if node.op != "Constant"]


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversion that makes another layer of each Exp."""
    convert = bridge.convert

    def converted(source: Any, target: Path, **options: Any) -> Any:
        report = convert(source, target, **options)
        if Path(target).suffix == ".xml":
            text = Path(target).read_text(encoding="utf-8")
            Path(target).write_text(text.replace('type="Exp"', 'type="Sin"'), encoding="utf-8")
        return report

    monkeypatch.setattr(bridge, "convert", converted)


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize("count", [300, 30])
def test_a_rare_branch_of_a_large_model(count: int, tmp_path: Path) -> None:
    path = saved(rare(count), tmp_path / "m.onnx")
    began = time.monotonic()
    report = check(path, reduce=tmp_path / "small.onnx")
    assert report.different and time.monotonic() - began < 60
    assert operators(tmp_path / "small.onnx") == ["Exp"]
    found: Any = report.diagnosis.reduced
    assert found.nodes == 1 and found.all > 0.95 * count
    assert f"reduced: {found}" in report.summary()
    again = check(found.model, inputs=found.inputs, samples=0)
    assert again.different
    assert report.as_json()["reduced"]["nodes"] == 1


@pytest.mark.usefixtures("wrong")
def test_in_an_iteration(tmp_path: Path) -> None:
    path = saved(LOOP.replace("OPERATOR", "Exp"), tmp_path / "m.onnx")
    report = check(path, reduce=tmp_path / "small.onnx")
    assert operators(tmp_path / "small.onnx") == ["Exp"], str(report)


def refused(text: str) -> str:
    raise UnsupportedError("OpenVINO IR", [Unsupported("Exp", "graph", "")])


@pytest.mark.parametrize(
    "changed", [lambda text: text.replace('type="Exp"', 'type="NoLayer"'), refused]
)
def test_what_fails(
    changed: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert = bridge.convert

    def failing(source: Any, target: Path, **options: Any) -> Any:
        report = convert(source, target, **options)
        if Path(target).suffix == ".xml" and 'type="Exp"' in Path(target).read_text("utf-8"):
            text = changed(Path(target).read_text(encoding="utf-8"))
            Path(target).write_text(text, encoding="utf-8")
        return report

    monkeypatch.setattr(bridge, "convert", failing)
    nodes = f"{chain('x', 'a', 6)} b = Exp (a) {chain('b', 'y', 6)}"
    text = f"""<ir_version: 9, opset_import: ["" : 18]> m (float[N,4] x) => (float[N,4] y) {{
      {nodes} }}"""
    path = saved(text, tmp_path / "m.onnx")
    report = check(path, reduce=tmp_path / "small.onnx")
    assert report.failures and not report.ok
    assert operators(tmp_path / "small.onnx") == ["Exp"], str(report)
    assert "1 of 13 nodes still fail; bridge check" in report.summary()


def test_nothing_to_reduce(tmp_path: Path) -> None:
    path = saved(LOOP.replace("OPERATOR", "Exp"), tmp_path / "m.onnx")
    result = run("check", path, "--samples", "1", "--reduce", tmp_path / "small.onnx")
    assert result.code == 0 and "nothing to reduce" in result.out
    assert not (tmp_path / "small.onnx").exists()
    with pytest.raises(UsageError, match=r"let it end in \.onnx"):
        check(path, reduce=tmp_path / "small.xml")
    with pytest.raises(UsageError, match="check one file"):
        check(path, path, reduce=tmp_path / "small.onnx")
