"""Models nested deeper than protobuf parses.

Its parsers stop at 100 messages within one another, which is 33 Ifs. Graphs below a certain depth
are cut out of the wire format and parsed by themselves; a reference stays in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx

from bridge.limits import budget
from bridge.onnx_format.wire import (
    GRAPH,
    LENGTH_DELIMITED,
    MODEL,
    NESTED,
    SELF,
    Fields,
    encode,
)

if TYPE_CHECKING:
    from bridge.onnx_format.scope import Scope

DEEPEST = 25
"""The depth of nested graphs up to which protobuf parses them."""


class Grafts:
    """Graphs that are kept outside their message, by the reference in their place: graphs that
    were cut out, and graphs that the caller of a function passes."""

    def __init__(self) -> None:
        self._graphs: dict[str, onnx.GraphProto] = {}
        self._homes: dict[str, Scope] = {}

    def __iter__(self) -> Iterator[onnx.GraphProto]:
        return iter(self._graphs.values())

    def add(self, data: bytes) -> bytes:
        """Parses a graph; the bytes of the reference to it."""
        reference = self._refer(onnx.GraphProto.FromString(data))
        return bytes(reference.SerializeToString())

    def lend(self, proto: onnx.GraphProto, home: Scope) -> onnx.GraphProto:
        """A reference to a graph that goes to a function but sees the names of its own scope
        `home`."""
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


def parse_deep(data: bytes, where: str) -> tuple[onnx.ModelProto, Grafts]:
    """Parses a model of any allowed depth. Raises protobuf's DecodeError, ValueError or IndexError
    if it is no model, and LimitError."""
    grafts = Grafts()
    pieces = _cut(Fields(data, where), 0, len(data), MODEL, 0, grafts)
    return onnx.ModelProto.FromString(b"".join(pieces)), grafts


def _cut(
    fields: Fields, start: int, end: int, kind: int, depth: int, grafts: Grafts
) -> list[bytes]:
    """The message in `data[start:end]`, which lies in `depth` graphs, with its deep graphs
    replaced by references."""
    nested = NESTED.get(kind, {})
    data = fields.data
    pieces: list[bytes] = []
    kept = start
    for field, begin, at, stop in fields.of(start, end):
        if field not in nested:
            continue
        below = depth + (nested[field] == GRAPH)
        budget().graph(below - 1, fields.where)
        inner = b"".join(_cut(fields, at, stop, nested[field], below, grafts))
        if nested[field] == GRAPH and below > 1 and below % DEEPEST == 1:
            inner = grafts.add(inner)
        tag = encode(field << 3 | LENGTH_DELIMITED)
        pieces += [data[kept:begin], tag, encode(len(inner)), inner]
        kept = stop
    pieces.append(data[kept:end])
    return pieces
