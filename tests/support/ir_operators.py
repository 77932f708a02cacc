"""Operators of IR for tables of test cases, and the engines that run them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from openvino.utils.node_factory import NodeFactory

from bridge.check.engines import LacksOperatorError, OnnxRuntime, OpenVino, Reference


class Constant:
    """An argument as a constant of the model rather than an input."""

    def __init__(self, value: Any, type: Any = None) -> None:
        self.value = np.asarray(value, type)


def of(version: int, name: str, **attributes: Any) -> Callable[..., Any]:
    """An operator of an operator set, by the name and the attributes that IR files have."""
    return lambda *inputs: NodeFactory(f"opset{version}").create(name, list(inputs), attributes)


@cache
def engines() -> tuple[OpenVino, OnnxRuntime, Reference]:
    """The engines of `bridge check`, one thread each."""
    return OpenVino(threads=1), OnnxRuntime(threads=1), Reference()


def run_onnx(path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a valid model by onnxruntime, or by the reference if onnxruntime lacks it."""
    onnx.checker.check_model(onnx.load(path), full_check=True)
    _, runtime, reference = engines()
    try:
        session = runtime.load(path)
    except LacksOperatorError:
        session = reference.load(path)
    return list(session.run(feeds).values())
