"""Programs whose nodes, those of bodies too, are moved into functions of the model: functions that
call functions, with control flow inside, attributes that are passed or have defaults, and operator
sets of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any
from zlib import crc32

import onnx
from onnx import AttributeProto, helper

DOMAIN = "outlined"
MOST_NODES = 6
"""The most nodes that one function takes over."""

Holder = onnx.GraphProto | onnx.FunctionProto


def outlined(program: Any) -> Any:
    """The same program, with functions."""
    model = onnx.ModelProto()
    model.CopyFrom(program.model)
    random = Random(crc32(model.SerializeToString()))
    for number in range(random.randint(1, 5)):
        holders: list[Holder] = [*graphs(model.graph)]
        for function in model.functions:
            holders += [function, *(g for node in function.node for g in _bodies(node))]
        _outline(model, random.choice(holders), f"f{number}", random)
    for function in model.functions:
        if all(entry.domain != DOMAIN for entry in function.opset_import):
            function.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return replace(program, model=model)


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and all graphs in it."""
    yield graph
    for node in graph.node:
        yield from _bodies(node)


def _bodies(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) and graph.name:
                yield from graphs(graph)


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads of the graph that it is in."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.type != AttributeProto.GRAPH:
            continue
        graph = attribute.g
        own = {value.name for value in (*graph.input, *graph.initializer)}
        own |= {value.values.name for value in graph.sparse_initializer}
        made = {name for inner in graph.node for name in inner.output}
        inner_reads = [name for inner in graph.node for name in reads(inner)]
        inner_reads += [value.name for value in graph.output]
        yield from (name for name in inner_reads if name not in own | made)


def _outline(model: onnx.ModelProto, holder: Holder, name: str, random: Random) -> None:
    """Moves some nodes in a row into a function, in place."""
    count = len(holder.node)
    if not count:
        return
    start = random.randrange(count)
    end = min(count, start + random.randint(1, MOST_NODES))
    taken = list(holder.node)[start:end]
    made = [output for node in taken for output in node.output if output]
    # Nodes may be in any order: a node in front may make what these read, and read what they make.
    given = [r for r in dict.fromkeys(r for n in taken for r in reads(n)) if r and r not in made]
    others = [node for node in holder.node if all(node is not one for one in taken)]
    if _is_circular(others, made, given) or any(a.ref_attr_name for n in taken for a in _all(n)):
        return
    asked = {read for node in others for read in reads(node)}
    asked |= {o if isinstance(o, str) else o.name for o in holder.output}
    results = [output for output in made if output in asked]
    if not results:
        return
    body = [onnx.NodeProto.FromString(node.SerializeToString()) for node in taken]
    passed, defaults = _parameters(body, random)
    opsets = [*model.opset_import]
    if all(entry.domain != DOMAIN for entry in opsets):
        opsets.append(helper.make_opsetid(DOMAIN, 1))
        model.opset_import.append(opsets[-1])
    own = [helper.make_opsetid(entry.domain, entry.version) for entry in opsets]
    if random.random() < 0.5:
        _age(own, body)
    model.functions.append(
        helper.make_function(
            DOMAIN, name, given, results, body, own, [*passed], [*defaults.values()]
        )
    )
    call = helper.make_node(name, given, results, domain=DOMAIN)
    call.attribute.extend(passed.values())
    kept = [*list(holder.node)[:start], call, *list(holder.node)[end:]]
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in kept]
    del holder.node[:]
    holder.node.extend(kept)


def _is_circular(others: Sequence[onnx.NodeProto], made: list[str], given: list[str]) -> bool:
    """Whether what nodes read is computed from what they make."""
    behind, todo = {*made}, True
    while todo:
        more = {o for n in others if behind.intersection(reads(n)) for o in n.output} - behind
        behind |= more
        todo = bool(more)
    return bool(behind.intersection(given))


def _all(node: onnx.NodeProto) -> Iterator[AttributeProto]:
    """The attributes of a node, and of all nodes in its bodies."""
    yield from node.attribute
    for graph in _bodies(node):
        for inner in graph.node:
            yield from inner.attribute


def _parameters(
    body: Sequence[onnx.NodeProto], random: Random
) -> tuple[dict[str, AttributeProto], dict[str, AttributeProto]]:
    """Makes some attributes those of the function; those that a call passes, and those that are
    left to their defaults."""
    passed: dict[str, AttributeProto] = {}
    defaults: dict[str, AttributeProto] = {}
    for attribute in [a for node in body for a in _all(node)]:
        plain = (
            AttributeProto.INT, AttributeProto.FLOAT, AttributeProto.INTS, AttributeProto.FLOATS,
            AttributeProto.STRING, AttributeProto.TENSOR,
        )  # fmt: skip
        if attribute.type not in plain or random.random() < 0.6:
            continue
        name = f"a{len(passed) + len(defaults)}"
        value = AttributeProto.FromString(attribute.SerializeToString())
        value.name = name
        (passed if random.random() < 0.5 else defaults)[name] = value
        kind, own = attribute.type, attribute.name
        attribute.Clear()
        attribute.name, attribute.type, attribute.ref_attr_name = own, kind, name
    return passed, defaults


def _age(opsets: Sequence[onnx.OperatorSetIdProto], body: Sequence[onnx.NodeProto]) -> None:
    """Gives a function the oldest operator set of ONNX in which its operators are the same."""
    nodes = [*body, *(inner for node in body for graph in _bodies(node) for inner in graph.node)]
    for entry in opsets:
        if entry.domain:
            continue
        since = [
            onnx.defs.get_schema(node.op_type, entry.version, "").since_version
            for node in nodes
            if not node.domain
        ]
        entry.version = max([13, *since])
