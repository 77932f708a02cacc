"""The Ifs and Loops of an IR by the names that ONNX has for what they give."""

from __future__ import annotations

from pathlib import Path


def layers_with_bodies(path: Path) -> dict[str, str]:
    """Each layer with bodies, as `If "name", id 7`, by the tensor names of its outputs."""
    from lxml import etree

    from bridge.ir_format.names import split_names

    found: dict[str, str] = {}
    root = etree.parse(path, etree.XMLParser(huge_tree=True, resolve_entities=False)).getroot()
    for layer in root.iter("layer"):
        if layer.get("type") in ("If", "Loop", "TensorIterator"):
            text = f'{layer.get("type")} "{layer.get("name")}", id {layer.get("id")}'
            for port in layer.iterfind("output/port"):
                found |= dict.fromkeys(split_names(port.get("names", "")), text)
    return found
