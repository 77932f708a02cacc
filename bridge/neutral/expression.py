"""How a value is computed, as a formula of one line: `shape(x)[-1] == 1`."""

from collections.abc import Callable, Mapping

from bridge.neutral.graph import Node, Value, operand_of, producer_of
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import BOOL
from bridge.vocabulary import traits_of

NameOf = Callable[[Value], str]
"""Gives the name of a value at the end of a formula."""

_DEPTH = 6  # operators in one another
_SHOWN = 4  # elements of a constant

# Operator, and how strongly it binds.
_INFIX = {
    "Or": ("or", 1), "Xor": ("xor", 1), "And": ("and", 2),
    "Equal": ("==", 4), "NotEqual": ("!=", 4), "Less": ("<", 4), "LessOrEqual": ("<=", 4),
    "Greater": (">", 4), "GreaterOrEqual": (">=", 4),
    "Add": ("+", 5), "Sub": ("-", 5), "Mul": ("*", 6), "Div": ("/", 6), "Mod": ("%", 6),
}  # fmt: skip
_SILENT = frozenset({"in_order"})  # traits of operators that a formula leaves out
_NOT = 3
_COMPARED = 4
_ATOM = 9

OPPOSITES = {
    "Equal": "NotEqual", "NotEqual": "Equal", "Less": "GreaterOrEqual", "GreaterOrEqual": "Less",
    "Greater": "LessOrEqual", "LessOrEqual": "Greater",
}  # fmt: skip
"""The comparison that holds if another does not hold."""


def expression(value: Value, names: NameOf, captured: Mapping[Value, Value]) -> str:
    """The formula of a value, from its constants and operators. A long formula ends with names
    of values. `captured` maps a body's inputs to the outer values."""
    return _formula(value, names, captured, _DEPTH)[0]


def _formula(  # noqa: C901 (one case for each way of writing an operator)
    value: Value, names: NameOf, captured: Mapping[Value, Value], depth: int
) -> tuple[str, int]:
    """The formula, and how strongly its operator binds."""
    value = value.behind(outside=captured)
    node = value.producer
    if value.constant is not None:
        return _constant(value.constant) or names(value), _ATOM
    if node is None or not depth or node.bodies or node.outputs[0] is not value:
        return names(value), _ATOM
    inputs = node.operands

    def part(index: int, least: int = 0) -> str:
        text, binds = _formula(inputs[index], names, captured, depth - 1)
        return text if binds >= least else f"({text})"

    if _SILENT & traits_of(node.op) and inputs:
        if value.element is BOOL and inputs[0].element not in (BOOL, None):
            return f"{part(0, _COMPARED)} != 0", _COMPARED
        return _formula(inputs[0], names, captured, depth)
    if node.op in _INFIX and len(inputs) == 2:
        sign, binds = _INFIX[node.op]
        return f"{part(0, binds)} {sign} {part(1, binds + 1)}", binds
    if node.op == "Not" and inputs:
        if compared := producer_of(_source(inputs[0], captured), *OPPOSITES):
            sign, binds = _INFIX[OPPOSITES[compared.op]]
            inputs = compared.operands
            return f"{part(0, binds)} {sign} {part(1, binds + 1)}", binds
        return f"not {part(0, _NOT)}", _NOT
    if node.op == "Neg" and inputs:
        return f"-{part(0, _ATOM)}", 7
    if node.op == "Gather" and _axis_is_first(node) and inputs[1].rank in (0, 1):
        return f"{part(0, _ATOM)}[{part(1).strip('[]')}]", _ATOM
    if node.op in ("Shape", "Size"):
        of = inputs[0].behind(outside=captured)
        if node.op == "Size" and (whole := operand_of(of, "Shape")):
            return f"rank({names(whole.behind(outside=captured))})", _ATOM
        return f"{node.op.lower()}({names(of)}){_part_of(node)}", _ATOM
    if node.op.startswith("Reduce"):
        inputs = inputs[:1]  # the axes say little
    if not inputs or depth <= 2 or len(inputs) > 3:
        return names(value), _ATOM
    return f"{node.op}({', '.join(part(index) for index in range(len(inputs)))})", _ATOM


def _source(value: Value, captured: Mapping[Value, Value]) -> Value:
    """The value that a condition's casts and reshapes hand on."""
    while True:
        value = value.behind(outside=captured)
        before = operand_of(value, traits=_SILENT)
        if before is None or (value.element is BOOL and before.element is not BOOL):
            return value
        value = before


def _constant(tensor: Tensor) -> str:
    if tensor.size > _SHOWN:
        return ""
    values = tensor.array().reshape(-1).tolist()
    texts = [_number(x) for x in values]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _number(x: object) -> str:
    if isinstance(x, bool):
        return str(x).lower()
    return f"{x:g}" if isinstance(x, float) else repr(x)


def _axis_is_first(node: Node) -> bool:
    axis = node.input(2)
    tensor = axis.constant if axis is not None else None
    return tensor is not None and tensor.size == 1 and not tensor.array().item()


def _part_of(node: Node) -> str:
    start, end = node.attributes.get("start") or 0, node.attributes.get("end")
    if end is not None and end == start + 1:
        return f"[{start}]"
    return f"[{start or ''}:{'' if end is None else end}]" if start or end is not None else ""
