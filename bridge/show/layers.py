"""The Ifs and Loops of an IR, by the ONNX names of their outputs."""

from pathlib import Path

from bridge.ir_format.layers import read_graphs


def layers_with_bodies(path: Path) -> dict[str, str]:
    """Each layer with bodies, as `If "name", id 7`, by the tensor names of its outputs."""
    return {
        name: f"{layer}, id {layer.id}"
        for layers in read_graphs(path)
        for layer in layers
        if layer.type in ("If", "Loop", "TensorIterator")
        for port in layer.outputs
        for name in port.names
    }
