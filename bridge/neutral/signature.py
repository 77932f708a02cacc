"""The attributes, inputs and outputs that an operator's row allows."""

from bridge.neutral.attributes import fault_of
from bridge.neutral.graph import Node
from bridge.vocabulary import operator

ONE_OF = {"Resize": (2, 3)}
"""Inputs that may each be absent, but not all."""


def impropriety(node: Node) -> str:
    """Names an attribute, input or output that a node must not have, or that it lacks. "" if the
    node is in order."""
    if node.bodies or node.op == "Constant":
        return ""
    return fault_of(node.op, node.attributes) or wrong_count(node)


def wrong_count(node: Node) -> str:
    """Names an input or output that a node must not have, or an input that it lacks; "" if there is
    none."""
    row = operator(node.op)
    if row is None or node.bodies or node.op == "Constant":
        return ""
    for kind, given, declared in (
        ("input", node.inputs, row.inputs),
        ("output", node.outputs, row.outputs),
    ):
        if len(given) > len(declared) and not (declared and declared[-1].endswith("*")):
            return f"it has {len(given)} {kind}s, and may have {len(declared)}"
    if len(node.inputs) < len(row.inputs) or None in node.inputs:
        for index, name in enumerate(row.inputs):
            if node.input(index) is None and name[-1] not in "?*":
                return f"it lacks its input {name}"
    if row.inputs and row.inputs[-1].endswith("*") and None in node.inputs[len(row.inputs) - 1 :]:
        return "it lacks one of its inputs"
    one_of = ONE_OF.get(node.op, ())
    if one_of and all(node.input(index) is None for index in one_of):
        return f"it lacks its input {' or '.join(row.inputs[i].rstrip('?') for i in one_of)}"
    return ""
