"""Ifs whose branches differ in rank: pruned if only one rank is possible, kept if both are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import bridge
from bridge.cli.options import READERS
from tests.support.model_files import FOLDER
from tests.support.running import OnnxRuntime, OpenVino, assert_close, flat

BRANCHES = """
  y = If (c) <
    then_branch = then () => (float[N, 3] a) { a = Relu (x) },
    else_branch = otherwise () => (float[N] b) {
      axis = Constant <value_ints = [0]> ()
      b = ReduceSum <keepdims = 0> (x, axis)
    }>
"""


def model(body: str, outputs: str, inputs: str = "float[n, 3] x, bool c") -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({inputs}) => ({outputs}) {{ {body} }}'
    return onnx.parser.parse_model(text)


def ifs(path: Path) -> int:
    return sum(node.op == "If" for node in bridge.load(path).graph.walk())


KEPT = {
    "reduced to a scalar": (
        BRANCHES + "z = ReduceMax <keepdims = 0> (y)",
        "float z",
    ),
    "several consumers in a chain": (
        BRANCHES
        + """
        h = Neg (y)
        two = Constant <value_float = 2.0> ()
        d = Mul (h, two)
        s = ReduceSum <keepdims = 0> (x)
        e = Add (d, s)
        flat = Constant <value_ints = [-1]> ()
        z = Reshape (e, flat)
        w = Size (y)
        """,
        "float[k] z, int64 w",
    ),
    "a value of known rank between two consumers": (
        BRANCHES
        + """
        top = ReduceMax <keepdims = 0> (y)
        half = Sqrt (top)
        m = Mul (y, half)
        z = ReduceMean <keepdims = 0> (m)
        """,
        "float z",
    ),
    "an If behind the If": (
        BRANCHES
        + """
        z = If (c) <
          then_branch = t () => (float p) { p = ReduceMin <keepdims = 0> (y) },
          else_branch = e () => (float q) { q = ReduceMax <keepdims = 0> (y) }>
        """,
        "float z",
    ),
}


def feeds() -> Iterator[dict[str, np.ndarray]]:
    for rows in (1, 2, 4):
        for condition in (True, False):
            x = np.abs(np.random.default_rng(rows).standard_normal((rows, 3), np.float32))
            yield {"x": x, "c": np.array(condition)}


def check_both_ways(source: onnx.ModelProto, folder: Path, **options: Any) -> bridge.Report:
    """Converts there, back and there again, and compares all with the model."""
    report = bridge.convert(source, folder / "a.xml", debug=True, **options)
    bridge.convert(folder / "a.xml", folder / "b.onnx", debug=True)
    bridge.convert(folder / "b.onnx", folder / "c.xml", debug=True)
    names = [value.name for value in source.graph.output]
    assert [value.name for value in onnx.load(folder / "b.onnx").graph.output] == names
    original, back = OnnxRuntime(source), OnnxRuntime(folder / "b.onnx")
    irs = [(bridge.Boundary.of(path), OpenVino(path)) for path in folder.glob("*.xml")]
    for feed in feeds():
        expected = flat(original.run(feed))
        assert_close(flat(back.run(feed)), expected)
        for boundary, engine in irs:
            results = engine.run_packed(boundary, feed)
            assert_close(flat([results[name] for name in names]), expected)
    return report


def outputs(path: Path) -> list[str]:
    return bridge.load(path).graph.output_names


@pytest.mark.parametrize("name", KEPT)
def test_consumers_take_either_rank(name: str, tmp_path: Path) -> None:
    report = check_both_ways(model(*KEPT[name]), tmp_path)
    assert not report.pruned and not report.notes
    assert ifs(tmp_path / "a.xml") == ifs(tmp_path / "c.xml") >= 1


OPERATORS = {
    "element by element": "z = Relu (y)",
    "with bounds": "k = Constant <value_float = 0.25> () z = Clip (y, k)",
    "of another type": "h = Cast <to = 7> (y) z = CastLike (h, y)",
    "with a mask": "z, m = Dropout (y)",
    "with itself": "z = Mul (y, y)",
    "with what has its shape": "h = Neg (y) z = Sub (y, h)",
    "with a number": "k = Constant <value_floats = [2.0]> () z = Div (y, k)",
    "broadcast with a known rank": "z = Add (y, x)",
    "compared": "k = ReduceMean (y) m = Less (y, k) z = Where (m, y, k)",
    "of many inputs": "h = Exp (y) z = Max (y, x, h)",
    "an axis from the end": "z = LogSoftmax <axis = -1> (y)",
    "an axis from the front": "z = Hardmax <axis = 0> (y)",
    "reduced over all axes, which stay": "z = ReduceMin (y)",
    "reduced over one axis": "z = ReduceSum <keepdims = 0> (y, first)",
    "reduced over the last axis, which stays": "z = ReduceL2 <keepdims = 1, axes = [-1]> (y)",
    "an axis less": "h = Unsqueeze (y, first) z = Squeeze (h, first)",
    "an axis more": "z = Unsqueeze (y, last)",
    "all axes of size 1 less": "h = Unsqueeze (y, first) z = Squeeze (h)",
    "two axes of both ends": "k = Constant <value_ints = [0, -1]> () z = Unsqueeze (y, k)",
    "gathered": "k = Constant <value = int64[1, 2] {0, 0}> () z = Gather <axis = 0> (y, k)",
    "sliced": "e = Constant <value_ints = [2]> () z = Slice (y, first, e, last)",
    "sliced without axes": "e = Constant <value_ints = [2]> () z = Slice (y, first, e)",
    "joined to itself": "z = Concat <axis = -1> (y, y)",
    "split": "e = Constant <value_ints = [1, 2]> () h, z = Split <axis = -1> (y, e)",
    "the largest": "e = Constant <value_ints = [1]> () z, i = TopK <axis = -1> (y, e)",
    "summed up": "k = Constant <value = int64 {-1}> () z = CumSum (y, k)",
    "axes exchanged": "z = Transpose (y)",
    "flattened": "z = Flatten <axis = 0> (y)",
    "another shape": "k = Constant <value_ints = [3, -1, 1]> () z = Reshape (y, k)",
    "another shape that copies a size": "k = Constant <value_ints = [0, -1]> () z = Reshape (y, k)",
    "its own shape": "s = Shape (y) h = Neg (y) z = Reshape (h, s)",
    "the last of its sizes": "s = Shape <start = -1> (y) z = Cast <to = 1> (s)",
    "expanded to another's shape": "s = Shape (x) z = Expand (y, s)",
    "another expanded to it": "t = ReduceMax <keepdims = 0> (x) s = Shape (y) z = Expand (t, s)",
    "filled": "s = Shape (y) z = ConstantOfShape (s)",
    "times a matrix": "k = Constant <value = float[3, 1] {1, 2, 3}> () z = MatMul (y, k)",
    "times its like": "t = Transpose <perm = [1, 0]> (x) z = MatMul (y, t)",
    "an equation of any rank": 'z = Einsum <equation = "...i,...i->..."> (y, y)',
    "where it is not 0": "h = NonZero (y) z = Cast <to = 1> (h)",
    "normalized": "z = LpNormalization <axis = -1, p = 2> (y)",
    "a Loop's number of trips": """
      n = Size (y) true = Constant <value = bool {1}> () t = Cast <to = 1> (n)
      z = Loop (n, true, t) <body = body (int64 i, bool a, float p) => (bool b, float q) {
        b = Identity (a)
        q = Add (p, p)
      }>""",
    "a condition": """
      f = ReduceMax (y) k = Constant <value_float = 0.5> () large = Greater (f, k)
      one = ReduceMax <keepdims = 0> (y)
      is_large = Greater (one, k)
      z = If (is_large) <
        then_branch = t () => (float[] p) { p = Identity (y) },
        else_branch = e () => (float[] q) { q = Neg (f) }>""",
}
"""Readers of a value y of rank 1 or 2."""

MATRIX_ALONE = {
    "repeated": "k = Constant <value_ints = [2, 1]> () z = Tile (y, k)",
    "an axis that only one rank has": "z = Softmax <axis = 1> (y)",
    "joined to a known rank": "z = Concat <axis = 0> (y, x)",
    "axes exchanged by an order": "z = Transpose <perm = [1, 0]> (y)",
    "padded": "k = Constant <value_ints = [0, 1, 1, 0]> () z = Pad (y, k)",
    "an equation": 'z = Einsum <equation = "ij,ij->j"> (y, y)',
    "scattered by the numbers of rows": """
      zero = Constant <value_int = 0> () one = Constant <value_int = 1> ()
      n = Shape <end = 1> (x) rows = Squeeze (n, first)
      numbers = Range (zero, rows, one) column = Unsqueeze (numbers, last)
      two = Constant <value_float = 2.0> () twice = Mul (two, y)
      z = ScatterND (x, column, twice)""",
}
"""Readers that fail if y has rank 1."""


@pytest.mark.parametrize("name", [*OPERATORS, *MATRIX_ALONE])
def test_operators_on_an_open_rank(name: str, tmp_path: Path) -> None:
    axes = "first = Constant <value_ints = [0]> () last = Constant <value_ints = [-1]> ()"
    source = model(axes + BRANCHES + {**OPERATORS, **MATRIX_ALONE}[name], "float[] z")
    report = bridge.convert(source, tmp_path / "a.xml", debug=True)
    assert not any("then_branch" in line for line in report.pruned)
    assert not report.pruned or name in MATRIX_ALONE
    bridge.convert(tmp_path / "a.xml", tmp_path / "b.onnx", debug=True)
    original, back = OnnxRuntime(source), OnnxRuntime(tmp_path / "b.onnx")
    boundary, there = bridge.Boundary.of(tmp_path / "a.xml"), OpenVino(tmp_path / "a.xml")
    for feed in feeds():
        if feed["c"] or name in OPERATORS:
            expected = original.run(feed)
            kept = {name: feed[name] for name in entries(tmp_path / "a.xml")}
            assert_close([there.run_packed(boundary, kept)["z"]], expected)
            assert_close(back.run(kept), expected)


AXES = "first = Constant <value_ints = [0]> () both = Constant <value_ints = [0, -1]> ()"

BOTH_RUN = {
    "a scalar's axis is called -1": """
      y = If (c) <
        then_branch = t () => (float a) { a = ReduceMax <keepdims = 0> (x) },
        else_branch = e () => (float[N] b) { b = ReduceSum <keepdims = 0> (x, first) }>
      r = ReduceMax <keepdims = 0, axes = [-1]> (y)""",
    "two names of a vector's axis": BRANCHES + "r = ReduceMax <keepdims = 0, axes = [0, -1]> (y)",
    "two names of the axis to squeeze": """
      top = ReduceMax <keepdims = 0> (x)
      sum = ReduceSum <keepdims = 0> (x)
      y = If (c) <
        then_branch = t () => (float[1] a) { a = Unsqueeze (top, first) },
        else_branch = e () => (float[1, 1] b) { b = Unsqueeze (sum, both) }>
      r = Squeeze (y, both)""",
}
"""A scalar r made from values of two ranks."""


@pytest.mark.parametrize("name", BOTH_RUN)
def test_both_branches_run_whatever_the_number_of_axes(name: str, tmp_path: Path) -> None:
    """The next nodes need a scalar. Both branches lead to one."""
    joined = "row = Unsqueeze (r, first) tail = Constant <value_floats = [7.0]> ()"
    body = AXES + BOTH_RUN[name] + joined + " z = Concat <axis = 0> (row, tail)"
    assert not check_both_ways(model(body, "float[2] z"), tmp_path).pruned


def entries(path: Path) -> list[str]:
    return [value.name for value in bridge.load(path).graph.inputs]


SQUEEZED = """
  one = Constant <value_ints = [1]> ()
  dim = Shape <start = 1, end = 2> (x)
  is_one = Equal (dim, one)
  axis = Constant <value_ints = [1]> ()
  y = If (is_one) <
    then_branch = then () => (float[N, M] a) { a = Squeeze (x, axis) },
    else_branch = otherwise () => (float[N, K, M] b) { b = Identity (x) }>
"""


def test_branch_that_no_consumer_takes_is_pruned(tmp_path: Path) -> None:
    """Conv with 3-D weights needs rank 3, so only the branch that keeps rank 3 is possible."""
    body = SQUEEZED + "z = Conv (y, w)"
    source = model(body, "float[n, 2, k] z", "float[n, c, m] x, float[2, 4, 3] w")
    report = bridge.convert(source, tmp_path / "a.xml")
    assert len(report.pruned) == 1 and "then_branch" in report.pruned[0]
    assert ifs(tmp_path / "a.xml") == 0
    random = np.random.default_rng(0)
    feed = {
        "x": random.standard_normal((2, 4, 7), np.float32),
        "w": random.standard_normal((2, 4, 3), np.float32),
    }
    expected = OnnxRuntime(source).run(feed)
    assert_close(OpenVino(tmp_path / "a.xml").run(list(feed.values())), expected)


def test_branches_are_kept_on_request(tmp_path: Path) -> None:
    body = SQUEEZED + "z = Conv (y, w)"
    source = model(body, "float[n, 2, k] z", "float[n, c, m] x, float[2, 4, 3] w")
    report = bridge.convert(source, tmp_path / "a.xml", keep_branches=True)
    assert not report.pruned
    assert ifs(tmp_path / "a.xml") == 1


def early_return(condition: str, inputs: str = "float[n, 3] x") -> onnx.ModelProto:
    """Rank 1 or 2 at the output, which is declared with rank 2."""
    return model(condition + BRANCHES, "float[n, 3] y", inputs)


SHAPES_ALONE = {
    "a size of an input": "n = Size (x) t = Constant <value = int64 {9}> () c = Less (n, t)",
    "a size of what is computed": """
      e = Exp (x) n = Size (e) t = Constant <value = int64 {9}> () c = Less (n, t)""",
    "through another If": """
      n = Size (x) t = Constant <value = int64 {9}> () small = Less (n, t)
      c = If (small) <
        then_branch = p () => (bool d) { d = Constant <value = bool {0}> () },
        else_branch = q () => (bool e) { u = Constant <value = int64 {20}> () e = Less (n, u) }>""",
    "through a Loop": """
      n = Size (x) t = Constant <value = int64 {9}> () true = Constant <value = bool {1}> ()
      m = Loop (t, true, n) <body = body (int64 i, bool a, int64 p) => (bool b, int64 q) {
        b = Identity (a)
        q = Add (p, i)
      }>
      c = Less (m, t)""",
}
DATA = {
    "an input": ("", "float[n, 3] x, bool c"),
    "a sum": (
        "t = ReduceSum <keepdims = 0> (x) z = Constant <value_float = 0.0> () c = Less (z, t)",
        "",
    ),
    "a number of elements that data decide": (
        "p = NonZero (x) n = Size (p) t = Constant <value = int64 {9}> () c = Less (n, t)",
        "",
    ),
    "a shape that data give": (
        """v = Reshape (x, k) s = Shape (v) n = Gather (s, z)
        t = Constant <value = int64 {3}> () c = Less (n, t)""",
        "float[n, 3] x, int64[2] k, int64 z",
    ),
    "chance": (
        "r = RandomUniform <shape = [1]> () h = Constant <value_float = 0.5> () c = Less (r, h)",
        "",
    ),
    "a state": (
        """
      z = Constant <value_float = 0.0> () three = Constant <value = int64 {3}> ()
      true = Constant <value = bool {1}> ()
      m = Loop (three, true, z) <body = body (int64 i, bool a, float p) => (bool b, float q) {
        b = Identity (a)
        t = ReduceSum <keepdims = 0> (x)
        q = Add (p, t)
      }>
      c = Less (z, m)""",
        "",
    ),
}


@pytest.mark.parametrize("name", SHAPES_ALONE)
def test_a_declared_rank_is_believed_where_shapes_alone_decide(name: str, tmp_path: Path) -> None:
    report = bridge.convert(early_return(SHAPES_ALONE[name]), tmp_path / "a.xml")
    assert outputs(tmp_path / "a.xml") == ["y"] and not report.notes
    (pruned,) = report.pruned
    assert "else_branch" in pruned and "shapes alone" in pruned


@pytest.mark.parametrize("name", DATA)
def test_a_declared_rank_is_not_believed_where_data_decide(name: str, tmp_path: Path) -> None:
    condition, inputs = DATA[name]
    report = bridge.convert(early_return(condition, inputs or "float[n, 3] x"), tmp_path / "a.xml")
    assert not report.pruned
    assert outputs(tmp_path / "a.xml") == ["y.data", "y.shape"]
    assert any("not believed" in note for note in report.notes)
    assert any("`output_ranks` decides" in note for note in report.notes)


def test_what_is_computed_from_such_a_value_is_not_believed_either(tmp_path: Path) -> None:
    source = model(BRANCHES + "z = Neg (y)", "float[n, 3] z")
    report = check_both_ways(source, tmp_path)
    assert not report.pruned
    assert outputs(tmp_path / "a.xml") == ["z.data", "z.shape"]


@pytest.mark.parametrize("rank, branch", [(1, "then_branch"), (2, "else_branch")])
def test_a_rank_that_is_given_decides(rank: int, branch: str, tmp_path: Path) -> None:
    source = model(BRANCHES, "float[n, 3] y")
    report = bridge.convert(source, tmp_path / "a.xml", output_ranks={"y": rank})
    assert len(report.pruned) == 1 and branch in report.pruned[0] and not report.notes
    assert outputs(tmp_path / "a.xml") == ["y"]
    kept = bridge.convert(source, tmp_path / "b.xml", output_ranks={"y": rank}, keep_branches=True)
    assert not kept.pruned and not kept.notes
    engines = OpenVino(tmp_path / "a.xml"), OpenVino(tmp_path / "b.xml")
    for feed in feeds():
        if feed["c"] == (rank == 2):
            expected = OnnxRuntime(source).run(feed)
            inputs = [feed[name] for name in entries(tmp_path / "a.xml")]
            assert_close(engines[0].run(inputs), expected)
            assert_close(engines[1].run(list(feed.values())), expected)


def test_kept_branches_of_open_rank_run(tmp_path: Path) -> None:
    report = check_both_ways(model(BRANCHES, "float[n, 3] y"), tmp_path, keep_branches=True)
    assert not report.pruned
    assert ifs(tmp_path / "a.xml") == 1


def many(count: int, tail: str) -> onnx.ModelProto:
    """Ifs in a row, each with a condition of its own. `tail` makes s{new} from y{old} and
    s{old}."""
    lines = ["s0 = Identity (x)"]
    for index in range(count):
        lines.append(BRANCHES.replace("y = If (c)", f"y{index} = If (c{index})"))
        lines.append(tail.format(old=index, new=index + 1))
    lines.append(f"z = Identity (s{count})")
    conditions = ", ".join(f"bool c{index}" for index in range(count))
    return model("\n".join(lines), "float[] z", f"float[n, 3] x, {conditions}")


TAILS = {
    "views": "s{new} = Add (s{old}, y{old})",
    "one rank": "m{old} = ReduceMax <keepdims = 0> (y{old}) s{new} = Mul (s{old}, m{old})",
    "by rank": "t{old} = Transpose (y{old}) s{new} = Sub (s{old}, t{old})",
}


@pytest.mark.parametrize("name", TAILS)
def test_the_file_grows_with_the_number_of_ifs(name: str, tmp_path: Path) -> None:
    sizes = []
    for count in (10, 20, 40):
        bridge.convert(many(count, TAILS[name]), tmp_path / "a.xml")
        sizes.append((tmp_path / "a.xml").stat().st_size)
    assert sizes[2] < 2_000_000
    assert sizes[2] - sizes[1] < 2.2 * (sizes[1] - sizes[0])


def test_a_rank_that_grows_in_forty_ifs(tmp_path: Path) -> None:
    lines = ["k = Constant <value_ints = [0]> ()", "y0 = Identity (x)"]
    for i in range(40):
        lines.append(f"""y{i + 1} = If (c{i}) <
            then_branch = then{i} () => (float[] p{i}) {{ p{i} = Unsqueeze (y{i}, k) }},
            else_branch = else{i} () => (float[] q{i}) {{ q{i} = Identity (y{i}) }}>""")
    conditions = ", ".join(f"bool c{i}" for i in range(40))
    body = "\n".join([*lines, "z = Neg (y40)"])
    source = model(body, "float[] z", f"float[n, 3] x, {conditions}")
    bridge.convert(source, tmp_path / "a.xml")
    assert (tmp_path / "a.xml").stat().st_size < 400_000
    feed: dict[str, np.ndarray] = {"x": np.ones((2, 3), np.float32)}
    feed.update({f"c{i}": np.array(i % 4 == 0) for i in range(40)})
    boundary, there = bridge.Boundary.of(tmp_path / "a.xml"), OpenVino(tmp_path / "a.xml")
    assert_close([there.run_packed(boundary, feed)["z"]], OnnxRuntime(source).run(feed))


def test_a_rank_without_bound_is_refused_with_advice(tmp_path: Path) -> None:
    text = (FOLDER / "loop_state_grows_in_rank.onnxtxt").read_text()
    source = tmp_path / "a.onnxtxt"
    source.write_text(text.replace("y = Neg (z)", "y = Softmax <axis = -1> (z)"))
    with pytest.raises(bridge.UnsupportedError, match="`output_ranks`") as refusal:
        bridge.convert(source, tmp_path / "a.xml")
    (finding,) = refusal.value.findings
    assert (finding.operator, finding.where) == ("Softmax", 'graph / Softmax "y"')


@pytest.mark.parametrize(
    "ranks, message",
    [
        ({"y": 3}, "has rank 1 or 2, not 3"),
        ({"q": 1}, 'no output "q"'),
        ({"y": -1}, "0 or more"),
        ({"y": True}, "0 or more"),
        (["y"], "maps names to ranks"),
    ],
)
def test_ranks_that_make_no_sense(ranks: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(bridge.UsageError, match=message):
        bridge.convert(model(BRANCHES, "float[] y"), tmp_path / "a.xml", output_ranks=ranks)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("texts", [["y"], ["=2"], ["y=-1"], ["y=two"], ["y=1", "y=2"]])
def test_options_that_are_no_ranks(texts: list[str]) -> None:
    with pytest.raises(bridge.UsageError, match="--output-rank"):
        READERS["output_ranks"](texts)


def test_a_shape_of_other_elements_is_refused(tmp_path: Path) -> None:
    bridge.convert(model(BRANCHES, "float[] y"), tmp_path / "a.xml")
    results = {"y.data": np.zeros(5, np.float32), "y.shape": np.array([2, 3])}
    with pytest.raises(bridge.UsageError, match="5 elements"):
        bridge.unpack(tmp_path / "a.xml", results)


@pytest.mark.parametrize(("declared", "rank"), [("float[n, 3] y", 2), ("float[4] y", 1)])
def test_a_declared_rank_comes_back(declared: str, rank: int, tmp_path: Path) -> None:
    bridge.convert(model(BRANCHES, declared), tmp_path / "a.xml")
    report = bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx")
    assert not report.notes
    onnx.checker.check_model(tmp_path / "a.onnx", full_check=True)
    (output,) = onnx.load(tmp_path / "a.onnx").graph.output
    assert len(output.type.tensor_type.shape.dim) == rank


def test_an_output_without_a_shape_is_told(tmp_path: Path) -> None:
    source = model(BRANCHES, "float[n, 3] y")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    assert not bridge.convert(source, tmp_path / "b.onnx").notes
    bridge.convert(source, tmp_path / "a.xml")
    (note,) = bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx").notes
    assert 'the output "y"; onnxruntime gives it' in note
    onnx.checker.check_model(tmp_path / "a.onnx", full_check=True)
    OnnxRuntime(tmp_path / "a.onnx").run(next(iter(feeds())))


def test_an_output_without_a_shape_has_the_same_parts_again(tmp_path: Path) -> None:
    source = model(BRANCHES, "float[n, 3] y")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    bridge.convert(source, tmp_path / "a.xml")
    bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx")
    bridge.convert(tmp_path / "a.onnx", tmp_path / "b.xml")
    first, second = (bridge.Boundary.of(tmp_path / name) for name in ("a.xml", "b.xml"))
    assert first.outputs == second.outputs


def test_an_output_without_a_shape_needs_optionals(tmp_path: Path) -> None:
    source = model(BRANCHES, "float[n, 3] y")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    bridge.convert(source, tmp_path / "a.xml")
    with pytest.raises(bridge.UnsupportedError, match="Optional"):
        bridge.convert(tmp_path / "a.xml", tmp_path / "a.onnx", opset=14)
