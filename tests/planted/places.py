"""What a fault may change in a file of either format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Constant:
    """A constant and the operators that read it. `where` is "top", "branch" or "loop"."""

    array: np.ndarray
    users: tuple[str, ...]
    where: str
    set: Callable[[np.ndarray], None]


@dataclass(frozen=True)
class Operator:
    """A node, by ONNX's name where both formats have such a one."""

    name: str
    where: str
    set: Callable[[str], None]


@dataclass(frozen=True)
class Attribute:
    """An attribute, its value as text: integers behind commas."""

    op: str
    name: str
    value: str
    where: str
    set: Callable[[str], None]


@dataclass(frozen=True)
class Site:
    """A value that another may replace: `insert(f)` puts `f(builder, value)` in its place. `place`
    is "input", "result" (of its graph) or "inner"; `rank` is what the file states, 0 if nothing."""

    dtype: np.dtype
    where: str
    place: str
    rank: int
    insert: Callable[[Callable[[Any, Any], Any]], None]


@dataclass(frozen=True)
class Swap:
    """Two things that may change places: `outputs`, `branches`, `ports`, `operands`; or an output
    that may be `dropped`."""

    kind: str
    where: str
    swap: Callable[[], None]
