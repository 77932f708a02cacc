"""Damages models at random places, as a faulty tool or a bad disk might."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import onnx
from lxml import etree

from tests.support.model_files import load_onnx

_TEXTS = (
    "", "-1", "0", "1", "99", "x", "?", "1,2", "-1,-2", "f32", "i64", "true", "Add", "If", "Result",
    "opset1", "99999999999999999999",
)  # fmt: skip
_NUMBERS = (0, 1, -1, 2, 7, -5, 99)
_NAMES = ("", "x", "zzz", "If", "Add", "axis")


def damaged_ir(path: Path, folder: Path, rng: random.Random) -> Path:
    """A copy of an IR, in `folder`, with one or two elements dropped, doubled or changed."""
    tree = etree.parse(path)
    elements = [e for e in tree.getroot().iterdescendants() if isinstance(e.tag, str)]
    for element in rng.sample(elements, rng.choice((1, 1, 2))):
        kind = rng.choice(("drop", "double", "lose", "change", "change"))
        parent = element.getparent()
        if kind == "drop" and parent is not None:
            parent.remove(element)
        elif kind == "double" and parent is not None:
            parent.append(copy.deepcopy(element))
        elif element.attrib:
            name = rng.choice(sorted(element.attrib))
            if kind == "lose":
                del element.attrib[name]
            else:
                element.attrib[name] = rng.choice(_TEXTS)
    damaged = folder / "damaged.xml"
    tree.write(damaged)
    weights = path.with_suffix(".bin")
    damaged.with_suffix(".bin").write_bytes(weights.read_bytes() if weights.exists() else b"")
    return damaged


def damaged_onnx(path: Path, folder: Path, rng: random.Random) -> Path:
    """A copy of an ONNX model, in `folder`, with one or two fields lost or changed."""
    model = load_onnx(path)
    for _ in range(rng.choice((1, 1, 2))):
        message = rng.choice(_messages(model))
        if fields := message.ListFields():
            _damage_field(message, *rng.choice(fields), rng)
    damaged = folder / "damaged.onnx"
    damaged.write_bytes(model.SerializeToString())
    return damaged


def _messages(model: onnx.ModelProto) -> list[Any]:
    """All messages in a model except the model itself."""
    found: list[Any] = []
    stack: list[Any] = [model]
    while stack:
        for field, value in stack.pop().ListFields():
            if field.type == field.TYPE_MESSAGE:
                stack += value if hasattr(value, "add") else [value]
                found += value if hasattr(value, "add") else [value]
    return found


def _damage_field(message: Any, field: Any, value: Any, rng: random.Random) -> None:
    if rng.random() < 0.35:
        message.ClearField(field.name)
    elif hasattr(value, "extend"):
        index = rng.randrange(len(value))
        if rng.random() < 0.5:
            del value[index]
        elif field.type == field.TYPE_MESSAGE:
            value.append(copy.deepcopy(value[index]))
        else:
            value[index] = _other(field, value[index], rng)
    elif field.type != field.TYPE_MESSAGE:
        setattr(message, field.name, _other(field, value, rng))


def _other(field: Any, value: Any, rng: random.Random) -> Any:
    """A value of the field's type; enumerations and floats stay as they are."""
    if field.type == field.TYPE_STRING:
        return rng.choice(_NAMES)
    if field.type == field.TYPE_BYTES:
        return rng.choice(_NAMES).encode()
    return rng.choice(_NUMBERS) if field.type in (field.TYPE_INT32, field.TYPE_INT64) else value
