"""ErfInv of IR, the inverse of the error function."""

from functools import reduce

from bridge.neutral.types import F32, F64
from bridge.operators import Builder, Node, Value, legalizes

CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 2.1858087e-04, -1.25372503e-03,
    -4.17768164e-03, 0.246640727, 1.50140941,
)  # fmt: skip
TAIL = (
    -2.00214257e-04, 1.00950558e-04, 1.34934322e-03, -3.67342844e-03, 5.73950773e-03,
    -7.6224613e-03, 9.43887047e-03, 1.00167406, 2.83297682,
)  # fmt: skip
"""Polynomials by M. Giles, "Approximating the erfinv function" (2010), exact to f32."""


@legalizes("ErfInv", target="onnx")
def erf_inv_for_onnx(b: Builder, node: Node) -> Value:
    """ErfInv-17: narrower floats are computed in f32, as in OpenVINO."""
    given = node.operand(0)
    x = given if given.element in (F32, F64) else b.cast(given, F32)

    def polynomial(coefficients: tuple[float, ...], w: Value) -> Value:
        start, *rest = (b.like(c, x) for c in coefficients)
        return reduce(lambda p, c: p * w + c, rest, start)

    one = b.like(1.0, x)
    far = -b.op("Log", (one - x) * (one + x))
    near = polynomial(CENTRE, far - 2.5)
    tail = polynomial(TAIL, b.op("Sqrt", far) - 3.0)
    y = x * b.where(far < 5.0, near, tail)
    rest = one - abs(x)
    return b.cast(b.where(rest.equal(0.0), x / rest, y), given.element)
