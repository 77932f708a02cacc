"""One body of an If or a Loop while its sequences and optionals are lowered: its new inputs and
outputs, each with the port that it will have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.control import enter, widen
from bridge.neutral.ports import (
    Carried,
    Condition,
    InputPort,
    Invariant,
    Iteration,
    OutputPort,
    Sliced,
    Stacked,
    Yield,
)
from bridge.neutral.types import OptionalType, SequenceType
from bridge.passes.sequences.forms import (
    Elements,
    Form,
    Maybe,
    Ragged,
    Uniform,
    common,
    converted,
    leaf_types,
    leaves,
    rebuilt,
    same_structure,
)

if TYPE_CHECKING:
    from bridge.passes.sequences.lower import Lowering


def is_compound(value: Value | None) -> bool:
    """Whether a value is a sequence or an optional."""
    return value is not None and isinstance(value.type, SequenceType | OptionalType)


def part_names(form: Form) -> Iterator[str]:
    """What the leaves of a form are called, in the order of `leaves`."""
    match form:
        case Value():
            yield "value"
        case Elements():
            yield from (str(i) for i in range(len(form.items)))
        case Ragged():
            yield from ("data", "shapes")
        case Uniform():
            yield "data"
        case Maybe():
            yield "present"
            if form.payload is not None:
                yield from part_names(form.payload)


class Inputs:
    """The inputs of a node under construction, each distinct value once."""

    def __init__(self, values: list[Value | None]) -> None:
        self.values = values
        self._index: dict[Value, int] = {}

    def index(self, value: Value) -> int:
        found = self._index.get(value)
        if found is None:
            found = self._index[value] = len(self.values)
            self.values.append(value)
        return found


class OpenBody:
    """A body while it is lowered. `lowering` walks through it, `outer` through the graph around."""

    def __init__(self, outer: Lowering, lowering: Lowering, node: Node, body: Body) -> None:
        self.outer = outer
        self.lowering = lowering
        self.node = node
        self.body = body
        self.entries: list[tuple[Value, InputPort, Value | None]] = []
        self.states: list[Form | None] = []

    def enter_invariants(self) -> None:
        """Gives the body what it captures."""
        for value, port in self.body.entries():
            self._enter(value, port)

    def _enter(self, value: Value, port: InputPort) -> None:
        outer_value = self.node.inputs[port.input] if isinstance(port, Invariant) else None
        if outer_value is None:
            self.entries.append((value, port, None))
            if not isinstance(port, Carried):
                enter(self.node, value, port)
            return
        form = self.outer.form(outer_value)
        if isinstance(form, Value) and not is_compound(value):
            value.type, value.content = form.type, form.content
            self.entries.append((value, port, form))
            return
        inner: list[Value] = []
        for leaf, part in zip(leaves(form), part_names(form), strict=True):
            tensor = leaf.constant
            if tensor is not None:
                inner.append(self.lowering.builder.tensor(tensor))
                continue
            made = Value(leaf.type, [f"{name}.{part}" for name in value.names])
            made.content = leaf.content
            self.entries.append((made, port, leaf))
            inner.append(made)
        self.lowering.forms[value] = rebuilt(form, iter(inner))

    def enter_loop(self, states: list[Form | None]) -> None:
        """Gives a Loop's body what it captures, and its states in the forms tried."""
        self.states = states
        for value, port, state in zip(
            self.body.graph.inputs, self.body.inputs, states, strict=True
        ):
            if not isinstance(port, Carried) or state is None:
                self._enter(value, port)
            elif isinstance(state, Value) and not is_compound(value):
                self.entries.append((value, port, None))
                value.type = state.type
            else:
                inner = []
                for type, part in zip(leaf_types(state), part_names(state), strict=True):
                    made = Value(type, [f"{name}.{part}" for name in value.names])
                    self.entries.append((made, port, None))
                    inner.append(made)
                self.lowering.forms[value] = rebuilt(state, iter(inner))

    def output(self, index: int) -> Form:
        """The form that becomes the node's output `index`."""
        for value, port in self.body.exits():
            if isinstance(port, Yield) and port.output == index:
                return self.lowering.form(value)
        raise AssertionError(f"no branch output {index}")

    def next_states(self) -> list[Form | None]:
        """What the states must be able to hold after an iteration."""
        result: list[Form | None] = []
        for port, state in zip(self.body.inputs, self.states, strict=True):
            if not isinstance(port, Carried) or state is None:
                result.append(state)
                continue
            value = self.body.graph.outputs[port.output]
            again = self.lowering.form(value)
            merged = common(state, again, value.name)
            if isinstance(merged, Value) and isinstance(again, Value) and merged is state:
                merged = _widened(state, again)
            elif isinstance(merged, Elements) and isinstance(again, Elements):
                assert isinstance(state, Elements)
                pairs = zip(state.items, again.items, strict=True)
                merged = Elements(tuple(_widened(a, b) for a, b in pairs), state.item)
            result.append(merged)
        return result

    def finish_if(self, targets: list[Form], inputs: Inputs) -> Body:
        """The lowered branch, its outputs in the structure of `targets`."""
        outputs: list[Value] = []
        for index, target in enumerate(targets):
            name = self.node.outputs[index].name
            form = converted(self.lowering.builder, self.output(index), target, name)
            outputs += leaves(form)
        ports: list[OutputPort] = [Yield(i) for i in range(len(outputs))]
        return self._close(outputs, ports, self._input_ports(inputs))

    def _input_ports(self, inputs: Inputs) -> list[tuple[Value, InputPort]]:
        result: list[tuple[Value, InputPort]] = []
        for value, _, outer in self.entries:
            assert outer is not None
            result.append((value, Invariant(inputs.index(outer))))
        return result

    def _close(
        self,
        outputs: list[Value],
        output_ports: list[OutputPort],
        entries: list[tuple[Value, InputPort]],
    ) -> Body:
        self.body.graph.nodes = self.lowering.nodes
        self.body.set_entries(entries)
        self.body.set_exits(zip(outputs, output_ports, strict=True))
        return self.body

    def finish_loop(self, inputs: Inputs) -> tuple[Body, list[Form]]:
        """The lowered body of a Loop, and the structure of each of the node's outputs."""
        b = self.lowering.builder
        carried: dict[int, Form] = {}
        for port, state in zip(self.body.inputs, self.states, strict=True):
            if isinstance(port, Carried) and state is not None:
                carried[port.output] = state
        # The node's outputs keep their order, each in as many values as its form has leaves.
        targets: list[Form | None] = [None] * len(self.node.outputs)
        by_output: list[Form] = []
        for index, (value, exit) in enumerate(self.body.exits()):
            form: Form | None = self.lowering.form(value)
            if index in carried:
                form = converted(b, form, carried[index], value.name)
            assert form is not None
            by_output.append(form)
            if isinstance(exit, Yield | Stacked) and exit.output is not None:
                targets[exit.output] = form
        first: dict[int, int] = {}
        count = 0
        for index, target in enumerate(targets):
            first[index] = count
            count += sum(1 for _ in leaves(target))
        outputs: list[Value] = []
        ports: list[OutputPort] = []
        place: dict[int, int] = {}
        for index, (form, exit) in enumerate(zip(by_output, self.body.outputs, strict=True)):
            place[index] = len(outputs)
            for offset, leaf in enumerate(leaves(form)):
                outputs.append(leaf)
                ports.append(_moved(exit, first, offset))
        entries = self._loop_entries(inputs, place)
        body = self._close(outputs, ports, entries)
        return body, [t for t in targets if t is not None]

    def _loop_entries(self, inputs: Inputs, place: dict[int, int]) -> list[tuple[Value, InputPort]]:
        starts: dict[int, Iterator[Value]] = {}
        offsets: dict[int, int] = {}
        for port, state in zip(self.body.inputs, self.states, strict=True):
            if isinstance(port, Carried) and port.input is not None and state is not None:
                outer = self.node.inputs[port.input]
                assert outer is not None
                form = converted(self.outer.builder, self.outer.form(outer), state, outer.name)
                starts[id(port)] = leaves(form)
        entries: list[tuple[Value, InputPort]] = []
        for value, port, outer in self.entries:
            match port:
                case Invariant():
                    assert outer is not None
                    entries.append((value, Invariant(inputs.index(outer))))
                case Carried():
                    at = place[port.output] + offsets.get(id(port), 0)
                    offsets[id(port)] = offsets.get(id(port), 0) + 1
                    if isinstance(self.body.outputs[port.output], Condition):
                        entries.append((value, Carried(port.input, at)))
                    else:
                        start = next(starts[id(port)])
                        inputs.values.append(start)
                        entries.append((value, Carried(len(inputs.values) - 1, at)))
                case Sliced():
                    whole = self.node.inputs[port.input]
                    assert whole is not None
                    index = inputs.index(self.outer.substitution.of(whole))
                    entries.append((value, replace(port, input=index)))
                case Iteration():
                    entries.append((value, port))
        return entries


def same_form(a: Form | None, b: Form | None) -> bool:
    """Whether two forms have one structure, and leaves of the same types."""
    if a is None or b is None:
        return a is b
    return same_structure(a, b) and leaf_types(a) == leaf_types(b)


def _widened(state: Value, again: Value) -> Value:
    """A value of the type that a state has before and after an iteration."""
    type = widen(state.type, again.type)
    return state if type == state.type else Value(type, state.names)


def _moved(exit: OutputPort, first: dict[int, int], offset: int) -> OutputPort:
    match exit:
        case Yield():
            return Yield(None if exit.output is None else first[exit.output] + offset)
        case Stacked():
            return Stacked(
                first[exit.output], exit.axis, exit.start, exit.stride, exit.end,
                exit.part_size, exit.keepdims,
            )  # fmt: skip
    return exit
