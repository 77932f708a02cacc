"""The places of an IR at which a fault can be planted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from lxml import etree

from tests.planted.places import Attribute, Constant, Operator, Site, Swap

_TYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8, "u64": np.uint64,
    "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "boolean": np.bool_,
}  # fmt: skip
_PRECISIONS = {
    name: "BOOL" if name == "boolean" else name.upper().replace("F", "FP", 1) for name in _TYPES
} | {"bf16": "BF16"}
_NAMES = {precision: name for name, precision in _PRECISIONS.items()}
_ONNX = {
    "Multiply": "Mul", "Subtract": "Sub", "Divide": "Div", "Select": "Where", "Minimum": "Min",
    "Maximum": "Max", "LogicalAnd": "And", "LogicalOr": "Or", "Ceiling": "Ceil", "Negative": "Neg",
    "IsNaN": "IsNaN", "Floor": "Floor",
}  # fmt: skip
_LAYERS = {onnx: layer for layer, onnx in _ONNX.items()}
_OPSETS = {"IsNaN": "opset10", "Slice": "opset8", "NotEqual": "opset1"}
_BODIES = ("body", "then_body", "else_body")


@dataclass(frozen=True)
class Value:
    """An output of a layer, with its element type and the sizes that its port states."""

    layer: str
    port: str
    type: str
    dims: tuple[int, ...]


@dataclass
class IrFile:
    """An IR, to be changed in one place and written."""

    path: Path
    root: Any = field(init=False)
    data: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self.root = etree.parse(self.path, etree.XMLParser(remove_blank_text=True)).getroot()
        weights = self.path.with_suffix(".bin")
        self.data = bytearray(weights.read_bytes() if weights.exists() else b"")

    def save(self, path: Path) -> None:
        etree.ElementTree(self.root).write(path, pretty_print=True)
        path.with_suffix(".bin").write_bytes(self.data)

    def graphs(self) -> list[Any]:
        """The top graph and all bodies."""
        return [layers.getparent() for layers in self.root.iter("layers")]

    def where(self, graph: Any) -> str:
        """ "top", "branch" or "loop"."""
        return {"body": "loop", "net": "top"}.get(graph.tag, "branch")

    def constants(self) -> Iterator[Constant]:
        for graph in self.graphs():
            for layer in _layers(graph):
                data = layer.find("data")
                if layer.get("type") != "Const" or data.get("element_type") not in _TYPES:
                    continue
                dtype, start = np.dtype(_TYPES[data.get("element_type")]), int(data.get("offset"))
                raw = bytes(self.data[start : start + int(data.get("size"))])
                array = np.frombuffer(raw, dtype).reshape(_sizes(data.get("shape")))
                users = _users(graph, layer.get("id"))
                yield Constant(array, users, self.where(graph), _setter(self.data, data))

    def operators(self) -> Iterator[Operator]:
        for graph in self.graphs():
            for layer in _layers(graph):
                kind = layer.get("type")
                yield Operator(
                    _ONNX.get(kind, kind), self.where(graph),
                    lambda new, layer=layer: layer.set("type", _LAYERS.get(new, new)),
                )  # fmt: skip

    def attributes(self) -> Iterator[Attribute]:
        for graph in self.graphs():
            for layer in _layers(graph):
                data = layer.find("data")
                if data is None or layer.get("type") in ("Const", "Parameter"):
                    continue
                for name, text in data.attrib.items():
                    yield Attribute(
                        layer.get("type"), name, text, self.where(graph),
                        lambda new, data=data, name=name: data.set(name, new),
                    )  # fmt: skip

    def sites(self) -> Iterator[Site]:
        for graph in self.graphs():
            results = {e.get("from-layer") for e in _edges(graph) if _is_result(graph, e)}
            for layer in _layers(graph):
                if layer.get("type") in ("Const", "Result"):
                    continue
                for port in layer.findall("output/port"):
                    type = _NAMES.get(port.get("precision"))
                    if type is None:
                        continue
                    value = Value(layer.get("id"), port.get("id"), type, _dims(port))
                    place = "result" if layer.get("id") in results else "inner"
                    place = "input" if layer.get("type") == "Parameter" else place
                    yield Site(
                        np.dtype(_TYPES[type]), self.where(graph), place, len(value.dims),
                        lambda change, graph=graph, value=value: _insert(
                            _Builder(self, graph), value, change
                        ),
                    )  # fmt: skip

    def swaps(self) -> Iterator[Swap]:
        top = self.root
        results = [layer.get("id") for layer in _layers(top) if layer.get("type") == "Result"]
        sources = [_source(top, result) for result in results]
        for one, two in itertools.pairwise(sources):
            yield Swap("outputs", "top", lambda one=one, two=two: _swap_outputs(top, one, two))
        for result in results[1:]:
            yield Swap("dropped", "top", lambda result=result: _drop(top, result))
        for graph in self.graphs():
            for layer in _layers(graph):
                yield from self._swaps_of(graph, layer)

    def _swaps_of(self, graph: Any, layer: Any) -> Iterator[Swap]:
        where = self.where(graph)
        then = layer.find("then_body")
        if then is not None:
            yield Swap("branches", where, lambda: _swap_branches(layer))
        for ports in layer.iter("port_map", "then_port_map", "else_port_map"):
            if ports.getparent() is not layer:
                continue
            for kind, number in (("input", "internal_layer_id"), ("output", "external_port_id")):
                entries = [e for e in ports.findall(kind) if not e.get("purpose")]
                for one, two in itertools.pairwise(entries):
                    if one.get(number) != two.get(number):
                        yield Swap(
                            "ports", where, lambda a=one, b=two, n=number: _exchange(a, b, n)
                        )
        backs = layer.findall("back_edges/edge")
        for one, two in itertools.pairwise(backs):
            yield Swap("ports", where, lambda a=one, b=two: _exchange(a, b, "from-layer"))
        into = [e for e in _edges(graph) if e.get("to-layer") == layer.get("id")]
        if then is None and layer.find("body") is None:
            for one, two in itertools.pairwise(into):
                yield Swap("operands", where, lambda a=one, b=two: _exchange(a, b, "to-port"))

    def counter(self, graph: Any) -> Value:
        """A state, added to the Loop of a body, that counts iterations."""
        loop, outer = graph.getparent(), graph.getparent().getparent().getparent()
        zero = _Builder(self, outer).constant(np.zeros(1, np.int64), before=loop)
        taken = [int(port.get("id")) for port in loop.findall("*/port")]
        entry = etree.SubElement(
            loop.find("input"), "port", id=str(max(taken) + 1), precision="I64"
        )
        etree.SubElement(entry, "dim").text = "1"
        _connect(outer, zero, loop.get("id"), entry.get("id"))
        inner = _Builder(self, graph)
        number = inner.layer("Parameter", [], "i64", (1,), {"shape": "1", "element_type": "i64"})
        step = inner.node("Add", [number, inner.constant(np.ones(1, np.int64))])
        result = inner.layer("Result", [step], None, ())
        ports = loop.find("port_map")
        ports.insert(0, etree.Element(
            "input", external_port_id=entry.get("id"), internal_layer_id=number.layer
        ))  # fmt: skip
        if loop.find("back_edges") is None:
            ports.addnext(etree.Element("back_edges"))
        back = {"from-layer": result.layer, "to-layer": number.layer}
        etree.SubElement(loop.find("back_edges"), "edge", back)
        return number


class _Builder:
    """Adds layers to a graph."""

    def __init__(self, file: IrFile, graph: Any) -> None:
        self.file, self.graph = file, graph
        self.made: set[str] = set()

    def layer(
        self, kind: str, inputs: list[Value], type: str | None, dims: tuple[int, ...],
        data: dict[str, str] | None = None, before: Any = None,
    ) -> Value:  # fmt: skip
        number = str(max(int(layer.get("id")) for layer in _layers(self.graph)) + 1)
        element = etree.Element(
            "layer", id=number, name=f"added_{number}", type=kind,
            version=_OPSETS.get(kind, "opset1"),
        )  # fmt: skip
        if before is None:
            self.graph.find("layers").append(element)
        else:
            before.addprevious(element)
        if data:
            etree.SubElement(element, "data", data)
        if inputs:
            holder = etree.SubElement(element, "input")
            for port, value in enumerate(inputs):
                _port(holder, port, value.type, value.dims)
                _connect(self.graph, value, number, str(port))
        if type is not None:
            _port(etree.SubElement(element, "output"), len(inputs), type, dims)
        self.made.add(number)
        return Value(number, str(len(inputs)), type or "", dims)

    def constant(self, array: np.ndarray, before: Any = None) -> Value:
        array = np.asarray(array)
        type = next(name for name, dtype in _TYPES.items() if dtype == array.dtype)
        self.file.data += bytes(-len(self.file.data) % 8)
        data = {
            "element_type": type, "shape": ",".join(map(str, array.shape)),
            "offset": str(len(self.file.data)), "size": str(array.nbytes),
        }  # fmt: skip
        self.file.data += array.tobytes()
        return self.layer("Const", [], type, array.shape, data, before)

    def node(self, op: str, inputs: list[Value]) -> Value:
        widest = max(inputs, key=lambda value: len(value.dims))
        type = inputs[-1].type
        if op in ("Less", "Greater", "Equal", "IsNaN"):
            type = "boolean"
        kind = _LAYERS.get(op, op)
        data = {} if op in ("Abs", "IsNaN") else {"auto_broadcast": "numpy"}
        return self.layer(kind, inputs, type, widest.dims, data)

    def cast(self, value: Value, dtype: Any) -> Value:
        type = next(name for name, known in _TYPES.items() if known == dtype)
        return self.layer("Convert", [value], type, value.dims, {"destination_type": type})

    def slice(self, value: Value, start: int, stop: int, axis: int) -> Value:
        numbers = [self.constant(np.array([n], np.int64)) for n in (start, stop, 1, axis)]
        dims = list(value.dims)
        dims[axis] = -1
        return self.layer("Slice", [value, *numbers], value.type, tuple(dims))

    def concat(self, parts: list[Value], axis: int, like: Value) -> Value:
        return self.layer("Concat", parts, like.type, like.dims, {"axis": str(axis)})

    def iteration(self) -> Value:
        """The number of the iteration; only in the body of a Loop."""
        return self.file.counter(self.graph)


def _insert(builder: _Builder, value: Value, change: Any) -> None:
    """Puts what `change` makes of a value in its place."""
    graph = builder.graph
    readers = [
        edge for edge in _edges(graph)
        if (edge.get("from-layer"), edge.get("from-port")) == (value.layer, value.port)
    ]  # fmt: skip
    new = change(builder, value)
    for edge in readers:
        edge.set("from-layer", new.layer)
        edge.set("from-port", new.port)
    old, port = (_output(graph, v.layer, v.port) for v in (value, new))
    if old.get("names") and any(_is_result(graph, edge) for edge in readers):
        port.set("names", old.attrib.pop("names"))


def _layers(graph: Any) -> list[Any]:
    return graph.find("layers").findall("layer")


def _edges(graph: Any) -> list[Any]:
    return graph.find("edges").findall("edge") if graph.find("edges") is not None else []


def _connect(graph: Any, value: Value, layer: str, port: str) -> None:
    ends = {"from-layer": value.layer, "from-port": value.port, "to-layer": layer, "to-port": port}
    etree.SubElement(graph.find("edges"), "edge", ends)


def _layer(graph: Any, number: str) -> Any:
    return next(layer for layer in _layers(graph) if layer.get("id") == number)


def _is_result(graph: Any, edge: Any) -> bool:
    return _layer(graph, edge.get("to-layer")).get("type") == "Result"


def _users(graph: Any, number: str) -> tuple[str, ...]:
    to = {edge.get("to-layer") for edge in _edges(graph) if edge.get("from-layer") == number}
    return tuple(sorted(_layer(graph, one).get("type") for one in to))


def _output(graph: Any, layer: str, port: str) -> Any:
    return next(p for p in _layer(graph, layer).findall("output/port") if p.get("id") == port)


def _port(holder: Any, number: int, type: str, dims: tuple[int, ...]) -> None:
    port = etree.SubElement(holder, "port", id=str(number), precision=_PRECISIONS[type])
    for dim in dims:
        etree.SubElement(port, "dim").text = str(dim)


def _dims(port: Any) -> tuple[int, ...]:
    return tuple(int(dim.text) for dim in port.findall("dim"))


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(",") if size)


def _setter(weights: bytearray, data: Any) -> Any:
    def change(array: np.ndarray) -> None:
        weights.extend(bytes(-len(weights) % 8))
        data.set("offset", str(len(weights)))
        weights.extend(array.tobytes())

    return change


def _exchange(one: Any, two: Any, name: str) -> None:
    first, second = one.get(name), two.get(name)
    one.set(name, second)
    two.set(name, first)


def _swap_branches(layer: Any) -> None:
    for kind in ("body", "port_map"):
        then, other = layer.find(f"then_{kind}"), layer.find(f"else_{kind}")
        if then is not None and other is not None:
            then.tag, other.tag = other.tag, then.tag


def _source(graph: Any, result: str) -> Any:
    return next(edge for edge in _edges(graph) if edge.get("to-layer") == result)


def _swap_outputs(graph: Any, one: Any, two: Any) -> None:
    """Each output gives the other's values, under its own name."""
    ports = [_output(graph, e.get("from-layer"), e.get("from-port")) for e in (one, two)]
    names = [port.attrib.pop("names", "") for port in ports]
    for port, name in zip(ports, reversed(names), strict=True):
        if name:
            port.set("names", name)
    _exchange(one, two, "from-layer")
    _exchange(one, two, "from-port")


def _drop(graph: Any, result: str) -> None:
    edge, layer = _source(graph, result), _layer(graph, result)
    edge.getparent().remove(edge)
    layer.getparent().remove(layer)
