"""Infinities and NaN."""

from collections.abc import Iterator

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node, Value
from bridge.neutral.inference.known import known_of
from bridge.neutral.types import BF16, F16, F32, F64, is_static
from bridge.operators import Result
from bridge.passes.uses import Uses
from bridge.quirks.known import is_known
from bridge.quirks.opaque import opaque, recognise
from bridge.quirks.quirk import BOTH, Place, quirk


def _in_32_bits(node: Node) -> np.ndarray | None:
    """The numbers of an f64 constant, or of a constant cast to f64, as f32. None without an
    infinity, or if f32 would round a number."""
    (made,) = node.outputs
    source = node.inputs[0] if node.op == "Cast" else made
    numbers = known_of(source).array if made.element is F64 else None
    if numbers is None or numbers.dtype.kind != "f" or not np.isinf(numbers).any():
        return None
    with np.errstate(over="ignore"):
        narrow = numbers.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), numbers, equal_nan=True) else None


# The CPU plugin computes f64 in f32, and replaces infinities in constants by the largest numbers of
# f32. An infinity computed at run time stays infinite.
@quirk(
    "Cast",
    "Constant",
    where=lambda node: _in_32_bits(node) is not None,
    engines=BOTH,
    symptom="An infinite constant of f64 becomes the largest number of f32.",
    cost="an Add of a 0, which a Bucketize makes of a random number",
)
def infinite_f64(b: Builder, node: Node, place: Place) -> Result:
    """f64 has all numbers of f32."""
    narrow = _in_32_bits(node)
    return None if narrow is None else b.cast(opaque(b, b.constant(narrow, F32), "number"), F64)


@infinite_f64.guesses("Cast")
def _infinities(b: Builder, node: Node) -> Iterator[Value]:
    (x,) = node.inputs
    found = recognise(x.producer) if x is not None and x.producer is not None else None
    numbers = known_of(found[1]).array if found is not None else None
    if numbers is not None and node.outputs[0].element is F64:
        yield b.constant(numbers.astype(np.float64), F64)


LARGEST = {BF16: 0xFF * 2.0**120, F16: 65504.0, F32: float(np.finfo(np.float32).max)}
"""The greatest finite number of types that the CPU plugin computes in f32."""

SIGNS = {"detect_positive": 1.0, "detect_negative": -1.0}


# The CPU plugin replaces infinities in constants by the largest numbers of f32. An infinity
# computed at run time stays infinite, so it is not equal to one of bf16. The maximum starts at the
# lowest finite number. The Attention of the standard computes it for each row of its mask.
@quirk(
    "Equal",
    "IsInf",
    recorded=True,
    releases="2026.4, of bf16 on processors without AVX-512",
    symptom="IsInf behind arithmetic of open shape is always false. The ReduceMax of elements that "
    "are all -inf is the lowest finite number, which does not equal -inf. An infinite constant of "
    "bf16 does not equal a computed infinity.",
    cost="a Less for an Equal, two for an IsInf; a reduction over the same number of truth values",
)
def compared_infinity(b: Builder, node: Node, place: Place) -> Result:
    """Only an infinity lies beyond the greatest finite number, and f32 has all numbers of bf16 and
    f16. A maximum is -inf if all elements are, also without elements. A NaN lies beyond nothing.
    """
    x = node.operand(0)
    if node.op == "IsInf":
        is_input = place.holder is None and x in place.graph.inputs
        if is_static(x.shape) or is_input or x.element not in LARGEST:
            return None
        signs = [sign for name, sign in SIGNS.items() if node.attributes[name]]
        return b.fold("Or", [_is_beyond(b, x, np.float32(s)) for s in signs]) if signs else None
    for x, other in (node.operands[:2], node.operands[1::-1]):
        bound = known_of(other.behind("Cast", "CastLike")).array
        if x.element not in LARGEST or bound is None or not bound.size or x.rank is None:
            continue
        ends = np.sign(bound.astype(np.float32))
        if not np.isinf(bound.astype(np.float32)).all() or np.unique(ends).size != 1:
            continue
        reduced = x.producer
        if reduced is not None and reduced.op == "ReduceMax" and (ends < 0).all():
            data, *axes = reduced.inputs
            lowest = _is_beyond(b, data, np.float32(-1)) if data is not None else x
            every = b.op("ReduceLogicalAnd", lowest, *axes, **reduced.attributes)
            return b.unsqueeze(every, *range(bound.ndim - x.rank)) if bound.size == 1 else None
        if x.element is BF16:
            return _is_beyond(b, x, ends)
    return None


def _is_beyond(b: Builder, x: Value, signs: np.ndarray | np.float32) -> Value:
    """Whether numbers are the infinity of a sign."""
    assert x.element is not None
    limits = b.constant(np.asarray(signs * LARGEST[x.element], np.float32), F32)
    x = b.cast(x, F32)
    return x < limits if np.all(signs < 0) else limits < x


EXCHANGE = "bridge_exchanged"

MARK = f'<attribute name="{EXCHANGE}" version="0"/>'
"""The key in the rt_info of an operator with exchanged operands. OpenVINO ignores it."""

EXCHANGED = {
    "Greater": "Less", "GreaterOrEqual": "LessOrEqual", "Less": "Greater",
    "LessOrEqual": "GreaterOrEqual",
}  # fmt: skip
"""The comparison that gives the same result for exchanged operands. Other operators stay."""


# The kernels of maxima give the second operand. So NaN behind a constant stays NaN, and NaN in
# front of one is lost. With a dynamic shape, the plugin joins elementwise operators, and the
# constant is second again.
@quirk(
    "Greater",
    "GreaterOrEqual",
    "Max",
    "Min",
    symptom="Greater and GreaterEqual with NaN are true on CPUs with AVX-512. The Maximum or the "
    "Minimum of NaN and a constant is the constant.",
    issue="https://github.com/openvinotoolkit/openvino/issues/31196",
    cost="none: the operands are exchanged, and rt_info records it",
)
def exchanged_operands(b: Builder, node: Node, place: Place) -> Result:
    """x > y and y < x are the same, for NaN too. The operands of a maximum and of a minimum may
    change places.
    """
    x, y = node.operands
    if x.element is None or not x.element.is_float:
        return None
    # The element type alone of the other input of a CastLike matters.
    second = is_known(y.behind("CastLike"), place) and not is_known(x.behind("CastLike"), place)
    if node.op not in EXCHANGED and not second:
        return None
    return b.node(EXCHANGED.get(node.op, node.op), [y, x], extras={"rt_info": MARK}).outputs[0]


@exchanged_operands.undoes("Less", "LessOrEqual", "Max", "Min")
def exchanged_again(b: Builder, node: Node, uses: Uses) -> Value | None:
    """The original operator, from a marked one with exchanged operands."""
    if EXCHANGE not in (node.extras or {}).get("rt_info", ""):
        return None
    x, y = node.inputs
    return b.op(EXCHANGED.get(node.op, node.op), y, x)
