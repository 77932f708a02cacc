"""The plugins of OpenVINO."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from bridge.check.engines.protocol import (
    CALL,
    STATES,
    EngineError,
    Feeds,
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
from bridge.vocabulary.elements import BY_IR, Element, element_of


class OpenVino:
    """A plugin of OpenVINO, told to compute in f32 and no less, unless `plain` is not set."""

    name = "OpenVINO"
    precision = "f32"

    def __init__(self, threads: int | None = None, plain: bool = True, plugin: str = "CPU") -> None:
        self.plugin = plugin
        self._module = optional_module("openvino")
        self.version = self._module.__version__.split("-")[0]
        try:
            self._core = self._module.Core()
            known = self._core.get_property(self.plugin, "SUPPORTED_PROPERTIES")
        except Exception as error:  # no memory for its threads, for example
            raise EngineError(f"OpenVINO cannot start: {message(error)}") from error
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
        self._config: RunResults = {k: v for k, v in wanted.items() if k in known}
        if "KV_CACHE_PRECISION" in known:
            self._config["KV_CACHE_PRECISION"] = self.precision
        if not plain:
            self._config = {}
        if threads and self.plugin == "CPU":
            self._config["INFERENCE_NUM_THREADS"] = threads

    def load(self, source: Loadable) -> Session:
        """See `Engine.load`; a ModelProto or .onnx goes through OpenVINO's own converter."""
        try:
            model = self._core.read_model(content_of(source))
            compiled = partial(self._core.compile_model, model, self.plugin, self._config)
            return _OpenVinoSession(self._module, model, compiled, _elements_said(model, source))
        except EngineError:
            raise
        except Exception as error:
            raise EngineError(f"OpenVINO: {message(error)}") from error


def _elements_said(model: Any, source: Loadable) -> list[Element | None]:
    """The types of the outputs of an IR of version 10 by its file, and none for other models.
    OpenVINO reads some as others: f16 and f64 as f32, i64 as i32, bool as f32."""
    if not model.has_rt_info(["version"]) or model.get_rt_info(["version"]).value != 10:
        return []
    from bridge.ir_format.frontend import read

    return [value.element for value in read(Path(cast(str, source))).graph.outputs]


class _OpenVinoSession(Session):
    """A model of which the file says `elements` of its outputs, where OpenVINO may have others.
    Feeds and results have the types of the file.

    A new request of a compiled model is not fresh: the plugin keeps memory of the graph, which all
    requests share. Compiling the model again is. Importing what was exported before the first run
    takes a fifth of the time, but fails for variables with a computed start."""

    keeps = True

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
        self._requests: dict[frozenset[str] | None, Any] = {}
        self.renew()
        # The model that was read still has the types and ranks that compilation may change.
        self.inputs = _infos(model.inputs)
        self.outputs = _infos(model.outputs)

    def renew(self) -> None:
        """See `Session.renew`."""
        if None in self._requests:  # which has not run yet
            return
        try:
            self._requests = {None: self._compile().create_infer_request()}
        except Exception as error:
            raise EngineError(f"OpenVINO: {message(error)}") from error

    def run(self, feeds: Feeds) -> RunResults:
        """See `Session.run`."""
        states = {} if CALL in feeds else feeds.get(STATES, {})
        taken = self._taken if self._elements else [None] * len(self.inputs)
        tensors = [
            self._tensor(port, _as(element, feed_of(port, feeds)))
            for port, element in zip(self.inputs, taken, strict=True)
        ]
        try:
            request = self._request(frozenset(states))
            if not feeds.get(CALL):
                request.reset_state()
            variables = {one.name: one for one in request.query_state()}
            for name, value in states.items():
                variables[name].state = self._tensor(ValueInfo(name), value)
            for position, tensor in enumerate(tensors):
                request.set_input_tensor(position, tensor)
            request.infer()
            results: RunResults = {
                port.name: self._array(request.get_output_tensor(position))
                for position, port in enumerate(self.outputs)
            }
            for name, element in zip(results, self._elements, strict=False):
                results[name] = _as(element, results[name])
            if STATES in feeds:
                after = {name: self._array(one.state) for name, one in variables.items()}
                results[STATES] = after
            return results
        except EngineError:
            raise
        except Exception as error:
            raise EngineError(f"OpenVINO: {message(error)}") from error

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
            data = np.frombuffer(bytes_of(value), np.uint8)
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
        return array_of(tensor.data.tobytes() if tensor.size else b"", element, shape)


def _as(element: Element | None, value: Any) -> Any:
    """A tensor in another type; the value itself if the type is not known."""
    if element is None or not isinstance(value, np.ndarray):
        return value
    return value.astype(element.dtype, copy=False)


def _infos(ports: Sequence[Any]) -> tuple[ValueInfo, ...]:
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
