"""Outputs of an If whose memory is used again, or is that of the other branch."""

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.dataflow import Must, Now
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import (
    InputPort,
    Iteration,
    OutputPort,
    Yield,
    outer_input,
)
from bridge.neutral.types import (
    ANY,
    F32,
    I8,
    I32,
    I64,
    STRING,
    U8,
    TensorType,
    is_static,
)
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.opaque import opaque, recognise
from bridge.quirks.quirk import (
    Place,
    quirk,
)
from bridge.vocabulary import operator

KEPT_TYPES = {F32, I8, I32, U8}
"""Types for which an output of the model has memory of its own, because the plugin computes in
them.

The plugin converts other types in front of the output. An output of a body always has memory of its
own.
"""


# OpenVINO's CPU plugin runs operators in sections. It first infers the shapes of all results of
# a section and enlarges their memory. Then it computes them. Results share memory if their
# sections do not overlap. The plugin assumes that the output of an If is not alive in the
# section behind the If. So the output is lost if this section needs more of the shared memory
# than ever before. An operator with a computed shape begins a section of its own. A
# VariadicSplit into one part as long as the axis is such an operator, and its result is kept.
@quirk(
    "If",
    uses=True,
    after=("safe_loop",),
    symptom="The first inference, and the first one with larger inputs, are wrong. This happens if "
    "an operator behind an If needs memory before an output of open shape has been read.",
    cost="a ShapeOf, a Gather and a VariadicSplit for each such output, which is copied once more",
)
def memory_of_branch(b: Builder, node: Node, place: Place) -> Result:
    """The only part of a value is the value, and so is a value reshaped to its own shape."""
    lost = [_is_lost_behind_if(value, place) for value in node.outputs]
    if not any(lost):
        return None
    bodies = tuple(body.copy() for body in node.bodies)
    made = [Value(value.type) for value in node.outputs]
    b.nodes.append(Node("If", list(node.inputs), made, {}, bodies, node.name))
    results = list(made)
    for position, value in enumerate(made):
        if lost[position] and is_static(value.shape):
            for body in bodies:
                _tell_shape(body, position, value.shape)
        elif lost[position]:
            results[position] = opaque(b, value, "section")
    return results


def _tell_shape(body: Body, position: int, shape: tuple[int, ...]) -> None:
    b = Builder([])
    exits: list[tuple[Value, OutputPort]] = [
        (b.reshape(value, *shape) if port == Yield(position) else value, port)
        for value, port in body.exits()
    ]
    body.graph.nodes += b.nodes
    body.set_exits(exits)


def _is_lost_behind_if(value: Value, place: Place) -> bool:
    """Whether the memory of an output may be used again too early."""
    if value.rank in (None, 0) or value.element in (None, STRING):
        return False
    if place.facts(FixedShape).of(value):
        return False
    if value in place.graph.outputs:
        return place.holder is None and value.element not in KEPT_TYPES
    users = place.users(value)
    return not all(
        user.op == "Shape" or _is_section(user, value) or _begins_a_section(user, place)
        for user in users
    )


def _begins_a_section(node: Node, place: Place) -> bool:
    """Whether a node begins a section, so all operators before it run while its inputs are alive.

    An If with a known condition may become a part of the section before it.
    """
    return node.op == "If" and not is_known(node.condition, place)


class FixedShape(Must):
    """Whether OpenVINO, too, knows that a value has one shape. It knows fewer computed shapes than
    Bridge."""

    def outside(self, value: Value) -> bool:
        """The shape of a model input is fixed if the file gives it."""
        return True

    def settled(self, value: Value, fact: bool) -> bool:
        """If Bridge does not know a shape, OpenVINO does not know it either."""
        return fact and is_static(value.shape)

    def transfer(self, node: Node, facts: Sequence[bool | None]) -> list[bool]:
        """A result is fixed if the shapes of the inputs are fixed. An input whose elements decide
        the shape must be a constant."""
        fixed = node.op in ("Constant", "Shape")
        if node.op == "Reshape":
            fixed = min(known_of(node.inputs[1]).ints or (0,)) > 0
        elif not fixed:
            row = operator(node.op)
            shaping = row.shaped_by if row is not None else ()
            fixed = all(
                value is None or (value.constant is not None if at in shaping else facts[at])
                for at, value in enumerate(node.inputs)
            )
        return [fixed] * len(node.outputs)

    def entry(self, node: Node, body: Body, value: Value, port: InputPort, now: Now[bool]) -> bool:
        """A state of a Loop has the fact of its initial value."""
        outer = None if isinstance(port, Iteration) else outer_input(port)
        source = None if outer is None else node.inputs[outer]
        return source is None or now(source)

    def exit(self, node: Node, value: Value, port: OutputPort, now: Now[bool]) -> bool:
        """OpenVINO does not know the shape of a stack."""
        return isinstance(port, Yield) and now(value)


def _is_section(node: Node, value: Value) -> bool:
    """Whether a node is a split of a value into one part."""
    return recognise(node) == ("section", value)


@memory_of_branch.undoes("Reshape")
def untold(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The result of a branch before its Reshape to its own shape. At most one size of it is
    unknown."""
    (value, sizes), output = node.inputs, node.outputs[0]
    told = known_of(sizes).ints
    in_branch = uses.holder is not None and uses.holder.op == "If"
    if not in_branch or output not in uses.graph.outputs or value is None or told is None:
        return None
    if len(told) != value.rank or min(told, default=1) < 1:
        return None
    others = [dim for dim, size in zip(value.dims, told, strict=True) if dim != size]
    return None if len(others) > 1 or any(isinstance(dim, int) for dim in others) else value


# OpenVINO's CPU plugin computes how much a branch copies to the output of the If. It does so
# only if the shape of the result differs from the previous run. A branch that runs for the
# first time copies empty, if the other branch gave a result of the same shape before. So each
# branch gets an output of its own for its elements, and is empty at the output of the other
# branch. A third output gives the shape of the result; the rank is known, so this output has a
# known shape.
@quirk(
    "If",
    until="2026.1",
    releases="2024.0 to 2026.1",
    after=("safe_loop",),
    symptom="If an output of an If has an open shape, it keeps the values of the branch that ran "
    "before. This happens when the other branch first gives a result of the same shape.",
    cost="two further outputs, a Concat and a Reshape; the result is copied once more. Only for "
    "those releases.",
)
def branch_of_equal_shape(b: Builder, node: Node, place: Place) -> Result:
    """Each branch gives its elements at one output and an empty tensor at the other. The Concat of
    both has the elements of the branch that ran.
    """
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
    for index, further in zip(wanted, range(len(outputs), len(results), 2), strict=True):
        whole = b.op("Concat", results[index], results[further], axis=0)
        outputs[index] = b.op("Reshape", whole, results[further + 1], allowzero=True)
        outputs[index].type = node.outputs[index].type
    return outputs


def _is_open(node: Node, index: int) -> bool:
    """Whether an output has the fault: its shape is not known, and both branches may give
    elements."""
    value = node.outputs[index]
    if value.shape is not None and 0 in value.shape:
        return False
    if value.rank in (None, 0) or is_static(value.shape) or value.element in (None, STRING):
        return False
    return not any(_is_empty(_result(body, index)) for body in node.bodies)


def _is_empty(value: Value) -> bool:
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
    empty = b.filled(0, [0], result.element)
    size = b.op("Shape", result)
    body.graph.nodes += b.nodes
    own, other = (line, empty) if branch == 0 else (empty, line)
    body.set_exits((own if port == Yield(index) else v, port) for v, port in body.exits())
    body.add_exit(other, Yield(further))
    body.add_exit(size, Yield(further + 1))


@branch_of_equal_shape.undoes("Reshape")
def in_one_output(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The output of an If that both branches give, as it was before `branch_of_equal_shape`."""
    whole = uses.single_use(node.inputs[0], "Concat")
    apart = [] if whole is None else [v for v in (*whole.inputs, node.inputs[1]) if v is not None]
    made = apart[0].producer if len(apart) == 3 and node.attributes["allowzero"] else None
    if made is None or made.op != "If":
        return None
    if any(value.producer is not made or uses.count(value) != 1 for value in apart):
        return None
    places, bodies = [*map(made.outputs.index, apart)], tuple(body.copy() for body in made.bodies)
    for branch, body in enumerate(bodies):
        line, empty, sizes = (_result(body, places[at]) for at in (branch, 1 - branch, 2))
        result = _of_line(line, sizes, body)
        if result is None or not _is_empty(empty):
            return None
        body.set_exits((result if p == Yield(places[0]) else v, p) for v, p in body.exits())
    values = [Value(v.type) for v in made.outputs]
    values[places[0]].type = node.outputs[0].type
    b.nodes.append(Node("If", list(made.inputs), values, {}, bodies, made.name, made.extras))
    for old, new in zip(made.outputs, values, strict=True):
        if old not in apart and uses.count(old):
            uses.hand_over(old, new, inside=0)
    return values[places[0]]


def _of_line(line: Value, sizes: Value, body: Body) -> Value | None:
    """The value of a body that has these elements and sizes."""
    known, made, asked = known_of(sizes).ints, line.producer, sizes.producer
    if line.constant is not None and known is not None:
        if len(known) == 1:
            return line
        b = Builder(body.graph.nodes)
        return b.op("Reshape", line, list(known), allowzero=True)
    x = made.inputs[0] if made is not None and made.op == "Reshape" else None
    if x is None or made is None or known_of(made.inputs[1]).ints != (-1,):
        return None
    told = asked is not None and asked.op == "Shape" and asked.inputs[0] is x
    return x if told or (known is not None and known == x.shape) else None
