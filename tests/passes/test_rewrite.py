"""Replacing values, and the inputs of nodes with bodies."""

from __future__ import annotations

from inspect import cleandoc
from time import process_time

from hypothesis import given, settings, strategies as st

from bridge.neutral.builder import Builder, Target
from bridge.neutral.captures import drop_unused_inputs, sink_constants
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import InputPort, Invariant, Yield
from bridge.neutral.printer import show
from bridge.neutral.rewrite import Pattern, Result, Rewriter, Substitution, ValueUses
from bridge.neutral.types import ANY, BOOL, F32, TensorType
from bridge.neutral.verify import verify
from tests.support.graphs import read, shown

VECTOR = TensorType(F32, (2,))


def vector(name: str, size: int | str = 2) -> Value:
    return Value(TensorType(F32, (size,)), [name])


def test_chain_of_replacements() -> None:
    first, second, third = vector("first"), vector("second"), vector("third")
    substitution = Substitution()
    assert not substitution
    substitution.replace(first, second)
    substitution.replace(second, third)
    assert [substitution.of(value) for value in (first, second, third)] == [third] * 3
    assert third.names == ["third", "second", "first"]


def test_value_that_is_replaced_by_itself() -> None:
    value = vector("value")
    substitution = Substitution()
    substitution.replace(value, value)
    assert not substitution and substitution.of(value) is value


def test_replacement_that_was_replaced() -> None:
    first, second, third = vector("first"), vector("second"), vector("third")
    substitution = Substitution()
    substitution.replace(second, third)
    substitution.replace(first, second)
    assert substitution.of(first) is third


def test_what_is_known_of_the_old_value_holds_of_the_new() -> None:
    old, new, given = vector("old", "N"), Value(TensorType(None, (ANY,))), vector("given", ANY)
    Node("Neg", [given], [new])
    old.known_value = (1, None)
    for value in (new, given):
        Substitution().replace(old, value)
        assert value.known_value == (1, None)
    assert new.type == TensorType(F32, ("N",))
    assert given.type == TensorType(F32, (ANY,)), "what a graph is given keeps its declared type"


def test_consumers_and_outputs() -> None:
    graph = Graph([vector("x")])
    b = Builder(graph.nodes)
    old = b.op("Neg", graph.inputs[0])
    user = b.node("Clip", [old, None, old])
    graph.outputs = [user.outputs[0], old]
    new = Builder(graph.nodes).op("Abs", graph.inputs[0])
    substitution = Substitution()
    substitution.replace(old, new)
    substitution.apply(user)
    substitution.finish(graph)
    assert user.inputs == [new, None, new]
    assert graph.outputs == [user.outputs[0], new]


def test_constants_move_into_bodies() -> None:
    x, flag = vector("x"), Value(TensorType(BOOL, ()), ["flag"])
    graph = Graph([x, flag])
    b = Builder(graph.nodes)
    k = b.constant([1.0, 2.0])
    bodies = []
    for op, places in (("Add", (1, 2)), ("Neg", (2,))):
        body = Body(Graph())
        for place in places:
            body.add_entry(Value(VECTOR), Invariant(place))
        body.add_exit(Builder(body.graph.nodes).op(op, *body.graph.inputs), Yield(0))
        bodies.append(body)
    choice = b.node("If", [flag, k, x], 1, {}, tuple(bodies))
    graph.outputs = [*choice.outputs]
    sink_constants(choice)
    assert shown(graph) == cleandoc(
        """
        graph (%x: f32[2], %flag: bool[]) -> %#1
          %#0: f32[2] = Constant() {value=f32[2] [1.0, 2.0]}
          %#1: f32[2] = If(%flag, %x)
            then (%#2: f32[2]) -> %#4
              %#3: f32[2] = Constant() {value=f32[2] [1.0, 2.0]}
              %#4: f32[2] = Add(%#3, %#2)
              %#2 <- Invariant(input=1)
              %#4 -> Yield(output=0)
            else (%#5: f32[2]) -> %#6
              %#6: f32[2] = Neg(%#5)
              %#5 <- Invariant(input=1)
              %#6 -> Yield(output=0)
        """
    )


def test_inputs_that_no_port_names() -> None:
    graph = read(
        """g (float[2] w, float[2] x, float[2] z, bool c) => (float[2] y) {
          y = If (c) <then_branch = t () => (float[2] a) { d = Neg (w) a = Add (x, z) },
                      else_branch = e () => (float[2] b) { b = Sub (z, x) }> }"""
    ).graph
    (choice,) = graph.nodes
    body = choice.then_body
    del body.graph.nodes[0]
    body.take_entries(lambda value, port: value.name == "w")
    drop_unused_inputs(choice)
    assert shown(graph) == cleandoc(
        """
        graph (%w: f32[2], %x: f32[2], %z: f32[2], %c: bool[]) -> %y
          %y: f32[2] = If(%c, %x, %z)
            then (%x#1: f32[2], %z#1: f32[2]) -> %a
              %a: f32[2] = Add(%x#1, %z#1)
              %x#1 <- Invariant(input=1)
              %z#1 <- Invariant(input=2)
              %a -> Yield(output=0)
            else (%z#2: f32[2], %x#2: f32[2]) -> %b
              %b: f32[2] = Sub(%z#2, %x#2)
              %z#2 <- Invariant(input=2)
              %x#2 <- Invariant(input=1)
              %b -> Yield(output=0)
        """
    )


# Random graphs with random rewrites.

TARGET = Target("ir")
UNARY, BINARY = ("Neg", "Abs", "Relu"), ("Add", "Mul", "Max")


@st.composite
def graphs(draw: st.DrawFn, depth: int = 2, inputs: int = 2) -> Graph:
    """A graph of vectors; it may hold Ifs, their branches too."""
    graph = Graph([vector(f"in{depth}{index}") for index in range(inputs)])
    flag = Value(TensorType(BOOL, ()), [f"flag{depth}"])
    graph.inputs.append(flag)
    b = Builder(graph.nodes, target=TARGET)
    known = graph.inputs[:-1]
    for _ in range(draw(st.integers(1, 8))):
        taken = st.sampled_from(known)
        kind = draw(st.integers(0, 9))
        if kind == 0 and depth:
            outer = [draw(taken) for _ in range(2)]
            bodies = []
            for _ in range(2):
                inner = draw(graphs(depth - 1))
                ports: list[InputPort] = [Invariant(1), Invariant(2), Invariant(0)]
                bodies.append(Body(inner, ports, [Yield(0)]))
            made = b.node("If", [flag, *outer], 1, {}, tuple(bodies)).outputs[0]
        elif kind < 3:
            made = b.constant([float(kind), 1.0])
        elif kind < 6:
            made = b.op(draw(st.sampled_from(UNARY)), draw(taken))
        else:
            made = b.op(draw(st.sampled_from(BINARY)), draw(taken), draw(taken))
        made.names = [f"v{depth}{len(known)}"]
        known.append(made)
    graph.outputs = [draw(st.sampled_from(known))]
    return graph


class Rewrites:
    """Random answers of a pattern.

    It keeps a node, replaces it with its input, or replaces it with new nodes. It may rewrite the
    new nodes as well, inline a branch, or change the node in place.
    """

    def __init__(self, data: st.DataObject, backwards: bool) -> None:
        self.data = data
        self.left = 12
        self.rewriters: dict[Graph, Rewriter] = {}
        self.pattern = Pattern(
            self.answer, target=TARGET, bodies=not backwards, backwards=backwards, uses=True
        )

    def answer(self, b: Builder, node: Node, rewriter: Rewriter) -> Result:
        """The replacement of a node."""
        self.rewriters[rewriter.graph] = rewriter
        if self.pattern.backwards:
            rewriter.descend(node, self.pattern)
        choice = self.data.draw(st.integers(0, 6)) if self.left else 0
        self.left -= bool(choice)
        if not choice:
            return None
        if node.op == "If":
            return rewriter.inline(b, node, node.bodies[choice % 2], self.pattern)
        first = node.inputs[0]
        assert first is not None
        for user in rewriter.users(first):
            assert first in [value and rewriter.of(value) for value in user.inputs]
        if choice == 1:
            return first
        if choice == 2:
            rewriter.modify(node, exchanged)
            return None
        made = b.op("Sub", b.op("Neg", first), b.constant([1.0, 2.0]))
        if choice == 3:
            b.nodes[:] = rewriter.rewritten(b.nodes, self.pattern)
        if choice == 4:
            rewriter.prepend(Builder([]).constant([3.0, 4.0]).producer or node)
        return made


def exchanged(node: Node) -> bool:
    """Exchanges the inputs of a node."""
    node.inputs = node.inputs[::-1]
    return len(node.inputs) > 1


@settings(max_examples=100, deadline=None)
@given(graphs(), st.booleans(), st.data())
def test_random_rewrites(graph: Graph, backwards: bool, data: st.DataObject) -> None:
    """Whatever a pattern answers, the rewriter ends and the graph is valid and in order.

    A new count gives the same uses, and an unchanged graph prints the same.
    """
    verify(graph)
    before = show(graph)
    rewrites = Rewrites(data, backwards)
    changed = Rewriter(graph).run(rewrites.pattern)
    verify(graph)
    assert changed or show(graph) == before
    left = [graph, *(body.graph for node in graph.walk() for body in node.bodies)]
    for each in left:
        rewriter, recount = rewrites.rewriters.get(each), ValueUses(each)
        made = [value for node in each.nodes for value in node.outputs]
        for value in (*each.inputs, *made) if rewriter is not None else ():
            assert rewriter.count(value) == recount.count(value)
            assert set(rewriter.users(value)) == set(recount.users(value))
        if backwards and rewriter is None:
            assert all(map(recount.count, made))


@settings(max_examples=30, deadline=None)
@given(graphs(depth=1))
def test_dead_code(graph: Graph) -> None:
    """Going backwards, unused nodes go, and also the nodes that only they used."""
    Rewriter(graph).run(Pattern(lambda b, node, rewriter: None, backwards=True))
    verify(graph)
    uses = ValueUses(graph)
    assert all(uses.count(value) for node in graph.nodes for value in node.outputs)


def test_what_is_handed_over_may_be_made_later() -> None:
    """The first node takes a value that the second one makes; the nodes are sorted anew."""
    graph = Graph([vector("x")])
    b = Builder(graph.nodes)
    scale = b.op("Abs", graph.inputs[0])
    other = b.op("Neg", scale)
    last = b.op("Relu", graph.inputs[0])
    graph.outputs = [other, last]

    def both(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        first, second = b.ops("Split", 2, graph.inputs[0], num_outputs=2, axis=0)
        rewriter.hand_over(scale, second, inside=0)
        return first

    assert Rewriter(graph).run(Pattern(both, frozenset({"Relu"}), backwards=True))
    verify(graph)
    assert [node.op for node in graph.nodes] == ["Split", "Neg"]


def test_time_is_linear() -> None:
    """Each node of a long chain is replaced, and asked for its users, in one go."""
    graph = Graph([vector("x")])
    b = Builder(graph.nodes)
    value = graph.inputs[0]
    for _ in range(20_000):
        value = b.op("Neg", value)
    graph.outputs = [value]

    def replaced(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        assert len(rewriter.users(node.outputs[0])) <= 1
        return b.op("Abs", node.inputs[0])

    start = process_time()
    Rewriter(graph).run(Pattern(replaced, frozenset({"Neg"}), uses=True))
    assert {node.op for node in graph.nodes} == {"Abs"} and process_time() - start < 20
