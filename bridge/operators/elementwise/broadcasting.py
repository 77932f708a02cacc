"""Broadcasting other than numpy's: ONNX before operator set 7, and IR's `none` and `pdpd`."""

from bridge.operators import Builder, Node, Refused, Result, Value, reads, required


def aligned(b: Builder, wide: Value, narrow: Value, axis: int) -> Value:
    """`narrow` with axes of size 1 added at the end, so that its first axis meets axis `axis` of
    `wide`."""
    if wide.rank is None or narrow.rank is None:
        raise Refused("broadcasting from an axis needs the ranks of both inputs; declare shapes")
    missing = wide.rank - axis % max(wide.rank, 1) - narrow.rank
    return (
        b.unsqueeze(narrow, *range(narrow.rank, narrow.rank + missing)) if missing > 0 else narrow
    )


@reads(
    "Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor",
    format="onnx", until=6,
)  # fmt: skip
def onnx_broadcast(b: Builder, node: Node) -> Result:
    """ONNX's attributes `broadcast` and `axis` (Add-1, Add-6). The second input's shape is a part
    of the first input's shape. The part begins at `axis`; without `axis`, it is the end of the
    shape."""
    if not node.attributes.get("broadcast") or "axis" not in node.attributes:
        return None
    wide, narrow = required(node, 0, 1)
    return b.op(node.op, wide, aligned(b, wide, narrow, node.attributes["axis"]))


BROADCASTING = {
    "Add": "Add", "BitwiseAnd": "BitwiseAnd", "BitwiseLeftShift": "BitwiseLeftShift",
    "BitwiseOr": "BitwiseOr", "BitwiseRightShift": "BitwiseRightShift",
    "BitwiseXor": "BitwiseXor", "Divide": "Div", "Equal": "Equal", "FloorMod": "Mod",
    "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "Less": "Less",
    "LessEqual": "LessOrEqual", "LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor",
    "Maximum": "Max", "Minimum": "Min", "Mod": "ir::Mod", "Multiply": "Mul",
    "NotEqual": "NotEqual", "Power": "Pow", "Select": "Where",
    "SquaredDifference": "SquaredDifference", "Subtract": "Sub", "Xor": "Xor",
}  # fmt: skip
"""IR's types with rows for numpy's `auto_broadcast`, and their neutral names. The table of rows has
the same facts, but a query would parse all rows."""


@reads(*BROADCASTING, format="ir")
def auto_broadcast(b: Builder, node: Node) -> Result:
    """IR's `auto_broadcast`. The mode `none` requires equal shapes, and numpy's rule gives the same
    result. With `pdpd`, the other inputs start at axis 0 of the first data input, as in OpenVINO's
    reader."""
    mode = node.attributes["auto_broadcast"].lower()
    if mode == "numpy":
        return None
    if mode not in ("none", "explicit", "pdpd"):
        raise ValueError(f'auto_broadcast "{mode}" is not numpy, none, explicit or pdpd')
    op = BROADCASTING[node.op]
    inputs = node.operands
    if mode == "pdpd":
        wide = inputs[1 if op == "Where" else 0]
        inputs = [value if value is wide else aligned(b, wide, value, 0) for value in inputs]
    attributes = {}
    if op == "Div":
        attributes["floor"] = node.attributes["m_pythondiv"]
    return b.op(op, *inputs, **attributes)
