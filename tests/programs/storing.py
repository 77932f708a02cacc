"""Programs whose constants are stored in other ways: as nodes, as initializers of their graph or of
one around it, sparse, in typed fields or as bytes, as lists of numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import bridge
from tests.programs.outlining import graphs

LISTS = 12
"""The first operator set in which a constant may be a list of numbers."""

PLAIN = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.INT8,
    TensorProto.UINT8, TensorProto.DOUBLE, TensorProto.UINT64,
)  # fmt: skip
"""Types whose numbers Python has."""


def stored_otherwise(program: Any) -> Any:
    """The same program."""
    model = onnx.ModelProto()
    model.CopyFrom(program.model)
    random = Random(crc32(model.SerializeToString()))
    names = [name for graph in graphs(model.graph) for name in _names(graph)]
    if next(entry.version for entry in model.opset_import if not entry.domain) < LISTS:
        return program
    for graph in [*graphs(model.graph)]:
        top = graph.name == model.graph.name
        outputs = {value.name for value in graph.output}
        for tensor in _taken(graph, random):
            given = tensor.name in outputs
            # No body may give a value of a graph around it.
            stays = top or given or names.count(tensor.name) > 1
            holder = graph if stays or random.random() < 0.7 else model.graph
            _put(holder, tensor, given, random)
    return replace(program, model=model)


def _names(graph: onnx.GraphProto) -> list[str]:
    """The names that a graph itself defines."""
    made = [name for node in graph.node for name in node.output]
    return [*made, *(value.name for value in (*graph.input, *graph.initializer))]


def _taken(graph: onnx.GraphProto, random: Random) -> list[TensorProto]:
    """Takes constants out of a graph."""
    inputs = {value.name for value in graph.input}
    taken = []
    for tensor in [t for t in graph.initializer if t.name not in inputs and random.random() < 0.7]:
        graph.initializer.remove(tensor)
        taken.append(tensor)
    for node in [n for n in graph.node if n.op_type == "Constant" and random.random() < 0.7]:
        if node.attribute[0].name == "value" and not node.attribute[0].ref_attr_name:
            graph.node.remove(node)
            node.attribute[0].t.name = node.output[0]
            taken.append(node.attribute[0].t)
    return taken


def _put(graph: onnx.GraphProto, tensor: TensorProto, given: bool, random: Random) -> None:
    """Stores a constant in a graph, in some way. `given` is whether it is an output of a graph:
    onnxruntime gives a sparse one another type there."""
    ways: list[Any] = [_as_initializer, _as_bytes, _as_numbers, _as_node]
    plain = tensor.data_type in (TensorProto.FLOAT, TensorProto.INT64)
    if plain and len(tensor.dims) <= 1:
        ways += [_as_list] * 2
    if plain and not given and len(tensor.dims) and np.prod(tensor.dims):
        ways += [_as_sparse_node, _as_sparse_initializer]
    random.choice(ways)(graph, tensor)


def _as_initializer(graph: onnx.GraphProto, tensor: TensorProto) -> None:
    graph.initializer.append(tensor)


def _as_bytes(graph: onnx.GraphProto, tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.STRING:
        return _as_initializer(graph, tensor)
    stored = numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name)
    stored.data_type = tensor.data_type
    graph.initializer.append(stored)
    return None


def _as_numbers(graph: onnx.GraphProto, tensor: TensorProto) -> None:
    if tensor.data_type in PLAIN:
        values = numpy_helper.to_array(tensor)
        numbers = values.reshape(-1).tolist()
        tensor = helper.make_tensor(tensor.name, tensor.data_type, values.shape, numbers)
    graph.initializer.append(tensor)


def _as_node(graph: onnx.GraphProto, tensor: TensorProto) -> None:
    graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))


def _as_list(graph: onnx.GraphProto, tensor: TensorProto) -> None:
    values = numpy_helper.to_array(tensor)
    kind = "float" if tensor.data_type == TensorProto.FLOAT else "int"
    many = "s" * values.ndim
    attribute = helper.make_attribute(
        f"value_{kind}{many}",
        values.tolist(),
        attr_type={
            "float": onnx.AttributeProto.FLOAT,
            "floats": onnx.AttributeProto.FLOATS,
            "int": onnx.AttributeProto.INT,
            "ints": onnx.AttributeProto.INTS,
        }[kind + many],
    )
    node = helper.make_node("Constant", [], [tensor.name])
    node.attribute.append(attribute)
    graph.node.insert(0, node)


def _sparse(tensor: TensorProto) -> onnx.SparseTensorProto:
    values = numpy_helper.to_array(tensor)
    places = np.argwhere(values != 0)
    if values.size % 2:  # one number for each place, or one for each axis
        places = np.flatnonzero(values)
    found = values[values != 0]
    return helper.make_sparse_tensor(
        numpy_helper.from_array(found, tensor.name),
        numpy_helper.from_array(places.astype(np.int64), f"{tensor.name}_places"),
        list(values.shape),
    )


def _as_sparse_node(graph: onnx.GraphProto, tensor: TensorProto) -> None:
    node = helper.make_node("Constant", [], [tensor.name], sparse_value=_sparse(tensor))
    graph.node.insert(0, node)


def _as_sparse_initializer(graph: onnx.GraphProto, tensor: TensorProto) -> None:
    graph.sparse_initializer.append(_sparse(tensor))


def with_external_data(source: onnx.ModelProto | Path, target: Path) -> None:
    """Converts a model whose tensors lie in a file of their own, in any order and with gaps."""
    if not isinstance(source, onnx.ModelProto):
        bridge.convert(source, target)
        return
    model = onnx.ModelProto()
    model.CopyFrom(source)
    tensors = [t for graph in graphs(model.graph) for t in _all_tensors(graph)]
    random, data = Random(crc32(model.SerializeToString())), bytearray(b"gap")
    random.shuffle(tensors)
    for tensor in tensors:
        raw = tensor.raw_data
        if not raw:
            continue
        data += bytes(random.randint(0, 9))
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": "weights.data", "offset": len(data), "length": len(raw)}
        if random.random() < 0.2:
            del place["length"]
            place["offset"] = len(data)
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        data += raw
    folder = target.parent
    (folder / "weights.data").write_bytes(data)
    (folder / "external.onnx").write_bytes(model.SerializeToString())
    bridge.convert(folder / "external.onnx", target)


def _all_tensors(graph: onnx.GraphProto) -> list[TensorProto]:
    nodes = [a.t for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.TENSOR]
    return [*graph.initializer, *nodes]
