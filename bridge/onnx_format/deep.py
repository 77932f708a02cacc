"""Models nested deeper than protobuf parses.

Its parsers stop at 100 messages within one another, which is 33 Ifs. Graphs below a certain depth
are cut out of the wire format and parsed by themselves; a reference stays in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from bridge.onnx_format.scope import Scope

DEEPEST = 25
"""Graphs within one another that are left to protobuf."""


class Grafts:
    """Graphs that stand elsewhere than where they are read, by the reference that stands for them:
    those that were cut out, and those that a function's caller gives it."""

    def __init__(self) -> None:
        self._graphs: dict[str, onnx.GraphProto] = {}
        self._homes: dict[str, Scope] = {}

    def add(self, data: bytes) -> bytes:
        """Parses a graph; the bytes of the reference to it."""
        reference = self._refer(onnx.GraphProto.FromString(data))
        return bytes(reference.SerializeToString())

    def lend(self, proto: onnx.GraphProto, home: Scope) -> onnx.GraphProto:
        """A reference to a graph that goes to a function but sees the names of `home`, where it
        stands."""
        if proto.name in self._homes:
            return proto
        reference = self._refer(self.graph(proto))
        self._homes[reference.name] = home
        return reference

    def _refer(self, graph: onnx.GraphProto) -> onnx.GraphProto:
        key = f"{SELF}{len(self._graphs)}"
        self._graphs[key] = graph
        return onnx.GraphProto(name=key)

    def graph(self, proto: onnx.GraphProto) -> onnx.GraphProto:
        """The graph itself, or the one that it refers to."""
        if self._graphs and proto.name.startswith(SELF):
            return self._graphs.get(proto.name, proto)
        return proto

    def home(self, proto: onnx.GraphProto) -> Scope | None:
        """The scope that a lent graph stands in; None for others."""
        return self._homes.get(proto.name)


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
