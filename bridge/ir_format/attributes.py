"""How attribute values, shapes and port types look in an IR file."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from bridge.neutral.types import (
    ANY,
    BY_IR,
    BY_PRECISION,
    Dim,
    Element,
    Interval,
    Shape,
    TensorType,
)

_BELOW_F32_MAX = 3e38
_UNKNOWN_ELEMENTS = ("dynamic", "undefined", "UNSPECIFIED", "UNDEFINED", "")


def integer(text: str) -> int:
    """A 64-bit integer; ValueError where the text is none."""
    value = int(text)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} has more than 64 bits")
    return value


def parse(text: str, kind: str) -> Any:
    """The Python value of an attribute of a row's type `kind`; ValueError where it is none."""
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


def split_list(text: str) -> list[str]:
    """The items of a comma-separated list."""
    return [item.strip() for item in text.split(",")] if text.strip() else []


def parse_bool(text: str) -> bool:
    """True and false as OpenVINO reads them."""
    folded = text.strip().lower()
    if folded not in ("true", "false", "1", "0"):
        raise ValueError(f'"{text}" is neither true nor false')
    return folded in ("true", "1")


def parse_element(text: str) -> Element | None:
    """An element type by IR's name of it or a port's precision; None where it is dynamic."""
    if text in _UNKNOWN_ELEMENTS:
        return None
    element = BY_IR.get(text) or BY_PRECISION.get(text)
    if element is None:
        raise ValueError(f'there is no element type "{text}"')
    return element


def format_value(value: Any) -> str:
    """The text of an attribute; TypeError where IR has none for it."""
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
    """The shortest text that reads as the same number, in f32 where it is one; OpenVINO writes
    infinity as `inf` too."""
    if abs(value) < _BELOW_F32_MAX:
        single = np.float32(value)
        if float(single) == value:
            return str(single)
    return repr(value)


def parse_shape(text: str) -> Shape:
    """A shape as a Parameter has it: `?,1..5,3`, or `...` for an unknown rank; brackets may stand
    around it. ValueError where it is none."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1].strip()
    if text == "...":
        return None
    return tuple(_parse_dim(item) for item in split_list(text))


def _parse_dim(text: str) -> Dim:
    if text in ("?", "-1"):
        return ANY
    found = re.fullmatch(r"(\d+)|(\d*)\.\.(\d*)", text, re.ASCII)
    if found is None:
        raise ValueError(f'"{text}" is no dimension')
    size, low, high = found.groups()
    if size:
        return integer(size)
    bounds = Interval(integer(low or "0"), integer(high) if high else None)
    if bounds.high is not None and bounds.high < bounds.low:
        raise ValueError(f'"{text}" is no dimension: {bounds.low} is more than {bounds.high}')
    return bounds


def format_shape(shape: Shape) -> str:
    """The shape of a Parameter; symbols have no place in IR and become `?`."""
    if shape is None:
        return "..."
    return ",".join("?" if isinstance(dim, str) else str(dim) for dim in shape)


def format_static(shape: tuple[int, ...]) -> str:
    """The shape of a Const."""
    return ", ".join(map(str, shape))


def port_type(precision: str, dims: list[int]) -> TensorType:
    """What a port says: a port without dimensions is a scalar or of unknown rank, so its shape
    is left unknown."""
    shape = tuple(ANY if dim < 0 else dim for dim in dims) if dims else None
    return TensorType(parse_element(precision), shape)
