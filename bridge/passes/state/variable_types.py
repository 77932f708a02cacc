"""Types of variables, for the way back. An engine may hold a state in another type than its own."""

from collections.abc import Iterable, Mapping

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Model, Node, Value, operand_of
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import ELEMENTS, F32, Element
from bridge.records.state import TYPES


def note_types(model: Model, types: Iterable[tuple[str, Element | None]]) -> None:
    """Records the types of variables by their ids. Variables of f32 are left out."""
    known = {name: element.name for name, element in types if element not in (None, F32)}
    if known:
        TYPES.write(model.metadata, {**(TYPES.read(model.metadata) or {}), **known})


def noted_types(model: Model) -> Mapping[str, Element]:
    """The types that the metadata records, by the ids of variables."""
    known = TYPES.read(model.metadata) or {}
    return {name: ELEMENTS[text] for name, text in known.items() if text in ELEMENTS}


def restore_types(model: Model) -> None:
    """Gives variables, in place, the types that the metadata records. Casts behind a ReadValue and
    before an Assign go, if they were made for the other type."""
    types = noted_types(model)
    TYPES.take(model.metadata)

    def restored(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        element = types.get(node.attributes["variable_id"])
        value = None if element is None else _MADE[node.op](b, node, element, rewriter)
        return None if value is None else [value] * len(node.outputs)

    if types:
        ops = frozenset({"Assign", "ReadValue"})
        Rewriter(model.graph).run(Pattern(restored, ops, bodies=False, uses=True))


def _read_as(b: Builder, node: Node, element: Element, rewriter: Rewriter) -> Value | None:
    """The contents of a variable that now has the type `element`, cast to its type before."""
    read, initial, attributes = node.outputs[0], node.input(0), dict(node.attributes)
    if read.element is element:
        return None
    if "variable_type" in attributes:
        attributes["variable_type"] = element
    starts = [] if initial is None else [b.cast(initial, element)]
    state = b.node("ReadValue", starts, 1, attributes).outputs[0]
    for user in rewriter.users(read):
        if user.op == "Cast" and user.outputs[0].element is element:
            rewriter.replace(user.outputs[0], state, names=False)
    return b.cast(state, read.element)


def _assigned_as(b: Builder, node: Node, element: Element, rewriter: Rewriter) -> Value | None:
    """The output of a new Assign to a variable that now has the type `element`."""
    (assigned,) = node.inputs
    if assigned is None or assigned.element is element:
        return None
    source = operand_of(assigned, "Cast")
    if source is None or source.element is not element:
        source = b.cast(assigned, element)
    return b.node("Assign", [source], 1, dict(node.attributes)).outputs[0]


_MADE = {"Assign": _assigned_as, "ReadValue": _read_as}
