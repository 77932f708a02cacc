"""Refuses, all at once, the operators and types that the device of a file does not have.

A file that the engine does not open is worse than a refusal that says what would help.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.builder import Target
from bridge.neutral.clone import clone_model
from bridge.neutral.dataflow import Facts
from bridge.neutral.graph import Graph, Model, Node, Value, loop_kind
from bridge.neutral.inference import infer_graph, is_inferred
from bridge.neutral.inference.known import bounding
from bridge.neutral.ports import Carried
from bridge.neutral.types import (
    ANY,
    STRING,
    Interval,
    format_shape,
    is_static,
    size_of,
    with_dims,
)
from bridge.operators.spelling import choose
from bridge.passes.context import Context
from bridge.passes.legality import found
from bridge.quirks.known import KnownAt, WhenKnown
from bridge.targets import Device, device_of, read_since
from bridge.targets.branch_inputs import is_aligned, is_parted
from bridge.vocabulary import has_trait, ir_opset

ON_STRINGS = frozenset({
    "Concat", "Constant", "Flatten", "Gather", "Identity", "Reshape", "Shape", "Size", "Squeeze",
    "Transpose", "Unsqueeze",
})  # fmt: skip
"""The operators that OpenVINO runs on strings, as of 2026.4. It opens no model with most others,
and some of them end the process."""

LARGEST = 1 << 33
"""The bytes that a result of constants may have: OpenVINO computes it when it opens a model."""


def check_limits(model: Model, context: Context) -> None:
    """Raises UnsupportedError with all that the device does not take."""
    device = device_of(context.options)
    findings = list(refusals(model, context.options))
    if findings:
        title = str(context.target)
        if device.shapes != "open" or context.options.get("openvino"):
            release = context.options.get("openvino") or ""
            title = f"IR for {device.engine} {release}".strip()
        raise UnsupportedError(title, findings)


def refusals(model: Model, options: Mapping[str, Any]) -> Iterator[Unsupported]:
    """The parts of a model for IR that the chosen device does not take."""
    device = device_of(options)
    graph = _inferred(model) if device.shapes == "bounded" else model.graph
    for value in graph.inputs:
        for why in (*_types(device, [value]), *_sizes(device, [value])):
            yield Unsupported("Parameter", f'graph / input "{value.name}"', why + _help(value))

    known = Facts(WhenKnown(), graph)

    def is_known(value: Value) -> bool:
        return known.of(value) < KnownAt.UNKNOWN

    def faults(node: Node) -> Iterator[str]:
        yield from _refusals(node)
        if device.shapes != "open":
            yield from _of_device(node, device, is_known)
        if options.get("openvino"):
            yield from _of_release(node, options)

    yield from found(graph, faults)


def _inferred(model: Model) -> Graph:
    """A copy of the graph with the sizes that follow from its inputs: a symbol that a file declares
    hides the bounds of a size."""
    graph = clone_model(model).graph
    for value in graph.computed():
        value.declared = with_dims(value.declared, lambda dim: ANY if isinstance(dim, str) else dim)
    with bounding():
        infer_graph(graph)
    return graph


def _refusals(node: Node) -> Iterator[str]:
    """Why no engine of OpenVINO takes a node."""
    inputs, outputs = node.operands, node.outputs
    weights = node.input(1) if has_trait(node.op, "fixed_weights") else None
    if weights is not None and not is_static(weights.shape):
        yield (
            f"its weights {weights.type} have open sizes, which OpenVINO does not take; "
            "give the shapes of the inputs that decide them, with `input_shapes`"
        )
    if all(value.constant is not None for value in inputs):
        for size in map(_bytes_of, outputs):
            if size > LARGEST:
                yield f"its result of constants has {size} bytes"
    if node.op == "Loop" and any(v.element is STRING and not is_static(v.shape) for v in inputs):
        yield "OpenVINO's Loop takes no strings of open size; give their shape (`input_shapes`)"
    if node.bodies:
        return
    is_open = any([value.rank is None for value in outputs])
    if is_open and all(value.rank is not None for value in inputs) and is_inferred(node):
        yield (
            "the length of one of its inputs decides the rank of its result, and OpenVINO does not "
            "run such a model; give the shape of the graph's input behind it (`input_shapes`)"
        )
    if node.op not in ON_STRINGS and any([v.element is STRING for v in (*inputs, *outputs)]):
        yield "OpenVINO does not compute with strings"


def _of_device(node: Node, device: Device, is_known: Callable[[Value], bool]) -> Iterator[str]:
    type, version = _layer(node)
    for lacking in {type, f"{type} of {version}"} & device.lacks:
        yield (
            f"{device.engine} has no {lacking}; `values` and `input_shapes` for the inputs that "
            "decide it may fold it, else run this part elsewhere"
        )
    if device.unrolls == "all":
        from bridge.targets.gpu import faults_of

        yield from faults_of(node, is_known)
    yield from _types(device, node.outputs)
    operands = node.operands
    if not any(map(_is_unbounded, operands)):  # Otherwise an earlier node is reported.
        for why in _sizes(device, node.outputs):
            yield (
                f"{why}; `input_shapes` or `values` for the inputs that decide it may help"
                + (', or `ifs="select"`' if node.op == "If" else "")
            )
    yield from _of_loop(node, device, operands)
    fits = {"order": is_aligned, "producer": is_parted}.get(device.branches)
    if fits is not None and node.op == "If" and not fits(node):
        yield f"{device.engine} gives its branches other inputs; convert the model for it"


def _of_loop(node: Node, device: Device, operands: Iterable[Value]) -> Iterator[str]:
    """Why a device does not take a Loop."""
    if node.op != "Loop":
        return
    if not device.quirks and _is_iterator(node) and any(map(_is_iterator, node.body.graph.walk())):
        yield (
            "OpenVINO reads no TensorIterator, GRUSequence, LSTMSequence or RNNSequence in a "
            "TensorIterator; run this part elsewhere"
        )
    if device.shapes == "bounded" and not any(map(_is_unbounded, operands)):
        states = [v for v, port in node.body.entries() if isinstance(port, Carried)]
        for why in _sizes(device, states):
            yield f"{why}; `input_shapes` or `values` for the inputs that decide it may help"
    if device.trip_counts and not _is_counted(node):
        yield (
            f"{device.engine} wants a constant trip count; give the inputs that decide it with "
            "`values` or `input_shapes`"
        )


def _is_iterator(node: Node) -> bool:
    """Whether OpenVINO has a TensorIterator for a node."""
    if node.op == "Loop":
        return loop_kind(node) != "count"
    return node.op in ("GRUSequence", "LSTMSequence", "RNNSequence")


def _of_release(node: Node, options: Mapping[str, Any]) -> Iterator[str]:
    type, version = _layer(node)
    if since := read_since(type, version, options):
        yield (
            f"OpenVINO {options['openvino']} does not read {type} of {version}, which is read from "
            f"{since} on"
        )


def _layer(node: Node) -> tuple[str, str]:
    """The type and the operator set of the layer that a node is written as; "" if it is none."""
    if "layer" in (node.extras or {}):
        type, version = (node.extras or {})["layer"]
        return type, version
    if node.bodies or node.op == "Constant":
        return node.op, ""
    spelling, _ = choose(node, Target("ir"))
    return (spelling.type, ir_opset(spelling.version)) if spelling is not None else ("", "")


def _types(device: Device, values: Iterable[Value]) -> Iterator[str]:
    for value in values:
        if value.element is not None and value.element.ir in device.types:
            yield f"{device.engine} has no element type {value.element.ir}"


def _sizes(device: Device, values: Iterable[Value]) -> Iterator[str]:
    for value in values:
        if device.shapes != "open" and value.element is not None and value.shape is None:
            yield f'"{value.name}" has an unknown rank, which {device.engine} does not take'
        elif device.shapes == "bounded" and _is_unbounded(value):
            yield (
                f'"{value.name}" has the shape {format_shape(value.shape)}; {device.engine} wants '
                "sizes that are known or have an upper bound"
            )


def _help(value: Value) -> str:
    """The option that gives an input of open sizes a shape."""
    if value.shape is None or not _is_unbounded(value):
        return ""
    dims = ("1..8" if _is_open(dim) else str(dim) for dim in value.shape)
    opened = (
        dim if isinstance(dim, str) else f"dimension {place}"
        for place, dim in enumerate(value.shape)
        if _is_open(dim)
    )  # fmt: skip
    return (
        f"; give {', '.join(dict.fromkeys(opened))} the largest sizes that you need, for example "
        f"--input-shape '{value.name}=[{','.join(dims)}]'"
    )


def _is_open(dim: Any) -> bool:
    return isinstance(dim, str) or (isinstance(dim, Interval) and dim.high is None)


def _is_unbounded(value: Value) -> bool:
    return value.shape is None or any(map(_is_open, value.shape))


def _is_counted(node: Node) -> bool:
    """Whether it is known how often a Loop runs, at most."""
    if loop_kind(node) != "scan":
        count = node.input(0)
        return count is not None and count.constant is not None
    return all(isinstance(dim, int) for _, dim in node.slices())


def _bytes_of(value: Value) -> int:
    """The bytes of a value; 0 if they are not known."""
    if value.element is None or value.shape is None or not is_static(value.shape):
        return 0
    return value.element.nbytes(size_of(value.shape))
