"""Removes what no output depends on."""

from __future__ import annotations

from dataclasses import replace

from bridge.neutral.graph import Body, Graph, Model, Node, Value
from bridge.neutral.ports import Carried, Condition, Invariant, Yield
from bridge.neutral.rewrite import drop_unused_inputs
from bridge.passes.context import Context
from bridge.vocabulary import operator

EFFECTS = {"Assign"}
"""Operators that do something though nobody uses their outputs."""


def remove_dead_code(model: Model, context: Context) -> None:
    """Removes, in place, nodes without a user, and captured inputs that no body uses."""
    remove_dead_nodes(model.graph)


def trim_outputs(model: Model, context: Context) -> None:
    """Removes, in place, dead code and outputs that nobody uses."""
    remove_dead_nodes(model.graph, trim=True)


def remove_dead_nodes(graph: Graph, trim: bool = False) -> None:
    """Removes nodes without a user, and captured inputs that no body uses, innermost first; with
    `trim` also unused outputs of If and Loop, and the last outputs of other nodes where they are
    optional."""
    used: set[Value | None] = set(graph.outputs)
    alive: list[Node] = []
    for node in reversed(graph.nodes):
        if node.op not in EFFECTS and used.isdisjoint(node.outputs):
            continue
        if trim and node.bodies:
            _drop_outputs(node, used)
        for body in node.bodies:
            remove_dead_nodes(body.graph, trim)
            while trim and _drop_states(body):
                remove_dead_nodes(body.graph, trim)
            _drop_captures(body)
        if trim and not node.bodies:
            _trim_outputs(node, used)
        if node.bodies:
            drop_unused_inputs(node, 1 if node.op == "If" else 2)
        used.update(node.inputs)
        alive.append(node)
    alive.reverse()
    graph.nodes = alive


def _trim_outputs(node: Node, used: set[Value | None]) -> None:
    row = operator(node.op)
    declared = row.outputs if row is not None else ()
    count = min(len(node.outputs), len(declared))
    if count < len(node.outputs):
        return
    while count > 1 and node.outputs[count - 1] not in used and declared[count - 1].endswith("?"):
        count -= 1
    del node.outputs[count:]


def _drop_outputs(node: Node, used: set[Value | None]) -> None:
    """Removes the unused outputs of an If or a Loop, and what its bodies give for them alone."""
    keep = [index for index, value in enumerate(node.outputs) if value in used]
    if len(keep) == len(node.outputs):
        return
    moved = {old: new for new, old in enumerate(keep)}
    node.outputs = [node.outputs[index] for index in keep]
    for body in node.bodies:
        carried = {port.output for port in body.inputs if isinstance(port, Carried)}
        exits = []
        for index, port in enumerate(body.outputs):
            if not isinstance(port, Condition) and port.output is not None:
                if port.output in moved:
                    body.outputs[index] = replace(port, output=moved[port.output])
                elif index in carried:
                    body.outputs[index] = Yield(None)
                else:
                    continue
            exits.append(index)
        body.keep_exits(exits)


def _drop_states(body: Body) -> bool:
    """Removes what a Loop carries for itself alone, or gives to nobody; whether there was any."""
    graph = body.graph
    pairs = body.entries()
    states = {value: port.output for value, port in pairs if isinstance(port, Carried)}
    spare = {index for index, exit in enumerate(body.outputs) if exit == Yield(None)}
    if not spare:
        return False
    makers = {value: node for node in graph.nodes for value in node.outputs}
    todo = [value for index, value in enumerate(graph.outputs) if index not in spare]
    todo += [v for n in graph.nodes if n.op in EFFECTS for v in n.inputs if v is not None]
    needed: set[Value] = set()
    while todo:
        value = todo.pop()
        if value in needed:
            continue
        needed.add(value)
        if value in makers:
            todo += [v for v in makers[value].inputs if v is not None]
        elif value in states:
            todo.append(graph.outputs[states[value]])
    gone = spare - {index for value, index in states.items() if value in needed}
    if not gone:
        return False
    body.take_entries(lambda _, port: isinstance(port, Carried) and port.output in gone)
    body.keep_exits([index for index in range(len(body.outputs)) if index not in gone])
    return True


def _drop_captures(body: Body) -> None:
    used: set[Value | None] = set(body.graph.outputs)
    for node in body.graph.nodes:
        used.update(node.inputs)
    body.take_entries(lambda value, port: value not in used and isinstance(port, Invariant))
