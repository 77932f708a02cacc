"""The nodes of a branch, each with a guard for the case that the branch is not taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.ports import Invariant
from bridge.operators.control.untaken_loop import runs_in_full
from bridge.operators.guarding import Unsafe
from bridge.passes.select.guards import guarded


@dataclass(frozen=True)
class SafeStep:
    """A node with the inputs that make it safe, or None for its own; a guard is one that the pass
    made. `body` are the steps of a Loop's body, and the condition's value in there."""

    node: Node
    inputs: Sequence[Value | None] | None = None
    is_guard: bool = False
    body: tuple[Value, list[SafeStep]] | None = None


def steps_of(
    nodes: Sequence[Node], counts: Value, b: Builder, made: set[Node]
) -> tuple[list[SafeStep], list[str]]:
    """The nodes of a branch that is taken if the value is true, with guards, and the reasons why
    some have no guard. Nodes that selections `made` are safe."""
    steps: list[SafeStep] = []
    why: list[str] = []
    for node in nodes:
        if node in made:
            steps.append(SafeStep(node))
            continue
        guards = Builder([], node.name, b.target)
        try:
            if node.op == "Loop" and runs_in_full(node):
                inside = Value(counts.type)
                inner, reasons = steps_of(node.body.graph.nodes, inside, b, made)
                why += (f"{node!r} / {reason}" for reason in reasons)
                steps.append(SafeStep(node, body=(inside, inner)))
                continue
            with guards:
                inputs = guarded(guards, node, counts)
        except Unsafe as unsafe:
            why.append(f"{node!r}: {unsafe}")
            continue
        steps += [SafeStep(guard, is_guard=True) for guard in guards.nodes]
        steps.append(SafeStep(node, inputs))
    return steps, why


def take_steps(graph: Graph, steps: Sequence[SafeStep], counts: Value, made: set[Node]) -> None:
    """Makes the nodes of a graph safe, in place. `made` learns of the guards."""
    for step in steps:
        node = step.node
        if step.inputs is not None:
            node.inputs = list(step.inputs)
        if step.is_guard:
            made.add(node)
        if step.body is not None and _has_guards(step.body[1]):
            inside, inner = step.body
            node.inputs.append(counts)
            node.body.add_entry(inside, Invariant(len(node.inputs) - 1))
            take_steps(node.body.graph, inner, inside, made)
    graph.nodes = [step.node for step in steps]


def _has_guards(steps: Sequence[SafeStep]) -> bool:
    return any(
        step.is_guard or step.inputs is not None or (step.body and _has_guards(step.body[1]))
        for step in steps
    )
