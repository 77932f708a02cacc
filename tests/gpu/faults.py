"""Faults of OpenVINO's GPU plugin. Each has the smallest model that
shows it, built with OpenVINO's own interface. A line for each plugin has the numbers it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset15 as op

from bridge.check.isolation import LostProcessError, isolated

Shown = tuple[ov.Model, Sequence[Sequence[Any]]]
"""A model and its inputs, in turn for one request."""

SECONDS = 60.0
YES, NO = np.array(True), np.array(False)
ONES, FIVES = np.ones(2, np.float32), np.full(2, 5, np.float32)


def a_constant(values: Any) -> Any:
    return op.constant(np.asarray(values))


def floats(*sizes: int) -> Any:
    return op.parameter(list(sizes), np.float32)


def an_if(
    condition: Any, values: Sequence[Any], then: Callable[..., Any], otherwise: Callable[..., Any]
) -> list[Any]:
    """The outputs of an If whose branches get these values."""
    node = op.if_op(condition.output(0))
    bodies, entries = [], []
    for branch in (then, otherwise):
        inputs = [
            op.parameter(v.get_output_partial_shape(0), v.get_output_element_type(0))
            for v in values
        ]
        bodies.append(ov.Model([op.result(v) for v in branch(*inputs)], inputs))
        entries.append(inputs)
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    for value, first, second in zip(values, *entries, strict=True):
        node.set_input(value.output(0), first, second)
    pairs = zip(bodies[0].results, bodies[1].results, strict=True)
    return [node.set_output(first, second) for first, second in pairs]


def loop(
    trips: Any, first: Any, states: Sequence[Any], body: Callable[..., Sequence[Any]]
) -> list[Any]:
    """The last states of a Loop."""
    number = op.parameter([], np.int64)
    inputs = [
        op.parameter(v.get_output_partial_shape(0), v.get_output_element_type(0)) for v in states
    ]
    results = [op.result(a_constant(True)), *(op.result(v) for v in body(*inputs))]
    node = op.loop(trips, first)
    node.set_function(ov.Model(results, [number, *inputs]))
    node.set_special_body_ports([0, 0])
    for value, inner, result in zip(states, inputs, results[1:], strict=True):
        node.set_merged_input(inner, value.output(0), result.output(0))
    return [node.get_iter_value(result.output(0), -1) for result in results[1:]]


def if_with_two_outputs() -> Shown:
    """Every shape of the model is known."""
    c, x, y = op.parameter([], bool), floats(2), floats(2)
    outputs = an_if(
        c, [x, y], lambda a, b: [op.add(a, a), op.add(b, b)],
        lambda a, b: [op.negative(a), op.negative(b)],
    )  # fmt: skip
    return ov.Model([op.result(v) for v in outputs], [c, x, y]), [[YES, ONES, FIVES]]


def branch_hands_two_inputs_through() -> Shown:
    """The first output gets the second input, and the second output keeps old values."""
    c, x, y = op.parameter([], bool), floats(-1), floats(-1)
    outputs = an_if(c, [x, y], lambda a, b: [op.add(a, a), op.add(b, b)], lambda a, b: [a, b])
    model = ov.Model([op.result(v) for v in outputs], [c, x, y])
    return model, [[YES, ONES, FIVES], [NO, ONES, FIVES]]


def branch_hands_two_types_through() -> Shown:
    """The same; the types of the outputs differ, and the plugin refuses that."""
    c, x, y = op.parameter([], bool), floats(-1), op.parameter([-1], np.int32)
    outputs = an_if(c, [x, y], lambda a, b: [op.add(a, a), op.add(b, b)], lambda a, b: [a, b])
    model = ov.Model([op.result(v) for v in outputs], [c, x, y])
    return model, [[YES, ONES, np.int32([5, 5])], [NO, ONES, np.int32([5, 5])]]


def if_in_a_branch() -> Shown:
    """What reads the inner If keeps the buffer of the branch taken first."""
    p, q, x = op.parameter([], bool), op.parameter([], bool), floats(2)

    def outer(a: Any, inner: Any) -> list[Any]:
        twice = op.add(a, a)
        (chosen,) = an_if(
            inner, [twice, a], lambda s, t: [op.multiply(s, t)], lambda s, t: [op.divide(s, s)]
        )
        return [op.subtract(chosen, twice)]

    (output,) = an_if(p, [x, q], lambda a, _: [op.ceiling(a)], outer)
    x0 = np.float32([2, 3])
    return ov.Model([op.result(output)], [p, q, x]), [[NO, NO, x0], [NO, YES, x0], [NO, NO, x0]]


def first_condition_of_a_counted_loop() -> Shown:
    """The count is a constant, and the plugin unrolls the Loop; the condition is not asked."""
    go, x = op.parameter([], bool), floats(2)
    outputs = loop(a_constant(np.int64(3)), go, [x], lambda s: [op.exp(s)])
    zeros = np.zeros(2, np.float32)
    return ov.Model([op.result(v) for v in outputs], [go, x]), [[YES, zeros], [NO, zeros]]


def states_that_change_places() -> Shown:
    """p, q = q, p + q."""
    n, p, q = op.parameter([], np.int64), floats(2), floats(2)
    outputs = loop(n, a_constant(True), [p, q], lambda a, b: [b, op.add(a, b)])
    zeros = np.zeros(2, np.float32)
    model = ov.Model([op.result(v) for v in outputs], [n, p, q])
    return model, [[np.array(trips), zeros, ONES] for trips in (0, 1, 2, 3)]


def state_that_grows() -> Shown:
    """One element more in each iteration."""
    n, x = op.parameter([], np.int64), floats(-1)
    grown = lambda s: [op.concat([s, a_constant(np.float32([1]))], 0)]  # noqa: E731
    outputs = loop(n, a_constant(True), [x], grown)
    zeros = np.zeros(2, np.float32)
    model = ov.Model([op.result(v) for v in outputs], [n, x])
    return model, [[np.array(trips), zeros] for trips in (1, 2, 3, 0)]


def output_of_shapes_alone() -> Shown:
    """The product of the sizes, beside another output."""
    x = floats(-1, 3)
    sizes = op.reduce_prod(op.shape_of(x), a_constant(np.int64([0])), False)
    rows = [[np.ones((count, 3), np.float32)] for count in (2, 2, 4, 4)]
    return ov.Model(
        [op.result(sizes), op.result(op.reduce_max(x, a_constant(np.int64([0, 1]))))], [x]
    ), rows


def range_of_operator_set_1() -> Shown:
    """The plugin has Range of operator set 4 alone."""
    import openvino.opset1 as opset1

    n = op.parameter([], np.int64)
    output = opset1.range(a_constant(np.int64(0)), n, a_constant(np.int64(1)))
    return ov.Model([op.result(output)], [n]), [[np.array(3)]]


def floor_mod() -> Shown:
    """The kernel calls fmod, which has the dividend's sign."""
    a, b = floats(4), floats(4)
    inputs = [np.float32([5, -5, 5, -5]), np.float32([3, 3, -3, -3])]
    return ov.Model([op.result(op.floor_mod(a, b))], [a, b]), [inputs]


def col2im_of_a_computed_size() -> Shown:
    """The plugin reads the size as a constant."""
    x, size = floats(1, 12, 9), op.parameter([2], np.int64)
    output = op.col2im(x, size, a_constant(np.int64([2, 2])))
    data = np.ones((1, 12, 9), np.float32)
    return ov.Model([op.result(output)], [x, size]), [[data, np.int64([4, 4])]]


FAULTS: dict[str, Callable[[], Shown]] = {
    made.__name__.replace("_", " "): made
    for made in (
        if_with_two_outputs, branch_hands_two_inputs_through, branch_hands_two_types_through,
        if_in_a_branch, output_of_shapes_alone,
        first_condition_of_a_counted_loop, states_that_change_places, state_that_grows,
        range_of_operator_set_1, floor_mod, col2im_of_a_computed_size,
    )
}  # fmt: skip


def given(made: Callable[[], Shown], plugin: str) -> str:
    """What a plugin gives for the inputs of a model, in one request; and in fresh ones, where that
    differs."""
    model, feeds = made()
    try:
        compiled = ov.compile_model(model, plugin, {"INFERENCE_PRECISION_HINT": "f32"})
    except RuntimeError as error:
        return f"does not compile: {_short(error)}"
    used = compiled.create_infer_request()
    in_one = _outputs(feeds, lambda: used)
    in_fresh = _outputs(feeds, compiled.create_infer_request)
    return in_one if in_fresh == in_one else f"{in_one} (in fresh requests: {in_fresh})"


def _outputs(feeds: Sequence[Sequence[Any]], a_request: Callable[[], ov.InferRequest]) -> str:
    found = []
    for feed in feeds:
        request = a_request()
        try:
            request.infer(list(feed))
            values = [np.round(tensor.data, 4).tolist() for tensor in request.output_tensors]
            found.append(", ".join(map(str, values)))
        except RuntimeError as error:
            found.append(f"fails: {_short(error)}")
    return "; ".join(found)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[-160:]


def apart(made: Callable[[], Shown], plugin: str) -> str:
    """The same, in a process of its own."""
    try:
        return str(isolated(given, made, plugin, seconds=SECONDS))
    except LostProcessError as error:
        return str(error)
