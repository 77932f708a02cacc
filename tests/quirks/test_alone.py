"""Each quirk alone keeps the meaning of a graph, and fires at its fault and nowhere else.

This is a sample; `python -m tests.quirks` runs all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from onnx import parser

from bridge.check.isolation import Worker
from tests.quirks import counted
from tests.quirks.alone import fired
from tests.quirks.canaries import gru_cell, quirk_of
from tests.quirks.sources import judged, sources
from tests.support.graphs import HEADER
from tests.support.model_files import ONNX_FILES
from tests.support.sample import WHOLE

SAMPLE = {"canaries": 1, "roundtrip": 12, "control-flow": 40}
"""The step between tested sources of a kind."""

LOOP = """(float[2,3] x, int64 n, bool k) => (float[2,3] y) {
  y = Loop (%s, %s, x) <body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] t) {
    d = Identity (c) t = Add (s, s) }> }"""
SCAN = """(float[3,2] x, float[2] h) => (float[2] y, float[3,2] z) {
  y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] p)
    => (float[2] t, float[2] u) { %s }> (h, x) }"""
ROW = """(float[3,2] x, float h) => (float y, float[3] z) <int64 one = {1}> {
  y, z = Scan <num_scan_inputs = 1, body = b (float s, float[2] p) => (float t, float u) {
    %s u = Neg (s) }> (h, x) }"""
STATE = """(float[1] x, int64 n, bool[b] some) => (float y)
  <float zero = {0}, int64[1] one = {1}, int64[1] far = {99}> {
  y, grown = Loop (n, , zero, x)
  <body = b (int64 i, bool c, float a, float[k] s) => (bool d, float e, float[l] t) {
    d = Identity (c) size = Size (s) number = Cast <to = 1> (size) e = Add (a, number)
    t = %s }> }"""
SUM = """(%s[2,3] x, %s[2,1] k) => (%s[2,1] y) <int64[1] axis = {1}> {
  sum = ReduceSum (x, axis) y = Div (sum, k) }"""

PLACES: list[tuple[str, str, bool]] = [
    ("absolute_value_of_shape", "(int64[2] x) => (int64[2] y) { y = Abs (x) }", False),
    ("absolute_value_of_shape", "(float[n,m] x) => (int64[2] y) <int64 a = {5}> "
     "{ s = Shape (x) t = Sub (s, a) y = Abs (t) }", True),
    ("absolute_value_of_shape", "(float[n] x) => (float[m] y) "
     "{ j = Concat <axis = 0> (x, x) k = Neg (j) y = Abs (k) }", False),
    ("absolute_value_of_shape", "(float[n] x) => (float[m] y, float[m] z) "
     "{ j = Concat <axis = 0> (x, x) y = Abs (j) z = Neg (j) }", True),
    ("absolute_value_of_shape", "(float[n] x) => (float[m] y, float[m] z) "
     "{ j = Concat <axis = 0> (x, x) k = Cast <to = 1> (j) y = Abs (k) z = Neg (j) }", True),
    ("cell_of_other_operands", gru_cell("d = Sub (one, z)", "b", "h"), False),
    ("cell_of_other_operands", gru_cell("d = Sub (two, z)", "b", "h"), True),
    ("channels_in_kernel", SUM % (("float",) * 3), False),
    ("channels_in_kernel", SUM % (("int32",) * 3), True),
    ("constant_of_higher_rank", "(float[3] x) => (float[1,3] y) <float[1,1] one = {1}> "
     "{ y = Min (x, one) }", True),
    ("constant_of_higher_rank", "(float[3] x) => (float[3] y) <float[1] one = {1}> "
     "{ y = Min (x, one) }", False),
    ("constant_of_higher_rank", "(float[3] x, float[1,1] one) => (float[1,3] y) "
     "{ y = Min (x, one) }", False),
    ("constant_of_higher_rank", "(float[3] x) => (float[2,3] y) <float[2,1] some = {1, 2}> "
     "{ y = Min (x, some) }", False),
    ("unknown_input", LOOP % ("n", "k"), False),
    ("infinite_f64", "(double[3] x) => (double[3] y) <double[3] k = {1, 2, 3e300}> "
     "{ y = Mul (x, k) }", False),
    ("infinite_f64", "(double[3] x) => (double[3] y) <double[3] k = {1, 2.5, inf}> "
     "{ y = Mul (x, k) }", True),
    ("infinite_f64", "(double[3] x) => (double[3] y) <double[3] k = {1, 0.1, inf}> "
     "{ y = Mul (x, k) }", False),
    ("infinite_f64", "(float[3] x) => (float[3] y) <float k = {inf}> { y = Mul (x, k) }", False),
    ("compared_infinity", "(float[n] x) => (bool[n] y) { y = IsInf (x) }", False),
    ("compared_infinity", "(double[n] x) => (bool[n] y) { a = Neg (x) y = IsInf (a) }",
     False),
    ("compared_infinity", "(float[n] x) => (bool[n] y) { a = Neg (x) y = IsInf (a) }",
     True),
    ("memory_inside", ROW % "w = Shape (p) r = Gather (w, one) t = Cast <to = 1> (r)",
     False),
    ("memory_inside", ROW % "t = Gather (p, one)", True),
    ("read_inputs",
     SCAN % "a = Shape (p) f = Cast <to = 1> (a) t = Add (s, f) u = Neg (t)", True),
    ("read_inputs", SCAN % "t = Add (s, s) u = Neg (t)", True),
    ("sizes_of_states", STATE % "Concat <axis = 0> (s, x)", True),
    ("sizes_of_states", STATE % "Add (s, x)", False),
    ("place_of_states", STATE % "Concat <axis = 0> (s, x)", False),
    ("place_of_states", STATE % "Slice (s, one, far)", False),
    ("place_of_states", STATE % "Compress (s, some)", True),
    ("matrix_times_stack", "(float[4,3] x, float[2,3,2] w) => (float[2,4,2] y) "
     "{ y = MatMul (x, w) }", False),
    ("kernel_of_lrn", "(float[1,3,2,2] x) => (float[1,3,2,2] y) "
     "{ y = LRN <size = 3, bias = 2.0> (x) }", False),
    ("saturating_conversion", "(float[2] x) => (uint8[2] y) { y = Cast <to = 2> (x) }", False),
    ("cast_to_bool", "(int32[4] x) => (bool[2] y) "
     "{ a, b = Split <num_outputs = 2> (x) y = Cast <to = 9> (b) }", True),
    ("cast_to_bool", "(int32[4] x) => (bool[4] y) { y = Cast <to = 9> (x) }", True),
    ("cast_to_bool", "(int32[4] x) => (uint8[4] y) { y = Cast <to = 2> (x) }", False),
]  # fmt: skip
"""Graphs, and whether a quirk fires in them."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


SAMPLED = [
    pytest.param(kind, index, id=f"{kind}-{index}")
    for kind, every in SAMPLE.items()
    for index in range(0, len(sources(kind)), every * (1 if kind == "canaries" or WHOLE else 2))
]


@pytest.mark.parametrize(("kind", "index"), SAMPLED)
def test_it_keeps_the_meaning(kind: str, index: int, worker: Worker) -> None:
    found = worker.call(judged, kind, index, seconds=300)
    wrong = {one.path: one.said for one in found if one.said}
    name = sources(kind)[index].name
    assert not wrong, name
    assert kind != "canaries" or quirk_of(name) in {one.path for one in found}


@pytest.mark.parametrize(("quirk", "text", "fires"), PLACES)
def test_where_it_fires(quirk: str, text: str, fires: bool) -> None:
    found = fired(parser.parse_model(f"{HEADER} g {text}"))
    assert (quirk in found) == fires


def test_what_is_counted() -> None:
    """`python -m tests.quirks --count FOLDER` updates the counts."""
    stored = counted.read()
    files = {file.stem: file for file in ONNX_FILES}
    assert [name for kind, name in stored if kind == "roundtrip"] == list(files)
    for name in list(files)[::20]:
        assert stored["roundtrip", name] == counted.paths(files[name]), name
