"""What a row says of an operator beside its schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NUMBERS = ("float", "int64", "int32", "float16", "double", "int8", "uint8", "int16", "uint16",
           "uint32", "uint64")  # fmt: skip
REALS = ("float", "float16", "double")
BASIC = (*NUMBERS, "bool", "string")
ANY = (*BASIC, "bfloat16")
QUANTISED = ("uint8", "int8", "int16", "uint16")


@dataclass(frozen=True)
class Row:
    """An operator's inputs (`values.py`), joined by semicolons, and its attributes' values."""

    cases: Sequence[str]
    attributes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    types: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """For type parameters; by default those of `BASIC` that the schema allows."""
    special: bool = False
    """Whether ties, -0.0 and limits are of interest; `tests/quirks/nonfinite.py` has NaN and
    infinities."""
    outputs: int = 1
    unread: Sequence[int] = ()
    """The places of outputs without a name."""
    fits: Callable[[Mapping[str, str]], bool] = lambda levels: True
    """Whether levels go together."""
    expected: Callable[..., Sequence[Any]] | None = None
    """The outputs by the specification, from the inputs and the attributes; it decides if an engine
    gives others."""
    always: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of one value, which all programs have."""
    release: int = 0
    """The operator set of OpenVINO that has the operator; 0 for operators of ONNX."""


def alike(names: str, row: Row) -> dict[str, Row]:
    """One row for several operators."""
    return dict.fromkeys(names.split(), row)
