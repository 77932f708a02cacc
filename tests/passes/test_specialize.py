"""Inputs that become constants, fixed shapes, and the simplifications that they allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import openvino
import pytest

import bridge
from bridge.check import check
from bridge.check.inputs import Recipe, make_inputs
from bridge.check.specialized import Fixed
from tests.support.command_line import bridge as run
from tests.support.graphs import HEADER
from tests.support.running import OnnxRuntime, OpenVino, assert_close

RATE = f"""{HEADER} g (float[n] x, int64 rate) => (float[m] y) {{
    asked = Constant <value = int64 {{16000}}> ()
    is_high = Equal (rate, asked)
    y = If (is_high) <
      then_branch = high () => (float[k] t) {{
        w = Constant <value = float[3] {{1, 2, 3}}> ()
        t = Concat <axis = 0> (x, w)
      }},
      else_branch = low () => (float[k] e) {{
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        two = Constant <value = int64[1] {{2}}> ()
        e_shape = Shape (x)
        e_first = Slice (e_shape, zero, one)
        is_two = Equal (e_first, two)
        e = If (is_two) <
          then_branch = a () => (float[k] et) {{ et = Neg (x) }},
          else_branch = b () => (float[k] ee) {{ ee = Exp (x) }}
        >
      }}
    >
}}"""

ABOVE = f"""{HEADER} g (float[2] x, float limit, float[2] scale) => (float[2] y) {{
    most = Constant <value = float {{0.25}}> ()
    is_above = Greater (limit, most)
    scaled = Mul (x, scale)
    y = If (is_above) <
      then_branch = a () => (float[2] t) {{ t = Neg (scaled) }},
      else_branch = b () => (float[2] e) {{ e = Exp (scaled) }}
    >
}}"""

BY_DATA = f"""{HEADER} g (float[2] x, float[2] y, int64 n) => (float[2] z) {{
    zero = Constant <value = float {{0}}> ()
    total = ReduceSum <keepdims = 0> (x)
    is_above = Greater (total, zero)
    z = If (is_above) <
      then_branch = a () => (float[2] t) {{ t = Neg (y) }},
      else_branch = b () => (float[2] e) {{ m = Cast <to = 1> (n) e = Add (y, m) }}
    >
}}"""


@dataclass(frozen=True)
class Case:
    """A model, the fixed values and shapes, the lines of the report, and the number of remaining
    Ifs."""

    name: str
    text: str
    values: Mapping[str, Any]
    shapes: Mapping[str, list[int | None]]
    says: tuple[str, ...]
    left: int = 0


CASES = (
    Case("value", RATE, {"rate": 16000}, {},
         ("2 Ifs went, since rate is fixed (1 of them in branches that are never taken)",
          "no If is left")),
    Case("value and shape", RATE, {"rate": 8000}, {"x": [2]},
         ("1 If went, since rate is fixed", "1 If went, since the shape of x is fixed",
          "no If is left", "constants of ")),
    Case("other shape", RATE, {"rate": 8000}, {"x": [3]}, ("no If is left",)),
    Case("value alone", RATE, {"rate": 8000}, {},
         ("1 If is left, which depends on the shape of x",), 1),
    Case("shape alone", RATE, {}, {"x": [2]},
         ("1 If went, since the shape of x is fixed", "1 If is left, which depends on rate"), 1),
    Case("real numbers", ABOVE, {"limit": 0.5, "scale": np.array([1, 2], np.float32)}, {},
         ("1 If went, since limit is fixed", "no If is left")),
    Case("number for a vector", ABOVE, {"scale": 3}, {},
         ("1 If is left, which depends on limit",), 1),
    Case("what branches compute", BY_DATA, {"n": 2}, {},
         ("1 If is left, which depends on x",), 1),
)  # fmt: skip


def _ifs(path: Path) -> int:
    return sum(node.op == "If" for node in bridge.load(path).graph.walk())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("source", [".onnx", ".xml"])
@pytest.mark.parametrize("target", [".onnx", ".xml"])
def test_what_follows_is_folded(case: Case, source: str, target: str, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(case.text)
    original, fixed = tmp_path / f"original{source}", tmp_path / f"fixed{target}"
    bridge.convert(model, original)
    report = bridge.convert(original, fixed, values=case.values, input_shapes=case.shapes)
    assert _ifs(fixed) == case.left
    if source == ".onnx":
        for line in case.says:
            assert any(said.startswith(line) for said in report.specialized), report.specialized
    whole, kept = bridge.load(model), bridge.load(fixed).graph.inputs
    assert {name for value in kept for name in value.names}.isdisjoint(case.values)
    values = Fixed.of(whole, bridge.load(fixed), {}).values
    engine = OnnxRuntime(fixed) if target == ".onnx" else OpenVino(fixed)
    for seed in range(3):
        feed = make_inputs(whole, Recipe(seed, {"n": case.shapes.get("x", [4])[0]}, values=values))
        given = {value.name: feed[value.name] for value in kept}
        found = engine.run(given if target == ".onnx" else list(given.values()))
        assert_close(found, OnnxRuntime(model).run(feed))


def test_a_check_feeds_the_original_what_is_fixed(tmp_path: Path) -> None:
    """The order of the two files does not matter; folded branches count as pruned."""
    original, fixed = tmp_path / "original.onnx", tmp_path / "fixed.xml"
    bridge.convert(onnx.parser.parse_model(RATE), original)
    bridge.convert(original, fixed, values={"rate": 8000}, input_shapes={"x": [2]})
    for pair in ((original, fixed), (fixed, original)):
        checked = check(*pair)
        assert checked.ok, str(checked)
        assert checked.branches.reached.keys() == {(0, False), (1, True)}
        assert checked.branches.pruned.keys() == {(0, True), (1, False)}


def test_a_file_that_was_specialized_goes_on(tmp_path: Path) -> None:
    """A specialized file may be converted and specialized further; its record holds all fixed
    inputs."""
    original, middle, end = (tmp_path / name for name in ("a.onnx", "b.xml", "c.onnx"))
    bridge.convert(onnx.parser.parse_model(ABOVE), original)
    bridge.convert(original, middle, values={"limit": 0.1})
    bridge.convert(middle, end, values={"scale": [2, float("inf")]})
    (x,) = (value.name for value in bridge.load(end).graph.inputs)
    assert check(original, end).ok
    found = OnnxRuntime(end).run({x: np.array([1, 0.5], np.float32)})
    np.testing.assert_allclose(found[0], np.exp(np.float32([2, np.inf])), rtol=1e-6)


def test_weights_that_only_others_need_go(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(ABOVE)
    for branch, name in zip(model.graph.node[-1].attribute, ("t", "e"), strict=True):
        weights = onnx.numpy_helper.from_array(np.ones((100, 2), np.float32), f"{name}_w")
        branch.g.initializer.append(weights)
        del branch.g.node[:]
        branch.g.node.append(
            onnx.helper.make_node("ReduceSum", [f"{name}_w", "axes"], [name], keepdims=0)
        )
        branch.g.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "axes"))
    onnx.save(model, tmp_path / "a.onnx")
    report = bridge.convert(tmp_path / "a.onnx", tmp_path / "b.onnx", values={"limit": 0})
    assert "no If is left" in report.specialized
    sizes = [(tmp_path / name).stat().st_size for name in ("a.onnx", "b.onnx")]
    assert report.specialized[-1] == (
        f"{sizes[1]:,} bytes of files, {100 * sizes[1] / sizes[0]:.1f} % of the source's "
        f"{sizes[0]:,}"
    )
    assert sizes[1] < sizes[0] - 800


def test_the_command_line(tmp_path: Path) -> None:
    original, fixed = tmp_path / "a.onnx", tmp_path / "b.xml"
    bridge.convert(onnx.parser.parse_model(ABOVE), original)
    np.save(tmp_path / "scale.npy", np.array([1, 2], np.float32))
    values = ("--value", "limit=0.5", "--value", f"scale={tmp_path / 'scale.npy'}")
    finished = run("convert", original, fixed, *values, "--check")
    assert finished.code == 0
    assert "specialized: 1 If went, since limit is fixed" in finished.out
    assert len(openvino.Core().read_model(fixed).inputs) == 1


WRONG = {
    "no input": ({"q": 1}, 'no input "q"'),
    "another type": ({"rate": 0.5}, "does not hold 0.5"),
    "too large": ({"rate": 2**70}, "does not hold"),
    "text": ({"rate": "high"}, "does not hold high"),
    "another shape": ({"rate": [1, 2]}, r"not a value of shape \[2\]"),
    "a number for an open shape": ({"x": 1}, "needs `input_shapes`"),
    "another rank": ({"x": [[1]]}, r"not a value of shape \[1,1\]"),
    "no mapping": ([1], "`values` maps names to values"),
}


@pytest.mark.parametrize("case", WRONG.items(), ids=lambda case: case[0])
def test_what_is_no_value(case: tuple[str, tuple[Any, str]], tmp_path: Path) -> None:
    values, says = case[1]
    with pytest.raises(bridge.UsageError, match=says):
        bridge.convert(onnx.parser.parse_model(RATE), tmp_path / "a.onnx", values=values)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("rate", "is not NAME=VALUE"),
        ("rate=high", "is no number, list in JSON or .npy file"),
        ("rate=none.npy", "is no array that can be read"),
        ("rate=1 --value rate=2", "is given twice"),
    ],
)
def test_what_is_no_value_on_the_command_line(given: str, says: str, tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(RATE), tmp_path / "a.onnx")
    finished = run("convert", tmp_path / "a.onnx", tmp_path / "b.onnx", "--value", *given.split())
    assert (finished.code, says in finished.err) == (2, True)
