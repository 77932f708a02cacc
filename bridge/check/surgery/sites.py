"""The Ifs and Loops of a model, and the ways to them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bridge.neutral.graph import Body, Graph, Model, Node
from bridge.neutral.ports import Sliced


@dataclass(frozen=True)
class Site:
    """One If or Loop of a model. `where` is its path from the top graph down; `parents` are the Ifs
    around it, outermost first, each with the branch that must run to get here. `forcible` is
    whether a switch can decide it."""

    index: int
    where: str
    parents: tuple[tuple[int, bool], ...]
    loop: bool = False
    forcible: bool = True

    @property
    def outcomes(self) -> tuple[int, ...]:
        """What can come of it: of an If True and False, of a Loop 0, 1 and 2 (or more)
        iterations."""
        return (0, 1, 2) if self.loop else (True, False)

    @property
    def switch(self) -> str:
        """The name of the input that forces this site."""
        return f"bridge.switch.{self.index}"

    def role(self, outcome: int) -> str:
        """The name of an outcome."""
        return LOOP_ROLES[outcome] if self.loop else branch_role(outcome)


LOOP_ROLES = ("none", "one", "several")
"""The outcomes of a Loop: how many iterations it runs."""


def branch_role(outcome: int) -> str:
    """The name of an outcome of an If."""
    return "then" if outcome else "else"


Branch = tuple[int, int]
"""The index of a Site, and one of its outcomes."""


def branches_of(sites: Iterable[Site]) -> list[Branch]:
    """All branches of sites, in the order of the sites."""
    return [(site.index, outcome) for site in sites for outcome in site.outcomes]


Way = tuple[tuple[Node, Body], ...]
"""The nodes on the way into a nested graph, each with the body that is entered."""


def graphs_of(model: Model) -> Iterator[tuple[Way, Graph]]:
    """Every graph of the model with the way to it, outer before inner."""
    yield (), model.graph
    for way, node in ways(model):
        for body in node.bodies:
            yield (*way, (node, body)), body.graph


def way_to(model: Model, wanted: Graph) -> Way:
    """The way to a graph of the model."""
    return next(way for way, graph in graphs_of(model) if graph is wanted)


def ways(model: Model) -> list[tuple[Way, Node]]:
    """The way to every If and Loop of the model, and the node: the Ifs first, then the Loops, outer
    before inner, in the order of the graph."""
    found: list[tuple[Way, Node]] = []

    def find(graph: Graph, way: Way) -> None:
        for node in graph.nodes:
            if node.bodies:
                found.append((way, node))
            for body in node.bodies:
                find(body.graph, (*way, (node, body)))

    find(model.graph, ())
    return sorted(found, key=lambda one: one[1].op != "If")


def path_of(way: Way, node: Node) -> str:
    """Where a node is, from the top graph down."""
    around = (
        f"{outer!r} / {role} / "
        for outer, entered in way
        for role, body in outer.roles()
        if body is entered
    )
    return "".join([*around, repr(node)])


def sites_of(model: Model) -> dict[Node, Site]:
    """Every If and Loop of the model with its place, in the order of `ways`."""
    found = ways(model)
    number = {node: index for index, (_, node) in enumerate(found)}
    return {
        node: Site(
            number[node],
            f"graph / {path_of(way, node)}",
            tuple((number[n], body is n.bodies[0]) for n, body in way if n.op == "If"),
            node.op != "If",
            is_forcible(node),
        )
        for way, node in found
    }


def is_forcible(node: Node) -> bool:
    """Whether a switch can decide an If or Loop: a Loop over slices runs once for each."""
    return not any(isinstance(port, Sliced) for body in node.bodies for port in body.inputs)
