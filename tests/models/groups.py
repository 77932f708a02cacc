"""The groups of models that `tests.models` writes, if their exporters are installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

MODULES = {
    "merged decoders": "decoders",
    "control flow": "control_flow",
    "scripts": "scripts",
    "speech": "speech",
    "torch.export": "from_torch_export",
    "detection": "detection",
    "genai": "from_genai",
    "genai's builder": "from_genai_builder",
    "onnxruntime": "from_onnxruntime",
    "few bits": "few_bits",
    "JAX": "from_jax",
    "TensorFlow": "from_tensorflow",
    "spox": "from_spox",
    "onnxscript": "from_onnxscript",
    "Paddle": "from_paddle",
}
"""The module that writes each group's models."""


def models() -> Iterator[tuple[str, str, Callable[[Path], Path]]]:
    """Group and name of each model, and the function that writes it into a folder. A group whose
    exporter is not installed is left out, and named on the standard error output."""
    for group, module in MODULES.items():
        try:
            kinds = import_module(f"tests.models.{module}").KINDS
        except ModuleNotFoundError as error:
            print(f"{group}: {error}; its extra is in pyproject.toml", file=sys.stderr)
            continue
        for name, make in kinds.items():
            yield group, name, make
