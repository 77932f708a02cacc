"""Integers that are known to be 0 or more."""

from __future__ import annotations

import pytest

from bridge.neutral.signs import is_not_negative
from tests.support.graphs import read

LOOP = """g (int64[2] x, int64 n, float[K] f) => (int64[2] y) {{
  zero = Constant <value = int64 {{0}}> () s = Shape (f) start = {start}
  y = Loop (n, "", start) <body = b (int64 i, bool go, int64[2] a) => (bool on, int64[2] c) {{
    on = Identity (go) one = Constant <value = int64 {{1}}> () c = {step} }}> }}"""
POSITIVE = "Concat <axis = 0> (s, s)"
CHOSEN = """g (int64[3] x) => (int64[n] y) {{
  zero = Constant <value = int64 {{0}}> () below = Less (x, zero) holds = {holds}
  y = Compress <axis = 0> (x, holds) }}"""
PADDED = """g (float[K] f, int64[2] pads, int64 x) => (int64[n] y) {{
  s = Shape (f) y = Pad (s, pads{value}) }}"""
KNOWN = {
    "a state that grows": (LOOP.format(start=POSITIVE, step="Add (a, i)"), True),
    "a state that shrinks": (LOOP.format(start=POSITIVE, step="Sub (a, one)"), False),
    "a state that starts anywhere": (LOOP.format(start="Identity (x)", step="Add (a, i)"), False),
    "what is chosen of two": (
        "g (bool b, float[K] f, int64[1] z) => (int64[1] y) { s = Shape (f) y = Where (b, s, s) }",
        True,
    ),
    "one of two may be": (
        "g (bool b, float[K] f, int64[1] z) => (int64[1] y) { s = Shape (f) y = Where (b, s, z) }",
        False,
    ),
    "what is negative is replaced": (
        """g (int64 n) => (int64 y) { zero = Constant <value = int64 {0}> ()
           most = Constant <value = int64 {9}> () b = Less (n, zero) y = Where (b, most, n) }""",
        True,
    ),
    "what is not negative is replaced": (
        """g (int64 n) => (int64 y) { zero = Constant <value = int64 {0}> ()
           most = Constant <value = int64 {9}> () b = Less (zero, n) y = Where (b, most, n) }""",
        False,
    ),
    "what is not negative is taken": (CHOSEN.format(holds="GreaterOrEqual (x, zero)"), True),
    "what is negative is not taken": (
        CHOSEN.format(holds="Not (below)"),
        True,
    ),
    "what is negative is taken": (CHOSEN.format(holds="Identity (below)"), False),
    "zeros behind a shape": (PADDED.format(value=""), True),
    "anything behind a shape": (PADDED.format(value=", x"), False),
}


@pytest.mark.parametrize("name", KNOWN)
def test_signs(name: str) -> None:
    text, known = KNOWN[name]
    assert is_not_negative(read(text).graph.outputs[0]) == known
