"""The way back to ONNX, which restores the original nodes from the nodes that quirks wrote.

Each quirk has its undo in its own file, by the operator of the last node that `run` writes. An undo
is a pattern, like the patterns of `bridge.passes.fuse`. Many quirks give a `guess` of the original
nodes instead. The guess is accepted if the quirk turns it into the present nodes.
"""

from collections.abc import Collection, Iterable, Sequence

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.match import ValuePair
from bridge.neutral.rewrite import in_order
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.quirks.opaque import HIDING, recognise, row_of_constant
from bridge.quirks.quirk import GPU, Guess, Quirk, Undo
from bridge.report import Report


def _revealed(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The value behind a node that hides something of it."""
    found = recognise(node)
    if found is None:
        row = row_of_constant(node)
        return None if row is None else b.constant(row)
    return found[1]


REVEALED = dict.fromkeys(HIDING, _revealed)
"""The undo of all barriers."""


def replaced_node(quirks: Iterable[Quirk]) -> Undo:
    """An undo that restores the node of a record, if one of the quirks turns it into the present
    nodes."""
    recorded: dict[str, list[Quirk]] = {}
    for quirk in quirks:
        for op in quirk.recorded:
            recorded.setdefault(op, []).append(quirk)

    def undo(b: Builder, node: Node, uses: Uses) -> Value | None:
        from bridge.passes.fuse.provenance import restored

        record = (node.extras or {}).get("provenance")
        if record is None or not record.of_quirk:
            return None

        def within(made: Node, pairs: Sequence[ValuePair]) -> Collection[Node] | None:
            for quirk in recorded.get(made.op, ()):
                found = _replayed(quirk, b.nodes, pairs)
                if found is not None:
                    return found
            return None

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
    quirk: Quirk, nodes: Sequence[Node], pairs: Sequence[ValuePair]
) -> Collection[Node] | None:
    """The present nodes that a quirk makes of these nodes, for one of its engines. None if it makes
    others. Quirks ask how a value is computed, so a second try has the makers of the inputs too."""
    from bridge.passes.fuse.replay import becomes

    parts = [*_constant_parts(nodes), *nodes]
    for some in (parts, [*_makers(parts), *parts]):
        for engine in quirk.engines:
            context = Context(Target("ir"), Report(), {"device": "GPU" if engine == GPU else "CPU"})

            def again(graph: Graph, context: Context = context) -> None:
                quirk.run(graph, context)

            found = becomes(some, pairs, again)
            if found is not None:
                return found
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


def rewritten(quirk: Quirk, guess: Guess) -> Undo:
    """An undo that accepts the first guess that the quirk turns into the present nodes."""

    def undo(b: Builder, node: Node, uses: Uses) -> Value | None:
        output = uses.output(node)
        if sum(map(uses.count, node.outputs)) > uses.count(output):
            return None
        for made in guess(b, node):
            if _replayed(quirk, b.nodes, [(made, output)]) is not None:
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


def nearest(value: Value | None, op: str, most: int = 12) -> Node | None:
    """The nearest node of an operator among the producers of a value; at most `most` values are
    searched."""
    todo = [value]
    for value in todo:
        made = value.producer if value is not None else None
        if made is not None and made.op == op:
            return made
        if made is not None and len(todo) < most:
            todo += made.inputs
    return None
