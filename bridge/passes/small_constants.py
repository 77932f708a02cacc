"""Arithmetic on small constants of real numbers, truth values and integers of any rank.

Folding otherwise knows integers that may be sizes. A condition may compare a real number that is
fixed. These operators are rounded alike everywhere (IEEE 754), so that engines give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Graph, Node
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.types import BOOL, F32, F64, I32, I64, size_of

MOST = 64
"""Elements of a constant that is computed."""

ELEMENTS = (BOOL, F32, F64, I32, I64)

ROUNDED_ALIKE: Mapping[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "Ceil": np.ceil,
    "Equal": np.equal,
    "Floor": np.floor,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Xor": np.logical_xor,
}


def fold_small_constants(graph: Graph) -> bool:
    """Computes, in place, what these operators give of small constants; whether there was any."""
    return Rewriter(graph).run(_PATTERN)


def _computed(b: Builder, node: Node, rewriter: Rewriter) -> Result:
    tensors = [None if value is None else value.constant for value in node.inputs]
    given = [t.array() for t in tensors if t is not None and t.element in ELEMENTS]
    if len(given) < len(tensors) or any(size_of(array.shape) > MOST for array in given):
        return None
    element = node.outputs[0].element
    if node.op == "Cast":
        # What a real number is as an integer, engines do not agree on where it does not fit.
        if element not in (BOOL, F32, F64) or not given:
            return None
        return b.constant(given[0], element)
    with np.errstate(all="ignore"):
        try:
            result = np.asarray(ROUNDED_ALIKE[node.op](*given))
        except ValueError:  # shapes that do not go together, in a branch that is never taken
            return None
    fits = element is not None and result.dtype == element.dtype and result.size <= MOST
    return b.constant(result) if fits else None


_PATTERN = Pattern(_computed, frozenset({*ROUNDED_ALIKE, "Cast"}))
