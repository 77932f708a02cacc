"""The element types for which onnxruntime has kernels, where they are fewer than the standard's.

`onnxruntime.capi.onnxruntime_pybind11_state.get_all_opkernel_def()` lists them. An operator of
another type runs in a wider one. Of f16 and bf16, onnxruntime does that itself.
"""

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Node
from bridge.neutral.types import BOOL, F32, F64, I32, I64, U8, Element
from bridge.operators import Result, Rule, required
from bridge.operators.element_types import in_type
from bridge.operators.spatial.blocks import gathered, spread
from bridge.operators.type_constraints import type_signature

_REALS = """Acos Acosh Asin Asinh Atan Atanh AveragePool Conv ConvTranspose Cosh Det Elu Erf Gelu
    GlobalAveragePool GlobalMaxPool HardSigmoid Hardmax InstanceNormalization LRN LeakyRelu LpPool
    Mean RNN Selu Sinh Softplus Softsign Tan ThresholdedRelu"""

_KERNELS = {
    _REALS: "f32",
    "CumSum Einsum": "i32 i64 f32 f64",
    """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum
    ReduceSumSquare""": "i32 i64 f32 f64",
    "Trilu": "bool i32 i64 f32 f64",
    "ReduceMax ReduceMin": "bool i8 u8 i32 i64 f32 f64",
    "ArgMax ArgMin": "i8 u8 i32 i64 f32 f64",
    "Clip Max Min": "i8 u8 i32 i64 u32 u64 f32 f64",
    "Pad": "bool i8 u8 i32 i64 u32 u64 f32 f64",
    "TopK": "i8 u8 i16 i32 i64 f32 f64",
    "Unique": "i8 i64 f32 f64",
    "Where": "i8 u8 i32 i64 u32 f32 f64",
    "NonZero": "bool u8 i32 i64 f32",
}  # fmt: skip
KERNELS = {op: has.split() for ops, has in _KERNELS.items() for op in ops.split()}
"""The types of the data with a kernel, by operator."""


def _widened(b: Builder, node: Node) -> Result:
    """Runs an operator in a type with a kernel that holds its numbers. u64 is taken for i64, and
    f64 for f32, as OpenVINO does."""
    signature = type_signature(node.op, b.opset)
    at = 1 if node.op == "Where" else 0
    element = node.operand(at).element
    wide = _wide(element, KERNELS[node.op])
    variable = None if signature is None else signature.input(at)
    if signature is None or variable is None or element is None or wide is None:
        return None
    if (node.extras or {}).get("restored"):
        return None  # It is what the model had.
    wide = BOOL if node.op == "NonZero" else wide
    return in_type(b, node, signature, variable, element, wide)


def _wide(element: Element | None, has: list[str]) -> Element | None:
    """The first type with a kernel for the numbers of another type without one."""
    if element is None or element.bits < 8 or element.name in has:
        return None
    wider = [F32] if element is F64 else [I64]
    if element is BOOL:
        wider = [U8, I32, I64]
    elif element.is_float and element is not F64:
        return None
    elif element.bits < 32:
        wider = [I32, I64]
    return next((each for each in wider if each.name in has), None)


def _in_blocks(b: Builder, node: Node) -> Result:
    """SpaceToDepth and DepthToSpace of integers as Reshape and Transpose."""
    x, block = node.operand(0), [node.attributes["blocksize"]] * 2
    few = x.element is not None and x.element.name in ("f16", "f32", "f64", "i8", "u8")
    if few or x.rank != 4:
        return None
    move = spread if node.op == "DepthToSpace" else gathered
    return move(b, x, 1, block, node.attributes["mode"] == "CRD")


def _of_integers(b: Builder, node: Node) -> Result:
    """Relu and PRelu of integers by a comparison."""
    x = node.operand(0)
    has = ("f16", "f32") if node.op == "PRelu" else ("f16", "f32", "f64", "i8", "i32")
    if x.element is None or x.element.name in has or x.element.name == "bf16":
        return None
    if node.op == "Relu":
        return b.max(x, b.like(0, x))
    _, slope = required(node, 0, 1)
    return b.where(x < b.like(0, x), x * slope, x)


FORMS: dict[str, Rule] = {
    **dict.fromkeys(KERNELS, _widened),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _in_blocks),
    **dict.fromkeys(("PRelu", "Relu"), _of_integers),
}
