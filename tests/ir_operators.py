"""Operators of IR for tables of test cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from openvino.utils.node_factory import NodeFactory


class Constant:
    """An argument that is a constant of the model, not an input."""

    def __init__(self, value: Any, type: Any = None) -> None:
        self.value = np.asarray(value, type)


def of(version: int, name: str, **attributes: Any) -> Callable[..., Any]:
    """An operator of an operator set, by the name and the attributes that IR files have."""
    return lambda *inputs: NodeFactory(f"opset{version}").create(name, list(inputs), attributes)
