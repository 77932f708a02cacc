"""What an engine refuses of files that are right: a table, and the pass that asks it.

A file that the engine does not open is worse than a refusal that says what would help.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bridge.errors import UnsupportedError
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.types import STRING, is_static, size_of
from bridge.passes.context import Context
from bridge.passes.legality import found


@dataclass(eq=False)
class Limits:
    """What an engine takes. `on_strings` are the operators that it runs on strings. `fixed_weights`
    are those whose second input must have fixed sizes. `largest` is the bytes that a result of
    constants may have: the engine computes it when it opens a model."""

    engine: str
    on_strings: frozenset[str]
    fixed_weights: frozenset[str]
    largest: int


OPENVINO_CPU = Limits(
    "OpenVINO",
    on_strings=frozenset({
        "Concat", "Constant", "Flatten", "Gather", "Identity", "Reshape", "Shape", "Size",
        "Squeeze", "Transpose", "Unsqueeze",
    }),
    fixed_weights=frozenset({
        "Conv", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData",
    }),
    largest=1 << 33,
)  # fmt: skip
"""The CPU plugin, as of 2026.4. It opens no model with most other operators on strings, and some of
them end the process."""


def check_limits(model: Model, context: Context) -> None:
    """Raises UnsupportedError with the nodes that the target's engine would refuse."""
    findings = list(found(model.graph, partial(_refusals, limits=OPENVINO_CPU)))
    if findings:
        raise UnsupportedError(str(context.target), findings)


def _refusals(node: Node, limits: Limits) -> Iterator[str]:
    """Why the engine refuses a node."""
    inputs = [value for value in node.inputs if value is not None]
    weights = node.input(1) if node.op in limits.fixed_weights else None
    if weights is not None and not is_static(weights.shape):
        yield (
            f"its weights {weights.type} have open sizes, which {limits.engine} does not take; "
            "give the shapes of the inputs that decide them, with --input-shape"
        )
    if all(value.constant is not None for value in inputs):
        for size in map(_bytes_of, node.outputs):
            if size > limits.largest:
                yield f"its result of constants has {size} bytes"
    strings = any(value.element is STRING for value in (*inputs, *node.outputs))
    if strings and not node.bodies and node.op not in limits.on_strings:
        yield f"{limits.engine} does not compute with strings"


def _bytes_of(value: Value) -> int:
    """The bytes of a value; 0 where they are not known."""
    if value.element is None or value.shape is None or not is_static(value.shape):
        return 0
    return value.element.nbytes(size_of(value.shape))
