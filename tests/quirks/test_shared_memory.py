"""Which inputs of a Loop's body get a memory of their own: the pass alone."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from bridge.neutral.graph import Model
from bridge.passes.context import Context
from bridge.quirks.openvino_cpu.state_in_shared_memory import separate_inputs
from tests.support.graphs import after

CASES = {
    "a sum in a slice's memory": (
        """g (float[4,2] x, float[2] h) => (float[2] y) {
           y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] part) => (float[2] t) {
             t = Add (part, s) }> (h, x) }""",
        """
        graph (%x: f32[4,2], %h: f32[2]) -> %y
          %y: f32[2] = Loop(-, -, %h, %x)
            body (%s: f32[2], %part: f32[2]) -> %t
              %#0: f32[2] = Max(%part, %part)
              %t: f32[2] = Add(%#0, %s)
              %s <- Carried(input=2, output=0)
              %part <- Sliced(input=3, keepdims=False)
              %t -> Yield(output=0)
        """,
    ),
    "a product of two matrices has its own": (
        """g (float[4,2] x, float[2] h) => (float[2] y) {
           y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] part) => (float[2] t) {
             k = Constant <value = float[2,2] {1, 0, 0, 1}> () t = MatMul (part, k) }> (h, x) }""",
        """
        graph (%x: f32[4,2], %h: f32[2]) -> %y
          %y: f32[2] = Loop(-, -, %h, %x)
            body (%s: f32[2], %part: f32[2]) -> %t
              %k: f32[2,2] = Constant() {value=f32[2,2] [[1.0, 0.0], [0.0, 1.0]]}
              %t: f32[2] = MatMul(%part, %k) {transpose_a=False, transpose_b=False}
              %s <- Carried(input=2, output=0)
              %part <- Sliced(input=3, keepdims=False)
              %t -> Yield(output=0)
        """,
    ),
    "two states that change places": (
        """g (float[2] x, float[2] z, int64 n) => (float[2] y, float[2] w) {
           y, w = Loop (n, "", x, z) <
             body = b (int64 i, bool c, float[2] s, float[2] u)
                    => (bool d, float[2] t, float[2] v) {
               d = Identity (c) t = Neg (u) v = Neg (s) }> }""",
        """
        graph (%x: f32[2], %z: f32[2], %n: i64[]) -> %y, %w
          %y: f32[2], %w: f32[2] = Loop(%n, -, %x, %z)
            body (%i: i64[], %c: bool[], %s: f32[2], %u: f32[2]) -> %d, %t, %v
              %#0: f32[2] = Max(%s, %s)
              %#1: f32[2] = Max(%u, %u)
              %d: bool[] = Identity(%c)
              %t: f32[2] = Neg(%#1)
              %v: f32[2] = Neg(%#0)
              %i <- Iteration()
              %c <- Carried(input=None, output=0)
              %s <- Carried(input=2, output=1)
              %u <- Carried(input=3, output=2)
              %d -> Condition()
              %t -> Yield(output=0)
              %v -> Yield(output=1)
        """,
    ),
    "what is the same in each iteration": (
        """g (float[2] x, float[2] z, int64 n) => (float[2] y) {
           y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
             d = Identity (c) t = Add (z, s) }> }""",
        """
        graph (%x: f32[2], %z: f32[2], %n: i64[]) -> %y
          %y: f32[2] = Loop(%n, -, %x, %z)
            body (%i: i64[], %c: bool[], %s: f32[2], %z#1: f32[2]) -> %d, %t
              %#0: f32[2] = Max(%z#1, %z#1)
              %d: bool[] = Identity(%c)
              %t: f32[2] = Add(%#0, %s)
              %i <- Iteration()
              %c <- Carried(input=None, output=0)
              %s <- Carried(input=2, output=1)
              %z#1 <- Invariant(input=3)
              %d -> Condition()
              %t -> Yield(output=0)
        """,
    ),
    "a second operand is not written to": (
        """g (float[2] x, float[2] z, int64 n) => (float[2] y) {
           y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
             d = Identity (c) t = Add (s, z) }> }""",
        """
        graph (%x: f32[2], %z: f32[2], %n: i64[]) -> %y
          %y: f32[2] = Loop(%n, -, %x, %z)
            body (%i: i64[], %c: bool[], %s: f32[2], %z#1: f32[2]) -> %d, %t
              %d: bool[] = Identity(%c)
              %t: f32[2] = Add(%s, %z#1)
              %i <- Iteration()
              %c <- Carried(input=None, output=0)
              %s <- Carried(input=2, output=1)
              %z#1 <- Invariant(input=3)
              %d -> Condition()
              %t -> Yield(output=0)
        """,
    ),
}


def separate(model: Model, context: Context) -> None:
    separate_inputs(model.graph, context)


@pytest.mark.parametrize("name", CASES)
def test_separate_inputs(name: str) -> None:
    text, expected = CASES[name]
    assert after(separate, text) == cleandoc(expected)
