"""The device of an IR: the forms that are written for it, and the models that are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import onnx.printer
import pytest

import bridge
from bridge.errors import UnsupportedError, UsageError
from tests.support.model_files import FOLDER
from tests.support.running import OnnxRuntime, OpenVino, assert_close
from tests.targets.judge import apart, judge

HEADER = '<ir_version: 10, opset_import: ["": 21]> g '

SAMPLE = ("if_captures_condition", "if_bool", "if_nested_captures_every_scope", "comparisons")


@pytest.mark.parametrize("device", ["GPU", "NPU"])
def test_a_sample_of_models(device: str) -> None:
    paths = [FOLDER / f"{name}.onnxtxt" for name in SAMPLE]
    assert set(apart(paths, device)) <= {"right", "refused"}


REFUSED = {
    "open sizes": ("(float[n] x) => (float[n] y) { y = Relu(x) }", "--input-shape 'x=[1..8]'"),
    "trip count": (
        """(float[2] x, int64 n) => (float[2] y) {
          y = Loop (n, , x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t)
            { d = Identity (c) t = Neg (s) }> }""",
        "constant trip count",
    ),
    "operator": (
        "(float[4] x) => (float[4] y) { a = Relu (x) y, b, c, d = Unique (a) }",
        "has no Unique",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_had_is_refused_with_help(name: str, tmp_path: Path) -> None:
    text, expected = REFUSED[name]
    model = onnx.parser.parse_model(HEADER + text)
    with pytest.raises(UnsupportedError) as refused:
        bridge.convert(model, tmp_path / "m.xml", device="NPU")
    assert expected in str(refused.value)
    assert not (tmp_path / "m.xml").exists()


MISSING = {
    "IsNaN": "IsNaN (x)",
    "IsInf": "IsInf (x)",
    "positive": "IsInf <detect_negative = 0> (x)",
    "Softsign": "Softsign (x)",
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_operators_are_written_in_others(name: str, tmp_path: Path) -> None:
    element = "float" if name == "Softsign" else "bool"
    model = onnx.parser.parse_model(
        f"{HEADER} (float[2,3] x) => ({element}[2,3] y) {{ y = {MISSING[name]} }}"
    )
    (tmp_path / "m.onnxtxt").write_text(onnx.printer.to_text(model), encoding="utf-8")
    assert judge(tmp_path / "m.onnxtxt", "NPU") == "right"


AXES_AS_INPUT = """(float[2,3] x, int64[1] axes) => (float[1,3] y) {
  y = ReduceSum (x, axes) }"""


def test_what_the_gpu_plugin_reads_when_it_compiles(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(HEADER + AXES_AS_INPUT)
    with pytest.raises(UnsupportedError, match="wants a constant for its axes; `values`"):
        bridge.convert(model, tmp_path / "m.xml", device="GPU")
    bridge.convert(model, tmp_path / "m.xml", device="GPU", values={"axes": [0]})


@pytest.mark.parametrize(
    ("axes", "op", "is_refused"),
    [(6, "Gather (x, i)", 0), (7, "Gather (x, i)", 1), (8, "Exp (x)", 0), (9, "Exp (x)", 1)],
)
def test_axes_on_a_gpu(axes: int, op: str, is_refused: bool, tmp_path: Path) -> None:
    sizes = ",".join("1" * axes)
    model = onnx.parser.parse_model(
        f"{HEADER} (float[{sizes}] x) => (float[{sizes}] y) <int64[1] i = {{0}}> {{ y = {op} }}"
    )
    if not is_refused:
        bridge.convert(model, tmp_path / "m.xml", device="GPU")
        return
    with pytest.raises(UnsupportedError, match="takes at most"):
        bridge.convert(model, tmp_path / "m.xml", device="GPU")


SCATTERED = """(float[3,A,2] x, int64[2,B,2] i, float[2,B,2] u) => (float[3,A,2] y) {{
  y = ScatterND <reduction = "{}"> (x, i, u) }}"""


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_updates_of_elements_for_updates_of_rows(reduction: str, tmp_path: Path) -> None:
    """The GPU plugin has no ScatterNDUpdate with a reduction. Two indices name the same row."""
    model = onnx.parser.parse_model(HEADER + SCATTERED.format(reduction))
    bridge.convert(model, tmp_path / "m.xml", device="GPU")
    sets = {node.op for node in bridge.load(tmp_path / "m.xml").graph.nodes}
    assert ("ScatterND" in sets) is (reduction == "none")
    places = [[[0, 1], [2, -1], [1, 0]], [[-2, 2], [0, 0], [2, 3 if reduction == "none" else 2]]]
    rng = np.random.default_rng(0)
    feed = {
        "x": rng.standard_normal((3, 4, 2)).astype(np.float32),
        "i": np.array(places, np.int64),
        "u": rng.standard_normal((2, 3, 2)).astype(np.float32),
    }
    assert_close(
        OpenVino(tmp_path / "m.xml").run(list(feed.values())), OnnxRuntime(model).run(feed)
    )


BRANCHES = """(float[4] x, float[2] z, bool c) => (float[2] y) {
  p, q = Split <num_outputs = 2, axis = 0> (x)
  y = If (c) <then_branch = t () => (float[2] a) { u = Add (q, p) a = Add (u, z) },
              else_branch = e () => (float[2] b) { v = Sub (p, q) b = Mul (v, v) }> }"""


COUNTED = """(float[4] x, bool c) => (float[4] y) <int64 n = {3}> {
  y = If (c) <then_branch = t () => (float[4] a) { a = Loop (n, , x) <
                body = b (int64 i, bool k, float[4] s) => (bool d, float[4] u)
                  { d = Identity (k) u = Neg (s) }> },
              else_branch = e () => (float[4] v) { v = Exp (x) }> }"""


def test_trip_counts_stay_constant(tmp_path: Path) -> None:
    """Trip counts of Loops in branches that become selections."""
    model, path = onnx.parser.parse_model(HEADER + COUNTED), tmp_path / "m.xml"
    bridge.convert(model, path, device="NPU", ifs="select")
    for taken in (True, False):
        feed = {"x": np.array([1, -2, 3, 0], np.float32), "c": np.array(taken)}
        assert_close(OpenVino(path).run(list(feed.values())), OnnxRuntime(model).run(feed))


@pytest.mark.parametrize("device", ["GPU", "NPU"])
def test_branches_get_their_inputs(device: str, tmp_path: Path) -> None:
    """The order that the NPU needs, and the producers that the GPU needs. The way back drops
    both."""
    model = onnx.parser.parse_model(HEADER + BRANCHES)
    bridge.convert(model, tmp_path / "m.xml", device=device, ifs="keep")
    (node,) = (node for node in bridge.load(tmp_path / "m.xml").graph.walk() if node.op == "If")
    makers = [value.producer or value for value in node.inputs[1:] if value is not None]
    if device == "GPU":
        assert len(set(makers)) == len(makers)
    else:
        for body in node.bodies:
            assert [port.input for port in body.inputs] == list(range(1, len(node.inputs)))
    back = bridge.to_onnx(tmp_path / "m.xml")
    assert [node.op_type for node in back.graph.node] == ["Split", "If"]


def test_releases(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        HEADER
        + '(uint8[4] x, uint8[4] n) => (uint8[4] y) { y = BitShift <direction="LEFT"> (x, n) }'
    )
    bridge.convert(model, tmp_path / "m.xml", openvino="2024.4")
    with pytest.raises(UnsupportedError, match=r"read from 2024\.4 on"):
        bridge.convert(model, tmp_path / "n.xml", openvino="2024.3")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "TPU"}, "`device` is one of CPU, GPU, NPU, ANY"),
        ({"openvino": "2023.1"}, r"a release from 2024\.0 on"),
        ({"openvino": "new"}, r"a release from 2024\.0 on"),
    ],
)
def test_choices_that_make_no_sense(options: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        bridge.convert(FOLDER / "if_bool.onnxtxt", tmp_path / "m.xml", **options)  # type: ignore[arg-type]
