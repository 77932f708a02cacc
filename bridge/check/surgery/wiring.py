"""Leads further values into the bodies of Ifs and Loops, and out of them."""

from collections.abc import Callable

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Carried, Invariant, Yield
from bridge.neutral.types import ANY, TensorType


def add_output(graph: Graph, value: Value, name: str) -> None:
    """Make a value of the top-level graph one of its outputs, under `name`."""
    if name not in value.names:
        value.names.append(name)
    graph.output_names.extend([""] * (len(graph.outputs) - len(graph.output_names)))
    graph.outputs.append(value)
    graph.output_names.append(name)


def invariant(node: Node, body: Body, outer: Value) -> Value:
    """A value around a node as one in its body."""
    inner = Value(outer.type)
    body.add_entry(inner, Invariant(_new_input(node, outer)))
    return inner


def carried(
    node: Node, body: Body, start: Value, following: Callable[[Builder, Value], Value]
) -> Value:
    """A scalar state of a Loop, as a new output; `following` makes the next one of that before."""
    before = Value(start.type)
    after = following(Builder(body.graph.nodes), before)
    body.add_entry(before, Carried(_new_input(node, start), len(body.outputs)))
    output = _new_output(node, start.tensor)
    body.add_exit(after, Yield(len(node.outputs) - 1))
    return output


def yielded(node: Node, body: Body, value: Value, count: int = 0) -> Value:
    """A value of a body as an output of its node. It is the last iteration's of a Loop; of an If it
    is one zero where the other branch runs, or as many as `count` says of a vector."""
    assert value.element is not None
    # Sizes that agree by chance must not be taken for known.
    dims = (count,) if count else (ANY,) * len(value.dims)
    output = _new_output(node, TensorType(value.element, dims))
    port = Yield(len(node.outputs) - 1)
    body.add_exit(Builder(body.graph.nodes).op("Identity", value), port)
    if node.op == "If":
        (other,) = (one for one in node.bodies if one is not body)
        zero = np.zeros((count,) if count else (1,) * len(value.dims), value.element.dtype)
        other.add_exit(Builder(other.graph.nodes).constant(zero), port)
    return output


def _new_input(node: Node, outer: Value) -> int:
    """The index of a further input of a node."""
    # A Loop's first two inputs are its trip count and condition, absent or not.
    node.inputs.extend([None] * (2 - len(node.inputs)) if node.op == "Loop" else [])
    node.inputs.append(outer)
    return len(node.inputs) - 1


def _new_output(node: Node, type: TensorType) -> Value:
    """A further output of a node, which its bodies have to be given, too."""
    output = Value(type)
    output.producer = node
    node.outputs.append(output)
    return output
