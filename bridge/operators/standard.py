"""The function bodies that the ONNX standard gives its operators, registered by the ONNX format."""

from __future__ import annotations

from collections.abc import Callable

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value

Inline = Callable[[Builder, Node, str], "list[Value | None] | None"]
"""Builds the body of a node at a place that errors name; None where its operator has none."""


def _none(b: Builder, node: Node, where: str) -> None:
    return None


_inline: Inline = _none


def provide(inline: Inline) -> None:
    """`inline` is what builds function bodies from now on."""
    global _inline
    _inline = inline


def inline_standard_function() -> Inline:
    """What builds function bodies."""
    return _inline
