"""The inputs of a Loop's body without a memory of their own, found by the clause alone."""

from __future__ import annotations

import pytest

from bridge.neutral.builder import Builder
from bridge.operators.control.loop_builder import LoopBuilder
from bridge.quirks.loops.clause import Draft
from bridge.quirks.loops.shared_memory import memory_inside
from bridge.quirks.quirk import Place
from tests.support.graphs import read

SCAN = """g (float[4,2] x, float[2] h) => (float[2] y) {
    y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] part) => (float[2] t) {
      %s }> (h, x) }"""
LOOP = """g (float[2] x, float[2] z, int64 n) => (float[2] y, float[2] w) {
    y, w = Loop (n, "", x, z) <
      body = b (int64 i, bool c, float[2] s, float[2] u) => (bool d, float[2] t, float[2] v) {
        d = Identity (c) %s }> }"""
KEPT = """g (float[2] x, float[2] z, int64 n) => (float[2] y) {
    y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
      d = Identity (c) %s }> }"""

CASES = {
    "a sum in a slice's memory": (SCAN % "t = Add (part, s)", ["part"]),
    "a product of two matrices has its own": (
        SCAN % "k = Constant <value = float[2,2] {1, 0, 0, 1}> () t = MatMul (part, k)",
        [],
    ),
    "two states that change places": (LOOP % "t = Neg (u) v = Neg (s)", ["s", "u"]),
    "each state of its own": (LOOP % "t = Neg (s) v = Neg (u)", []),
    "what is the same in each iteration": (KEPT % "t = Add (z, s)", ["z"]),
    "a second operand is not written to": (KEPT % "t = Add (s, z)", []),
}
"""Loops, and the names of those inputs."""


@pytest.mark.parametrize("name", CASES)
def test_what_lacks_a_memory(name: str) -> None:
    text, expected = CASES[name]
    graph = read(text).graph
    (node,) = (node for node in graph.nodes if node.op == "Loop")
    draft = Draft(Builder([]), node, Place(graph), LoopBuilder.of(node))
    lacking = memory_inside.lacks(draft)
    assert [value.name.partition("#")[0] for value in lacking] == expected
    if lacking:
        memory_inside.give(draft, lacking)
    assert not memory_inside.lacks(draft)
