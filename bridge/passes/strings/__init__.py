"""Strings as places in a vocabulary, for OpenVINO IR, which does not compute with strings.

`vocabularies.py` finds the possible strings of a value, `operators.py` rewrites each operator,
`restore.py` restores the strings from an IR's record of them.
"""

import numpy as np

from bridge.errors import Unsupported, UnsupportedError
from bridge.neutral.builder import Builder, constant_value
from bridge.neutral.graph import Graph, Model, Node, names_of_outputs
from bridge.neutral.inference import infer_graph
from bridge.neutral.rewrite import Pattern, Result, Rewriter
from bridge.neutral.tensor import Tensor
from bridge.neutral.types import I64, STRING, TensorType, Type
from bridge.operators import Refused
from bridge.passes.context import Context
from bridge.passes.strings.operators import lower_node
from bridge.passes.strings.vocabularies import Group, Vocabularies, texts
from bridge.records.boundary import VOCABULARIES, LabelRecord

UNMATCHED = "its inputs and attributes do not go together"

OTHER_TEXT = "it may be a string that no operator of the model names, and IR only has named strings"


def lower_strings(model: Model, context: Context) -> None:
    """Makes, in place, places in a vocabulary of the strings that operators compare or make, and
    records the vocabularies of inputs and outputs. Strings without another use stay strings.

    Raises UnsupportedError if an output may have strings outside of every vocabulary.
    """
    vocabularies = Vocabularies(model.graph)
    groups = [group for group in vocabularies.groups() if group.lowered]
    if not groups:
        return
    for group in groups:
        if not group.words:  # a list of none could not be looked up in
            group.add([""])
    findings = _record(model, vocabularies)
    for group in groups:
        _number(group)
    findings += _rewrite(model.graph, context, vocabularies)
    if findings:
        raise UnsupportedError(str(context.target), findings)
    infer_graph(model.graph)


def _record(model: Model, vocabularies: Vocabularies) -> list[Unsupported]:
    """Notes the vocabularies of inputs and outputs in the metadata; returns the obstacles."""
    graph = model.graph
    record = LabelRecord({}, {})
    findings = []
    for value in graph.inputs:
        group = vocabularies.lowered(value)
        if group is not None:
            record.inputs[value.name] = tuple(group.words)
    for value, name in zip(graph.outputs, names_of_outputs(graph), strict=True):
        group = vocabularies.lowered(value)
        if group is not None:
            record.outputs[name] = tuple(group.words)
            if value in vocabularies.open:
                findings.append(Unsupported("graph output", f'graph / "{name}"', OTHER_TEXT))
    if record:
        VOCABULARIES.write(model.metadata, record)
    return findings


def _number(group: Group) -> None:
    """The values of a group become integers, constants included."""
    for value in group.values:
        words, node = texts(value), value.producer
        value.type, value.declared = _as_places(value.type), _as_places(value.declared)
        if words is not None and node is not None:
            places = np.array([group.words[word] for word in words], np.int64)
            tensor = Tensor.of(places.reshape(node.attributes["value"].shape))
            node.attributes["value"] = tensor
            known = constant_value(tensor)
            value.type, value.known_value = known.type, known.known_value


def _as_places(type: Type) -> Type:
    if isinstance(type, TensorType) and type.element is STRING:
        return TensorType(I64, type.shape)
    return type


def _rewrite(graph: Graph, context: Context, vocabularies: Vocabularies) -> list[Unsupported]:
    """Rewrites the nodes of a graph, bodies first; returns the obstacles."""
    findings: list[Unsupported] = []

    def lowered(b: Builder, node: Node, rewriter: Rewriter) -> Result:
        try:
            return node.outputs if lower_node(b, node, vocabularies) else None
        except (Refused, IndexError, KeyError, ValueError) as error:
            why = str(error) if isinstance(error, Refused) else UNMATCHED
            findings.append(Unsupported(node.op, rewriter.path(node), why))
            return None

    Rewriter(graph).run(Pattern(lowered, target=context.target))
    return findings
