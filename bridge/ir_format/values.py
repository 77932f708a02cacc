"""The values of a layer, and facts about it that only IR has."""

from collections.abc import Sequence

from bridge.errors import InvalidModelError
from bridge.ir_format.attributes import parse_element
from bridge.ir_format.layers import Layer, Port
from bridge.ir_format.names import split_names
from bridge.neutral.extras import EdgeExtras, NodeExtras
from bridge.neutral.graph import Value
from bridge.neutral.types import Dim, TensorType, meet
from bridge.operators.ir_texts import parse_shape


def parameter(layer: Layer, where: str) -> Value:
    """The value of a Parameter layer."""
    if not layer.outputs:
        raise InvalidModelError(f"{where} / {layer}: has no output port")
    port = layer.outputs[0]
    try:
        element = parse_element(layer.data.get("element_type", ""))
        shape = parse_shape(layer.data["shape"]) if "shape" in layer.data else None
    except ValueError as error:
        raise InvalidModelError(f"{where} / {layer}: {error}") from None
    type = meet(TensorType(element, shape), port.type)
    names = port.names or [layer.name]
    # OpenVINO sorts names; the one that the layer has too is the one people know.
    return Value(type, sorted(names, key=lambda name: name != layer.name))


def edited_shape(layer: Layer) -> tuple[Dim, ...] | None:
    """The new shape of an edited Parameter. Its port, like the ports of all layers, still has the
    shape before the edit. None if both agree."""
    said = layer.outputs[0].type.shape if layer.outputs else None
    shape = parse_shape(layer.data["shape"]) if "shape" in layer.data else None
    if not said or shape is None or len(said) != len(shape):
        return None
    pairs = zip(said, shape, strict=True)
    return shape if any(isinstance(old, int) and old != new for old, new in pairs) else None


def extras_of(layer: Layer) -> NodeExtras | None:
    """The facts about a layer that only IR has: its rt_info, and that of its ports."""
    extras: NodeExtras = {}
    if layer.rt_info:
        extras["rt_info"] = layer.rt_info
    ports = {
        (kind, index): port.rt_info
        for kind, ports in (("input", layer.inputs), ("output", layer.outputs))
        for index, port in enumerate(ports)
        if port.rt_info
    }
    if ports:
        extras["port_rt_info"] = ports
    return extras or None


def values_of_ports(ports: Sequence[Port]) -> list[Value]:
    """New values with the types and names of ports."""
    return [Value(port.type, list(port.names)) for port in ports]


def edge_layer(layer: Layer) -> EdgeExtras:
    """The facts of a Parameter or Result layer that are kept, so that IR gets them back."""
    names = split_names(layer.output_names)
    return {"name": layer.name, "output_names": names, **(extras_of(layer) or {})}
