"""What an ONNX model says beside what it computes, and IR has no place for: its operator sets, who
made it, its notes, the names of its bodies, and which nodes have none. IR's rt_info keeps it for
the way back.

IR wants a name for every layer: one that has none gets its type and its id. Those that the model
itself gives so are `named` in the record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bridge.errors import InvalidModelError
from bridge.neutral.graph import Model
from bridge.neutral.types import I64_MAX
from bridge.records import read_record

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
    are names by the path of a body below the top graph."""

    opset: int = 0
    opsets: dict[str, int] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)

    def nameless(self, name: str, type: str, id: int) -> bool:
        """Whether a layer has its name only because every layer needs one."""
        return bool(self.opset) and name == f"{type}_{id}" and name not in self.named

    def give(self, model: Model) -> None:
        """Tells a model what it was."""
        if not self.opset:
            return
        model.opset, model.opsets = self.opset, self.opsets
        model.extras["onnx"] = {**self.about, "notes": self.notes}  # type: ignore[typeddict-item]


def dump(model: Model, bodies: dict[str, str], named: list[str]) -> dict[str, str]:
    """The entry for a model that was ONNX once; none for another."""
    if model.opset is None:
        return {}
    about: dict[str, Any] = dict(model.extras.get("onnx", {}))
    notes = about.pop("notes", {})
    bodies = {path: name for path, name in bodies.items() if name not in ("", BODY)}
    record = Origin(model.opset, model.opsets, about, notes, bodies, named)
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
        _of(said.get("bodies"), _text),
        [name for name in _list(said.get("named")) if isinstance(name, str)],
    )


def _text(value: object) -> bool:
    return isinstance(value, str)


def _is_version(value: object) -> bool:
    return type(value) is int and 1 <= value <= NEWEST


def _is_number(value: object) -> bool:
    return type(value) is int and abs(value) <= I64_MAX


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _of(found: Any, right: Any) -> dict[str, Any]:
    """The entries of an object that are right."""
    if not isinstance(found, Mapping):
        return {}
    return {key: value for key, value in found.items() if right(value)}


def _notes(found: Any) -> dict[str, Any]:
    """Notes by the name of what they are of."""
    return {
        name: {
            **_of({"doc_string": note.get("doc_string")}, _text),
            "metadata_props": _of(note.get("metadata_props"), _text),
        }
        for name, note in _of(found, lambda note: isinstance(note, dict)).items()
    }
