"""`onnx.reference`, the standard's own evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.check.engines.protocol import (
    EngineError,
    Feeds,
    Loadable,
    RunResults,
    Session,
    ValueInfo,
    feed_of,
    message,
    optional_module,
)

if TYPE_CHECKING:
    import onnx


class Reference:
    """`onnx.reference`, the standard's own evaluator. Slow; knows every operator and type."""

    name = "onnx.reference"

    def __init__(self) -> None:
        self.version = optional_module("onnx").__version__

    def load(self, source: Loadable) -> Session:
        """See `Engine.load`."""
        import onnx
        from onnx.reference import ReferenceEvaluator

        from bridge.check.engines.corrected import CORRECTED

        model = onnx.load(source) if isinstance(source, str | Path) else source
        try:
            return _ReferenceSession(model, ReferenceEvaluator(model, new_ops=CORRECTED))
        except Exception as error:
            raise EngineError(f"onnx.reference: {message(error)}") from error


class _ReferenceSession(Session):
    def __init__(self, model: onnx.ModelProto, evaluator: Any) -> None:
        self._evaluator = evaluator
        self.metadata = {e.key: e.value for e in model.metadata_props}
        constants = {tensor.name for tensor in model.graph.initializer}
        self.inputs = tuple(_info(info) for info in model.graph.input if info.name not in constants)
        self.outputs = tuple(_info(info) for info in model.graph.output)
        self._defaults = {info.name for info in model.graph.input} & constants

    def run(self, feeds: Feeds) -> RunResults:
        values = {port.name: feed_of(port, feeds) for port in self.inputs}
        values |= {name: feeds[name] for name in self._defaults if name in feeds}
        try:
            with np.errstate(all="ignore"):
                results = self._evaluator.run(None, values)
        except Exception as error:
            raise EngineError(f"onnx.reference: {message(error)}") from error
        return {port.name: value for port, value in zip(self.outputs, results, strict=True)}


def _info(info: onnx.ValueInfoProto) -> ValueInfo:
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return ValueInfo(info.name)
    dims = tensor.shape.dim
    shape = (dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims)
    return ValueInfo(info.name, tuple(shape))
