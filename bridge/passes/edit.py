"""Edits of a model's boundary that a user asks for: a cut at other outputs, and other names."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from bridge.errors import UsageError
from bridge.neutral.graph import Model, names_of_outputs
from bridge.passes.dead import remove_dead_nodes
from bridge.suggestions import unknown

_RECORDS = (
    "boundary",
    "constants",
    "vocabularies",
    "map_keys",
    "state",
    "stateful",
    "state_types",
    "first_calls",
)
"""Entries of the metadata that name inputs and outputs, whose meaning an edit would lose."""


def cut_at(model: Model, names: Sequence[str]) -> None:
    """Makes values of the top graph, by name, the model's outputs, in place. Nodes and inputs that
    they do not need go. UsageError if there is no such value."""
    graph = model.graph
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise UsageError(f"`outputs` lists names of values, each once; it is {names!r}")
    values = {name: value for value in graph.inputs for name in value.names}
    values |= {name: v for node in graph.nodes for v in node.outputs for name in v.names}
    values |= dict(zip(names_of_outputs(graph), graph.outputs, strict=True))
    # Tools also show the names of nodes.
    given = {node.name: [v.name for v in node.outputs if v.name] for node in graph.nodes}
    names = [n for name in names for n in ([name] if name in values else given.get(name) or [name])]
    for name in names:
        _require_known(name, values, "value in its top graph that is called")
    before = names_of_outputs(graph)
    _require_no_record(model, {*before} - {*names})
    graph.output_names, graph.outputs = list(names), [values[name] for name in names]
    model.extras.get("ir", {}).pop("results", None)
    remove_dead_nodes(graph)
    used = {value for node in graph.nodes for value in node.inputs} | {*graph.outputs}
    _require_no_record(model, {v.name for v in graph.inputs if v not in used})
    graph.inputs = [value for value in graph.inputs if value in used]
    model.defaults = {value: x for value, x in model.defaults.items() if value in used}


def rename(model: Model, names: Mapping[str, str]) -> None:
    """Gives inputs and outputs other names, in place. UsageError if there is no such input or
    output, or another one has the name."""
    graph = model.graph
    graph.output_names = names_of_outputs(graph)
    inputs = {name: value for value in graph.inputs for name in value.names}
    known = [*inputs, *graph.output_names]
    for old, new in names.items():
        _require_known(old, known, "input or output")
        if not new or (new in known and new not in names):
            raise UsageError(f'"{old}" cannot be called "{new}", as another input or output is')
    if len(set(names.values())) < len(names):
        raise UsageError("two inputs or outputs cannot have one name")
    _require_no_record(model, names)
    own = model.extras.get("ir", {})
    for value in {inputs[old] for old in names if old in inputs}:
        own.get("parameters", {}).pop(value, None)
    if not names.keys().isdisjoint(graph.output_names):
        own.pop("results", None)
    ends = {*inputs.values(), *graph.outputs}
    free = {new for new in names.values()}
    for value in (*graph.inputs, *(v for node in graph.walk() for v in node.outputs)):
        if value in ends:
            value.names = [names.get(name, name) for name in value.names]
        else:
            value.names = [name for name in value.names if name not in free]
    graph.output_names = [names.get(name, name) for name in graph.output_names]


def _require_known(name: str, known: Iterable[str], what: str) -> None:
    if name not in known:
        raise UsageError(unknown(what, name, known))


def _texts(record: str) -> set[str]:
    """All texts of a record, in quotes."""
    return set(re.findall(r'"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)', record))


def _require_no_record(model: Model, names: Mapping[str, str] | set[str]) -> None:
    """Raises UsageError if a record about the boundary concerns one of these names."""
    for key in _RECORDS:
        text = model.metadata.get(key, "")
        for name in names:
            # A sequence `s` is recorded as such, and its inputs are `s.data` and `s.shapes`.
            if text and {json.dumps(name), json.dumps(name.rpartition(".")[0])} & _texts(text):
                raise UsageError(
                    f'"{name}" is part of what the model\'s record of its {key} names; edit the '
                    "model that it was converted from"
                )
