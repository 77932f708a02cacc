"""The walk through graphs and bodies that rewrites sequences, optionals and tensors of open rank on
their forms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

from bridge.neutral.builder import Builder, Target, integers
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.inference import infer
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
from bridge.neutral.rewrite import Substitution
from bridge.neutral.types import ANY, OptionalType, SequenceType, meet
from bridge.operators import Refused
from bridge.passes.sequences.branches import Branches
from bridge.passes.sequences.forms import (
    Elements,
    Form,
    Maybe,
    Open,
    Ragged,
    Uniform,
    common,
    converted,
    either,
    known_types,
    leaf_types,
    leaves,
    ranks_of_item,
    rebuilt,
    same_structure,
    shapes_of,
)
from bridge.passes.sequences.open_operators import has_open_rank, lower_open
from bridge.passes.sequences.open_rank import sliced, stacked, to_rank
from bridge.passes.sequences.operators import lowering

MOST_ROUNDS = 6
"""Times that a Loop's body is tried until its state keeps its structure."""

ROUNDS_OF_RANKS = 3
"""Those of them in which a state may take further ranks; one that still does has no bound."""


def is_compound(value: Value | None) -> bool:
    """Whether a value is a sequence or an optional."""
    return value is not None and isinstance(value.type, SequenceType | OptionalType)


class Lowering:
    """Lowers one graph. `forms` holds the forms of its compound values, `branches` what is known of
    the Ifs of the whole model."""

    def __init__(self, graph: Graph, target: Target, branches: Branches | None = None) -> None:
        self.source = graph
        self.nodes: list[Node] = []
        self.target = target
        self.builder = Builder(self.nodes, target=target)
        self.forms: dict[Value, Form] = {}
        self.branches = Branches() if branches is None else branches
        self.parts: dict[tuple[Value, Sliced], Open] = {}
        self.substitution = Substitution()
        self.current: Node | None = None
        self.inner: Lowering | None = None

    def place(self) -> tuple[str, str]:
        """The operator at which the walk stands, and the path to it."""
        path = ["graph"]
        lowering: Lowering | None = self
        op = "graph input"
        while lowering is not None and lowering.current is not None:
            op = lowering.current.op
            path.append(repr(lowering.current))
            lowering = lowering.inner
        return op, " / ".join(path)

    def run(self) -> None:
        """Lowers the nodes; the outputs are for the caller to take by `form`."""
        for node in self.source.nodes:
            self.current, self.inner = node, None
            self._node(node)
        self.current = None

    def form(self, value: Value) -> Form:
        """The form of a value of the graph as it was."""
        known = self.forms.get(value)
        return self.substitution.of(value) if known is None else known

    def _node(self, node: Node) -> None:
        self.builder.name = node.name
        if node.op == "Constant":
            self.nodes.append(node)
            return
        if node.op == "If":
            self._if(node)
            return
        if node.op == "Loop":
            self._loop(node)
            return
        lower = lowering(node.op)
        if lower is not None and (node.op != "Identity" or is_compound(node.inputs[0])):
            given = [None if v is None else self.form(v) for v in node.inputs]
            self.bind(node.outputs[0], lower(self.builder, node, given))
            return
        forms = [None if v is None else self.form(v) for v in node.inputs]
        if has_open_rank(node, forms):
            made = lower_open(self.builder, node, forms)
            for value, form in zip(node.outputs, made, strict=False):
                self.bind(value, form)
            return
        for taken in node.inputs:
            if taken is not None and taken in self.forms:
                raise Refused(f"{node.op} takes the sequence or optional {taken.name!r}")
        self.substitution.apply(node)
        infer(node)
        self.nodes.append(node)

    def bind(self, value: Value, form: Form) -> None:
        """Makes `form` what an output of the old graph is."""
        if isinstance(form, Value):
            if form.producer is None or form.names or form in self.source.inputs:
                form = self.builder.op("Identity", form)
            known = form.type
            self.substitution.replace(value, form)
            if isinstance(value.type, SequenceType | OptionalType):
                form.type = form.declared = known
        else:
            self.forms[value] = form

    def _if(self, node: Node) -> None:
        branches = [_Body(self, node, body, index == 0) for index, body in enumerate(node.bodies)]
        for branch in branches:
            self.inner = branch.lowering
            branch.enter_invariants()
            branch.lowering.run()
            branch.remember()
        targets: list[Form] = []
        for index, value in enumerate(node.outputs):
            forms = [branch.output(index) for branch in branches]
            target: Form | None = forms[0]
            for form in forms[1:]:
                target = common(target, form, value.name)
            assert target is not None
            targets.append(target)
        inputs = _Inputs([self._scalar(v) for v in node.inputs[:1]])
        bodies = tuple(branch.finish_if(targets, inputs) for branch in branches)
        count = sum(1 for target in targets for _ in leaves(target))
        made = self.builder.node("If", inputs.values, count, {}, bodies, node.name, node.extras)
        self._bind_outputs(node, targets, made)

    def _scalar(self, value: Value | None) -> Value | None:
        """A condition or trip count, which has one element whatever its rank."""
        form = None if value is None else self.form(value)
        return to_rank(self.builder, form, 0) if isinstance(form, Open) else cast("Value", form)

    def _bind_outputs(self, node: Node, targets: list[Form], made: Node) -> None:
        values = iter(made.outputs)
        for old, target in zip(node.outputs, targets, strict=True):
            form = rebuilt(target, values)
            if isinstance(form, Maybe) and not isinstance(old.type, OptionalType):
                # A state may enter as an optional and leave as what it holds.
                form = form.payload or form
            if isinstance(form, Open) and form.shapes is not None and len(form.shapes) == 1:
                form = to_rank(self.builder, form, len(form.shapes[0]))
            if isinstance(form, Value):
                self.substitution.replace(old, form)
            else:
                for leaf, part in zip(leaves(form), _part_names(form), strict=True):
                    leaf.names = [f"{name}.{part}" for name in old.names]
                self.forms[old] = form

    def _loop(self, node: Node) -> None:
        states = _initial_states(self, node)
        for round in range(MOST_ROUNDS):
            attempt = _Body(self, node, clone_body(node.bodies[0]))
            self.inner = attempt.lowering
            attempt.enter_loop(states)
            attempt.lowering.run()
            again = attempt.next_states(states, bounded=round < ROUNDS_OF_RANKS)
            if all(_same(a, b) for a, b in zip(states, again, strict=True)):
                break
            states = again
        else:
            raise Refused("the structure of a sequence in its state never settles")
        inputs = _Inputs([self._scalar(v) for v in node.inputs[:2]])
        body, targets = attempt.finish_loop(states, inputs)
        count = sum(1 for target in targets for _ in leaves(target))
        made = self.builder.node(
            "Loop", inputs.values, count, {}, (body,), node.name, node.extras
        )  # fmt: skip
        self._bind_outputs(node, targets, made)
        for port in node.body.outputs:
            form = self.forms.get(node.outputs[port.output]) if isinstance(port, Stacked) else None
            if isinstance(port, Stacked) and isinstance(form, Open):
                self.forms[node.outputs[port.output]] = stacked(self.builder, form)


def _part_names(form: Form) -> Iterator[str]:
    match form:
        case Value():
            yield "value"
        case Open():
            yield from ("data", "shape")
        case Elements():
            for index, item in enumerate(form.items):
                own = tuple(_part_names(item)) if isinstance(item, Open) else ()
                yield from (f"{index}.{part}" for part in own) if own else (str(index),)
        case Ragged():
            yield from ("data", "shapes")
        case Uniform():
            yield "data"
        case Maybe():
            yield "present"
            if form.payload is not None:
                yield from _part_names(form.payload)


def _initial_states(outer: Lowering, node: Node) -> list[Form | None]:
    """For each body input, the form it starts as where it is carried, else None."""
    states: list[Form | None] = []
    for port in node.bodies[0].inputs:
        value = node.inputs[port.input] if isinstance(port, Carried) and port.input else None
        states.append(outer.form(value) if value is not None else None)
    return states


class _Inputs:
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


class _Body:
    """One body while it is lowered: the new inputs, each with the port it will have."""

    def __init__(self, outer: Lowering, node: Node, body: Body, truth: bool | None = None) -> None:
        self.outer = outer
        self.node = node
        self.body = body
        self.truth = truth
        self.lowering = Lowering(body.graph, outer.target, outer.branches)
        outer.branches.enter(node, body)
        self.lowering.builder.name = node.name
        self.entries: list[tuple[Value, InputPort, Value | None]] = []

    def enter_invariants(self) -> None:
        """Gives the body what it captures."""
        for value, port in self.body.entries():
            self._enter(value, port)

    def _enter(self, value: Value, port: InputPort) -> None:
        outer_value = self.node.inputs[port.input] if isinstance(port, Invariant) else None
        if isinstance(port, Sliced):
            self._enter_part(value, port)
            return
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
        for leaf, part in zip(leaves(form), _part_names(form), strict=True):
            tensor = leaf.constant
            if tensor is not None:
                inner.append(self.lowering.builder.tensor(tensor))
                continue
            made = Value(leaf.type, [f"{name}.{part}" for name in value.names])
            made.content = leaf.content
            self.entries.append((made, port, leaf))
            inner.append(made)
        entered = rebuilt(form, iter(inner))
        if isinstance(entered, Open):
            entered = self._here(entered, outer_value)
        self.lowering.bind(value, entered)

    def _here(self, form: Open, value: Value) -> Value | Open:
        """A captured tensor, of those shapes alone that it can have in this branch."""
        condition = self.node.condition
        if self.truth is None or condition is None:
            return form
        shapes = self.outer.branches.shapes_where(value, condition, self.truth)
        if shapes is None:
            return form
        form = replace(form, shapes=shapes)
        return form if len(shapes) > 1 else to_rank(self.lowering.builder, form, len(shapes[0]))

    def remember(self) -> None:
        """Tells what a branch gives to those who ask later."""
        shapes = {}
        for value in self.body.graph.outputs:
            form = self.lowering.form(value)
            if isinstance(form, Value | Open):
                shapes[value] = shapes_of(form)
        self.outer.branches.leave(self.node, self.body, shapes)

    def _enter_part(self, value: Value, port: Sliced) -> None:
        """Gives the body a part of a tensor."""
        source = self.node.inputs[port.input]
        assert source is not None
        whole = self.outer.form(source)
        if isinstance(whole, Value):
            self.entries.append((value, port, whole))
            value.type = meet(part_type(whole.type, port), value.declared)
            return
        if not isinstance(whole, Open):
            raise Refused("it slices a sequence or an optional")
        parts = self.outer.parts.get((source, port))
        if parts is None:
            parts = self.outer.parts[source, port] = sliced(self.outer.builder, whole, port)
        part = Value(part_type(parts.data.type, port), list(value.names))
        shape = Value(parts.shape.type, [f"{name}.shape" for name in value.names])
        self.entries += [(part, port, parts.data), (shape, Invariant(0), parts.shape)]
        b = self.lowering.builder
        data = b.op("Reshape", part, b.constant([-1]))
        self.lowering.forms[value] = Open(data, shape, parts.element, parts.shapes)

    def enter_loop(self, states: list[Form | None]) -> None:
        """Gives a Loop's body what it captures, and its states in the forms tried."""
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
                for type, part in zip(leaf_types(state), _part_names(state), strict=True):
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

    def next_states(self, states: list[Form | None], bounded: bool) -> list[Form | None]:
        """What the states must be able to hold after an iteration. A rank that is still open to
        more than before has no bound where `bounded` is false."""
        result: list[Form | None] = []
        for port, state in zip(self.body.inputs, states, strict=True):
            if not isinstance(port, Carried) or state is None:
                result.append(state)
                continue
            value = self.body.graph.outputs[port.output]
            again = self.lowering.form(value)
            merged = common(state, again, value.name)
            if isinstance(state, Value | Open) and isinstance(again, Value | Open):
                merged = _widened(state, again, bounded)
            elif isinstance(merged, Elements) and isinstance(again, Elements):
                assert isinstance(state, Elements)
                pairs = zip(state.items, again.items, strict=True)
                merged = Elements(tuple(_widened(a, b, bounded) for a, b in pairs), state.item)
            result.append(merged)
        return result

    def finish_if(self, targets: list[Form], inputs: _Inputs) -> Body:
        """The lowered branch, its outputs in the structure of `targets`."""
        outputs: list[Value] = []
        for index, target in enumerate(targets):
            name = self.node.outputs[index].name
            form = converted(self.lowering.builder, self.output(index), target, name)
            outputs += leaves(form)
        ports: list[OutputPort] = [Yield(i) for i in range(len(outputs))]
        return self._close(outputs, ports, self._input_ports(inputs))

    def _input_ports(self, inputs: _Inputs) -> list[tuple[Value, InputPort]]:
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

    def finish_loop(self, states: list[Form | None], inputs: _Inputs) -> tuple[Body, list[Form]]:
        """The lowered body of a Loop, and the structure of each of the node's outputs."""
        b = self.lowering.builder
        carried: dict[int, Form] = {}
        for port, state in zip(self.body.inputs, states, strict=True):
            if isinstance(port, Carried) and state is not None:
                carried[port.output] = state
        # The node's outputs keep their order, each in as many values as its form has leaves.
        targets: list[Form | None] = [None] * len(self.node.outputs)
        by_output: list[Form] = []
        for index, (value, exit) in enumerate(self.body.exits()):
            form: Form | None = self.lowering.form(value)
            if isinstance(exit, Condition) and isinstance(form, Open):
                form = to_rank(b, form, 0)
            own = form
            if index in carried:
                form = converted(b, form, carried[index], value.name)
            assert form is not None
            by_output.append(form)
            if isinstance(exit, Yield | Stacked) and exit.output is not None:
                targets[exit.output] = form
                if isinstance(form, Open) and isinstance(own, Value | Open) and _runs(self.node):
                    # What it starts as does not come out.
                    targets[exit.output] = replace(form, shapes=shapes_of(own))
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
            is_open = isinstance(form, Open)
            if is_open and isinstance(exit, Stacked) and (exit.axis or exit.keepdims):
                raise Refused("it stacks values of open rank along an axis that is not the first")
            for offset, leaf in enumerate(leaves(form)):
                outputs.append(leaf)
                ports.append(_moved(exit, first, offset))
        entries = self._loop_entries(states, inputs, place)
        body = self._close(outputs, ports, entries)
        return body, [t for t in targets if t is not None]

    def _loop_entries(
        self, states: list[Form | None], inputs: _Inputs, place: dict[int, int]
    ) -> list[tuple[Value, InputPort]]:
        starts: dict[int, Iterator[Value]] = {}
        offsets: dict[int, int] = {}
        for port, state in zip(self.body.inputs, states, strict=True):
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
                    assert outer is not None
                    entries.append((value, replace(port, input=inputs.index(outer))))
                case Iteration():
                    entries.append((value, port))
        return entries


def _same(a: Form | None, b: Form | None) -> bool:
    """Whether two forms have one structure, and leaves of the same types."""
    if a is None or b is None:
        return a is b
    return same_structure(a, b) and known_types(a) == known_types(b)


def _widened(state: Value | Open, again: Value | Open, bounded: bool) -> Value | Open:
    """A tensor that may be what a state is before and after an iteration."""
    wide = either(state, again)
    if isinstance(wide, Value):
        assert isinstance(state, Value) and isinstance(again, Value)
        type = widen(state.type, again.type)
        return state if type == state.type else Value(type, state.names)
    ranks = ranks_of_item(state)
    if wide.shapes is None or not (bounded or ranks_of_item(wide) == ranks):
        return replace(wide, shapes=None)
    known = {len(shape): shape for shape in shapes_of(state) or ()}
    shapes = (
        tuple(d if d == o else ANY for d, o in zip(s, known.get(len(s), s), strict=True))
        for s in wide.shapes
    )
    return replace(wide, shapes=tuple(shapes))


def _runs(loop: Node) -> bool:
    """Whether a Loop is known to run an iteration."""
    trips, again = integers(loop.trip_count), integers(loop.condition)
    counted = loop.trip_count is None or (trips is not None and trips[0] > 0)
    sliced = any(isinstance(port, Sliced) for port in loop.body.inputs)
    return counted and not sliced and (loop.condition is None or again == (1,))


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
