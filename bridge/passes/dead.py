"""Removes nodes on which no output depends."""

from bridge.neutral.builder import Builder
from bridge.neutral.captures import drop_unread_captures, drop_unused_inputs, keep_outputs
from bridge.neutral.dataflow import Facts
from bridge.neutral.graph import Body, Graph, Model, Node
from bridge.neutral.liveness import Needed
from bridge.neutral.ports import Carried, Yield
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.passes.context import Context
from bridge.vocabulary import operator


def remove_dead_code(model: Model, context: Context) -> bool:
    """Removes, in place, nodes without a user, and captured inputs that no body uses."""
    return remove_dead_nodes(model.graph)


def trim_outputs(model: Model, context: Context) -> bool:
    """Removes, in place, dead code and outputs that nobody uses."""
    return remove_dead_nodes(model.graph, trim=True)


def remove_dead_nodes(graph: Graph, trim: bool = False) -> bool:
    """Removes nodes without a user, and captured inputs that no body uses, innermost first. With
    `trim`, also removes unused outputs of If and Loop, and the last outputs of other nodes if they
    are optional and unused."""
    changed = Rewriter(graph).run(TRIM if trim else CLEAN)
    while trim and _drop_states(graph):
        Rewriter(graph).run(TRIM)
        changed = True
    return changed


def _cleaned(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    rewriter.descend(node, CLEAN)
    _drop_captures(node, rewriter)
    return None


CLEAN = Pattern(_cleaned, frozenset({"If", "Loop"}), bodies=False, backwards=True)
"""Removes nodes without a user, and unused captures of bodies."""


def _trimmed(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    if not node.bodies:
        rewriter.changed |= _trim_outputs(node, rewriter)
        return None
    rewriter.changed |= _drop_outputs(node, rewriter)
    rewriter.descend(node, TRIM)
    _drop_captures(node, rewriter)
    return None


TRIM = Pattern(_trimmed, bodies=False, backwards=True)
"""Outputs that nobody uses go, too."""


def _trim_outputs(node: Node, rewriter: Rewriter) -> bool:
    if len(node.outputs) < 2:
        return False
    row = operator(node.op)
    declared = row.outputs if row is not None else ()
    count = len(node.outputs)
    if count > len(declared):
        return False
    while count > 1 and declared[count - 1].endswith("?"):
        if rewriter.count(node.outputs[count - 1]):
            break
        count -= 1
    gone = len(node.outputs) > count
    del node.outputs[count:]
    return gone


def _drop_outputs(node: Node, rewriter: Rewriter) -> bool:
    """Removes the unused outputs of an If or a Loop, and the body outputs for them alone; returns
    whether there were any."""
    keep = [index for index, value in enumerate(node.outputs) if rewriter.count(value)]
    if len(keep) == len(node.outputs):
        return False
    node.outputs = [node.outputs[index] for index in keep]
    keep_outputs(node.bodies, keep)
    return True


def _drop_states(graph: Graph) -> bool:
    """Removes states that Loops only use for themselves; returns whether there were any."""
    needed = Facts(Needed(), graph)
    bodies = [node.body for node in graph.walk() if node.op == "Loop"]
    return any([_drop_states_of(body, needed) for body in bodies])


def _drop_states_of(body: Body, needed: Facts[bool]) -> bool:
    spare = {index for index, exit in enumerate(body.outputs) if exit == Yield(None)}
    if not spare:
        return False
    gone = spare - {
        port.output
        for value, port in body.entries()
        if isinstance(port, Carried) and needed.of(value)
    }
    if not gone:
        return False
    body.take_entries(lambda _, port: isinstance(port, Carried) and port.output in gone)
    body.keep_exits([index for index in range(len(body.outputs)) if index not in gone])
    return True


def _drop_captures(node: Node, rewriter: Rewriter) -> None:
    """Removes captures that the bodies of a node do not use."""
    counted = node.op != "Loop" or node.trip_count is not None
    if any([drop_unread_captures(body, counted) for body in node.bodies]):
        rewriter.changed = True
    rewriter.modify(node, drop_unused_inputs)
