"""`verify` finds each kind of broken graph, and names it and the place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Carried, Condition, Invariant, Yield
from bridge.neutral.types import F32, I64, SequenceType, TensorType
from bridge.neutral.verify import VerificationError, verify
from tests.support.graphs import read

TEXT = """g (float[2] x, bool c, int64 n) => (float[2] y, float[2] z) {
  k = Constant <value = float[2] {1, 2}> ()
  p = Add (x, k)
  y = If (c) <then_branch = t () => (float[2] a) { a = Neg (p) },
              else_branch = e () => (float[2] b) { b = Softmax (x) }>
  z = Loop (n, "", x) <body = l (int64 i, bool d, float[2] s) => (bool f, float[2] r) {
    f = Identity (d) r = Neg (s) }> }"""


def vector() -> Value:
    return Value(TensorType(F32, (2,)))


@dataclass
class Parts:
    """A whole graph, and its nodes of these operators."""

    graph: Graph
    add: Node
    choice: Node
    loop: Node


def whole() -> Parts:
    graph = read(TEXT).graph
    by_op = {node.op: node for node in graph.nodes}
    return Parts(graph, by_op["Add"], by_op["If"], by_op["Loop"])


BREAKS: dict[str, tuple[Callable[[Parts], object], str]] = {
    "a value that nothing makes": (
        lambda m: m.add.inputs.__setitem__(0, vector()),
        "graph / Add .*uses .* no node before it",
    ),
    "a value that is made later": (
        lambda m: m.graph.nodes.reverse(),
        "uses .* no node before it",
    ),
    "a body that uses an outer value": (
        lambda m: m.choice.then_body.graph.nodes[0].inputs.__setitem__(0, m.graph.inputs[0]),
        'If .* / body 0 / Neg "a": uses %x',
    ),
    "a value that is made twice": (
        lambda m: m.graph.nodes.append(m.choice),
        "makes .*, which is made already",
    ),
    "an output of another node": (
        lambda m: setattr(m.add.outputs[0], "producer", m.loop),
        "is not the producer of its output",
    ),
    "an input that is there twice": (
        lambda m: m.graph.inputs.append(m.graph.inputs[0]),
        "an input twice",
    ),
    "an input that a node makes": (
        lambda m: setattr(m.graph.inputs[0], "producer", m.add),
        "the input .* has a producer",
    ),
    "an output that nothing makes": (
        lambda m: m.graph.outputs.append(vector()),
        "its output .* is not made in it",
    ),
    "names for some outputs": (
        lambda m: m.graph.output_names.pop(),
        "not one output name for each output",
    ),
    "a Constant without a value": (
        lambda m: m.graph.nodes[0].attributes.clear(),
        "a Constant without a value",
    ),
    "a Constant of another type": (
        lambda m: setattr(m.graph.nodes[0].outputs[0], "type", TensorType(F32, (3,))),
        r"its output is f32\[3\], its value f32\[2\]",
    ),
    "an attribute that no row has": (
        lambda m: m.add.attributes.__setitem__("axis", 1),
        "has an attribute axis, which is not in its row",
    ),
    "an attribute of another type": (
        lambda m: m.choice.else_body.graph.nodes[0].attributes.__setitem__("axis", "last"),
        "its attribute axis is 'last', which is no int",
    ),
    "a bool for a number": (
        lambda m: m.choice.else_body.graph.nodes[0].attributes.__setitem__("axis", True),
        "its attribute axis is True, which is no int",
    ),
    "an attribute that is missing": (
        lambda m: m.graph.nodes.append(Node("Cast", m.add.outputs, [vector()])),
        "has no attribute to",
    ),
    "bodies of an operator that has none": (
        lambda m: setattr(m.add, "bodies", m.loop.bodies),
        "has bodies, but only If and Loop may",
    ),
    "an If with one branch": (
        lambda m: setattr(m.choice, "bodies", m.choice.bodies[:1]),
        "needs a condition and two bodies",
    ),
    "an If without a condition": (
        lambda m: m.choice.inputs.__setitem__(0, None),
        "needs a condition and two bodies",
    ),
    "a branch that says whether to go on": (
        lambda m: m.choice.then_body.add_exit(m.choice.then_body.graph.outputs[0], Condition()),
        "a branch may only yield",
    ),
    "branches of different types": (
        lambda m: setattr(m.choice.then_body.graph.outputs[0], "type", TensorType(I64, (2,))),
        r"output 0 is i64\[2\] or f32\[2\]",
    ),
    "a branch that gives a sequence": (
        lambda m: setattr(
            m.choice.then_body.graph.outputs[0], "type", SequenceType(TensorType(F32, (2,)))
        ),
        r"output 0 is seq\(f32\[2\]\) or f32\[2\]",
    ),
    "an input of a body without a port": (
        lambda m: m.choice.then_body.inputs.pop(),
        "0 ports for 1 body inputs",
    ),
    "an output of a body without a port": (
        lambda m: m.loop.body.outputs.pop(),
        "1 ports for 2 body outputs",
    ),
    "a port of an input that is not there": (
        lambda m: m.choice.then_body.inputs.__setitem__(0, Invariant(9)),
        r"Invariant\(input=9\) names an input that is not there",
    ),
    "a port of an absent input": (
        lambda m: m.loop.inputs.__setitem__(2, None),
        r"Carried\(input=2, output=1\) names an input that is not there",
    ),
    "a state that takes an output that is not there": (
        lambda m: renumber_state(m.loop.body),
        "Carried.* names an output that is not there",
    ),
    "an output of a node that two ports give": (
        lambda m: m.loop.body.outputs.__setitem__(0, Yield(0)),
        "names an output that is not there, or is given already",
    ),
    "an output of a node that no port gives": (
        lambda m: m.loop.body.outputs.__setitem__(1, Yield(None)),
        "some of its outputs come from no body output",
    ),
    "a Loop with two conditions": (
        lambda m: m.loop.body.add_exit(m.loop.body.graph.outputs[0], Condition()),
        "has more than one condition",
    ),
    "a Loop without places for count and condition": (
        lambda m: m.loop.inputs.clear(),
        "needs a trip count and a condition",
    ),
}


def renumber_state(body: Body) -> None:
    body.inputs = [replace(p, output=7) if isinstance(p, Carried) else p for p in body.inputs]


def test_a_whole_graph() -> None:
    verify(whole().graph)


@pytest.mark.parametrize("name", BREAKS)
def test_breach(name: str) -> None:
    parts = whole()
    break_it, says = BREAKS[name]
    break_it(parts)
    with pytest.raises(VerificationError, match=says):
        verify(parts.graph)
