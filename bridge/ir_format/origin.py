"""What an ONNX model says beside what it computes, and IR has no place for: its operator sets, who
made it, its notes, the names of its bodies, and which nodes have none. IR's rt_info keeps it for
the way back.

IR wants a name of its own for every layer: one that has none gets its type and its id, and those
that are made for one node are numbered. What the model itself calls so is `named` in the record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bridge.errors import InvalidModelError
from bridge.ir_format.names import unnumbered
from bridge.metadata import read_record
from bridge.neutral.graph import Graph, Model
from bridge.neutral.types import I64_MAX

KEY = "onnx"
"""The entry of `Model.metadata` that holds an Origin, in JSON."""

BODY = "body"
"""What a body is called that the record does not name."""

NEWEST = 1 << 16
"""The newest operator set that a record may speak of."""

_TEXTS = ("producer_name", "producer_version", "domain", "doc_string")


@dataclass
class Origin:
    """The record. `about` are fields of the model by name, `notes` is `OnnxExtras.notes`; `bodies`
    are the names of bodies in the order of the file, outer before inner, "" for BODY; `formers` are
    the nodes that layers stand for (see `bridge.ir_format.provenance`)."""

    opset: int = 0
    opsets: dict[str, int] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    bodies: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    numbered: dict[str, int] = field(default_factory=dict)
    formers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._named = frozenset(self.named)

    def given(self, name: str, type: str, id: int) -> str:
        """The name that a layer was given before every layer needed one of its own."""
        if not self.opset or name in self._named:
            return name
        if name == f"{type}_{id}":
            return ""
        base, number = unnumbered(name)
        return base if 1 <= number <= self.numbered.get(base, 0) else name

    def give(self, model: Model, bodies: Sequence[Graph]) -> None:
        """Tells a model, whose bodies these are in order, what it was."""
        if not self.opset:
            return
        if len(bodies) == len(self.bodies):
            for graph, name in zip(bodies, self.bodies, strict=True):
                graph.name = name
        model.opset, model.opsets = self.opset, self.opsets
        model.extras["onnx"] = {**self.about, "notes": self.notes}  # type: ignore[typeddict-item]


def dump(
    model: Model,
    bodies: Sequence[Graph],
    named: list[str],
    numbered: dict[str, int],
    formers: dict[str, dict[str, list[Any]]],
) -> dict[str, str]:
    """The entry for a model that was ONNX once; none for another."""
    if model.opset is None:
        return {}
    about: dict[str, Any] = dict(model.extras.get("onnx", {}))
    notes = about.pop("notes", {})
    names = ["" if graph.name == BODY else graph.name for graph in bodies]
    named = [name for name in dict.fromkeys(named) if _looks_made(name, numbered)]
    record = Origin(
        model.opset, model.opsets, about, notes, names if any(names) else [], named, numbered,
        formers,
    )  # fmt: skip
    said = {key: value for key, value in asdict(record).items() if value}
    return {KEY: json.dumps(said, separators=(",", ":"))}


def load(metadata: dict[str, str]) -> Origin:
    """Takes the entry out of the metadata; what is no such entry says nothing."""
    try:
        said = read_record(metadata.get(KEY, "{}"), KEY)
    except InvalidModelError:
        return Origin()
    if not isinstance(said, dict) or not _is_version(said.get("opset")):
        return Origin()
    del metadata[KEY]
    about = said.get("about")
    about = about if isinstance(about, dict) else {}
    return Origin(
        said["opset"],
        _of(said.get("opsets"), _is_version),
        {
            **_of({key: about.get(key) for key in _TEXTS}, _text),
            **_of({"model_version": about.get("model_version")}, _is_number),
        },
        _notes(said.get("notes")),
        _texts(said.get("bodies")),
        _texts(said.get("named")),
        _of(said.get("numbered"), _is_number),
        _of(said.get("formers"), lambda formers: isinstance(formers, dict)),
    )


def _looks_made(name: str, numbered: dict[str, int]) -> bool:
    """Whether a name that the model gave could be one that was made, of a layer of some type."""
    base, number = unnumbered(name)
    return base.isalnum() or 1 <= number <= numbered.get(base, 0)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _is_version(value: object) -> bool:
    return type(value) is int and 1 <= value <= NEWEST


def _is_number(value: object) -> bool:
    return type(value) is int and abs(value) <= I64_MAX


def _texts(found: Any) -> list[str]:
    return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []


def _of(found: Any, right: Any) -> dict[str, Any]:
    """The entries of an object that are right."""
    if not isinstance(found, Mapping):
        return {}
    return {key: value for key, value in found.items() if right(value)}


def _notes(found: Any) -> dict[str, Any]:
    """Notes by the path of what they are of."""
    return {
        path: {key: note[key] for key, is_right in _RIGHT.items() if is_right(note.get(key))}
        for path, note in _of(found, lambda note: isinstance(note, dict)).items()
    }


def _texts_by_key(value: object) -> bool:
    return isinstance(value, dict) and all(map(_text, value.values()))


def _numbers_by_key(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


def _dims(value: object) -> bool:
    return isinstance(value, list) and all(
        dim is None or isinstance(dim, str) or (_is_number(dim) and dim >= 0) for dim in value
    )


_RIGHT: Mapping[str, Callable[[Any], bool]] = {
    "doc_string": _text,
    "metadata_props": _texts_by_key,
    "hints": _numbers_by_key,
    "shape": _dims,
    "value_info": _dims,
}
"""What the entries of a note are."""
