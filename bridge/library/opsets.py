"""Which operator set of ONNX a model is written in."""

import operator
from collections.abc import Callable
from typing import TypeVar

from bridge.errors import UnsupportedError, UsageError
from bridge.neutral.builder import DEFAULT_OPSET, Target
from bridge.neutral.graph import Model
from bridge.onnx_format.backend import check_opset

OLDEST_OPSET = 13

_ELEMENT_SINCE = {
    "f8e4m3fn": 19, "f8e4m3fnuz": 19, "f8e5m2": 19, "f8e5m2fnuz": 19, "i4": 21, "u4": 21,
    "f4e2m1": 23, "f8e8m0": 24, "u2": 25, "i2": 25,
}  # fmt: skip
"""The operator sets that first have these element types."""

_Made = TypeVar("_Made")


def onnx_target(model: Model, opset: int | None, standard: bool = False) -> Target:
    """ONNX in the wanted operator set. Without one, the set is from the ONNX model that the model
    is or came from, else the default one. A `standard` target has no operators of other domains.
    Raises UsageError for a set that cannot be written."""
    if opset is None:
        number = _own_opset(model)
        if "com.microsoft" not in model.opsets:  # its operators hold few bits in bytes
            number = max(number, _opset_of_elements(model))
    else:
        try:
            number = operator.index(opset)
        except TypeError:
            raise UsageError(f"`opset` must be a number like 17, not {opset!r}") from None
    check_opset(number)
    return Target("onnx", number, frozenset(() if standard else model.opsets))


def in_some_opset(attempt: Callable[[int | None], _Made], opset: int | None) -> _Made:
    """The result of an attempt. Without a wanted operator set, the model's own is tried first. It
    may lack an operator, because an IR may have changed since; then the default set is tried."""
    try:
        return attempt(opset)
    except UnsupportedError as error:
        if opset is not None or error.target == str(Target("onnx", DEFAULT_OPSET)):
            raise
        try:
            return attempt(DEFAULT_OPSET)
        except UnsupportedError:
            raise error from None


def _own_opset(model: Model) -> int:
    import onnx.defs

    if model.opset is None or model.opset > onnx.defs.onnx_opset_version():
        return DEFAULT_OPSET
    return max(model.opset, OLDEST_OPSET)


def _opset_of_elements(model: Model) -> int:
    """The first operator set that has the element types of all values."""
    elements = {
        v.element for node in model.graph.walk() for v in (*node.inputs, *node.outputs) if v
    }
    return max((_ELEMENT_SINCE.get(e.name, 0) for e in elements if e is not None), default=0)
