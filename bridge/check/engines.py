"""The engines that run models behind one small protocol: onnxruntime, OpenVINO, onnx.reference.

Tensors are numpy arrays on every side; strings have the type `object`. `ml_dtypes` has the types
that numpy lacks: bfloat16, the 8-bit floats, everything below eight bits. A sequence is a list, an
absent optional is None.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

import numpy as np

from bridge.errors import BridgeError
from bridge.neutral.tensor import pack, unpack
from bridge.vocabulary.elements import BY_IR, BY_ONNX, Element, element_of

if TYPE_CHECKING:
    import onnx

Loadable: TypeAlias = "str | Path | onnx.ModelProto"


class EngineError(BridgeError):
    """An engine is missing, cannot take a model, or fails while it runs it."""


class EndlessError(EngineError):
    """A run did not end in its time, and was ended."""


class UndefinedCallError(EngineError):
    """An input says two things of the states, which a model that has one of them cannot be told."""


class LacksOperatorError(EngineError):
    """The engine has no implementation of an operator, type, or version in the model."""


@dataclass(frozen=True)
class ValueInfo:
    """An input or output of a loaded model, as its engine declares it.

    `shape` is None for an unknown rank and for what is no tensor, and holds an int, a symbol, or
    None for each dimension. `aliases` are further names that feeds may use.
    """

    name: str
    shape: tuple[int | str | None, ...] | None = None
    aliases: frozenset[str] = frozenset()


class Session(Protocol):
    """A model that is ready to run."""

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Run once; returns every output by name, in the order of `outputs`."""


class LoadedSession(Session, Protocol):
    """A file in an engine. `metadata` is that of an ONNX model."""

    metadata: Mapping[str, str]


Contents = Mapping[str, np.ndarray]
"""The contents of variables, by their ids."""

CallResults = tuple[dict[str, Any], Contents]
"""The outputs of a run, and what the variables hold after it."""


class StatefulSession(Session, Protocol):
    """A session whose model has variables."""

    def run_row(self, feeds: Sequence[Mapping[str, Any]], states: Contents) -> list[CallResults]:
        """The results of calls in a row. The first begins anew, with `states` in the variables of
        these ids. Raises EngineError."""


def is_empty(feeds: Mapping[str, Any]) -> bool:
    """Whether an input has a tensor without elements."""
    return any(isinstance(value, np.ndarray) and not value.size for value in feeds.values())


def run_each(
    session: Session, feeds: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any] | EngineError]:
    """The outputs for each of several inputs, or why there are none. A session that runs several at
    once in less time has a method of this name."""
    at_once = getattr(session, "run_each", None)
    if at_once is not None:
        return cast(list[dict[str, Any] | EngineError], at_once(feeds))
    found: list[dict[str, Any] | EngineError] = []
    for feed in feeds:
        # Another input would take as long again.
        ended = not found or not isinstance(found[-1], EndlessError)
        found.append(_run(session, feed) if ended else found[-1])
    return found


def _run(session: Session, feeds: Mapping[str, Any]) -> dict[str, Any] | EngineError:
    try:
        return session.run(feeds)
    except EngineError as error:
        return error


class Engine(Protocol):
    """Something that loads models of some formats and runs them."""

    name: str
    version: str

    def load(self, source: Loadable) -> LoadedSession:
        """Load a model from a path, or from a ModelProto where the engine takes ONNX."""


def _optional_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise EngineError(
            f"{name} is not installed; install the extra 'check': "
            "pip install 'onnx-openvino-bridge[check]'"
        ) from error
    except ImportError as error:
        raise EngineError(f"{name} cannot be imported: {error}") from error


def _message(error: Exception) -> str:
    """The part of an engine's message that says something, without C++ source locations."""
    text = re.sub(r"\n+\s*", " ", str(error)).strip()
    text = re.sub(r"Exception from src/\S+:\d+:\s*", "", text)
    # A failure inside an If or Loop is wrapped once for each of them.
    text = re.sub(r"^.*(?=Non-zero status code returned while running)", "", text)
    text = re.sub(r"\[ONNXRuntimeError\] : \d+ : (\w+) : ", r"\1: ", text)
    return re.sub(r"/\S+/onnxruntime/core/\S+ ", "", text) or type(error).__name__


def _opened(source: Loadable) -> str | bytes:
    """A model as engines open it: its path, or its bytes where it is in memory."""
    return str(source) if isinstance(source, str | Path) else source.SerializeToString()


def _packed(array: np.ndarray) -> bytes:
    """Row-major little-endian bytes; elements below eight bits packed, first one lowest."""
    return pack(array, element_of(array.dtype)).tobytes()


def _unpacked(data: bytes, element: Element, shape: Sequence[int]) -> np.ndarray:
    """The array of `shape` and `element` in bytes packed like `_packed`."""
    return np.array(unpack(data, element, math.prod(shape)).reshape(shape))


def feed_of(port: ValueInfo, feeds: Mapping[str, Any]) -> Any:
    """What `feeds` has for an input; EngineError where that is nothing."""
    for name in (port.name, *sorted(port.aliases)):
        if name in feeds:
            value = feeds[name]
            return value if value is None or isinstance(value, list) else np.asarray(value)
    raise EngineError(f"input '{port.name}' is not among the feeds: {', '.join(feeds) or 'none'}")


# ------------------------------------------------------------------------------------------------


class OnnxRuntime:
    """onnxruntime on the CPU with all graph optimisations off, unless `plain` is not set."""

    name = "onnxruntime"

    def __init__(self, threads: int | None = None, plain: bool = True) -> None:
        self._module = _optional_module("onnxruntime")
        self.version = self._module.__version__
        self._threads, self._plain = threads, plain

    def load(self, source: Loadable) -> LoadedSession:
        """See `Engine.load`; raises LacksOperatorError where onnxruntime has no kernel."""
        options = self._module.SessionOptions()
        if self._plain:
            level = self._module.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.graph_optimization_level = level
        options.log_severity_level = 4
        # Threads that wait for work in a loop cost more than the small models of a check do.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.inter_op.allow_spinning", "0")
        if self._threads:
            options.intra_op_num_threads = options.inter_op_num_threads = self._threads
        try:
            session = self._module.InferenceSession(
                _opened(source), options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            # A name that is no text is met here.
            return _OnnxRuntimeSession(self._module, session)
        except Exception as error:
            kind = LacksOperatorError if _ORT_LACKS.search(str(error)) else EngineError
            raise kind(f"onnxruntime: {_message(error)}") from error


# What onnxruntime says when it has no kernel, operator, type or version; a model that merely
# breaks a rule reads otherwise and must not be taken for one that onnxruntime does not know.
_ORT_LACKS = re.compile(
    r"NOT_IMPLEMENTED"
    r"|is not a registered function/op"
    r"|is not currently registered or supported"
    r"|Unrecognized attribute: \w+ for operator"
    r"|Unsupported model IR version"
    r"|only \*guarantees\* support for models stamped with official released onnx opset"
    r"|Batchwise recurrent operations \(layout == 1\) are not supported"
)


class _OnnxRuntimeSession:
    def __init__(self, module: Any, session: Any) -> None:
        self._module = module
        self._session = session
        self.metadata: Mapping[str, str] = session.get_modelmeta().custom_metadata_map
        self.inputs = _onnxruntime_infos(session.get_inputs())
        self.outputs = _onnxruntime_infos(session.get_outputs())
        self._defaults = _onnxruntime_infos(session.get_overridable_initializers())
        self._gives_tensors = all(p.type.startswith("tensor(") for p in session.get_outputs())

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
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
            raise EngineError(f"onnxruntime: {_message(error)}") from error
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
            raise EngineError(f"onnxruntime: {port.name}: {_message(error)}") from error
        if value.size:
            data = _packed(value)
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
        return _unpacked(data, element, shape)


def _onnxruntime_infos(ports: Sequence[Any]) -> tuple[ValueInfo, ...]:
    # onnxruntime shows an unknown rank and a scalar alike, as an empty list of dimensions.
    return tuple(ValueInfo(port.name, tuple(port.shape) or None) for port in ports)


# ------------------------------------------------------------------------------------------------


class Reference:
    """`onnx.reference`, the standard's own evaluator. Slow; knows every operator and type."""

    name = "onnx.reference"

    def __init__(self) -> None:
        self.version = _optional_module("onnx").__version__

    def load(self, source: Loadable) -> LoadedSession:
        """See `Engine.load`."""
        import onnx
        from onnx.reference import ReferenceEvaluator

        from bridge.check.reference import CORRECTED

        model = onnx.load(source) if isinstance(source, str | Path) else source
        try:
            return _ReferenceSession(model, ReferenceEvaluator(model, new_ops=CORRECTED))
        except Exception as error:
            raise EngineError(f"onnx.reference: {_message(error)}") from error


class _ReferenceSession:
    def __init__(self, model: onnx.ModelProto, evaluator: Any) -> None:
        self._evaluator = evaluator
        self.metadata: Mapping[str, str] = {e.key: e.value for e in model.metadata_props}
        constants = {tensor.name for tensor in model.graph.initializer}
        self.inputs = tuple(
            _onnx_info(info) for info in model.graph.input if info.name not in constants
        )
        self.outputs = tuple(_onnx_info(info) for info in model.graph.output)
        self._defaults = {info.name for info in model.graph.input} & constants

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        values = {port.name: feed_of(port, feeds) for port in self.inputs}
        values |= {name: feeds[name] for name in self._defaults if name in feeds}
        try:
            with np.errstate(all="ignore"):
                results = self._evaluator.run(None, values)
        except Exception as error:
            raise EngineError(f"onnx.reference: {_message(error)}") from error
        return {port.name: value for port, value in zip(self.outputs, results, strict=True)}


def _onnx_info(info: onnx.ValueInfoProto) -> ValueInfo:
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return ValueInfo(info.name)
    dims = tensor.shape.dim
    shape = (dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims)
    return ValueInfo(info.name, tuple(shape))


# ------------------------------------------------------------------------------------------------


class OpenVino:
    """A plugin of OpenVINO, told to compute in f32 and no less, unless `plain` is not set. Without
    `integers` it has no kernels of 8 bits, which round more often than a quantised model says."""

    name = "OpenVINO"
    precision = "f32"
    plugin = "CPU"
    halves = False
    """Whether the plugin computes in 16-bit floats unless it is told otherwise."""

    def __init__(
        self, threads: int | None = None, plain: bool = True, integers: bool = True
    ) -> None:
        self._module = _optional_module("openvino")
        self.version = self._module.__version__.split("-")[0]
        try:
            self._core = self._module.Core()
            known = self._core.get_property(self.plugin, "SUPPORTED_PROPERTIES")
        except Exception as error:  # no memory for its threads, for example
            raise EngineError(f"OpenVINO cannot start: {_message(error)}") from error
        devices = {name.partition(".")[0] for name in self._core.available_devices}
        if self.plugin not in devices:
            raise EngineError(f"OpenVINO has no {self.plugin} here")
        self.device = str(self._core.get_property(self.plugin, "FULL_DEVICE_NAME"))
        # Left to itself the plugin computes in f16 or bf16 where it can, and rounds what meets
        # weights of few bits, and caches of attention, to 8 bits. Releases of 2024 take no number
        # for the former.
        wanted = {
            "INFERENCE_PRECISION_HINT": self.precision,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
        }
        self._config: dict[str, Any] = {k: v for k, v in wanted.items() if k in known}
        if "KV_CACHE_PRECISION" in known:
            self._config["KV_CACHE_PRECISION"] = self.precision
        if not plain:
            self._config = {}
        if threads and self.plugin == "CPU":
            self._config["INFERENCE_NUM_THREADS"] = threads
        if not integers and self.plugin == "CPU":
            self._config["LP_TRANSFORMS_MODE"] = "NO"

    def load(self, source: Loadable) -> LoadedSession:
        """See `Engine.load`; a ModelProto or .onnx goes through OpenVINO's own converter."""
        try:
            model = self._core.read_model(_opened(source))
            compiled = partial(self._core.compile_model, model, self.plugin, self._config)
            return _OpenVinoSession(self._module, model, compiled, _elements_said(model, source))
        except Exception as error:
            raise EngineError(f"OpenVINO: {_message(error)}") from error


def _elements_said(model: Any, source: Loadable) -> list[Element | None]:
    """The types of the outputs of an IR of version 10 by its file, and none for other models.
    OpenVINO reads some as others: f16 and f64 as f32, i64 as i32, bool as f32."""
    if not model.has_rt_info(["version"]) or model.get_rt_info(["version"]).value != 10:
        return []
    from bridge.ir_format.frontend import read

    return [value.element for value in read(Path(cast(str, source))).graph.outputs]


class OpenVinoGpu(OpenVino):
    """OpenVINO's GPU plugin, where it has a device."""

    plugin = "GPU"
    halves = True


class OpenVinoNpu(OpenVino):
    """OpenVINO's NPU plugin, where it has a device."""

    plugin = "NPU"
    halves = True


class _OpenVinoSession:
    """A model of which the file says `elements` of its outputs, where OpenVINO may have others.
    Feeds and results have the types of the file."""

    def __init__(
        self,
        module: Any,
        model: Any,
        compile_model: Callable[[], Any],
        elements: Sequence[Element | None] = (),
    ) -> None:
        self._module = module
        self._elements = elements
        self._taken = [BY_IR.get(port.get_element_type().get_type_name()) for port in model.inputs]
        self._compile = compile_model
        self._requests: dict[frozenset[str] | None, Any] = {
            None: compile_model().create_infer_request()
        }
        self.metadata: Mapping[str, str] = {}
        # The model that was read still has the types and ranks that compilation may change.
        self.inputs = _openvino_infos(model.inputs)
        self.outputs = _openvino_infos(model.outputs)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        return self._call({}, feeds)[0]

    def run_row(self, feeds: Sequence[Mapping[str, Any]], states: Contents) -> list[CallResults]:
        first, *later = feeds
        return [self._call(states, first), *(self._call({}, feed, False) for feed in later)]

    def _call(self, states: Contents, feeds: Mapping[str, Any], anew: bool = True) -> CallResults:
        taken = self._taken if self._elements else [None] * len(self.inputs)
        tensors = [
            self._tensor(port, _as(element, feed_of(port, feeds)))
            for port, element in zip(self.inputs, taken, strict=True)
        ]
        try:
            request = self._request(frozenset(states))
            if anew:
                request.reset_state()
            variables = {one.name: one for one in request.query_state()}
            for name, value in states.items():
                variables[name].state = self._tensor(ValueInfo(name), value)
            for position, tensor in enumerate(tensors):
                request.set_input_tensor(position, tensor)
            request.infer()
            results = {
                port.name: self._array(request.get_output_tensor(position))
                for position, port in enumerate(self.outputs)
            }
            for name, element in zip(results, self._elements, strict=False):
                results[name] = _as(element, results[name])
            return results, {name: self._array(one.state) for name, one in variables.items()}
        except EngineError:
            raise
        except Exception as error:
            raise EngineError(f"OpenVINO: {_message(error)}") from error

    def _request(self, states: frozenset[str]) -> Any:
        """The request for runs in which these variables are set. OpenVINO 2026.4 takes the size of
        a variable that was set for that of its start, in all requests of a compiled model."""
        if None in self._requests:
            self._requests = {states: self._requests[None]}
        if states not in self._requests:
            self._requests[states] = self._compile().create_infer_request()
        return self._requests[states]

    def _tensor(self, port: ValueInfo, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            raise EngineError(f"OpenVINO: input '{port.name}' takes a tensor, not {value!r}")
        if value.dtype.kind in "OSU":
            return self._module.Tensor(np.ascontiguousarray(value.astype(str)))
        spelled = element_of(value.dtype).ir
        if spelled is None:
            raise EngineError(f"OpenVINO has no element type {value.dtype} (input '{port.name}')")
        tensor = self._module.Tensor(
            getattr(self._module.Type, spelled), self._module.Shape(list(value.shape))
        )
        if value.size:
            data = np.frombuffer(_packed(value), np.uint8)
            tensor.data.reshape(-1).view(np.uint8)[:] = data
        return tensor

    def _array(self, tensor: Any) -> np.ndarray:
        spelled = tensor.element_type.get_type_name()
        shape = tuple(tensor.shape)
        if spelled == "string":
            return np.asarray(tensor.str_data).astype(object).reshape(shape)
        element = BY_IR.get(spelled)
        if element is None or element.onnx is None:
            raise EngineError(f"OpenVINO: an output of type {spelled} has no array type")
        return _unpacked(tensor.data.tobytes() if tensor.size else b"", element, shape)


def _as(element: Element | None, value: Any) -> Any:
    """A tensor in another type; the value itself if the type is not known."""
    if element is None or not isinstance(value, np.ndarray):
        return value
    return value.astype(element.dtype, copy=False)


def _openvino_infos(ports: Sequence[Any]) -> tuple[ValueInfo, ...]:
    """Ports under one tensor name each, no two the same: outputs that are one tensor share all
    their names. Without tensor names the layer's own name serves."""
    taken: set[str] = set()
    result = []
    for port in ports:
        layer, names = port.get_node().get_friendly_name(), sorted(port.get_names())
        wishes = [layer, *names] if layer in names else [*names, layer]
        name = next((wish for wish in wishes if wish not in taken), layer)
        taken.add(name)
        partial = port.get_partial_shape()
        shape = None
        if partial.rank.is_static:
            shape = tuple(None if dim.is_dynamic else dim.get_length() for dim in partial)
        result.append(ValueInfo(name, shape, frozenset({*names, layer})))
    return tuple(result)


# ------------------------------------------------------------------------------------------------


class EvaluatedOpenVino(OpenVino):
    """OpenVINO's reference functions, which have nothing of the CPU plugin. Not every layer has
    one."""

    name = "OpenVINO's reference functions"

    def load(self, source: Loadable) -> LoadedSession:
        """See `Engine.load`."""
        try:
            model = self._core.read_model(str(source))
        except Exception as error:
            raise EngineError(f"OpenVINO: {_message(error)}") from error
        return _EvaluatedSession(self._module, model)


class _EvaluatedSession(_OpenVinoSession):
    def __init__(self, module: Any, model: Any) -> None:
        self._module, self._model = module, model
        self.metadata = {}
        self.inputs = _openvino_infos(model.inputs)
        self.outputs = _openvino_infos(model.outputs)

    def run_row(self, feeds: Sequence[Mapping[str, Any]], states: Contents) -> list[CallResults]:
        raise EngineError("OpenVINO: its reference functions keep no states")

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        tensors = [self._tensor(port, feed_of(port, feeds)) for port in self.inputs]
        results = [
            self._module.Tensor(port.get_element_type(), self._module.Shape([0]))
            for port in self._model.outputs
        ]
        try:
            known = self._model.evaluate(results, tensors)
        except Exception as error:
            raise EngineError(f"OpenVINO: {_message(error)}") from error
        if not known:
            raise EngineError("OpenVINO: a layer has no reference function")
        return {
            port.name: self._array(tensor)
            for port, tensor in zip(self.outputs, results, strict=True)
        }
