"""Identity, and operators with the same effect."""

from bridge.neutral.inference import knows
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import KnownValue
from bridge.operators import Builder, Node, Result, legalizes


@legalizes("Identity", target="ir")
def remove_identity(b: Builder, node: Node) -> Result:
    """Removes an Identity, because a value of IR may have several names. IR has Identity only since
    operator set 16."""
    return node.inputs[0]


@knows("Identity")
def same_content(node: Node) -> KnownValue | None:
    """Identity: the elements of its input."""
    return known_of(node.inputs[0]).parts
