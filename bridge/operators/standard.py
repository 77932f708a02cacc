"""Services for the ONNX standard's operators: function bodies, and outputs for known inputs. The
ONNX format registers them."""

from collections.abc import Callable

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.computed import Compute, no_arrays

Inline = Callable[[Builder, Node, str], "list[Value | None] | None"]
"""Builds the body of a node; errors name the given place. None if the operator has no body."""


def _no_body(b: Builder, node: Node, where: str) -> None:
    return None


_inline: Inline = _no_body
_compute: Compute = no_arrays


def provide(inline: Inline, compute: Compute) -> None:
    """Registers `inline`, which builds function bodies, and `compute`, which computes nodes of
    ONNX."""
    global _inline, _compute
    _inline, _compute = inline, compute


def inline_standard_function() -> Inline:
    """The registered builder of function bodies."""
    return _inline


def compute_node() -> Compute:
    """The registered function that computes single nodes of ONNX."""
    return _compute
