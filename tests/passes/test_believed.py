"""What a file declares and nothing shows: sizes never count, ranks hold or fail loudly and are
said."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import bridge
from tests.support.running import OnnxRuntime, OpenVino, assert_close

HEADER = '<ir_version: 9, opset_import: ["": 18]> g'
FAILS = "fails"
"""The file refuses the input: the declared rank is not the one that it has."""
RIGHT = "right"


def f(*sizes: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=sizes).astype(np.float32)


def i(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


Y = 'output "y" has rank {}, as declared; `output_ranks` changes it'

# A graph, its options, what is said to be believed, and inputs with what becomes of each.
RANKS: dict[str, tuple[str, dict[str, Any], str, list[tuple[list[np.ndarray], str]]]] = {
    "one axis is left": (
        "(float[N,3] x) => (float[n] y) { y = Squeeze (x) }", {}, Y.format(1),
        [([f(1, 3)], RIGHT), ([f(4, 3)], FAILS), ([f(0, 3)], FAILS)],
    ),
    "one axis is left of two open ones": (
        "(float[N,M] x) => (float[n] y) { y = Squeeze (x) }", {}, Y.format(1),
        [([f(4, 1)], RIGHT), ([f(0, 1)], RIGHT), ([f(4, 3)], FAILS), ([f(1, 1)], FAILS)],
    ),
    "one axis is known to go": (
        "(float[N,1] x) => (float[n] y) { y = Squeeze (x) }", {}, Y.format(1), [([f(4, 1)], RIGHT)]
    ),
    "two axes are left": (
        "(float[N,M,K] x) => (float[n,m] y) { y = Squeeze (x) }", {}, Y.format(2),
        [([f(2, 1, 3)], RIGHT), ([f(2, 4, 3)], FAILS), ([f(2, 1, 1)], FAILS)],
    ),
    "no axis is left": (
        "(float[N,M] x) => (float y) { y = Squeeze (x) }", {}, Y.format(0),
        [([f(1, 1)], RIGHT), ([f(1, 3)], FAILS)],
    ),
    "the user knows better": (
        "(float[N,M] x) => (float[n] y) { y = Squeeze (x) }", {"output_ranks": {"y": 0}},
        Y.format(0), [([f(1, 1)], RIGHT), ([f(1, 3)], FAILS)],
    ),
    "a value inside": (
        "(float[N,3] x) => (float[n] y) <float[n] h> { h = Squeeze (x) y = Sigmoid (h) }", {},
        '"h" has rank 1, as declared for Squeeze "h"', [([f(1, 3)], RIGHT), ([f(4, 3)], FAILS)],
    ),
    "a branch": (
        """(float[N,3] x, bool c) => (float[n] y) { y = If (c) <
             then_branch = t () => (float[n] a) { a = Squeeze (x) },
             else_branch = e () => (float[m] b) { z = Constant <value_ints = [-1]> ()
                                                  b = Reshape (x, z) }> }""", {},
        '"a" has rank 1, as declared for Squeeze "a"',
        [([f(1, 3), np.array(True)], RIGHT), ([f(4, 3), np.array(False)], RIGHT),
         ([f(4, 3), np.array(True)], FAILS)],
    ),
    "sizes by an input": (
        "(float[N] x, int64[k] t) => (float[n] y) { y = Reshape (x, t) }", {}, Y.format(1),
        [([f(6), i(6)], RIGHT), ([f(6), i(-1)], RIGHT), ([f(6), i(2, 3)], FAILS)],
    ),
    "two sizes by an input": (
        "(float[N] x, int64[k] t) => (float[n,m] y) { y = Reshape (x, t) }", {}, Y.format(2),
        [([f(6), i(2, -1)], RIGHT), ([f(6), i(6)], FAILS)],
    ),
    "no size by an input": (
        "(float[N] x, int64[k] t) => (float y) { y = Reshape (x, t) }", {}, Y.format(0),
        [([f(1), i()], RIGHT), ([f(1), i(1)], FAILS)],
    ),
    "a repeated number": (
        "(float x, int64[k] t) => (float[n] y) { y = Expand (x, t) }", {}, Y.format(1),
        [([f(), i(6)], RIGHT), ([f(), i(2, 3)], FAILS)],
    ),
    "a constant of computed sizes": (
        "(int64[k] t) => (float[n] y) { y = ConstantOfShape (t) }", {}, Y.format(1),
        [([i(6)], RIGHT), ([i(2, 3)], FAILS), ([i()], FAILS)],
    ),
    "axes by an input": (
        "(float[2,3] x, int64[k] t) => (float[n] y) { y = ReduceSum <keepdims = 0> (x, t) }", {},
        Y.format(1), [([f(2, 3), i(1)], RIGHT), ([f(2, 3), i(0, 1)], FAILS)],
    ),
    "new axes by an input": (
        "(float[3] x, int64[k] t) => (float[n,m] y) { y = Unsqueeze (x, t) }", {}, Y.format(2),
        [([f(3), i(1)], RIGHT), ([f(3), i(0, 1)], FAILS)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RANKS)
def test_a_rank_holds_or_fails(name: str, tmp_path: Path) -> None:
    text, options, said, cases = RANKS[name]
    model = onnx.parser.parse_model(f"{HEADER} {text}")
    report = bridge.convert(model, tmp_path / "m.xml", **options)
    assert report.believed == [said] and f"believed: {said}" in report.lines()
    original = OnnxRuntime(model)
    back = OnnxRuntime(bridge.to_onnx(tmp_path / "m.xml"))
    names = [value.name for value in model.graph.input]
    for values, outcome in cases:
        feed = dict(zip(names, values, strict=True))
        expected = original.run(feed)
        for run in (partial(back.run, feed), partial(_in_openvino, tmp_path / "m.xml", values)):
            if outcome == FAILS:
                with pytest.raises(Exception, match=r"(?i)reshape|shape"):
                    run()
            else:
                assert_close(run(), expected)


def _in_openvino(path: Path, values: list[np.ndarray]) -> list[np.ndarray]:
    """After an error OpenVINO goes wrong with other inputs, too: each gets a new model."""
    return OpenVino(path).run(values)


def test_an_axis_of_size_1_stays_as_declared(tmp_path: Path) -> None:
    """onnxruntime gives a scalar of one row, the file declares a vector."""
    model = onnx.parser.parse_model(f"{HEADER} (float[N,1] x) => (float[n] y) {{ y = Squeeze(x) }}")
    report = bridge.convert(model, tmp_path / "m.xml")
    assert report.believed == [Y.format(1)]
    assert OpenVino(tmp_path / "m.xml").run([f(1, 1)])[0].shape == (1,)


def test_the_check_says_it(tmp_path: Path) -> None:
    onnx.save(
        onnx.parser.parse_model(f"{HEADER} (float[N,3] x) => (float[n] y) {{ y = Squeeze (x) }}"),
        tmp_path / "m.onnx",
    )
    bridge.convert(tmp_path / "m.onnx", tmp_path / "m.xml")
    text = str(bridge.check(tmp_path / "m.onnx", tmp_path / "m.xml", samples=6))
    first = text.splitlines()[0]
    assert first.startswith("OK: "), text
    assert "m.xml fails with outputs of other ranks than the original declares (" in first, text
    assert re.search(r"outputs: 1 equal on [1-5] inputs", text), text


# Sizes and symbols that a file declares wrongly, and inputs.
SIZES: dict[str, tuple[str, list[np.ndarray]]] = {
    "the count of what is not zero": (
        """(float[5] x) => (int64 y) <int64[1,5] nz, int64 one = {1}> {
             nz = NonZero (x) s = Shape (nz) y = Gather (s, one) }""",
        [np.array([1, 0, 2, 0, 3], np.float32)],
    ),
    "a symbol of an input": (
        """(float[N] x) => (float[M] y) <float[N] c, int64[1] zero = {0}> {
             b = Cast <to = 9> (x) c = Compress <axis = 0> (x, b) k = Shape (c) j = Shape (x)
             e = Equal (k, j) q = Squeeze (e, zero) y = If (q) <
               then_branch = t () => (float[K] u) { u = Neg (x) },
               else_branch = e () => (float[L] v) { v = Abs (c) }> }""",
        [np.array([1, 0, 2, 0, 3], np.float32)],
    ),
    "one symbol of two values": (
        """(float[N] x, float[M] z) => (bool[1] y) <float[K] c, float[K] d> {
             a = Cast <to = 9> (x) c = Compress <axis = 0> (x, a)
             b = Cast <to = 9> (z) d = Compress <axis = 0> (z, b)
             k = Shape (c) j = Shape (d) y = Equal (k, j) }""",
        [np.array([1, 0, 2], np.float32), np.array([1, 1, 2], np.float32)],
    ),
    "an empty slice": (
        """(float[4] x, int64[1] s, int64[1] e) => (float[0] y, int64[1] n) {
             y = Slice (x, s, e) n = Shape (y) }""",
        [f(4), i(1), i(3)],
    ),
    "a state of a loop": (
        """(float[1,2] x, int64 n) => (int64[2] y) <float[1,2] s> {
             s = Loop (n, "", x) <body = b (int64 k, bool c, float[1,2] t) => (bool d, float[1,2] u)
               { d = Identity (c) u = Concat <axis = 0> (t, t) }> y = Shape (s) }""",
        [f(1, 2), np.array(2)],
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_inferred(name: str, tmp_path: Path) -> None:
    text, values = SIZES[name]
    model = onnx.parser.parse_model(f"{HEADER} {text}")
    report = bridge.convert(model, tmp_path / "m.xml")
    assert not report.believed
    feed = dict(zip([x.name for x in model.graph.input], values, strict=True))
    expected = OnnxRuntime(model).run(feed)
    assert_close(OpenVino(tmp_path / "m.xml").run(values), expected)
    assert_close(OnnxRuntime(bridge.to_onnx(tmp_path / "m.xml")).run(feed), expected)


def test_a_copy_declares_the_same(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        f"{HEADER} (float[5] x) => (int64[1,3] y) {{ y = NonZero (x) }}"
    )
    assert bridge.to_onnx(model).graph.output[0].type == model.graph.output[0].type
