"""A model for each quirk of the GPU plugin, which is not right where that quirk is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser

from bridge import quirks
from tests.gpu.cases import Case, Made

HEADER = '<ir_version: 10, opset_import: ["": 21]> g '

Feeds = Sequence[Mapping[str, Any]]

X = np.float32([1, 2])

COUNTED = """(float[2] x, int64 n) => (float[2] y) {
  y = Loop (n, , x) <body = b (int64 i, bool c, float[2] p) => (bool again, float[2] r) {
    again = Identity (c) r = Add (p, x) }> }"""

ON_GPU: Mapping[str, tuple[str, Feeds]] = {
    "openvino_gpu.memory_of_loop": (
        COUNTED, [{"x": X, "n": np.array(2)}, {"x": 3 * X, "n": np.array(2)}]
    ),
    "openvino_gpu.memory_of_branch": (
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
    "openvino_gpu.outputs_of_shapes": (
        """(float[n, 3] x) => (int64 size, float y) {
          sizes = Shape (x) size = ReduceProd <keepdims = 0> (sizes)
          y = ReduceMax <keepdims = 0> (x) }""",
        [{"x": np.ones((n, 3), np.float32)} for n in (2, 2, 4, 4)],
    ),
    "openvino_gpu.range_without_type": (
        """(int64 n) => (int64[k] y) {
          zero = Constant <value = int64 {0}> () one = Constant <value = int64 {1}> ()
          y = Range (zero, n, one) }""",
        [{"n": np.array(3)}],
    ),
    "openvino_gpu.slope_of_prelu": (
        "(float[2] x, float[2] slope) => (float[2] y) { y = PRelu (x, slope) }",
        [{"x": np.float32([-1, 1]), "slope": X}],
    ),
    "openvino_gpu.sign_of_remainder": (
        "(int32[4] a, int32[4] b) => (int32[4] y) { y = Mod (a, b) }",
        [{"a": np.int32([5, -5, 5, -5]), "b": np.int32([3, 3, -3, -3])}],
    ),
}  # fmt: skip


def canary(path: str, without: bool) -> Case:
    """The model of a quirk, converted without that quirk or with it."""
    return Case(path, _of_text, (path, without))


def _of_text(path: str, without: bool, _: Path) -> Made:
    """Runs in a process of its own, whose quirks it changes."""
    if without:
        quirks.FOR_IR = tuple(at for at in quirks.FOR_IR if at.path != path)
    text, feeds = ON_GPU[path]
    return onnx.parser.parse_model(HEADER + text), feeds
