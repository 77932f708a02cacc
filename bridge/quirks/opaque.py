"""Values that hide something from OpenVINO. Each is equal to its input, but OpenVINO does not
simplify its operators.

There is one encoding for each purpose, because OpenVINO simplifies each operator in another place:

- `memory`: a maximum of a value with itself, which is not computed in place. Operators of the other
  encodings would be computed in place, or would copy element by element.
- `number`: the value plus a 0 that is not known before the model runs. OpenVINO does not fold a
  Bucketize, and the CPU plugin does not know a random number beforehand.
- `content`: the only row of a stack, with such a 0 as its index. It suits types without an
  addition.
- `sizes`: a VariadicSplit into one part, with length -1 (the rest) plus such a 0. It copies whole
  rows, and keeps the other axes. The size of its axis has neither a symbol nor a bound.
- `shape`: a Reshape to the value's own shape plus such a 0. Empty tensors need it, because a Slice,
  Pad or Gather cannot hide their sizes.
- `section`: a VariadicSplit into one part, as long as its axis. The CPU plugin begins a new section
  with it. A Broadcast does so too, but takes three times as long if sizes change.
"""

from collections.abc import Callable, Sequence

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BOOL, F32, I64
from bridge.operators import Result
from bridge.passes.uses import Uses

RANDOM = "ir::RandomUniform"

_SPLIT = "The only part of a value, with the rest as its length, is the value."

SAFE = {
    "memory": "The maximum of a value with itself is the value.",
    "number": "Adding 0 changes no number.",
    "content": "The only row of a stack of a value is the value.",
    "sizes": _SPLIT,
    "section": _SPLIT,
    "shape": "A value reshaped to its own shape is the value, and adding 0 does not change the "
    "shape.",
}
"""Why a value that hides something is the value."""


def opaque(
    b: Builder, value: Value, hides: str, axes: Sequence[int] = (), number: Value | None = None
) -> Value:
    """The same value, with the property `hides` hidden from OpenVINO (see above).

    `sizes` are the sizes of some axes. `number` is a 0 that OpenVINO does not know: i64 [1] for
    `sizes` and for vectors, else a scalar.
    """
    match hides:
        case "memory":
            return b.op("Or" if value.element is BOOL else "Max", value, value)
        case "number":
            zero = number or unknown_zero(b, 1 if value.rank == 1 else 0)
            return b.op("Add", value, b.cast(zero, value.element))
        case "content":
            # The undo recognises the row by its Unsqueeze, or as that of a folded constant.
            return b.op("Gather", b.op("Unsqueeze", value, [0]), unknown_zero(b, 0), 0)
        case "sizes":
            rest = opaque(b, b.constant([-1]), "number", number=number)
            for axis in axes:
                (value,) = b.ops("VariadicSplit", 1, value, b.constant(axis), rest)
            return value
        case "shape":
            sizes = opaque(b, b.op("Shape", value), "number")
            hidden = b.op("Reshape", value, sizes, allowzero=True)
            hidden.type = value.type
            return hidden
        case "section":
            axis = next((a for a, dim in enumerate(value.dims) if not isinstance(dim, int)), 0)
            length = b.take(b.op("Shape", value), 0, axis)
            (whole,) = b.ops("VariadicSplit", 1, value, b.constant(axis), length)
            whole.type = value.type
            return whole
    raise ValueError(hides)


def unknown_zero(b: Builder, rank: int = 1) -> Value:
    """A 0 that OpenVINO does not know before the model runs: i64, [1] or a scalar."""
    some = _random(b)
    return b.op("Bucketize", some if rank else b.squeeze(some, 0), [1.0])


def unknown_zeros(b: Builder, count: int) -> list[Value]:
    """Several such zeros, i64 [1]. OpenVINO does not know that they are equal; it would merge two
    equal nodes."""
    some = _random(b) if count else None
    return [b.op("Bucketize", some, [1.0 + place]) for place in range(count)]


def _random(b: Builder) -> Value:
    """A random number below 1/2, f32 [1]."""
    return b.op(
        RANDOM, b.constant([1], I64), b.constant(0.0, F32), b.constant(0.5, F32), output_type=F32
    )


def recognise(node: Node) -> tuple[str, Value] | None:
    """The property that a node hides, and the value behind it. None if `opaque` did not make the
    node."""
    for op, hides, of in _ENCODINGS:
        value = of(node) if node.op == op else None
        if value is not None:
            return hides, value
    return None


def revealed(value: Value) -> Value:
    """The value behind operators that hide something of it."""
    while value.producer is not None and (found := recognise(value.producer)) is not None:
        value = found[1]
    return value


def without_elements(b: Builder, value: Value, axis: int, number: Value) -> Value:
    """An empty part of a value along an axis.

    OpenVINO does not know the size of this axis, if it does not know `number`, a 0 of shape [1].
    """
    lengths = b.op("Concat", number, [-1], axis=0)
    empty, _ = b.ops("VariadicSplit", 2, value, axis, lengths)
    return empty


def whole_of(empty: Value | None) -> Value | None:
    """The value from which `without_elements` made an empty part, else None."""
    made = empty.producer if empty is not None else None
    if made is None or made.op != "VariadicSplit" or made.outputs[0] is not empty:
        return None
    lengths = made.inputs[2].producer if made.inputs[2] is not None else None
    if len(made.outputs) != 2 or lengths is None or lengths.op != "Concat":
        return None
    first, *rest = lengths.inputs
    known = [known_of(length).ints for length in rest]
    return made.inputs[0] if first is not None and is_zero(first) and known == [(-1,)] else None


def with_hidden(b: Builder, node: Node, kind: str, wanted: Sequence[bool | str]) -> Result:
    """A copy of the node whose `wanted` inputs are hidden, each in its own way if that is named.
    None if no input is wanted."""
    if not any(wanted):
        return None
    inputs = [
        opaque(b, value, hide if isinstance(hide, str) else kind)
        if hide and value is not None
        else value
        for value, hide in zip(node.inputs, wanted, strict=True)
    ]
    count, bodies = len(node.outputs), node.bodies
    made = b.node(node.op, inputs, count, node.attributes, bodies, extras=node.extras).outputs
    for new, old in zip(made, node.outputs if bodies else (), strict=False):
        new.type = new.declared = old.type
    return made


def hides(node: Node, *kinds: str) -> bool:
    """Whether a node hides one of these properties."""
    found = recognise(node)
    return found is not None and found[0] in kinds


def is_hidden(value: Value, *kinds: str) -> bool:
    """Whether the producer of a value hides one of these properties."""
    return value.producer is not None and hides(value.producer, *kinds)


def _itself(node: Node) -> Value | None:
    """max(x, x) is x, and so are `x or x` and `x and x`."""
    return node.inputs[0] if len(node.inputs) == 2 and len({*node.inputs}) == 1 else None


def _with_zero(node: Node) -> Value | None:
    """x + 0 is x."""
    value, other = node.inputs
    assert value is not None and other is not None
    fits = other.rank is not None and other.rank <= (value.rank or 0)
    return value if fits and is_zero(other) else None


def _only_row(node: Node) -> Value | None:
    stack, index, axis = node.inputs
    row = stack.producer if stack is not None else None
    if row is None or row.op != "Unsqueeze" or index is None or index.rank:
        return None
    first = known_of(axis).ints == (0,) == known_of(row.inputs[1]).ints
    whole = first and not node.attributes["batch_dims"] and is_zero(index)
    return row.inputs[0] if whole else None


def row_of_constant(node: Node) -> np.ndarray | None:
    """The only row of a constant, if a node takes it by a 0 that OpenVINO does not know."""
    if node.op != "Gather" or node.attributes["batch_dims"] or node.inputs[0] is None:
        return None
    stack, index = node.inputs[0].constant, node.inputs[1]
    if stack is None or stack.shape[:1] != (1,) or known_of(node.inputs[2]).ints != (0,):
        return None
    return stack.array()[0] if index is not None and not index.rank and is_zero(index) else None


def _whole(node: Node) -> Value | None:
    """The only part of a split value, with the rest as its length, is the value."""
    value, _, lengths = node.inputs
    rest = lengths.producer if lengths is not None else None
    known = _with_zero(rest) if rest is not None and rest.op == "Add" else None
    return value if len(node.outputs) == 1 and known_of(known).ints == (-1,) else None


def _as_long(node: Node) -> Value | None:
    """The only part of a split value, as long as its axis, is the value."""
    value, axis, lengths = node.inputs
    size = lengths.producer if lengths is not None else None
    if size is None or size.op != "Gather" or known_of(size.inputs[1]).ints != known_of(axis).ints:
        return None
    return value if len(node.outputs) == 1 and is_shape_of(size.inputs[0]) is value else None


def _in_own_shape(node: Node) -> Value | None:
    """x reshaped to its own shape plus 0 is x."""
    value, sizes, *axes = node.inputs
    made = sizes.producer if sizes is not None else None
    if made is not None and made.op == "Add":
        sizes = _with_zero(made)
    return value if not any(axes) and is_shape_of(sizes) is value else None


def is_shape_of(sizes: Value | None) -> Value | None:
    """The value whose Shape gives all these sizes."""
    made = sizes.producer if sizes is not None else None
    if made is None or made.op != "Shape" or made.attributes.get("start"):
        return None
    return made.inputs[0] if made.attributes.get("end") is None else None


_ENCODINGS: tuple[tuple[str, str, Callable[[Node], Value | None]], ...] = (
    ("Max", "memory", _itself),
    ("Or", "memory", _itself),
    ("Add", "number", _with_zero),
    ("Gather", "content", _only_row),
    ("VariadicSplit", "sizes", _whole),
    ("VariadicSplit", "section", _as_long),
    ("Reshape", "shape", _in_own_shape),
    ("Broadcast", "section", _in_own_shape),
    ("Expand", "section", _in_own_shape),
)
"""The operators that may hide something, and functions that find the value behind them."""


def is_zero(value: Value) -> bool:
    """Whether a value is a 0 from `unknown_zero`, perhaps converted, or the remainder of an
    integer by 1. No random number reaches the bound of the Bucketize."""
    found = value.behind("Cast").producer
    if found is not None and found.op == "Mod":
        return value.shape in ((), (1,)) and known_of(found.inputs[1]).ints == (1,)
    if found is None or found.op != "Bucketize" or found.inputs[0] is None:
        return False
    random = found.inputs[0].behind("Squeeze").producer
    if random is None or random.op != RANDOM or random.outputs[0].shape != (1,):
        return False
    high, bounds = (None if v is None else v.constant for v in (random.inputs[2], found.inputs[1]))
    return high is not None and bounds is not None and bool((bounds.array() > high.array()).all())


HIDING = tuple(dict.fromkeys(op for op, _, _ in _ENCODINGS))
"""The operators that may hide something."""


def _plain(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The value behind a node that hides something of it."""
    hidden = recognise(node)
    if hidden is None:
        row = row_of_constant(node)
        return None if row is None else b.constant(row)
    return hidden[1]


def plain_zero(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The 0 of `unknown_zero`, known: it is left where no undo recognises what a quirk did with it.
    onnxruntime has no RandomUniform of operator set 22."""
    zero = node.outputs[0]
    known = zero.shape in ((), (1,)) and is_zero(zero)
    return b.like(np.zeros(zero.dims), zero) if known else None


UNDO_OF_BARRIERS = dict.fromkeys(HIDING, _plain)
"""The undo of all barriers, by the operators that hide."""
