"""A computed trip count below 0 ends a Loop at once in ONNX but never in OpenVINO. Counts that
cannot be negative stay as they are."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from bridge.neutral.graph import Model
from bridge.passes.context import Context
from bridge.passes.trip_counts import end_at_once, never_end
from bridge.quirks import undo_quirks
from tests.support.graphs import after, read, shown

TO_IR = {
    "to IR, a count that may be negative": (
        """g (float[2] x, int64 n) => (float[2] y) {
           y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
             d = Identity (c) t = Neg (s) }> }""",
        """
        graph (%x: f32[2], %n: i64[]) -> %y
          %#0: i64[] = Constant() {value=i64[] 0}
          %#1: i64[] = Max(%n, %#0)
          %y: f32[2] = Loop(%#1, -, %x)
            body (%i: i64[], %c: bool[], %s: f32[2]) -> %d, %t
              %d: bool[] = Identity(%c)
              %t: f32[2] = Neg(%s)
              %i <- Iteration()
              %c <- Carried(input=None, output=0)
              %s <- Carried(input=2, output=1)
              %d -> Condition()
              %t -> Yield(output=0)
        """,
    ),
    "to IR, in a branch": (
        """g (float[2] x, int64 n, bool p) => (float[2] y) {
           y = If (p) <
             then_branch = t () => (float[2] a) {
               a = Loop (n, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
                 d = Identity (c) t = Neg (s) }> },
             else_branch = e () => (float[2] o) { o = Abs (x) }> }""",
        """
        graph (%x: f32[2], %n: i64[], %p: bool[]) -> %y
          %y: f32[2] = If(%p, %n, %x)
            then (%n#1: i64[], %x#1: f32[2]) -> %a
              %#0: i64[] = Constant() {value=i64[] 0}
              %#1: i64[] = Max(%n#1, %#0)
              %a: f32[2] = Loop(%#1, -, %x#1)
                body (%i: i64[], %c: bool[], %s: f32[2]) -> %d, %t
                  %d: bool[] = Identity(%c)
                  %t: f32[2] = Neg(%s)
                  %i <- Iteration()
                  %c <- Carried(input=None, output=0)
                  %s <- Carried(input=2, output=1)
                  %d -> Condition()
                  %t -> Yield(output=0)
              %n#1 <- Invariant(input=1)
              %x#1 <- Invariant(input=2)
              %a -> Yield(output=0)
            else (%x#2: f32[2]) -> %o
              %o: f32[2] = Abs(%x#2)
              %x#2 <- Invariant(input=2)
              %o -> Yield(output=0)
        """,
    ),
}

TO_ONNX = {
    "to ONNX, a count that may be negative": (
        """g (float[2] x, int64 n) => (float[2] y) {
           y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
             d = Identity (c) t = Neg (s) }> }""",
        """
        graph (%x: f32[2], %n: i64[]) -> %y
          %#0: i64[] = Constant() {value=i64[] 0}
          %#1: bool[] = Less(%n, %#0)
          %#2: i64[] = Constant() {value=i64[] 9223372036854775807}
          %#3: i64[] = Where(%#1, %#2, %n)
          %y: f32[2] = Loop(%#3, -, %x)
            body (%i: i64[], %c: bool[], %s: f32[2]) -> %d, %t
              %d: bool[] = Identity(%c)
              %t: f32[2] = Neg(%s)
              %i <- Iteration()
              %c <- Carried(input=None, output=0)
              %s <- Carried(input=2, output=1)
              %d -> Condition()
              %t -> Yield(output=0)
        """,
    ),
}

LOOP = """
y = Loop (n, "", x) <body = b (int64 i, bool c, float[A,2] h) => (bool d, float[A,2] t) {
  d = Identity (c) t = Neg (h) }> }"""
NOT_NEGATIVE = {
    "a constant": f"""g (float[A,2] x) => (float[A,2] y) {{
        n = Constant <value = int64 {{3}}> () {LOOP}""",
    "a size": f"""g (float[A,2] x) => (float[A,2] y) {{
        s = Shape (x) z = Constant <value = int64 {{0}}> () n = Gather (s, z) {LOOP}""",
    "the number of a thing": f"g (float[A,2] x) => (float[A,2] y) {{ n = Size (x) {LOOP}",
    "an absolute value": f"g (float[A,2] x, int64 k) => (float[A,2] y) {{ n = Abs (k) {LOOP}",
}


@pytest.mark.parametrize("name", TO_IR)
def test_end_at_once(name: str) -> None:
    text, expected = TO_IR[name]
    assert after(end_at_once, text) == cleandoc(expected)


@pytest.mark.parametrize("name", TO_ONNX)
def test_never_end(name: str) -> None:
    text, expected = TO_ONNX[name]
    assert after(from_ir, text, "onnx") == cleandoc(expected)


def from_ir(model: Model, context: Context) -> None:
    """Counts in other forms than a quirk writes, and the same counts in ONNX."""
    undo_quirks(model, context)
    never_end(model, context)


@pytest.mark.parametrize("name", NOT_NEGATIVE)
def test_counts_that_stay(name: str) -> None:
    text = NOT_NEGATIVE[name]
    before = shown(read(text).graph)
    assert after(end_at_once, text) == before
    assert after(never_end, text, "onnx") == before
