"""Identity, and what is none but by name."""

from __future__ import annotations

from bridge.neutral.inference import knows
from bridge.neutral.inference.dims import KnownValue, content_of
from bridge.operators import Builder, Node, Result, legalizes


@legalizes("Identity", target="ir")
def nothing(b: Builder, node: Node) -> Result:
    """A value of IR has as many names as it takes, so nothing is left of an Identity. IR's own, of
    operator set 16, was long not run by OpenVINO's CPU plugin (2025.2)."""
    return node.inputs[0]


@knows("Identity")
def same_content(node: Node) -> KnownValue | None:
    """Identity: the elements of its input."""
    return content_of(node.inputs[0])
