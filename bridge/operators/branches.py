"""Builds an If from two functions that build its branches."""

from collections.abc import Callable, Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Value
from bridge.neutral.ports import Invariant, Yield

BuildBranch = Callable[[Builder, list[Value]], Sequence[Value]]
"""Makes the outputs of a branch from the captured values."""


def either(
    b: Builder,
    condition: Value,
    outer: Sequence[Value],
    then: BuildBranch,
    otherwise: BuildBranch,
    names: tuple[str, str] = ("", ""),
    suffix: str = "",
) -> list[Value]:
    """The outputs of an If. Each branch captures the `outer` values that it uses. With a `suffix`,
    a captured value has the outer name with this suffix. `names` are the names of the branches."""
    bodies = []
    for name, make in zip(names, (then, otherwise), strict=True):
        inside = [Value(v.type, [f"{n}{suffix}" for n in v.names if suffix]) for v in outer]
        graph = Graph(name=name)
        with Builder(graph.nodes, b.name, b.target) as inner:
            graph.outputs = list(make(inner, inside))
        used = {value for node in graph.nodes for value in node.inputs} | {*graph.outputs}
        body = Body(graph, [], [Yield(index) for index in range(len(graph.outputs))])
        body.set_entries((v, Invariant(i)) for i, v in enumerate(inside, 1) if v in used)
        bodies.append(body)
    count = len(bodies[0].outputs)
    return b.node("If", [condition, *outer], count, {}, tuple(bodies)).outputs
