"""Known values become constants, and an If with a known condition becomes its branch."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from bridge.passes.fold import fold
from tests.support.graphs import after

CASES = {
    "shape arithmetic": (
        """g (float[2,3] x) => (float[6] y) {
           s = Shape (x) p = ReduceProd <keepdims = 1> (s) y = Reshape (x, p) }""",
        """
        graph (%x: f32[2,3]) -> %y
          %s: i64[2] = Constant() {value=i64[2] [2, 3]}
          %p: i64[1] = Constant() {value=i64[1] [6]}
          %y: f32[6] = Reshape(%x, %p) {allowzero=False}
        """,
    ),
    "a known size beside a symbol": (
        """g (float[2,N] x) => (int64[1] n) {
           s = Shape (x) i = Constant <value = int64[1] {0}> () n = Gather (s, i) }""",
        """
        graph (%x: f32[2,N]) -> %n
          %s: i64[2] = Shape(%x) {output_type=i64, start=0}
          %i: i64[1] = Constant() {value=i64[1] [0]}
          %#0: i64[] = Constant() {value=i64[] 0}
          %n: i64[1] = Constant() {value=i64[1] [2]}
        """,
    ),
    "an If with a known condition": (
        """g (float[2] x) => (float[2] y) {
           c = Constant <value = bool {1}> ()
           y = If (c) <then_branch = t () => (float[2] a) { a = Neg (x) },
                       else_branch = e () => (float[2] b) { b = Abs (x) }> }""",
        """
        graph (%x: f32[2]) -> %a
          %c: bool[] = Constant() {value=bool[] True}
          %a: f32[2] = Neg(%x)
        """,
    ),
    "an If whose condition compares constants": (
        """g (float[2] x) => (float[2] y) {
           scale = Constant <value = float {0.5}> () one = Constant <value = float {1}> ()
           c = Greater (scale, one)
           y = If (c) <then_branch = t () => (float[2] a) { a = Neg (x) },
                       else_branch = e () => (float[2] b) { b = Abs (x) }> }""",
        """
        graph (%x: f32[2]) -> %b
          %scale: f32[] = Constant() {value=f32[] 0.5}
          %one: f32[] = Constant() {value=f32[] 1.0}
          %c: bool[] = Constant() {value=bool[] False}
          %b: f32[2] = Abs(%x)
        """,
    ),
    "an If that asks for the rank of its input": (
        """g (float[2,M] x) => (float[2,M] y) {
           s = Shape (x) r = Size (s) two = Constant <value = int64 {2}> () c = Equal (r, two)
           y = If (c) <then_branch = t () => (float[2,M] a) { a = Neg (x) },
                       else_branch = e () => (float[2,M] b) { b = Abs (x) }> }""",
        """
        graph (%x: f32[2,M]) -> %a
          %s: i64[2] = Shape(%x) {output_type=i64, start=0}
          %r: i64[] = Constant() {value=i64[] 2}
          %two: i64[] = Constant() {value=i64[] 2}
          %c: bool[] = Constant() {value=bool[] True}
          %a: f32[2,M] = Neg(%x)
        """,
    ),
    "a condition inside its own branch": (
        """g (float[2] x, bool c) => (float[2] y) {
           y = If (c) <
             then_branch = t () => (float[2] a) {
               a = If (c) <then_branch = t2 () => (float[2] d) { d = Neg (x) },
                           else_branch = e2 () => (float[2] f) { f = Exp (x) }> },
             else_branch = e () => (float[2] b) { b = Abs (x) }> }""",
        """
        graph (%x: f32[2], %c: bool[]) -> %y
          %y: f32[2] = If(%c, %c, %x)
            then (%x#1: f32[2]) -> %d
              %c#1: bool[] = Constant() {value=bool[] True}
              %d: f32[2] = Neg(%x#1)
              %x#1 <- Invariant(input=2)
              %d -> Yield(output=0)
            else (%x#2: f32[2]) -> %b
              %b: f32[2] = Abs(%x#2)
              %x#2 <- Invariant(input=2)
              %b -> Yield(output=0)
        """,
    ),
    "the cast of a condition": (
        """g (bool c, float x, float z) => (float y) {
           d = Cast <to = 9> (c) y = Where (d, x, z) }""",
        """
        graph (%c: bool[], %x: f32[], %z: f32[]) -> %y
          %y: f32[] = Where(%c, %x, %z)
        """,
    ),
    "a constant that branches capture": (
        """g (float[2] x, bool c) => (float[2] y) {
           k = Constant <value = float[2] {1, 2}> ()
           y = If (c) <then_branch = t () => (float[2] a) { a = Add (x, k) },
                       else_branch = e () => (float[2] b) { b = Sub (k, k) }> }""",
        """
        graph (%x: f32[2], %c: bool[]) -> %y
          %k: f32[2] = Constant() {value=f32[2] [1.0, 2.0]}
          %y: f32[2] = If(%c, %x)
            then (%x#1: f32[2]) -> %a
              %k#1: f32[2] = Constant() {value=f32[2] [1.0, 2.0]}
              %a: f32[2] = Add(%x#1, %k#1)
              %x#1 <- Invariant(input=1)
              %a -> Yield(output=0)
            else () -> %b
              %k#2: f32[2] = Constant() {value=f32[2] [1.0, 2.0]}
              %b: f32[2] = Sub(%k#2, %k#2)
              %b -> Yield(output=0)
        """,
    ),
    "values of floats stay": (
        """g (float[2] x) => (float[2] y) {
           a = Constant <value = float[2] {1, 2}> () b = Neg (a) y = Add (x, b) }""",
        """
        graph (%x: f32[2]) -> %y
          %a: f32[2] = Constant() {value=f32[2] [1.0, 2.0]}
          %b: f32[2] = Neg(%a)
          %y: f32[2] = Add(%x, %b)
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_fold(name: str) -> None:
    text, expected = CASES[name]
    assert after(fold, text) == cleandoc(expected)
