"""The way back to ONNX, which restores the original nodes from the nodes that quirks wrote.

Each quirk has its undo in its own file, by the operator of the last node that `run` writes. An undo
is a pattern, like the patterns of `bridge.passes.fuse`. Many quirks give a `guess` of the original
nodes instead. The guess is accepted if the quirk turns it into the present nodes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.match import ValuePair
from bridge.neutral.rewrite import in_order
from bridge.passes.uses import Uses
from bridge.passes.wayback.provenance import restored
from bridge.passes.wayback.replay import GraphRewrite, becomes

Undo = Callable[[Builder, Node, Uses], Value | None]
"""Returns the value that the original node gave, or None if the quirk did not write this node."""

Guess = Callable[[Builder, Node], Iterable[Value]]
"""Makes, with the builder, the outputs that may have stood there before a quirk wrote the node."""


def replaced_node(rewrites: Mapping[str, Sequence[GraphRewrite]]) -> Undo:
    """An undo that restores the node of a record, if a rewrite for its operator turns it into the
    present nodes."""

    def undo(b: Builder, node: Node, uses: Uses) -> Value | None:
        record = (node.extras or {}).get("provenance")
        if record is None or not record.of_quirk:
            return None

        def within(made: Node, pairs: Sequence[ValuePair]) -> Collection[Node] | None:
            return _replayed(rewrites.get(made.op, ()), b.nodes, pairs)

        value = restored(b, node, uses, record, within)
        if value is not None and value.producer is not None and record.former is not None:
            value.producer.extras = {"provenance": record.former}
        return value

    return undo


def recorded_ops(graph: Graph) -> set[str]:
    """The operators of nodes with records of what quirks replaced, and those of the records."""
    ops = set()
    for node in graph.walk():
        record = (node.extras or {}).get("provenance")
        while record is not None and record.of_quirk:
            ops |= {node.op, record.op}
            record = record.former
    return ops


def _replayed(
    rewrites: Sequence[GraphRewrite], nodes: Sequence[Node], pairs: Sequence[ValuePair]
) -> Collection[Node] | None:
    """The present nodes that the first fitting rewrite makes of these nodes, None if none does.
    Quirks ask how a value is computed, so a second try has the makers of the inputs too."""
    parts = [*_constant_parts(nodes), *nodes]
    for some in (parts, [*_makers(parts), *parts]):
        for rewrite in rewrites:
            there = becomes(some, pairs, rewrite)
            if there is not None:
                return there
    return None


def _makers(nodes: Sequence[Node], depth: int = 3) -> list[Node]:
    """The nodes without bodies that these nodes depend on, so many steps back."""
    found: dict[Node, None] = {}
    last = nodes
    for _ in range(depth):
        values = (value for node in last for value in node.inputs if value is not None)
        makers = (value.producer for value in values)
        last = [m for m in makers if m is not None and not m.bodies and m.op != "Constant"]
        found.update(dict.fromkeys(last))
    return in_order([maker for maker in found if maker not in nodes])


def rewritten(rewrites: Sequence[GraphRewrite], guess: Guess) -> Undo:
    """An undo that accepts the first guess that a rewrite turns into the present nodes."""

    def undo(b: Builder, node: Node, uses: Uses) -> Value | None:
        output = uses.output(node)
        if sum(map(uses.count, node.outputs)) > uses.count(output):
            return None
        for made in guess(b, node):
            if _replayed(rewrites, b.nodes, [(made, output)]) is not None:
                return made
            b.nodes.clear()
        return None

    return undo


def _constant_parts(nodes: Sequence[Node]) -> list[Node]:
    """The nodes that compute inputs of these nodes from constants. Quirks need them, because they
    ask how a value is computed."""
    parts: dict[Node, None] = {}
    inner = {value for node in nodes for value in node.outputs}

    def add(node: Node) -> None:
        for value in node.inputs:
            made = value.producer if value is not None else None
            if made is not None and made not in parts:
                add(made)
        if node.op != "Constant":
            parts[node] = None

    for value in (value for node in nodes for value in node.inputs if value not in inner):
        if value is not None and value.producer is not None and _is_of_constants(value):
            add(value.producer)
    return list(parts)


def _is_of_constants(value: Value) -> bool:
    """Whether a value is computed from constants alone, without nodes with bodies."""
    todo: list[Value | None] = [value]
    for one in todo:
        made = one.producer if one is not None else None
        if one is not None and (made is None or made.bodies or len(todo) > FAR_BACK):
            return False
        todo += made.inputs if made is not None else []
    return True


FAR_BACK = 100
"""The number of values to search. If there are more, the value does not count as constant."""
