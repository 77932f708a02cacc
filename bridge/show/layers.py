"""The Ifs and Loops of an IR by the names that ONNX has for what they give."""

from __future__ import annotations

from pathlib import Path

from bridge.ir_format.document import Element, read_document, select
from bridge.ir_format.names import split_names


def layers_with_bodies(path: Path) -> dict[str, str]:
    """Each layer with bodies, as `If "name", id 7`, by the tensor names of its outputs."""
    found: dict[str, str] = {}

    def take(_: Element, element: Element) -> None:
        waiting = [element]
        while waiting:
            layer = waiting.pop()
            waiting += reversed(layer.children)
            if layer.tag == "layer" and layer.get("type") in ("If", "Loop", "TensorIterator"):
                text = f'{layer.get("type")} "{layer.get("name")}", id {layer.get("id")}'
                for port in select(layer.children, "output", "port"):
                    found.update(dict.fromkeys(split_names(port.get("names")), text))

    read_document(path, take)
    return found
