"""Scaled integer constants, as IR keeps weights. They stay Cast, Sub and Mul in f32, or become
DequantizeLinear beside integers."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from bridge.passes.fuse.patterns import fuse_ir
from tests.support.graphs import after

CASES = {
    "a scale for each column": (
        """g (float[M,2] x) => (float[M,2] y)
             <int8[2,2] w = {1, 2, 3, 4}, float[2] s = {0.5, 0.25}, int8[2] z = {1, 2}> {
           f = Cast <to = 1> (w) zf = Cast <to = 1> (z) d = Sub (f, zf) m = Mul (d, s)
           y = MatMul (x, m) }""",
        """
        graph (%x: f32[M,2]) -> %y
          %w: i8[2,2] = Constant() {value=i8[2,2] [[1, 2], [3, 4]]}
          %s: f32[2] = Constant() {value=f32[2] [0.5, 0.25]}
          %z: i8[2] = Constant() {value=i8[2] [1, 2]}
          %f: f32[2,2] = Cast(%w) {round_mode='up', saturate=True, to=f32}
          %zf: f32[2] = Cast(%z) {round_mode='up', saturate=True, to=f32}
          %d: f32[2,2] = Sub(%f, %zf)
          %m: f32[2,2] = Mul(%d, %s)
          %y: f32[M,2] = MatMul(%x, %m) {transpose_a=False, transpose_b=False}
        """,
    ),
    "one scale, no zero point": (
        """g (float[M,2] x) => (float[M,2] y)
             <int8[2,2] w = {1, 2, 3, 4}, float s = {0.5}> {
           f = Cast <to = 1> (w) m = Mul (s, f) y = MatMul (x, m) }""",
        """
        graph (%x: f32[M,2]) -> %y
          %w: i8[2,2] = Constant() {value=i8[2,2] [[1, 2], [3, 4]]}
          %s: f32[] = Constant() {value=f32[] 0.5}
          %f: f32[2,2] = Cast(%w) {round_mode='up', saturate=True, to=f32}
          %m: f32[2,2] = Mul(%s, %f)
          %y: f32[M,2] = MatMul(%x, %m) {transpose_a=False, transpose_b=False}
        """,
    ),
    "blocks in f16 that are joined": (
        """g (float[M,4] x) => (float[M,2] y)
             <uint8[2,2,2] w = {1, 2, 3, 4, 5, 6, 7, 8},
              float16[2,1,2] s = {15360, 16384, 15360, 16384}> {
           shape = Constant <value = int64[2] {4, 2}> ()
           f = Cast <to = 10> (w) m = Mul (f, s) r = Reshape (m, shape) g2 = Cast <to = 1> (r)
           y = MatMul (x, g2) }""",
        """
        graph (%x: f32[M,4]) -> %y
          %w: u8[2,2,2] = Constant() {value=u8[2,2,2] [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]}
          %#0: f32[2,2,2] = Cast(%w) {round_mode='up', saturate=True, to=f32}
          %s: f32[2,1,2] = Constant() {value=f32[2,1,2] [[[1.0, 2.0]], [[1.0, 2.0]]]}
          %#1: f32[2,2,2] = Mul(%#0, %s)
          %#2: i64[2] = Constant() {value=i64[2] [4, 2]}
          %g2: f32[4,2] = Reshape(%#1, %#2) {allowzero=False}
          %y: f32[M,2] = MatMul(%x, %g2) {transpose_a=False, transpose_b=False}
        """,
    ),
    "a zero point between two integers stays": (
        """g (float[M,2] x) => (float[M,2] y)
             <int8[2,2] w = {1, 2, 3, 4}, float s = {0.5}, float z = {1.5}> {
           f = Cast <to = 1> (w) d = Sub (f, z) m = Mul (d, s) y = MatMul (x, m) }""",
        """
        graph (%x: f32[M,2]) -> %y
          %w: i8[2,2] = Constant() {value=i8[2,2] [[1, 2], [3, 4]]}
          %s: f32[] = Constant() {value=f32[] 0.5}
          %z: f32[] = Constant() {value=f32[] 1.5}
          %f: f32[2,2] = Cast(%w) {round_mode='up', saturate=True, to=f32}
          %d: f32[2,2] = Sub(%f, %z)
          %m: f32[2,2] = Mul(%d, %s)
          %y: f32[M,2] = MatMul(%x, %m) {transpose_a=False, transpose_b=False}
        """,
    ),
    "integers of 64 bits stay": (
        """g (float[M,2] x) => (float[M,2] y)
             <int64[2,2] w = {1, 2, 3, 4}, float s = {0.5}> {
           f = Cast <to = 1> (w) m = Mul (f, s) y = MatMul (x, m) }""",
        """
        graph (%x: f32[M,2]) -> %y
          %w: i64[2,2] = Constant() {value=i64[2,2] [[1, 2], [3, 4]]}
          %s: f32[] = Constant() {value=f32[] 0.5}
          %f: f32[2,2] = Cast(%w) {round_mode='up', saturate=True, to=f32}
          %m: f32[2,2] = Mul(%f, %s)
          %y: f32[M,2] = MatMul(%x, %m) {transpose_a=False, transpose_b=False}
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_compressed(name: str) -> None:
    text, expected = CASES[name]
    assert after(fuse_ir, text, "onnx") == cleandoc(expected)
