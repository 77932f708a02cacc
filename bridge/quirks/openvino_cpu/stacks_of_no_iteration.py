"""Stacks where no iteration runs: the CPU plugin gives those of the run before, or as many parts as
the trip count says."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Condition, Iteration, Stacked
from bridge.operators import Result
from bridge.operators.control.loop_builder import (
    LoopBuilder,
    constant_condition,
    is_positive,
    iteration_number,
    scalar,
)
from bridge.passes.fuse.inverses import named_after
from bridge.passes.uses import Uses
from bridge.quirks.guarded_loops import asks, in_the_place_of, is_guarded
from bridge.quirks.opaque import hides
from bridge.quirks.quirk import Place, Quirk, rewriting

FAR = 1 << 30
"""An end behind every element: no axis is so long. It is exact in f32, in which OpenVINO may choose
it; the largest i32 is not."""


def cut_stacks(b: Builder, node: Node, place: Place) -> Result:
    """None of the parts is taken where no iteration runs."""
    stacks = [exit for exit in node.body.outputs if isinstance(exit, Stacked)]
    stacks = [exit for exit in stacks if not _is_cut(node.outputs[exit.output], place)]
    runs = _runs(b, node) if stacks and not is_guarded(node, place) else None
    if runs is None:
        return None
    loop_builder = LoopBuilder.of(node)
    if loop_builder.trip_count is not None:
        _hide_condition(b, loop_builder)
    results = loop_builder.build(b)
    zero = b.constant([0])
    end = b.op("Where", runs, [FAR], zero)
    for exit in stacks:
        results[exit.output] = b.op("Slice", results[exit.output], zero, end, [exit.axis])
    return results


def _is_cut(stacked: Value, place: Place) -> bool:
    """Whether all that uses a stack is such a Slice, perhaps of what another quirk has hidden."""
    users = place.users(stacked)
    return bool(users) and all(user.inputs[0] is stacked and _cuts(user, place) for user in users)


def _cuts(user: Node, place: Place) -> bool:
    if user.op != "Slice":
        return hides(user, "sizes") and _is_cut(user.outputs[0], place)
    end = user.inputs[2]
    made = None if end is None else end.producer
    return made is not None and made.op == "Where" and integers(made.inputs[1]) == (FAR,)


def _runs(b: Builder, node: Node) -> Value | None:
    """Whether a Loop runs at least once, as a scalar; None where it surely does."""
    trips, condition = node.trip_count, node.condition
    tests: list[Value] = []
    if trips is not None and not is_positive(trips):
        count = scalar(b, trips)
        tests.append(b.op("Greater", count, 0))
    if condition is not None and not is_positive(condition):
        tests.append(scalar(b, condition))
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else b.op("And", *tests)


def _hide_condition(b: Builder, loop_builder: LoopBuilder) -> None:
    """Computes a condition that is always the same, of the number of the iteration, which is 0 or
    more. A Loop with a constant one crashes when it is opened, if OpenVINO can tell that no trips
    are left."""
    body = loop_builder.body
    places = [i for i, exit in enumerate(body.outputs) if isinstance(exit, Condition)]
    known = body.graph.outputs[places[0]].behind("Identity").constant if places else None
    if places and known is None:
        return
    holds = known is None or bool(known.array().all())
    inner = loop_builder.inside(b)
    count = iteration_number(body)
    again = inner.op("GreaterOrEqual" if holds else "Less", count, 0)
    if places:
        body.graph.outputs[places[0]] = again
    else:
        body.add_exit(again, Condition())


def whole_stack(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A Slice of a stack that ends far behind it, or at its start where the Loop did not run, is
    the stack."""
    stack = node.inputs[0]
    loop = stack.producer if stack is not None else None
    if stack is None or loop is None or loop.op != "Loop" or stack.rank is None:
        return None
    start, _, axes, step = (integers(node.input(i)) for i in range(1, 5))
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
    """Whether a value is a far end, or 0 where the Loop runs no iteration."""
    choice = end.producer if end is not None else None
    if choice is None or choice.op != "Where" or integers(choice.inputs[2]) != (0,):
        return False
    far = integers(choice.inputs[1])
    return far is not None and far[0] >= FAR and asks(choice.inputs[0], loop.inputs[:2])


def known_condition(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A Loop whose condition compares the number of the iteration with 0: it is constant. All true
    ones have one name, and so have all false ones. Without a trip count the Loop would have no end
    that can be seen."""
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
    """What a condition is whatever happens, where it is not yet said by a named constant; None
    where it is not known. `numbers` are those of the iteration."""
    made = value.producer
    if made is None or value.names in (["always"], ["never"]):
        return None
    if made.op in ("GreaterOrEqual", "Less"):
        compared = made.inputs[0] in numbers and integers(made.inputs[1]) == (0,)
        return made.op == "GreaterOrEqual" if compared else None
    return True if made.op == "Constant" and integers(value) == (1,) else None


QUIRK = Quirk(
    releases="2026.4",
    symptom="Where a Loop runs no iteration, what it stacks has the parts of the inference before.",
    fires="At a Loop that stacks and may not run, outside of an If that asks whether it does.",
    safe="A Slice up to 2^30 takes the whole stack; one up to 0 takes none, as a Loop that does "
    "not run stacks none.",
    cost="a Slice behind each stack of a Loop that may not run",
    run=rewriting("Loop", by=cut_stacks, uses=True),
    undo={"Loop": known_condition, "Slice": whole_stack},
)
