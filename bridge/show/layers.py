"""The Ifs and Loops of an IR by the names that ONNX has for what they give."""

from __future__ import annotations

from pathlib import Path

from bridge.ir_format.document import read_document
from bridge.ir_format.names import split_names
from bridge.ir_format.text import Xml


def layers_with_bodies(path: Path) -> dict[str, str]:
    """Each layer with bodies, as `If "name", id 7`, by the tensor names of its outputs."""
    found: dict[str, str] = {}

    def take(_: Xml, element: Xml) -> None:
        for layer in element.iter("layer"):
            if layer.get("type") in ("If", "Loop", "TensorIterator"):
                text = f'{layer.get("type")} "{layer.get("name")}", id {layer.get("id")}'
                for port in layer.iterfind("output/port"):
                    found.update(dict.fromkeys(split_names(port.get("names", "")), text))

    read_document(path, take)
    return found
