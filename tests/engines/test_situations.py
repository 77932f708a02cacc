"""What inputs have to show: measured at the nodes, and sought where it is missing."""

from pathlib import Path

import numpy as np
import onnx.parser
import pytest

import bridge
from bridge.check import check
from bridge.check.engines import Engine, OnnxRuntime, OpenVino
from bridge.check.noisy import exact_values
from bridge.check.surgery.situations import Dependences
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.watching import distances

HEAD = '<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3]> '


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def sources_of(surgery: Surgery) -> Dependences:
    return Dependences(surgery.model.graph, exact_values(surgery.model.graph))


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


MEASURED = {
    "close above": (
        "g (float[n] x) => (bool[n] y) <float k = {2}> { y = Less (x, k) }",
        {"x": floats(2.004, -1)},
        {"2, above", "close above 2", "2, below"},
    ),
    "too close to tell": (
        "g (float[n] x) => (bool[n] y) <float k = {2}> { y = Less (x, k) }",
        {"x": floats(2.00002)},
        set(),
    ),
    "equal": (
        "g (float[n] x) => (bool[n] y) <float k = {2}> { y = Less (x, k) }",
        {"x": floats(2)},
        {"equal: 2"},
    ),
    "an integer next to a bound": (
        "g (int64[n] x) => (bool[n] y) <int64 k = {2}> { y = Less (x, k) }",
        {"x": np.array([3])},
        {"2, above", "close above 2"},
    ),
    "a bound": (
        "g (float[n] x) => (float[n] y) <float k = {0}, float m = {6}> { y = Clip (x, k, m) }",
        {"x": floats(7, 3, -1)},
        {"0, above", "0, below", "6, above", "6, below"},
    ),
    "a half": (
        "g (float[n] x) => (float[n] y) { y = Round (x) }",
        {"x": floats(2.5, -1.25)},
        {"a half that goes down to even", "a negative number that is not whole"},
    ),
    "levels": (
        "g (float[n] x) => (uint8[n] y) <float s = {0.5}, uint8 z = {3}> "
        "{ y = QuantizeLinear (x, s, z) }",
        {"x": floats(0.75, 200)},
        {"a half that goes up to even", "the highest level, above", "the highest level, below",
         "the lowest level, above"},
    ),
    "a large number": (
        "g (float[n] x) => (int64[n] y) { y = Cast <to = 7> (x) }",
        {"x": floats(70000)},
        {"a number beyond 8 bits", "a number beyond 16 bits", "a whole number"},
    ),
    "a tie": (
        "g (float[n, m] x) => (int64[n] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }",
        {"x": floats(1, 5, 5).reshape(1, 3)},
        {"a tie at the top"},
    ),
    "rows": (
        "g (int64[n] i) => (float[n] y) <float[3] t = {1, 2, 3}> { y = Gather (t, i) }",
        {"i": np.array([0, 2])},
        {'row 0 of "t"', 'row 2 of "t"'},
    ),
    "a last window": (
        "g (float[1, 1, n] x) => (float[1, 1, m] y) "
        "{ y = MaxPool <kernel_shape = [2], strides = [2]> (x) }",
        {"x": np.zeros((1, 1, 5), np.float32)},
        {"a last window of axis 2 that is not whole"},
    ),
    "a size that is cut": (
        "g (float[n] x) => (float[m] y) <int64[1] a = {0}, int64[1] e = {4}> "
        "{ y = Slice (x, a, e) }",
        {"x": np.zeros(5, np.float32)},
        {"size 4, above", "close above size 4"},
    ),
    "a rest": (
        "g (float[n] x) => (int64[1] y) <int64 k = {4}> { s = Shape (x) y = Div (s, k) }",
        {"x": np.zeros(7, np.float32)},
        {"rest 3 of a division by 4"},
    ),
    "a tree": (
        """g (float[n, 2] x) => (float[n, 1] y) { y = ai.onnx.ml.TreeEnsembleRegressor <
          n_targets = 1, nodes_treeids = [0, 0, 0, 0, 0], nodes_nodeids = [0, 1, 2, 3, 4],
          nodes_featureids = [0, 1, 0, 0, 0], nodes_values = [2.0, 3.0, 0.0, 0.0, 0.0],
          nodes_modes = ["BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF"],
          nodes_truenodeids = [1, 3, 0, 0, 0], nodes_falsenodeids = [2, 4, 0, 0, 0],
          target_treeids = [0, 0, 0], target_nodeids = [2, 3, 4], target_ids = [0, 0, 0],
          target_weights = [1.0, 2.0, 3.0]> (x) }""",
        {"x": floats(2.004, 3.0).reshape(1, 2)},
        {"close above 2 (node 0)"},
    ),
    "in a body": (
        """g (int64 n, float[k] x) => (float[k] y) <float one = {1}> {
          y = Loop (n, "", x) <body = b (int64 i, bool c, float[k] s) => (bool d, float[k] t) {
            d = Identity (c) t = Min (s, one) }> }""",
        {"n": np.array(3), "x": floats(1.001)},
        {"1, above", "close above 1", "an odd number of iterations", "equal: 1"},
    ),
    "in a branch": (
        """g (bool c, float[k] x) => (float[k] y) <float one = {1}> {
          y = If (c) <then_branch = t () => (float[k] a) { a = Min (x, one) },
                      else_branch = e () => (float[k] b) { b = Max (x, one) }> }""",
        {"c": np.array(True), "x": floats(0.5)},
        {"1, below"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("suffix", "engine"), [(".onnx", OnnxRuntime), (".xml", OpenVino)])
@pytest.mark.parametrize("name", MEASURED)
def test_a_run_says_what_it_met(
    name: str, suffix: str, engine: type[Engine], tmp_path: Path
) -> None:
    text, feed, expected = MEASURED[name]
    surgery = Surgery(bridge.load(parsed(text)))
    situations = surgery.watch(sources=sources_of(surgery))
    bridge.convert(surgery.model, tmp_path / f"m{suffix}")
    far = distances(engine().load(tmp_path / f"m{suffix}").run(feed), situations)
    assert {one.text for one, d in zip(situations, far, strict=True) if not d} == expected


def test_what_depends_on_constants_and_fixed_sizes_has_no_situations() -> None:
    surgery = Surgery(bridge.load(parsed(
        "g (float[4] x) => (float[4] y, bool[1] z) <int64 k = {3}> "
        "{ s = Shape (x) z = Less (s, k) y = Neg (x) }"
    )))  # fmt: skip
    assert surgery.watch(sources=sources_of(surgery)) == []


PLANTED = {
    "height for width": (
        "g (float[1, 2, h, w] x) => (float[1, 2, h, w] y) {"
        "s = Shape <start = 2, end = 3> (x) f = Cast <to = 1> (s) y = Div (x, f) }",
        ("<start = 2, end = 3>", "<start = 3, end = 4>"),
    ),
    "the last window": (
        "g (float[1, 1, n] x) => (float[1, 1, m] y) "
        "{ y = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = 0> (x) }",
        ("ceil_mode = 0", "ceil_mode = 1"),
    ),
    "a cut beyond 512": (
        "g (float[b, n] x) => (float[b, m] y) <int64[1] a = {0}, int64[1] e = {1000}, "
        "int64[1] one = {1}> { y = Slice (x, a, e, one) }",
        ("{1000}", "{999}"),
    ),
    "a norm": (
        "g (float[n, 4] x) => (float[n, 4] y) <float k = {100}> { r = ReduceL2 <keepdims = 0> (x) "
        "c = Greater (r, k) y = If (c) <then_branch = t () => (a) { a = Neg (x) }, "
        "else_branch = e () => (b) { b = Identity (x) }> }",
        ("{100}", "{101}"),
    ),
    "an integer sum": (
        "g (int64[n] x) => (int64[n] y) <int64 k = {10}> { r = ReduceSum <keepdims = 0> (x) "
        "c = Greater (r, k) y = If (c) <then_branch = t () => (a) { a = Neg (x) }, "
        "else_branch = e () => (b) { b = Identity (x) }> }",
        ("Greater", "GreaterOrEqual"),
    ),
    "a far bound": (
        "g (float[n] x) => (float[n] y) <float k = {-1000}, float m = {1000}, float t = {3}> "
        "{ z = Mul (x, t) y = Clip (z, k, m) }",
        ("{1000}", "{1020}"),
    ),
    "a threshold of a softmax": (
        "g (float[n, 4] x) => (float[n, 4] y) <float k = {0.9}, float zero = {0}> "
        "{ s = Softmax (x) c = Greater (s, k) y = Where (c, s, zero) }",
        ("{0.9}", "{0.91}"),
    ),
    "a narrow integer": (
        "g (float[n] x) => (int64[n] y) <int64 k = {1000}> { z = Cast <to = 7> (x) "
        "y = Div (z, k) }",
        ("z = Cast <to = 7> (x)", "u = Cast <to = 6> (x) z = Cast <to = 7> (u)"),
    ),
    "the last row": (
        "g (int64[n] i) => (float[n] y) <float[100] t = {" + ", ".join(map(str, range(100))) + "}, "
        "int64 k = {99}> { j = Min (i, k) y = Gather (t, j) }",
        ("k = {99}", "k = {98}"),
    ),
    "a tie": (
        "g (float[n, 6] x) => (int64[n] y) { f = Floor (x) "
        "y = ArgMax <axis = 1, keepdims = 0, select_last_index = 0> (f) }",
        ("select_last_index = 0", "select_last_index = 1"),
    ),
    "many iterations": (
        "g (int64 n, float[k] x) => (float[k] y) <int64 h = {100}, float e = {0.8}> { "
        'y = Loop (n, "", x) <body = b (int64 i, bool c, float[k] s) => (bool d, float[k] t) { '
        "d = Identity (c) m = Mod (i, h) f = Cast <to = 1> (m) a = Mul (s, e) t = Add (a, f) }> }",
        ("{100}", "{1000}"),
    ),
    "a sum that is equal": (
        "g (float[n] p) => (float s) <float one = {1}, int64 most = {50}, float z = {0}, "
        "bool yes = {1}, int64 first = {1}> { s = Loop (most, yes, z) <body = b (int64 i, bool c, "
        "float u) => (bool d, float v) { n = Size (p) l = Sub (n, first) j = Min (i, l) "
        "e = Gather (p, j) a = Abs (e) v = Add (u, a) d = LessOrEqual (v, one) }> }",
        ("LessOrEqual", "Less"),
    ),
    "an overlap": (
        "g (float[1, n, 4] b, float[1, 1, n] x) => (int64[m, 3] y) <int64 k = {10}, "
        "float o = {0.5}, float t = {0.3}> { s = Sigmoid (x) "
        "y = NonMaxSuppression (b, s, k, o, t) }",
        ("{0.5}", "{0.505}"),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str) -> None:
    text, (right, wrong) = PLANTED[name]
    assert right in text
    report = check(parsed(text), parsed(text.replace(right, wrong)))
    assert report.different, str(report)


def test_the_first_line_names_sides_of_conditions() -> None:
    source = parsed(
        "g (float[n] x) => (float[n] y) <float zero = {0}> "
        "{ a = Abs (x) c = Less (a, zero) y = Where (c, zero, x) }"
    )
    first, *_ = str(check(source, source)).splitlines()
    assert first.endswith(", but 1 of 2 sides of conditions not shown")


def test_a_report_says_what_was_not_met() -> None:
    source = parsed(
        "g (float[n] x) => (float[n] y, bool[n] z) <float k = {2}, float zero = {0}> "
        "{ a = Abs (x) z = Less (a, zero) y = Min (x, k) }"
    )
    report = check(source, source)
    assert report.ok
    missing = [str(one) for one in report.inputs.unmet]
    assert missing == ['Less "z": 0, below'], str(report)
    assert "; not seen: 1 side of a comparison" in str(report)
    assert 'Less "z": 0, below' in report.details()
    texts = [one["text"] for one in report.as_json()["situations"] if one["input"] is None]
    assert texts == ["0, below"]
