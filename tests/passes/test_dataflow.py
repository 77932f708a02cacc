"""The driver of data flow: its facts for random nests of Ifs and Loops, and its number of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given, settings, strategies as st

from bridge.neutral.dataflow import Analysis, Facts, Forward, Now, Updates
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
    Invariant,
    Iteration,
    Sliced,
    Stacked,
    Yield,
)

Origins = frozenset[Value]


class From(Forward[Origins]):
    """The inputs and constants that a value is computed from."""

    bottom = iteration = frozenset()

    def join(self, one: Origins, other: Origins) -> Origins:
        return one | other

    def outside(self, value: Value) -> Origins:
        return frozenset([value])

    def transfer(self, node: Node, facts: Sequence[Origins | None]) -> list[Origins]:
        own = () if node.inputs else node.outputs
        return [frozenset(own).union(*(fact or () for fact in facts))] * len(node.outputs)


class Reaches(Analysis[Origins]):
    """The outputs of the graph that are computed from a value: backwards."""

    bottom: Origins = frozenset()
    backward = True

    def join(self, one: Origins, other: Origins) -> Origins:
        return one | other

    def outside(self, value: Value) -> Origins:
        return frozenset([value])

    def node(self, node: Node, now: Now[Origins]) -> Updates[Origins]:
        taken = frozenset().union(*map(now, node.outputs))
        return [(value, taken) for value in node.inputs if value is not None]

    def enter(self, node: Node, now: Now[Origins]) -> Updates[Origins]:
        return [(one, now(other)) for one, other in edges_of(node)]

    leave = enter


def edges_of(node: Node) -> Iterator[tuple[Value, Value]]:
    """The ports of a node as pairs of values; the first flows into the second."""
    for body in node.bodies:
        for value, port in body.entries():
            if not isinstance(port, Iteration) and port.input is not None:
                yield node.inputs[port.input], value  # type: ignore[misc]
            if isinstance(port, Carried):
                yield body.exit_of(port)[0], value
                exit = body.exit_of(port)[1]
                if isinstance(exit, Yield) and exit.output is not None:
                    yield value, node.outputs[exit.output]
        for value, exit in body.exits():
            if not isinstance(exit, Condition) and exit.output is not None:
                yield value, node.outputs[exit.output]


def all_edges(graph: Graph) -> dict[Value, set[Value]]:
    """The naive interpreter's graph: each value with its direct successors."""
    after: dict[Value, set[Value]] = {}
    for node in graph.walk():
        if node.bodies:
            pairs = list(edges_of(node))
        else:
            pairs = [(a, b) for a in node.inputs if a is not None for b in node.outputs]
        for one, other in pairs:
            after.setdefault(one, set()).add(other)
    return after


def reached(value: Value, after: dict[Value, set[Value]]) -> set[Value]:
    """A value and all its successors."""
    found, todo = {value}, [value]
    while todo:
        for other in after.get(todo.pop(), ()):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


@st.composite
def graphs(draw: st.DrawFn, depth: int = 2, inputs: int = 2) -> Graph:
    """A graph of up to four nodes a level."""
    graph = Graph([Value() for _ in range(inputs)])
    known = list(graph.inputs)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["constant", "leaf", "leaf", "If", "Loop"]))
        taken = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)) if known else []
        if kind in ("If", "Loop") and depth and taken:
            bodies = [draw(bodies_of(kind, len(taken), depth - 1))]
            if kind == "If":
                bodies.append(draw(bodies_of(kind, len(taken), depth - 1)))
            node = Node(kind, list(taken), [Value(), Value()], bodies=tuple(bodies))
        else:
            node = Node("Add", [] if kind == "constant" else list(taken), [Value()])
        graph.nodes.append(node)
        known += node.outputs
    graph.outputs = draw(st.lists(st.sampled_from(known), min_size=2, max_size=2))
    return graph


@st.composite
def bodies_of(draw: st.DrawFn, kind: str, count: int, depth: int) -> Body:
    """A body of a node with this many inputs and two outputs."""
    ports: list[InputPort] = [Invariant(index) for index in range(count)]
    if kind == "Loop":
        for index in range(count):
            further = st.sampled_from([Sliced(index), Carried(index, 0), Carried(index, 1)])
            ports[index] = draw(st.one_of(st.just(ports[index]), further))
        ports.append(Iteration())
    graph = draw(graphs(depth, len(ports)))
    last = draw(st.sampled_from([Yield(1), Stacked(1)])) if kind == "Loop" else Yield(1)
    return Body(graph, ports, [Yield(0), last])


def values_of(graph: Graph) -> Iterator[Value]:
    """Every value of a graph and of its nested graphs."""
    yield from graph.inputs
    for node in graph.walk():
        yield from node.outputs
        for body in node.bodies:
            yield from body.graph.inputs


def most_visits(graph: Graph, height: int) -> int:
    """Two steps for a node, and one more whenever a fact next to it may change."""
    return sum(
        2 + 2 * height * sum(map(len, (node.inputs, node.outputs, *inner(node))))
        for node in graph.walk()
    )


def inner(node: Node) -> list[list[Value]]:
    return [part for body in node.bodies for part in (body.graph.inputs, body.graph.outputs)]


@given(graphs())
@settings(max_examples=50, deadline=None)
def test_forwards_as_by_a_naive_interpreter(graph: Graph) -> None:
    facts, after = Facts(From(), graph), all_edges(graph)
    sources = [v for v in graph.inputs] + [
        value for node in graph.walk() if not node.inputs for value in node.outputs
    ]
    expected: dict[Value, set[Value]] = {value: set() for value in values_of(graph)}
    for source in sources:
        for value in reached(source, after):
            expected[value].add(source)
    assert {value: set(facts.of(value)) for value in expected} == expected
    assert facts.visits <= most_visits(graph, len(sources))


@given(graphs())
@settings(max_examples=50, deadline=None)
def test_backwards_as_by_a_naive_interpreter(graph: Graph) -> None:
    facts, after = Facts(Reaches(), graph), all_edges(graph)
    for value in values_of(graph):
        assert facts.of(value) == reached(value, after) & set(graph.outputs)
    assert facts.visits <= most_visits(graph, len(graph.outputs))


@given(graphs(), st.data())
@settings(max_examples=25, deadline=None)
def test_what_is_made_later_is_looked_at_when_it_is_asked_for(
    graph: Graph, data: st.DataObject
) -> None:
    facts = Facts(From(), graph)
    known = [*graph.inputs, *(value for node in graph.nodes for value in node.outputs)]
    first, second = (data.draw(st.sampled_from(known)) for _ in range(2))
    before = facts.of(first) | facts.of(second)
    visits = facts.visits
    inner = Node("Add", [first, second], [Value()])
    outer = Node("Add", [inner.outputs[0], inner.outputs[0]], [Value()])
    assert facts.of(outer.outputs[0]) == before
    assert facts.visits == visits + 2


@given(graphs())
@settings(max_examples=25, deadline=None)
def test_without_a_graph_what_a_value_is_computed_of_is_followed(graph: Graph) -> None:
    whole = Facts(From(), graph)
    for value in graph.outputs:
        assert Facts(From()).of(value) == whole.of(value)
        assert Facts(From(), most=0).of(value) == {value}


def test_a_chain_of_states_takes_linear_time() -> None:
    """Each state takes the value of the state before it: a fact goes one state further in each
    iteration."""
    visits = []
    for count in (100, 1000):
        states = [Value() for _ in range(count)]
        body = Graph(states, [], [])
        for index in range(count):
            taken = states[max(index - 1, 0)]
            body.nodes.append(Node("Identity", [taken], [Value()]))
            body.outputs += body.nodes[-1].outputs
        ports: list[InputPort] = [Carried(index, index) for index in range(count)]
        given = [Value() for _ in range(count)]
        exits = [Yield(index) for index in range(count)]
        loop = Node("Loop", list(given), [Value() for _ in range(count)],
                    bodies=(Body(body, ports, list(exits)),))  # fmt: skip
        facts = Facts(Odd(given[0]), Graph(given, loop.outputs, [loop]))
        assert facts.of(loop.outputs[-1])
        visits.append(facts.visits)
    assert visits[1] < 12 * visits[0]


class Odd(Forward[bool]):
    """Whether a value is computed from one input."""

    bottom = iteration = False

    def __init__(self, source: Value) -> None:
        self.source = source

    def join(self, one: bool, other: bool) -> bool:
        return one or other

    def outside(self, value: Value) -> bool:
        return value is self.source

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        return [any(facts)] * len(node.outputs)
