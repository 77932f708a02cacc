"""Models nested deeper than protobuf parses.

Its parsers stop at 100 messages within one another, which is 33 Ifs. Graphs below a certain depth
are cut out of the wire format and parsed by themselves; a reference stays in their place.
"""

from __future__ import annotations

import onnx

from bridge.onnx_format.wire import (
    ATTRIBUTE,
    ATTRIBUTE_GRAPH,
    LENGTH_DELIMITED,
    MODEL,
    NESTED,
    SELF,
    Data,
    encode,
    fields,
)

DEEPEST = 25
"""Graphs within one another that are left to protobuf."""


class Grafts:
    """The graphs that were cut out, by the reference that stands for them."""

    def __init__(self) -> None:
        self._graphs: dict[str, onnx.GraphProto] = {}

    def add(self, data: bytes) -> bytes:
        """Parses a graph; the bytes of the reference to it."""
        key = f"{SELF}{len(self._graphs)}"
        self._graphs[key] = onnx.GraphProto.FromString(data)
        return onnx.GraphProto(name=key).SerializeToString()

    def graph(self, proto: onnx.GraphProto) -> onnx.GraphProto:
        """The graph itself, or the one that it refers to."""
        if self._graphs and proto.name.startswith(SELF):
            return self._graphs.get(proto.name, proto)
        return proto


def parse_deep(data: bytes) -> tuple[onnx.ModelProto, Grafts]:
    """Parses a model of any depth. Raises protobuf's DecodeError, or ValueError, for what is no
    model."""
    grafts = Grafts()
    pieces = _cut(data, 0, len(data), MODEL, 0, grafts)
    return onnx.ModelProto.FromString(b"".join(pieces)), grafts


def _cut(data: Data, start: int, end: int, kind: int, depth: int, grafts: Grafts) -> list[bytes]:
    """The message in `data[start:end]` with its deep graphs replaced by references."""
    nested = NESTED.get(kind, {})
    pieces: list[bytes] = []
    kept = start
    for field, begin, at, stop in fields(data, start, end):
        if field not in nested:
            continue
        graph = kind == ATTRIBUTE and field == ATTRIBUTE_GRAPH
        below = depth + graph
        inner = b"".join(_cut(data, at, stop, nested[field], below % DEEPEST, grafts))
        if graph and below == DEEPEST:
            inner = grafts.add(inner)
        tag = encode(field << 3 | LENGTH_DELIMITED)
        pieces += [data[kept:begin], tag, encode(len(inner)), inner]
        kept = stop
    pieces.append(data[kept:end])
    return pieces
