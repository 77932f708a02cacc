"""Programs whose values have other names, which bodies beside one another share, and whose values
that bodies capture, constants and inputs are outputs, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any
from zlib import crc32

import onnx
from onnx import AttributeProto

from tests.programs.outlining import reads

MOST_OUTPUTS = 4
"""The most outputs that a program gets."""


def renamed(program: Any) -> Any:
    """The same program, with further outputs."""
    model = onnx.ModelProto()
    model.CopyFrom(program.model)
    random = Random(crc32(model.SerializeToString()))
    _add_outputs(model, random)
    inputs = {value.name for value in model.graph.input}
    own = _own(model.graph)
    pool = [f"{kind}{number}" for kind in "ab" for number in range(len(own))]
    random.shuffle(pool)
    names = {name: new for name, new in zip(own, pool, strict=False) if random.random() < 0.5}
    names |= {name: name for name in own if name in inputs or name not in names}
    _rename(model.graph, names, random, frozenset(names.values()))
    return replace(program, model=model)


def _own(graph: onnx.GraphProto) -> list[str]:
    """The names that a graph defines."""
    named = [value.name for value in (*graph.input, *graph.initializer)]
    return [*dict.fromkeys([*named, *(o for node in graph.node for o in node.output if o)])]


def _rename(
    graph: onnx.GraphProto, names: Mapping[str, str], random: Random, above: frozenset[str]
) -> None:
    """Renames what a graph defines, and what it reads, in place. `above` are the new names of the
    graph and of those around it."""
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type != AttributeProto.GRAPH:
                continue
            body, start = attribute.g, random.choice("ab")
            free = (name for name in map(f"{start}{{}}".format, count()) if name not in above)
            inner = dict(zip(_own(body), free, strict=False))
            _rename(body, {**names, **inner}, random, above | {*inner.values()})
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]


def _add_outputs(model: onnx.ModelProto, random: Random) -> None:
    """Makes outputs of values that bodies capture, of constants and of inputs."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    known = {value.name: value for value in (*inferred.value_info, *inferred.input)}
    graph = model.graph
    taken = {value.name for value in graph.output}
    captured = {name for node in graph.node if node.attribute for name in reads(node)}
    names = [name for name in _own(graph) if name in known and name not in taken]
    names.sort(key=lambda name: (name not in captured, random.random()))
    for name in names[: random.randint(0, MOST_OUTPUTS)]:
        if known[name].type.WhichOneof("value") == "tensor_type":
            graph.output.append(known[name])
