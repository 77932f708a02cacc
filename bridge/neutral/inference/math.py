"""Elementwise operators, conversions, activations, reductions, scans and TopK."""

from __future__ import annotations

from bridge.neutral.builder import integers
from bridge.neutral.graph import Node
from bridge.neutral.inference import first, infers, same
from bridge.neutral.types import (
    ANY,
    BOOL,
    F16,
    I64,
    Dim,
    Element,
    Shape,
    TensorType,
    broadcast,
)

infers(
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Celu", "Clip",
    "Cos", "Cosh", "CumProd", "CumSum", "Elu", "Erf", "ErfInv", "Exp", "Floor", "Gelu", "HSigmoid",
    "HardSigmoid", "HardSwish", "Hardmax", "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg", "Not",
    "PRelu", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
)(same)  # fmt: skip


@infers("IsFinite", "IsInf", "IsNaN")
def predicate(node: Node) -> list[TensorType]:
    return [TensorType(BOOL, first(node).shape)]


@infers(
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseLeftShift", "BitwiseOr", "BitwiseRightShift",
    "BitwiseXor", "Div", "Mod", "Mul", "Or", "Pow", "SquaredDifference", "Sub", "Xor", "ir::Mod",
)  # fmt: skip
def binary(node: Node) -> list[TensorType]:
    a, b = first(node), first(node, 1)
    if a.shape == b.shape and a.element is not None:
        return [a]
    return [TensorType(a.element or b.element, broadcast(a.shape, b.shape))]


@infers("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "NotEqual")
def comparison(node: Node) -> list[TensorType]:
    return [TensorType(BOOL, broadcast(first(node).shape, first(node, 1).shape))]


@infers("Max", "Mean", "Min", "Sum")
def variadic(node: Node) -> list[TensorType]:
    types = [first(node, i) for i in range(len(node.inputs))]
    element = next((t.element for t in types if t.element is not None), None)
    return [TensorType(element, broadcast(*(t.shape for t in types)))]


@infers("Where")
def where(node: Node) -> list[TensorType]:
    condition, x, y = (first(node, i) for i in range(3))
    return [TensorType(x.element or y.element, broadcast(condition.shape, x.shape, y.shape))]


@infers("BitCast", "Cast", "ir::Convert")
def cast(node: Node) -> list[TensorType]:
    return [TensorType(node.attributes["to"], first(node).shape)]


@infers("CastLike")
def cast_like(node: Node) -> list[TensorType]:
    return [TensorType(first(node, 1).element, first(node).shape)]


@infers("ConvertPromoteTypes")
def convert_promote_types(node: Node) -> list[TensorType]:
    element = promoted(node)
    return [TensorType(element, first(node, i).shape) for i in range(2)]


_SIGNIFICAND = {"f16": (11, 5), "bf16": (8, 8), "f32": (24, 8), "f64": (53, 11)}


def promoted(node: Node) -> Element | None:
    """The common type of ConvertPromoteTypes-14's inputs (its specification's promotion rules)."""
    from bridge.neutral.types import ELEMENTS

    a, b = first(node), first(node, 1)
    x, y = a.element, b.element
    if x is None or y is None or x is y:
        return x if x is y else None
    order = {"bool": 0, "uint": 1, "int": 1, "float": 2}
    if order[x.kind] != order[y.kind]:
        return x if order[x.kind] > order[y.kind] else y
    if node.attributes["pytorch_scalar_promotion"] and (a.rank == 0) != (b.rank == 0):
        return y if a.rank == 0 else x
    if x.is_float:
        if x.bits == y.bits == 8:
            return F16
        if x.name not in _SIGNIFICAND or y.name not in _SIGNIFICAND:
            return max(x, y, key=lambda e: e.bits)
        need = [max(pair) for pair in zip(_SIGNIFICAND[x.name], _SIGNIFICAND[y.name], strict=True)]
        fitting = (n for n, has in _SIGNIFICAND.items() if has[0] >= need[0] and has[1] >= need[1])
        return ELEMENTS[next(fitting)]
    if x.is_signed == y.is_signed:
        return x if x.bits > y.bits else y
    signed, unsigned = (x, y) if x.is_signed else (y, x)
    bits = max(signed.bits, 2 * unsigned.bits)
    if bits > 64:
        return node.attributes["u64_integer_promotion_target"]
    return ELEMENTS[f"i{bits}"]


@infers(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceLogicalAnd",
    "ReduceLogicalOr", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
)  # fmt: skip
def reduction(node: Node) -> list[TensorType]:
    data = first(node)
    return [TensorType(data.element, reduced(node, data.shape))]


def reduced(node: Node, shape: Shape) -> Shape:
    """The shape that a reduction of the neutral vocabulary leaves of `shape`."""
    if shape is None:
        return None
    rank, keep = len(shape), node.attributes["keepdims"]
    given = node.input(1)
    axes = integers(given)
    if given is None or axes == () or given.shape == (0,):
        if node.attributes["noop_with_empty_axes"]:
            return shape
        axes = tuple(range(rank))
    if axes is not None:
        gone = {a % rank for a in axes} if rank else set()
        if keep:
            return tuple(1 if i in gone else d for i, d in enumerate(shape))
        return tuple(d for i, d in enumerate(shape) if i not in gone)
    if keep:
        return (ANY,) * rank
    count = given.shape[0] if given is not None and given.rank == 1 else None
    return (ANY,) * (rank - count) if isinstance(count, int) else None


@infers("ArgMax", "ArgMin")
def arg(node: Node) -> list[TensorType]:
    shape = first(node).shape
    if shape is None:
        return [TensorType(I64)]
    axis = node.attributes["axis"] % len(shape)
    middle = (1,) if node.attributes["keepdims"] else ()
    return [TensorType(I64, shape[:axis] + middle + shape[axis + 1 :])]


def selected(node: Node) -> Shape:
    """The shape of TopK's outputs."""
    shape, k = first(node).shape, node.inputs[1]
    if shape is None:
        return None
    axis = node.attributes["axis"] % len(shape)
    count: Dim = ANY
    if k is not None and k.content is not None and k.content[0] is not None:
        count = k.content[0]
    return (*shape[:axis], count, *shape[axis + 1 :])


@infers("TopK")
def top_k(node: Node) -> list[TensorType]:
    shape = selected(node)
    return [TensorType(first(node).element, shape), TensorType(I64, shape)]


@infers("ir::TopK")
def ir_top_k(node: Node) -> list[TensorType]:
    shape = selected(node)
    return [
        TensorType(first(node).element, shape),
        TensorType(node.attributes["index_element_type"], shape),
    ]
