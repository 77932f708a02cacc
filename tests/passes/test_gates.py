"""HSigmoid stands for HardSigmoid of 1/6 and 1/2 if it is the gate of a product."""

from __future__ import annotations

import pytest

from bridge.passes.gates import use_h_sigmoid
from tests.support.graphs import after

SIXTH = "0.16666667163372040"
CASES = {
    "a gate": (SIXTH, "y = Mul (x, g)", True),
    "two products": (SIXTH, "a = Mul (x, g) b = Mul (g, g) y = Add (a, b)", True),
    "another slope": ("0.2", "y = Mul (x, g)", False),
    "compared": (SIXTH, "one = Constant <value_float = 1.0> () c = Equal (g, one) "
                 "d = Cast <to = 1> (c) m = Mul (x, g) y = Add (d, m)", False),
    "an output": (SIXTH, "y = Identity (g)", False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gates(name: str) -> None:
    slope, nodes, is_gate = CASES[name]
    text = f"""g (float[2] x) => (float[2] y) {{
        g = HardSigmoid <alpha = {slope}, beta = 0.5> (x) {nodes} }}"""
    found = after(use_h_sigmoid, text)
    assert ("HSigmoid" in found, "HardSigmoid" in found) == (is_gate, not is_gate)
