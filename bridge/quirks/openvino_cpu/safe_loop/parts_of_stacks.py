"""A stack has no parts if no iteration runs.

The CPU plugin then gives the parts of the inference before, or as many as the trip count says.
"""

from __future__ import annotations

from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Condition, Iteration, Stacked
from bridge.neutral.signs import is_not_negative
from bridge.operators.control.loop_builder import (
    LoopBuilder,
    constant_condition,
    is_positive,
    scalar,
)
from bridge.passes.fuse.inverses import named_after
from bridge.passes.uses import Uses
from bridge.quirks.guarded_loops import asks, in_the_place_of
from bridge.quirks.opaque import hides, opaque, revealed, undone
from bridge.quirks.quirk import Place
from bridge.quirks.safe_loop import Clause, Draft

FAR = 1 << 30
"""An end behind every element, since no axis is so long. OpenVINO may select it in f32, which has
this number, but not the largest i32."""


def lacks(draft: Draft) -> list[Stacked]:
    """The stacks that are not cut, if the Loop may run no iteration, and no If tests for that."""
    if draft.is_guarded or not _may_be_idle(draft.loop):
        return []
    node, place = draft.node, draft.place
    return [exit for exit in draft.stacks if not _is_cut(node.outputs[exit.output], place, node)]


def give(draft: Draft, found: list[Stacked]) -> None:
    """A Slice behind the Loop takes no part if no iteration runs."""
    end = _end(draft.b, draft.loop)
    trips = draft.loop.trip_count
    if trips is not None and _is_known_condition(draft.node):
        # OpenVINO crashes if it finds that the trip count is 0, for example after a reshape of the
        # model to empty inputs.
        draft.loop.inputs[0] = opaque(draft.b, trips, "number")
    for exit in found:
        draft.loop.after(exit.output, partial(_cut, exit.axis, end))


def _cut(axis: int, end: Value, b: Builder, stacked: Value) -> Value:
    return b.cut(stacked, axis, 0, end)


def _may_be_idle(loop: LoopBuilder) -> bool:
    """Whether the trip count or the condition may keep a Loop from running."""
    return any(head is not None and not is_positive(head) for head in loop.inputs[:2])


def _is_cut(stacked: Value, place: Place, loop: Node) -> bool:
    """Whether all readers of a stack are such Slices, perhaps of a hidden stack."""
    users = place.users(stacked)
    return bool(users) and all(u.inputs[0] is stacked and _cuts(u, place, loop) for u in users)


def _cuts(user: Node, place: Place, loop: Node) -> bool:
    if user.op != "Slice":
        return hides(user, "sizes") and _is_cut(user.outputs[0], place, loop)
    end = user.inputs[2]
    made = None if end is None else end.producer
    if made is not None and made.op == "Where":
        return known_of(made.inputs[1]).ints == (FAR,)
    return _is_count(end, loop)


def _end(b: Builder, loop: LoopBuilder) -> Value:
    """The upper bound for the length of a stack, which is 0 if no iteration runs. A trip count that
    cannot be negative is such a bound."""
    trips, condition = loop.trip_count, loop.condition
    tests: list[Value] = []
    if condition is not None and not is_positive(condition):
        tests.append(scalar(b, condition))
    if trips is not None and not is_positive(trips):
        if not tests and is_not_negative(trips):
            return b.vector(b.as_i64(trips))
        tests.insert(0, b.op("Greater", scalar(b, trips), 0))
    return b.op("Where", b.fold("And", tests), [FAR], [0])


def _is_known_condition(node: Node) -> bool:
    """Whether the condition after each iteration of a Loop is a constant."""
    conditions = (value for value, exit in node.body.exits() if isinstance(exit, Condition))
    return all(value.behind("Identity").constant is not None for value in conditions)


def _is_count(end: Value | None, loop: Node) -> bool:
    """Whether a value is the trip count of a Loop, which stacks no more parts than that."""
    trips = loop.trip_count
    if end is None or trips is None:
        return False
    return end.behind(*_AS_IT_IS) is revealed(trips).behind(*_AS_IT_IS) and is_not_negative(end)


_AS_IT_IS = ("Cast", "Identity", "Reshape", "Unsqueeze")
"""Operators that give one number unchanged."""


def whole_stack(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The stack, from a Slice that ends far behind it, or at its start if the Loop did not run."""
    stack = node.inputs[0]
    loop = stack.producer if stack is not None else None
    if stack is None or loop is None or loop.op != "Loop" or stack.rank is None:
        return None
    start, _, axes, step = (known_of(node.input(i)).ints for i in range(1, 5))
    if start != (0,) or axes is None or len(axes) != 1 or step not in (None, (1,)):
        return None
    along = {
        exit.axis % stack.rank
        for exit in loop.body.outputs
        if isinstance(exit, Stacked) and loop.outputs[exit.output] is stack
    }
    if along != {axes[0] % stack.rank} or not _is_end(node.inputs[2], loop):
        return None
    return named_after(stack, node, uses)


def _is_end(end: Value | None, loop: Node) -> bool:
    """Whether a value is the trip count, or a far end that is 0 if no iteration runs."""
    if _is_count(end, loop):
        return True
    choice = end.producer if end is not None else None
    if choice is None or choice.op != "Where" or known_of(choice.inputs[2]).ints != (0,):
        return False
    far = known_of(choice.inputs[1]).ints
    heads = [v and revealed(v) for v in loop.inputs[:2]]
    return far is not None and far[0] >= FAR and asks(choice.inputs[0], heads)


def known_condition(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The Loop with a constant condition, from one whose condition compares the iteration number
    with 0.

    All true conditions have one name, and so have all false ones. Without a trip count, OpenVINO
    would see no end of the Loop.
    """
    numbers = {value for value, port in node.body.entries() if isinstance(port, Iteration)}
    found = {
        index: known
        for index, (value, exit) in enumerate(node.body.exits())
        if isinstance(exit, Condition) and (known := _known(value, numbers)) is not None
    }
    if not found or node.trip_count is None:
        return None
    loop_builder = LoopBuilder.of(node)
    for index, holds in found.items():
        inside = loop_builder.inside(b)
        loop_builder.body.graph.outputs[index] = constant_condition(inside, holds)
    return in_the_place_of(node, loop_builder.build(b), uses)


def _known(value: Value, numbers: set[Value]) -> bool | None:
    """The value of a condition that is always true or always false, unless it is a named constant
    already; else None. `numbers` are the numbers of the iteration."""
    made = value.producer
    if made is None or value.names in (["always"], ["never"]):
        return None
    if made.op in ("GreaterOrEqual", "Less"):
        compared = made.inputs[0] in numbers and known_of(made.inputs[1]).ints == (0,)
        return made.op == "GreaterOrEqual" if compared else None
    return True if made.op == "Constant" and known_of(value).ints == (1,) else None


QUIRK = Clause(
    holds="A stack has no parts if no iteration runs.",
    lacks=lacks,
    give=give,
    releases="2026.4",
    symptom="If a Loop runs no iteration, its stacks have the parts of the inference before.",
    fires="At a Loop with stacks that may run no iteration, unless an If tests whether it runs.",
    safe="A Slice up to the trip count, or to 2^30, takes the whole stack. A Slice up to 0 gives "
    "the empty stack of a Loop without an iteration.",
    cost="a Slice behind each stack of a Loop that may run no iteration",
    undo={"Loop": known_condition, "Slice": whole_stack, **undone("number")},
)
