"""Putting values in the place of others, and the inputs of nodes with bodies."""

from __future__ import annotations

from inspect import cleandoc

from bridge.neutral.builder import Builder
from bridge.neutral.captures import drop_unused_inputs, sink_constants
from bridge.neutral.graph import Body, Graph, Value
from bridge.neutral.ports import Invariant, Yield
from bridge.neutral.rewrite import Substitution
from bridge.neutral.types import ANY, BOOL, F32, TensorType
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
    old, new = vector("old", "N"), Value(TensorType(None, (ANY,)))
    old.known_value = (1, None)
    Substitution().replace(old, new)
    assert new.type == TensorType(F32, ("N",)) and new.known_value == (1, None)


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
