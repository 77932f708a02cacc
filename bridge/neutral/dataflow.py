"""Data flow: facts about each value follow from facts about the values around it.

The driver follows MLIR's data-flow framework. An `Analysis` is a lattice of facts and a transfer
function, which gives the facts that follow from a node. The driver visits nodes until no fact
changes. It enters bodies through their ports, so facts go around a Loop until they are stable. A
node is visited again when a fact next to it has changed. A fact changes at most as often as the
lattice is high, so the time is linear in the size of the graph.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Generic, TypeVar

from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Carried, Condition, InputPort, Iteration, OutputPort, Yield

Fact = TypeVar("Fact")

Now = Callable[[Value], Fact]
"""The fact of a value, as far as the driver has come."""

Updates = Iterable[tuple[Value, Fact]]
"""New facts about values; the driver joins them with the facts it has."""

Visit = Callable[[Node, Now[Fact]], Updates[Fact]]
"""A transfer function."""


class Analysis(Generic[Fact]):
    """A lattice of facts and its transfer functions, in either direction.

    `bottom` is the fact of a value that nothing has reached; `join` goes up from there. A transfer
    function is monotone, and reads facts only of values next to the node.
    """

    bottom: Fact
    backward = False
    """Whether facts start at the graph's outputs. Then users are visited before their inputs."""

    def join(self, one: Fact, other: Fact) -> Fact:
        """The fact that holds if at least one of two facts holds."""
        raise NotImplementedError

    def outside(self, value: Value) -> Fact:
        """The fact of an input of the graph (backwards: of an output), or of a value unfollowed."""
        raise NotImplementedError

    def settled(self, value: Value, fact: Fact) -> Fact:
        """The fact of a value if its own type or known elements tell more than `fact`."""
        return fact

    def node(self, node: Node, now: Now[Fact]) -> Updates[Fact]:
        """The facts that follow from a node without bodies."""
        raise NotImplementedError

    def enter(self, node: Node, now: Now[Fact]) -> Updates[Fact]:
        """The facts that follow from the ports of a node's body inputs."""
        raise NotImplementedError

    def leave(self, node: Node, now: Now[Fact]) -> Updates[Fact]:
        """The facts that follow from the ports of a node's body outputs."""
        raise NotImplementedError


class Forward(Analysis[Fact]):
    """Facts about outputs follow from facts about inputs."""

    iteration: Fact
    """The fact of the number of the iteration."""

    def transfer(self, node: Node, facts: Sequence[Fact | None]) -> Iterable[Fact]:
        """The facts of a node's outputs, from the facts of its inputs (None: an absent input)."""
        raise NotImplementedError

    def node(self, node: Node, now: Now[Fact]) -> Updates[Fact]:
        """Facts of outputs, by the transfer function."""
        facts = [None if value is None else now(value) for value in node.inputs]
        return zip(node.outputs, self.transfer(node, facts), strict=True)

    def enter(self, node: Node, now: Now[Fact]) -> Updates[Fact]:
        """Facts of body inputs."""
        for body in node.bodies:
            for value, port in body.entries():
                yield value, self.entry(node, body, value, port, now)

    def entry(self, node: Node, body: Body, value: Value, port: InputPort, now: Now[Fact]) -> Fact:
        """The fact of a body input: the fact of the outer value, joined with the fact of the last
        iteration."""
        if isinstance(port, Iteration):
            return self.iteration
        outer = node.outer(port)
        fact = self.outside(value) if outer is None else now(outer)
        return self.join(fact, now(body.exit_of(port)[0])) if isinstance(port, Carried) else fact

    def leave(self, node: Node, now: Now[Fact]) -> Updates[Fact]:
        """Facts of outputs, from the outputs of any body, or of a Loop without an iteration."""
        for body in node.bodies:
            for value, port in body.exits():
                if not isinstance(port, Condition) and port.output is not None:
                    yield node.outputs[port.output], self.exit(node, value, port, now)
            for value, entry in body.entries():
                exit = body.exit_of(entry)[1] if isinstance(entry, Carried) else None
                if isinstance(exit, Yield) and exit.output is not None:
                    # Without an iteration the initial state comes out.
                    yield node.outputs[exit.output], now(value)

    def exit(self, node: Node, value: Value, port: OutputPort, now: Now[Fact]) -> Fact:
        """The fact of a value that leaves a body through a port."""
        return now(value)


class May(Forward[bool]):
    """Whether a value may have a property; inputs of the graph do not have it."""

    bottom = iteration = False

    def join(self, one: bool, other: bool) -> bool:
        """Whether either has it."""
        return one or other

    def outside(self, value: Value) -> bool:
        """Inputs do not have it."""
        return False


class Must(Forward[bool]):
    """Whether a value has a property for certain."""

    bottom = iteration = True

    def join(self, one: bool, other: bool) -> bool:
        """Whether both have it."""
        return one and other


class _Table(dict[Value, Fact]):
    """Facts by value; a value that the driver has not reached has the bottom."""

    bottom: Fact

    def __missing__(self, value: Value) -> Fact:
        return self.bottom


class Facts(Generic[Fact]):
    """The facts of the values of a graph and of all nested graphs, found at the first question.

    A value that is made later is visited when its fact is asked for. Without a graph, the driver
    visits only the nodes that compute the asked value, and at most `most` of them.
    """

    def __init__(
        self, analysis: Analysis[Fact], graph: Graph | None = None, most: int | None = None
    ) -> None:
        self._analysis = analysis
        self._graph = graph
        self._most = most
        self._table: _Table[Fact] = _Table()
        self._table.bottom = analysis.bottom
        self._now = self._table.__getitem__
        self._steps: list[tuple[Visit[Fact], Node, bool]] = []
        """Transfer functions with their nodes, and whether each enters the bodies of its node."""
        self._around: dict[Value, list[int]] = {}
        self._indexed = 0
        self._rounds: set[Value] = set()
        """The values that go around a Loop. Only these can a sweep in order visit too early."""
        self.visits = 0

    def of(self, value: Value) -> Fact:
        """The fact of a value."""
        if value not in self._table and self._graph is not None:
            graph, self._graph = self._graph, None
            self._add(graph.nodes, graph.outputs if self._analysis.backward else graph.inputs)
        if value not in self._table and not self._analysis.backward:
            self._add(*self._origin(value))
        return self._now(value)

    def learn(self, value: Value, fact: Fact) -> None:
        """Sets a fact of a value, whatever its node says, and updates all facts that follow."""
        self._table[value] = fact
        self._settle((value,))

    def _origin(self, value: Value) -> tuple[list[Node], list[Value]]:
        """The unvisited nodes that compute a value, in order, and the values these nodes start
        from."""
        nodes: list[Node] = []
        sources: list[Value] = []
        seen: set[Node] = set()
        room = inf if self._most is None else self._most
        todo: list[Node | Value] = [value]
        while todo:
            last = todo.pop()
            if isinstance(last, Node):
                nodes.append(last)
            elif last not in self._table and last.producer not in seen:
                node = last.producer
                if node is None or room <= 0:
                    sources.append(last)
                    continue
                room -= 1 + sum(len(body.graph.nodes) for body in node.bodies)
                seen.add(node)
                todo.append(node)
                todo += [value for value in reversed(node.inputs) if value is not None]
        return nodes, sources

    def _add(self, nodes: Iterable[Node], sources: Iterable[Value]) -> None:
        """Visits further nodes. They may use visited values, one another, and `sources` values."""
        for value in sources:
            self._join(value, self._analysis.outside(value))
        first = len(self._steps)
        for node in nodes:
            self._plan(node)
        self._sweep(range(first, len(self._steps)))

    def _plan(self, node: Node) -> None:
        """Notes the steps of a node and of the nodes in its bodies."""
        analysis, steps = self._analysis, self._steps
        if not node.bodies:
            steps.append((analysis.node, node, False))
            return
        steps.append((analysis.enter, node, True))
        for value, port in node.body.entries() if node.op == "Loop" else ():
            if isinstance(port, Carried):
                self._rounds.update((value, node.body.exit_of(port)[0]))
        for body in node.bodies:
            for inner in body.graph.nodes:
                self._plan(inner)
        steps.append((analysis.leave, node, False))

    def _sweep(self, steps: range) -> None:
        """Visits steps in order once, and again the steps around values that changed later."""
        late: set[Value] = set()
        rounds = self._rounds
        for step in reversed(steps) if self._analysis.backward else steps:
            changed = self._visit(step)
            if rounds:
                late.update(rounds.intersection(changed))
        self._settle(late)

    def _settle(self, changed: Collection[Value]) -> None:
        """Visits the steps around changed values until nothing changes."""
        sign = -1 if self._analysis.backward else 1
        queue: list[int] = []
        waiting: set[int] = set()
        while True:
            around = self._index() if changed else {}
            for value in changed:
                for step in around.get(value, ()):
                    if step not in waiting:
                        waiting.add(step)
                        heappush(queue, sign * step)
            if not queue:
                return
            step = sign * heappop(queue)
            waiting.discard(step)
            changed = self._visit(step)

    def _index(self) -> dict[Value, list[int]]:
        """The steps around each value."""
        for step in range(self._indexed, len(self._steps)):
            _, node, enters = self._steps[step]
            around = node.operands
            for body in node.bodies:
                around += body.graph.inputs + body.graph.outputs
            if not enters or self._analysis.backward:
                around += node.outputs
            for value in dict.fromkeys(around):
                self._around.setdefault(value, []).append(step)
        self._indexed = len(self._steps)
        return self._around

    def _visit(self, step: int) -> list[Value]:
        """Does one step; returns the values whose facts changed."""
        self.visits += 1
        visit, node, _ = self._steps[step]
        join = self._join
        return [value for value, fact in visit(node, self._now) if join(value, fact)]

    def _join(self, value: Value, fact: Fact) -> bool:
        """Joins a fact with the known fact of a value; returns whether the fact changed."""
        fact = self._analysis.settled(value, fact)
        table = self._table
        if value in table:
            known = table[value]
            fact = self._analysis.join(known, fact)
            if fact == known:
                return False
        table[value] = fact
        return True
