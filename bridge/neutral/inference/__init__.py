"""Types of a node's outputs from its inputs, and content of shape-like values.

One file per family of operators. An inference function takes the node and gives one type per
output; a content function gives what is known of the elements of output 0 (see `Value.content`).
Operators of ONNX that have no function here are inferred by the standard's own (`standard.py`),
those of onnxruntime by what rules make of them (`microsoft.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.types import UNKNOWN, TensorType, Type, meet

Inference = Callable[[Node], Sequence[Type]]
Content = Callable[[Node], tuple[int | str | None, ...] | None]

ANY_RANK = {
    "Cast", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze",
}  # fmt: skip
"""Operators whose content function takes and gives values of any rank; others know vectors and
scalars. PyTorch's exporter turns the pads of a Pad round as a matrix."""

_inferences: dict[str, Inference] = {}
_contents: dict[str, Content] = {}

CONTENT_LIMIT = 64
"""Longest value of which `Value.content` is kept."""


def infers(*ops: str) -> Callable[[Inference], Inference]:
    """Registers the inference function of operators."""

    def register(function: Inference) -> Inference:
        for op in ops:
            if op in _inferences:
                raise ValueError(f"{op} has two inference functions")
            _inferences[op] = function
        return function

    return register


def knows(*ops: str) -> Callable[[Content], Content]:
    """Registers the content function of operators."""

    def register(function: Content) -> Content:
        for op in ops:
            _contents[op] = function
        return function

    return register


@cache
def _load() -> None:
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != "__init__":
            import_module(f"{__name__}.{path.stem}")


def infer(node: Node) -> None:
    """Sets the types and content of the node's outputs; what they were declared as is kept where
    inference knows less. Never raises for a node that merely cannot be inferred."""
    _load()
    function = _inferences.get(node.op)
    if function is None:
        function = _general(node.op)
    try:
        types: Sequence[Type] = function(node)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError):
        # A node whose inputs are not yet known well enough; `verify` is where contradictions show.
        types = ()
    for index, output in enumerate(node.outputs):
        inferred = types[index] if index < len(types) else UNKNOWN
        output.type = meet(inferred, output.declared)
    content = _contents.get(node.op)
    if node.op not in ANY_RANK and any(map(_is_matrix, node.inputs)):
        return
    if content is not None and node.outputs:
        output = node.outputs[0]
        try:
            output.content = content(node)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError):
            output.content = None
        if output.content is not None and len(output.content) > CONTENT_LIMIT:
            output.content = None


def _general(op: str) -> Inference:
    """How operators without a function of their own are inferred."""
    from bridge.neutral.inference.microsoft import DOMAIN, infer_by_rule
    from bridge.neutral.inference.standard import infer_by_schema

    return infer_by_rule if op.startswith(DOMAIN) else infer_by_schema


def _is_matrix(value: Value | None) -> bool:
    """Whether something is known of the elements of a matrix, or of what has more axes yet."""
    return value is not None and value.content is not None and (value.rank or 0) > 1


def infer_graph(graph: Graph) -> None:
    """Infers a graph and all that is nested in it anew, from the types of its inputs."""
    from bridge.neutral.inference.control import enter_bodies

    for node in graph.nodes:
        if node.op == "Constant":
            continue
        if node.bodies:
            enter_bodies(node)
        infer(node)


def same(node: Node) -> list[Type]:
    """Every output is like input 0."""
    value: Any = node.inputs[0]
    return [value.type] * len(node.outputs)


def first(node: Node, index: int = 0) -> TensorType:
    """The tensor type of input `index`; unknown where it is absent."""
    value: Value | None = node.input(index)
    return value.type if value is not None and isinstance(value.type, TensorType) else UNKNOWN
