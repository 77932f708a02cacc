"""Stacks where no iteration runs: the CPU plugin gives those of the run before, or as many parts as
the trip count says."""

from __future__ import annotations

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.ports import Condition, Stacked
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder, is_positive, iteration_number, scalar
from bridge.quirks.guarded_loops import is_guarded
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting

ALL = 1 << 30
"""An end of a Slice behind every part. The CPU plugin may choose in f32, where the largest i32
overflows; this is exact there."""


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
    end = b.op("Where", runs, b.constant([ALL]), zero)
    for exit in stacks:
        results[exit.output] = b.op(
            "Slice", results[exit.output], zero, end, b.constant([exit.axis])
        )
    return results


def _is_cut(stacked: Value, place: Place) -> bool:
    """Whether all that uses a stack is such a Slice, or one that another quirk has put before."""
    users = place.users(stacked)
    return bool(users) and all(
        user.op == "Slice" and user.inputs[0] is stacked and _cuts(user, place) for user in users
    )


def _cuts(slice: Node, place: Place) -> bool:
    end = slice.inputs[2]
    made = None if end is None else end.producer
    if made is None:
        return False
    if made.op == "Where":
        return integers(made.inputs[1]) == (ALL,)
    return made.op == "Max" and _is_cut(slice.outputs[0], place)


def _runs(b: Builder, node: Node) -> Value | None:
    """Whether a Loop runs at least once, as a scalar; None where it surely does."""
    trips, condition = node.trip_count, node.condition
    tests: list[Value] = []
    if trips is not None and not is_positive(trips):
        count = scalar(b, trips)
        tests.append(b.op("Greater", count, b.like(0, count)))
    if condition is not None and not is_positive(condition):
        tests.append(scalar(b, condition))
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else b.op("And", *tests)


def _hide_condition(b: Builder, loop_builder: LoopBuilder) -> None:
    """Computes a condition that is always true: a Loop without it, for which OpenVINO can tell that
    no trips are left, crashes when it is opened."""
    body = loop_builder.body
    places = [i for i, exit in enumerate(body.outputs) if isinstance(exit, Condition)]
    if places and body.graph.outputs[places[0]].behind("Identity").constant is None:
        return
    inner = loop_builder.inside(b)
    count = iteration_number(body)
    always = inner.op("GreaterOrEqual", count, inner.like(0, count))
    if places:
        body.graph.outputs[places[0]] = always
    else:
        body.add_exit(always, Condition())


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2026.4",
    symptom="Where a Loop runs no iteration, what it stacks has the parts of the inference before.",
    cost="a Slice behind each stack of a Loop that may not run",
    run=rewriting("Loop", by=cut_stacks, uses=True),
)
