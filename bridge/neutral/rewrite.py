"""The rewriter: a pass gives a pattern, and the rewriter applies it to the nodes of a graph.

It does the work that each pass would do otherwise: it keeps the order of the nodes, the names and
types of replaced values, and the users of a value. MLIR's greedy driver and xDSL's pattern rewriter
are the models.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from bridge.neutral.builder import Builder, Target
from bridge.neutral.graph import Body, Graph, Node, Value, producer_of
from bridge.neutral.order import topological
from bridge.neutral.types import meet

EFFECTS = frozenset({"Assign"})
"""Operators with a side effect."""

Result = Value | Sequence[Value | None] | None
"""The result of a rule or a pattern: the values that replace the node's outputs (None for an unused
output), or None if it does not apply."""


class Substitution:
    """Maps values to their replacements; consumers are updated as they are reached, in order.
    `replaced` maps each replaced value to its replacement, which may be replaced in turn."""

    def __init__(self) -> None:
        self.replaced: dict[Value, Value] = {}
        self._names: dict[Value, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.replaced)

    def of(self, value: Value) -> Value:
        """The value that stands for `value` now."""
        while (next := self.replaced.get(value)) is not None:
            value = next
        return value

    def apply(self, node: Node) -> None:
        """Replaces the inputs of a node."""
        if self.replaced:
            node.inputs = [None if v is None else self.of(v) for v in node.inputs]
            if node.extras and "provenance" in node.extras:
                node.extras["provenance"] = node.extras["provenance"].of(self.of)

    def applied(self, node: Node) -> Node:
        """The node, or one in its place that takes other inputs."""
        inputs = [None if v is None else self.of(v) for v in node.inputs]
        if inputs == node.inputs:
            return node
        return Node(
            node.op,
            inputs,
            list(node.outputs),
            dict(node.attributes),
            node.bodies,
            node.name,
            node.extras,
        )

    def _add_names(self, value: Value, old: Value) -> None:
        """The end of a long chain has many names: they are kept as a set, which is handed on."""
        known, further = (self._known_names(each) for each in (value, old))
        if known.isdisjoint(further):
            value.names += old.names
        else:
            value.names += [name for name in old.names if name not in known]
        larger, smaller = (further, known) if len(further) > len(known) else (known, further)
        larger.update(smaller)
        self._names[value] = larger

    def _known_names(self, value: Value) -> set[str]:
        known = self._names.pop(value, None)
        return set(value.names) if known is None or len(known) != len(value.names) else known

    def replace(self, old: Value, new: Value, names: bool = True) -> None:
        """`new` takes the place of `old`, its type and, with `names`, its names."""
        new = self.of(new)
        if new is old:
            return
        if names:
            self._add_names(new, old)
        if new.producer is not None:  # A graph input keeps its declared type.
            new.type = meet(new.type, old.type)
            new.declared = meet(new.declared, old.type)
        if new.known_value is None:
            new.known_value = old.known_value
        if new.computed is None:
            new.computed = old.computed
        self.replaced[old] = new

    def finish(self, graph: Graph) -> None:
        """Replaces the outputs of a graph."""
        if self.replaced:
            graph.outputs = [self.of(v) for v in graph.outputs]


def replace_values(graph: Graph, values: Mapping[Value, Value]) -> None:
    """Has a graph take other values instead of these keys. None of them may be a key."""
    substitution = Substitution()
    substitution.replaced.update(values)
    for node in graph.nodes:
        substitution.apply(node)
    substitution.finish(graph)


class ValueUses:
    """How often, and by which nodes, each value of a graph is used. A replaced value has no
    uses."""

    def __init__(self, graph: Graph, substitution: Substitution | None = None) -> None:
        self._counts: defaultdict[Value, int] = defaultdict(int)
        for value in graph.outputs:
            self._counts[value] += 1
        self._nodes: dict[Node, None] = {}
        self._moved: dict[Value, Value] = {}
        self._users: dict[Value, dict[Node, None]] | None = None
        self._of = (Substitution() if substitution is None else substitution).of
        self.add(graph.nodes)

    def add(self, nodes: Iterable[Node]) -> None:
        """Counts the inputs of nodes."""
        counts = self._counts
        for node in nodes:
            self._nodes[node] = None
            for value in node.inputs:
                if value is not None:
                    counts[value] += 1
                    if self._users is not None:
                        self._users.setdefault(value, {})[node] = None

    def remove(self, nodes: Iterable[Node]) -> None:
        """Undoes `add` for nodes, by the replacements of their inputs."""
        counts = self._counts
        for node in nodes:
            del self._nodes[node]
            for value in node.inputs:
                if value is not None:
                    while not counts[value]:
                        value = self._moved[value]
                    counts[value] -= 1
                    if self._users is not None:
                        self._users.get(self._of(value), {}).pop(node, None)

    def move(self, old: Value, new: Value, left: int = 0) -> None:
        """All uses of `old` become uses of `new`, except `left` of them."""
        self._counts[new] += self._counts[old] - left
        self._counts[old] = left
        self._moved[old] = new
        self._users = None if left else self._users
        if self._users is not None:
            self._users.setdefault(new, {}).update(self._users.pop(old, {}))

    def count(self, value: Value) -> int:
        """How often a value is an input of a node or an output of the graph."""
        return self._counts.get(value, 0)

    def is_used(self, node: Node) -> bool:
        """Whether an output of a node is used."""
        counts = self._counts
        for value in node.outputs:  # noqa: SIM110 (a generator takes twice as long)
            if counts.get(value):
                return True
        return False

    def users(self, value: Value) -> list[Node]:
        """The nodes that take a value."""
        if self._users is None:
            self._users = {}
            for node in self._nodes:
                for taken in node.operands:
                    self._users.setdefault(self._of(taken), {})[node] = None
        return list(self._users.get(value, ()))


@dataclass(eq=False)
class Pattern:
    """The pattern of a pass.

    `ask(b, node, rewriter)` makes nodes with the builder and gives the values that replace the
    node's outputs; or None, and the node stays. The rewriter asks it about nodes of the operators
    `ops` (None: of all but Constant). With `bodies`, the bodies are rewritten before their node;
    a pattern without it calls `Rewriter.descend` itself. `backwards` begins at the last
    node, so that a pattern is met before the smaller ones within it, and drops unused nodes.
    `uses` says that the pattern reads the uses of values.
    """

    ask: Callable[[Builder, Node, Any], Result]
    ops: frozenset[str] | None = None
    target: Target | None = None
    bodies: bool = True
    backwards: bool = False
    uses: bool = False

    def concerns(self, graph: Graph) -> bool:
        """Whether a graph has nodes that the pattern is asked about, or unused nodes."""
        if self.ops is None or self.backwards:
            return True
        for node in graph.nodes:  # noqa: SIM110 (a generator takes twice as long)
            if node.op in self.ops or node.bodies:
                return True
        return False


class Rewriter:
    """One graph while it is rewritten, the node and the body that hold it, and the rewriter of the
    graph around them. `changed` tells whether the graph changed; a pattern that changes a node in
    place sets it. `depth` counts how deep patterns were applied to their own results."""

    def __init__(
        self,
        graph: Graph,
        holder: Node | None = None,
        body: Body | None = None,
        outer: Self | None = None,
    ) -> None:
        self.graph = graph
        self.holder = holder
        self.body = body
        self.outer = outer
        self.changed = False
        self.depth = 0
        self._substitution = Substitution()
        self._uses: ValueUses | None = None
        self._made: dict[Hashable, Any] = {}
        self._front: dict[Node, None] = {}
        self._handed_over: dict[Value, Value] = {}

    # Running.

    def run(self, pattern: Pattern) -> bool:
        """Rewrites the graph, in place; whether that changed anything. Linear in its nodes."""
        if not pattern.concerns(self.graph):
            return self.changed
        if pattern.backwards or pattern.uses:
            self._uses = ValueUses(self.graph, self._substitution)
        nodes: list[Node] = []
        (self._backwards if pattern.backwards else self._forwards)(self.graph.nodes, pattern, nodes)
        self._finish(nodes, pattern.backwards)
        return self.changed

    def rewritten(self, nodes: Iterable[Node], pattern: Pattern) -> list[Node]:
        """The nodes that a pattern makes of `nodes`, which are to stand in the graph."""
        made: list[Node] = []
        self.depth += 1
        if self._uses is not None:
            for node in nodes:
                self._substitution.apply(node)
            self._uses.add(nodes)
        self._forwards(nodes, pattern, made)
        if self._uses is not None:  # They count as soon as they are in the graph.
            self._uses.remove(made)
        self.depth -= 1
        return made

    def inside(self, node: Node, body: Body) -> Self:
        """A rewriter of a body of a node of this graph."""
        made = type(self)(body.graph, node, body, self)
        made.depth = self.depth
        return made

    def descend(self, node: Node, pattern: Pattern) -> None:
        """Rewrites the bodies of a node of this graph."""
        for body in node.bodies:
            self.changed |= self.inside(node, body).run(pattern)

    def _forwards(self, nodes: Iterable[Node], pattern: Pattern, out: list[Node]) -> None:
        """Appends to `out` the nodes or their replacements."""
        ops, replaced = pattern.ops, self._substitution.replaced
        with self._builder(pattern) as builder:
            for node in nodes:
                if replaced:
                    self._substitution.apply(node)
                if (node.op in ops if ops is not None else node.op != "Constant") or node.bodies:
                    self._visit(node, pattern, builder, out)
                else:
                    out.append(node)

    def _backwards(self, nodes: Sequence[Node], pattern: Pattern, out: list[Node]) -> None:
        """Appends to `out` the used nodes or their replacements."""
        ops, is_used = pattern.ops, self.uses.is_used
        with self._builder(pattern) as builder:
            for node in reversed(nodes):
                if node.op not in EFFECTS and not is_used(node):
                    self.changed = True
                    self.uses.remove((node,))
                elif (node.op in ops if ops is not None else node.op != "Constant") or node.bodies:
                    made: list[Node] = []
                    self._visit(node, pattern, builder, made)
                    out += reversed(made)
                else:
                    out.append(node)
        out.reverse()

    def _builder(self, pattern: Pattern) -> Builder:
        """One builder for all nodes of a walk: most of them stay, and a builder for each took a
        tenth of a conversion."""
        return Builder([], "", pattern.target, self._made)

    def _visit(self, node: Node, pattern: Pattern, builder: Builder, out: list[Node]) -> None:
        if pattern.bodies and node.bodies:
            self.descend(node, pattern)
        if pattern.ops is not None and node.op not in pattern.ops:
            out.append(node)
            return
        builder.name = node.name
        result = pattern.ask(builder, node, self)
        made, builder.nodes = builder.nodes, []
        if result is None:
            out.append(node)
            return
        self.changed = True
        if self._uses is not None:
            self._uses.remove((node,))
            self._uses.add(made)
        out += made
        results = (result,) if isinstance(result, Value) else result
        for old, new in zip(node.outputs, results, strict=False):
            if new is not None:
                self.replace(old, new)

    def _finish(self, nodes: list[Node], backwards: bool) -> None:
        for old, new in self._handed_over.items():
            self._substitution.replace(old, new)
        if self._front:  # It may have stood further behind.
            nodes = [*self._front, *(node for node in nodes if node not in self._front)]
        if backwards and self._substitution:
            for node in nodes:
                self._substitution.apply(node)
        self.graph.nodes = nodes
        if self._handed_over or any(node.inputs for node in self._front):
            self.graph.nodes = in_order(self.graph.nodes)
        self._substitution.finish(self.graph)

    # Questions of patterns.

    @property
    def uses(self) -> ValueUses:
        """Who uses the values of the graph."""
        if self._uses is None:
            if self.changed:
                raise RuntimeError("a pattern that asks for uses says so (Pattern.uses)")
            self._uses = ValueUses(self.graph)
        return self._uses

    def count(self, value: Value) -> int:
        """How often a value is used."""
        return self.uses.count(value)

    def users(self, value: Value) -> list[Node]:
        """The nodes of the graph that take a value."""
        return self.uses.users(value)

    def single_use(self, value: Value | None, *ops: str) -> Node | None:
        """The node that makes a value which is used once, if it is one of these operators."""
        node = producer_of(value, *ops)
        return node if value is not None and node and self.count(value) == 1 else None

    def of(self, value: Value) -> Value:
        """The value that stands for `value` now."""
        return self._substitution.of(value)

    @property
    def where(self) -> str:
        """The path to the graph."""
        if self.outer is None or self.holder is None:
            return "graph"
        roles = (role for role, body in self.holder.roles() if body is self.body)
        return f"{self.outer.path(self.holder)} / {next(roles)}"

    def path(self, node: Node) -> str:
        """The path to a node of the graph."""
        return f"{self.where} / {node!r}"

    # Changes by patterns.

    def apply(self, node: Node) -> None:
        """Gives a node the values that stand for its inputs now."""
        self._substitution.apply(node)

    def replace(self, old: Value, new: Value, names: bool = True) -> None:
        """`new` takes the place of `old`, and, with `names`, its names."""
        new = self.of(new)
        if new is not old:
            self.changed = True
            self._substitution.replace(old, new, names)
            if self._uses is not None:
                self._uses.move(old, new)

    def hand_over(self, old: Value, new: Value, inside: int) -> None:
        """Replaces a value by another that a pattern makes beside its own results. `inside` uses of
        it belong to the pattern and vanish with it. It may be made later; the nodes are sorted."""
        self.changed = True
        self._handed_over[old] = new
        self.uses.move(old, new, inside)

    def prepend(self, node: Node) -> None:
        """Puts a node in front of all others that it does not need, once."""
        if node not in self._front:
            self.changed = True
            self._front[node] = None
            self.uses.add((node,))

    def modify(self, node: Node, change: Callable[[Node], bool]) -> None:
        """Changes the inputs of a node in place; `change` says whether it did."""
        if self._uses is not None:
            self._uses.remove((node,))
        if change(node):
            self.changed = True
        if self._uses is not None:
            self._uses.add((node,))

    def inline(self, b: Builder, node: Node, body: Body, pattern: Pattern) -> list[Value | None]:
        """Replaces an If by the nodes of a branch, which the pattern rewrites."""
        for value, outer in node.captures(body).items():
            self.replace(value, outer, names=False)
        b.nodes += self.rewritten(body.graph.nodes, pattern)
        results: list[Value | None] = [None] * len(node.outputs)
        for value, output in body.results():
            results[output] = value
        return results


def in_order(nodes: Sequence[Node]) -> list[Node]:
    """The nodes in an order that puts each behind the producers of its inputs."""
    producers = {value: place for place, node in enumerate(nodes) for value in node.outputs}
    needs = [[producers[value] for value in node.operands if value in producers] for node in nodes]
    return [nodes[place] for place in topological(needs)]
