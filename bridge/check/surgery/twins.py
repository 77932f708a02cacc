"""Which nodes and values of another model stand for those of a model.

Twins share a name that no other has. What has no twin then has one by its position: Ifs and Loops
among those of their kind, if both models have as many, and all nodes in graphs that have as many,
nearly all of the same operators.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bridge.check.surgery.sites import Site, sites_of
from bridge.neutral.graph import Graph, Model, Node, Value

_UNLIKE = 8
"""Of so many nodes one may have another operator in graphs of the same form."""


@dataclass(frozen=True)
class Twins:
    """The values of another graph, and its Ifs and Loops, by those of the first graph that they
    stand for. An If that holds a Loop and nothing else, and asks whether it runs, stands for a
    Loop."""

    values: Mapping[Value, Value]
    nodes: Mapping[Node, Node]


def twins(mine: Graph, its: Graph) -> Twins:
    """The twins in two graphs."""
    nodes = [[node for node in graph.nodes if node.bodies] for graph in (mine, its)]
    found, kinds = dict[Node, Node](), {_kind(node) for some in nodes for node in some}
    for kind in kinds:
        found |= _twin_nodes(*([node for node in some if _kind(node) == kind] for some in nodes))
    named = _by_name(_values(mine), _values(its))
    values, known = _by_position(mine, its), {*named.values()}
    return Twins({v: t for v, t in values.items() if t not in known} | named, found)


def twin_sites(first: Model, other: Model) -> dict[Node, Site]:
    """The Ifs and Loops of `other`, with the sites of `first` that they stand for."""
    mine, its = sites_of(first), sites_of(other)
    found = dict[Node, Site]()
    for loops in (False, True):
        some = ([n for n, site in all.items() if site.loop == loops] for all in (mine, its))
        found |= {twin: mine[node] for node, twin in _twin_nodes(*some).items()}
    return found


def guarded_loop(node: Node) -> Node | None:
    """The Loop in an If that holds nothing else and asks whether the Loop runs."""
    if node.op != "If":
        return None
    then, *others = [[n for n in body.graph.nodes if n.bodies] for body in node.bodies]
    return then[0] if len(then) == 1 and not any(others) and then[0].op == "Loop" else None


def _kind(node: Node) -> str:
    return node.op if guarded_loop(node) is None else "Loop"


def _twin_nodes(mine: Sequence[Node], its: Sequence[Node]) -> dict[Node, Node]:
    """The twins among nodes of one kind."""
    makers = {value: node for node in (*mine, *its) for value in node.outputs}
    named = _by_name(*([v for node in some for v in node.outputs] for some in (mine, its)))
    found = dict[Node, Node]()
    for value, twin in named.items():
        if makers[twin] not in found.values():
            found.setdefault(makers[value], makers[twin])
    left = [node for node in mine if node not in found]
    others = [node for node in its if node not in {*found.values()}]
    return found | (dict(zip(left, others, strict=True)) if len(left) == len(others) else {})


def _by_name(mine: Iterable[Value], its: Iterable[Value]) -> dict[Value, Value]:
    """Values that share a name that is that of one value alone."""
    values = list(its)
    counts = Counter(name for value in values for name in set(value.names))
    places = {name: value for value in values for name in value.names if counts[name] == 1}
    found = dict[Value, Value]()
    for value in mine:
        twin = next((places[name] for name in value.names if name in places), None)
        if twin is not None:
            found[value] = twin
    return found


def _by_position(mine: Graph, its: Graph) -> dict[Value, Value]:
    """The values of two graphs of as many nodes, of which few have another operator."""
    some, others = ([n for n in graph.nodes if n.op != "Constant"] for graph in (mine, its))
    pairs = list(zip(some, others, strict=False))
    unlike = sum(node.op != twin.op for node, twin in pairs)
    if len(some) != len(others) or unlike > 1 + len(some) // _UNLIKE:
        return {}
    return {v: t for n, twin in pairs for v, t in zip(n.outputs, twin.outputs, strict=False)}


def _values(graph: Graph) -> list[Value]:
    return [*graph.inputs, *(value for node in graph.nodes for value in node.outputs)]
