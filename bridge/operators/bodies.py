"""Builds an If from the functions of its branches, and a Loop along axis 0 of its inputs."""

from collections.abc import Callable, Sequence
from functools import partial

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Value
from bridge.neutral.ports import Carried, InputPort, Invariant, OutputPort, Sliced, Stacked, Yield
from bridge.neutral.types import TensorType, Type

Values = list[Value]
BuildBranch = Callable[[Builder, list[Value]], Sequence[Value]]
"""Makes the outputs of a branch from the captured values."""

BuildStep = Callable[[Builder, Values, Values, Values], tuple[Values, Values]]
"""The body: (builder, parts, states, fixed values) to the new states and the values to stack."""


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


def along(
    b: Builder,
    step: BuildStep,
    sliced: Sequence[Value],
    states: Sequence[Value],
    fixed: Sequence[Value] = (),
    reverse: bool = False,
) -> tuple[Values, Values]:
    """A Loop with one iteration per element along axis 0 of `sliced` (backwards with `reverse`).

    The body reads the elements without this axis, the states, and `fixed`. Returns the last states
    and the stacks. The stacks have a new axis 0, in the order of `sliced`.
    """
    graph = Graph()
    inner = Builder(graph.nodes, b.name, b.target)
    inputs: list[Value | None] = [None, None]
    ports: list[InputPort] = []
    start, stride, end = (-1, -1, 0) if reverse else (0, 1, -1)

    def enter(outer: Value, type: Type, port: Callable[[int], InputPort]) -> Value:
        value = Value(type)
        ports.append(port(len(inputs)))
        inputs.append(outer)
        graph.inputs.append(value)
        return value

    def part(outer: Value) -> Value:
        known = outer.tensor
        shape = None if known.shape is None else (1, *known.shape[1:])
        value = enter(
            outer, TensorType(known.element, shape), lambda i: Sliced(i, 0, start, stride, end)
        )
        return inner.squeeze(value, 0)

    def invariant(outer: Value) -> Value:
        tensor = outer.constant
        return enter(outer, outer.type, Invariant) if tensor is None else inner.tensor(tensor)

    before = [enter(s, s.type, partial(Carried, output=k)) for k, s in enumerate(states)]
    parts = [part(s) for s in sliced]
    with inner:
        after, stacked = step(inner, parts, before, [invariant(f) for f in fixed])
    count = len(after)
    graph.outputs = [*after, *(inner.op("Unsqueeze", s, [0]) for s in stacked)]
    outputs: list[OutputPort] = [Yield(k) for k in range(count)]
    outputs += [Stacked(count + k, 0, start, stride, end) for k in range(len(stacked))]
    body = Body(graph, ports, outputs)
    results = b.node("Loop", inputs, count + len(stacked), bodies=(body,)).outputs
    return results[:count], results[count:]
