"""Values that lose their memory, or share it with others."""

from collections.abc import Sequence

from bridge.neutral.builder import Builder
from bridge.neutral.clone import clone_body
from bridge.neutral.dataflow import Must, Now
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
    Iteration,
    OutputPort,
    Yield,
    outer_input,
)
from bridge.neutral.rewrite import ValueUses
from bridge.neutral.types import (
    ANY,
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    STRING,
    U8,
    U64,
    TensorType,
    is_static,
    size_of,
)
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.opaque import hides, is_hidden, opaque, recognise
from bridge.quirks.quirk import (
    GPU,
    PARTS,
    RESHAPES,
    Place,
    barrier,
    graph_quirk,
    is_computed_in,
    nearest,
    quirk,
    replace_outputs,
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


# Each branch has memory of its own for its outputs.
@quirk(
    "If",
    engines=(GPU,),
    symptom="A node that reads an If keeps the memory of the branch that ran first. An If with two "
    "outputs does not compile, or a branch that hands its inputs through gives other values.",
    cost="two Maximum and a VariadicSplit for each output; a scalar becomes a vector inside, which "
    "stays on the way back to ONNX",
)
def copied_branches(b: Builder, node: Node, place: Place) -> Result:
    """A copy has the same elements; the only part of a value is the value."""
    wanted = [
        index
        for index, output in enumerate(node.outputs)
        if all(_is_copied_here(value) for value in (output, *_ends(node, index)))
        and not all(map(_is_copy_in_branch, _ends(node, index)))
    ]
    if not wanted:
        return None
    bodies = tuple(map(clone_body, node.bodies))
    for body in bodies:
        inner = Builder(body.graph.nodes, node.name, b.target)
        with inner:
            for index in wanted:
                given = body.given(index)
                end = body.graph.outputs.index(given)
                value = inner.reshape(given, 1) if given.rank == 0 else given
                body.graph.outputs[end] = opaque(inner, value, "memory")
    made = b.node(
        "If", node.inputs, len(node.outputs), dict(node.attributes), bodies, node.name, node.extras
    ).outputs
    results = []
    for index, (new, old) in enumerate(zip(made, node.outputs, strict=True)):
        if index in wanted:
            behind = opaque(b, opaque(b, new, "sizes", [0]), "memory")
            new = b.reshape(behind) if old.rank == 0 else behind
        new.type = new.declared = old.type
        results.append(new)
    return results


def _ends(node: Node, output: int) -> list[Value]:
    return [body.given(output) for body in node.bodies]


def _is_copied_here(value: Value) -> bool:
    """Whether the plugin can copy a value, and whether there is something to copy."""
    element = value.element
    if element is None or not is_computed_in(element) or value.rank is None:
        return False
    return 0 not in value.dims


def _is_copy_in_branch(value: Value) -> bool:
    """Whether a value is such a copy, and not the copy of another If's output."""
    made = value.producer
    if made is None or not is_hidden(value, "memory"):
        return False
    inside = made.inputs[0]
    return inside is not None and not is_hidden(inside, "sizes")


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
    symptom="If an output of an If has an open shape, it keeps the values of the branch that ran "
    "before. This happens when the other branch first gives a result of the same shape.",
    cost="Two further outputs, a Concat and a Reshape; the result is copied once more. Only for "
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
    results = [_unlined(_result(body, at), rank) for body, at in zip(bodies, places, strict=True)]
    empty = [_result(body, place) for body, place in zip(bodies, reversed(places), strict=True)]
    if None in results or not all(map(_is_empty, empty)):
        return None
    if not _is_their_shape(node.inputs[1], [v for v in results if v is not None], made, bodies):
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


def _unlined(line: Value, rank: int | None) -> Value | None:
    """The value before its Reshape to a vector. A constant vector has no Reshape."""
    made = line.producer
    if rank == 1 and line.constant is not None:
        return line
    vector = made is not None and made.op == "Reshape" and known_of(made.inputs[1]).ints == (-1,)
    return made.inputs[0] if vector and made is not None else None


def _is_their_shape(
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


@quirk(
    "Loop",
    engines=(GPU,),
    symptom="A Loop reads an input at its place in an earlier run. A state that becomes another "
    "state is overwritten before it is read. A state that is also stacked keeps its last value. A "
    "state that has one reader keeps its first size. A boolean result is read as the first result "
    "of the Loop, if one of them has more than four axes.",
    cost="a Maximum, a LogicalOr, or two Converts, for each of these values",
)
def copied_loops(b: Builder, node: Node, place: Place) -> Result:
    """A copy has the same elements."""
    inputs = [_copy_of_value(b, value) if at > 1 else value for at, value in enumerate(node.inputs)]
    body = clone_body(node.body)
    head, uses = Builder([], node.name, b.target), ValueUses(body.graph)
    outputs = frozenset(body.graph.outputs)
    with head:
        body.graph.inputs = [
            _read_state(head, value, port, value in outputs, uses) for value, port in body.entries()
        ]
    body.graph.prepend(head.nodes)
    inner = Builder(body.graph.nodes, node.name, b.target)
    with inner:
        ends = [
            value if isinstance(port, Condition) else _copy_of_value(inner, value)
            for value, port in body.exits()
        ]
    mixed = [_is_read_as_first(value, node.outputs[0], place) for value in node.outputs]
    if inputs == node.inputs and ends == body.graph.outputs and not (head.nodes or any(mixed)):
        return None
    body.graph.outputs = [value for value in ends if value is not None]
    made = b.node(
        "Loop", inputs, len(node.outputs), dict(node.attributes), (body,), node.name, node.extras
    )
    for new, old in zip(made.outputs, node.outputs, strict=True):
        new.type = new.declared = old.type
    pairs = zip(made.outputs, mixed, strict=True)
    return [b.cast(b.cast(value, F32), BOOL) if turns else value for value, turns in pairs]


def _is_read_as_first(value: Value, first: Value, place: Place) -> bool:
    """Whether a boolean result of a Loop, which is not only converted, has another layout than the
    first result."""
    if value.element is not BOOL or max(value.rank or 0, 4) == max(first.rank or 0, 4):
        return False
    return place.is_output(value) or any(user.op != "Cast" for user in place.uses.users(value))


def _read_state(
    head: Builder, value: Value, port: InputPort, leaves: bool, uses: ValueUses
) -> Value:
    """The input of a body that stands for a value; a state is only read for its copy."""
    if not isinstance(port, Carried) or value.element is None or not is_computed_in(value.element):
        return value
    if not leaves and all(hides(reader, "memory") for reader in uses.users(value)):
        return value
    state = Value(value.type, value.names)
    value.names = []
    head.node("Or" if value.element is BOOL else "Max", [state, state], [value])
    return state


def _copy_of_value(b: Builder, value: Value | None) -> Value | None:
    if value is None or value.constant is not None or is_hidden(value, "memory"):
        return value
    if value.element is None or not is_computed_in(value.element):
        return value
    return opaque(b, value, "memory")


AS_THEY_ARE = {BF16, F32, I8, I32, U8}
"""Types that the plugin stores and returns unchanged."""

CONVERSIONS = ("Cast", "CastLike")


@barrier(
    *CONVERSIONS,
    "Reshape",
    hides="memory",
    outputs=True,
    symptom="A Convert of an input to its own type, perhaps through another type, is removed. If "
    "the result is an output of open shape, OpenVINO writes it into memory that is too small or "
    "freed, and crashes.",
    cost="a maximum of each such output with itself",
)
def converted_input(node: Node, place: Place) -> list[bool]:
    """At an output of open shape that comes from an input of the same type through Casts, and
    perhaps Reshapes of the same rank. The copy of an input for an output of another name is such a
    Cast.
    """
    (value,) = node.outputs
    if place.holder is not None or is_static(value.shape) or not place.is_output(value):
        return []
    source, ops = _converted(value)
    if (
        source.producer is not None
        or source not in place.graph.inputs
        or source.element is not value.element
    ):
        return []
    return [value.element in AS_THEY_ARE and not ops.isdisjoint(CONVERSIONS)]


def _converted(value: Value) -> tuple[Value, set[str]]:
    """The value before conversions, and the operators between. A Reshape of the same rank may be
    between, because the plugin removes it if it keeps the shape."""
    ops: set[str] = set()
    while (made := value.producer) is not None and made.op in (*CONVERSIONS, "Reshape"):
        source = made.inputs[0]
        assert source is not None
        if source.rank != value.rank:
            break
        ops.add(made.op)
        value = source
    return value, ops


READERS = {
    "Broadcast": 1, "Expand": 1, "Interpolate": 1, "Slice": 1, "StridedSlice": 1, "Tile": 1,
    "ir::NonMaxSuppression": 0, "ir::Pad": 1,
}  # fmt: skip
"""Operators that read inputs on the host, and the first of these inputs."""

IN_PLACE = frozenset({"Identity", *RESHAPES})
"""Operators whose result has the elements of their first input."""


# The GPU plugin does not wait until an input of the model has been copied to the device.
@barrier(
    *READERS,
    hides="memory",
    engines=(GPU,),
    symptom="The pads of a Pad are the two halves of one tensor, and both are read from its start. "
    "So are the starts and ends of a Slice, the shape of a Broadcast and the repeats of a Tile. A "
    "NonMaxSuppression behind a Reshape of an input of the model often selects the boxes of the "
    "inference before.",
    cost="a Maximum for each such input",
)
def read_on_host(node: Node, place: Place) -> list[bool]:
    """At such an input that is a part of a tensor, unless the tensor is computed from shapes; at an
    input of NonMaxSuppression that is a reshaped input of the graph."""
    is_wrong = _is_view_of_input if node.op == "ir::NonMaxSuppression" else _is_part
    return [
        at >= READERS[node.op] and value is not None and is_wrong(value)
        for at, value in enumerate(node.inputs)
    ]


def _is_view_of_input(value: Value) -> bool:
    """Whether a value is an input of the graph with other sizes."""
    before = value.behind(*IN_PLACE)
    return before is not value and before.producer is None and before.constant is None


def _is_part(value: Value) -> bool:
    """Whether a value is a part of a tensor of data. The plugin has parts of shapes on the host."""
    node = value.producer
    if node is None or known_of(value).array is not None:
        return False
    if value.element is None or not value.element.is_integer:
        return False
    before = node.inputs[0]
    if node.op in IN_PLACE and before is not None:
        return _is_part(before)
    if node.op == "Gather" and node.inputs[1] is not None and node.inputs[1].rank != 0:
        return False  # It has memory of its own.
    return node.op in PARTS and before is not None and not _is_of_shapes(before)


def _is_of_shapes(value: Value) -> bool:
    """Whether a value is computed from shapes and constants alone."""
    seen, left = set[Value](), [value]
    while left:
        one = left.pop()
        if one in seen or one.constant is not None:
            continue
        seen.add(one)
        node = one.producer
        if node is None or node.bodies:
            return False
        if node.op != "Shape":
            left += [each for each in node.inputs if each is not None]
    return True


# The GPU plugin writes an output that follows from sizes only if sizes change. It keeps constants
# of f64 and u64 in 32 bits, and does not convert them back.
@graph_quirk(
    engines=(GPU,),
    symptom="An output that depends on sizes alone is unset memory in a new request, unless sizes "
    "changed. A constant output of f64 has the bits of f32, and one of u64 the bits of i32. An "
    "output that is a part of a tensor, in f16 or reshaped, has the first elements of the tensor.",
    cost="a Maximum or a Gather of the output, or a few operators on one element, which stay on "
    "the way back to ONNX",
)
def copied_output(graph: Graph, context: Context) -> bool:
    """Adding 0 changes no integer. The only row of a stack of a value is the value, and so is its
    maximum with itself.
    """
    place = Place(graph)

    def copied(b: Builder, value: Value) -> Value | None:
        element, made = value.element, value.producer
        if element is None or made is None or is_hidden(value, "memory", "content"):
            return None
        if element in (F64, U64) and is_known(value, place):
            return opaque(b, value, "content")
        if _is_moved_part(value):
            return opaque(b, value, "memory")
        shape = nearest(value, "Shape", 1000) if element.is_integer else None
        if shape is None or not _is_of_shapes(value):
            return None
        while _is_of_shapes(shape.operand(0)) and (
            other := nearest(shape.operand(0), "Shape", 1000)
        ):
            shape = other  # The plugin computes what follows from sizes on the host, zeros too.
        return value + b.cast(_zero_of(b, shape.operand(0)), element)

    return replace_outputs(graph, context, copied)


def _is_moved_part(value: Value) -> bool:
    """Whether a value is a part of a tensor of known sizes, in f16 or behind views and Casts."""
    part = value.behind(*IN_PLACE, "Cast")
    made = part.producer
    if made is None or made.op not in PARTS or (part is value and value.element is not F16):
        return False
    whole = made.operand(0)
    return is_static(whole.shape) and is_static(part.shape) and part.shape != whole.shape


def _zero_of(b: Builder, data: Value) -> Value:
    """A 0 that is computed from data, perhaps from an empty tensor."""
    first = b.op("Slice", b.reshape(b.cast(data, I64), -1), [0], [1], [0], [1])
    return b.op("ReduceMax", b.concat(0, first * 0, b.constant([0])), [0], keepdims=False)


MOST_AXES = 4
"""The plugin copies parts of tensors with more axes."""

SPLITS = frozenset({"VariadicSplit", "ir::Split"})
"""Operators whose parts are read in place whether their sizes are known or not."""

MISREADERS = frozenset({"GatherND", "MatMul"})
"""Operators that read parts of more axes than two wrongly."""


# The GPU plugin reads parts of tensors of known sizes at their place in the whole tensor. A kernel
# that broadcasts reads one row of a matrix at `(start + f) % size`, which is always the first row.
# The kernel for a MatMul with known weights steps from row to row as if no element were left out.
@barrier(
    *PARTS,
    hides="memory",
    outputs=True,
    uses=True,
    engines=(GPU,),
    symptom="A row `x[1:2]` times a number gives the products of the first row. A MatMul or a "
    "GatherND takes wrong elements of a part of a tensor with three or four axes.",
    cost="a Maximum, or a LogicalOr, for each such part",
)
def parts_in_place(node: Node, place: Place) -> list[bool]:
    """At a part that is one row, and at a part of a tensor with three or four axes that a MatMul or
    a GatherND reads; at a Slice or a Gather only if all sizes are known.
    """
    return [_is_misread(node, part, place) for part in node.outputs]


def _is_misread(node: Node, part: Value, place: Place) -> bool:
    """Whether readers of a part of a tensor may read other elements."""
    whole = node.inputs[0]
    if whole is None or whole.rank is None or not 2 <= whole.rank <= MOST_AXES:
        return False
    if part.element is None or not is_computed_in(part.element) or known_of(part).array is not None:
        return False
    readers = place.users(part)
    if all(hides(reader, "memory") for reader in readers):
        return False
    sizes = _sizes_in_whole(node, part)
    if whole.rank > 2 and any(reader.op in MISREADERS for reader in readers):
        return node.op in SPLITS or (sizes is not None and sizes != whole.shape)
    is_row = sizes is not None and size_of(sizes) == sizes[1] > 1
    return is_row and sizes != whole.shape


def _sizes_in_whole(node: Node, part: Value) -> tuple[int, ...] | None:
    """The sizes of a part, along the axes of the whole tensor; None if not all sizes are known, or
    if the plugin copies the part."""
    whole, sizes = node.inputs[0], part.shape
    if whole is None or not is_static(whole.shape) or not is_static(sizes):
        return None
    if node.op != "Gather":
        return sizes
    index, axis = node.inputs[1], known_of(node.inputs[2]).ints
    if index is None or index.rank or axis is None or known_of(index).array is None:
        return None
    at = axis[0] % len(whole.shape)
    return (*sizes[:at], 1, *sizes[at:])
