"""Draws valid ONNX programs of nested If, Loop and Scan that every engine can run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from onnx import helper

from tests.programs.blocks import (
    ELEMENTS,
    FLOATS,
    GO,
    MAX_DEPTH,
    MAX_TRIPS,
    TEXT,
    TEXTS,
    Block,
    Dim,
    Draw,
    Program,
    Var,
    add_if,
    add_loop,
    add_scan,
    shuffle,
)
from tests.programs.rarities import functions
from tests.programs.texts import ML, encoded

DEEP = 6


@st.composite
def programs(
    draw: Draw,
    statements: Sequence[Callable[[Block], Any]] = (),
    most_statements: int = 6,
    elements: Sequence[str] = tuple(ELEMENTS),
) -> Program:
    """Draws a program with up to five inputs and up to `most_statements` top statements.

    Some statements are of the `further` kinds; the nodes of such a program are in any order. Inputs
    have the given element types.
    """
    opset = draw(st.sampled_from([13, 16, 19, 21, 23, 25]))
    block = Block(draw, opset, draw(st.booleans()), statements)
    block.max_depth = draw(st.sampled_from([MAX_DEPTH, DEEP])) if statements else MAX_DEPTH
    shapes: list[tuple[Dim, ...]] = [(2, 3), (), (2,), (1,), ("N",), ("N", 2), (0, 2)]
    inputs = [Var("x", "f32", draw(st.sampled_from(shapes[:6])), 2, 1)]
    for position in range(draw(st.integers(0, 2))):
        element = draw(st.sampled_from(list(elements)))
        shape = draw(st.sampled_from(shapes))
        inputs.append(Var(f"x{position}", element, shape, 2, 1 if element in FLOATS else 0))
    if draw(st.booleans()):
        inputs.append(Var("trips", "i64", (), MAX_TRIPS))
    inputs.append(Var(GO, "bool", ()))
    inputs = [replace(item, fed=True) for item in inputs]
    block.variables += inputs
    if draw(st.booleans()):
        block.constant("f32", draw(st.sampled_from([(2, 3), (2,), ()])), True)
    block.choose([add_if, add_loop, add_scan])(block)
    block.fill(most_statements)
    block.choose([add_if, add_loop, add_if])(block)

    # Only strings that the model names can be outputs of an IR.
    for var in [v for v in block.variables if v.element == TEXT]:
        encoded(block, var)
    read = {name for node in block.nodes for name in node.input}
    leaves = [v for v in block.variables if v.name not in read and v not in block.required]
    leaves = [v for v in leaves if v.element != TEXT]
    outputs = [v for v in leaves[:-1] if draw(st.booleans())] + leaves[-1:] + block.required
    if not outputs:
        outputs = [v for v in block.variables if v.element != TEXT][-1:]
    has_texts = any(element in TEXTS for element in elements)
    model = helper.make_model(
        block.graph("program", inputs, outputs),
        opset_imports=[helper.make_opsetid("", opset)] + [helper.make_opsetid(ML, 3)] * has_texts,
        ir_version=10,
    )
    if statements and opset >= 16:
        model.opset_import.append(helper.make_opsetid("local", 1))
        model.functions.extend(functions(opset))
    if statements and draw(st.booleans()):
        shuffle(model.graph, draw(st.integers(0, 99)))
    return Program(model, tuple(inputs))
