"""A model for each quirk of the GPU plugin, which is not right where that quirk is left out: in
ONNX's text syntax, or an IR of `roundtrip_models/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser

from bridge import quirks
from tests.gpu.cases import Case, Made, of_file
from tests.support.model_files import FOLDER

HEADER = '<ir_version: 10, opset_import: ["": 21]> g '

Feeds = Sequence[Mapping[str, Any]]

X = np.float32([1, 2])
Z = np.arange(12, dtype=np.float32).reshape(2, 3, 2)

SAME = [[[0, 0, 1, 1]] * 3]
APART = [[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]]
SCORES = np.float32([[[0.9, 0.8, 0.7]]])

COUNTED = """(float[2] x, int64 n) => (float[2] y) {
  y = Loop (n, , x) <body = b (int64 i, bool c, float[2] p) => (bool again, float[2] r) {
    again = Identity (c) r = Add (p, x) }> }"""

ON_GPU: Mapping[str, tuple[str, Feeds]] = {
    "copied_loops": (
        COUNTED, [{"x": X, "n": np.array(2)}, {"x": 3 * X, "n": np.array(2)}]
    ),
    "copied_loops, of two layouts": (
        """(bool[2] u, bool[1, 2, 1, 1, 2] w, int64 n) => (bool[2] y, bool[1, 2, 1, 1, 2] z) {
          y, z = Loop (n, , u, w) <body = b (int64 i, bool c, bool[2] p, bool[1, 2, 1, 1, 2] q)
            => (bool again, bool[2] r, bool[1, 2, 1, 1, 2] s) {
              again = Identity (c) r = Not (p) s = Not (q) }> }""",
        [{"u": np.array([True, False]), "w": np.ones((1, 2, 1, 1, 2), bool), "n": np.array(2)}],
    ),
    "copied_branches": (
        """(bool c, float[n, k] x, float[m, 2] w) => (float[n, 2] y, float[n, 2] z) {
          p, q = If (c) <
            then_branch = then () => (float[n, 2] a, float[n, 2] b) {
              a = MatMul (x, w) b = Neg (a) },
            else_branch = other () => (float[n, 2] d, float[n, 2] e) {
              e = MatMul (x, w) d = Exp (e) }>
          y = Add (p, q) z = Abs (q) }""",
        [
            {"c": np.array(c), "x": np.float32([[1, 2]]), "w": np.float32([[1, 0], [0, 1]])}
            for c in (True, False, True)
        ],
    ),
    "copied_output, of sizes": (
        """(float[n, 3] x) => (int64 size, float y) {
          sizes = Shape (x) size = ReduceProd <keepdims = 0> (sizes)
          y = ReduceMax <keepdims = 0> (x) }""",
        [{"x": np.ones((n, 3), np.float32)} for n in (2, 2, 4, 4)],
    ),
    "broadcast_into_arithmetic, of an output": (
        """(int64[n] x) => (int64[n] y) {
          one = Constant <value = int64 {1}> () sizes = Shape (x) y = Expand (one, sizes) }""",
        [{"x": np.ones(n, np.int64)} for n in (0, 2)],
    ),
    "first_operand_of_lower_rank": (
        "(bool c, bool[n,2,2,2,2] x) => (bool[n,2,2,2,2] y) { t = Not (x) y = And (c, t) }",
        [
            {"c": np.array(True), "x": np.arange(16 * n).reshape(n, 2, 2, 2, 2) % 3 > 1}
            for n in (1, 3)
        ],
    ),
    "range_without_type": (
        """(int64 n) => (int64[k] y) {
          zero = Constant <value = int64 {0}> () one = Constant <value = int64 {1}> ()
          y = Range (zero, n, one) }""",
        [{"n": np.array(3)}],
    ),
    "row_on_host": (
        """(int64[3,1] x, int64[1] n, float[6] w) => (float[k] y) {
          first = Constant <value_ints = [0]> () at = Constant <value = int64 {1}> ()
          some = Slice (x, first, n, first) end = Gather (some, at)
          y = Slice (w, first, end, first) }""",
        [
            {"x": np.int64([[3], [2], [1]]), "n": np.int64([n]), "w": np.float32(range(6))}
            for n in (2, 3)
        ],
    ),
    "computed_one_hot": (
        """(int64[2,3] i, int64 depth, float[2] values) => (float[2,d,3] y) {
          y = OneHot <axis = 1> (i, depth, values) }""",
        [{"i": np.int64([[0, 1, -1], [2, 5, -9]]), "depth": np.array(4), "values": X}],
    ),
    "copied_output": (
        """(float[n] x) => (bool[2] y, bool[0] z) <float one = {1}, int64[2] places = {1, 0},
           int64[1] none = {0}> {
            g = Greater (x, one) y = Gather (g, places) z = Slice (g, none, none) }""",
        [{"x": np.float32(x)} for x in ([0, 2], [3, 1, 2])],
    ),
    "parts_in_place, of weights": (
        """(float[2,3] x, float[9,3] w) => (float[2,6] y, float[2,3] z)
          <int64[2] sizes = {6, 3}> {
          p, q = Split <axis = 0> (w, sizes) pt = Transpose <perm = [1, 0]> (p)
          qt = Transpose <perm = [1, 0]> (q) y = MatMul (x, pt) z = MatMul (x, qt) }""",
        [{"x": np.float32(np.arange(6).reshape(2, 3)), "w": np.float32(np.eye(9, 3))}],
    ),
    "copied_output, of a slice": (
        """(float[6] x, int64[1] start, int64[1] size) => (float[k] y) {
          first = Constant <value_ints = [0]> () end = Add (start, size)
          some = Slice (x, first, size, first) y = Slice (some, start, end, first) }""",
        [
            {"x": np.float32(range(6)), "start": np.int64([start]), "size": np.int64([size])}
            for start, size in ((0, 6), (3, 1))
        ],
    ),
    "saturating_conversion": (
        """(float[6] x) => (float[6] y, float[6] z) {
          a = Cast <to = 22> (x) y = Cast <to = 1> (a)
          c = Cast <to = 21> (x) z = Cast <to = 1> (c) }""",
        [{"x": np.float32([-9, -8, -3, 7, 15, 17])}],
    ),
    "window_beyond_input": (
        """(float[1,1,32,32] x) => (float[1,1,9,9] y) {
          y = AveragePool <kernel_shape = [5, 5], strides = [3, 3], dilations = [2, 2],
                           ceil_mode = 1, count_include_pad = 1> (x) }""",
        [{"x": np.ones((1, 1, 32, 32), np.float32)}],
    ),
    "kernel_of_vectors, places": (
        """(float[2] x, int64[2] i, int64[2,1] j) => (float[4] y, float[4] z, float[2] w)
          <float[4] some = {1, 2, 3, 4}> {
            y = ScatterElements (some, i, x) z = ScatterND (some, j, x)
            w = GatherElements (some, i) }""",
        [{"x": X, "i": np.int64([3, 1]), "j": np.int64([[3], [1]])}],
    ),
    "kernel_of_vectors": (
        """(float[2] x, float[2] z) => (float y) { y = Einsum <equation = "i,i"> (x, z) }""",
        [{"x": X, "z": np.float32([3, 5])}],
    ),
    "window_beyond_input, in padding": (
        """(float[1,1,2,2] x) => (float[1,1,1,1] y) {
          y = MaxPool <kernel_shape = [1, 1], strides = [2, 2], ceil_mode = 1> (x) }""",
        [{"x": np.ones((1, 1, 2, 2), np.float32)}],
    ),
    "computed_slope": (
        "(float[3,4,2] x, float[2] s) => (float[3,4,2] y) { y = PRelu (x, s) }",
        [{"x": -np.ones((3, 4, 2), np.float32), "s": X}],
    ),
    "read_on_host, parts": (
        """(float[2,3] x, int64[4] pads) => (float[n,m] y) { y = Pad (x, pads) }""",
        [{"x": np.ones((2, 3), np.float32), "pads": np.int64([0, 0, 0, 2])}],
    ),
    "value_of_pad": (
        """(int32[2] x, int64[n] k) => (int32[m] y, int64 z) {
          pads = Constant <value_ints = [1, 1]> () first = Constant <value_ints = [0]> ()
          most = Constant <value = int32 {16777217}> ()
          y = Pad (x, pads, most) z = ReduceMin <keepdims = 0> (k, first) }""",
        [{"x": np.int32([1, 2]), "k": np.int64(range(4, 8))}],
    ),
    "rows_of_scaled_bytes": (
        """(float[1] x) => (float[2,2] y)
          <uint8[4,2] table = {1, 2, 3, 4, 5, 6, 7, 8}, float scale = {0.5},
           int64[2] places = {1, 3}> {
            floats = DequantizeLinear (table, scale) rows = Gather (floats, places)
            y = Add (rows, x) }""",
        [{"x": np.float32([0])}],
    ),
    "rows_of_scaled_bytes, computed places": (
        """(int64[n] places) => (float[n,3,1] y)
          <uint8[2,3,1] table = {1, 2, 3, 4, 5, 6}, float[3] scale = {0.5, 1, 2}> {
            floats = DequantizeLinear <axis = 1> (table, scale)
            y = Gather <axis = 0> (floats, places) }""",
        [{"places": np.int64([1, 0])}, {"places": np.int64([0])}],
    ),
    "rows_behind_boxes": (
        """(float[1,3,4] boxes, float[1,1,3] scores) => (int64[k,3] y)
          <int64 most = {3}, float overlap = {0.5}> {
            y = NonMaxSuppression (boxes, scores, most, overlap) }""",
        [{"boxes": np.float32(boxes), "scores": SCORES} for boxes in (APART, SAME)],
    ),
    "read_on_host, boxes": (
        """(float[1,n,m] boxes, float[1,1,n] scores) => (int64[k,3] y)
          <int64[3] sizes = {0, 0, 4}, int64 most = {3}, float overlap = {0.5}> {
            reshaped = Reshape (boxes, sizes)
            y = NonMaxSuppression (reshaped, scores, most, overlap) }""",
        [{"boxes": np.float32(boxes), "scores": SCORES} for boxes in (APART, SAME) * 10],
    ),
    "kernel_of_vectors, pads": (
        """(float[2] x, int64[2] pads) => (float[k] y, float[l] z, float[m] v, float[n] w) {
          more = Add (pads, pads) most = Add (more, pads) last = Add (more, more)
          y = Pad (x, pads) z = Pad (x, more) v = Pad (y, most) w = Pad (z, last) }""",
        [{"x": X, "pads": np.int64([1, n])} for n in range(4)],
    ),
    "reduction_over_empty_axis": (
        """(float[n] x, bool[n] k) => (float y, float z, bool w) {
          y = ReduceSum <keepdims = 0> (x) z = ReduceProd <keepdims = 0> (x)
          n = Not (k) c = Cast <to = 6> (n) s = ReduceSum <keepdims = 0> (c)
          w = Cast <to = 9> (s) }""",
        [{"x": np.ones(n, np.float32) * 2, "k": np.zeros(n, bool)} for n in (3, 0, 2)],
    ),
    "reduction_over_empty_axis, extremes": (
        """(float[n,2] x, int32[n] i) => (float[2] y, float z, int32 w) <int64[1] rows = {0}> {
          y = ReduceMax <keepdims = 0> (x, rows) z = ReduceMin <keepdims = 0> (x)
          w = ReduceMax <keepdims = 0> (i) }""",
        [{"x": np.ones((n, 2), np.float32), "i": np.ones(n, np.int32)} for n in (3, 0, 2)],
    ),
    "sizes_of_constant": (
        """(int64 n, int64[k] x) => (int64[m] y)
          <int64[2] start = {5, 6}> {
            y = Loop (n, , start) <body = b (int64 i, bool c, int64[s] p)
              => (bool again, int64[t] q) {
                again = Identity (c) q = Concat <axis = 0> (p, x) }> }""",
        [{"n": np.array(n), "x": np.int64([7])} for n in (2, 1, 3)],
    ),
    "ties_of_quantisation": (
        """(float[1, 4] x) => (float[1, 2] y) <float scale = {0.5}, int8 zero = {4},
          float[4, 2] weights = {1, 0, 0, 1, 1, 0, 0, 1}> {
            q = QuantizeLinear (x, scale, zero) f = DequantizeLinear (q, scale, zero)
            y = MatMul (f, weights) }""",
        [{"x": np.float32([[0.25, 0.75, 1.25, -1.25]])}],
    ),
    "kernel_of_vectors, limits": (
        """(float[4] x) => (float[2] y, float[2] z)
          <float[4] some = {1, 2, 4, 8}, float scale = {0.3}, uint8 zero = {128},
           float[4, 2] weights = {1, 0, 0, 1, 1, 0, 0, 1}> {
            a = Add (x, some) p = QuantizeLinear (a, scale, zero)
            r = DequantizeLinear (p, scale, zero) y = MatMul (r, weights)
            q = QuantizeLinear (x, scale, zero) b = DequantizeLinear (q, scale, zero)
            c = Mul (b, some) z = MatMul (c, weights) }""",
        [{"x": np.float32([1, 2, 3, 4])}],
    ),
    "copied_output, of constants": (
        """(float[2] x) => (float[2] y, double[2] d, uint64[2] u) {
          y = Abs (x) d = Constant <value = double[2] {1.5, -2}> ()
          u = Constant <value = uint64[2] {1, 2}> () }""",
        [{"x": X}],
    ),
    "copied_output, a part": (
        """(float16[3] x, float[3] z) => (float16[2] y, float16[1] w, float[1,1] v, float16[1] u)
          <int64[2] parts = {2, 1}, int64[2] sizes = {1, 1}> {
            y, w = Split <axis = 0> (x, parts) a, b = Split <axis = 0> (z, parts)
            v = Reshape (b, sizes) u = Cast <to = 10> (b) }""",
        [{"x": np.float16([1, 2, 3]), "z": np.float32([1, 2, 3])}],
    ),
    "bound_of_norm": ("normalize_l2.xml", []),
    "parts_in_place": (
        """(float[3,2] x, float[2,3,2] z) => (float[1,2] y, float[2,1,2] w)
          <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, float factor = {2},
           float[2,2] m = {1, 2, 3, 4}> {
            row = Slice (x, one, two, zero) y = Mul (row, factor)
            part = Slice (z, one, two, one) w = MatMul (part, m) }""",
        [{"x": np.float32([[1, 2], [3, 4], [5, 6]]), "z": Z}],
    ),
    "sign_of_remainder": (
        "(int32[4] a, int32[4] b) => (int32[4] y) { y = Mod (a, b) }",
        [{"a": np.int32([5, -5, 5, -5]), "b": np.int32([3, 3, -3, -3])}],
    ),
}  # fmt: skip


BY_MEMORY = frozenset({"kernel_of_vectors, pads"})
"""Faults that show only where other memory than zeros lies behind a tensor."""


def canary(path: str, without: bool) -> Case:
    """The model of a quirk, converted without that quirk or with it."""
    return Case(path, _of_text, (path, without))


def _of_text(path: str, without: bool, scratch: Path) -> Made:
    """Runs in a process of its own, whose quirks it changes."""
    if without:
        fault = path.partition(",")[0]
        rest = tuple(name for name in quirks.order() if name != fault)
        quirks.order = lambda: rest
    text, feeds = ON_GPU[path]
    if text.endswith(".xml"):
        return of_file(FOLDER / text, scratch)
    return onnx.parser.parse_model(HEADER + text), feeds
