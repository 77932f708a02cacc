"""Constants that stand in for an unused value of another rank.

Exporters write an If for `break` and `continue`. It outputs the value that a later If picks. In the
branch whose value is not picked later, it outputs a number of rank 0. All these conditions depend
on each other, so a reader of the value always gets the right branch. The number may have any rank,
so it gets the rank of the value.
"""

from collections.abc import Collection, Iterator, Mapping

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value, producer_of
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Yield
from bridge.neutral.rewrite import Pattern, Rewriter

Decisions = Mapping[Value, bool]
"""Conditions with their known values."""

MOST_DEPTH = 8
"""How many Ifs a value is followed through: each may double the ways."""


def settle_dummies(graph: Graph) -> bool:
    """Gives dummies, in place, the rank of the values that they stand in for; returns whether there
    were any. An If comes before the Ifs in its branches."""
    bodies = ((node, body) for node in graph.walk() for body in node.bodies)
    outer = {value: held for n, body in bodies for value, held in n.captures(body).items()}

    def settled(b: Builder, node: Node, rewriter: Rewriter) -> None:
        for position, value in enumerate(node.outputs if node.op == "If" else ()):
            read = _read(value, rewriter.graph, outer) if _has_numbers(node, position) else {None}
            ranks = {None if one is None else one.rank for one in read}
            rank = ranks.pop() if len(ranks) == 1 else None
            if rank is not None:
                rewriter.changed |= _give(node, position, rank, read)
        rewriter.descend(node, pattern)

    pattern = Pattern(settled, frozenset({"If", "Loop"}), bodies=False)
    return Rewriter(graph).run(pattern)


def _has_numbers(node: Node, position: int) -> bool:
    """Whether one of the branches, or an If in them, may output a known number."""
    for body in node.bodies:
        value = body.given(position)
        if value.constant is not None and value.constant.size == 1:
            return True
        if (inner := producer_of(value, "If")) and _has_numbers(inner, inner.outputs.index(value)):
            return True
    return False


def _read(value: Value, graph: Graph, outer: Mapping[Value, Value]) -> set[Value | None]:
    """The possible values of an If's output at all its readers; None if they are too deep."""
    return {
        source
        for known in _reads(value, graph, {}, outer)
        for source in _sources(value, known, outer, 0)
    }


def _reads(
    value: Value, graph: Graph, known: Decisions, outer: Mapping[Value, Value]
) -> Iterator[Decisions]:
    """The known conditions at each reader of a value, into the branches of Ifs."""
    if value in graph.outputs:
        yield known
    for node in graph.nodes:
        if value not in node.inputs:
            continue
        if node.op != "If":
            yield known
            continue
        condition = _condition(node, outer)
        for body, truth in zip(node.bodies, (True, False), strict=True):
            for entry, captured in node.captures(body).items():
                if captured is value:
                    yield from _reads(entry, body.graph, {**known, condition: truth}, outer)


def _condition(node: Node, outer: Mapping[Value, Value]) -> Value:
    """The decider of an If, in the graphs around it and behind copies."""
    return node.operand(0).behind("Identity", outside=outer)


def _sources(
    value: Value, known: Decisions, outer: Mapping[Value, Value], depth: int
) -> Iterator[Value | None]:
    """The possible sources of a value, past Ifs, under the known conditions."""
    value = value.behind("Identity", outside=outer)
    node = producer_of(value, "If")
    if node is None:
        yield value
    elif depth == MOST_DEPTH:
        yield None
    else:
        for body, inside in _taken(node, known, outer):
            exit = body.given(node.outputs.index(value))
            yield from _sources(exit, inside, outer, depth + 1)


def _taken(
    node: Node, known: Decisions, outer: Mapping[Value, Value]
) -> Iterator[tuple[Body, Decisions]]:
    """The branches that may have been taken, with the known conditions in them. If an output of
    the If is known, the branch's own output is known too."""
    condition = _condition(node, outer)
    for body, truth in zip(node.bodies, (True, False), strict=True):
        if known.get(condition, truth) is not truth:
            continue
        inside = {**known, condition: truth}
        for position, value in enumerate(node.outputs):
            if value in known:
                number = body.given(position).behind("Identity", outside=outer)
                content = known_of(number).ints
                if content is not None and (bool(content[0]),) != (known[value],):
                    break
                inside[number] = known[value]
        else:
            yield body, inside


def _give(node: Node, position: int, rank: int, read: Collection[Value | None]) -> bool:
    """Reshapes, in place, the unread numbers among the branches' outputs to this rank. Returns
    whether any had another rank."""
    changed = False
    for body in node.bodies:
        value = body.given(position)
        made = value.producer
        if made is None or value in read:
            continue
        if made.op == "If" and _is_only_output(value, body.graph):
            changed = _give(made, made.outputs.index(value), rank, read) or changed
        elif value.constant is not None and value.constant.size == 1 and value.rank != rank:
            b = Builder([], made.name)
            dummy = b.filled(value.constant.array().item(), (1,) * rank, value.element)
            body.graph.nodes += b.nodes
            body.set_exits((dummy if p == Yield(position) else v, p) for v, p in body.exits())
            changed = True
    return changed


def _is_only_output(value: Value, graph: Graph) -> bool:
    """Whether a value is an output of its graph once, and has no other use in it."""
    return graph.outputs.count(value) == 1 and not any(value in n.inputs for n in graph.nodes)
