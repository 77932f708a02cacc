"""Inputs with a default value are constants in IR, which has no such inputs."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from bridge.passes.inputs import defaults_to_constants
from tests.support.graphs import after

CASES = {
    "a default": (
        """g (float[2] x, float[2] k) => (float[2] y) <float[2] k = {1, 2}> { y = Add (x, k) }""",
        """
        graph (%x: f32[2]) -> %y
          %k: f32[2] = Constant() {value=f32[2] [1.0, 2.0]}
          %y: f32[2] = Add(%x, %k)
        """,
    ),
    "no default": (
        """g (float[2] x, float[2] k) => (float[2] y) { y = Add (x, k) }""",
        """
        graph (%x: f32[2], %k: f32[2]) -> %y
          %y: f32[2] = Add(%x, %k)
        """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_defaults(name: str) -> None:
    text, expected = CASES[name]
    assert after(defaults_to_constants, text) == cleandoc(expected)
