"""Values that hide something from OpenVINO: each is the value that it is made of, by a way that
OpenVINO does not see through.

What is hidden needs different encodings, since each operator is seen through in another place:

- `memory`: the greatest of a value and itself is not computed where the value lies. Any operator of
  the other encodings would be, or would copy element by element.
- `number`: a 0 is added that nobody knows before the model runs. OpenVINO folds no Bucketize, and
  the CPU plugin takes no random number for known.
- `content`: the only row of a stack, by such a 0. The type may be one that nobody adds in.
- `sizes`: a Slice to an end that no axis reaches. It copies whole rows, and its size depends on the
  end; the size that it is of is still taken for a bound.
- `bounds`: a Pad by nothing, whose size has no bound.
- `shape`: a Reshape to the shape that it has and to which such a 0 is added, for values of no
  elements, of which nothing can be cut, padded or gathered.
- `section`: a Broadcast to the shape that it has, with which the CPU plugin begins a new section.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bridge.neutral.builder import Builder, integers
from bridge.neutral.graph import Node, Value
from bridge.neutral.types import BOOL, F32, I64, is_static
from bridge.operators import Result
from bridge.quirks.quirk import Undo

FAR = 1 << 30
"""An end behind every element: no axis is so long. It is exact in f32, in which OpenVINO may choose
it; the largest i32 is not."""

RANDOM = "ir::RandomUniform"


def opaque(
    b: Builder, value: Value, hides: str, axes: Sequence[int] = (), number: Value | None = None
) -> Value:
    """The value as it is, of which OpenVINO does not know what it `hides` (see above). `sizes` and
    `bounds` are those of some axes, by a number that OpenVINO does not know: i64 [1], not negative.
    For `number` it is such a 0.
    """
    match hides:
        case "memory":
            return b.op("Or" if value.element is BOOL else "Max", value, value)
        case "number":
            nothing = number or unknown_nothing(b, 1 if value.rank == 1 else 0)
            return b.op("Add", value, b.cast(nothing, value.element))
        case "content":
            # Of a constant, too, the row is recognised by its Unsqueeze.
            return b.op("Gather", b.op("Unsqueeze", value, [0]), unknown_nothing(b, 0), 0)
        case "sizes":
            return _cut_far(b, value, axes, number or unknown_nothing(b))
        case "bounds":
            return _padded_by_nothing(b, value, axes, number or unknown_nothing(b))
        case "shape":
            sizes = opaque(b, b.op("Shape", value), "number")
            hidden = b.op("Reshape", value, sizes, allowzero=True)
            hidden.type = value.type
            return hidden
        case "section":
            # OpenVINO multiplies by ones for an Expand, which it cannot in every type.
            return b.op("Broadcast", value, b.op("Shape", value), mode="numpy")
    raise ValueError(hides)


def unknown_nothing(b: Builder, rank: int = 1) -> Value:
    """A 0 that OpenVINO does not know before the model runs; i64, one of rank 1 or a scalar."""
    some = b.op(
        RANDOM, b.constant([1], I64), b.constant(0.0, F32), b.constant(0.5, F32), output_type=F32
    )
    return b.op("Bucketize", some if rank else b.squeeze(some, 0), [1.0])


def _cut_far(b: Builder, value: Value, axes: Sequence[int], number: Value) -> Value:
    if value.rank == 1 and not is_static(value.shape):
        # A Slice would copy a vector element by element, and takes the row of a matrix as a whole.
        row = b.op("Unsqueeze", value, [0])
        return b.op("Reshape", _cut_far(b, row, [0], number), [-1])
    end = b.op("Max", number, [FAR])
    ends = b.op("Concat", *[end] * len(axes), axis=0) if len(axes) > 1 else end
    return b.op("Slice", value, [0] * len(axes), ends, list(axes))


def _padded_by_nothing(b: Builder, value: Value, axes: Sequence[int], number: Value) -> Value:
    none, zero = b.op("Mod", number, [1]), b.constant([0])
    rank = len(value.dims)
    ends = (none if axis in axes else zero for axis in range(rank))
    padded = b.op("Pad", value, b.op("Concat", *[zero] * rank, *ends, axis=0))
    # OpenVINO knows no size behind such a Pad; it is told those that are known.
    known = [0 if a in axes or not isinstance(d, int) else d for a, d in enumerate(value.dims)]
    return b.op("Reshape", padded, known) if any(known) else padded


def recognise(node: Node) -> tuple[str, Value] | None:
    """What a node hides, and the value that it gives as it is; None where `opaque` did not make
    it."""
    for op, hides, of in _ENCODINGS:
        value = of(node) if node.op == op else None
        if value is not None:
            return hides, value
    return None


def revealed(value: Value) -> Value:
    """The value that another one is, behind what hides something of it."""
    while value.producer is not None and (found := recognise(value.producer)) is not None:
        value = found[1]
    return value


def with_hidden(b: Builder, node: Node, kind: str, wanted: Sequence[bool]) -> Result:
    """The node again, of whose inputs those that are `wanted` hide something; None where none
    is."""
    if not any(wanted):
        return None
    inputs = [
        opaque(b, value, kind) if hide and value is not None else value
        for value, hide in zip(node.inputs, wanted, strict=True)
    ]
    count = len(node.outputs)
    return b.node(node.op, inputs, count, node.attributes, extras=node.extras).outputs


def hides(node: Node, *kinds: str) -> bool:
    """Whether a node hides one of these."""
    found = recognise(node)
    return found is not None and found[0] in kinds


def is_hidden(value: Value, *kinds: str) -> bool:
    """Whether what makes a value hides one of these."""
    return value.producer is not None and hides(value.producer, *kinds)


def _itself(node: Node) -> Value | None:
    """The greatest of x and x, or one or the other, is x."""
    return node.inputs[0] if len(node.inputs) == 2 and len({*node.inputs}) == 1 else None


def _with_nothing(node: Node) -> Value | None:
    """x + bucketize(r, bounds) is x: no random number r is as large as a bound."""
    value, other = node.inputs
    assert value is not None and other is not None
    fits = other.rank is not None and other.rank <= (value.rank or 0)
    return value if fits and _is_nothing(other) else None


def _only_row(node: Node) -> Value | None:
    stack, index, axis = node.inputs
    row = stack.producer if stack is not None else None
    if row is None or row.op != "Unsqueeze" or index is None or index.rank:
        return None
    first = integers(axis) == (0,) == integers(row.inputs[1])
    whole = first and not node.attributes["batch_dims"] and _is_nothing(index)
    return row.inputs[0] if whole else None


def _whole(node: Node) -> Value | None:
    """A Slice from the first element to one that is far behind all, or further."""
    start, end, axes, step = (node.input(index) for index in range(1, 5))
    whole = {*(integers(start) or (None,))} == {0} and {*(integers(step) or (1,))} == {1}
    made = end.producer if end is not None else None
    ends = made.inputs if made is not None and made.op == "Concat" else [end]
    return node.inputs[0] if whole and axes is not None and all(map(_is_far, ends)) else None


def _unpadded(node: Node) -> Value | None:
    """x with an edge of the remainder by 1, which is 0, is x."""
    value, begin, end = node.inputs[:3]
    halves = begin.producer if begin is not None else None
    if halves is None or halves.op != "ir::Split" or end is None or end.producer is not halves:
        return None
    edges = halves.inputs[0].producer if halves.inputs[0] is not None else None
    if edges is None or edges.op != "Concat" or not all(map(_is_zero, edges.inputs)):
        return None
    return value


def _unpadded_in_shape(node: Node) -> Value | None:
    """The same, in the shape that it has."""
    padded, sizes = node.inputs
    pad = padded.producer if padded is not None else None
    known = integers(sizes)
    if pad is None or padded is None or known is None or node.attributes["allowzero"]:
        return None
    if pad.op != "ir::Pad" or len(known) != padded.rank:
        return None
    if any(k and k != d for k, d in zip(known, padded.dims, strict=True)):
        return None
    return _unpadded(pad)


def _in_own_shape(node: Node) -> Value | None:
    """x in the shape of x, with nothing added to that."""
    value, sizes, *axes = node.inputs
    shape = sizes.producer if sizes is not None else None
    if shape is not None and shape.op == "Add":
        sizes = _with_nothing(shape)
        shape = sizes.producer if sizes is not None else None
    if any(axes) or shape is None or shape.op != "Shape" or shape.inputs[0] is not value:
        return None
    whole = not shape.attributes.get("start") and shape.attributes.get("end") is None
    return value if whole else None


def _line(node: Node) -> Value | None:
    """A vector that is made a row and a vector again."""
    row = node.inputs[0]
    made = row.producer if row is not None else None
    vector = made.inputs[0] if made is not None and made.op == "Unsqueeze" else None
    if vector is None or vector.rank != 1 or integers(node.input(1)) != (-1,):
        return None
    return vector


_ENCODINGS: tuple[tuple[str, str, Callable[[Node], Value | None]], ...] = (
    ("Max", "memory", _itself),
    ("Or", "memory", _itself),
    ("Add", "number", _with_nothing),
    ("Gather", "content", _only_row),
    ("Slice", "sizes", _whole),
    ("Reshape", "sizes", _line),
    ("ir::Pad", "bounds", _unpadded),
    ("Reshape", "bounds", _unpadded_in_shape),
    ("Reshape", "shape", _in_own_shape),
    ("Broadcast", "section", _in_own_shape),
    ("Expand", "section", _in_own_shape),
)
"""The operators that hide something, and what the value is that they give."""


def _is_nothing(value: Value) -> bool:
    """Whether a value is one that `unknown_nothing` makes, perhaps converted."""
    found = value.behind("Cast").producer
    if found is None or found.op != "Bucketize" or found.inputs[0] is None:
        return False
    random = found.inputs[0].behind("Squeeze").producer
    if random is None or random.op != RANDOM or random.outputs[0].shape != (1,):
        return False
    high, bounds = (None if v is None else v.constant for v in (random.inputs[2], found.inputs[1]))
    return high is not None and bounds is not None and bool((bounds.array() > high.array()).all())


def _is_zero(value: Value | None) -> bool:
    """Whether a value is surely 0, or the remainder of an integer by 1."""
    made = value.producer if value is not None else None
    if made is not None and made.op == "Mod":
        return integers(made.inputs[1]) == (1,)
    return integers(value) == (0,)


def _is_far(end: Value | None) -> bool:
    """Whether a value is at least as large as a number that no size is."""
    made = end.producer if end is not None else None
    if made is None or made.op != "Max":
        return False
    known = (integers(value) for value in made.inputs)
    return any(k is not None and min(k, default=0) >= FAR for k in known) or any(
        map(_is_far, made.inputs)
    )


def undone(*kinds: str) -> Mapping[str, Undo]:
    """The undo of quirks that hide these: the value itself, by the operators that may hide it."""
    return {op: _REVEAL for op, hides, _ in _ENCODINGS if hides in kinds}


def _reveal(b: Builder, node: Node, uses: object) -> Value | None:
    found = recognise(node)
    return None if found is None else found[1]


_REVEAL: Undo = _reveal
