"""Drawn Loops and Ifs: edits of their bodies, copies, and their ports in both formats."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings, strategies as st

import bridge
from bridge.neutral.builder import Builder
from bridge.neutral.captures import drop_unused_inputs
from bridge.neutral.clone import clone_model
from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
    Invariant,
    Iteration,
    OutputPort,
    Sliced,
    Stacked,
    Yield,
    outer_input,
)
from bridge.neutral.types import BOOL, F32, I64, TensorType
from bridge.neutral.verify import verify
from bridge.passes.dead import remove_dead_nodes
from tests.support.graphs import shown

VECTOR = TensorType(F32, (2,))
ROWS = TensorType(F32, (3, 2))
DRAWN = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A model of one Loop or If over two vectors and two matrices. All outputs of the node are
    outputs of the model."""
    graph = Graph([Value(t, [f"x{i}"]) for i, t in enumerate((VECTOR, VECTOR, ROWS, ROWS))])
    graph.inputs.append(Value(TensorType(BOOL, ()), ["flag"]))
    b = Builder(graph.nodes)
    node = _if(draw, b, graph.inputs) if draw(st.booleans()) else _loop(draw, b, graph.inputs)
    for index, value in enumerate(node.outputs):
        value.names = [f"y{index}"]
    graph.outputs = list(node.outputs)
    graph.output_names = [value.name for value in graph.outputs]
    return Model(graph, "onnx", 21)


def _if(draw: st.DrawFn, b: Builder, given: list[Value]) -> Node:
    count = draw(st.integers(1, 3))
    captured = draw(st.lists(st.sampled_from(given[:2]), min_size=1, max_size=2, unique=True))
    bodies = []
    for _ in range(2):
        own = draw(st.lists(st.integers(0, len(captured) - 1), min_size=1, unique=True))
        entries = [(Value(VECTOR), Invariant(1 + i)) for i in own]
        body = _body(draw, entries, count)
        order = draw(st.permutations(range(count)))
        body.outputs = [Yield(place) for place in order]
        bodies.append(body)
    return b.node("If", [given[4], *captured], count, {}, tuple(bodies))


def _loop(draw: st.DrawFn, b: Builder, given: list[Value]) -> Node:
    states = draw(st.integers(0, 2))
    slices = draw(st.integers(0, 2))
    stacks = draw(st.integers(0 if states else 1, 2))
    counted = not slices or draw(st.booleans())
    numbered = counted and draw(st.booleans())
    inputs: list[Value | None] = [b.constant(3) if counted else None, None]
    entries: list[tuple[Value, InputPort]] = []
    for state in range(states):
        entries.append((Value(VECTOR), Carried(len(inputs), state)))
        inputs.append(given[state])
    for index in range(slices):
        entries.append((Value(VECTOR), Sliced(len(inputs), keepdims=False)))
        inputs.append(given[2 + index])
    if draw(st.booleans()) or not entries:
        entries.append((Value(VECTOR), Invariant(len(inputs))))
        inputs.append(given[1])
    if numbered:
        entries.append((Value(TensorType(I64, ())), Iteration()))
    entries = draw(st.permutations(entries))
    body = _body(draw, entries, states + stacks)
    ports: list[OutputPort] = [Yield(i) for i in range(states)]
    ports += [Stacked(states + i, keepdims=False) for i in range(stacks)]
    body.outputs = ports
    if counted and draw(st.booleans()):
        inner = Builder(body.graph.nodes)
        go_on = inner.op("Less", inner.op("ReduceMax", body.graph.outputs[0], keepdims=False),
                         inner.constant(1e6))  # fmt: skip
        body.add_exit(go_on, Condition())
    return b.node("Loop", inputs, states + stacks, {}, (body,))


def _body(draw: st.DrawFn, entries: list[tuple[Value, InputPort]], count: int) -> Body:
    """A body with these inputs that gives `count` vectors; its output ports are to be set."""
    body = Body(Graph())
    body.set_entries(entries)
    b = Builder(body.graph.nodes)
    pool = [value for value, _ in entries if value.type == VECTOR]
    for _ in range(draw(st.integers(count, count + 2))):
        op = draw(st.sampled_from(("Add", "Mul", "Neg")))
        taken = [draw(st.sampled_from(pool)) for _ in range(1 if op == "Neg" else 2)]
        pool.append(b.op(op, *taken))
    body.graph.outputs = [node.outputs[0] for node in body.graph.nodes[-count:]]
    body.outputs = [Yield(i) for i in range(count)]
    return body


def control(model: Model) -> Node:
    """The node with bodies."""
    (node,) = (node for node in model.graph.nodes if node.bodies)
    return node


@DRAWN
@given(models(), st.data())
def test_edits_of_bodies(model: Model, data: st.DataObject) -> None:
    verify(model.graph)
    node = control(model)
    for body in node.bodies:
        carried = {value: body.exit_of(p) for value, p in body.entries() if isinstance(p, Carried)}
        copy = body.copy()
        assert copy.entries() == body.entries() and copy.exits() == body.exits()
        assert copy.inputs is not body.inputs and copy.graph.nodes is not body.graph.nodes
        # A further input, as the first or the last.
        node.inputs.append(model.graph.inputs[0])
        body.add_entry(Value(VECTOR), Invariant(len(node.inputs) - 1), data.draw(st.booleans()))
        # A further output.
        node.outputs.append(Value())
        node.outputs[-1].producer = node
        exit = Yield(len(node.outputs) - 1)
        for every in node.bodies if node.op == "If" else [body]:
            every.add_exit(every.graph.outputs[0], exit)
        verify(model.graph)
        taken = body.take_entries(partial(_is_unused, body))
        assert not any(_is_unused(body, *pair) for pair in body.entries())
        assert all(pair not in body.entries() for pair in taken)
        drop_unused_inputs(node)
        verify(model.graph)
        assert len(body.entries()) == len(body.inputs) == len(body.graph.inputs)
        now = {value: body.exit_of(p) for value, p in body.entries() if isinstance(p, Carried)}
        assert now == carried


def _is_unused(body: Body, value: Value, port: InputPort) -> bool:
    used = {v for n in body.graph.nodes for v in n.inputs} | set(body.graph.outputs)
    return value not in used and not isinstance(port, Carried)


@DRAWN
@given(models(), st.data())
def test_outputs_that_nobody_needs(model: Model, data: st.DataObject) -> None:
    node = control(model)
    kept = data.draw(st.lists(st.sampled_from(node.outputs), min_size=1, unique=True))
    states = {
        id(value): body.exit_of(port)[0]
        for body in node.bodies
        for value, port in body.entries()
        if isinstance(port, Carried)
    }
    makers = {
        (index, value): body.graph.outputs[i]
        for index, body in enumerate(node.bodies)
        for value in kept
        for i, port in enumerate(body.outputs)
        if not isinstance(port, Condition) and port.output == node.outputs.index(value)
    }
    model.graph.outputs, model.graph.output_names = kept, []
    remove_dead_nodes(model.graph, trim=True)
    verify(model.graph)
    assert set(node.outputs) == set(kept)
    for index, body in enumerate(node.bodies):
        for value, port in body.entries():
            if isinstance(port, Carried):
                assert body.exit_of(port)[0] is states[id(value)]
        for value, port in body.exits():
            if not isinstance(port, Condition) and port.output is not None:
                assert makers[index, node.outputs[port.output]] is value
        used = {outer_input(port) for port in body.inputs} - {None}
        assert used <= set(range(len(node.inputs)))


@DRAWN
@given(models())
def test_copy_of_a_model(model: Model) -> None:
    before = shown(model.graph)
    copy = clone_model(model)
    assert shown(copy.graph) == before
    assert not set(copy.graph.walk()) & set(model.graph.walk())
    for node in list(copy.graph.walk()):
        node.op, node.inputs = "Identity", []
        for body in node.bodies:
            body.set_entries([])
            body.set_exits([])
    assert shown(model.graph) == before


@DRAWN
@given(models())
def test_ports_in_both_formats(model: Model) -> None:
    remove_dead_nodes(model.graph)
    with TemporaryDirectory() as name:
        folder = Path(name)
        # IR has all ports; ONNX's Loop has no slices, and its Scan no count.
        bridge.save(model, folder / "0.xml", device="ANY")
        assert _kinds(folder / "0.xml") == _kinds(model)
        bridge.save(model, folder / "0.onnx")
        for source, target in pairwise(("0.onnx", "1.xml", "2.onnx", "3.xml")):
            bridge.convert(folder / source, folder / target)
        assert _kinds(_alive(folder / "0.onnx")) == _kinds(folder / "2.onnx")
        assert _kinds(folder / "1.xml") == _kinds(folder / "3.xml")
        for first, suffix in (("1.xml", "xml"), ("2.onnx", "onnx")):
            same, again = folder / f"same.{suffix}", folder / f"again.{suffix}"
            bridge.convert(folder / first, same)
            bridge.convert(same, again)
            assert again.read_bytes() == same.read_bytes()


def _alive(path: Path) -> Model:
    """The model without the Slices that ONNX has for unread slices."""
    model = bridge.load(path)
    remove_dead_nodes(model.graph)
    return model


def _kinds(model: Model | Path) -> list[list[str]]:
    """The kinds of ports of each body.

    First the used inputs, without a condition that is a state; then the used outputs, in the order
    of the node's outputs.
    """
    result = []
    model = bridge.load(model) if isinstance(model, Path) else model
    for body in control(model).bodies:
        entries = [
            type(port).__name__
            for value, port in body.entries()
            if not _is_unused(body, value, port)
            and not (isinstance(port, Carried) and isinstance(body.exit_of(port)[1], Condition))
        ]
        exits = [p for p in body.outputs if not isinstance(p, Condition) and p != Yield(None)]
        exits.sort(key=lambda port: port.output or 0)
        result += [sorted(entries), [type(port).__name__ for port in exits]]
    return result
