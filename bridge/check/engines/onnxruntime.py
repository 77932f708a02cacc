"""onnxruntime on the CPU."""

import ctypes
import math
import re
from collections.abc import Sequence
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from bridge.check.engines.protocol import (
    EngineError,
    Feeds,
    LacksOperatorError,
    Loadable,
    RunResults,
    Session,
    ValueInfo,
    array_of,
    bytes_of,
    content_of,
    feed_of,
    message,
    optional_module,
)
from bridge.onnx_format.notes import HINTS
from bridge.vocabulary.elements import BY_ONNX, element_of


class OnnxRuntime:
    """onnxruntime on the CPU with all graph optimisations off, unless `plain` is not set. Without
    an `arena`, it takes all memory from the system, and so gets what `memory_filled` fills."""

    name = "onnxruntime"

    def __init__(self, threads: int | None = None, plain: bool = True, arena: bool = True) -> None:
        self._module = optional_module("onnxruntime")
        self.version = self._module.__version__
        self._threads, self._plain, self._arena = threads, plain, arena

    def load(self, source: Loadable) -> Session:
        """See `Engine.load`; raises LacksOperatorError where onnxruntime has no kernel."""
        options = self._module.SessionOptions()
        if self._plain:
            level = self._module.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.graph_optimization_level = level
        options.log_severity_level, options.enable_cpu_mem_arena = 4, self._arena
        # Threads that wait for work in a loop cost more than the small models of a check do.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        if self._threads:
            options.intra_op_num_threads = options.inter_op_num_threads = self._threads
        try:
            source = _in_floats(source, options) if self._plain else source
            session = self._module.InferenceSession(
                content_of(source), options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            # A name that is no text is met here.
            return _OnnxRuntimeSession(self._module, session)
        except Exception as error:
            kind = LacksOperatorError if _LACKS.search(str(error)) else EngineError
            raise kind(f"onnxruntime: {message(error)}") from error


def _in_floats(source: Loadable, options: Any) -> Loadable:
    """The model without hints: `accuracy_level` lets a product of floats round them to 8 bits."""
    if not isinstance(source, str | Path):
        return source
    with open(source, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        if data.find(HINTS[0].encode()) < 0:
            return source
    import onnx

    model = onnx.load(source, load_external_data=False)
    for part in (model.graph, *model.functions):
        _drop_hints(part.node)
    options.add_session_config_entry(_CONSTANTS_BESIDE, str(Path(source).parent))
    return model


def _drop_hints(nodes: Any) -> None:
    for node in nodes:
        for one in [one for one in node.attribute if one.name in HINTS]:
            node.attribute.remove(one)
        for one in node.attribute:
            for graph in (one.g, *one.graphs):
                _drop_hints(graph.node)


_CONSTANTS_BESIDE = "session.model_external_initializers_file_folder_path"


# What onnxruntime says when it has no kernel, operator, type or version; a model that merely
# breaks a rule reads otherwise and must not be taken for one that onnxruntime does not know.
_LACKS = re.compile(
    r"NOT_IMPLEMENTED"
    r"|is not a registered function/op"
    r"|is not currently registered or supported"
    r"|Unrecognized attribute: \w+ for operator"
    r"|Unsupported model IR version"
    r"|only \*guarantees\* support for models stamped with official released onnx opset"
    r"|Batchwise recurrent operations \(layout == 1\) are not supported"
)


class _OnnxRuntimeSession(Session):
    def __init__(self, module: Any, session: Any) -> None:
        self._module = module
        self._session = session
        self.metadata = session.get_modelmeta().custom_metadata_map
        self.inputs = _infos(session.get_inputs())
        self.outputs = _infos(session.get_outputs())
        self._defaults = _infos(session.get_overridable_initializers())
        self._gives_tensors = all(p.type.startswith("tensor(") for p in session.get_outputs())

    def run(self, feeds: Feeds) -> RunResults:
        ports = (*self.inputs, *(port for port in self._defaults if port.name in feeds))
        values = {port.name: self._value(port, feed_of(port, feeds)) for port in ports}
        names = [port.name for port in self.outputs]
        options = self._module.RunOptions()
        options.log_severity_level = 4
        plain = self._gives_tensors and all(
            isinstance(value, self._module.OrtValue) for value in values.values()
        )
        run = self._session.run_with_ort_values if plain else self._session.run
        try:
            results = run(names, values, options)
        except Exception as error:
            raise EngineError(f"onnxruntime: {message(error)}") from error
        return {name: self._array(value) for name, value in zip(names, results, strict=True)}

    def _value(self, port: ValueInfo, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OSU":
            return value
        # Releases before 1.20 take types of numpy's own alone.
        own = value.dtype.type.__module__ == "numpy"
        kind = value.dtype.type if own else element_of(value.dtype).onnx
        try:
            result = self._module.OrtValue.ortvalue_from_shape_and_type(list(value.shape), kind)
        except Exception as error:
            raise EngineError(f"onnxruntime: {port.name}: {message(error)}") from error
        if value.size:
            data = bytes_of(value)
            ctypes.memmove(result.data_ptr(), data, len(data))
        return result

    def _array(self, value: Any) -> Any:
        if not isinstance(value, self._module.OrtValue):
            return value
        if value.data_type() == "tensor(string)":
            return value.numpy()
        element, shape = BY_ONNX[value.element_type()], value.shape()
        size = element.nbytes(math.prod(shape))
        data = ctypes.string_at(value.data_ptr(), size) if size else b""
        return array_of(data, element, shape)


def _infos(ports: Sequence[Any]) -> tuple[ValueInfo, ...]:
    # onnxruntime shows an unknown rank and a scalar alike, as an empty list of dimensions.
    return tuple(ValueInfo(port.name, tuple(port.shape) or None) for port in ports)
