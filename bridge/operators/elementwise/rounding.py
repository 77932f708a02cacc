"""Operators that round."""

from bridge.neutral.inference import knows
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import KnownValue
from bridge.operators import Builder, Node, Refused, Result, legalizes


@legalizes("Round", target="onnx")
def half_away_from_zero(b: Builder, node: Node) -> Result:
    """Round-5's mode `half_away_from_zero`: rounds the magnitude down, adds 1 for a fraction of at
    least a half, and restores the sign."""
    mode = node.attributes["mode"].lower()
    x = node.operand(0)
    if node.attributes["mode"] == "half_to_even":
        return None
    if mode == "half_to_even":
        return b.op("Round", x)
    if mode != "half_away_from_zero":
        raise Refused(f"Bridge does not know the rounding mode {mode}")
    size = abs(x)
    down = b.op("Floor", size)
    rounded = b.where(size - down >= 0.5, down + 1, down)
    return b.op("Sign", x) * rounded


@knows("Ceil", "Floor", "Round")
def rounded_integers(node: Node) -> KnownValue | None:
    """Ceil, Floor, Round: integers stay as they are."""
    return known_of(node.inputs[0]).parts
