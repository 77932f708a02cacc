"""Which inputs decide the Ifs of a model, and why Ifs went when inputs were fixed."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from bridge.errors import amount
from bridge.neutral.dataflow import Facts
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.passes.deciding import Decided, Decider, Deciding, Sources, heads


class DecidedBy(Deciding):
    """Which inputs decide a value. `fixed` are constants that count as inputs, by their names."""

    def __init__(self, fixed: Mapping[Value, str]) -> None:
        self._fixed = fixed

    def outside(self, value: Value) -> Decided:
        """An input decides its elements, and its shape."""
        return Decided(frozenset({Decider(value.name)}), frozenset({Decider(value.name, True)}))

    def settled(self, value: Value, fact: Decided) -> Decided:
        """A fixed value is the input that it was."""
        if value in self._fixed:
            return Decided(frozenset({Decider(self._fixed[value])}))
        return fact


class Deciders:
    """The Ifs of a graph before it is folded: the deciders of each, and the branches around it."""

    def __init__(self, graph: Graph, fixed: Mapping[Value, str]) -> None:
        facts = Facts(DecidedBy(fixed), graph)
        self.sources: dict[Node, Sources] = {}
        self.around: dict[Node, tuple[Node, int] | None] = {}
        for node, holder in _ifs(graph, None):
            (condition,) = heads(node)
            self.sources[node] = facts.of(condition).elements
            self.around[node] = holder


def _ifs(
    graph: Graph, holder: tuple[Node, int] | None
) -> Iterator[tuple[Node, tuple[Node, int] | None]]:
    """The Ifs of a graph, each with the nearest If around it and the index of its branch."""
    for node in graph.nodes:
        if node.op == "If":
            yield node, holder
        for index, body in enumerate(node.bodies):
            yield from _ifs(body.graph, (node, index) if node.op == "If" else holder)


def causes(
    before: Deciders, graph: Graph, fixed: Collection[str], shaped: Collection[str]
) -> list[str]:
    """One line a cause: how many Ifs went for it when the graph was folded."""
    left = {node for node in graph.walk() if node.op == "If"}
    options = {Decider(name) for name in fixed} | {Decider(name, True) for name in shaped}
    removed: dict[str, list[bool]] = {}
    for node in before.sources:
        if node not in left:
            cause, is_inside = _cause(node, before, options)
            removed.setdefault(cause, []).append(is_inside)
    return [_line(cause, inside) for cause, inside in removed.items()]


def _line(cause: str, inside: Sequence[bool]) -> str:
    count = sum(inside)
    what = f" ({count} of them in branches that are never taken)" if count else ""
    return f"{amount(len(inside), 'If')} went, since {cause}{what}"


def _cause(node: Node, before: Deciders, options: Collection[Decider]) -> tuple[str, bool]:
    """The reason why an If was removed, and whether it was in a branch that is never taken."""
    holder = before.around[node]
    while holder is not None:
        outer, branch = holder
        taken = known_of(outer.inputs[0]).ints
        if taken is not None and bool(taken[0]) != (branch == 0):
            return _since(outer, before, options), True
        holder = before.around[outer]
    if known_of(node.inputs[0]).ints is None:
        return "no remaining node uses their outputs", False
    return _since(node, before, options), False


def _since(node: Node, before: Deciders, options: Collection[Decider]) -> str:
    deciding = before.sources[node].intersection(options)
    if not deciding:
        return "the model itself decides their conditions"
    return f"{_listed(deciding)} {'is' if len(deciding) == 1 else 'are'} fixed"


def remaining_ifs(graph: Graph) -> list[str]:
    """The number of the remaining Ifs, and the inputs that decide their conditions."""
    counts = Counter(_listed(sources) for sources in Deciders(graph, {}).sources.values())
    lines = []
    for sources, number in counts.items():
        verb = ("depends", "is left") if number == 1 else ("depend", "are left")
        lines.append(
            f"{amount(number, 'If')} {verb[1]}, which {verb[0]} on {sources or 'constants alone'}"
        )
    return lines


def _listed(sources: Iterable[Decider]) -> str:
    return " and ".join(sorted(map(str, sources)))
