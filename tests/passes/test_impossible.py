"""Branches that cannot run with the shapes they get are pruned; what fails anyhow is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import bridge
from bridge.operators.validity import CHECKS
from tests.support.running import OpenVino, assert_close

# An operator, the nodes of a branch that fails on x (float [2,6]), and why.
FAILING = [
    ("Add", "c = Constant<value = float[5] {1,2,3,4,5}>() y = Add(x, c)", "broadcast together"),
    ("Where", "k = Constant<value = bool[3,1] {1,0,1}>() y = Where(k, x, x)", "broadcast together"),
    ("MatMul", "y = MatMul(x, x)", "[2,6] and [2,6] cannot be multiplied"),
    ("Gemm", "y = Gemm<transA = 1, transB = 1>(x, x)", "cannot be multiplied"),
    ("Gemm", "v = Constant<value = float[6] {1,2,3,4,5,6}>() y = Gemm(x, v)", "no matrices"),
    ("Conv", "w = Constant<value = float[1,1,1] {1}>() y = Conv(x, w)", "differ in rank"),
    (
        "Conv",
        "s = Constant<value_ints = [1,3,4]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,2,1] {1,1}>() y = Conv(d, w)",
        "differ in channels",
    ),
    ("Reshape", "s = Constant<value_ints = [5,-1]>() y = Reshape(x, s)", "take the shape [5, -1]"),
    ("Reshape", "s = Constant<value_ints = [2,6,0]>() y = Reshape(x, s)", "no dimension to copy"),
    ("Transpose", "y = Transpose<perm = [2,0,1]>(x)", "no 3 axes"),
    ("Concat", "t = Transpose(x) y = Concat<axis = 1>(x, t)", "differ along axis 0"),
    (
        "Concat",
        "a = Constant<value_ints = [0]>() t = Unsqueeze(x, a) y = Concat<axis = 0>(x, t)",
        "differ in rank",
    ),
    ("Squeeze", "a = Constant<value_ints = [1]>() y = Squeeze(x, a)", "axis 1 of [2,6] is not 1"),
    ("Squeeze", "a = Constant<value_ints = [2]>() y = Squeeze(x, a)", "has no axis 2"),
    (
        "RNN",
        "s = Constant<value_ints = [3,2,2]>() d = Reshape(x, s) "
        "w = Constant<value = float[1,1,1] {1}>() y = RNN<hidden_size = 1>(d, w, w)",
        "differ in input size",
    ),
    (
        "RNN",
        "w = Constant<value = float[1,1,1] {1}>() y = RNN<hidden_size = 1>(x, w, w)",
        "not of rank 3",
    ),
]


def model_of(nodes: str) -> onnx.ModelProto:
    """An If that does `nodes` where `go` is false, and else something possible."""
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        choice (float[2,6] x, bool go) => (float out) {{
          r = If (go) <
            then_branch = works () => (float a) {{ n = Neg(x) a = ReduceSum<keepdims = 0>(n) }},
            else_branch = fails () => (float b) {{ {nodes} b = ReduceSum<keepdims = 0>(y) }}>
          out = Abs(r)
        }}""")


@pytest.mark.parametrize(("op", "nodes", "why"), FAILING)
def test_branch_that_fails(op: str, nodes: str, why: str, tmp_path: Path) -> None:
    model = model_of(nodes)
    report = bridge.convert(model, tmp_path / "m.xml")
    assert len(report.pruned) == 1
    assert "its else_branch fails" in report.pruned[0]
    assert why in report.pruned[0]
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    assert_close(OpenVino(tmp_path / "m.xml").run([x, np.array(True)]), [x.sum()])


def test_what_fails_on_either_way_is_refused(tmp_path: Path) -> None:
    model = model_of("y = MatMul(x, x)")
    model.graph.node[0].attribute[0].CopyFrom(model.graph.node[0].attribute[1])
    model.graph.node[0].attribute[0].name = "then_branch"
    (tmp_path / "m.xml").write_text("old")
    with pytest.raises(bridge.UnsupportedError, match=r"MatMul .x2.: .* cannot be multiplied"):
        bridge.convert(model, tmp_path / "m.xml")
    assert (tmp_path / "m.xml").read_text() == "old"


def test_branch_is_kept_on_demand(tmp_path: Path) -> None:
    report = bridge.convert(model_of("y = MatMul(x, x)"), tmp_path / "m.xml", keep_branches=True)
    assert not report.pruned


def test_every_check_is_tried() -> None:
    elementwise = {op for op, check in CHECKS.items() if check is CHECKS["Add"]}
    recurrent = {op for op, check in CHECKS.items() if check is CHECKS["RNN"]}
    tried = {op for op, _, _ in FAILING}
    assert set(CHECKS) - elementwise - recurrent - {"ConvTranspose"} <= tried
