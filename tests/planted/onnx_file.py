"""The places of an ONNX file at which a fault can be planted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from tests.planted.places import Attribute, Constant, Operator, Site, Swap

_BODIES = {"then_branch": "branch", "else_branch": "branch", "body": "loop"}


class OnnxFile:
    """An ONNX model, to be changed in one place and written."""

    def __init__(self, path: Path) -> None:
        self.model = onnx.load(path)
        inferred = onnx.shape_inference.infer_shapes(self.model)
        self.graphs: list[tuple[GraphProto, str, NodeProto | None]] = []
        self.types: dict[str, Any] = {}
        self._enter(self.model.graph, "top", None)
        self._types(inferred.graph)

    def save(self, path: Path) -> None:
        onnx.save(self.model, path)

    def _enter(self, graph: GraphProto, where: str, owner: NodeProto | None) -> None:
        self.graphs.append((graph, where, owner))
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.name in _BODIES:
                    self._enter(attribute.g, _BODIES[attribute.name], node)

    def _types(self, graph: GraphProto) -> None:
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.HasField("tensor_type"):
                self.types.setdefault(value.name, value.type.tensor_type)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.name in _BODIES:
                    self._types(attribute.g)

    def constants(self) -> Iterator[Constant]:
        for graph, where, _ in self.graphs:
            made = [(tensor.name, tensor) for tensor in graph.initializer]
            for node in graph.node:
                if node.op_type == "Constant" and node.attribute[0].name == "value":
                    made.append((node.output[0], node.attribute[0].t))
            for name, tensor in made:
                if tensor.data_type == TensorProto.STRING:
                    continue
                users = [n.op_type for g, _, _ in self.graphs for n in g.node if name in n.input]
                yield Constant(
                    numpy_helper.to_array(tensor), tuple(sorted(set(users))), where,
                    lambda array, tensor=tensor: tensor.CopyFrom(
                        numpy_helper.from_array(array, tensor.name)
                    ),
                )  # fmt: skip

    def operators(self) -> Iterator[Operator]:
        for graph, where, _ in self.graphs:
            for node in graph.node:
                yield Operator(
                    node.op_type, where, lambda new, node=node: setattr(node, "op_type", new)
                )

    def attributes(self) -> Iterator[Attribute]:
        for graph, where, _ in self.graphs:
            for node in graph.node:
                for one in node.attribute:
                    text = _text(one)
                    if text is not None:
                        yield Attribute(
                            node.op_type, one.name, text, where,
                            lambda new, one=one: one.CopyFrom(_attribute(one, new)),
                        )  # fmt: skip

    def sites(self) -> Iterator[Site]:
        for graph, where, owner in self.graphs:
            results = {value.name for value in graph.output}
            values = [(v.name, "input") for v in graph.input] if owner is None else []
            for node in graph.node:
                if node.op_type != "Constant":
                    values += [
                        (name, "result" if name in results else "inner")
                        for name in node.output if name
                    ]  # fmt: skip
            for name, place in values:
                type = self.types.get(name)
                if type is None or type.elem_type in (TensorProto.STRING, 0):
                    continue
                dtype = np.dtype(helper.tensor_dtype_to_np_dtype(type.elem_type))
                yield Site(
                    dtype, where, place, len(type.shape.dim),
                    lambda change, graph=graph, owner=owner, name=name: self._insert(
                        graph, owner, name, change
                    ),
                )  # fmt: skip

    def _insert(self, graph: GraphProto, owner: NodeProto | None, name: str, change: Any) -> None:
        """Puts what `change` makes of a value in its place; a value of a node gets another name, an
        input's readers read the other value."""
        at = next((i for i, n in enumerate(graph.node) if name in n.output), -1)
        builder = _Builder(graph, owner)
        if at >= 0:
            node = graph.node[at]
            node.output[list(node.output).index(name)] = f"{name}_before"
            new = change(builder, f"{name}_before")
            builder.nodes.append(helper.make_node("Identity", [new], [name]))
        else:
            new = change(builder, name)
            for inner, _, _ in self.graphs:
                for node in inner.node:
                    node.input[:] = [new if one == name else one for one in node.input]
        nodes = list(graph.node)
        nodes[at + 1 : at + 1] = builder.nodes
        del graph.node[:]
        graph.node.extend(nodes)

    def swaps(self) -> Iterator[Swap]:
        top = self.model.graph
        for one, two in zip(top.output, list(top.output)[1:], strict=False):
            yield Swap("outputs", "top", lambda a=one.name, b=two.name: _exchange_made(top, a, b))
        for place in range(1, len(top.output)):
            yield Swap("dropped", "top", lambda place=place: top.output.pop(place))
        for graph, where, _ in self.graphs:
            for place in range(1, len(graph.output) - 1 if where == "loop" else 0):
                yield Swap("ports", where, lambda g=graph, i=place: _exchange(g.output, i, i + 1))
            for node in graph.node:
                bodies = {a.name: a for a in node.attribute if a.name in _BODIES}
                if node.op_type == "If":
                    yield Swap("branches", where, lambda bodies=bodies: _swap_branches(bodies))
                kind = "ports" if bodies else "operands"
                for place in range(1 if node.op_type == "Loop" else 0, len(node.input) - 1):
                    yield Swap(kind, where, lambda n=node, i=place: _exchange(n.input, i, i + 1))


class _Builder:
    """Collects nodes to be added to a graph."""

    def __init__(self, graph: GraphProto, owner: NodeProto | None) -> None:
        self.graph, self.owner = graph, owner
        self.nodes: list[NodeProto] = []

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        name = f"added_{len(self.nodes)}_{inputs[0] if inputs else 'constant'}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        return self.node("Constant", [], value=numpy_helper.from_array(np.asarray(array)))

    def cast(self, value: str, dtype: Any) -> str:
        return self.node("Cast", [value], to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def slice(self, value: str, start: int, stop: int, axis: int) -> str:
        numbers = [self.constant(np.array([n], np.int64)) for n in (start, stop, axis)]
        return self.node("Slice", [value, *numbers])

    def concat(self, parts: list[str], axis: int, like: str) -> str:
        return self.node("Concat", parts, axis=axis)

    def iteration(self) -> str:
        """The number of the iteration; only in the body of a Loop."""
        assert self.owner is not None and self.owner.op_type == "Loop", "a Scan counts nothing"
        return self.graph.input[0].name


def _text(attribute: AttributeProto) -> str | None:
    if attribute.type == AttributeProto.INT:
        return str(attribute.i)
    if attribute.type == AttributeProto.INTS:
        return ",".join(map(str, attribute.ints))
    if attribute.type == AttributeProto.FLOAT:
        return repr(attribute.f)
    return attribute.s.decode() if attribute.type == AttributeProto.STRING else None


def _attribute(old: AttributeProto, text: str) -> AttributeProto:
    kinds = {
        AttributeProto.INT: lambda: int(text), AttributeProto.FLOAT: lambda: float(text),
        AttributeProto.INTS: lambda: [int(part) for part in text.split(",") if part],
        AttributeProto.STRING: lambda: text,
    }  # fmt: skip
    return helper.make_attribute(old.name, kinds[old.type](), attr_type=old.type)


def _exchange(values: Any, one: int, two: int) -> None:
    listed = list(values)
    listed[one], listed[two] = listed[two], listed[one]
    del values[:]
    values.extend(listed)


def _swap_branches(bodies: dict[str, AttributeProto]) -> None:
    then, other = bodies["then_branch"], bodies["else_branch"]
    then.name, other.name = other.name, then.name


def _exchange_made(graph: GraphProto, one: str, two: str) -> None:
    """Each of two outputs gives the other's values."""
    new = {one: two, two: one}
    for node in graph.node:
        node.output[:] = [new.get(name, name) for name in node.output]
        node.input[:] = [new.get(name, name) for name in node.input]
