"""Ifs that become selections, and Ifs that are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import bridge
from tests.support.command_line import bridge as run
from tests.support.graphs import HEADER
from tests.support.running import OnnxRuntime, OpenVino, assert_close

NAN = float("nan")


@dataclass(frozen=True)
class Case:
    """An If `y` whose branches make `t` and `e`, in a graph with these inputs."""

    name: str
    then: str
    otherwise: str
    feeds: tuple[Mapping[str, Any], ...]
    type: str = "float[]"
    before: str = ""
    inputs: str = "float[n] x, bool c"

    @property
    def model(self) -> onnx.ModelProto:
        return onnx.parser.parse_model(f"""{HEADER} g ({self.inputs}) => ({self.type} y) {{
            zero = Constant <value = int64 {{0}}> ()
            first = Constant <value = int64[1] {{0}}> ()
            {self.before}
            y = If (c) <
              then_branch = th () => ({self.type} t) {{ {self.then} }},
              else_branch = el () => ({self.type} e) {{ {self.otherwise} }}
            >
        }}""")


def x(*numbers: float, **others: Any) -> tuple[Mapping[str, Any], ...]:
    """Feeds with these elements, for both branches."""
    given = {name: np.array(value) for name, value in others.items()}
    return tuple({"x": np.array(numbers, np.float32), "c": np.array(c), **given}
                 for c in (True, False))  # fmt: skip


INDEXED = "float[n] x, bool c, int64 i"

SELECTED = (
    Case("arithmetic", "t = Neg (x)", "e = Exp (x)", x(1, -2) + x(3)),
    Case("NaN in the other branch", "t = Log (x)", "e = Div (x, x)", x(-1, 0, NAN) + x(2)),
    Case(
        "captured values alone",
        "t = Identity (x)",
        "e = Identity (z)",
        x(1, 2),
        before="z = Neg (x)",
    ),
    Case(
        "one value from both", "t = Identity (z)", "e = Identity (z)", x(1, 2), before="z = Neg (x)"
    ),
    Case(
        "scalars", "t = ReduceMax <keepdims = 0> (x)", "e = ReduceSum <keepdims = 0> (x)", x(1, 2)
    ),
    Case(
        "truth values", "t = Greater (x, z)", "e = Less (x, z)", x(1, -2), "bool[]", "z = Neg (x)"
    ),
    Case(
        "index out of range",
        "t = Gather (x, i)",
        "e = ReduceSum <keepdims = 0> (x)",
        x(1, 2, i=1) + x(1, 2, i=7)[1:],
        inputs=INDEXED,
    ),
    Case(
        "index into nothing",
        "t = Gather (x, zero)",
        "e = Constant <value = float {5}> ()",
        x(1, 2) + x()[1:],
    ),
    Case(
        "index of elements",
        "k = Unsqueeze (i, first) t = GatherElements (x, k)",
        "k2 = Constant <value = float[1] {4}> () e = Identity (k2)",
        x(1, 2, i=1) + x(1, 2, i=7)[1:],
        inputs=INDEXED,
    ),
    Case(
        "division by zero",
        "t = Div (seven, i)",
        "e = Mod (i, seven)",
        x(1, i=2) + x(1, i=0)[1:],
        "int64[]",
        "seven = Constant <value = int64 {7}> ()",
        INDEXED,
    ),
    Case(
        "remainder by zero",
        "t = Identity (i)",
        "e = Mod (seven, i)",
        x(1, i=2) + x(1, i=0)[:1],
        "int64[]",
        "seven = Constant <value = int64 {7}> ()",
        INDEXED,
    ),
    Case(
        "boxes that are chosen",
        "b = Unsqueeze (boxes, first) s = Unsqueeze (x, zero_one) "
        "most = Constant <value = int64[1] {9}> () overlap = Constant <value = float[1] {0.5}> () "
        "t = NonMaxSuppression (b, s, most, overlap)",
        "n = Constant <value = int64[1, 3] {7, 7, 7}> () e = Neg (n)",
        x(3, 1, 2, boxes=np.array([[0, 0, 1, 1], [0, 0, 1, 1.1], [4, 4, 5, 5]], np.float32))
        + x(boxes=np.zeros((0, 4), np.float32)),
        "int64[k, 3]",
        "zero_one = Constant <value = int64[2] {0, 1}> ()",
        "float[n] x, bool c, float[n, 4] boxes",
    ),
    Case(
        "reshape to a size of 0 where there is none to copy",
        "one = Constant <value = int64[1] {1}> () s = Shape (x) s2 = Concat <axis = 0> (one, s) "
        "r = Reshape (x, s2) t = Squeeze (r, first)",
        "e = Concat <axis = 0> (x, x)",
        ({"x": np.zeros(0, np.float32), "c": np.array(False)}, *x(3, 4)),
    ),
    Case(
        "reshape that does not fit",
        """s = Constant <value = int64[2] {2, 3}> () r = Reshape (x, s)
            t = ReduceSum <keepdims = 0> (r)""",
        "e = ReduceMax <keepdims = 0> (x)",
        x(1, 2, 3, 4, 5, 6) + x(1, 2)[1:] + x(*range(9))[1:],
    ),
    Case(
        "reshape by a shape",
        "s = Shape (x) t = Reshape (z, s)",
        "e = Neg (x)",
        x(1, 2),
        before="z = Exp (x)",
    ),
    Case(
        "reshape to a row",
        "s = Constant <value = int64[1] {-1}> () t = Reshape (x, s)",
        "e = Neg (x)",
        x(1, 2) + x(),
    ),
    Case(
        "range without end",
        """one = Constant <value = int64 {1}> () r = Range (zero, i, one)
            t = ReduceSum <keepdims = 0> (r)""",
        "e = Neg (i)",
        x(1, i=4) + x(1, i=2_000_000_000)[1:],
        "int64[]",
        inputs=INDEXED,
    ),
    Case(
        "loop that would not end",
        """go = Constant <value = bool {1}> ()
            t = Loop (i, go, x) <body = b (int64 n, bool k, float[] s) => (bool k2, float[] s2) {
            k2 = Identity (k) s2 = Add (s, s) }>""",
        "e = Neg (x)",
        x(1, 2, i=3) + x(1, 2, i=2_000_000_000)[1:],
        inputs=INDEXED,
    ),
    Case(
        "loop by a condition",
        """t = Loop (, c, x) <body = b (int64 n, bool k, float[] s) => (bool k2, float[] s2) {
            m = ReduceMax <keepdims = 0> (s) h = Constant <value = float {100}> () k2 = Less (m, h)
            s2 = Add (s, s) }>""",
        "e = Neg (x)",
        x(1, 2) + x(-1, -2)[1:],
    ),
    Case(
        "bounded sizes",
        "t = Constant <value = float[3] {1, 2, 3}> ()",
        "e = Constant <value = float[1] {4}> ()",
        x(1),
    ),
    Case(
        "bounded sizes of two axes",
        "t = Constant <value = float[2,1] {1, 2}> ()",
        "e = Constant <value = float[1,3] {4, 5, 6}> ()",
        x(1),
    ),
    Case("sizes without bounds", "t = Concat <axis = 0> (x, x)", "e = Neg (x)", x(1, 2) + x()),
    Case(
        "truth values without bounds",
        "d = Concat <axis = 0> (x, x) t = Less (d, z)",
        "e = Greater (x, z)",
        x(1, -2),
        "bool[]",
        "z = Constant <value = float {0}> ()",
    ),
    Case(
        "sizes that do not go together",
        "s = Add (x, w) t = ReduceSum <keepdims = 0> (s)",
        "e = ReduceMax <keepdims = 0> (x)",
        x(1, 2, 3) + x(5) + x(1, 2)[1:] + x(*range(5))[1:],
        before="w = Constant <value = float[3] {1, 2, 3}> ()",
    ),
    Case(
        "division by sizes that do not go together",
        "s = Div (r, w) t = ReduceSum <keepdims = 0> (s)",
        "e = ReduceMax <keepdims = 0> (r)",
        x(8, 6, 4) + x(8, 0)[1:],
        "int64[]",
        "w = Constant <value = int64[3] {1, 2, 3}> () r = Cast <to = 7> (x)",
    ),
    Case(
        "a window that may not fit",
        """p = MaxPool <kernel_shape = [3], pads = [1, 0], strides = [2]> (v)
            t = ReduceSum <keepdims = 0> (p)""",
        "e = ReduceMax <keepdims = 0> (x)",
        x(1, 2, 3, 4) + x(5)[1:],
        before="a = Constant <value = int64[2] {0, 1}> () v = Unsqueeze (x, a)",
    ),
    Case(
        "convolutions and padding by reflection",
        """pads = Constant <value = int64[6] {0, 0, 3, 0, 0, 2}> ()
            p = Pad <mode = "reflect"> (v, pads) k = Conv <dilations = [2]> (p, f)
            l = Conv (k, f) t = ReduceSum <keepdims = 0> (l)""",
        "e = ReduceMax <keepdims = 0> (x)",
        x(*range(9)) + x(5)[1:],
        before="""a = Constant <value = int64[2] {0, 1}> () v = Unsqueeze (x, a)
            f = Constant <value = float[1,1,3] {1, -1, 2}> ()""",
    ),
    Case(
        "an axis that is removed",
        "t = Squeeze (x, first)",
        "e = ReduceMax <keepdims = 0> (x)",
        x(3) + x(1, 2)[1:] + x(7)[1:],
    ),
    Case(
        "states of a recurrent layer",
        """y1, t = GRU <hidden_size = 1> (v, w, r, , , h)""",
        "e = Neg (h)",
        x(1, 2) + x(1)[1:],
        before="""a = Constant <value = int64[2] {0, 2}> () v = Unsqueeze (x, a)
            w = Constant <value = float[1,3,1] {1, 2, 3}> ()
            r = Constant <value = float[1,3,1] {0.5, 1, 2}> ()
            h = Constant <value = float[1,2,1] {3, 4}> ()""",
    ),
    Case(
        "reshape to rows",
        """s = Constant <value = int64[2] {-1, 3}> () r = Reshape (x, s)
            t = ReduceSum <keepdims = 0> (r)""",
        "e = ReduceMax <keepdims = 0> (x)",
        x(1, 2, 3, 4, 5, 6) + x(1, 2)[1:],
    ),
    Case(
        "reshape by data",
        "r = Reshape (x, i) t = ReduceSum <keepdims = 0> (r)",
        "e = ReduceMax <keepdims = 0> (x)",
        x(1, 2, 3, 4, 5, 6, i=[2, 3]) + x(1, 2, i=[7, 7])[1:],
        inputs="float[n] x, bool c, int64[2] i",
    ),
    Case(
        "reshape by data in part",
        """two = Constant <value = int64[1] {2}> () s = Concat <axis = 0> (i, two)
            r = Reshape (x, s) t = ReduceSum <keepdims = 0> (r)""",
        "e = ReduceMax <keepdims = 0> (x)",
        x(1, 2, 3, 4, 5, 6, i=[3]) + x(1, 2, 3, i=[7])[1:],
        inputs="float[n] x, bool c, int64[1] i",
    ),
    Case(
        "scan whose body may fail",
        """t = Scan <num_scan_inputs = 1, body = b (float s) => (float q) {
            w = Gather (z, i) q = Add (s, w) }> (x)""",
        "e = Neg (x)",
        x(1, 2, i=1) + x(1, i=9)[1:],
        before="z = Constant <value = float[2] {5, 6}> ()",
        inputs=INDEXED,
    ),
    Case(
        "loop that stacks",
        """two = Constant <value = int64 {2}> ()
            u = Loop (two, "") <body = b (int64 n, bool k) => (bool k2, float q) {
            k2 = Identity (k) j = Add (n, i) q = Gather (x, j) }>
            t = ReduceSum <keepdims = 0> (u)""",
        "e = ReduceMax <keepdims = 0> (x)",
        x(1, 2, i=0) + x(1, i=9)[1:],
        inputs=INDEXED,
    ),
    Case(
        "slices of one size",
        "t = Slice (x, first, two)",
        "z = Neg (x) e = Slice (z, first, two)",
        x(1, 2, 3) + x(1),
        before="two = Constant <value = int64[1] {2}> ()",
    ),
    Case(
        "nested",
        """d = Greater (r, o) t = If (d) <then_branch = a () => (float[] ta) { ta = Gather (x, i) },
            else_branch = b () => (float[] tb) { tb = ReduceSum <keepdims = 0> (x) }>""",
        "e = ReduceMax <keepdims = 0> (x)",
        x(1, 2, i=1) + x(-1, -2, i=9) + x(1, 2, i=9)[1:],
        before="r = ReduceSum <keepdims = 0> (x) o = Constant <value = float {0}> ()",
        inputs=INDEXED,
    ),
    Case(
        "in a loop",
        """three = Constant <value = int64 {3}> ()
            t, w = Loop (three, , x) <body = b (int64 n, bool k, float[] s)
              => (bool k2, float[] s2, float[] q) {
            m = ReduceMax <keepdims = 0> (s) h = Constant <value = float {4}> ()
            k2 = Identity (k) d = Less (m, h) s2 = If (d)
            <then_branch = a () => (float[] ta) { ta = Add (s, s) },
            else_branch = b2 () => (float[] tb) { tb = Neg (s) }> q = Identity (m) }>""",
        "e = Exp (x)",
        x(1, 2) + x(8, 9),
    ),
)


@pytest.mark.parametrize("case", SELECTED, ids=lambda case: case.name)
def test_both_branches_run(case: Case, tmp_path: Path) -> None:
    """The numbers equal the original's, with either branch."""
    original = OnnxRuntime(case.model)
    expected = [original.run(feed) for feed in case.feeds]
    bridge.convert(case.model, tmp_path / "plain.xml")
    ways = (
        (case.model, "a.onnx"),
        (case.model, "a.xml"),
        ("plain.xml", "b.onnx"),
        ("plain.xml", "b.xml"),
    )
    for source, name in ways:
        given = tmp_path / source if isinstance(source, str) else source
        path = tmp_path / name
        report = bridge.convert(given, path, ifs="select")
        assert not any(node.op == "If" for node in bridge.load(path).graph.walk())
        assert report.selected
        engine = OnnxRuntime(path) if path.suffix == ".onnx" else OpenVino(path)
        for feed, wanted in zip(case.feeds, expected, strict=True):
            found = engine.run(feed if path.suffix == ".onnx" else list(feed.values()))
            assert_close(found, wanted)


IN_PARTS = (
    Case("another rank", "t = Unsqueeze (x, first)", "e = Neg (x)", x(1, 2) + x(3)),
    Case(
        "sequences",
        "t = SequenceConstruct (x, x)",
        "e = SequenceConstruct (x)",
        x(1, 2) + x(3),
        "seq(float[])",
    ),
)


@pytest.mark.parametrize("case", IN_PARTS, ids=lambda case: case.name)
def test_what_takes_several_tensors(case: Case, tmp_path: Path) -> None:
    """The value is selected in parts with `select`; its If stays with `select-some`."""
    model = onnx.parser.parse_model(onnx.printer.to_text(case.model))
    original, path = OnnxRuntime(model), tmp_path / "a.onnx"
    bridge.convert(model, path, ifs="select")
    assert not any(node.op == "If" for node in bridge.load(path).graph.walk())
    assert bridge.load(path).graph.outputs[0].names == ["y"]
    for feed in case.feeds:
        (found,), (wanted,) = OnnxRuntime(path).run(feed), original.run(feed)
        assert_close(*([each] if case.type == "float[]" else each for each in (found, wanted)))
    report = bridge.convert(model, path, ifs="select-some")
    assert any("stays an If" in note for note in report.notes)


REFUSED = {
    "random numbers": (
        Case("", "t = RandomUniformLike (x)", "e = Neg (x)", ()),
        "it draws numbers",
    ),
    "sizes that may not go together": (
        Case(
            "",
            """w = Constant <value = float[3] {1, 2, 3}> () s = MatMul (x, w)
            t = Identity (s)""",
            "e = ReduceMax <keepdims = 0> (x)",
            (),
        ),
        "sizes may not go together",
    ),
    "a window of open channels": (
        Case(
            "",
            """a = Constant <value = int64[2] {0, 2}> () v = Unsqueeze (x, a)
             p = MaxPool <kernel_shape = [1]> (v) t = ReduceSum <keepdims = 0> (p)""",
            "e = ReduceMax <keepdims = 0> (x)",
            (),
        ),
        "some values of its open sizes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_selected(name: str, tmp_path: Path) -> None:
    """The If is refused with the reason, or stays."""
    case, why = REFUSED[name]
    model = case.model
    with pytest.raises(bridge.UnsupportedError, match=f'(?s)without Ifs.*If .*{why}.*If "y"'):
        bridge.convert(model, tmp_path / "a.onnx", ifs="select")
    assert not list(tmp_path.iterdir())
    report = bridge.convert(model, tmp_path / "a.onnx", ifs="select-some")
    assert any("stays an If" in note and why in note for note in report.notes)


def test_all_are_refused_at_once(tmp_path: Path) -> None:
    """An If inside a refused If is reported once."""
    text = f"""{HEADER} g (float[n] x, bool c, bool d) => (float[] y, float[] z, float[] w) {{
        y = If (c) <then_branch = a () => (float[] t) {{ t = Bernoulli (x) }},
                    else_branch = b () => (float[] e) {{ e = Neg (x) }}>
        z = If (d) <then_branch = a2 () => (float[] t2) {{ t2 = RandomUniformLike (x) }},
                    else_branch = b2 () => (float[] e2) {{ e2 = Neg (x) }}>
        w = If (d) <then_branch = a3 () => (float[] t3) {{ t3 = Abs (x) }},
                    else_branch = b3 () => (float[] e3) {{ e3 = Neg (x) }}>
    }}"""
    model = onnx.parser.parse_model(text)
    with pytest.raises(bridge.UnsupportedError) as caught:
        bridge.convert(model, tmp_path / "a.onnx", ifs="select")
    assert [finding.where for finding in caught.value.findings] == [
        'graph / If "y"', 'graph / If "z"'
    ]  # fmt: skip
    report = bridge.convert(model, tmp_path / "a.onnx", ifs="select-some")
    assert [line.split(":")[0] for line in report.selected] == ['graph / If "w"']


def test_the_report_says_what_it_costs(tmp_path: Path) -> None:
    text = f"""{HEADER} g (float[4,8] x, bool c) => (float[4,8] y)
        <float[8,8] w = {{{", ".join("0.5" for _ in range(64))}}}> {{
        y = If (c) <then_branch = a () => (float[4,8] t) {{ m = MatMul (x, w) t = MatMul (m, w) }},
                    else_branch = b () => (float[4,8] e) {{ e = MatMul (x, w) }}>
    }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "a.onnx")
    finished = run(
        "convert", tmp_path / "a.onnx", tmp_path / "b.onnx", "--ifs", "select", "--check"
    )
    assert finished.code == 0
    says = "a selection, with 768 multiplications instead of at most 512"
    assert f'selected: graph / If "y": {says}' in finished.out
    finished = run("convert", tmp_path / "a.onnx", tmp_path / "b.onnx", "--ifs", "drop")
    assert "--ifs is one of keep, select, select-some, not 'drop'" in finished.err


def test_the_first_element_of_a_sequence(tmp_path: Path) -> None:
    """OpenVINO knows the rank of the element. Its shape is a row of a matrix that may have no
    rows."""
    model = onnx.parser.parse_model(f"""{HEADER} g (seq(float[k]) s, float[m] y) => (float[d] z) {{
        zero = Constant <value = int64 {{0}}> ()
        n = SequenceLength (s)
        some = Greater (n, zero)
        z = If (some) <
          then_branch = th () => (float[a] t) {{ t = SequenceAt (s, zero) }},
          else_branch = el () => (float[b] e) {{ e = Neg (y) }}
        >
    }}""")
    bridge.convert(model, tmp_path / "m.xml", ifs="select")
    y = np.array([7, 8, 9], np.float32)
    for sequence, expected in (([y, -y[:1]], y), ([], -y), ([y[:0]], y[:0])):
        feed = bridge.pack(tmp_path / "m.xml", {"s": sequence, "y": y})
        (found,) = OpenVino(tmp_path / "m.xml").run(feed.values())
        np.testing.assert_array_equal(found, expected)
