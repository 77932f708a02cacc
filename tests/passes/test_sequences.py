"""Sequences and optionals become tensors; at the boundary of a model they are restored."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import F32, TensorType
from bridge.passes.dead import remove_dead_code
from bridge.passes.sequences.model import lower_sequences
from bridge.passes.sequences.restore import restore_boundary
from bridge.passes.sequences.tensors import unview
from tests.support.graphs import after, context, read, shown

LOWERED = {
    "an element of a sequence of known length": (
        """g (float[2] x, float[3] z) => (float[3] y) {
           s = SequenceConstruct (x, z) i = Constant <value = int64 {1}> ()
           y = SequenceAt (s, i) }""",
        """
        graph (%x: f32[2], %z: f32[3]) -> %y
          %i: i64[] = Constant() {value=i64[] 1}
          %y: f32[3] = Identity(%z)
        """,
    ),
    "parts of a tensor, one erased, joined": (
        """g (float[4,2] x) => (float[K,2] y) {
           s = SplitToSequence <axis = 0, keepdims = 1> (x)
           i = Constant <value = int64 {0}> () t = SequenceErase (s, i)
           y = ConcatFromSequence <axis = 0> (t) }""",
        """
        graph (%x: f32[4,2]) -> %y
          %#0: i64[4] = Constant() {value=i64[4] [1, 1, 1, 1]}
          %#1: f32[1,2], %#2: f32[1,2], %#3: f32[1,2], %#4: f32[1,2] = Split(%x, %#0) {axis=0}
          %i: i64[] = Constant() {value=i64[] 0}
          %y: f32[3,2] = Concat(%#2, %#3, %#4) {axis=0}
        """,
    ),
    "an optional that is there": (
        """g (float[2] x) => (bool h, float[2] y) {
           o = Optional (x) h = OptionalHasElement (o) y = OptionalGetElement (o) }""",
        """
        graph (%x: f32[2]) -> %h, %y
          %h: bool[] = Constant() {value=bool[] True}
          %y: f32[2] = Identity(%x)
        """,
    ),
    "a sequence that comes out of an If": (
        """g (float[2] x, float[2] z, bool c) => (float[2] y) {
           i = Constant <value = int64 {0}> ()
           s = If (c) <then_branch = t () => (seq(float[2]) a) { a = SequenceConstruct (x, z) },
                       else_branch = e () => (seq(float[2]) b) { b = SequenceConstruct (z, x) }>
           y = SequenceAt (s, i) }""",
        """
        graph (%x: f32[2], %z: f32[2], %c: bool[]) -> %y
          %i: i64[] = Constant() {value=i64[] 0}
          %s.0: f32[2], %s.1: f32[2] = If(%c, %x, %z)
            then (%x#1: f32[2], %z#1: f32[2]) -> %x#1, %z#1
              %x#1 <- Invariant(input=1)
              %z#1 <- Invariant(input=2)
              %x#1 -> Yield(output=0)
              %z#1 -> Yield(output=1)
            else (%z#2: f32[2], %x#2: f32[2]) -> %z#2, %x#2
              %z#2 <- Invariant(input=2)
              %x#2 <- Invariant(input=1)
              %z#2 -> Yield(output=0)
              %x#2 -> Yield(output=1)
          %y: f32[2] = Identity(%s.0)
        """,
    ),
    "elements that an If in a Loop reads at any position, put together outside of the Loop": (
        """g (float[2] x, float[2] z, int64 n, bool c) => (float[N,2] y) {
           s = SequenceConstruct (x, z)
           y = Loop (n, c) <body = b (int64 i, bool g) => (bool g, float[2] w) {
              w = If (g) <then_branch = t () => (float[2] a) { a = SequenceAt (s, i) },
                          else_branch = e () => (float[2] f) {
                            f = Constant <value = float[2] {1, 2}> () }> }> }""",
        """
        graph (%x: f32[2], %z: f32[2], %n: i64[], %c: bool[]) -> %y
          %#0: i64[1] = Constant() {value=i64[1] [0]}
          %#1: f32[1,2] = Unsqueeze(%x, %#0)
          %#2: i64[1] = Constant() {value=i64[1] [0]}
          %#3: f32[1,2] = Unsqueeze(%z, %#2)
          %#4: f32[2,2] = Concat(%#1, %#3) {axis=0}
          %y: f32[?,2] = Loop(%n, %c, %x, %z, %#4)
            body (%i: i64[], %g: bool[], %s.0: f32[2], %s.1: f32[2], %s.data: f32[2,2]) -> %g, %w
              %w: f32[2] = If(%g, %s.0, %s.1, %i, %s.data)
                then (%s.0#1: f32[2], %s.1#1: f32[2], %i#1: i64[], %s.data#1: f32[2,2]) -> %a
                  %#5: i64[] = Constant() {value=i64[] 0}
                  %a: f32[2] = Gather(%s.data#1, %i#1, %#5) {batch_dims=0}
                  %s.0#1 <- Invariant(input=1)
                  %s.1#1 <- Invariant(input=2)
                  %i#1 <- Invariant(input=3)
                  %s.data#1 <- Invariant(input=4)
                  %a -> Yield(output=0)
                else () -> %f
                  %f: f32[2] = Constant() {value=f32[2] [1.0, 2.0]}
                  %f -> Yield(output=0)
              %i <- Iteration()
              %g <- Carried(input=1, output=0)
              %s.0 <- Invariant(input=2)
              %s.1 <- Invariant(input=3)
              %s.data <- Invariant(input=4)
              %g -> Condition()
              %w -> Stacked(output=0, keepdims=False)
        """,
    ),
    "a sequence that a Loop extends and that is joined behind it, as what is joined so far": (
        """g (float[K,2] x, int64 n, bool c) => (float[N,2] y) {
           e = SequenceEmpty ()
           s = Loop (n, c, e) <body = b (int64 i, bool g, seq(float) r) => (bool g, seq(float) t) {
              t = If (g) <then_branch = t () => (seq(float) a) { a = SequenceInsert (r, x) },
                          else_branch = e () => (seq(float) f) { f = Identity (r) }> }>
           y = ConcatFromSequence <axis = -2> (s) }""",
        """
        graph (%x: f32[K,2], %n: i64[], %c: bool[]) -> %y
          %e.joined: f32[0,2] = Constant() {value=f32[0,2] []}
          %s.joined: f32[?,2] = Loop(%n, %c, %e.joined, %x)
            body (%i: i64[], %g: bool[], %r.joined: f32[?,2], %x#1: f32[K,2]) -> %g, %t.joined
              %t.joined: f32[?,2] = If(%g, %r.joined, %x#1)
                then (%r.joined#1: f32[?,2], %x#2: f32[K,2]) -> %a.joined
                  %a.joined: f32[?,2] = Concat(%r.joined#1, %x#2) {axis=0}
                  %r.joined#1 <- Invariant(input=1)
                  %x#2 <- Invariant(input=2)
                  %a.joined -> Yield(output=0)
                else (%r.joined#2: f32[?,2]) -> %f.joined
                  %f.joined: f32[?,2] = Identity(%r.joined#2)
                  %r.joined#2 <- Invariant(input=1)
                  %f.joined -> Yield(output=0)
              %i <- Iteration()
              %g <- Carried(input=1, output=0)
              %r.joined <- Carried(input=2, output=1)
              %x#1 <- Invariant(input=3)
              %g -> Condition()
              %t.joined -> Yield(output=0)
          %y: f32[?,2] = Identity(%s.joined)
        """,
    ),
    "the length of an input": (
        """g (seq(float[2]) s) => (int64 n) { n = SequenceLength (s) }""",
        """
        graph (%s.data: f32[?], %s.shapes: i64[?,1]) -> %n
          %#0: i64[2] = Shape(%s.shapes) {output_type=i64, start=0}
          %#1: i64[] = Constant() {value=i64[] 0}
          %#2: i64[] = Constant() {value=i64[] 0}
          %n: i64[] = Gather(%#0, %#1, %#2) {batch_dims=0}
        """,
    ),
}

BOUNDARIES = {
    "a sequence": "g (seq(float[2]) s) => (seq(float[2]) t) { t = Identity (s) }",
    "a sequence of known length": """g (float[2] x) => (seq(float[2]) t) {
        t = SequenceConstruct (x, x) }""",
    "an optional": "g (optional(float[2]) o) => (optional(float[2]) p) { p = Identity (o) }",
    "an optional sequence": """g (optional(seq(float[2])) o) => (bool b) {
        b = OptionalHasElement (o) }""",
}


@pytest.mark.parametrize("name", LOWERED)
def test_lower(name: str) -> None:
    text, expected = LOWERED[name]
    assert after(lower_sequences, text) == cleandoc(expected)


@pytest.mark.parametrize("name", BOUNDARIES)
def test_restore(name: str) -> None:
    model = read(BOUNDARIES[name])
    inputs = [(value.name, value.type) for value in model.graph.inputs]
    outputs = [value.type for value in model.graph.outputs]
    names = list(model.graph.output_names)
    lower_sequences(model, context("ir"))
    assert "seq" not in shown(model.graph) and "optional" not in shown(model.graph)
    restore_boundary(model, context("onnx"))
    remove_dead_code(model, context("onnx"))
    shown(model.graph)
    assert [(value.name, value.type) for value in model.graph.inputs] == inputs
    assert [value.type for value in model.graph.outputs] == outputs
    assert model.graph.output_names == names
    assert not model.metadata


@pytest.mark.parametrize(("front", "dims"), [(True, (2, 3, 1, 1)), (False, (1, 1, 2, 3))])
def test_a_view_of_one_known_shape_loses_the_axes_that_were_added(
    front: bool, dims: tuple[int, ...]
) -> None:
    builder = Builder([], target=Target("ir"))
    value = Value(TensorType(F32, dims))
    with builder:
        made = unview(builder, value, builder.constant([2]), front, [(2, 3)]).leaves()[0]
    assert made.producer is not None
    assert known_of(made.producer.input(1)).ints == (2, 3)
    assert made.shape == (2, 3)
