"""Constants of f32 become f16, except single numbers and numbers that f16 cannot hold."""

from __future__ import annotations

from inspect import cleandoc
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx.parser
import pytest

import bridge
from bridge.passes.compress import compress
from tests.support.graphs import after

CASES = {
    "a constant": (
        """g (float[4] x) => (float[4] y) <float[4] a = {1, 2, 3, 4}> { y = Add (x, a) }""",
        """
        graph (%x: f32[4]) -> %y
          %#0: f16[4] = Constant() {value=f16[4] [1.0, 2.0, 3.0, 4.0]}
          %a: f32[4] = Cast(%#0) {round_mode='up', saturate=True, to=f32}
          %y: f32[4] = Add(%x, %a)
        """,
    ),
    "a constant beyond f16's range": (
        """g (float[4] x) => (float[4] y) <float[4] a = {100000, 200000, 300000, 4}> {
           y = Add (x, a) }""",
        """
        graph (%x: f32[4]) -> %y
          %a: f32[4] = Constant() {value=f32[4] [100000.0, 200000.0, 300000.0, 4.0]}
          %y: f32[4] = Add(%x, %a)
        """,
    ),
    "a single number": (
        """g (float[4] x) => (float[4] y) <float a = {1.5}> { y = Add (x, a) }""",
        """
        graph (%x: f32[4]) -> %y
          %a: f32[] = Constant() {value=f32[] 1.5}
          %y: f32[4] = Add(%x, %a)
        """,
    ),
    "integers and f64": (
        """g (double[2] x, int64[2] n) => (double[2] y, int64[2] m)
             <double[2] a = {1, 2}, int64[2] b = {1, 2}> { y = Add (x, a) m = Add (n, b) }""",
        """
        graph (%x: f64[2], %n: i64[2]) -> %y, %m
          %a: f64[2] = Constant() {value=f64[2] [1.0, 2.0]}
          %b: i64[2] = Constant() {value=i64[2] [1, 2]}
          %y: f64[2] = Add(%x, %a)
          %m: i64[2] = Add(%n, %b)
        """,
    ),
    "a constant in a branch": (
        """g (float[2] x, bool c) => (float[2] y) {
           y = If (c) <then_branch = t () => (float[2] a) {
                         k = Constant <value = float[2] {1, 2}> () a = Add (x, k) },
                       else_branch = e () => (float[2] b) { b = Abs (x) }> }""",
        """
        graph (%x: f32[2], %c: bool[]) -> %y
          %y: f32[2] = If(%c, %x)
            then (%x#1: f32[2]) -> %a
              %#0: f16[2] = Constant() {value=f16[2] [1.0, 2.0]}
              %k: f32[2] = Cast(%#0) {round_mode='up', saturate=True, to=f32}
              %a: f32[2] = Add(%x#1, %k)
              %x#1 <- Invariant(input=1)
              %a -> Yield(output=0)
            else (%x#2: f32[2]) -> %b
              %b: f32[2] = Abs(%x#2)
              %x#2 <- Invariant(input=1)
              %b -> Yield(output=0)
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_compress(name: str) -> None:
    text, expected = CASES[name]
    assert after(compress, text) == cleandoc(expected)


F32 = ("float[8] y", "<float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}>", "y = Add (x, w)")
F16 = ("float[2] y", "<float16[2] w = {1, 2}>", "v = Cast <to = 10> (x) u = Add (v, w) "
       "y = Cast <to = 1> (u)")  # fmt: skip
NONE = ("float[1] y", "<float w = {1}, int64[1] shape = {1}>", "v = Add (x, w) "
        "y = Reshape (v, shape)")  # fmt: skip
INT8 = (
        "float[24] y", f"<float[2] w = {{1, 2}}, int8[24] q = {{{', '.join('1' * 24)}}}>",
        "v = Mul (x, w) s = ReduceSum <keepdims = 0> (v) u = Cast <to = 1> (q) y = Mul (u, s)",
)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "compress", "said"),
    [
        (F32, False, "f32"),
        (F32, True, "f16 (compressed)"),
        (F16, False, "f16"),
        (NONE, False, ""),
        (INT8, False, "75% i8, 25% f32"),
    ],
)
def test_a_conversion_says_what_weights_are_stored_in(
    model: tuple[str, str, str], compress: bool, said: str, tmp_path: Path
) -> None:
    output, constants, nodes = model
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[1] x) => ({output}) {constants} {{ {nodes} }}"""
    proto = onnx.parser.parse_model(text)
    report = bridge.convert(proto, tmp_path / "m.xml", compress_to_fp16=compress)
    assert report.weights == said


@pytest.mark.parametrize("source", ["m.onnx", "m.xml"])
def test_weights_stored_as_bf16(source: str, tmp_path: Path) -> None:
    """bf16 behind a Cast is f16 then, also in an IR."""
    text = """<ir_version: 10, opset_import: ["": 17]>
    g (float[n, 64] x) => (float[n, 8] y) { v = Cast <to = 1> (w) y = MatMul (x, v) }"""
    proto = onnx.parser.parse_model(text)
    weights = np.linspace(-1, 1, 512).astype(ml_dtypes.bfloat16).reshape(64, 8)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(proto, tmp_path / "m.onnx")
    bridge.convert(tmp_path / "m.onnx", tmp_path / "m.xml")
    assert (tmp_path / "m.bin").read_bytes() == weights.tobytes()
    report = bridge.convert(tmp_path / source, tmp_path / "f16.xml", compress_to_fp16=True)
    assert report.weights == "f16 (compressed)"
    assert (tmp_path / "f16.bin").read_bytes() == weights.astype(np.float16).tobytes()
