"""Makes a failing program small, so that a report is readable."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
from onnx import helper

Fails = Callable[[onnx.ModelProto], bool]


def reduced(model: onnx.ModelProto, fails: Fails, most: int = 400) -> onnx.ModelProto:
    """A smaller model for which `fails` holds as well.

    It ends when no single step of `_smaller` keeps the failure, or after `most` trials.
    """
    tried = 0
    found = True
    while found:
        found = False
        for candidate in _smaller(model):
            if tried == most:
                return model
            tried += 1
            _drop_unused(candidate)
            if candidate.ByteSize() < model.ByteSize() and fails(candidate):
                model, found = candidate, True
                break
    return model


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _graph(model: onnx.ModelProto, place: int) -> onnx.GraphProto:
    return list(_graphs(model.graph))[place]


def _smaller(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    yield from _fewer_outputs(model)
    for place, graph in enumerate(_graphs(model.graph)):
        for number, node in enumerate(graph.node):
            yield from _without(model, place, number, node)
    yield from _fewer_states(model)


def _fewer_outputs(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """One output alone; all but one."""
    outputs = len(model.graph.output)
    if outputs > 1:
        for kept in range(outputs):
            copy = _copy(model)
            chosen = copy.graph.output[kept]
            value = onnx.ValueInfoProto()
            value.CopyFrom(chosen)
            del copy.graph.output[:]
            copy.graph.output.append(value)
            yield copy
        for left_out in range(outputs):
            copy = _copy(model)
            del copy.graph.output[left_out]
            yield copy


def _without(
    model: onnx.ModelProto, place: int, number: int, node: onnx.NodeProto
) -> Iterator[onnx.ModelProto]:
    """A branch in place of an If; one of its inputs in place of a node."""
    for branch in node.attribute if node.op_type == "If" else ():
        copy = _copy(model)
        graph = _graph(copy, place)
        nodes = list(graph.node)
        inlined = [*branch.g.node]
        for name, value in zip(node.output, branch.g.output, strict=True):
            inlined.append(helper.make_node("Identity", [value.name], [name]))
        del graph.node[:]
        graph.node.extend([*nodes[:number], *inlined, *nodes[number + 1 :]])
        graph.initializer.extend(branch.g.initializer)
        yield copy
    for value in node.output if place == 0 and node.op_type not in ("Constant", "Identity") else ():
        copy = _copy(model)
        del copy.graph.output[:]
        copy.graph.output.append(onnx.ValueInfoProto(name=value))
        yield copy
    for source in dict.fromkeys(name for name in node.input if name):
        copy = _copy(model)
        graph = _graph(copy, place)
        del graph.node[number]
        _rename(graph, node.output[0], source)
        yield copy
    for left_out in range(len(node.input)) if node.op_type in FEWER_INPUTS else ():
        copy = _copy(model)
        del _graph(copy, place).node[number].input[left_out]
        yield copy


FEWER_INPUTS = ("Clip", "ReduceSum", "Slice", "SequenceConstruct", "SequenceInsert")


def _rename(graph: onnx.GraphProto, name: str, other: str) -> None:
    """Makes all readers of one value read another, in place."""
    for inner in _graphs(graph):
        for node in inner.node:
            for at, read in enumerate(node.input):
                if read == name:
                    node.input[at] = other
        for value in inner.output:
            if value.name == name:
                value.name = other


def _fewer_states(model: onnx.ModelProto) -> Iterator[onnx.ModelProto]:
    """An If with one output less; a Loop or Scan with one stack or state less."""
    for place, graph in enumerate(_graphs(model.graph)):
        for number, node in enumerate(graph.node):
            bodies = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
            if not bodies or len(node.output) < 2:
                continue
            first = 1 if node.op_type == "Loop" else 0
            states = len(bodies[0].input) - 2 if node.op_type == "Loop" else 0
            for at in range(len(node.output)):
                if node.op_type == "Scan":
                    continue
                copy = _copy(model)
                smaller = _graph(copy, place).node[number]
                del smaller.output[at]
                for attribute in smaller.attribute:
                    if attribute.type == onnx.AttributeProto.GRAPH:
                        del attribute.g.output[at + first]
                        if at < states:
                            del attribute.g.input[at + 2]
                if at < states:
                    del smaller.input[at + 2]
                yield copy


def _read(graph: onnx.GraphProto) -> set[str]:
    """The names that a graph and its nested graphs read."""
    names = {value.name for value in graph.output}
    for node in graph.node:
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                names |= _read(attribute.g)
    return names


def _drop_unused(model: onnx.ModelProto) -> None:
    """Removes nodes that no other node reads, in place."""
    before = -1
    while before != model.ByteSize():
        before = model.ByteSize()
        read = _read(model.graph)
        for graph in _graphs(model.graph):
            used = [node for node in graph.node if read & set(node.output)]
            held = [item for item in graph.initializer if item.name in read]
            if len(used) < len(graph.node):
                kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in used]
                del graph.node[:]
                graph.node.extend(kept)
                break
            if len(held) < len(graph.initializer):
                kept = [onnx.TensorProto.FromString(x.SerializeToString()) for x in held]
                del graph.initializer[:]
                graph.initializer.extend(kept)
                break
    inputs = [value for value in model.graph.input if value.name in _read(model.graph)]
    kept = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in inputs]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    domains = {node.domain for graph in _graphs(model.graph) for node in graph.node}
    if "local" not in domains:
        del model.functions[:]
