"""Writes the neutral graph as OpenVINO IR, version 11."""

from collections import Counter
from pathlib import Path

from bridge.errors import UnsupportedError
from bridge.ir_format.graph_writer import GraphWriter, WrittenIr
from bridge.ir_format.names import join_names
from bridge.ir_format.origin import ORIGIN, origin_of
from bridge.ir_format.rt_info import take_about_model, write_rt_info
from bridge.ir_format.symbols import SYMBOLS, symbols_of
from bridge.ir_format.text import attribute, pieces
from bridge.ir_format.weights import WeightsWriter
from bridge.neutral.graph import Model
from bridge.neutral.storage import RangeCopier
from bridge.neutral.xml_names import clean

VERSION = 11


def write(model: Model, xml_path: Path, bin_path: Path) -> None:
    """Writes a model that is expanded for IR to exactly these two files. UnsupportedError if a node
    has no spelling in IR, or a value has a type that IR lacks."""
    with open(bin_path, "wb") as target, RangeCopier(target) as copier:
        given = frozenset(clean(node.name) for node in model.graph.walk())
        file = WrittenIr(WeightsWriter(target, copier), model.format == "ir", given)
        text = _net(model, file)
    if file.findings:
        raise UnsupportedError("OpenVINO IR", file.findings)
    xml_path.write_text(text, encoding="utf-8", newline="\n")


def _net(model: Model, file: WrittenIr) -> str:
    graph = model.graph
    writer = GraphWriter(file, graph, graph.name or "graph", "\t")
    names, own = _output_names(model, writer)
    own_extras = model.extras.get("ir", {})
    parameters = own_extras.get("parameters", {})
    for value in graph.inputs:
        writer.parameter(value, parameters.get(value))
    writer.nodes()
    results = own_extras.get("results", ())
    known = results if len(results) == len(graph.outputs) else [{}] * len(graph.outputs)
    for value, name, output_names, extras in zip(graph.outputs, names, own, known, strict=True):
        layer_name = extras.get("name") or f"{name}/sink_port_0"
        writer.result(value, layer_name, join_names(output_names), extras)
    ends = [(value.name, value) for value in graph.inputs]
    ends += zip(names, graph.outputs, strict=True)
    metadata = dict(model.metadata)
    about_model = take_about_model(metadata)
    origin = origin_of(model, file.bodies, file.named, file.numbered, file.formers)
    if origin is not None:
        ORIGIN.write(metadata, origin)
    if symbols := symbols_of(ends):
        SYMBOLS.write(metadata, symbols)
    name = attribute(graph.name)
    return "".join(
        pieces(
            [
                f'<?xml version="1.0"?>\n<net name={name} version="{VERSION}">\n',
                writer.text(),
                write_rt_info(own_extras.get("rt_info", about_model), metadata),
                "</net>\n",
            ]
        )
    )


def _output_names(model: Model, writer: GraphWriter) -> tuple[list[str], list[list[str]]]:
    """The name of each output, and all names of its Result: the names from an IR, or its own. A
    value that is also an input, or several outputs, is one tensor in OpenVINO, so it has all their
    names."""
    graph = model.graph
    names = writer.claim_names(graph.output_names or [""] * len(graph.outputs))
    said = [one.get("output_names", ()) for one in model.extras.get("ir", {}).get("results", ())]
    said = said if len(said) == len(names) else [()] * len(names)
    uses = Counter((*graph.inputs, *graph.outputs))
    answers = []
    for value, name, own in zip(graph.outputs, names, said, strict=True):
        alone = uses[value] == 1 and model.format != "ir"
        every = [name] if alone else [name, *writer.tensor_names[value]]
        answers.append(list(own if name in own else dict.fromkeys(every)))
    return names, answers
