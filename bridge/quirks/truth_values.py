"""Conversions to truth values."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import BOOL, F32, I32, U32
from bridge.operators import Result
from bridge.quirks.quirk import BOTH, CPU, Place, is_computed_in, quirk


@quirk(
    "Cast",
    after=("value_of_pad",),
    recorded=True,
    engines=BOTH,
    symptom="NaN, -2^31 and integers from 2^31 on are false as bool: an If takes its else branch. "
    "In releases up to 2024.2 other integers stay what they are. A Convert to boolean "
    "reads the first output of a node with several outputs, even if its input is another one, and "
    'does not compile behind TopK or a VariadicSplit ("Default output not supported"); nor '
    "does one of 8-bit floats.",
    cost="none: a NotEqual for a Convert, and a Convert of 8-bit floats",
)
def cast_to_bool(b: Builder, node: Node, place: Place) -> Result:
    """Both operators give true for all numbers but 0, and for NaN."""
    (x,) = node.inputs
    if x is None or node.attributes["to"] is not BOOL:
        return None
    made = x.producer
    # Later quirks copy what an If or a Loop gives, by a VariadicSplit.
    is_part = made is not None and (len(made.outputs) > 1 or made.op in ("If", "Loop"))
    is_float = x.element is not None and x.element.is_float
    is_number = is_float or (x.element is not None and x.element.bits >= 8)
    if not (is_part or (is_number and place.engine == CPU)):
        return None
    if x.element is U32:
        x = b.cast(x, I32)
    is_stored = is_float and x.element is not None and not is_computed_in(x.element)
    return b.op("NotEqual", b.cast(x, F32) if is_stored else x, 0)
