"""IRs in ONNX models: onnxruntime's provider for OpenVINO takes an IR as a model with one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    model's inputs and outputs. A node that names none stays as it is.

    Raises InvalidModelError if the IR or its weights lie outside the model's folder, or the IR has
    other inputs or outputs."""
    name = named_ir(model.graph.nodes[0])
    if not name:
        return model
    where = f"{path} / EPContext"
    files = ModelFiles(path.absolute())
    weights = Path(name).with_suffix(".bin")
    has_weights = (path.parent / weights).exists()
    found = read(
        Path(files.place(name, where)),
        Path(files.place(str(weights), where)) if has_weights else None,
    )
    found.files |= model.files
    found.notes.append(f"the model is the IR {name}, which its EPContext names")
    _order_as(model, found, where)
    return found


def _order_as(model: Model, found: Model, where: str) -> None:
    """Gives a model the boundary of another. Further inputs stay behind the others: a decoder's
    `beam_idx` is one."""
    graph = found.graph
    wanted = dict(zip(names_of_outputs(model.graph), model.graph.outputs, strict=True))
    ends = dict(zip(names_of_outputs(graph), graph.outputs, strict=True))
    outputs = [(name, value, {name, *value.names}) for name, value in ends.items()]
    outputs = _matched(wanted, outputs, f"{where}: outputs")
    graph.output_names = [name for name, _, _ in outputs]
    graph.outputs = [value for _, value, _ in outputs]
    if graph.output_names != [*ends]:
        found.extras["ir"].pop("results")
        remove_dead_nodes(graph)
    taken = {value.name: value for value in model.graph.inputs}
    inputs = [(value.name, value, {*value.names}) for value in graph.inputs]
    matched = [value for _, value, _ in _matched(taken, inputs, f"{where}: inputs")]
    graph.inputs = [*matched, *(value for value in graph.inputs if value not in matched)]
    for name, value in zip(taken, matched, strict=True):
        value.names.sort(key=lambda known: known != name)
    names = {value.name: name for name, value in zip(taken, matched, strict=True)}
    names |= dict(zip(graph.output_names, wanted, strict=True))
    rename(found, {old: new for old, new in names.items() if old != new})


_End = tuple[str, Value, set[str]]
"""An input or output, its value, and all names that it answers to."""


def _matched(wanted: Mapping[str, Value], ends: Sequence[_End], where: str) -> list[_End]:
    """The ends by the wanted names, or one after another if names do not say which."""
    by_name = {name: end for end in ends for name in end[2]}
    if by_name.keys() >= wanted.keys():
        ends = [by_name[name] for name in wanted]
    elif len(ends) != len(wanted):
        names = " and ".join(", ".join(found) for found in (wanted, (end[0] for end in ends)))
        raise InvalidModelError(f"{where} of the node and of its IR differ: {names}")
    for value, end in zip(wanted.values(), ends, strict=True):
        if value.element not in (None, end[1].element):
            raise InvalidModelError(
                f"{where} of the node and of its IR differ: {value.name} is {value.element}, "
                f"{end[0]} is {end[1].element}"
            )
    return [*ends]
