"""Names shortened so that they can be read at a glance."""

import re

from bridge.neutral.types import OptionalType, SequenceType, TensorType, Type

LENGTH = 28
"""The longest name that stays as it is."""

_SYMBOL = 12  # characters of a dimension's name in a type


def short(name: str, length: int = LENGTH) -> str:
    """The last parts of a path that fit, else the beginning and the end: `…/rnn/If_2_output_0`."""
    if len(name) <= length:
        return name
    kept = ""
    for part in reversed(re.split(r"(?<=[/.:])", name)):
        if len(part) + len(kept) >= length:
            break
        kept = part + kept
    if len(kept) >= length // 3:
        before = name[-len(kept) - 1]
        return f"…{before if before == '/' else ''}{kept}"
    half = (length - 1) // 2
    return f"{name[: length - 1 - half]}…{name[-half:]}"


def short_type(type: Type) -> str:
    """A type with the names of dimensions shortened."""
    match type:
        case TensorType(element, shape):
            if shape is None:
                return f"{element or '?'}[*]"
            dims = (short(dim, _SYMBOL) if isinstance(dim, str) else str(dim) for dim in shape)
            return f"{element or '?'}[{','.join(dims)}]"
        case SequenceType(item):
            return f"seq({short_type(item)})"
        case OptionalType(item):
            return f"optional({short_type(item)})"
    return repr(type)
