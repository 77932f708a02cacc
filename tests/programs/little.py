"""Small statements on which engines and conversions were wrong: scalars made of products,
comparisons with empty tensors, states of 8 bits, and Loops with a negated or constant condition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx

from tests.programs.blocks import Block, Var, has_elements, new_constant, reshape


def little(block: Block) -> None:
    """One of these statements, on a value of f32 whose shape is known."""
    var = block.pick(lambda x: x.element == "f32" and has_elements(x))
    if var is None:
        new_constant(block)
        return
    block.choose([_scalar_of_product, _compared_with_nothing, _through_bytes, _turning])(block, var)


def _count(var: Var) -> int:
    return math.prod(dim for dim in var.shape if isinstance(dim, int))


def _scalar_of_product(block: Block, var: Var) -> None:
    """The sum of the value's elements, as a row times a column of ones, reshaped."""
    size = _count(var)
    row = reshape(block, var, (1, size))
    ones = block.literal(np.ones((size, 1), np.float32))
    product = replace(var, shape=(1, 1), bound=var.bound * size)
    made = block.emit("MatMul", [row, ones], product)
    scalar = block.literal(np.array([], np.int64))
    block.emit("Reshape", [made, scalar], replace(product, shape=()))


def _compared_with_nothing(block: Block, var: Var) -> None:
    """The number of axes of a comparison with a constant without elements."""
    row = reshape(block, var, (1, _count(var)))
    nothing = block.literal(np.zeros((0, 1), np.float32))
    less = block.emit("Less", [row, nothing], Var("", "bool", (0, _count(var))))
    size = Var("", "i64", (2,), _count(var))
    block.emit("Shape", [less], size)


def _through_bytes(block: Block, var: Var) -> None:
    """A state of i8 that a Loop reads, doubles and rounds to i8 again."""
    scale, point = block.literal(np.array(1, np.float32)), block.literal(np.array(0, np.int8))
    state, trips = block.fresh(), block.literal(np.array(block.choose([1, 2]), np.int64))
    block.add("QuantizeLinear", [var.name, scale, point], [state])
    shape = [dim for dim in var.shape if isinstance(dim, int)]
    helper, kind = onnx.helper, onnx.TensorProto
    names = [block.fresh() for _ in range(7)]
    step, go, given, on, wide, twice, again = names
    body = helper.make_graph(
        [
            helper.make_node("Identity", [go], [on]),
            helper.make_node("DequantizeLinear", [given, scale, point], [wide]),
            helper.make_node("Add", [wide, wide], [twice]),
            helper.make_node("QuantizeLinear", [twice, scale, point], [again]),
        ],
        "bytes",
        [
            helper.make_tensor_value_info(step, kind.INT64, []),
            helper.make_tensor_value_info(go, kind.BOOL, []),
            helper.make_tensor_value_info(given, kind.INT8, shape),
        ],
        [
            helper.make_tensor_value_info(on, kind.BOOL, []),
            helper.make_tensor_value_info(again, kind.INT8, shape),
        ],
    )
    result = block.fresh()
    block.add("Loop", [trips, "", state], [result], body=body)
    block.emit("DequantizeLinear", [result, scale, point], replace(var, bound=128, bits=0))


def _turning(block: Block, var: Var) -> None:
    """A Loop whose condition is negated or constant. It runs once, or to its trip count."""
    helper, kind = onnx.helper, onnx.TensorProto
    step, go, given, on, again = (block.fresh() for _ in range(5))
    shape = [dim for dim in var.shape if isinstance(dim, int)]
    told = block.choose(["Not", True, False])
    condition = (
        helper.make_node("Not", [go], [on])
        if told == "Not"
        else helper.make_node(
            "Constant", [], [on], value=helper.make_tensor("told", kind.BOOL, [], [told])
        )
    )
    body = helper.make_graph(
        [condition, helper.make_node("Neg", [given], [again])],
        "turning",
        [
            helper.make_tensor_value_info(step, kind.INT64, []),
            helper.make_tensor_value_info(go, kind.BOOL, []),
            helper.make_tensor_value_info(given, kind.FLOAT, shape),
        ],
        [
            helper.make_tensor_value_info(on, kind.BOOL, []),
            helper.make_tensor_value_info(again, kind.FLOAT, shape),
        ],
    )
    trips = block.literal(np.array(block.choose([0, 1, 3]), np.int64))
    result = block.fresh()
    block.add("Loop", [trips, "", var.name], [result], body=body)
    block.variables.append(replace(var, name=result))
