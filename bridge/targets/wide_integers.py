"""Notes integers that may leave the 32 bits in which OpenVINO's CPU plugin computes them.

Inputs, conversions of 32 bits and large constants may have such numbers. What is an index, a size
or a count fits, also if it is one after sums and products. So do masks: numbers that are compared
with a constant for equality, or converted to f32, which would round large ones.
"""

from collections.abc import Sequence
from enum import IntFlag

from bridge.neutral.dataflow import Analysis, Facts, Now, Updates
from bridge.neutral.graph import Model, Node, Value
from bridge.neutral.inference.indexes import is_index
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Carried, Condition
from bridge.neutral.types import F64, I32, I64, U32, U64
from bridge.passes.context import Context
from bridge.quirks.bits import is_beyond, is_limit
from bridge.quirks.quirk import COMPARISONS
from bridge.quirks.simplified import OfShape
from bridge.vocabulary import has_trait, operator

WIDE = (I64, U64)

COMPUTED = ("broadcasts", "by_element", "runs_wider")
"""The traits of operators that compute with numbers."""


class Role(IntFlag):
    """What becomes of the elements of a value."""

    NONE = 0
    NUMBER = 1
    """They are computed with, or an output of the model."""
    INDEX = 2
    """They are indices, sizes or counts, perhaps after sums and products."""


class OfCount(OfShape):
    """Whether a value may be computed from sizes or counts."""

    iteration = True

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """The length of a sequence is a count."""
        return [True] if node.op == "SequenceLength" else super().transfer(node, facts)


class Roles(Analysis[Role]):
    """What becomes of the elements of each value of 64 bits."""

    bottom = Role.NONE
    backward = True

    def __init__(self, sizes: Facts[bool]) -> None:
        self._sizes = sizes

    def join(self, one: Role, other: Role) -> Role:
        """Both roles."""
        return one | other

    def outside(self, value: Value) -> Role:
        """An output is read as a number."""
        return Role.NUMBER

    def settled(self, value: Value, fact: Role) -> Role:
        """Numbers of other types are right."""
        return fact if value.element in (None, *WIDE) else Role.NONE

    def node(self, node: Node, now: Now[Role]) -> Updates[Role]:
        """The roles of the operands, by those of the results."""
        after = Role.NONE
        for output in node.outputs:
            after |= now(output)
        for position, value in enumerate(node.inputs):
            if value is not None and not has_trait(node.op, "reads_shape"):
                yield value, self._of(node, position, after)

    def _of(self, node: Node, position: int, after: Role) -> Role:
        row = operator(node.op)
        places = row.shaped_by if row is not None else ()
        last = node.op.startswith("Sequence") and position == len(node.inputs) - 1
        if position in places or last or is_index(node, position):
            return Role.INDEX
        if node.op in ("Cast", "CastLike") and node.outputs[0].element not in WIDE:
            return Role.NUMBER if node.outputs[0].element is F64 else Role.NONE
        if node.op == "Where" or has_trait(node.op, "elements_of_first"):
            return after
        if node.op in COMPARISONS:
            if any(self._sizes.of(value) or _are_places(value) for value in node.operands):
                return Role.INDEX
            is_known = any(known_of(v).array is not None for v in node.operands)
            return Role.NONE if is_known and node.op in ("Equal", "NotEqual") else Role.NUMBER
        if not any(has_trait(node.op, trait) for trait in COMPUTED):
            return after
        return Role.NUMBER | (Role.NONE if has_trait(node.op, "shrinks") else after & Role.INDEX)

    def leave(self, node: Node, now: Now[Role]) -> Updates[Role]:
        """The roles of body outputs."""
        for body in node.bodies:
            for value, port in body.exits():
                if not isinstance(port, Condition) and port.output is not None:
                    yield value, now(node.outputs[port.output])

    def enter(self, node: Node, now: Now[Role]) -> Updates[Role]:
        """The roles of captured values, of states, and of the trip count."""
        if node.op == "Loop" and node.trip_count is not None:
            yield node.trip_count, Role.INDEX
        for body in node.bodies:
            for value, port in body.entries():
                use, outer = now(value), node.outer(port)
                if isinstance(port, Carried):
                    last, exit = body.exit_of(port)
                    yield last, use
                    if not isinstance(exit, Condition) and exit.output is not None:
                        use |= now(node.outputs[exit.output])
                if outer is not None:
                    yield outer, use


def _are_places(value: Value) -> bool:
    """Whether a constant numbers the elements of an axis."""
    known = known_of(value).ints
    return known is not None and len(known) > 1 and known == (*range(len(known)),)


def note_wide_integers(model: Model, context: Context) -> bool:
    """Notes the numbers that may leave 32 bits and are computed with."""
    if names := wide_integers(model):
        context.report.notes.append(f"integers are computed in 32 bits: {', '.join(names)}")
    return False


def wide_integers(model: Model) -> list[str]:
    """The names, quoted, of the numbers that may leave 32 bits and are computed with."""
    sources = [value for value in model.graph.inputs if value.element in WIDE]
    for node in model.graph.walk():
        if not node.outputs or node.outputs[0].element not in WIDE:
            continue
        made, source = node.outputs[0], node.input(0)
        is_wide = is_beyond(made) and not is_limit(made)
        is_cast = source is not None and source.element in (I32, U32)
        if is_wide or (is_cast and has_trait(node.op, "elements_of_first")):
            sources.append(made)
    uses = Facts(Roles(Facts(OfCount(), model.graph)), model.graph) if sources else None
    wide = [value.name for value in sources if uses is not None and uses.of(value) is Role.NUMBER]
    return [f'"{name}"' for name in dict.fromkeys(wide)]
