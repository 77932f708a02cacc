"""A Range whose limit lies behind its start, in the direction of its step. It is empty, but the CPU
plugin uses the absolute value of the number of steps."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.signs import is_not_negative
from bridge.operators import Result
from bridge.quirks.quirk import Place, Quirk, rewriting


def up_to_start(b: Builder, node: Node, place: Place) -> Result:
    """A Range whose limit is the start, if the given limit lies behind the start."""
    start, limit, step = (value for value in node.inputs if value is not None)
    if _is_kept(start, limit) or _is_ahead(start, limit, step):
        return None
    delta = known_of(step).array
    above, below = b.max(limit, start), b.min(limit, start)
    kept = b.where(step > 0, above, below) if delta is None else above if delta > 0 else below
    return b.op(node.op, start, kept, step, **node.attributes)


def _is_kept(start: Value, limit: Value) -> bool:
    """Whether `up_to_start` made this limit."""
    made = limit.producer
    if made is not None and made.op == "Where":
        made = made.inputs[1].producer if made.inputs[1] is not None else None
    return made is not None and made.op in ("Max", "Min") and start in made.inputs


def _is_ahead(start: Value, limit: Value, step: Value) -> bool:
    """Whether the limit is known not to lie behind the start."""
    first, last, delta = (known_of(value).array for value in (start, limit, step))
    if first is None or delta is None:
        return False
    if last is not None:
        return bool((last - first) * delta >= 0)
    return bool(delta > 0 and first <= 0 and is_not_negative(limit))


def _limits(b: Builder, node: Node) -> Iterator[Value]:
    """The Range with the limit before the comparison with the start. If both are known, that
    comparison is folded."""
    start, limit, step = node.inputs
    choice = limit.producer if limit is not None else None
    ends = choice.inputs[1:] if choice is not None and choice.op == "Where" else [limit]
    for end in ends:
        made = end.producer if end is not None else None
        if made is None or made.op not in ("Constant", "Max", "Min"):
            continue
        b.name = made.name
        kept = end if made.op == "Constant" else made.inputs[0]
        if kept is not limit:
            yield b.op("Range", start, kept, step, **node.attributes)


QUIRK = Quirk(
    releases="2026.4",
    symptom="A Range whose limit lies behind its start has elements.",
    fires="At a Range, unless its limit is known to lie ahead of its start.",
    safe="A Range to its own start is empty, like a Range to a limit behind its start. Other "
    "limits do not change.",
    cost="a Maximum or a Minimum, unless the order of start and limit is known",
    run=rewriting("Range", by=up_to_start),
    guess={"Range": _limits},
)
