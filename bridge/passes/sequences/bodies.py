"""One body of an If or a Loop while its sequences, optionals and tensors of open rank are lowered:
its new inputs and outputs, each with the port that it will have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bridge.neutral.graph import BRANCHES, Body, Node, Value
from bridge.neutral.inference.control import enter, part_type, widen
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
from bridge.neutral.types import ANY, OptionalType, SequenceType, meet
from bridge.operators import Refused
from bridge.operators.control.idle import surely_runs
from bridge.passes.sequences.branches import Exit
from bridge.passes.sequences.elements import Elements
from bridge.passes.sequences.form import Form
from bridge.passes.sequences.join import common
from bridge.passes.sequences.shape_vectors import unsettled
from bridge.passes.sequences.tensors import Open, Plain, Tensor

if TYPE_CHECKING:
    from bridge.passes.sequences.lower import Lowering


def is_compound(value: Value | None) -> bool:
    """Whether a value is a sequence or an optional."""
    return value is not None and isinstance(value.type, SequenceType | OptionalType)


class Inputs:
    """The inputs of a node under construction, each distinct value once."""

    def __init__(self, values: list[Value | None]) -> None:
        self.values = values
        self._index: dict[Value, int] = {}

    def index(self, value: Value) -> int:
        """The place of a value, which is added where it is new."""
        found = self._index.get(value)
        if found is None:
            found = self._index[value] = len(self.values)
            self.values.append(value)
        return found


class OpenBody:
    """A body while it is lowered. `lowering` walks through it, `outer` through the graph around;
    `role` is what it is to its node."""

    def __init__(
        self, outer: Lowering, lowering: Lowering, node: Node, body: Body, role: str
    ) -> None:
        self.outer = outer
        self.lowering = lowering
        self.node = node
        self.body = body
        self.role = role
        outer.branches.enter(node, body)
        self.entries: list[tuple[Value, InputPort, Value | None]] = []
        self.states: list[Form | None] = []

    def enter_invariants(self) -> None:
        """Gives the body what it captures."""
        for value, port in self.body.entries():
            self._enter(value, port)

    def _enter(self, value: Value, port: InputPort) -> None:
        if isinstance(port, Sliced):
            self._enter_part(value, port)
            return
        outer_value = self.node.inputs[port.input] if isinstance(port, Invariant) else None
        if outer_value is None:
            self.entries.append((value, port, None))
            if not isinstance(port, Carried):
                enter(self.node, value, port)
            return
        form = self.outer.form(outer_value)
        if isinstance(form, Plain) and not is_compound(value):
            value.type, value.known_value = form.value.type, form.value.known_value
            self.entries.append((value, port, form.value))
            return
        inner: list[Value] = []
        for leaf, part in zip(form.leaves(), form.leaf_names(), strict=True):
            tensor = leaf.constant
            if tensor is not None:
                inner.append(self.lowering.builder.tensor(tensor))
                continue
            made = Value(leaf.type, [f"{name}.{part}" for name in value.names])
            made.known_value = leaf.known_value
            self.entries.append((made, port, leaf))
            inner.append(made)
        entered = form.with_leaves(iter(inner))
        if isinstance(entered, Open):
            self.lowering.bind(value, self._here(entered, outer_value))
        else:
            self.lowering.forms[value] = entered

    def _here(self, form: Open, value: Value) -> Open:
        """A captured tensor, of those shapes alone that it can have in this branch."""
        condition = self.node.condition
        if self.node.op != "If" or condition is None:
            return form
        truth = self.role == BRANCHES[0]
        shapes = self.outer.branches.shapes_where(value, condition, truth)
        return form if shapes is None else replace(form, shapes=shapes)

    def results(self) -> list[Exit]:
        """What a branch gives for each output, with the shapes that a tensor may have."""
        exits: dict[int | None, Exit] = {}
        for value, port in self.body.exits():
            form = self.lowering.form(value)
            shapes = form.known_shapes() if isinstance(form, Tensor) else None
            exits[port.output if isinstance(port, Yield) else None] = Exit(value, shapes)
        return [exits[index] for index in range(len(self.node.outputs))]

    def _enter_part(self, value: Value, port: Sliced) -> None:
        """Gives the body a part of a tensor."""
        source = self.node.inputs[port.input]
        assert source is not None
        whole = self.outer.form(source)
        if isinstance(whole, Plain):
            self.entries.append((value, port, whole.value))
            value.type = meet(part_type(whole.value.type, port), value.declared)
            return
        if not isinstance(whole, Open):
            raise Refused("it slices a sequence or an optional")
        parts = self.outer.parts.get((source, port))
        if parts is None:
            parts = self.outer.parts[source, port] = whole.sliced(self.outer.builder, port)
        part = Value(part_type(parts.data.type, port), list(value.names))
        shape = Value(parts.shape.type, [f"{name}.shape" for name in value.names])
        self.entries += [(part, port, parts.data), (shape, Invariant(0), parts.shape)]
        b = self.lowering.builder
        data = b.op("Reshape", part, b.constant([-1]))
        self.lowering.forms[value] = Open(data, shape, parts.shapes)

    def enter_loop(self, states: list[Form | None]) -> None:
        """Gives a Loop's body what it captures, and its states in the forms tried."""
        self.states = states
        for value, port, state in zip(
            self.body.graph.inputs, self.body.inputs, states, strict=True
        ):
            if not isinstance(port, Carried) or state is None:
                self._enter(value, port)
            elif isinstance(state, Plain) and not is_compound(value):
                self.entries.append((value, port, None))
                value.type = state.value.type
            else:
                inner = []
                for type, part in zip(state.leaf_types(), state.leaf_names(), strict=True):
                    made = Value(type, [f"{name}.{part}" for name in value.names])
                    self.entries.append((made, port, None))
                    inner.append(made)
                self.lowering.forms[value] = state.with_leaves(iter(inner))

    def output(self, index: int) -> Form:
        """The form that becomes the node's output `index`."""
        for value, port in self.body.exits():
            if isinstance(port, Yield) and port.output == index:
                return self.lowering.form(value)
        raise AssertionError(f"no branch output {index}")

    def next_states(self, bounded: bool) -> list[Form | None]:
        """What the states must be able to hold after an iteration. A rank that is still open to
        more than before has no bound where `bounded` is false."""
        result: list[Form | None] = []
        for port, state in zip(self.body.inputs, self.states, strict=True):
            if not isinstance(port, Carried) or state is None:
                result.append(state)
                continue
            value = self.body.graph.outputs[port.output]
            again = self.lowering.form(value)
            merged = common(state, again, value.name)
            if isinstance(state, Tensor) and isinstance(again, Tensor):
                merged = _widened(state, again, bounded)
            elif isinstance(merged, Elements) and isinstance(again, Elements):
                assert isinstance(state, Elements)
                pairs = zip(state.items, again.items, strict=True)
                merged = Elements(tuple(_widened(a, b, bounded) for a, b in pairs), state.item)
            result.append(merged)
        return result

    def finish_if(self, targets: list[Form], inputs: Inputs) -> Body:
        """The lowered branch, its outputs in the structure of `targets`."""
        outputs: list[Value] = []
        for index, target in enumerate(targets):
            name = self.node.outputs[index].name
            outputs += target.hold(self.lowering.builder, self.output(index), name).leaves()
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
            form = self.lowering.form(value)
            if isinstance(exit, Condition) and isinstance(form, Open):
                form = Plain(form.at_rank(b, 0))
            own = form
            if index in carried:
                form = carried[index].hold(b, form, value.name)
            by_output.append(form)
            if isinstance(exit, Yield | Stacked) and exit.output is not None:
                targets[exit.output] = self._behind(exit, form, own)
        first: dict[int, int] = {}
        count = 0
        for index, target in enumerate(targets):
            first[index] = count
            count += len(target.leaves()) if target else 0
        outputs: list[Value] = []
        ports: list[OutputPort] = []
        place: dict[int, int] = {}
        for index, (form, exit) in enumerate(zip(by_output, self.body.outputs, strict=True)):
            place[index] = len(outputs)
            for offset, leaf in enumerate(form.leaves()):
                outputs.append(leaf)
                ports.append(_moved(exit, first, offset))
        entries = self._loop_entries(inputs, place)
        body = self._close(outputs, ports, entries)
        return body, [t for t in targets if t is not None]

    def _behind(self, exit: Yield | Stacked, form: Form, own: Form) -> Form:
        """What a Loop gives of what its body gives: a state that has the structure `form` is what
        an iteration gives, `own`, where the Loop is known to run, and not what it starts as."""
        if not isinstance(form, Open) or not isinstance(own, Tensor):
            return form
        if isinstance(exit, Stacked) and (exit.axis or exit.keepdims):
            raise unsettled("it stacks values of open rank along an axis that is not the first")
        runs = surely_runs(self.node, self.node.inputs[:2])
        return replace(form, shapes=own.known_shapes()) if runs else form

    def _loop_entries(self, inputs: Inputs, place: dict[int, int]) -> list[tuple[Value, InputPort]]:
        starts: dict[int, Iterator[Value]] = {}
        offsets: dict[int, int] = {}
        for port, state in zip(self.body.inputs, self.states, strict=True):
            if isinstance(port, Carried) and port.input is not None and state is not None:
                outer = self.node.inputs[port.input]
                assert outer is not None
                form = state.hold(self.outer.builder, self.outer.form(outer), outer.name)
                starts[id(port)] = iter(form.leaves())
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
                    assert outer is not None
                    entries.append((value, replace(port, input=inputs.index(outer))))
                case Iteration():
                    entries.append((value, port))
        return entries


def same_form(a: Form | None, b: Form | None) -> bool:
    """Whether two forms have one structure, and leaves of the same types."""
    if a is None or b is None:
        return a is b
    return a.structure() == b.structure() and a.known_types() == b.known_types()


def _widened(state: Tensor, again: Tensor, bounded: bool) -> Tensor:
    """A tensor that may be what a state is before and after an iteration."""
    wide = state.either(again)
    if not isinstance(wide, Open):
        before, after = state.leaves()[0], again.leaves()[0]
        type = widen(before.type, after.type)
        return state if type == before.type else Plain(Value(type, before.names))
    if wide.shapes is None or not (bounded or wide.ranks == state.ranks):
        return replace(wide, shapes=None)
    known = {len(shape): shape for shape in state.known_shapes() or ()}
    shapes = (
        tuple(d if d == o else ANY for d, o in zip(s, known.get(len(s), s), strict=True))
        for s in wide.shapes
    )
    return replace(wide, shapes=tuple(shapes))


def _moved(exit: OutputPort, first: dict[int, int], offset: int) -> OutputPort:
    match exit:
        case Yield():
            return Yield(None if exit.output is None else first[exit.output] + offset)
        case Stacked():
            return Stacked(
                first[exit.output] + offset, exit.axis, exit.start, exit.stride, exit.end,
                exit.part_size, exit.keepdims,
            )  # fmt: skip
    return exit
