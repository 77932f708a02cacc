"""All families, and their cases."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from types import ModuleType

from tests.attributes import ir_operators, onnx_arithmetic, onnx_layers, onnx_ml, onnx_tensors
from tests.attributes.family import FAMILIES, Case, Row
from tests.control_flow.covering import covering

MODULES: tuple[ModuleType, ...] = (
    onnx_layers, onnx_tensors, onnx_arithmetic, onnx_ml, ir_operators,
)  # fmt: skip
"""The files of families; importing one registers them."""


def cases(pairs: bool, formats: Sequence[str]) -> Iterator[Case]:
    """The cases of every family: all rows, or rows that cover every pair of levels."""
    for kind in FAMILIES.values():
        if kind.format not in formats:
            continue
        levels = {name: list(values) for name, values in kind.axes.items()}
        rows: Iterator[Row]
        if pairs:
            rows = covering(levels, kind.exists, 2)
        else:
            every = (dict(zip(levels, row, strict=True)) for row in product(*levels.values()))
            rows = filter(kind.exists, every)
        yield from (Case(kind.name, row) for row in rows)


def sample(pairs: bool, formats: Sequence[str], every: int = 1, first: int = 0) -> list[Case]:
    """Every n-th case; each part is a sample of all."""
    chosen = list(cases(pairs, formats))
    random.Random(0).shuffle(chosen)
    return chosen[first::every]
