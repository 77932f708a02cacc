"""What the ONNX standard says of its operators, registered by the ONNX format: function bodies, and
what a node gives for known inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.computed import Array, Compute

Inline = Callable[[Builder, Node, str], "list[Value | None] | None"]
"""Builds the body of a node at a place that errors name; None where its operator has none."""


def _none(b: Builder, node: Node, where: str) -> None:
    return None


def _nothing(node: Node, arrays: Sequence[Array]) -> Sequence[Array]:
    return ()


_inline: Inline = _none
_compute: Compute = _nothing


def provide(inline: Inline, compute: Compute) -> None:
    """`inline` is what builds function bodies from now on, `compute` what computes nodes that ONNX
    has."""
    global _inline, _compute
    _inline, _compute = inline, compute


def inline_standard_function() -> Inline:
    """What builds function bodies."""
    return _inline


def compute_node() -> Compute:
    """What computes single nodes that ONNX has."""
    return _compute
