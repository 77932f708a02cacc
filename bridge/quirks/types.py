"""Element types."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import BOOL, Element
from bridge.operators import Result
from bridge.quirks.quirk import BOTH, CPU, Place, quirk


def _holds_nan(element: Element | None) -> bool:
    """Whether the plugin compares numbers of a type that holds NaN."""
    return element is not None and element.is_float and element.bits >= 16


@quirk(
    "Cast",
    recorded=True,
    engines=BOTH,
    symptom="NaN converted to bool is false, so an If takes its else branch. A Convert to boolean "
    "reads the first output of a node with several outputs, even if its input is another one, and "
    'does not compile behind TopK or a VariadicSplit ("Default output not supported").',
    cost="none: a NotEqual for a Convert",
)
def cast_to_bool(b: Builder, node: Node, place: Place) -> Result:
    """Both operators give true for all numbers but 0, and for NaN."""
    (x,) = node.inputs
    if x is None or node.attributes["to"] is not BOOL:
        return None
    made = x.producer
    # Later quirks copy what an If or a Loop gives, by a VariadicSplit.
    is_part = made is not None and (len(made.outputs) > 1 or made.op in ("If", "Loop"))
    may_be_nan = _holds_nan(x.element) and place.engine == CPU
    return b.op("NotEqual", x, 0) if is_part or may_be_nan else None


# Old releases convert to u8. A number other than 0 and 1 then stays in the u8, and a later
# conversion reads it.
@quirk(
    "Cast",
    until="2024.2",
    releases="2024.0 to 2024.2",
    symptom="A number that is converted to bool, and then to another type, is neither 0 nor 1 "
    "there.",
    cost="none: a NotEqual for a Convert. Only for those releases.",
)
def conversion_to_bool(b: Builder, node: Node, place: Place) -> Result:
    """Both operators give true for all numbers but 0."""
    (x,) = node.inputs
    if x is None or x.element is None or node.attributes["to"] is not BOOL:
        return None
    return b.op("NotEqual", x, 0) if x.element.is_integer and x.element.bits >= 8 else None
