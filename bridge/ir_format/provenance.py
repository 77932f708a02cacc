"""The original ONNX node of a layer, with the nodes that lead to it. IR's rt_info keeps it for the
way back, by the key of the body and the layer's name. Its inputs are outputs of layers, or tensors
that IR does not use."""

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from bridge.neutral.attributes import fault_of
from bridge.neutral.builder import Builder
from bridge.neutral.extras import Provenance
from bridge.neutral.graph import Value
from bridge.neutral.tensor import FileRange, Tensor
from bridge.neutral.types import STRING, size_of
from bridge.vocabulary import has_trait
from bridge.vocabulary.elements import ELEMENTS, Element

LONGEST = 1024
"""The most bytes that are written down plainly for a tensor, or for the numbers of an attribute."""

LARGEST = 1 << 16
"""The bytes of the largest tensor that is written down, such as the bias of an LSTM."""

MOST = 1 << 22
"""The most numbers of an attribute that is written down."""

LOST = 6
"""The most nodes in a row that are written down because the file lacks them. A quirk may replace
several nodes at once, and nothing in the file may read an input of the original node."""

_WIDEST = 32
"""The most characters, on average, of a number or of the name of a tree's mode."""

Where = Callable[[Value], "tuple[str, int] | None"]
"""The name of the layer that gives a value, and the index of its output."""


def dump(provenance: Provenance, where: Where, stored: Mapping[object, str]) -> list[Any] | None:
    """A node as JSON; None if JSON cannot hold it. `stored` names the layer of each constant by its
    bytes."""
    split = has_trait(provenance.op, "recurrent")
    try:
        inputs = [_input(value, where, stored, LOST, split) for value in provenance.inputs]
        attributes = {name: _attribute(value) for name, value in provenance.attributes.items()}
        outputs = [_output(value, where) for value in provenance.outputs]
    except TypeError:
        return None
    said: list[Any] = [provenance.op, inputs, attributes, outputs]
    if provenance.of_quirk:
        former = provenance.former
        said.append((former and dump(former, where, stored)) or True)
    while len(said) > 2 and not said[-1]:
        said.pop()
    return said


def _input(
    value: Value | None,
    where: Where,
    stored: Mapping[object, str],
    lost: int = 0,
    split: bool = False,
) -> Any:
    """An input: an output of a layer, a tensor, or an output of a node that is not in the file,
    of which `lost` may be nested. `split` says that the file may have a large tensor in parts."""
    if value is None:
        return None
    place, tensor, made = where(value), value.constant, value.producer
    if place is not None:
        return place[0] if place[1] == 0 else list(place)
    if tensor is None:
        if made is None or made.bodies or not lost:
            raise TypeError
        inputs = [_input(taken, where, stored, lost - 1) for taken in made.inputs]
        attributes = {name: _attribute(one) for name, one in made.attributes.items()}
        at = [made.outputs.index(value), len(made.outputs)]
        return {"lost": [made.op, inputs, attributes, *at], "name": value.name}
    if tensor.nbytes > LONGEST and tensor.storage in stored:
        said = {"element": tensor.element.name, "shape": list(tensor.shape)}
        return {**said, "of": stored[tensor.storage], "name": value.name}
    if split and tensor.nbytes > LARGEST:
        return _parts(tensor, value.name)
    return {**_tensor(tensor), "name": value.name}


def _parts(tensor: Tensor, name: str) -> dict[str, Any]:
    """Weights of the directions of a recurrent layer, of which each is a constant in the file."""
    data, count = tensor.data(), tensor.shape[0]
    size = len(data) // count
    parts = [_digest(data[i * size : (i + 1) * size]) for i in range(count)]
    return {
        "element": tensor.element.name,
        "shape": list(tensor.shape),
        "parts": parts,
        "name": name,
    }


def _digest(data: memoryview) -> str:
    return sha256(data).hexdigest()[:16]


def _output(value: Value, where: Where) -> Any:
    return {"name": value.name} if where(value) is None else _input(value, where, {})


def _attribute(value: Any) -> Any:
    if isinstance(value, Element):
        return {"element": value.name}
    if isinstance(value, Tensor):
        return _tensor(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple) and len(value) < LONGEST // 8:
        return [_attribute(item) for item in value]
    if isinstance(value, tuple):
        return _packed(value)
    raise TypeError


def _packed(values: tuple[Any, ...]) -> dict[str, str]:
    """Many numbers or texts, as the nodes of a tree have them, in short."""
    if len(values) > MOST or not all(isinstance(value, int | float | str) for value in values):
        raise TypeError
    written = json.dumps(values, separators=(",", ":")).encode()
    return {"packed": base64.b64encode(zlib.compress(written, 9)).decode()}


def _unpacked(said: str) -> tuple[Any, ...]:
    """What `_packed` wrote; a hostile file gets no more memory than that takes."""
    reader = zlib.decompressobj()
    written = reader.decompress(base64.b64decode(said, validate=True), MOST * _WIDEST)
    if reader.unconsumed_tail or not reader.eof:
        raise ValueError("there are more numbers than are ever written")
    return tuple(json.loads(written))


def _tensor(tensor: Tensor) -> dict[str, Any]:
    if tensor.nbytes > LARGEST or tensor.element is STRING:
        raise TypeError
    said = {"element": tensor.element.name, "shape": list(tensor.shape)}
    if tensor.nbytes > LONGEST:
        return {**said, "base64": base64.b64encode(tensor.data()).decode()}
    return {**said, "bytes": bytes(tensor.data()).hex()}


TOP = "0"
"""The key of the graph around all bodies."""


def key_of_body(outside: str, holder: str, tag: str) -> str:
    """The key of a body in the record, from that of the graph around it and the layer that holds
    it. OpenVINO saves bodies in another order. All keys have one length, however deep a body is."""
    return sha256(f"{outside}/{holder}/{tag}".encode()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class _Joined:
    """The bytes of tensors in a row."""

    parts: Sequence[Tensor]

    def chunks(self) -> Iterator[memoryview]:
        """The bytes, in pieces."""
        for part in self.parts:
            yield from part.chunks()


class ProvenanceTable:
    """The record's entries for one graph while it is read. Their constants are in no graph."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self._constants: dict[str, Value] = {}
        self._said = said
        self._values: dict[str, Sequence[Value]] = {}
        self._digests: dict[object, dict[str, Tensor]] = {}

    def know(self, layer: str, values: Sequence[Value]) -> None:
        """Learns the outputs of a layer."""
        self._values[layer] = values

    def note(self) -> None:
        """Notes the original nodes with the nodes of all layers. OpenVINO saves layers in another
        order."""
        for layer in self._said:
            values = self._values.get(layer)
            node = values[0].producer if values else None
            if node is not None:
                with suppress(LookupError, TypeError, ValueError, AttributeError):
                    said = self._read(self._said[layer])
                    node.extras = {**(node.extras or {}), "provenance": said}

    def _read(self, said: Any) -> Provenance:
        op, inputs, *rest = said
        former = rest[2] if len(rest) > 2 else None
        return Provenance(
            str(op),
            {str(name): _read_attribute(value) for name, value in (*rest, {})[0].items()},
            [None if value is None else self._input(value) for value in inputs],
            [self._output(value) for value in rest[1]] if len(rest) > 1 else (),
            former is not None,
            self._read(former) if isinstance(former, list) else None,
        )

    def _output(self, said: Any) -> Value:
        if not isinstance(said, dict):
            return self._input(said)
        return Value(names=[str(said["name"])] if said["name"] else [])

    def _input(self, said: Any) -> Value:
        if not isinstance(said, dict):
            name, index = (said, 0) if isinstance(said, str) else said
            return self._values[name][index]
        key = str(said)
        names = [str(said["name"])] if said.get("name") else []
        if key not in self._constants and "lost" in said:
            op, inputs, attributes, index, count = said["lost"]
            read = {str(name): _read_attribute(value) for name, value in attributes.items()}
            if fault_of(op, read) or not 0 <= index < count <= len(str(said)):
                raise ValueError(op)
            taken = [None if value is None else self._input(value) for value in inputs]
            self._constants[key] = value = Builder([]).node(op, taken, count, read).outputs[index]
            value.names = names
        if key not in self._constants and "parts" in said:
            self._constants[key] = Builder([]).tensor(self._joined(said), names)
        if key not in self._constants:
            held = self._values[said["of"]][0].constant if "of" in said else None
            tensor = _read_tensor(said, None if held is None else held.source)
            self._constants[key] = Builder([]).tensor(tensor, names)
        return self._constants[key]

    def _joined(self, said: Any) -> Tensor:
        """The tensor whose parts along the first axis are constants of the graph and its bodies."""
        element, (count, *rest) = ELEMENTS[said["element"]], map(int, said["shape"])
        kind = element, tuple(rest)
        if kind not in self._digests:
            nodes = [values[0].producer for values in self._values.values() if values]
            bodies = [body for node in nodes if node is not None for body in node.bodies]
            nodes += [node for body in bodies for node in body.graph.walk()]
            held = [node.attributes["value"] for node in nodes if node and node.op == "Constant"]
            fit = [tensor for tensor in held if (tensor.element, tensor.shape) == kind]
            self._digests[kind] = {_digest(tensor.data()): tensor for tensor in fit}
        parts = [self._digests[kind][digest] for digest in said["parts"]]
        if len(parts) != count:
            raise ValueError("the parts do not make the tensor")
        return Tensor(element, (count, *rest), _Joined(parts))


def _read_attribute(said: Any) -> Any:
    if isinstance(said, list):
        return tuple(map(_read_attribute, said))
    if not isinstance(said, dict):
        return said
    if "packed" in said:
        return _unpacked(said["packed"])
    return _read_tensor(said) if "shape" in said else ELEMENTS[said["element"]]


def _read_tensor(said: Any, range: Any = None) -> Tensor:
    """A tensor whose bytes are written down, or are a range of a file."""
    element, shape = ELEMENTS[said["element"]], tuple(map(int, said["shape"]))
    if element is STRING or min(shape, default=0) < 0:
        raise ValueError("no such tensor is written down")
    held = isinstance(range, FileRange)
    if held:
        data = range
    elif "base64" in said:
        data = base64.b64decode(said["base64"], validate=True)
    else:
        data = bytes.fromhex(said["bytes"])
    if element.nbytes(size_of(shape)) != (range.length if held else len(data)):
        raise ValueError("a tensor has other bytes than its type and shape say")
    return Tensor(element, shape, data)
