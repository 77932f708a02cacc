"""IRs in ONNX models: onnxruntime's provider for OpenVINO takes an IR as a model with one node."""

from collections.abc import Sequence
from pathlib import Path

from bridge.errors import InvalidModelError
from bridge.ir_format.frontend import read
from bridge.neutral.graph import Model, Value, names_of_outputs
from bridge.onnx_format.external import ModelFiles
from bridge.operators.microsoft.renamed import named_ir
from bridge.passes.dead import remove_dead_nodes
from bridge.passes.edit import rename


def unwrapped(model: Model, path: Path) -> Model:
    """The IR that the only node of a model names, an EPContext, with the names and the order of the
    model's inputs and outputs. A node that names none stays as it is. Further inputs of the IR stay
    behind the others: a decoder's `beam_idx` is one.

    Raises InvalidModelError if the IR or its weights lie outside the model's folder, or the IR has
    other inputs or outputs."""
    name = named_ir(model.graph.nodes[0])
    if not name:
        return model
    where, files = f"{path} / EPContext", ModelFiles(path.absolute())
    beside = Path(name).with_suffix(".bin")
    has_weights = (path.parent / beside).exists()
    weights = Path(files.place(str(beside), where)) if has_weights else None
    found = read(Path(files.place(name, where)), weights)
    found.files |= model.files
    found.notes.append(f"the model is the IR {name}, which its EPContext names")
    graph, own = found.graph, names_of_outputs(found.graph)
    for value, end in zip(graph.outputs, own, strict=True):
        value.names += [end] if end not in value.names else []
    outputs = _matched(model.graph.outputs, graph.outputs, f"{where}: outputs")
    graph.output_names = [own[graph.outputs.index(value)] for value in outputs]
    graph.outputs = outputs
    if graph.output_names != own:
        found.extras["ir"].pop("results")
        remove_dead_nodes(graph)
    inputs = _matched(model.graph.inputs, graph.inputs, f"{where}: inputs")
    graph.inputs = [*inputs, *(value for value in graph.inputs if value not in inputs)]
    names = dict(zip(graph.output_names, names_of_outputs(model.graph), strict=True))
    for value, wanted in zip(inputs, model.graph.inputs, strict=True):
        value.names.sort(key=wanted.name.__ne__)
        names[value.name] = wanted.name
    rename(found, {old: new for old, new in names.items() if old != new})
    return found


def _matched(wanted: Sequence[Value], values: Sequence[Value], where: str) -> list[Value]:
    """The values that have the wanted names, or one after another if names do not say which."""
    by_name = {name: value for value in values for name in value.names}
    if all(one.name in by_name for one in wanted):
        values = [by_name[one.name] for one in wanted]
    pairs = [
        [(value.name, value.element and str(value.element)) for value in some]
        for some in (wanted, values)
    ]
    if [kind for _, kind in pairs[0]] != [kind for _, kind in pairs[1]]:
        said = [", ".join(f"{name} ({kind})" for name, kind in some) for some in pairs]
        raise InvalidModelError(f"{where} of the node and of its IR differ: {' and '.join(said)}")
    return [*values]
