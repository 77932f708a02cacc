"""A power of integers. The CPU plugin computes it in f32, which is not exact above 2^24."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node, Value
from bridge.neutral.inference.known import known_of
from bridge.operators import Result
from bridge.passes.context import Context
from bridge.quirks.quirk import Place, Quirk, rewriting

MOST = 63
"""The largest exponent. From the 64th power on, all integers but 0, 1 and -1 overflow."""


def by_squares(b: Builder, node: Node, place: Place) -> Result:
    """Products of squares of the base, for a known exponent."""
    base, exponent = node.inputs
    if base is None or base.element is None or not base.element.is_integer:
        return None
    known = known_of(exponent).array
    if known is None or known.size != 1 or known.ndim > (base.rank or 0):
        return None
    power = known.reshape(-1)[0]
    return _power(b, base, int(power)) if power in range(2, MOST + 1) else None


def by_digits(b: Builder, node: Node, place: Place) -> Result:
    """The same. The digits of an exponent that is computed select the squares."""
    base, exponent = node.inputs
    if base is None or exponent is None or known_of(exponent).array is not None:
        return by_squares(b, node, place)
    whole = base.element is not None and base.element.is_integer
    return _by_digits(b, base, exponent) if whole and exponent.element is base.element else None


def write_products(graph: Graph, context: Context) -> bool | None:
    """Writes products, in place. For the GPU plugin, another quirk has computed exponents."""
    of_known = context.options.get("device") == "GPU"
    return rewriting("Pow", by=by_squares if of_known else by_digits)(graph, context)


def _power(b: Builder, base: Value, power: int) -> Value:
    """The power, from at least one product. The base itself is not a power."""
    result: Value | None = None
    while power:
        if power & 1:
            result = base if result is None else result * base
        power >>= 1
        if power:
            base = base * base
    assert result is not None
    return result


def _by_digits(b: Builder, base: Value, exponent: Value) -> Value:
    """The power for an exponent that is computed. With a negative exponent, it is the inverse: 0,
    unless the base is 1 or -1. A Where would compute in f32, too."""
    last = b.op("BitwiseAnd", exponent, 1)
    square, result = base, 1 + last * (base - 1)
    # Above that, only powers of 0, 1 and -1 do not overflow. The last digit decides their sign.
    limited = b.op("BitwiseOr", b.min(exponent, MOST - 1), last)
    for digit in range(1, MOST.bit_length()):
        square = square * square
        selected = b.min(b.op("BitwiseAnd", limited, 1 << digit), 1)
        result = result * (1 + selected * (square - 1))
    is_inverse = b.cast(exponent < 0, base.element)
    is_unit = b.cast((base * base).equal(1), base.element)
    return result * (1 - is_inverse * (1 - is_unit))


def _recorded(b: Builder, node: Node) -> Iterator[Value]:
    """The Pow in the record of the last node. A product x * x without a record was a product
    before."""
    former = (node.extras or {}).get("provenance")
    if former is not None and former.op == "Pow":
        given = [value for value in former.inputs if value is not None]
        yield b.op("Pow", *(b.tensor(v.constant) if v.constant else v for v in given))


QUIRK = Quirk(
    releases="2026.4",
    symptom="A power of integers is computed in f32: 4097 squared is too small by one.",
    fires="At a Pow of integers, unless the exponent is known and is not one number from 2 to 63.",
    safe="The binary digits of the exponent select squares of the base. The power is their "
    "product.",
    cost="a product for each bit of the exponent, and for each bit that is set; about 40 operators "
    "for an exponent that is computed",
    run=write_products,
    guess={"Mul": _recorded},
)
