"""What changes nothing, and is there so that an engine sees something else in it."""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.passes.recompose.uses import Uses


def nothing_added(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x + bucketize(r, bounds) or x - that, no random number r being as large as a bound, is x."""
    value, other = node.inputs
    assert value is not None and other is not None
    fits = other.rank is not None and other.rank <= (value.rank or 0)
    return value if fits and _is_nothing(other, uses) else None


def nothing_expanded(b: Builder, node: Node, uses: Uses) -> Value | None:
    """x in the shape of x, with nothing added to that, is x."""
    value, sizes, *axes = node.inputs
    if any(axes):
        return None
    shape = sizes.producer if sizes is not None else None
    if shape is not None and shape.op == "Add":
        sizes = nothing_added(b, shape, uses)
        shape = sizes.producer if sizes is not None else None
    if shape is None or shape.op != "Shape" or shape.inputs[0] is not value:
        return None
    whole = not shape.attributes.get("start") and shape.attributes.get("end") is None
    return value if whole else None


def _is_nothing(value: Value, uses: Uses) -> bool:
    """Whether a value is one such number."""
    cast = uses.sole(value, "Cast")
    found = uses.sole(value if cast is None else cast.inputs[0], "Bucketize")
    if found is None:
        return False
    squeeze = uses.sole(found.inputs[0], "Squeeze")
    random = uses.sole(found.inputs[0] if squeeze is None else squeeze.inputs[0], RANDOM)
    if random is None or random.outputs[0].shape != (1,):
        return False
    high, bounds = (None if v is None else v.constant for v in (random.inputs[2], found.inputs[1]))
    return high is not None and bounds is not None and bool((bounds.array() > high.array()).all())


RANDOM = "ir::RandomUniform"
