"""Single operators of ONNX that IR has in a more general form, in parts, or behind a guard."""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value, producer_of
from bridge.neutral.inference.dims import known_axes
from bridge.neutral.inference.known import known_of
from bridge.neutral.terms import Found, constant, op, var
from bridge.neutral.types import BOOL, F32, F64, I8, I32, I64, U8, is_static
from bridge.operators.nn.windows import lean
from bridge.passes.fuse import fuses
from bridge.passes.uses import Uses

X, SLOPE = var(), constant()


@fuses(op("PRelu", X, SLOPE))
def leaky_relu(b: Builder, match: Found, uses: Uses) -> Value | None:
    """PRelu with one slope for all, of the shape that LeakyRelu's has in IR."""
    known = known_of(match[SLOPE]).array
    if known is None or known.shape not in ((), (1,)):
        return None
    return b.op("LeakyRelu", match[X], alpha=float(known.reshape(())))


CLIPPED = var(F32, F64, I8, U8, I32, I64, where=lambda x: bool(x.rank))
"""The data of a Clip, in types of onnxruntime's; a scalar would be taken for a bound."""
LOWER, UPPER = var(rank=0), var(rank=0)
RAISED = op("Max", CLIPPED, LOWER, None)


@fuses(op("Min", RAISED, UPPER, None), RAISED, opset=12)
def clip(b: Builder, match: Found, uses: Uses) -> Value | None:
    """The lesser of an upper bound and the greater of a lower one, both scalars."""
    return b.op("Clip", match[CLIPPED], *(_nameless(b, match[v]) for v in (LOWER, UPPER)))


def _nameless(b: Builder, bound: Value) -> Value:
    """A bound; a constant one without its name, for IR's Clamp has none for it."""
    return bound if bound.constant is None else b.tensor(bound.constant)


STATIC = var(where=lambda x: is_static(x.shape))


@fuses(op("Squeeze", STATIC, None))
def axes_of_one(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Squeeze without axes, of a known shape, with them, as on the way to IR."""
    axes = [axis for axis, size in enumerate(match[STATIC].dims) if size == 1]
    return b.op("Squeeze", match[STATIC], axes) if axes else None


SEARCHED = var(F32, F64, I32, where=lambda x: x.rank is not None)
"""Of the types that onnxruntime has both for."""
REMOVED = var()
PLACES = op("ir::TopK", SEARCHED, 1).taking(1)


@fuses(op("Squeeze", PLACES, REMOVED), PLACES)
def place_of_one(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Squeeze of the indices of a TopK with k = 1 whose values are not used."""
    top, rank = match.node(PLACES), len(match[SEARCHED].dims)
    axis = top.attributes["axis"]
    if uses.count(top.outputs[0]) or known_axes(match[REMOVED], rank) != (axis % rank,):
        return None
    operator = "ArgMax" if top.attributes["mode"] == "max" else "ArgMin"
    place = b.op(operator, match[SEARCHED], axis=axis, keepdims=False)
    return b.cast(place, top.attributes["index_element_type"])


DATA, MASK, ALONG = var(where=lambda x: x.rank is not None), var(rank=1), var()
CHOSEN = op("Squeeze", op("NonZero", MASK))


@fuses(op("Gather", DATA, CHOSEN, ALONG, batch_dims=0), CHOSEN)
def compress(b: Builder, match: Found, uses: Uses) -> Value | None:
    """Gather of the places with a true condition, which has one element for each of the axis."""
    data, axis = match[DATA], known_of(match[ALONG]).ints
    size = None if axis is None else data.dims[axis[0] % len(data.dims)]
    if axis is None or not isinstance(size, int) or match[MASK].dims != (size,):
        return None
    return b.op("Compress", data, b.cast(match[MASK], BOOL), axis=axis[0])


DIVIDEND, DIVISOR, OTHER = var(), var(), var()
QUOTIENT = op("Div | Mod | ir::Mod", DIVIDEND, DIVISOR)
IS_ZERO = op("Equal", DIVISOR, 0).shared()
CONDITION = op("Greater | NotEqual", DIVISOR, 0).shared() | op("Not", IS_ZERO).shared()
"""That the divisor is not 0, or that it is above."""


@fuses(op("Where", CONDITION, QUOTIENT, OTHER))
def guarded_division(b: Builder, match: Found, uses: Uses) -> Value | None:
    """A quotient or remainder of integers that a Where only takes if the divisor is not 0. For 0
    onnxruntime refuses it, so the guard divides by 1."""
    element = match[QUOTIENT].element
    if element is None or not element.is_integer:
        return None
    quotient, condition, name = match.node(QUOTIENT), match[CONDITION], b.name
    safe = b.where(condition, match[DIVISOR], 1)
    b.name = quotient.name
    again = b.op(quotient.op, match[DIVIDEND], safe, **quotient.attributes)
    b.name = name
    return b.where(condition, again, match[OTHER])


POOLED = var()
POOL = op("MaxPool", POOLED)


@fuses(POOL)
def lean_window(b: Builder, match: Found, uses: Uses) -> Value | None:
    """MaxPool with dilations of 1: IR's versions with indices always spell them out."""
    node = match.node(POOL)
    if len(node.outputs) > 1 or not node.attributes.get("dilations"):
        return None
    leaner = lean(node.attributes)
    return None if leaner["dilations"] else b.op("MaxPool", match[POOLED], **leaner)


def converted_first(b: Builder, node: Node, uses: Uses) -> Value | None:
    """A conversion of reshaped integers of few bits, which onnxruntime converts but does not
    reshape: the conversion goes first."""
    shaped = producer_of(node.inputs[0], traits=frozenset({"view"}))
    if shaped is None or uses.count(shaped.outputs[0]) > 1:
        return None
    value, *rest = shaped.inputs
    if value is None or value.element is None or value.constant is not None:
        return None
    if value.element.bits >= 8 or value.element.kind not in ("int", "uint"):
        return None
    wide = b.op("Cast", value, **node.attributes)
    return b.op(shaped.op, wide, *rest, **shaped.attributes)
