"""A small ONNX program as text, put together piece by piece, with the values of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import onnx.parser

OPSET = 21
NUMPY = {
    "bool": np.bool_, "float": np.float32, "double": np.float64, "int8": np.int8,
    "int32": np.int32, "int64": np.int64, "string": np.object_,
}  # fmt: skip


class Invalid(Exception):
    """Raised for levels that exclude each other: such a program does not exist, or never ends."""


@dataclass
class Program:
    """Declarations and nodes in ONNX's text syntax. `values` has the values of each input, and
    every combination runs; `functions` are model-local."""

    inputs: dict[str, str] = field(default_factory=dict)
    values: dict[str, list[Any]] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    nodes: list[str] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)

    def input(self, name: str, type: str, *values: Any) -> str:
        """Declares an input with its values; returns its name."""
        if name not in self.inputs:
            dtype = NUMPY[type.partition("[")[0]]
            self.inputs[name] = type
            self.values[name] = [np.array(value, dtype) for value in values]
        return name

    def constant(self, name: str, type: str, *values: Any) -> str:
        """Declares an initializer; returns its name."""
        self.constants[name] = f"{type} {name} = {{{', '.join(map(str, values))}}}"
        return name

    def node(self, text: str) -> None:
        """Adds a node."""
        self.nodes.append(text)

    def output(self, name: str, type: str) -> None:
        """Declares an output."""
        self.outputs[name] = type

    def model(self) -> onnx.ModelProto:
        """The model."""
        inputs = ", ".join(f"{type} {name}" for name, type in self.inputs.items())
        outputs = ", ".join(f"{type} {name}" for name, type in self.outputs.items())
        constants = f"\n<{', '.join(self.constants.values())}>" if self.constants else ""
        imports = f'"": {OPSET}' + (', "local": 1' if self.functions else "")
        nodes = "\n  ".join(self.nodes)
        graph = f"g ({inputs}) => ({outputs}){constants}\n{{\n  {nodes}\n}}\n"
        head = f"<ir_version: 10, opset_import: [{imports}]>\n"
        return onnx.parser.parse_model(head + graph + "\n".join(self.functions))

    def feeds(self) -> list[dict[str, np.ndarray]]:
        """Every combination of the inputs' values."""
        names = list(self.inputs)
        return [
            dict(zip(names, values, strict=True))
            for values in product(*(self.values[name] for name in names))
        ]


def body(name: str, inputs: Sequence[str], outputs: Sequence[str], nodes: Sequence[str]) -> str:
    """A nested graph as text."""
    return f"{name} ({', '.join(inputs)}) => ({', '.join(outputs)}) {{ {' '.join(nodes)} }}"
