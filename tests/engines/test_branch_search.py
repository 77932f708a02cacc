"""Inputs that take a branch are sought backwards from its condition, and not by chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import bridge
from bridge.check import check
from bridge.check.inputs.goals import compared, distance
from bridge.check.inputs.probe import probe
from bridge.check.inputs.sizes import Demands
from bridge.check.surgery.sites import ways
from tests.support.reports import feeds_of
from tests.support.sample import spread

HEAD = '<ir_version: 9, opset_import: ["" : 18]> '

# What follows where only the condition `c` is given.
BRANCHES = """
  y = If (c) <
    then_branch = a () => (float[n] t) { t = Exp(z) },
    else_branch = b () => (float[n] u) { u = Neg(z) }>
}
"""

CONDITIONS = {
    "arithmetic on a size": """
g (float[n] z, float[N,M] x) => (float[n] y) {
  size = Shape<start=0, end=1>(x)
  three = Constant<value = int64[1] {3}>()
  one = Constant<value = int64[1] {1}>()
  goal = Constant<value = int64[1] {1201}>()
  product = Mul(size, three)
  sum = Add(product, one)
  c = Equal(sum, goal)""",
    "the size that a convolution leaves": """
g (float[n] z, float[1,1,L] x) => (float[n] y) <float[1,1,7] w = {1,1,1,1,1,1,1}> {
  v = Conv<strides=[5], kernel_shape=[7]>(x, w)
  size = Shape<start=2, end=3>(v)
  goal = Constant<value = int64[1] {131}>()
  c = Equal(size, goal)""",
    "a dimension without a name": """
g (float[n] z, float[?,?] x) => (float[n] y) {
  shape = Shape(x)
  last = Constant<value = int64 {-1}>()
  size = Gather(shape, last)
  goal = Constant<value = int64 {80}>()
  c = Equal(size, goal)""",
    "the sizes of two inputs": """
g (float[n] z, float[N] x, float[M] w) => (float[n] y) {
  first = Shape(x)
  second = Shape(w)
  two = Constant<value = int64[1] {2}>()
  ten = Constant<value = int64[1] {10}>()
  double = Mul(second, two)
  sum = Add(double, ten)
  c = Equal(first, sum)""",
    "a product of sizes": """
g (float[n] z, float[N,M] x) => (float[n] y) {
  shape = Shape(x)
  size = ReduceProd<keepdims=0>(shape)
  goal = Constant<value = int64 {391}>()
  c = Equal(size, goal)""",
    "a sum": """
g (float[n] z, float[N] x) => (float[n] y) {
  sum = ReduceSum<keepdims=0>(x)
  most = Constant<value = float {31234.5}>()
  c = Greater(sum, most)""",
    "a narrow window": """
g (float[n] z, float[N] x) => (float[n] y) {
  mean = ReduceMean<keepdims=0>(x)
  low = Constant<value = float {0.71}>()
  high = Constant<value = float {0.75}>()
  above = Greater(mean, low)
  below = Less(mean, high)
  c = And(above, below)""",
    "a probability": """
g (float[n] z, float[N] x) => (float[n] y) {
  mean = ReduceMean<keepdims=0>(x)
  p = Sigmoid(mean)
  goal = Constant<value = float {0.999}>()
  c = Greater(p, goal)""",
    "a multiple": """
g (float[n] z, int64 mode) => (float[n] y) {
  seven = Constant<value = int64 {7}>()
  product = Mul(mode, seven)
  goal = Constant<value = int64 {98007}>()
  c = Equal(product, goal)""",
    "two integers that depend on one another": """
g (float[n] z, int64 i, int64 j) => (float[n] y) {
  difference = Sub(i, j)
  goal = Constant<value = int64 {777}>()
  right = Equal(difference, goal)
  least = Constant<value = int64 {900}>()
  large = Greater(i, least)
  c = And(right, large)""",
    "neither": """
g (float[n] z, int64 i, float[N] x) => (float[n] y) {
  most = Constant<value = int64 {5000}>()
  small = Less(i, most)
  shape = Shape(x)
  longest = Constant<value = int64[1] {300}>()
  short = Less(shape, longest)
  either = Or(small, short)
  c = Not(either)""",
    "any of a mask": """
g (float[n] z, float[N] x) => (float[n] y) {
  most = Constant<value = float {400}>()
  mask = Greater(x, most)
  numbers = Cast<to=6>(mask)
  some = ReduceMax<keepdims=0>(numbers)
  c = Cast<to=9>(some)""",
    "the number of an iteration": """
g (float[n] z, int64 trips) => (float[n] y) {
  yes = Constant<value = bool {1}>()
  y = Loop(trips, yes, z) <body = body (int64 i, bool going, float[n] v)
      => (bool still, float[n] w) {
    five = Constant<value = int64 {5}>()
    c = Equal(i, five)
    w = If (c) <
      then_branch = a () => (float[n] t) { t = Exp(v) },
      else_branch = b () => (float[n] u) { u = Neg(v) }>
    still = Identity(going)
  }>
}""",
    "the slices of a scan": """
g (float[n] z, float[N,3] x) => (float[n] y) {
  y = Scan(z, x) <num_scan_inputs = 1, body = body (float[n] v, float[3] row)
      => (float[n] w) {
    sum = ReduceSum<keepdims=0>(row)
    goal = Constant<value = float {-777}>()
    c = Less(sum, goal)
    w = If (c) <
      then_branch = a () => (float[n] t) { t = Abs(v) },
      else_branch = b () => (float[n] u) { u = Neg(v) }>
  }>
}""",
    "three Ifs in one another": """
g (float[n] z, int64 mode, float[N] x) => (float[n] y) {
  rate = Constant<value = int64 {16000}>()
  fast = Equal(mode, rate)
  shape = Shape(x)
  size = Constant<value = int64[1] {576}>()
  whole = Equal(shape, size)
  mean = ReduceMean<keepdims=0>(x)
  low = Constant<value = float {-55}>()
  loud = Less(mean, low)
  y = If (fast) <
    then_branch = a () => (float[n] t) {
      t = If (whole) <
        then_branch = d () => (float[n] p) {
          p = If (loud) <
            then_branch = e () => (float[n] p1) { p1 = Exp(z) },
            else_branch = f () => (float[n] p2) { p2 = Abs(z) }>
        },
        else_branch = h () => (float[n] q) { q = Sin(z) }>
    },
    else_branch = b () => (float[n] u) { u = Neg(z) }>
}""",
}


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text + ("" if " = If (" in text else BRANCHES))


@pytest.mark.parametrize(
    ("name", "suffix"),
    [(name, ".onnx") for name in CONDITIONS]
    + [(name, ".xml") for name in spread(CONDITIONS, 6, lambda name: "")],
)
def test_every_branch_is_aimed_at(name: str, suffix: str, tmp_path: Path) -> None:
    """A budget of as many runs as there are inputs leaves nothing to chance."""
    bridge.convert(parsed(CONDITIONS[name]), tmp_path / f"m{suffix}")
    report = check(tmp_path / f"m{suffix}", budget=4)
    assert report.ok, str(report)
    ifs = {branch for branch in report.branches.all if not report.branches.sites[branch[0]].loop}
    assert ifs <= report.branches.reached.keys(), str(report)


def test_what_no_input_can_reach_is_not_sought(tmp_path: Path) -> None:
    """The shape of the input says that the condition is always true."""
    text = """
    g (float[n] z, float[2,N] x) => (float[n] y) {
      size = Shape<start=0, end=1>(x)
      two = Constant<value = int64[1] {2}>()
      c = Equal(size, two)"""
    bridge.save(bridge.load(parsed(text)), tmp_path / "m.onnx")
    report = check(tmp_path / "m.onnx")
    assert report.branches.unreachable == {(0, False): "the condition is always true"}
    assert report.branches.forced[0, False].given is not None


def test_a_branch_in_which_the_model_fails_is_told(tmp_path: Path) -> None:
    text = """
    g (float[N] z) => (float[?] y) {
      size = Shape(z)
      seven = Constant<value = int64[1] {7}>()
      c = Equal(size, seven)
      three = Constant<value = int64[1] {3}>()
      y = If (c) <
        then_branch = a () => (float[?] t) { t = Reshape(z, three) },
        else_branch = b () => (float[?] u) { u = Neg(z) }>
    }"""
    onnx.save(parsed(text), tmp_path / "m.onnx")
    report = check(tmp_path / "m.onnx")
    assert report.branches.reached.keys() == {(0, False)}
    assert report.branches.unreachable[0, True].startswith("the model fails there: onnxruntime: ")


def test_inputs_keep_away_from_where_rounding_decides(tmp_path: Path) -> None:
    bridge.save(bridge.load(parsed(CONDITIONS["a narrow window"])), tmp_path / "m.onnx")
    report = check(tmp_path / "m.onnx")
    all_means = [feed["x"].mean() for feed in feeds_of(report) if feed["x"].size]
    means = [mean for mean in all_means if 0.7 < mean < 0.76]
    assert any(0.71 < mean < 0.75 for mean in means)
    assert all(abs(mean / bound - 1) > 5e-5 for mean in means for bound in (0.71, 0.75))


def test_a_probe_holds_what_the_condition_needs_alone() -> None:
    model = bridge.load(parsed(CONDITIONS["three Ifs in one another"]))
    cut = probe(model, *ways(model)[2], 100)
    assert cut is not None
    assert {node.op for node in cut.model.graph.nodes} == {
        "Constant",
        "Equal",
        "Identity",
        "Less",
        "ReduceMean",
        "Shape",
    }
    assert [sorted(value.name for value in asked) for asked in cut.asked(True)] == [
        ["mode"],
        ["x"],
        ["x"],
    ]
    assert probe(model, *ways(model)[2], 3) is None


@pytest.mark.parametrize(
    ("logic", "i", "wanted", "expected"),
    [
        ("c = Equal(i, k)", 3, True, 2),
        ("c = Equal(i, k)", 5, True, 0),
        ("c = Equal(i, k)", 5, False, 1),
        ("c = Less(i, k)", 7, True, 3),
        ("c = Less(i, k)", 3, False, 2),
        ("a = Less(i, k) c = Not(a)", 3, True, 2),
        ("a = Less(i, k) b = Equal(i, k) c = Or(a, b)", 7, True, 2),
        ("a = Less(i, k) b = Equal(i, k) c = And(a, b)", 7, True, 5),
        ("a = Less(i, k) b = Equal(i, k) c = Xor(a, b)", 3, False, 2),
        ("a = Cast<to=9>(i) c = Identity(a)", 0, True, 1),
    ],
)
def test_distance(logic: str, i: int, wanted: bool, expected: float) -> None:
    text = f"g (float[n] z, int64 i, int64 k) => (float[n] y) {{ {logic}"
    model = bridge.load(parsed(text))
    (node,) = (node for node in model.graph.nodes if node.op == "If")
    assert node.inputs[0] is not None
    condition = node.inputs[0]
    numbers = {"i": np.array(i), "k": np.array(5)}
    values = {value: numbers[value.name] for value in compared(condition)}
    assert distance(condition, wanted, values) == expected


def test_branches_count_as_reached_though_the_inputs_sought_for_them_did_not_fit() -> None:
    """What leads to the If is refused until chance finds that M is 7."""
    report = check(
        parsed("""
g (float[N,M] x) => (float[2] y) <float[7,2] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14}> {
  count = Shape<start=0, end=1>(x)
  trips = Squeeze(count)
  true = Constant<value = bool {1}>()
  two = Constant<value = int64 {2}>()
  none = Constant<value = int64 {0}>()
  start = Constant<value = float[2] {0, 0}>()
  y = Loop (trips, true, start) <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
    on = Identity(go)
    row = Gather(x, i)
    product = MatMul(row, w)
    rest = Mod(i, two)
    even = Equal(rest, none)
    t = If (even) <
      then_branch = a () => (float[2] p) { p = Add(s, product) },
      else_branch = c () => (float[2] q) { q = Sub(s, product) }>
  }>
}""")
    )
    assert report.ok
    assert {branch for branch in report.branches.reached if branch[0] == 0} == {
        (0, True),
        (0, False),
    }


DEMANDS = {
    "a product": ("float[N,K] x", "y = MatMul(x, w)", {"K": 3}),
    "a product, transposed": ("float[N,K] x", "y = Gemm<transB=1>(x, w)", {"K": 2}),
    "channels": ("float[N,C,H,W] x", "y = Conv<group=2>(x, k)", {"C": 2}),
    "a sum": ("float[N,K] x", "y = Add(x, w)", {"N": 3, "K": 2}),
    "behind others": ("float[A,B] x", "t = Transpose(x) e = Exp(t) y = MatMul(e, w)", {"A": 3}),
    "two that contradict": ("float[N,K] x", "a = MatMul(x, w) y = Gemm<transB=1>(x, w)", {}),
    "a size that suits, too": ("float[N,K] x", "y = Add(x, one)", {}),
    "in a branch": (
        "float[N,K] x, bool c",
        """y = If (c) <
          then_branch = a () => (float[p,q] t) { t = MatMul(x, w) },
          else_branch = b () => (float[r,s] u) { u = Neg(x) }>""",
        {"K": 3},
    ),
    "a row in each iteration": (
        "float[N,K] x, int64 n, float[L] s",
        """y = Loop (n, , s) <body = b (int64 i, bool c, float[L] s) => (bool d, float[L] t) {
          d = Identity(c) r = Gather(x, i) p = MatMul(r, w) t = Add(s, p) }>""",
        {"K": 3},
    ),
}


@pytest.mark.parametrize("name", DEMANDS)
def test_sizes_that_operators_demand(name: str) -> None:
    inputs, nodes, expected = DEMANDS[name]
    model = onnx.parser.parse_model(
        f"{HEAD} g ({inputs}) => (float[] y) <float[3,2] w = {{1,2,3,4,5,6}}, "
        f"float[1] one = {{1}}, float[2,1,1,1] k = {{1,2}}> {{ {nodes} }}"
    )
    assert Demands.of(bridge.load(model)).sizes == expected


def test_a_check_draws_sizes_that_fit_where_an_engine_takes_others(tmp_path: Path) -> None:
    """OpenVINO multiplies in a branch whatever the sizes are."""
    bridge.convert(
        parsed("""
g (float[N,K] x, bool c) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}> {
  y = If (c) <
    then_branch = a () => (float[N,2] t) { t = MatMul(x, w) },
    else_branch = b () => (float[N,2] u) { e = Neg(x) u = MatMul(e, w) }>
}"""),
        tmp_path / "model.xml",
    )
    report = check(tmp_path / "model.xml")
    assert report.ok, report
    assert {feeds["x"].shape[1] for feeds in feeds_of(report) if feeds["x"].size} == {3}


TOKENS = """g (int64[?,?] ids, int64[?,?] mask, float[?,?,2] more) => (float[?,?,2] y, int64[?] n)
<float[3,2] table = {1,2,3,4,5,6}> {
  rows = Gather(table, ids)
  y = Add(rows, more)
  axis = Constant<value = int64[1] {1}>()
  n = ReduceSum<keepdims = 0>(mask, axis)
}"""


@pytest.mark.parametrize("sizes", [{}, {"mask.1": 7}])
def test_sizes_that_belong_together_are_drawn_together(
    sizes: dict[str, int], tmp_path: Path
) -> None:
    """Token ids and their mask; what is added; and a size given for one of them."""
    bridge.convert(onnx.parser.parse_model(HEAD + TOKENS), tmp_path / "m.xml")
    report = check(tmp_path / "m.xml", sizes=sizes)
    assert report.ok, str(report)
    for feeds in feeds_of(report):
        shapes = {np.shape(feeds[name])[:2] for name in ("ids", "mask", "more")}
        assert len(shapes) == 1, str(report)
        assert not sizes or np.shape(feeds["ids"])[1] == 7


RATES = """
    g (float[B, T] x, float[2, N, 8] state, int64 sr) => (float[B2, C] y, float[2, N2, 8] next) {
      fast = Constant<value = int64 {16000}>() is_fast = Equal(sr, fast)
      y = If (is_fast) <
        then_branch = a () => (float[B2, C] p) {
          far = Constant<value = int64[4] {0, 0, 0, 64}>() p = Pad<mode = "reflect">(x, far) },
        else_branch = b () => (float[B2, C] q) {
          slow = Constant<value = int64 {8000}>() is_slow = Equal(sr, slow)
          q = If (is_slow) <
            then_branch = c () => (float[B2, C] r) {
              near = Constant<value = int64[4] {0, 0, 0, 32}>()
              r = Pad<mode = "reflect">(x, near) },
            else_branch = d () => (float[B2, C] s) {
              no = Constant<value = int64[2] {7, 13}>() s = Reshape(x, no) }> }>
      rows = Shape<start = 0, end = 1>(x)
      two = Constant<value = int64[1] {2}>() eight = Constant<value = int64[1] {8}>()
      sizes = Concat<axis = 0>(two, rows, eight)
      zeros = ConstantOfShape(sizes)
      next = Add(state, zeros)
    }"""
"""As a detector of voices: it takes two rates, as many states as rows, and more samples than its
padding."""


def test_a_quick_check_finds_an_input_that_the_model_takes(tmp_path: Path) -> None:
    onnx.save(parsed(RATES), tmp_path / "m.onnx")
    report = check(tmp_path / "m.onnx", quick=True)
    assert feeds_of(report) and report.ok
