"""One body of an If or a Loop while its sequences, optionals and tensors of open rank are lowered:
its new inputs and outputs, each with its new port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bridge.neutral.graph import BRANCHES, Body, Node, Value
from bridge.neutral.inference.computed import enter_known
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
from bridge.neutral.types import ANY, ContainerType, meet
from bridge.operators import Refused
from bridge.operators.control.idle import surely_runs
from bridge.passes.sequences.branches import Exit
from bridge.passes.sequences.elements import Captured, Elements
from bridge.passes.sequences.form import Form
from bridge.passes.sequences.join import common
from bridge.passes.sequences.maybe import Maybe, held
from bridge.passes.sequences.ragged import Ragged
from bridge.passes.sequences.shape_vectors import unsettled
from bridge.passes.sequences.tensors import Open, Plain, TensorForm
from bridge.passes.sequences.uniform import Uniform

if TYPE_CHECKING:
    from bridge.passes.sequences.lower import Lowering

F = TypeVar("F", bound=Form)


def is_compound(value: Value | None) -> bool:
    """Whether a value is a sequence or an optional."""
    return value is not None and isinstance(value.type, ContainerType)


class NodeInputs:
    """The inputs of a node under construction, each distinct value once."""

    def __init__(self, values: list[Value | None]) -> None:
        self.values = values
        self._index: dict[Value, int] = {}

    def index(self, value: Value) -> int:
        """The place of a value, which is added if it is new."""
        found = self._index.get(value)
        if found is None:
            found = self._index[value] = len(self.values)
            self.values.append(value)
        return found


class BodyInput(NamedTuple):
    """An input of a lowered body: a leaf of a value of the graph around, or a leaf of a state."""

    value: Value
    port: InputPort
    outer: Value | None = None
    state: int = 0
    leaf: int = 0


class OpenBody:
    """A body while it is lowered. `lowering` walks through it, `outer` through the graph around it.
    `role` is the name of the body in its node."""

    def __init__(
        self, outer: Lowering, lowering: Lowering, node: Node, body: Body, role: str
    ) -> None:
        self.outer = outer
        self.lowering = lowering
        self.node = node
        self.body = body
        self.role = role
        outer.branches.enter(node, body)
        self.yields = {
            port.output: value for value, port in body.exits() if isinstance(port, Yield)
        }
        self.entries: list[BodyInput] = []
        self.states: list[Form | None] = []
        self.moved: dict[Value, Ragged | Uniform] = {}

    def enter(self, states: list[Form | None]) -> None:
        """Gives the body its captures, and its states in the forms to try: None for an input that
        is no state."""
        self.states = states
        for index, (value, port) in enumerate(self.body.entries()):
            state = states[index]
            if isinstance(port, Carried) and state is not None:
                self._enter_state(value, port, index, state)
            elif isinstance(port, Sliced):
                self._enter_part(value, port)
            elif isinstance(port, Invariant):
                outer = self.node.inputs[port.input]
                assert outer is not None
                self._enter_captured(value, port, outer)
            else:
                self.entries.append(BodyInput(value, port))
                if not isinstance(port, Carried):
                    enter(self.node, value, port)

    def _enter_state(self, value: Value, port: Carried, index: int, state: Form) -> None:
        if isinstance(state, Plain) and not is_compound(value):
            self.entries.append(BodyInput(value, port, state=index))
            value.type = state.value.type
            return
        names = _names(value, state)
        inner = [Value(type, own) for type, own in zip(state.leaf_types(), names, strict=True)]
        self.entries += [
            BodyInput(made, port, None, index, leaf) for leaf, made in enumerate(inner)
        ]
        self.lowering.forms[value] = state.with_leaves(iter(inner))

    def _enter_captured(self, value: Value, port: Invariant, outer: Value) -> None:
        form = self.outer.form(outer)
        if isinstance(form, Plain) and not is_compound(value):
            enter_known(value, form.value)
            self.entries.append(BodyInput(value, port, form.value))
            return
        entered = self._entered(value, port, form)
        if isinstance(entered, Open):
            self.lowering.bind(value, self._here(entered, outer))
            return
        if isinstance(entered, Elements) and (self.node.op == "Loop" or isinstance(form, Captured)):
            outside = partial(self._moved, value, port, outer)
            entered = Captured(entered.items, entered.item, outside)
        self.lowering.forms[value] = entered

    def _entered(self, value: Value, port: Invariant, form: F) -> F:
        """A form of the graph around, with a further input of the body for each of its leaves."""
        inner: list[Value] = []
        for leaf, names in zip(form.leaves(), _names(value, form), strict=True):
            if leaf.constant is not None:
                inner.append(self.lowering.builder.tensor(leaf.constant))
                continue
            inner.append(Value(leaf.type, names))
            enter_known(inner[-1], leaf)
            self.entries.append(BodyInput(inner[-1], port, leaf))
        return form.with_leaves(iter(inner))

    def _moved(self, value: Value, port: Invariant, outer: Value) -> Ragged | Uniform:
        """Captured elements in a form that can be indexed at run time."""
        if value not in self.moved:
            around = self.outer.moved
            if outer not in around:
                form = self.outer.form(outer)
                assert isinstance(form, Elements)
                with self.outer.builder as b:
                    around[outer] = form.movable(b, outer.name)
            self.moved[value] = self._entered(value, port, around[outer])
        return self.moved[value]

    def _here(self, form: Open, value: Value) -> Open:
        """A captured tensor with only the shapes that it can have in this branch."""
        condition = self.node.condition
        if self.node.op != "If" or condition is None:
            return form
        truth = self.role == BRANCHES[0]
        shapes = self.outer.branches.shapes_where(value, condition, truth)
        return form if shapes is None else replace(form, shapes=shapes)

    def results(self) -> list[Exit]:
        """A branch's output for each output of the If, with the possible shapes of a tensor."""
        exits = []
        for index in range(len(self.node.outputs)):
            form = self.output(index)
            shapes = form.known_shapes() if isinstance(form, TensorForm) else None
            exits.append(Exit(self.yields[index], shapes))
        return exits

    def _enter_part(self, value: Value, port: Sliced) -> None:
        """Gives the body a part of a tensor."""
        source = self.node.inputs[port.input]
        assert source is not None
        whole = self.outer.form(source)
        if isinstance(whole, Plain):
            self.entries.append(BodyInput(value, port, whole.value))
            value.type = meet(part_type(whole.value.type, port), value.declared)
            return
        if not isinstance(whole, Open):
            raise Refused("it slices a sequence or an optional")
        parts = self.outer.parts.get((source, port))
        if parts is None:
            parts = self.outer.parts[source, port] = whole.sliced(self.outer.builder, port)
        part = Value(part_type(parts.data.type, port), list(value.names))
        shape = Value(parts.shape.type, [f"{name}.shape" for name in value.names])
        self.entries += (
            BodyInput(part, port, parts.data),
            BodyInput(shape, Invariant(0), parts.shape),
        )
        b = self.lowering.builder
        data = b.op("Reshape", part, [-1])
        self.lowering.forms[value] = Open(data, shape, parts.shapes)

    def output(self, index: int) -> Form:
        """The form that becomes the node's output `index`."""
        return self.lowering.form(self.yields[index])

    def next_states(self, bounded: bool) -> list[Form | None]:
        """The forms that the states need after an iteration. A rank that is still open to more than
        before has no bound if `bounded` is false."""
        result: list[Form | None] = []
        for port, state in zip(self.body.inputs, self.states, strict=True):
            if not isinstance(port, Carried) or state is None:
                result.append(state)
                continue
            value = self.body.graph.outputs[port.output]
            again = self.lowering.form(value)
            wide = common(state, again, value.name)
            result.append(_widened(state, again, bounded, wide))
        return result

    def finish_if(self, targets: list[Form], inputs: NodeInputs) -> Body:
        """The lowered branch, its outputs in the structure of `targets`."""
        outputs: list[Value] = []
        with self.lowering.builder as b:
            for index, target in enumerate(targets):
                name = self.node.outputs[index].name
                outputs += target.hold(b, self.output(index), name).leaves()
        ports = [Yield(index) for index in range(len(outputs))]
        entries = [self._entry(entry, inputs, (), {}) for entry in self.entries]
        return self._close(outputs, ports, entries)

    def _close(
        self,
        outputs: list[Value],
        ports: Sequence[OutputPort],
        entries: list[tuple[Value, InputPort]],
    ) -> Body:
        self.body.graph.nodes = self.lowering.nodes
        self.body.set_entries(entries)
        self.body.set_exits(zip(outputs, ports, strict=True))
        return self.body

    def finish_loop(self, inputs: NodeInputs) -> tuple[Body, list[Form]]:
        """The lowered body of a Loop, and the structure of each of the node's outputs."""
        carried = {
            port.output: state
            for port, state in zip(self.body.inputs, self.states, strict=True)
            if isinstance(port, Carried) and state is not None
        }
        # The node's outputs keep their order, each in as many values as its form has leaves.
        targets: list[Form | None] = [None] * len(self.node.outputs)
        exits: list[Form] = []
        for index, (value, exit) in enumerate(self.body.exits()):
            own = self.lowering.form(value)
            if isinstance(exit, Condition) and isinstance(own, Open):
                with self.lowering.builder as b:
                    own = Plain(own.at_rank(b, 0))
            form = own
            if index in carried:
                with self.lowering.builder as b:
                    form = carried[index].hold(b, own, value.name)
            exits.append(form)
            if isinstance(exit, Yield | Stacked) and exit.output is not None:
                targets[exit.output] = self._behind(exit, form, own)
        first, place = _offsets(targets), _offsets(exits)
        ports: list[OutputPort] = []
        for form, exit in zip(exits, self.body.outputs, strict=True):
            for leaf in range(len(form.leaves())):
                if isinstance(exit, Yield | Stacked) and exit.output is not None:
                    ports.append(replace(exit, output=first[exit.output] + leaf))
                else:
                    ports.append(exit)
        starts = self._starts()
        entries = [self._entry(entry, inputs, place, starts) for entry in self.entries]
        body = self._close([leaf for form in exits for leaf in form.leaves()], ports, entries)
        return body, [target for target in targets if target is not None]

    def _behind(self, exit: Yield | Stacked, form: Form, own: Form) -> Form:
        """The output of a Loop for a body output, in the structure of `form`. If the Loop surely
        runs, a state has the shapes of `own`, the output of an iteration."""
        if not isinstance(form, Open) or not isinstance(own, TensorForm):
            return form
        if isinstance(exit, Stacked) and (exit.axis or exit.keepdims):
            raise unsettled("it stacks values of open rank along an axis that is not the first")
        runs = surely_runs(self.node, self.node.inputs[:2])
        return replace(form, shapes=own.known_shapes()) if runs else form

    def _starts(self) -> dict[int, tuple[Value, ...]]:
        """The first value of each state, in the form that it keeps."""
        starts = {}
        for index, (port, state) in enumerate(zip(self.body.inputs, self.states, strict=True)):
            if isinstance(port, Carried) and port.input is not None and state is not None:
                outer = self.node.inputs[port.input]
                assert outer is not None
                form = state.hold(self.outer.builder, self.outer.form(outer), outer.name)
                starts[index] = form.leaves()
        return starts

    def _entry(
        self,
        entry: BodyInput,
        inputs: NodeInputs,
        place: Sequence[int],
        starts: Mapping[int, Sequence[Value]],
    ) -> tuple[Value, InputPort]:
        """An input with its port: `place` has the first leaf of each body output."""
        port = entry.port
        if isinstance(port, Carried):
            output = place[port.output] + entry.leaf
            if isinstance(self.body.outputs[port.output], Condition):
                return entry.value, Carried(port.input, output)
            inputs.values.append(starts[entry.state][entry.leaf])
            return entry.value, Carried(len(inputs.values) - 1, output)
        if isinstance(port, Iteration):
            return entry.value, port
        assert entry.outer is not None
        return entry.value, replace(port, input=inputs.index(entry.outer))


def _names(value: Value, form: Form) -> list[list[str]]:
    """The names of each leaf of the form of a value."""
    return [[f"{name}.{leaf}" for name in value.names] for leaf in form.leaf_names()]


def _offsets(forms: Sequence[Form | None]) -> list[int]:
    """The place of the first leaf of each form among all leaves."""
    return [*accumulate((len(form.leaves()) if form else 0 for form in forms), initial=0)]


def same_form(a: Form | None, b: Form | None) -> bool:
    """Whether two forms have one structure, and leaves of the same types."""
    if a is None or b is None:
        return a is b
    return a.structure(exact=True) == b.structure(exact=True) and a.leaf_types() == b.leaf_types()


def _widened(
    state: Form | None, again: Form | None, bounded: bool, wide: Form | None
) -> Form | None:
    """A form that can hold a state before and after an iteration, in the structure of `wide`."""
    match state, again, wide:
        case TensorForm(), TensorForm(), _:
            return _wide_tensor(state, again, bounded)
        case Elements(), Elements(), Elements():
            pairs = zip(state.items, again.items, strict=True)
            return Elements(tuple(_wide_tensor(a, b, bounded) for a, b in pairs), state.item)
        case _, _, Maybe():
            # The value in place of an absent element has sizes without meaning.
            inside = _widened(held(state), held(again), bounded, wide.payload)
            return Maybe(wide.present, inside)
    return wide


def _wide_tensor(state: TensorForm, again: TensorForm, bounded: bool) -> TensorForm:
    """A tensor that can hold a state before and after an iteration."""
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
