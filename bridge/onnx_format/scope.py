"""Names while an ONNX graph is read, and the captures of bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import onnx

from bridge.errors import InvalidModelError
from bridge.limits import budget
from bridge.neutral.builder import Builder
from bridge.neutral.captures import Captures
from bridge.neutral.extras import NodeExtras
from bridge.neutral.graph import Body, Graph, Value
from bridge.neutral.inference.computed import enter_known
from bridge.neutral.ports import Invariant
from bridge.neutral.types import Type, meet
from bridge.onnx_format.notes import read_extras
from bridge.onnx_format.order import Unordered
from bridge.onnx_format.proto_node import ProtoNode

if TYPE_CHECKING:
    from bridge.onnx_format.frontend import OnnxReader


class Scope:
    """The values that a graph sees by name. A body's scope has a `parent` and `captures`."""

    def __init__(
        self,
        reader: OnnxReader,
        builder: Builder,
        opsets: dict[str, int],
        where: str,
        parent: Scope | None = None,
        captures: Captures | None = None,
        attributes: dict[str, onnx.AttributeProto] | None = None,
        prefix: str = "",
    ) -> None:
        self.reader = reader
        self.builder = builder
        self.opsets = opsets
        self.where = where
        self.parent = parent
        self.captures = captures
        self.attributes = attributes
        self.prefix = prefix
        self.graph = Graph()
        self.body = Body(self.graph)
        self.values: dict[str, Value | None] = {}
        # Names in this graph and in the graphs around it, and the names that this graph added. A
        # function's body starts anew.
        self._visible: set[str] = set()
        self._added: list[str] = []
        self.declared: dict[str, Type] = {}
        self.extras: Mapping[str, NodeExtras | None] = {}
        self.caller: Scope | None = None
        self._home: Scope | None = None
        self._brought: dict[Value, Value] = {}
        self.calls: tuple[str, ...] = () if parent is None else parent.calls
        self.depth: int = 0 if parent is None else parent.depth + 1

    def nested(self, captures: Captures, where: str, home: Scope | None = None) -> Scope:
        """The scope of a body of a node in this scope. A body that a function was given sees the
        names of its `home`, the scope of the call."""
        around = home or self
        budget().graph(self.depth + 1, f"{self.where} / {where}")
        scope = Scope(
            self.reader,
            Builder([]),
            around.opsets,
            f"{self.where} / {where}",
            self,
            captures,
            around.attributes,
            around.prefix,
        )
        scope._home, scope._visible, scope.extras = home, around._visible, around.extras
        return scope

    def define(self, name: str, value: Value | None, shadows: bool = False) -> None:
        """Gives a value its name. InvalidModelError if another value of this graph has the name.
        The graphs around it must not use it either, unless it `shadows` (inputs of bodies may)."""
        if name in (self.values if shadows else self._visible):
            raise InvalidModelError(
                f'{self.where}: two values are called "{name}"; in ONNX each value has its own name'
            )
        if name not in self._visible:
            self._visible.add(name)
            self._added.append(name)
        self.values[name] = value

    def sees(self, name: str) -> bool:
        """Whether this graph or one around it has a value of this name so far."""
        return name in self._visible

    def close(self) -> None:
        """Ends a body: the graphs beside it may use its names."""
        self._visible.difference_update(self._added)

    def resolve(self, name: str, where: str) -> Any:
        """The value with the name `name`, captured from outside if this graph has none; None for an
        optional input that a function did not get."""
        if name in self.values:
            return self.values[name]
        if self.parent is None:
            message = f'{self.where}: {where} uses "{name}", which no node before it computes'
            raise Unordered(message, where)
        if self._home is None:
            outer = self.parent.resolve(name, where)
        else:
            outer = self.parent._bring(self._home.resolve(name, where), self._home)
        # Without its own captures it is part of its parent's graph (a function's body).
        value = outer if outer is None or self.captures is None else self._capture(outer)
        self.values[name] = value
        return value

    def _bring(self, value: Value | None, home: Scope) -> Value | None:
        """The value of this scope for a value of `home`, a scope further out."""
        if value is None or self is home:
            return value
        if self.captures is None:  # a function's body is part of the graph that calls it
            assert self.caller is not None
            return self.caller._bring(value, home)
        if value not in self._brought:
            assert self.parent is not None
            outer = self.parent._bring(value, home)
            assert outer is not None
            self._brought[value] = self._capture(outer)
        return self._brought[value]

    def _capture(self, outer: Value) -> Value:
        tensor = outer.constant
        if tensor is not None:
            return self.builder.tensor(tensor, list(outer.names))
        assert self.captures is not None
        value = Value(names=list(outer.names))
        # Not declared: a Loop around may yet widen the type.
        enter_known(value, outer)
        self.body.add_entry(value, Invariant(self.captures.index(outer)))
        return value

    def refer(self, node: ProtoNode) -> None:
        """Gives a node in a function the attributes that it refers to. Removes references to
        attributes that the function did not get."""
        if not any(a.ref_attr_name for a in node.attribute):
            return
        attributes = []
        for attribute in node.attribute:
            name, given = attribute.ref_attr_name, attribute
            if name:
                if self.attributes is None:
                    raise InvalidModelError(
                        f"{node.where}: its attribute {attribute.name} refers to "
                        f'"{name}" of a function, but it stands in none'
                    )
                if name not in self.attributes:
                    continue
                given = onnx.AttributeProto()
                given.CopyFrom(self.attributes[name])
                given.name = attribute.name
            attributes.append(given)
        node.attribute = attributes

    def extras_of(self, node: ProtoNode) -> NodeExtras | None:
        """The doc string and the metadata of a node. Outside functions the survey has them."""
        first = node.output[0] if node.output else ""
        known = self.extras[first] if first in self.extras else read_extras(node.proto)
        return known.copy() if known is not None else None

    def outputs(self, node: ProtoNode) -> list[Value]:
        """Fresh values for a node's outputs, with their names and declared types."""
        values = []
        for name in node.output:
            value = Value(names=[self.prefix + name] if name else [])
            if name in self.declared:
                value.declared = value.type = self.declared[name]
            values.append(value)
        return values

    def bind(self, node: ProtoNode, values: list[Value]) -> None:
        """Makes a node's outputs known by their names."""
        for name, value in zip(node.output, values, strict=False):
            if name:
                self.define(name, value)

    def bind_results(self, node: ProtoNode, results: list[Value | None]) -> None:
        """Gives the results of a rule the names of the node's outputs."""
        for name, value in zip(node.output, results, strict=False):
            if not name:
                continue
            if value is None:
                raise InvalidModelError(f'{node.where}: its output "{name}" has no meaning')
            if value.names or value.producer is None:
                value = self.builder.op("Identity", value)
            value.names = [self.prefix + name]
            declared = self.declared.get(name)
            if declared is not None:
                value.declared = meet(value.declared, declared)
                value.type = meet(value.type, declared)
            self.define(name, value)
