"""How attribute values, shapes and port types look in an IR file."""

from typing import Any

import numpy as np

from bridge.neutral.types import ANY, BY_IR, BY_PRECISION, Element, TensorType
from bridge.operators.ir_texts import integer, parse_bool, split_list

_BELOW_F32_MAX = 3e38
_UNKNOWN_ELEMENTS = ("dynamic", "undefined", "UNSPECIFIED", "UNDEFINED", "")


def parse(text: str, kind: str) -> Any:
    """The Python value of an attribute of a row's type `kind`; ValueError if it is none."""
    if kind.endswith("s"):
        return tuple(parse(item, kind[:-1]) for item in split_list(text))
    match kind:
        case "int":
            return integer(text)
        case "float":
            return float(text)
        case "bool":
            return parse_bool(text)
        case "element":
            return parse_element(text)
    return text


def parse_element(text: str) -> Element | None:
    """An element type by IR's name of it or a port's precision; None if it is dynamic."""
    if text in _UNKNOWN_ELEMENTS:
        return None
    element = BY_IR.get(text) or BY_PRECISION.get(text)
    if element is None:
        raise ValueError(f'there is no element type "{text}"')
    return element


def format_value(value: Any) -> str:
    """The text of an attribute; TypeError if IR has none for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | str):
        return str(value)
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, tuple | list):
        return ", ".join(format_value(item) for item in value)
    if isinstance(value, Element) and value.ir is not None:
        return value.ir
    raise TypeError(f"IR cannot write {value!r} as an attribute")


def _format_float(value: float) -> str:
    """The shortest text that reads as the same number, in f32 if it is one; OpenVINO writes
    infinity as `inf` too."""
    if abs(value) < _BELOW_F32_MAX:
        single = np.float32(value)
        if float(single) == value:
            return str(single)
    return repr(value)


def format_static(shape: tuple[int, ...]) -> str:
    """The shape of a Const."""
    return ", ".join(map(str, shape))


def port_type(precision: str, dims: list[int]) -> TensorType:
    """The type of a port. A port without dimensions is a scalar or of unknown rank, so its shape
    is left unknown."""
    shape = tuple(ANY if dim < 0 else dim for dim in dims) if dims else None
    return TensorType(parse_element(precision), shape)
