"""The text form of integers and shapes in an IR."""

import re

from bridge.neutral.types import ANY, Dim, Interval, Shape


def integer(text: str) -> int:
    """A 64-bit integer; ValueError if the text is not an integer."""
    value = int(text)
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} has more than 64 bits")
    return value


def split_list(text: str) -> list[str]:
    """The items of a comma-separated list."""
    return [item.strip() for item in text.split(",")] if text.strip() else []


def parse_shape(text: str) -> Shape:
    """A shape from the text of a Parameter, for example `?,1..5,3`, or `...` for an unknown rank.
    The text may have brackets. ValueError if it is not a shape."""
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
    """The text of a Parameter's shape. IR has no symbols, so that a symbol becomes `?`."""
    if shape is None:
        return "..."
    return ",".join("?" if isinstance(dim, str) else str(dim) for dim in shape)
