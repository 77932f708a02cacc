"""Statements on values of types that no engine computes in. Types of 16 and 8 bits are inputs and
outputs of bodies; types of 4 and 2 bits are inputs alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto

from tests.programs.blocks import (
    NUMBERS,
    STORED,
    Block,
    Var,
    condition,
    has_elements,
    new_constant,
)

EXACT = {"bf16": 256, "f8e4m3fn": 16, "f8e5m2": 8}
"""The largest number up to which a float type holds all integers."""

LIMITS = {"i4": (-8, 7), "u4": (0, 15), "u2": (0, 3)}
"""The least and the largest number of integers of few bits; IR has no i2."""

SINCE = {"bf16": 16, "u2": 25, "i4": 21, "u4": 21, "f8e4m3fn": 19, "f8e5m2": 19}
"""The first operator set in which bodies accept the type."""


def add_stored(block: Block) -> None:
    """A number in another type, which all later statements may use."""
    var = block.pick(lambda x: x.element in NUMBERS and bool(_exact_in(x, block.opset)))
    if var is None:
        new_constant(block)
        return
    element = block.choose(_exact_in(var, block.opset))
    block.emit("Cast", [var], replace(var, element=element), to=STORED[element][0])


def _exact_in(var: Var, opset: int) -> list[str]:
    """The types that hold a number exactly."""
    if var.bits is None:
        return []
    return [
        element
        for element, most in EXACT.items()
        if var.bound * 2**var.bits <= most and SINCE[element] <= opset
    ]


def add_packed(block: Block) -> None:
    """An If or a Scan whose bodies read a value of few bits. onnxruntime cannot return such a value
    from a body."""
    numbers = block.pick(
        lambda x: x.element in ("f32", "i32", "i64") and x.bits is not None and has_elements(x)
    )
    elements = [element for element in LIMITS if SINCE[element] <= block.opset]
    if numbers is None or not elements:
        new_constant(block)
        return
    element = block.choose(elements)
    if block.flip():
        packed = _converted(block, numbers, element)
    else:
        low, high = LIMITS[element]
        rng = np.random.default_rng(block.draw(st.integers(0, 99)))
        values = rng.integers(low, high + 1, numbers.shape).astype(STORED[element][1])
        packed = replace(numbers, element=element, name=block.literal(values), bits=0, bound=high)
    _read_in_branches(block, packed)


def _converted(block: Block, var: Var, element: str) -> Var:
    """A number cut to the limits of a type of few bits."""
    whole = var
    if var.element != "i32":
        whole = block.emit("Cast", [var], replace(var, element="i32", bits=0), to=TensorProto.INT32)
    low, high = (block.literal(np.asarray(limit, np.int32)) for limit in LIMITS[element])
    within = block.emit("Clip", [whole, low, high], replace(whole, bound=LIMITS[element][1] + 1))
    name = block.fresh()
    block.add("Cast", [within.name], [name], to=STORED[element][0])
    return replace(within, name=name, element=element)


def _read_in_branches(block: Block, packed: Var) -> None:
    """The value in f32 from one branch or both, or from a deeper branch."""
    flag = condition(block)
    result = replace(packed, element="f32", bound=max(packed.bound, 2))
    graphs = []
    for name in ("then", "else"):
        body = block.child(block.counter)
        body.fill(1)
        if body.depth < body.max_depth and body.flip():
            _read_in_branches(body, packed)
            out = body.emit("Identity", [body.variables[-1]], result)
        elif name == "then" or body.flip():
            out = body.emit("Cast", [packed.name], result, to=TensorProto.FLOAT)
        else:
            out = body.constant("f32", [d for d in packed.shape if isinstance(d, int)], True)
        graphs.append(body.graph(name, [], [out]))
        block.counter = body.counter
    result = replace(result, name=block.fresh(), fed=packed.fed or flag.fed)
    block.add("If", [flag.name], [result.name], then_branch=graphs[0], else_branch=graphs[1])
    block.variables.append(result)


STATEMENTS = (add_stored, add_stored, add_packed)
"""The statements that programs draw."""
