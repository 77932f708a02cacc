"""An If whose branches give results of one shape that is not known before.

OpenVINO's CPU plugin finds out how much a branch has to copy to the If's output where the shape of
the result differs from that of the run before, and from nothing else: a branch that runs for the
first time copies nothing where the other has given a result of that shape. So each branch yields
its elements at an output of its own, at which the other yields none, and the shape at a third one,
whose own shape is known.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.ports import Yield
from bridge.neutral.types import I64, STRING, TensorType, is_static
from bridge.operators import Result
from bridge.quirks.quirk import OPENVINO_CPU, Place, Quirk, rewriting


def branches_apart(b: Builder, node: Node, place: Place) -> Result:
    """The elements of both branches, one behind the other, in the shape that one of them gave."""
    bodies = [body.copy() for body in node.bodies]
    wanted = [index for index in range(len(node.outputs)) if _is_open(node, index)]
    if not wanted:
        return None
    types = [value.type for value in node.outputs]
    for index in wanted:
        value, further = node.outputs[index], len(types)
        assert value.rank is not None
        for branch, body in enumerate(bodies):
            _yield_apart(body, index, branch, further)
        line = TensorType(value.element, (f"{further}.then",))
        types[index] = line
        types += [TensorType(value.element, (f"{further}.else",)), TensorType(I64, (value.rank,))]
    results = [Value(type) for type in types]
    b.nodes.append(Node("If", list(node.inputs), results, {}, tuple(bodies), node.name))
    outputs = results[: len(node.outputs)]
    further = len(outputs)
    for index in wanted:
        whole = b.op("Concat", results[index], results[further], axis=0)
        sizes: list[int | Value] = []
        fixed = [d if isinstance(d, int) and d else None for d in node.outputs[index].shape or ()]
        for axis, size in enumerate(fixed):
            # A constant shape says more to OpenVINO than one that is put together.
            found = -1 if fixed.count(None) == 1 else b.take(results[further + 1], 0, axis)
            sizes.append(found if size is None else size)
        outputs[index] = b.reshape(whole, *sizes)
        further += 2
    return outputs


def _is_open(node: Node, index: int) -> bool:
    """Whether an output has the fault: no shape that is known, and a result in each branch."""
    value = node.outputs[index]
    if value.rank in (None, 0) or is_static(value.shape) or value.element in (None, STRING):
        return False
    return not any(_is_nothing(_result(body, index)) for body in node.bodies)


def _is_nothing(value: Value) -> bool:
    return value.constant is not None and value.constant.size == 0


def _result(body: Body, index: int) -> Value:
    return next(value for value, port in body.exits() if port == Yield(index))


def _yield_apart(body: Body, index: int, branch: int, further: int) -> None:
    """Has a branch yield its elements at `index`, or at `further` if it is the second, nothing at
    the other of these, and its shape behind them."""
    result = _result(body, index)
    b = Builder([])
    line = b.op("Reshape", result, b.constant([-1]))
    nothing = b.filled(0, [0], result.element)
    size = b.op("Shape", result)
    body.graph.nodes += b.nodes
    own, other = (line, nothing) if branch == 0 else (nothing, line)
    body.set_exits((own if port == Yield(index) else v, port) for v, port in body.exits())
    body.add_exit(other, Yield(further))
    body.add_exit(size, Yield(further + 1))


QUIRK = Quirk(
    OPENVINO_CPU,
    releases="2024.0 to 2026.1",
    symptom="An If whose output has an open shape gives the values of the branch that ran before "
    "where the other gives a result of the same shape for the first time.",
    cost="Two further outputs, a Concat and a Reshape; the result is copied once more. Only with "
    "--quirks old.",
    run=rewriting("If", by=branches_apart),
)
