"""`bridge.check`: engines, comparison, inputs, branch coverage, bisection, and the whole check."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import openvino
import openvino.opset13 as ov
import pytest
from onnx import helper

import bridge
from bridge.check import CheckReport, check, seek
from bridge.check.compare import compare
from bridge.check.engines import (
    Engine,
    EngineError,
    OnnxRuntime,
    OpenVino,
    Reference,
)
from bridge.check.engines.remote import RemoteSession
from bridge.check.engines.sessions import Sessions
from bridge.check.inputs import Recipe, make_inputs
from bridge.check.inputs.sizes import Demands
from bridge.check.surgery.sites import sites_of
from bridge.check.surgery.surgery import Surgery
from bridge.check.surgery.watching import all_taken
from bridge.errors import InvalidModelError, UsageError
from tests.support.reports import feeds_of, whole_feeds_of

GATE = """
<ir_version: 9, opset_import: ["" : 18]>
gate (float[N,4] x, int64 mode) => (float[N,4] y) {
  seven = Constant<value = int64 {7}>()
  is_seven = Equal(mode, seven)
  positive = Relu(x)
  sum = ReduceSum<keepdims=0>(x)
  big = Constant<value = float {1e6}>()
  is_big = Greater(sum, big)
  inner = If (is_seven) <
    then_branch = a () => (float[N,4] t) {
      t = If (is_big) <
        then_branch = b () => (float[N,4] p) { p = Exp(positive) },
        else_branch = c () => (float[N,4] q) { q = Neg(positive) }>
    },
    else_branch = d () => (float[N,4] u) { u = Add(positive, positive) }>
  y = Abs(inner)
}
"""

LOOP = """
<ir_version: 9, opset_import: ["" : 18]>
loop (float[4] x, int64 n) => (float[4] y, float[K,4] every) {
  yes = Constant<value = bool {1}>()
  y, every = Loop (n, yes, x) <body = body (int64 i, bool going, float[4] v)
      => (bool still, float[4] w, float[4] copy) {
    two = Constant<value = int64 {2}>()
    zero = Constant<value = int64 {0}>()
    rest = Mod(i, two)
    is_even = Equal(rest, zero)
    w = If (is_even) <
      then_branch = a () => (float[4] t) { t = Mul(v, v) },
      else_branch = b () => (float[4] u) { u = Add(v, x) }>
    copy = Identity(w)
    still = Identity(going)
  }>
}
"""

# The condition compares a square with -1, which no input makes true.
NEVER = """
<ir_version: 9, opset_import: ["" : 18]>
never (float[3] x) => (float[3] y) {
  square = Mul(x, x)
  sum = ReduceSum<keepdims=0>(square)
  minus = Constant<value = float {-1}>()
  below = Less(sum, minus)
  y = If (below) <
    then_branch = a () => (float[3] t) { t = Exp(x) },
    else_branch = b () => (float[3] u) { u = Neg(x) }>
}
"""


def saved(text: str, path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def identity(dtype: np.dtype, opset: int = 25) -> onnx.ModelProto:
    element = helper.np_dtype_to_tensor_dtype(dtype)
    infos = [helper.make_tensor_value_info(name, element, [5]) for name in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g", *[[i] for i in infos]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
COMMON = ["bool", "float16", "float32", "float64", *INTEGERS]
SMALL = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]


def values(dtype: str) -> np.ndarray:
    return np.array([1, 0, 1, 0, 1]).astype(np.dtype(dtype))


@pytest.mark.parametrize("engine", [OnnxRuntime, OpenVino, Reference])
@pytest.mark.parametrize("dtype", [*COMMON, *SMALL])
def test_engines_take_and_give_every_type(engine: type[Engine], dtype: str) -> None:
    session = engine().load(identity(np.dtype(dtype)))
    (result,) = session.run({"x": values(dtype)}).values()
    assert result.dtype == np.dtype(dtype)
    assert compare(values(dtype), result, 0, 0).ok


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn", "float8_e8m0fnu", "uint2"])
def test_openvino_takes_and_gives_packed_types(dtype: str, tmp_path: Path) -> None:
    if dtype == "float8_e8m0fnu":
        array = np.array([1, 2, 4, 0.5, 1], np.float32).astype(ml_dtypes.float8_e8m0fnu)
    else:
        array = values(dtype)
    bridge.convert(identity(np.dtype(dtype)), tmp_path / "m.xml")
    session = OpenVino().load(tmp_path / "m.xml")
    (result,) = session.run({"x": array}).values()
    assert result.dtype == array.dtype and (result == array).all()


def test_strings_go_through_onnxruntime() -> None:
    array = np.array(["a", "", "Straße", "b", "c"], dtype=object)
    (result,) = OnnxRuntime().load(identity(np.dtype(object))).run({"x": array}).values()
    assert result.tolist() == array.tolist()


def test_a_missing_input_is_named() -> None:
    session = OnnxRuntime().load(identity(np.dtype("float32")))
    with pytest.raises(EngineError, match="input 'x' is not among the feeds: z"):
        session.run({"z": values("float32")})


def test_compare_knows_nan_and_infinity() -> None:
    array = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    assert compare(array, array.copy(), 0, 0).ok
    difference = compare(array, np.array([1, np.inf, np.inf, np.nan], np.float32), 1, 1)
    assert (difference.ok, difference.wrong, difference.absolute) == (False, 3, np.inf)


def test_compare_counts_units_in_the_last_place() -> None:
    one = np.float32(1)
    above = np.nextafter(one, np.float32(2))
    difference = compare(np.array([one, 8], np.float32), np.array([above, 8], np.float32), 0, 0)
    assert difference.ulp == 1 and difference.worst == (0,)


@pytest.mark.parametrize(
    ("expected", "actual", "problem"),
    [
        (np.zeros(2), np.zeros(2, np.float32), "type float32, expected float64"),
        (np.zeros((2, 1)), np.zeros(2), r"shape \[2\], expected \[2, 1\]"),
        ([np.zeros(2)], [], "length 0, expected 1"),
        (None, np.zeros(2), "has a value, expected none"),
        ([np.zeros(2)], [np.zeros(3)], r"element 0: shape \[3\], expected \[2\]"),
    ],
)
def test_compare_says_what_cannot_be_compared(
    expected: object, actual: object, problem: str
) -> None:
    difference = compare(expected, actual, 1, 1)
    assert not difference.ok
    assert re.search(problem, difference.problem)


def test_compare_is_exact_for_64_bit_integers() -> None:
    assert not compare(np.array(2**63 - 1), np.array(2**63 - 2), 0, 0).ok


def test_inputs_share_symbols_and_stay_in_range() -> None:
    model = bridge.load(
        onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18]>
        g (float[N,3] x, int64[M] i, float[N,M] z) => (float[?,?] y) {
          picked = Gather<axis = 1>(x, i)
          y = Add(picked, z)
        }""")
    )
    for seed in range(20):
        made = make_inputs(model, Recipe(seed))
        assert made["x"].shape[0] == made["z"].shape[0]
        assert made["i"].shape[0] == made["z"].shape[1]
        assert made["i"].min() >= 0 and made["i"].max() < 3
    again = make_inputs(model, Recipe(19))
    assert all((made[name] == again[name]).all() for name in made)


@pytest.mark.parametrize(
    "table",
    ["table = Identity (w)", "wide = Cast <to = 1> (u) table = Mul (wide, scale)"],
    ids=["floats", "8 bits"],
)
def test_a_mask_has_the_sizes_of_its_token_ids(table: str) -> None:
    """With an open size for each, as an IR has them. The table may be stored in few bits."""
    model = bridge.load(
        onnx.parser.parse_model(f"""
        <ir_version: 9, opset_import: ["" : 18]>
        g (int64[?,?] ids, int64[?,?] mask) => (float[?,?,2] y, int64[?] z)
        <float[3,2] w = {{1, 2, 3, 4, 5, 6}}, uint8[3,2] u = {{1, 2, 3, 4, 5, 6}},
         float scale = {{2}}> {{ {table} y = Gather (table, ids) z = ReduceSum (mask) }}""")
    )
    Demands.of(model)
    ids, mask = model.graph.inputs
    assert ids.shape == mask.shape and all(isinstance(dim, str) for dim in ids.dims)


def test_what_is_taken_from_one_is_a_mask() -> None:
    model = bridge.load(
        onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18]>
        g (int64[N,M] mask, float[N,M] gate) => (float[N,M] y)
        <float one = {1}, int64[1] at = {1}> {
          apart = Unsqueeze (mask, at) wide = Cast <to = 1> (apart) less = Sub (one, wide)
          open = Sub (one, gate) y = Add (less, open)
        }""")
    )
    for seed in range(5):
        made = make_inputs(model, Recipe(seed, {"N": 4, "M": 4}))
        assert set(np.unique(made["mask"])) == {0, 1}
        assert not set(np.unique(made["gate"])) <= {0, 1}


def test_lengths_that_are_sorted_stay_within_the_sequence() -> None:
    """PyTorch sorts the lengths of what it packs."""
    model = bridge.load(
        onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 18]>
        g (float[T,N,2] x, int64[N] lengths, float[1,9,2] w, float[1,9,3] r) => (float[?,?,?,?] y) {
          count = Shape(lengths)
          sorted, places = TopK(lengths, count)
          each = Cast<to = 6>(sorted)
          y, last = GRU<hidden_size = 3>(x, w, r, , each)
        }""")
    )
    for seed in range(20):
        made = make_inputs(model, Recipe(seed))
        assert made["lengths"].min() >= 1 and made["lengths"].max() <= len(made["x"])


def test_a_recipe_fixes_sizes_and_values() -> None:
    model = bridge.load(onnx.parser.parse_model(GATE))
    made = make_inputs(model, Recipe(0, {"N": 7}, {"mode": 5}))
    assert made["x"].shape == (7, 4) and made["mode"] == 5


def test_sites_name_their_place() -> None:
    sites = list(sites_of(bridge.load(onnx.parser.parse_model(GATE))).values())
    assert [site.where for site in sites] == [
        'graph / If "inner"',
        'graph / If "inner" / then_branch / If "t"',
    ]
    assert sites[1].parents == ((0, True),)


@pytest.mark.parametrize(("suffix", "engine"), [(".onnx", OnnxRuntime), (".xml", OpenVino)])
def test_switches_steer_nested_ifs(suffix: str, engine: type[Engine], tmp_path: Path) -> None:
    model = bridge.load(onnx.parser.parse_model(GATE))
    outer, inner = sites_of(model).values()
    surgery = Surgery(model)
    surgery.switch([0, 1])
    surgery.watch()
    bridge.convert(surgery.model, tmp_path / f"m{suffix}")
    session = engine().load(tmp_path / f"m{suffix}")
    x = np.ones((2, 4), np.float32)
    for chosen, expected in [((0, 1), 2.0), ((1, 1), np.e), ((1, 0), 1.0), ((-1, -1), 2.0)]:
        switches = dict(zip((outer.switch, inner.switch), np.array(chosen, np.int32), strict=True))
        results = session.run({"x": x, "mode": np.array(3), **switches})
        assert np.allclose(results["y"], expected)
        wanted = {(0, chosen[0] == 1), *([(1, chosen[1] == 1)] if chosen[0] == 1 else [])}
        assert all_taken(results, (outer, inner)) == wanted


@pytest.mark.parametrize("text", [GATE, LOOP])
def test_every_branch_is_reached_and_equal(text: str, tmp_path: Path) -> None:
    report = check(saved(text, tmp_path / "m.onnx"))
    assert report.ok, str(report)
    assert len(report.branches.reached) == len(report.branches.all) > 0
    assert {result.label for result in report.verdict.results} == {"ONNX → IR", "ONNX → IR → ONNX"}


def test_a_branch_that_no_input_reaches_is_forced(tmp_path: Path) -> None:
    report = check(saved(NEVER, tmp_path / "m.onnx"), budget=50)
    assert report.ok, str(report)
    assert report.branches.reached.keys() == {(0, False)}
    assert report.branches.forced[0, True].given is not None
    assert "then: forced, equal" in report.details()


def test_a_wrong_branch_is_found_even_where_no_input_reaches_it(tmp_path: Path) -> None:
    right = saved(NEVER, tmp_path / "m.onnx")
    bridge.convert(onnx.parser.parse_model(NEVER.replace("Exp(x)", "Abs(x)")), tmp_path / "m.xml")
    report = check(right, tmp_path / "m.xml", budget=50)
    assert not report.ok and all(result.ok for result in report.verdict.results)
    assert report.branches.forced[0, True].wrong and "forced, DIFFERENT" in str(report)


def test_a_difference_is_traced_to_the_first_value(tmp_path: Path) -> None:
    right = saved(GATE, tmp_path / "m.onnx")
    bridge.convert(onnx.parser.parse_model(GATE.replace("Relu", "Sigmoid")), tmp_path / "m.xml")
    report = check(right, tmp_path / "m.xml")
    assert not report.ok
    assert "the first value that differs is 'positive'" in str(report)


@pytest.mark.parametrize(
    ("old", "new", "first"),
    [
        (
            "Add(positive, positive)",
            "Mul(positive, positive)",
            "'u', which If \"inner\" / else_branch / Add",
        ),
        (
            "Neg(positive)",
            "Sigmoid(positive)",
            '\'q\', which If "inner" / then_branch / If "t" / else_branch / Neg',
        ),
    ],
)
def test_a_difference_is_traced_into_a_branch(
    old: str, new: str, first: str, tmp_path: Path
) -> None:
    right = saved(GATE, tmp_path / "m.onnx")
    bridge.convert(onnx.parser.parse_model(GATE.replace(old, new)), tmp_path / "m.xml")
    report = check(right, tmp_path / "m.xml")
    assert not report.ok
    assert f"the first value that differs is {first}" in str(report)


def test_an_ir_is_checked_against_its_conversion(tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(LOOP), tmp_path / "m.xml")
    report = check(tmp_path / "m.xml")
    assert report.ok, str(report)
    assert {result.label for result in report.verdict.results} == {"IR → ONNX", "IR → ONNX → IR"}


def test_sequences_are_packed_for_the_ir(tmp_path: Path) -> None:
    path = saved(
        """
        <ir_version: 9, opset_import: ["" : 18]>
        g (seq(float[N,2]) s, int64 at) => (float[N,2] y, int64 n) {
          y = SequenceAt(s, at)
          n = SequenceLength(s)
        }""",
        tmp_path / "m.onnx",
    )
    report = check(path)
    assert report.ok, str(report)


def test_an_output_that_is_listed_twice() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] a, float[2] b)
    { a = Neg (x) b = Exp (a) }"""
    model = onnx.parser.parse_model(text)
    model.graph.output.append(model.graph.output[1])
    assert check(model).ok


def test_a_dimension_whose_name_is_no_text(tmp_path: Path) -> None:
    """It is said of the engine that refuses it."""
    model = saved(GATE, tmp_path / "m.onnx")
    model.write_bytes(model.read_bytes().replace(b"\x12\x01N", b"\x12\x01\xff"))
    report = check(model)
    assert not report.compared and "utf-8" in str(report)


def test_an_output_that_is_an_element_of_another(tmp_path: Path) -> None:
    path = saved(
        """
        <ir_version: 9, opset_import: ["" : 18]>
        g (float[N] x) => (float[N] first, seq(float[N]) s, float[N] last, float[N] again) {
          first = Neg(x)
          last = Exp(x)
          again = Identity(last)
          s = SequenceConstruct(first, last, last)
        }""",
        tmp_path / "m.onnx",
    )
    report = check(path)
    assert report.ok, str(report)
    assert {result.output for result in report.verdict.results} == {"first", "s", "last", "again"}


RANDOM = """
<ir_version: 9, opset_import: ["" : 18]>
noise (float[N,8] x) => (float[N,8] y, float[N,8] z) {
  drawn = RandomNormalLike(x)
  y = Add(drawn, x)
  z = Relu(x)
}
"""


def test_random_outputs_are_compared_by_type_and_shape(tmp_path: Path) -> None:
    report = check(saved(RANDOM, tmp_path / "m.onnx"))
    assert report.ok, str(report)
    told = "'y' is random: type and shape alone are compared"
    assert told in str(report).splitlines()[0] and "'y': abs" not in str(report), str(report)
    assert "ONNX → IR, 'y': random" in report.details()
    assert "ONNX → IR, 'z': equal" in report.details()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("z = Relu(x)", "z = Sigmoid(x)", "the first value that differs is 'z'"),
        ("z = Relu(x)", "z = Abs(y)", "'z': DIFFERENT"),
        ("y = Add(drawn, x)", "y = Concat<axis=0>(drawn, x)", "'y': DIFFERENT"),
    ],
)
def test_random_outputs_hide_no_others(old: str, new: str, says: str, tmp_path: Path) -> None:
    right, wrong = saved(RANDOM, tmp_path / "m.onnx"), RANDOM.replace(old, new)
    bridge.convert(
        onnx.parser.parse_model(wrong.replace("float[N,8] y", "float[M,8] y")), tmp_path / "m.xml"
    )
    report = check(right, tmp_path / "m.xml")
    assert report.different and says in str(report), str(report)


def test_what_is_wrong_in_a_first_run_only_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_each, seen = RemoteSession.run_each, set()

    def faulty(self: Any, feeds: Any, fresh: bool = False) -> Any:
        found = run_each(self, feeds, fresh)
        for feed, results in zip(feeds, found if self.keeps else (), strict=self.keeps):
            key = (id(self), *(value.tobytes() for value in feed.values()))
            if key not in seen:
                results["y"] = results["y"] + 1
            seen.add(key)
        return found

    monkeypatch.setattr(RemoteSession, "run_each", faulty)
    report = check(saved(GATE, tmp_path / "m.onnx"))
    assert report.different
    assert "at fault: not known: the difference is not there in every run" in str(report)


HALVES = """
<ir_version: 9, opset_import: ["" : 18]>
halves (float[N,64] x) => (float[N,64] y) {
  h = MatMul(x, w)
  y = MatMul(h, w)
}
"""


@pytest.mark.parametrize("error", [0.0, 1e-2])
def test_weights_in_halves_are_held_to_rounded_ones(error: float, tmp_path: Path) -> None:
    """Without rounding the original the outputs differ by more than the tolerance, with or without
    an error in the weights."""
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    model = onnx.parser.parse_model(HALVES)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    weights[3, 5] *= 1 + error
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weights, "w"))
    bridge.convert(model, tmp_path / "m.xml", compress_to_fp16=True)
    report = check(tmp_path / "m.onnx", tmp_path / "m.xml", rtol=1e-5, atol=1e-4)
    assert report.different == bool(error), str(report)
    assert "the weights of m.onnx are rounded to f16" in str(report)
    assert check(tmp_path / "m.onnx", compress_to_fp16=True, atol=1e-4).ok


def test_names_and_precision_in_the_report_of_an_ir(tmp_path: Path) -> None:
    """An output has the name that `bridge inspect` shows, whatever others its tensor has."""
    xml = tmp_path / "m.xml"
    bridge.convert(onnx.parser.parse_model(SCALED), xml)
    xml.write_text(xml.read_text().replace('names="y"', 'names="y,another"', 1))
    report = check(xml)
    assert report.ok and {result.output for result in report.verdict.results} == {"y"}, str(report)
    assert f"original: OpenVINO {OpenVino().version} (f32)" in str(report)


SEQUENCE = """
<ir_version: 9, opset_import: ["" : 18]>
g (seq(float[N,2]) s, int64 at) => (float[N,2] y) { y = SequenceAt(s, at) }
"""


def test_an_ir_of_sequences_is_held_to_its_onnx_model(tmp_path: Path) -> None:
    bridge.convert(onnx.parser.parse_model(SEQUENCE), tmp_path / "m.xml")
    bridge.convert(tmp_path / "m.xml", tmp_path / "back.onnx")
    report = check(tmp_path / "m.xml", tmp_path / "back.onnx")
    assert report.ok, str(report)
    assert (
        "m.xml has inputs that stand for sequences, optionals or strings, so that it is held to "
        in str(report)
    )
    with pytest.raises(UsageError, match="check the ONNX model instead"):
        check(tmp_path / "m.xml")


def test_weights_under_another_name(tmp_path: Path) -> None:
    source, xml = saved(SCALED, tmp_path / "m.onnx"), tmp_path / "m.xml"
    bridge.convert(source, xml)
    weights = xml.with_suffix(".bin").rename(tmp_path / "other.bin")
    for files in ((source, xml), (xml, source), (xml,)):
        assert check(*files, weights=weights).ok
        with pytest.raises(InvalidModelError, match=r"m.bin: the weights cannot be read"):
            check(*files)
    with pytest.raises(UsageError, match="only an IR"):
        check(source, weights=weights)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.xml", "other.bin"]


SCALED = """
<ir_version: 9, opset_import: ["" : 18]>
g (float[N,2] x) => (float[N,2] y) <float[2] w = {2, 3}> { y = Mul(x, w) }
"""


def test_without_onnxruntime_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sessions, "engine", without_onnxruntime)
    assert "(onnxruntime is not installed; " in str(check(saved(GATE, tmp_path / "m.onnx")))
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18, "com.microsoft": 1]> '
        "g (float[2] x) => (float[2] y) { y = com.microsoft.Gelu(x) }"
    )
    onnx.save(model, tmp_path / "m.onnx")
    failures = check(tmp_path / "m.onnx").failures
    assert "pip install 'onnx-openvino-bridge[check]'" in failures[-1]


def without_onnxruntime(self: object, kind: type[Engine], settings: object = None) -> Engine:
    if kind is OnnxRuntime:
        raise EngineError(
            "onnxruntime is not installed; install the extra 'check': "
            "pip install 'onnx-openvino-bridge[check]'"
        )
    return kind()


def test_nothing_is_tried_where_one_version_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seek, "search", lambda *_: pytest.fail("inputs were sought"))
    model = '<ir_version: 9, opset_import: ["": 18, "my": 1]> g (%s) => (%s) { y = my.Foo (x) }'
    (tmp_path / "m.onnx").write_bytes(b"garbage")
    saved(model % ("float x", "float y"), tmp_path / "n.onnx")
    for name in ("m.onnx", "n.onnx"):
        report = check(tmp_path / name)
        assert report.failures and not (report.compared or report.ok or report.different)
        assert str(report).startswith("no engine loads it: ")


HALVED_AND_DOUBLED = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 1, h, w] x) => (float[n, 1, h, w] y)
        <float[4] twice = {1.0, 1.0, 2.0, 2.0},
         float[1, 1, 3, 3] ones = {1, 1, 1, 1, 1, 1, 1, 1, 1}> {
        half = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(x)
        smooth = Conv<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(half, ones)
        quarter = MaxPool<kernel_shape=[2, 2], strides=[2, 2]>(smooth)
        again = Resize<mode="nearest">(quarter, , twice)
        both = Add(again, half)
        full = Resize<mode="nearest">(both, , twice)
        y = Add(full, x)
    }"""


def test_sizes_that_a_network_is_made_for(tmp_path: Path) -> None:
    report = check(saved(HALVED_AND_DOUBLED, tmp_path / "a.onnx"), samples=3)
    assert report.ok
    sizes = {feed["x"].shape[2:] for feed in feeds_of(report)}
    assert (64, 64) in sizes and any(height != width for height, width in sizes)
    assert max(len(feed["x"]) for feed in feeds_of(report)) >= 17


def test_ranges_of_sizes(tmp_path: Path) -> None:
    model = bridge.load(onnx.parser.parse_model(SCALED))
    for low, high in ((7, 9), (2, 2), (0, 0)):
        sizes = {"N": bridge.Interval(low, high)}
        for seed in range(9):
            assert low <= len(make_inputs(model, Recipe(seed, sizes))["x"]) <= high


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rtol": float("nan")}, "rtol is nan"),
        ({"atol": -1}, "atol is -1"),
        ({"rtol": float("inf")}, "rtol is inf"),
        ({"seed": -1}, "`seed` is -1"),
        ({"samples": 0}, "`samples` is 0"),
        ({"sizes": {"foo": 2}}, '"foo" is no open dimension of the inputs; open are N$'),
        ({"sizes": {"x.1": 4}}, '"x.1" is no open dimension of the inputs; open are N$'),
        ({"sizes": {"N": "M"}}, 'the size of "N" must be a number or a range'),
        ({"sizes": {"N": -1}}, "-1 is no dimension"),
        ({"sizes": {"N": 10**12}}, "a check draws up to 268,435,456"),
        ({"opset": 18}, "`opset` is for writing ONNX"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = saved(SCALED, tmp_path / "m.onnx")
    if "opset" in options:
        assert re.search(says, str(check(path, **options)))
        return
    with pytest.raises(UsageError, match=says):
        check(path, **options)


def test_a_tolerance_that_is_no_number_makes_nothing_right() -> None:
    assert not compare(np.ones(1), np.ones(1) * 2, float("nan"), 0).ok


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        check(tmp_path / "none.onnx")


# onnxruntime on the CPU has no GroupNorm, and onnx.reference none of its operators.
GROUP = """
<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (bool f, float[1,3,3,4] x, float[4] s, float[4] c) => (float[1,3,3,4] y) {
  y = If (f) <
    then_branch = t () => (float[1,3,3,4] a) {
      a = com.microsoft.GroupNorm <activation = 0, epsilon = 1e-5, groups = 2> (x, s, c) },
    else_branch = e () => (float[1,3,3,4] b) { b = Identity (x) }>
}
"""


def test_what_no_engine_runs_is_rewritten(tmp_path: Path) -> None:
    path = saved(GROUP, tmp_path / "m.onnx")
    report = check(path)
    assert report.ok and len(report.branches.reached) == 2, str(report)
    assert "original is run as Bridge rewrites it" in str(report).splitlines()[0]
    assert "note: no engine runs original, so that it is run in operators of the" in str(report)
    bridge.convert(onnx.parser.parse_model(GROUP.replace("1e-5", "1.0")), tmp_path / "m.xml")
    assert check(path, tmp_path / "m.xml").different


# Of this one the way back has the same operator, which no engine runs either.
DISTANCES = """
<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (int64 n) => (float[1,h,q,k] y) <float[4,2] table = {1, 2, 3, 4, 5, 6, 7, 8}> {
  y = com.microsoft.RelativePositionBias <max_distance = 6> (table, n, n)
}
"""


def test_what_comes_back_and_no_engine_runs_is_rewritten_too(tmp_path: Path) -> None:
    report = check(saved(DISTANCES, tmp_path / "m.onnx"))
    assert report.ok, str(report)
    for label in ("original", "ONNX → IR → ONNX"):
        assert f"{label} is run as Bridge rewrites it" in str(report).splitlines()[0]


def counting(nodes: str) -> str:
    return f"""
    <ir_version: 9, opset_import: ["" : 18]>
    g (float[N] x) => (int64 y) <int64 one = {{1}}, int64 six = {{6}}> {{ s = Size (x) {nodes} }}
    """


def empty_ones(report: CheckReport) -> list[int]:
    return [n for n, case in enumerate(report.inputs.cases) if 0 in case.recipe.sizes.values()]


@pytest.mark.parametrize(
    ("right", "other", "says"),
    [
        ("y = Add (s, one)", "y = Add (one, s)", "N = 0"),
        ("y = Identity (s)", "y = Max (s, one)", "; m.xml differs with an empty tensor"),
        # onnxruntime divides no integer by 0.
        ("y = Div (six, s)", "y = Div (six, s)", ""),
    ],
)
def test_inputs_without_elements(right: str, other: str, says: str, tmp_path: Path) -> None:
    """They are compared, too; what differs with them alone is told in the first line."""
    bridge.convert(onnx.parser.parse_model(counting(other)), tmp_path / "m.xml")
    report = check(saved(counting(right), tmp_path / "m.onnx"), tmp_path / "m.xml")
    assert report.ok and says in report.details(), report.details()
    last = len(report.inputs.cases) - 1
    assert empty_ones(report) == ([last] if says else [])


def test_what_takes_no_elements_but_none_is_compared(tmp_path: Path) -> None:
    path = saved(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,k] x) => (float[2,3] y) <float[0,3] w = {}> { y = MatMul (x, w) }""",
        tmp_path / "m.onnx",
    )
    report = check(path, budget=50)
    assert report.ok and len(empty_ones(report)) == len(feeds_of(report)) >= 4, str(report)


def test_a_version_that_takes_no_empty_input(tmp_path: Path) -> None:
    right = saved(counting("y = Identity (s)"), tmp_path / "m.onnx")
    other = saved(counting("t = Mul (s, s) y = Div (t, s)"), tmp_path / "divides.onnx")
    report = check(right, other)
    assert report.ok and empty_ones(report) == [len(report.inputs.cases) - 1], str(report)
    assert "; divides.onnx fails with an empty tensor" in str(report).splitlines()[0], str(report)


def test_a_run_that_never_ends_is_ended_and_said_so() -> None:
    """The Loop counts down from 9 by steps of `w`."""
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
g (int64 w) => (int64 y) {
  nine = Constant<value = int64 {9}>()
  none = Constant<value = int64 {0}>()
  true = Constant<value = bool {1}>()
  y = Loop (, true, nine) <body = b (int64 i, bool c, int64 s) => (bool more, int64 t) {
    t = Sub(s, w)
    more = Greater(t, none)
  }>
}""")
    session = Sessions().engine(OnnxRuntime).load(model)
    assert session.run({"w": np.array(4)})["y"] == -3
    with pytest.raises(EngineError, match="did not end within 5 s"):
        session.run({"w": np.array(0)})
    assert session.run({"w": np.array(2)})["y"] == -1


@pytest.mark.parametrize("planes", [2, 3])
def test_planes_of_colours_are_half_as_high_and_wide(planes: int, tmp_path: Path) -> None:
    """OpenVINO takes others, and reads what lies behind them."""
    names, depth = ("y", "u", "v")[:planes], 4 - planes
    inputs = [
        ov.parameter([-1, -1, -1, depth if name != "y" else 1], np.uint8, name) for name in names
    ]
    for name, value in zip(names, inputs, strict=True):
        value.output(0).set_names({name})
    rgb = (ov.nv12_to_rgb if planes == 2 else ov.i420_to_rgb)(*inputs)
    openvino.save_model(openvino.Model([rgb], inputs), tmp_path / "a.xml")
    report = check(tmp_path / "a.xml", samples=3)
    # Of so many colours, some lie between two bytes.
    assert not report.failures and all(
        r.difference.absolute <= 1 for r in report.verdict.results
    ), str(report)
    taken = whole_feeds_of(report)
    assert len(taken) >= 3 and all(x["y"].shape[1] == 2 * x["u"].shape[1] for x in taken)


def test_an_ir_that_openvino_does_not_load_is_named(tmp_path: Path) -> None:
    text = '<ir_version: 9, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Neg (x) }'
    one = saved(text, tmp_path / "m.onnx")
    bridge.convert(one, tmp_path / "m.xml")
    wrong = (tmp_path / "m.xml").read_text().replace('type="Negative"', 'type="Nogative"')
    (tmp_path / "n.xml").write_text(wrong)
    (tmp_path / "n.bin").write_bytes(b"")
    report = check(one, tmp_path / "n.xml")
    assert str(report).startswith("no engine loads n.xml: "), str(report)
    assert report.as_json()["verdict"] == "nothing compared"


def test_outputs_of_a_cut_are_compared_with_inner_values(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["": 18]> g (float[3] x) => (float[3] y, float[3] z)
        { w = Exp (x) v = Relu (x) y = Neg (w) z = Neg (v) }"""
    whole = saved(text, tmp_path / "m.onnx")
    bridge.convert(whole, tmp_path / "cut.xml", outputs=["v", "w"])
    told = "compared are inner values of m.onnx: v, w"
    for files in ((whole, tmp_path / "cut.xml"), (tmp_path / "cut.xml", whole)):
        report = check(*files)
        assert report.ok and told in str(report).splitlines()[0], str(report)
    wrong = saved(text.replace("Exp", "Abs"), tmp_path / "wrong.onnx")
    assert check(wrong, tmp_path / "cut.xml").different
    # Outputs that share a name are compared by name, and others are told.
    renamed = saved(text.replace(" z", " q"), tmp_path / "renamed.onnx")
    line = str(check(whole, renamed)).splitlines()[0]
    assert "output 'z' is only in m.onnx" in line and line.startswith("OK: ")
    swapped = text.replace(" y", " q").replace(" z", " r")
    assert check(whole, saved(swapped, tmp_path / "swapped.onnx")).ok


@pytest.mark.parametrize("batch", ["1", "n"])
def test_sizes_that_are_fixed_are_taken_as_they_are(batch: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 9, opset_import: ["": 18]> g (float[{batch},3,1200,1201] x)
        => (float[{batch},1,600,601] y) <float[1,3,1,1] w = {{1, 2, 3}}>
        {{ y = Conv <strides = [2, 2]> (x, w) }}"""
    report = check(saved(text, tmp_path / "m.onnx"), quick=True, samples=1)
    assert report.ok, str(report)


def test_a_limit_of_memory_is_said(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["": 18]> g (float[n,100000,10000] x) => (float[m] y)
        { y = ReduceMax <keepdims = 0> (x) }"""
    with pytest.raises(UsageError, match="a check draws up to 268,435,456"):
        check(saved(text, tmp_path / "m.onnx"))
