"""Optionals in operator sets that know less of them."""

from __future__ import annotations

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import OptionalType
from bridge.rules import expands


def _is_plain(b: Builder, node: Node) -> bool:
    """Whether the input is no optional, which the operators take since operator set 18."""
    assert b.target is not None
    value = node.input(0)
    return b.target.opset < 18 and (value is None or not isinstance(value.type, OptionalType))


@expands("OptionalHasElement", target="onnx")
def has_element(b: Builder, node: Node) -> Value | None:
    """A tensor or a sequence is there, an input that is left out is not."""
    return b.constant(np.array(node.input(0) is not None)) if _is_plain(b, node) else None


@expands("OptionalGetElement", target="onnx")
def get_element(b: Builder, node: Node) -> Value | None:
    """A tensor or a sequence is its own element."""
    return b.op("Identity", node.inputs[0]) if _is_plain(b, node) else None
