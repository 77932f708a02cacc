"""QuantizeLinear is a FakeQuantize if integer kernels read the result, else arithmetic."""

from __future__ import annotations

import pytest

from bridge.neutral.graph import Model
from bridge.passes.context import Context
from bridge.passes.fake_quantize import use_fake_quantize
from bridge.passes.legalize import legalize
from bridge.passes.quantized_pairs import join_pairs
from tests.support.graphs import after

PARAMETERS = (
    "float s = {0.1}, uint8 z = {3}, float t = {0.3}, int8[4, 4, 1, 1] w = "
    "{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, float r = {0.2}, int8 none = {0}"
)
PAIR = "q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z)"
WEIGHTS = "v = DequantizeLinear (w, r, none)"

CASES = {
    "a graph's output": ("y = QuantizeLinear (x, s, z)", "uint8", 0),
    "integers that go on": ("q = QuantizeLinear (x, s, z) y = Transpose (q)", "uint8", 0),
    "a pair at the end": (f"{PAIR} y = Identity (d)", "float", 0),
    "a pair before Sigmoid": (f"{PAIR} y = Sigmoid (d)", "float", 0),
    "a pair between floats": (
        "e = Sigmoid (x) q = QuantizeLinear (e, s, z) d = DequantizeLinear (q, s, z) "
        "y = Sigmoid (d)",
        "float",
        1,
    ),
    "a pair before Conv": (f"{PAIR} {WEIGHTS} y = Conv (d, v)", "float", 1),
    "moved before Conv": (f"{PAIR} m = Relu (d) {WEIGHTS} y = Conv (m, v)", "float", 1),
    "integers pooled before Conv": (
        f"q = QuantizeLinear (x, s, z) p = MaxPool <kernel_shape = [1, 1]> (q) "
        f"d = DequantizeLinear (p, s, z) {WEIGHTS} y = Conv (d, v)",
        "float",
        1,
    ),
    "the sums of an integer kernel": (
        f"{PAIR} {WEIGHTS} c = Conv (d, v) e = Relu (c) y = QuantizeLinear (e, t, z)",
        "uint8",
        2,
    ),
    "what comes after another operator": (
        f"{PAIR} {WEIGHTS} c = Conv (d, v) e = Sigmoid (c) y = QuantizeLinear (e, t, z)",
        "uint8",
        1,
    ),
    "quantised twice": (
        f"{PAIR} o = QuantizeLinear (d, t, z) e = DequantizeLinear (o, t, z) y = Add (e, x)",
        "float",
        2,
    ),
    "16 bits": (
        "h = Cast <to = 4> (z) q = QuantizeLinear (x, s, h) d = DequantizeLinear (q, s, h) "
        "y = Add (d, x)",
        "float",
        0,
    ),
}


def _written(model: Model, context: Context) -> None:
    join_pairs(model, context)
    legalize(model, context)
    use_fake_quantize(model, context)


def _text(nodes: str, type: str) -> str:
    return f"g (float[1, 4, 4, 4] x) => ({type}[a, b, c, d] y) <{PARAMETERS}> {{ {nodes} }}"


@pytest.mark.parametrize("case", CASES)
def test_kernels_take_it(case: str) -> None:
    nodes, type, wanted = CASES[case]
    found = after(_written, _text(nodes, type))
    assert found.count("= FakeQuantize(") == wanted


@pytest.mark.parametrize(("device", "wanted"), [("GPU", 0), ("NPU", 1)])
def test_the_npu_computes_in_f16(device: str, wanted: int) -> None:
    nodes, type, _ = CASES["a graph's output"]
    assert after(_written, _text(nodes, type), device=device).count("= FakeQuantize(") == wanted
