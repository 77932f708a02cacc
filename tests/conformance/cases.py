"""The node test cases of the ONNX standard, with inputs and expected outputs as plain arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tests.support.once import once_a_run


@dataclass(frozen=True)
class Case:
    """One model of the standard and its data sets: (inputs, expected outputs), by position."""

    name: str
    model: onnx.ModelProto
    data_sets: tuple[tuple[tuple[Any, ...], tuple[Any, ...]], ...]
    rtol: float
    atol: float


@once_a_run
def cases() -> dict[str, Case]:
    """Every case by name. The first call takes seconds: the standard computes its cases."""
    from onnx.backend.test.case import base
    from onnx.backend.test.case.node import collect_testcases

    base.process_snippet = lambda *_: ("", "")  # Formatting the examples' texts takes a second.

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        collected = collect_testcases(None)
    found = {}
    for case in collected:
        assert case.model is not None and case.data_sets is not None
        data_sets = tuple(
            (tuple(map(_value, inputs)), tuple(map(_value, outputs)))
            for inputs, outputs in case.data_sets
        )
        found[case.name] = Case(case.name, case.model, data_sets, case.rtol, case.atol)
    return found


def _value(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, list | tuple):
        return [_value(element) for element in value]
    return None if value is None else np.asarray(value)
