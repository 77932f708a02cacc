"""A Gather that gives an empty tensor. The CPU plugin divides by a size of 0 when it compiles the
model, if it knows all sizes then.

Bridge folds most of these. This quirk is for a Gather whose sizes became known later.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import is_static
from bridge.operators import Result
from bridge.quirks.opaque import is_hidden, undone, with_hidden
from bridge.quirks.quirk import Place, Quirk, rewriting


def of_unknown_sizes(b: Builder, node: Node, place: Place) -> Result:
    """The Gather of a value whose sizes OpenVINO does not know."""
    data, indices = node.inputs[:2]
    if data is None or indices is None or is_hidden(data, "shape") or is_hidden(indices, "shape"):
        return None
    if not is_static(data.shape) or not is_static(indices.shape):
        return None
    return with_hidden(b, node, "shape", [_is_empty(data), _is_empty(indices), False])


def _is_empty(value: Value) -> bool:
    return 0 in value.dims


QUIRK = Quirk(
    releases="2026.4",
    symptom="OpenVINO crashes when it compiles a Gather of known sizes that gives an empty tensor.",
    fires="At a Gather of data and indices of known shapes, one of them empty.",
    safe="A value reshaped to its own shape is the value, and adding 0 does not change the shape.",
    cost="a Reshape, which copies nothing, and a 0 from a Bucketize of a random number below 1/2",
    run=rewriting("Gather", by=of_unknown_sizes),
    undo=undone("shape"),
)
