"""Nodes go if no output depends on them."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from bridge.passes import dead
from bridge.passes.dead import remove_dead_code, trim_outputs
from tests.support.graphs import after, context, read

DEAD = {
    "nodes that no output needs": (
        """g (float[2] x) => (float[2] y) { a = Neg (x) b = Abs (a) y = Exp (x) }""",
        """
        graph (%x: f32[2]) -> %y
          %y: f32[2] = Exp(%x)
        """,
    ),
    "a capture that only dead nodes used": (
        """g (float[2] x, float[2] w, bool c) => (float[2] y) {
           y = If (c) <then_branch = t () => (float[2] a) { unused = Neg (w) a = Neg (x) },
                       else_branch = e () => (float[2] b) { b = Abs (x) }> }""",
        """
        graph (%x: f32[2], %w: f32[2], %c: bool[]) -> %y
          %y: f32[2] = If(%c, %x)
            then (%x#1: f32[2]) -> %a
              %a: f32[2] = Neg(%x#1)
              %x#1 <- Invariant(input=1)
              %a -> Yield(output=0)
            else (%x#2: f32[2]) -> %b
              %b: f32[2] = Abs(%x#2)
              %x#2 <- Invariant(input=1)
              %b -> Yield(output=0)
        """,
    ),
    "unused outputs of an If stay": (
        """g (float[2] x, bool c) => (float[2] y) {
           y, z = If (c) <
             then_branch = t () => (float[2] a, float[2] a2) { a = Neg (x) a2 = Exp (x) },
             else_branch = e () => (float[2] b, float[2] b2) { b = Abs (x) b2 = Log (x) }> }""",
        """
        graph (%x: f32[2], %c: bool[]) -> %y
          %y: f32[2], %z: f32[2] = If(%c, %x)
            then (%x#1: f32[2]) -> %a, %a2
              %a: f32[2] = Neg(%x#1)
              %a2: f32[2] = Exp(%x#1)
              %x#1 <- Invariant(input=1)
              %a -> Yield(output=0)
              %a2 -> Yield(output=1)
            else (%x#2: f32[2]) -> %b, %b2
              %b: f32[2] = Abs(%x#2)
              %b2: f32[2] = Log(%x#2)
              %x#2 <- Invariant(input=1)
              %b -> Yield(output=0)
              %b2 -> Yield(output=1)
        """,
    ),
}

UNUSED = {
    "unused outputs of an If": (
        """g (float[2] x, bool c) => (float[2] y) {
           y, z = If (c) <
             then_branch = t () => (float[2] a, float[2] a2) { a = Neg (x) a2 = Exp (x) },
             else_branch = e () => (float[2] b, float[2] b2) { b = Abs (x) b2 = Log (x) }> }""",
        """
        graph (%x: f32[2], %c: bool[]) -> %y
          %y: f32[2] = If(%c, %x)
            then (%x#1: f32[2]) -> %a
              %a: f32[2] = Neg(%x#1)
              %x#1 <- Invariant(input=1)
              %a -> Yield(output=0)
            else (%x#2: f32[2]) -> %b
              %b: f32[2] = Abs(%x#2)
              %x#2 <- Invariant(input=1)
              %b -> Yield(output=0)
        """,
    ),
    "what a Loop carries and stacks for nobody": (
        """g (float[2] x, int64 n) => (float[2] y) {
           y, z, all = Loop (n, "", x, x) <
             body = b (int64 i, bool c, float[2] s, float[2] u)
                    => (bool d, float[2] t, float[2] v, float[2] w) {
               d = Identity (c) t = Neg (s) v = Add (u, s) w = Exp (s) }> }""",
        """
        graph (%x: f32[2], %n: i64[]) -> %y
          %y: f32[2] = Loop(%n, -, %x)
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
    "a state that another one needs": (
        """g (float[2] x, int64 n) => (float[2] y) {
           y, z = Loop (n, "", x, x) <
             body = b (int64 i, bool c, float[2] s, float[2] u)
                    => (bool d, float[2] t, float[2] v) {
               d = Identity (c) t = Neg (u) v = Add (u, s) }> }""",
        """
        graph (%x: f32[2], %n: i64[]) -> %y
          %y: f32[2] = Loop(%n, -, %x, %x)
            body (%i: i64[], %c: bool[], %s: f32[2], %u: f32[2]) -> %d, %t, %v
              %d: bool[] = Identity(%c)
              %t: f32[2] = Neg(%u)
              %v: f32[2] = Add(%u, %s)
              %i <- Iteration()
              %c <- Carried(input=None, output=0)
              %s <- Carried(input=2, output=1)
              %u <- Carried(input=3, output=2)
              %d -> Condition()
              %t -> Yield(output=0)
              %v -> Yield(output=None)
        """,
    ),
    "a state that is given to a Loop inside, which may not run, stays": (
        """g (float[2] x, int64 n, int64 m) => (float[M, 2] y) {
           z, y = Loop (m, "", x) <
             body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] w) {
               d = Identity (c) t = Add (s, s)
               w = Loop (n, "", s) <
                 body = a (int64 j, bool e, float[2] u) => (bool f, float[2] v) {
                   f = Identity (e) v = Neg (x) }> }> }""",
        """
        graph (%x: f32[2], %n: i64[], %m: i64[]) -> %y
          %y: f32[?,2] = Loop(%m, -, %x, %n, %x)
            body (%i: i64[], %c: bool[], %s: f32[2], %n#1: i64[], %x#1: f32[2]) -> %d, %t, %w
              %d: bool[] = Identity(%c)
              %t: f32[2] = Add(%s, %s)
              %w: f32[2] = Loop(%n#1, -, %s, %x#1)
                body (%j: i64[], %e: bool[], %u: f32[2], %x#2: f32[2]) -> %f, %v
                  %f: bool[] = Identity(%e)
                  %v: f32[2] = Neg(%x#2)
                  %j <- Iteration()
                  %e <- Carried(input=None, output=0)
                  %u <- Carried(input=2, output=1)
                  %x#2 <- Invariant(input=3)
                  %f -> Condition()
                  %v -> Yield(output=0)
              %i <- Iteration()
              %c <- Carried(input=None, output=0)
              %s <- Carried(input=2, output=1)
              %n#1 <- Invariant(input=3)
              %x#1 <- Invariant(input=4)
              %d -> Condition()
              %t -> Yield(output=None)
              %w -> Stacked(output=0, keepdims=False)
        """,
    ),
    "an optional output at the end": (
        """g (float[4] x) => (float[4] y) { y, mask = Dropout (x) }""",
        """
        graph (%x: f32[4]) -> %y
          %y: f32[4] = Dropout(%x)
        """,
    ),
    "outputs in front of a used one stay": (
        """g (float[4] x, int64[1] k) => (int64[K] i) { v, i = TopK (x, k) }""",
        """
        graph (%x: f32[4], %k: i64[1]) -> %i
          %v: f32[0..4], %i: i64[0..4] = TopK(%x, %k) {axis=-1, largest=True, sorted=True}
        """,
    ),
}


@pytest.mark.parametrize("name", DEAD)
def test_dead_code(name: str) -> None:
    text, expected = DEAD[name]
    assert after(remove_dead_code, text) == cleandoc(expected)


@pytest.mark.parametrize("name", UNUSED)
def test_outputs_that_nobody_uses(name: str) -> None:
    text, expected = UNUSED[name]
    assert after(trim_outputs, text) == cleandoc(expected)


def _nest(depth: int) -> str:
    """Loops within one another, each with a state for itself alone."""
    inside = "v = Neg (s)"
    for level in range(depth):
        inside = f"""
            v, unused{level} = Loop (n, "", s, x) <
              body = b{level} (int64 i{level}, bool c{level}, float[2] s, float[2] u{level})
                     => (bool d{level}, float[2] v, float[2] w{level}) {{
                d{level} = Identity (c{level}) w{level} = Add (u{level}, u{level}) {inside} }}>"""
    outermost = inside.replace("v,", "y,", 1).replace("s, x", "x, x", 1)
    return f"g (float[2] x, int64 n) => (float[2] y) {{ {outermost} }}"


def test_a_nest_of_states_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    drop = dead._drop_captures
    monkeypatch.setattr(dead, "_drop_captures", lambda *given: asked.append(0) or drop(*given))
    counts = []
    for depth in (4, 8):
        asked.clear()
        model = read(_nest(depth))
        assert trim_outputs(model, context())
        loops = [node for node in model.graph.walk() if node.op == "Loop"]
        assert all(len(loop.body.outputs) == 2 for loop in loops)
        counts.append(len(asked))
    assert counts[1] <= 2.5 * counts[0]
