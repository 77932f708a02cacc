"""Inputs of a check reach late iterations, large sizes, whole types, and what a model compares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx.parser
import openvino as ov
import pytest

import bridge
from bridge.check import check
from bridge.check.inputs import Maker, Recipe
from bridge.check.inputs.recipe import Case
from bridge.check.inputs.sizes import Demands
from tests.support.reports import feeds_of

HEAD = '<ir_version: 8, opset_import: ["" : 18]> '
TABLE = "float[20] t = {" + ", ".join("0" * 20) + "}, "
ONES = "int64 zero = {0}, int64 one = {1}, int64 three = {3}, int64 last = {19}"


def model(text: str) -> bridge.Model:
    return bridge.load(onnx.parser.parse_model(HEAD + text))


ARITHMETIC = {
    "j = Sub (i, one)": (1, 20),
    "j = Sub (last, i)": (0, 19),
    "j = Neg (i)": (-19, 0),
    "j = Mul (i, three)": (0, 6),
    "j = Div (i, three)": (0, 59),
    "c = Less (i, zero) a = Sub (i, one) j = Where (c, one, a)": (1, 20),
    "a = Max (i, zero) j = Min (a, last)": (-16, 35),
    "j = Add (i, k)": (0, 9),
}


@pytest.mark.parametrize("body", ARITHMETIC)
def test_indices_stay_in_the_table_behind_arithmetic(body: str) -> None:
    made = Maker(
        model(
            f"g (int64[n] i, int64[n] k) => (float[n] y) <{TABLE} {ONES}> "
            f"{{ {body} y = Gather (t, j) }}"
        )
    ).make(Recipe(sizes={"n": 500}))
    lowest, highest = ARITHMETIC[body]
    assert lowest <= made["i"].min() <= lowest + 1 and highest - 1 <= made["i"].max() <= highest


MASKS = {
    "taken from one": "w = Cast <to = 1> (m) n = Sub (one, w) b = Mul (n, low) s = Add (x, b)",
    "compared": "c = Equal (m, none) s = Where (c, low, x)",
    "cast": "c = Cast <to = 9> (m) s = Where (c, x, low)",
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_keeps_a_key(name: str) -> None:
    made = Maker(
        model(
            "g (int64[a, b] m, float[a, b] x) => (float[a, b] y) <float one = {1}, "
            f"float low = {{-3.4e38}}, int64 none = {{0}}> {{ {MASKS[name]} y = Softmax (s) }}"
        )
    )
    for fills in ({}, {"m": 0.0}, {"m": -4503599627370495.0}):
        mask = made.make(Recipe(sizes={"a": 30, "b": 3}, fills=fills))["m"]
        assert set(np.unique(mask)) <= {0, 1} and mask.any(1).all()


def test_bytes_have_their_whole_range_and_others_their_ends() -> None:
    made = Maker(
        model(
            "g (uint8[n] b, int64[n] i) => (uint8[n] y, int64[n] z) "
            "{ y = Identity (b) z = Transpose (i) }"
        )
    )
    usual, ends = (made.make(Recipe(sizes={"n": 2000}, numbers=n)) for n in ("usual", "ends"))
    assert (usual["b"].min(), usual["b"].max()) == (0, 255)
    assert abs(usual["i"]).max() <= 100
    assert (ends["i"].min(), ends["i"].max()) == (-(2**63), 2**63 - 1)


@pytest.mark.parametrize(("body", "nan"), [("y = Less (x, z)", True), ("y = Max (x, z)", False)])
def test_what_is_compared_gets_nan_where_engines_agree(body: str, nan: bool) -> None:
    kind = "bool" if nan else "float"
    text = f"g (float[n] x, float[n] z, float[n] w) => ({kind}[n] y, float[n] v) "
    maker = Maker(model(f"{text} {{ {body} v = Neg (w) }}"))
    special = maker.make(Recipe(sizes={"n": 40}, numbers="special"))
    assert np.isnan(special["x"]).any() == nan and not np.isnan(special["w"]).any()
    marked = maker.make(Recipe(sizes={"n": 40}, numbers="marked"))
    assert all(np.signbit(x[x == 0]).any() and not np.isnan(x).any() for x in marked.values())


LIMITS = {
    "b = Less (x, k) y = Where (b, x, z)": {-0.25, 0.25},
    "y = Clip (x, z0, k)": {0.25, 0.0},
    "a = Abs (x) b = Less (a, k) y = Where (b, z, x)": {0.25, -0.125},
    "r = ReduceMax (x) b = Equal (r, k) y = Where (b, x, z)": {0.25},
    """c = Constant <value_int = 1> () t = Cast <to = 9> (c) s = Scan <num_scan_inputs = 1, body =
    b (float p) => (float q) { q = Min (p, k) }> (x) y = Add (s, z)""": {0.25, 0.5},
}


@pytest.mark.parametrize("body", LIMITS)
def test_inputs_have_the_numbers_that_a_model_compares_with(body: str) -> None:
    """Also those that the other file alone compares with."""
    text = "g (float[n] x, float[n] z) => (float[n] y) <float k = {0.25}, float z0 = {0}> "
    with_limits, without = model(f"{text} {{ {body} }}"), model(f"{text} {{ y = Add (x, z) }}")
    for maker in (Maker(with_limits), Maker(without, twin=with_limits)):
        found = maker.make(Recipe(sizes={"n": 40}, numbers="marked"))["x"]
        assert LIMITS[body] <= set(found.tolist())


def test_a_number_that_is_rounded_before_it_is_compared_is_no_limit() -> None:
    found = Maker(
        model(
            "g (float[n] x) => (bool[n] y) <float k = {0.3}, float w = {0.7}> "
            "{ a = Mul (x, w) y = Less (a, k) }"
        )
    ).make(Recipe(sizes={"n": 40}, numbers="marked"))["x"]
    near = np.abs(found * np.float32(0.7) - np.float32(0.3)) / 0.3
    assert near.min() < 0.02 and not (near < 0.001).any()


def test_a_float_that_divides_is_no_integer() -> None:
    made = Maker(model("g (float[n] x) => (float[n] y) { y = Div (x, x) }")).make(
        Recipe(sizes={"n": 40})
    )["x"]
    assert (made < 0).any() and (made % 1 != 0).all()


def test_an_input_of_a_small_table_chooses_all_rows() -> None:
    source = onnx.parser.parse_model(
        HEAD
        + """g (int64[1, n] i) => (float[1, n, 2] y) <float[200, 2] t = {"""
        + ", ".join(map(str, range(400)))
        + "}> { y = Gather (t, i) }"
    )
    assert any(set(range(200)) <= set(feed["i"].reshape(-1)) for feed in feeds_of(check(source)))


def test_a_large_input_runs_a_loop_often() -> None:
    source = onnx.parser.parse_model(
        HEAD
        + """g (int64 n, float[m] x) => (float[m] y) {
          y = Loop (n, "", x) <body = b (int64 i, bool c, float[m] s) => (bool d, float[m] t) {
            d = Identity (c) t = Neg (s) }> }"""
    )
    report = check(source)
    assert report.ok and max(feed["n"] for feed in feeds_of(report)) >= 10
    assert max(feed["x"].size for feed in feeds_of(report)) >= 17


def test_a_loop_that_ends_itself_runs_often() -> None:
    source = onnx.parser.parse_model(
        HEAD
        + """g (int64 stop) => (int64 k) <int64 zero = {0}, int64 one = {1}> {
          starts = Less (zero, stop)
          k = Loop ("", starts, zero) <body = b (int64 i, bool c, int64 s) => (bool d, int64 t) {
            t = Add (s, one) d = Less (t, stop) }> }"""
    )
    report = check(source, timeout=5)
    assert report.ok and any(feed["stop"] >= 10 for feed in feeds_of(report)), str(report)


@pytest.mark.parametrize("rows", [8, 100])
def test_sizes_grow_until_the_model_takes_them(rows: int) -> None:
    source = onnx.parser.parse_model(
        HEAD
        + f"""g (float[1, 3, h, w] x) => (float[1, 3, a, b] y) {{
          y = AveragePool <kernel_shape = [{rows}, 1]> (x) }}"""
    )
    report = check(source)
    assert report.ok and feeds_of(report), str(report)
    assert min(feed["x"].shape[2] for feed in feeds_of(report) if feed["x"].size) >= rows


@pytest.mark.parametrize("gates", [3, 4])
def test_a_recurrent_layer_demands_the_columns_of_its_weights(gates: int, tmp_path: Path) -> None:
    ops, rng = ov.opset13, np.random.default_rng(0)
    x = ops.parameter(ov.PartialShape([-1, -1, -1]), np.float32, name="x")
    batch, length = (ops.gather(ops.shape_of(x), np.array([k]), np.int64(0)) for k in (0, 1))
    state = ops.broadcast(np.float32(0), ops.concat([batch, np.array([2]), np.array([3])], 0))
    sizes = (2, gates * 3, 5), (2, gates * 3, 3), (2, 12)
    weights = [rng.normal(size=size).astype(np.float32) for size in sizes]
    lengths = ops.broadcast(length, batch)
    if gates == 4:
        layer = ops.lstm_sequence(x, state, state, lengths, *weights, 3, "bidirectional")
    else:
        layer = ops.gru_sequence(
            x, state, lengths, *weights, 3, "bidirectional", linear_before_reset=True
        )
    ov.save_model(ov.Model([layer.output(0)], [x]), tmp_path / "m.xml", False)
    assert Demands.of(bridge.load(tmp_path / "m.xml")).sizes == {"x.2": 5}


def test_extreme_is_what_the_search_chose_alone() -> None:
    feeds = {"x": np.full(2, 1e6, np.float32)}
    assert Case(Recipe(fills={"x": 1e6}), feeds, {}).is_extreme
    assert not Case(Recipe(fills={"x": 1e6}, given=frozenset({"x"})), feeds, {}).is_extreme
    assert not Case(Recipe(), feeds, {}).is_extreme


ROUNDED = {
    "y = Round (x)": {0.5, 1.5, 2.5},
    "q = QuantizeLinear (x, k, z) y = DequantizeLinear (q, k, z)": {0.125, 0.375, 29.75, -34.0},
}


@pytest.mark.parametrize("body", ROUNDED)
def test_halves_are_rounded_and_quantisation_reaches_its_ends(body: str) -> None:
    text = "g (float[n] x) => (float[n] y) <float k = {0.25}, int8 z = {8}> "
    marks = model(f"{text} {{ {body} }}")
    maker = Maker(marks)
    assert ROUNDED[body] <= set(maker.uses[maker.values[0]].marks)


def test_one_engine_takes_wide_integers_and_nan_in_both_files() -> None:
    product = model("g (int64[n] i, float[n] x) => (int64[n] y, float[n] z) "
                    "<float k = {0}> { y = Mul (i, i) z = Max (x, k) }")  # fmt: skip
    for twin, alike in ((None, False), (product, True)):
        maker = Maker(product, twin=twin)
        wide = maker.make(Recipe(sizes={"n": 40}, numbers="ends"))["i"]
        special = maker.make(Recipe(sizes={"n": 40}, numbers="special"))["x"]
        assert (abs(wide).max() > 2**53) == np.isnan(special).any() == alike


def test_sizes_go_to_what_a_file_compares_with_and_beyond() -> None:
    source = onnx.parser.parse_model(
        HEAD
        + """g (float[n, 2] x) => (float[m, 2] y) <int64 axis = {0}, int64 limit = {50},
          int64[1] start = {1}, int64[1] end = {64}> {
          s = Shape (x) n = Gather (s, axis) c = Greater (n, limit) p = Slice (x, start, end)
          y = If (c) <then_branch = t () => (a) { a = Neg (p) },
                      else_branch = e () => (b) { b = Abs (p) }> }"""
    )
    sizes = {feed["x"].shape[0] for feed in feeds_of(check(source))}
    assert {50, 64, 66} <= sizes


def test_branches_get_larger_inputs_that_the_model_takes() -> None:
    """The model takes 100 columns or more, so that small inputs are refused."""
    source = onnx.parser.parse_model(
        HEAD
        + """g (bool c, float[1, 1, n] x) => (float[1, 1, k] y) <float[1, 1, 100] w = {"""
        + ", ".join(["1"] * 100)
        + """}> {
          y = If (c) <then_branch = t () => (a) { a = Conv (x, w) },
                      else_branch = e () => (b) { d = Neg (x) b = Conv (d, w) }> }"""
    )
    report = check(source)
    for chosen in (True, False):
        sizes = {f["x"].shape[2] for f in feeds_of(report) if f["c"] == chosen and f["x"].size}
        assert report.ok and len(sizes) > 1, str(report)
