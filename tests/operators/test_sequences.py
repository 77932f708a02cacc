"""Sequences and optionals at the edges: refusals, packing, and gaps of older operator sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest

import bridge
from bridge.neutral.ports import Stacked
from tests.support import model_files
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

JOIN = """
<ir_version: 8, opset_import: ["": 17]>
join (seq(float{shape}) parts) => (float[M,2] y) {{
  y = ConcatFromSequence <axis = 0> (parts)
}}
"""


PLAIN = Path(__file__).parents[2] / "roundtrip_models" / "if_nested.xml"


def model_of(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def assert_same(model: onnx.ModelProto, xml: Path, *feeds: dict[str, Any]) -> None:
    """Asserts that the IR and the way back give the same as onnxruntime on the original."""
    back = xml.with_suffix(".onnx")
    bridge.convert(xml, back)
    original, there, again = OnnxRuntime(model), OpenVino(xml), OnnxRuntime(back)
    boundary = bridge.Boundary.of(xml)
    for feed in feeds:
        expected = flat(original.run(feed))
        results = there.run_packed(boundary, feed)
        assert_close(flat([results[value.name] for value in model.graph.output]), expected)
        assert_close(flat(again.run(feed)), expected)


def rows(*counts: int) -> list[np.ndarray]:
    return [np.arange(2 * count, dtype=np.float32).reshape(count, 2) for count in counts]


def test_rank_of_elements_is_asked_for(tmp_path: Path) -> None:
    model = model_of(JOIN.format(shape="[]"))
    # The text syntax has no way to leave the shape out.
    model.graph.input[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    xml = tmp_path / "join.xml"
    with pytest.raises(bridge.UnsupportedError) as caught:
        bridge.convert(model, xml)
    assert '"parts"' in str(caught.value)
    assert "`input_shapes={'parts': [None, 3]}`" in str(caught.value)
    assert not xml.exists()
    bridge.convert(model, xml, input_shapes={"parts": [None, 2]})
    assert_same(model, xml, {"parts": rows(2, 1)}, {"parts": rows(3)})


def test_rank_of_an_optional_is_asked_for(tmp_path: Path) -> None:
    model = model_of("""
        <ir_version: 8, opset_import: ["": 18]>
        ask (optional(float[]) o) => (bool present) { present = OptionalHasElement (o) }
    """)
    model.graph.input[0].type.optional_type.elem_type.tensor_type.ClearField("shape")
    with pytest.raises(bridge.UnsupportedError, match=r"`input_shapes=\{'o': "):
        bridge.convert(model, tmp_path / "ask.xml")
    bridge.convert(model, tmp_path / "ask.xml", input_shapes={"o": [None]})
    feeds = ({"o": None}, {"o": np.ones(3, np.float32)})
    assert_same(model, tmp_path / "ask.xml", *feeds)


def test_position_outside_a_known_sequence_is_refused(tmp_path: Path) -> None:
    model = model_of("""
        <ir_version: 8, opset_import: ["": 17]>
        at (float[2] x) => (float[2] y) {
          parts = SequenceConstruct (x, x)
          two = Constant <value = int64 {2}> ()
          y = SequenceAt (parts, two)
        }
    """)
    with pytest.raises(bridge.UnsupportedError, match="position 2 is outside the sequence of 2"):
        bridge.convert(model, tmp_path / "at.xml")


def test_element_of_a_rank_that_data_decide(tmp_path: Path) -> None:
    model = model_of("""
        <ir_version: 8, opset_import: ["": 17]>
        mixed (bool p, float[2] x, float[2,2] z, int64 at) => (float[N] y) {
          parts = If (p) <
            then_branch = then () => (seq(float[A]) a) { a = SequenceConstruct (x) },
            else_branch = else () => (seq(float[B]) b) { b = SequenceConstruct (x, z) }
          >
          part = SequenceAt (parts, at)
          flat = Constant <value = int64[1] {-1}> ()
          y = Reshape (part, flat)
        }
    """)
    xml = tmp_path / "mixed.xml"
    bridge.convert(model, xml)
    x, z = np.float32([1, 2]), np.float32([[3, 4], [5, 6]])
    feeds = [
        {"p": np.array(p), "x": x, "z": z, "at": np.array(at)}
        for p, at in ((True, 0), (False, 0), (False, 1), (True, 0))
    ]
    assert_same(model, xml, *feeds)


def test_sequence_of_mixed_rank_is_an_output(tmp_path: Path) -> None:
    model = model_of("""
        <ir_version: 8, opset_import: ["": 17]>
        mixed (float[2] x, float[2,2] z, int64 at) => (seq(float[]) less) {
          parts = SequenceConstruct (x, z, x)
          less = SequenceErase (parts, at)
        }
    """)
    model.graph.output[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    xml = tmp_path / "mixed.xml"
    bridge.convert(model, xml)
    x, z = np.ones(2, np.float32), np.full((2, 2), 2, np.float32)
    assert_same(model, xml, *({"x": x, "z": z, "at": np.array(at)} for at in (-3, -1, 0, 1)))


@pytest.fixture
def joined(tmp_path: Path) -> Path:
    """The IR of a model with a sequence input of elements [N, 2]."""
    bridge.convert(model_of(JOIN.format(shape="[N,2]")), tmp_path / "join.xml")
    return tmp_path / "join.xml"


def test_sequence_is_packed(joined: Path) -> None:
    packed = bridge.pack(joined, {"parts": rows(2, 1)})
    assert list(packed) == ["parts.data", "parts.shapes"]
    np.testing.assert_array_equal(packed["parts.data"], [0, 1, 2, 3, 0, 1])
    np.testing.assert_array_equal(packed["parts.shapes"], [[2, 2], [1, 2]])


def test_empty_sequence_is_packed(joined: Path) -> None:
    packed = bridge.pack(joined, {"parts": []})
    assert packed["parts.data"].shape == (0,)
    assert packed["parts.shapes"].shape == (0, 2)
    boundary = bridge.Boundary.of(joined)
    assert bridge.unpack(bridge.Boundary({}, boundary.inputs, []), packed) == {"parts": []}


def test_wrong_rank_is_not_packed(joined: Path) -> None:
    with pytest.raises(bridge.UsageError, match=r'"parts" have rank 2 .* shape \[3\]'):
        bridge.pack(joined, {"parts": [np.ones(3, np.float32)]})


def test_none_is_not_packed_for_a_sequence(joined: Path) -> None:
    with pytest.raises(bridge.UsageError, match='"parts" is no optional'):
        bridge.pack(joined, {"parts": None})


def test_only_ir_has_a_boundary(tmp_path: Path) -> None:
    with pytest.raises(bridge.UsageError, match=r"only an \.xml"):
        bridge.pack(tmp_path / "model.onnx", {})


@pytest.mark.parametrize("record", ["", "[]", '{"inputs":{"s":{"kind":"heap"}}}'])
def test_broken_record_is_an_invalid_model(record: str) -> None:
    with pytest.raises(bridge.InvalidModelError, match="record of its sequences"):
        bridge.Boundary.of({"boundary": record})


@pytest.mark.parametrize("stem", ["sequence_input", "optional_input", "optional_input_of_sequence"])
def test_what_is_packed_is_unpacked(stem: str, tmp_path: Path) -> None:
    path = model_files.FOLDER / f"{stem}.onnxtxt"
    bridge.convert(path, tmp_path / "model.xml")
    boundary = bridge.Boundary.of(tmp_path / "model.xml")
    mirror = bridge.Boundary({}, boundary.inputs, [])
    inputs = model_files.onnx_inputs(model_files.load_onnx(path))
    for index in range(model_files.INPUT_SETS):
        feed = model_files.feeds(path, inputs, index)
        again = bridge.unpack(mirror, bridge.pack(boundary, feed))
        assert_close(flat([again[name] for name in feed]), flat(list(feed.values())))


def test_pack_leaves_tensors_alone(tmp_path: Path) -> None:
    bridge.convert(model_files.FOLDER / "if_bool.onnxtxt", tmp_path / "model.xml")
    value = np.ones(3, np.float32)
    assert bridge.pack(tmp_path / "model.xml", {"x": value})["x"] is value
    assert bridge.unpack(tmp_path / "model.xml", {"x": value})["x"] is value


@pytest.mark.parametrize("through_ir", [False, True])
@pytest.mark.parametrize(
    "stem",
    [
        "sequence_through_nested_ifs",
        "sequence_handed_through",
        "sequence_grows_in_loop_by_if",
        "sequence_output",
        "sequence_input",
    ],
)
def test_operator_set_13_copies_sequences(stem: str, through_ir: bool, tmp_path: Path) -> None:
    path = model_files.FOLDER / f"{stem}.onnxtxt"
    source, old = path, tmp_path / "old.onnx"
    if through_ir:
        source = tmp_path / "model.xml"
        bridge.convert(path, source)
    bridge.convert(source, old, opset=13)
    onnx.checker.check_model(onnx.load(old), full_check=True)
    model = model_files.load_onnx(path)
    inputs = model_files.onnx_inputs(model)
    original, again = OnnxRuntime(model), OnnxRuntime(old)
    for index in range(model_files.INPUT_SETS):
        feed = model_files.feeds(path, inputs, index)
        assert_close(flat(again.run(feed)), flat(original.run(feed)))


def test_operator_set_15_has_no_optional_from_an_if(tmp_path: Path) -> None:
    path = model_files.FOLDER / "optional_output.onnxtxt"
    with pytest.raises(
        bridge.UnsupportedError, match=r"gives no optional.* before operator set 16"
    ):
        bridge.convert(path, tmp_path / "old.onnx", opset=15)


def test_packing_for_a_model_in_memory() -> None:
    model = model_of("""
    <ir_version: 8, opset_import: ["": 17]>
    reverse (seq(float[N,2]) parts, float[2] x) => (seq(float[N,2]) same, float[2] y) {
      same = Identity (parts)
      y = Neg (x)
    }""")
    ir = bridge.to_openvino(model)
    feeds = bridge.pack(ir, {"parts": rows(2, 1), "x": np.ones(2, np.float32)})
    results = openvino.compile_model(ir, "CPU")(feeds)
    named = {name: value for port, value in results.items() for name in port.names}
    outputs = bridge.unpack(ir, named)
    assert_close(flat([outputs["same"], outputs["y"]]), flat([rows(2, 1), -np.ones(2, np.float32)]))
    assert bridge.pack(bridge.to_openvino(bridge.to_onnx(PLAIN)), {"x": 1}) == {"x": 1}


APPENDED = """
<ir_version: 8, opset_import: ["": 18]>
g (float[b,{width}] x, float[{other}] z, int64 n) => ({output} y) {{
  none = SequenceEmpty <dtype = 1> ()
  s = Loop (n, "", none) <body = l (int64 i, bool c, seq(float[?,?]) before)
    => (bool d, seq(float[?,?]) after) {{
    d = Identity (c)
    factor = Cast <to = 1> (i)
    two = Constant <value_int = 2> ()
    odd = Mod (i, two)
    small = Cast <to = 9> (odd)
    row = If (small) <then_branch = t () => (float[p,q] a) {{ a = Mul (x, factor) }},
                      else_branch = e () => (float[r,q] o) {{ o = Sub ({either}, factor) }}>
    after = SequenceInsert (before, row) }}>
  {use}
}}
"""
USES = {
    "joined": ("float[M,N]", "y = ConcatFromSequence <axis = 1> (s)"),
    "joined at first": ("float[M,N]", "y = ConcatFromSequence <axis = 0> (s)"),
    "stacked": ("float[M,N,L]", "y = ConcatFromSequence <axis = -1, new_axis = 1> (s)"),
    "one of them": ("float[M,N]", "k = Constant <value_int = -1> () y = SequenceAt (s, k)"),
    "given": ("seq(float[M,N])", "y = Identity (s)"),
    "another added": ("float[M,N]", """w = Concat <axis = 0> (x, x)
       t = SequenceInsert (s, w) y = ConcatFromSequence <axis = 0> (t)"""),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("width", ["2", "k"])
def test_a_loop_that_appends_tensors_of_one_shape_stacks_them(
    use: str, width: str, tmp_path: Path
) -> None:
    output, text = USES[use]
    text = APPENDED.format(width=width, other="p,2", either="x", output=output, use=text)
    model, xml = model_of(text), tmp_path / "appended.xml"
    bridge.convert(model, xml)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    feeds = [{"x": x, "z": x, "n": np.array(n)} for n in (3, int(use != "given"), 4)]
    assert_same(model, xml, *feeds)
    node = next(node for node in bridge.load(xml).graph.walk() if node.op == "Loop")
    assert any(isinstance(port, Stacked) for port in node.body.outputs)


def test_sizes_that_inputs_say_to_be_the_same_may_differ_in_a_sequence(tmp_path: Path) -> None:
    output, text = USES["joined at first"]
    text = APPENDED.format(width="k", other="b,k", either="z", output=output, use=text)
    model, xml = model_of(text), tmp_path / "appended.xml"
    bridge.convert(model, xml)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    assert_same(model, xml, {"x": x, "z": x[:2], "n": np.array(3)})


def test_parts_of_size_0_are_an_error(tmp_path: Path) -> None:
    """A Range without a step ends the process."""
    text = """<ir_version: 8, opset_import: ["": 17]> cut (float[2,n] x, int64 size)
        => (float[2,k] y) {
        s = SplitToSequence <axis = 1> (x, size) y = ConcatFromSequence <axis = -1> (s) }"""
    bridge.convert(model_of(text), tmp_path / "a.xml")
    engine, x = OpenVino(tmp_path / "a.xml"), np.ones((2, 3), np.float32)
    for size in (0, -1):
        with pytest.raises(RuntimeError, match="conflicts"):
            engine.run([x, np.array(size)])
    assert_same(model_of(text), tmp_path / "a.xml", {"x": x, "size": np.array(2)})


def test_openvino_knows_sizes_of_joined_elements(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["": 18]> boxes (float[n,4] x, float[m,4] z)
        => (int64[k,3] o) <int64 most = {5}, int64[1] front = {0}, int64[2] two = {0, 1},
        int64[1] last = {1}, float least = {0.4}> {
        q = SplitToSequence <axis = 0, keepdims = 1> (x) all = SequenceInsert (q, z)
        b = ConcatFromSequence <axis = 0> (all) boxes = Unsqueeze (b, front)
        m = ReduceMax <keepdims = 0> (b, last) scores = Unsqueeze (m, two)
        o = NonMaxSuppression (boxes, scores, most, least) }"""
    bridge.convert(model_of(text), tmp_path / "a.xml")
    corners = np.float32([[0, 0, 1, 1], [2, 2, 3, 3.5], [5, 5, 6, 7]])
    assert_same(model_of(text), tmp_path / "a.xml", {"x": corners[:2], "z": corners[2:]})
