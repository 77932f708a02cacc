"""Names of values and nodes in a written ONNX model."""

from collections.abc import Iterable

from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Invariant
from bridge.vocabulary import has_trait


class Names:
    """Gives every value one name that no enclosing or nested scope uses for another value.

    A graph gets its names before its bodies do, so a body's names never shadow. Bodies side by side
    may use the same name.
    """

    def __init__(self) -> None:
        self.of: dict[Value, str] = {}
        self._taken: set[str] = set()
        self._ever: set[str] = set()
        self._next: dict[str, int] = {}
        self._joined: dict[str, int] = {}

    def take(self, wish: str) -> str:
        """`wish`, or `wish_1`, `wish_2`, ... if it is taken."""
        name = wish = wish or "value"
        while name in self._taken:
            number = self._next[wish] = self._next.get(wish, 0) + 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        self._ever.add(name)
        return name

    def fresh(self, wish: str) -> str:
        """Like `take`, and no written body has the name either. It is for a value that joins a
        graph after its bodies."""
        name, number = wish, self._joined.get(wish, 0)
        while name in self._ever:
            number += 1
            name = f"{wish}_{number}"
        self._joined[wish] = number
        return self.take(name)

    def is_taken(self, name: str) -> bool:
        """Whether a value has this name already."""
        return name in self._taken

    def give(self, value: Value, wish: str) -> str:
        """Names a value that has no name yet."""
        name = self.of.get(value)
        if name is None:
            name = self.of[value] = self.take(wish)
        return name

    def give_nodes(self, nodes: Iterable[Node]) -> list[str]:
        """Names all outputs of a graph's nodes, named outputs first; returns the used names."""
        left = [
            (value, value.name, _derived(node, index))
            for node in nodes
            for index, value in enumerate(node.outputs)
            if value not in self.of
        ]
        left.sort(key=lambda one: not one[1])
        return [self.give(value, name or derived) for value, name, derived in left]

    def enter(self, body: Body, inputs: list[Value | None]) -> None:
        """Names a body's captured inputs as the values they are."""
        for value, port in body.entries():
            if isinstance(port, Invariant):
                outer = inputs[port.input]
                assert outer is not None
                self.of[value] = self.of[outer]

    def leave(self, names: Iterable[str]) -> None:
        """Frees the names of a body, for its siblings."""
        self._taken.difference_update(names)


def _derived(node: Node, index: int) -> str:
    base = node.name or node.op.rpartition("::")[2].lower()
    return base if index == 0 and len(node.outputs) == 1 else f"{base}.{index}"


def unique_node_names(graph: Graph) -> dict[Node, str]:
    """A name for every named node, unique within the graph, because readers expect it. Nodes with
    the same name get numbers, except the node whose inputs the others prepare. A numbered name is
    never the name of another node."""
    named = [node for node in graph.nodes if node.name and node.op != "Constant"]
    wished: dict[str, Node] = {}
    for node in named:
        if _weight(node) > _weight(wished.setdefault(node.name, node)):
            wished[node.name] = node
    taken: set[str] = set(wished)
    result: dict[Node, str] = {node: name for name, node in wished.items()}
    last: dict[str, int] = {}
    for node in named:
        if node in result:
            continue
        name, number = node.name, last.get(node.name, 0)
        while name in taken:
            number += 1
            name = f"{node.name}_{number}"
        last[node.name] = number
        taken.add(name)
        result[node] = name
    return result


def _weight(node: Node) -> tuple[bool, int]:
    """Larger for a node that the nodes around it were made for."""
    aside = has_trait(node.op, "by_element") or has_trait(node.op, "broadcasts")
    return not aside, len(node.inputs)
