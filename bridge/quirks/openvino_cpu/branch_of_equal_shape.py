"""An If whose branches give results of one shape, which is not known before the model runs.

OpenVINO's CPU plugin computes how much a branch copies to the output of the If. It does so only if
the shape of the result differs from the previous run. A branch that runs for the first time copies
nothing, if the other branch gave a result of the same shape before. So each branch gets an output
of its own for its elements, and is empty at the output of the other branch. A third output gives
the shape of the result; the rank is known, so this output has a known shape.
"""

from __future__ import annotations

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import Yield
from bridge.neutral.types import ANY, I64, STRING, TensorType, is_static
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.quirk import Place, Quirk, rewriting


def branches_apart(b: Builder, node: Node, place: Place) -> Result:
    """The elements of both branches in one Concat, reshaped to the shape from the branch that
    ran."""
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
        line = TensorType(value.element, (ANY,))
        types[index] = line
        types += [line, TensorType(I64, (value.rank,))]
    results = [Value(type) for type in types]
    b.nodes.append(Node("If", list(node.inputs), results, {}, tuple(bodies), node.name))
    outputs = results[: len(node.outputs)]
    further = len(outputs)
    for index in wanted:
        whole = b.op("Concat", results[index], results[further], axis=0)
        sizes: list[int | Value] = []
        fixed = [d if isinstance(d, int) and d else None for d in node.outputs[index].shape or ()]
        for axis, size in enumerate(fixed):
            # OpenVINO infers more from a constant shape than from a computed one.
            found = -1 if fixed.count(None) == 1 else b.take(results[further + 1], 0, axis)
            sizes.append(found if size is None else size)
        # A computed size may be 0. Without `allowzero`, the Reshape would copy a size of `whole`
        # instead.
        computed = any(isinstance(size, Value) for size in sizes)
        outputs[index] = b.op("Reshape", whole, b.shape(*sizes), allowzero=computed)
        further += 2
    return outputs


def _is_open(node: Node, index: int) -> bool:
    """Whether an output has the fault: its shape is not known, and both branches may give
    elements."""
    value = node.outputs[index]
    if value.shape is not None and 0 in value.shape:
        return False
    if value.rank in (None, 0) or is_static(value.shape) or value.element in (None, STRING):
        return False
    return not any(_is_nothing(_result(body, index)) for body in node.bodies)


def _is_nothing(value: Value) -> bool:
    return value.constant is not None and value.constant.size == 0


def _result(body: Body, index: int) -> Value:
    return next(value for value, port in body.exits() if port == Yield(index))


def _yield_apart(body: Body, index: int, branch: int, further: int) -> None:
    """Has a branch yield its elements, an empty tensor and its shape.

    The first branch yields its elements at `index`, the second at `further`. Each yields the empty
    tensor at the other place, and its shape at `further + 1`.
    """
    result = _result(body, index)
    b = Builder([])
    line = b.op("Reshape", result, [-1])
    nothing = b.filled(0, [0], result.element)
    size = b.op("Shape", result)
    body.graph.nodes += b.nodes
    own, other = (line, nothing) if branch == 0 else (nothing, line)
    body.set_exits((own if port == Yield(index) else v, port) for v, port in body.exits())
    body.add_exit(other, Yield(further))
    body.add_exit(size, Yield(further + 1))


def together(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The output of an If with one output for both branches, as it was before `branches_apart`."""
    whole = uses.single_use(node.inputs[0], "Concat")
    if whole is None or len(whole.inputs) != 2:
        return None
    lines = [value for value in whole.inputs if value is not None and uses.count(value) == 1]
    made = lines[0].producer if len(lines) == 2 else None
    if made is None or made.op != "If" or lines[1].producer is not made:
        return None
    places = [made.outputs.index(line) for line in lines]
    bodies = tuple(body.copy() for body in made.bodies)
    rank = node.outputs[0].rank
    results = [_before(_result(body, at), rank) for body, at in zip(bodies, places, strict=True)]
    nothing = [_result(body, place) for body, place in zip(bodies, reversed(places), strict=True)]
    if None in results or not all(map(_is_nothing, nothing)):
        return None
    if not _is_shape_of(node.inputs[1], [v for v in results if v is not None], made, bodies):
        return None
    for body, result in zip(bodies, results, strict=True):
        if result is not None:
            exits = body.exits()
            body.set_exits((result if p == Yield(places[0]) else v, p) for v, p in exits)
    values = [Value(node.outputs[0].type if o is lines[0] else o.type) for o in made.outputs]
    b.nodes.append(Node("If", list(made.inputs), values, {}, bodies, made.name, made.extras))
    for old, new in zip(made.outputs, values, strict=True):
        if old not in lines and uses.count(old):
            uses.hand_over(old, new, inside=0)
    return values[places[0]]


def _before(line: Value, rank: int | None) -> Value | None:
    """The value before its Reshape to a vector. A constant vector has no Reshape."""
    made = line.producer
    if rank == 1 and line.constant is not None:
        return line
    vector = made is not None and made.op == "Reshape" and known_of(made.inputs[1]).ints == (-1,)
    return made.inputs[0] if vector and made is not None else None


def _is_shape_of(
    sizes: Value | None, results: list[Value], node: Node, bodies: tuple[Body, ...]
) -> bool:
    """Whether `sizes` is the shape of the results. Each size is known, or the rest (-1), or comes
    from the shape that the branches yield."""
    known, made = known_of(sizes).ints, sizes.producer if sizes is not None else None
    parts = made.inputs if made is not None and made.op == "Concat" else [sizes]
    said = [known_of(part).ints for part in parts] if known is None else [(size,) for size in known]
    if any(len(said) != result.rank for result in results) or said.count((-1,)) > 1:
        return False
    for axis, size in enumerate(said):
        if size is None:
            part = parts[axis]
            taken = part.producer if part is not None else None
            if taken is None or taken.op != "Gather" or known_of(taken.inputs[1]).ints != (axis,):
                return False
            shape = taken.inputs[0]
            if shape is None or shape.producer is not node:
                return False
            place = node.outputs.index(shape)
            for body, result in zip(bodies, results, strict=True):
                asked = _result(body, place).producer
                if asked is None or asked.op != "Shape" or asked.inputs[0] is not result:
                    return False
        elif size != (-1,) and any(result.dims[axis] != size[0] for result in results):
            return False
    return True


QUIRK = Quirk(
    releases="2024.0 to 2026.1",
    symptom="If an output of an If has an open shape, it keeps the values of the branch that ran "
    "before. This happens when the other branch first gives a result of the same shape.",
    fires="At an output of open shape of an If, if both branches may give elements.",
    safe="Each branch gives its elements at one output and an empty tensor at the other. The "
    "Concat of both has the elements of the branch that ran.",
    cost="Two further outputs, a Concat and a Reshape; the result is copied once more. Only for "
    "those releases.",
    run=rewriting("If", by=branches_apart),
    undo={"Reshape": together},
)
