"""Loops whose states, slices or stacks are sequences, optionals or tensors of open rank.

A state has to keep its structure from iteration to iteration. So the body is lowered with the form
in which a state starts. If an iteration gives another form, it is lowered anew with a form that can
hold both, until no form changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from bridge.neutral.builder import Builder
from bridge.neutral.captures import Captures
from bridge.neutral.clone import clone_body
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.control import enter, part_type
from bridge.neutral.ports import (
    Carried,
    Condition,
    Invariant,
    Iteration,
    OutputPort,
    Sliced,
    Stacked,
    Yield,
)
from bridge.neutral.types import meet
from bridge.operators import Refused
from bridge.operators.control.idle import never_runs, surely_runs, what_went_in
from bridge.passes.sequences.bodies import BodyLowering, names_of_leaves
from bridge.passes.sequences.form import Fails, Form, is_compound
from bridge.passes.sequences.join import same_form, widened
from bridge.passes.sequences.maybe import content_for
from bridge.passes.sequences.shape_vectors import unsettled
from bridge.passes.sequences.tensors import Open, Plain, TensorForm

if TYPE_CHECKING:
    from bridge.passes.sequences.lower import Lowering

StateForms = Mapping[int, Form]
"""The forms of the states of a Loop, by the place of the old input of the body."""

MOST_ROUNDS = 6
"""Times that a Loop's body is tried until its states keep their structure."""

ROUNDS_OF_RANKS = 3
"""The rounds in which a state may get further ranks; if it still does later, it has no bound."""


class LoopBody(BodyLowering):
    """Lowers a copy of the body of a Loop, with `states` in the forms to try.

    The start of a state is brought into its form at last. Until then, places among the inputs of
    the node are reserved for its leaves. `_leaves` are the numbers of the leaves that the new
    inputs stand for."""

    def __init__(self, outer: Lowering, node: Node, captures: Captures, states: StateForms) -> None:
        super().__init__(outer, node, "body", clone_body(node.body), captures)
        self.states = states
        self._reserved: dict[int, list[int]] = {}
        self._leaves: dict[Value, int] = {}

    def run(self) -> None:
        """Gives the body its inputs, and lowers its nodes."""
        for index, (value, port) in enumerate(self.body.entries()):
            match port:
                case Carried() if index in self.states:
                    self._carry(index, value, port)
                case Sliced():
                    self._slice(value, port)
                case Invariant():
                    self.capture(value, port)
                case _:
                    self.entries.append((value, port))
                    if isinstance(port, Iteration):
                        enter(self.node, value, port)
        self.inner.run()

    def _carry(self, index: int, value: Value, port: Carried) -> None:
        """Gives the body a state. The condition of a Loop starts as the node's own."""
        state = self.states[index]
        if isinstance(state, Plain) and not is_compound(value):
            value.type = state.value.type
            leaves = [value]
        else:
            names = names_of_leaves(value, state)
            leaves = [Value(type, own) for type, own in zip(state.leaf_types(), names, strict=True)]
            self.inner.forms[value] = state.with_leaves(iter(leaves))
        is_condition = isinstance(self.body.outputs[port.output], Condition)
        for number, leaf in enumerate(leaves):
            self._leaves[leaf] = number
            if not is_condition:
                place = self.captures.add()
                self._reserved.setdefault(index, []).append(place)
                port = replace(port, input=place)
            self.entries.append((leaf, port))

    def _slice(self, value: Value, port: Sliced) -> None:
        """Gives the body a part of a tensor."""
        source = self.source(port)
        whole = self.outer.form(source)
        if isinstance(whole, Plain):
            value.type = meet(part_type(whole.value.type, port), value.declared)
            self.entries.append((value, replace(port, input=self.captures.index(whole.value))))
            return
        if not isinstance(whole, Open):
            raise Refused("it slices a sequence or an optional")
        parts = self.outer.parts.get((source, port))
        if parts is None:
            parts = self.outer.parts[source, port] = whole.sliced(self.outer.builder, port)
        part = Value(part_type(parts.data.type, port), list(value.names))
        shape = Value(parts.shape.type, [f"{name}.shape" for name in value.names])
        self.entries += (
            (part, replace(port, input=self.captures.index(parts.data))),
            (shape, Invariant(self.captures.index(parts.shape))),
        )
        data = self.inner.builder.op("Reshape", part, [-1])
        self.inner.forms[value] = Open(data, shape, parts.shapes)

    def next_states(self, bounded: bool) -> StateForms:
        """The forms that the states need after an iteration. A rank that is still open to more than
        before has no bound if `bounded` is false."""
        after: dict[int, Form] = {}
        for index, state in self.states.items():
            port = self.body.inputs[index]
            assert isinstance(port, Carried)
            value, _ = self.body.exit_of(port)
            after[index] = widened(state, self.inner.form(value), bounded, value.name)
        return after

    def finish(self) -> tuple[Body, list[Form]]:
        """The lowered body, and the structure of each of the node's outputs."""
        kept = {
            port.output: self.states[index]
            for index, port in enumerate(self.body.inputs)
            if isinstance(port, Carried) and index in self.states
        }
        forms: list[Form] = []
        targets: dict[int, Form] = {}
        for index, (value, exit) in enumerate(self.body.exits()):
            iteration = self.inner.form(value)
            forms.append(self._in_form_of_state(value, exit, kept.get(index)))
            if isinstance(exit, Yield | Stacked) and exit.output is not None:
                targets[exit.output] = self._output_form(exit, forms[-1], iteration)
        results = [targets[index] for index in range(len(self.node.outputs))]
        self._start()
        inside, outside = _first_leaves(forms), _first_leaves(results)
        self.entries = [
            (value, replace(port, output=inside[port.output] + self._leaves.get(value, 0)))
            if isinstance(port, Carried) else (value, port)
            for value, port in self.entries
        ]  # fmt: skip
        exits = [
            (leaf, _port_of_leaf(exit, number, outside))
            for form, exit in zip(forms, self.body.outputs, strict=True)
            for number, leaf in enumerate(form.leaves())
        ]
        return self.close(exits), results

    def _in_form_of_state(self, value: Value, exit: OutputPort, state: Form | None) -> Form:
        """The form of an output of the body: the one of its state. A condition is a scalar."""
        form = self.inner.form(value)
        with self.inner.builder as b:
            if isinstance(exit, Condition) and isinstance(form, Open):
                form = Plain(form.at_rank(b, 0))
            return form if state is None else state.hold(b, form, value.name)

    def _output_form(self, exit: Yield | Stacked, form: Form, iteration: Form) -> Form:
        """The output of a Loop for a body output, in the structure of `form`. If the Loop surely
        runs, a state has the shapes of `iteration`, its output."""
        if not isinstance(form, Open) or not isinstance(iteration, TensorForm):
            return form
        if isinstance(exit, Stacked) and (exit.axis or exit.keepdims):
            raise unsettled("it stacks values of open rank along an axis that is not the first")
        runs = surely_runs(self.node, self.node.inputs[:2])
        return replace(form, shapes=iteration.known_shapes()) if runs else form

    def _start(self) -> None:
        """Gives the node the first values of the states, in the forms that these keep."""
        for index, reserved in self._reserved.items():
            source = self.source(self.body.inputs[index])
            form = self.states[index].hold(self.outer.builder, self.outer.form(source), source.name)
            for place, leaf in zip(reserved, form.leaves(), strict=True):
                self.captures.inputs[place] = leaf


def _port_of_leaf(exit: OutputPort, number: int, first: Sequence[int]) -> OutputPort:
    """The port of a leaf of a body output. `first` are the node's first outputs for the forms."""
    if isinstance(exit, Condition) or exit.output is None:
        return exit
    return replace(exit, output=first[exit.output] + number)


def _first_leaves(forms: Sequence[Form]) -> list[int]:
    """The place of the first leaf of each form among all leaves."""
    return [*accumulate((len(form.leaves()) for form in forms), initial=0)]


def lower_loop(lowering: Lowering, node: Node) -> None:
    """Lowers a Loop. If its body fails whenever it runs, the Loop gives what it gives without an
    iteration, unless it surely runs."""
    heads = [lowering.head(node, index) for index in (0, 1)]
    if never_runs(heads) and _skip(lowering, node):
        return
    _part_condition(lowering.builder, node)
    try:
        body = _settled_body(lowering, node, heads)
    except Fails as failure:
        if surely_runs(node, heads) or not _skip(lowering, node):
            raise
        lowering.pruned.append(f"{lowering.where} / {node!r}: its body fails, {failure}")
        return
    lowering.pruned += body.inner.pruned
    lowered, targets = body.finish()
    lowering.make(node, body.captures.inputs, (lowered,), targets)
    for port in node.body.outputs:
        form = lowering.forms.get(node.outputs[port.output]) if isinstance(port, Stacked) else None
        if isinstance(port, Stacked) and isinstance(form, Open):
            lowering.forms[node.outputs[port.output]] = form.stacked(lowering.builder)


def _skip(lowering: Lowering, node: Node) -> bool:
    """Gives the outputs of a Loop that does not run: its first states, and empty stacks. False if
    these are not known."""
    results = what_went_in(lowering.builder, node)
    if results is None:
        return False
    for value, result in zip(node.outputs, results, strict=True):
        lowering.bind(value, content_for(value, lowering.form(result)))
    return True


def _settled_body(lowering: Lowering, node: Node, heads: list[Value | None]) -> LoopBody:
    """A Loop's body, lowered with states in forms that they keep."""
    states: StateForms = {
        index: lowering.form(start)
        for index, port in enumerate(node.body.inputs)
        if isinstance(port, Carried) and (start := node.outer(port)) is not None
    }
    for round in range(MOST_ROUNDS):
        body = LoopBody(lowering, node, Captures(list(heads)), states)
        body.run()
        after = body.next_states(bounded=round < ROUNDS_OF_RANKS)
        if all(same_form(state, after[index]) for index, state in states.items()):
            return body
        states = after
    raise Refused("the structure of a sequence in its state never settles")


def _part_condition(b: Builder, node: Node) -> None:
    """Makes a separate state, in place, of a condition that the body takes in several ranks,
    because the condition of a Loop is a scalar. An absent first condition is true."""
    body = node.body
    for index, (value, port) in enumerate(body.entries()):
        if isinstance(port, Carried) and value.rank is None:
            again, exit = body.exit_of(port)
            if isinstance(exit, Condition):
                place, first = body.add_exit(again, Yield(None)), port.input
                if first is None:
                    first = len(node.inputs)
                    node.inputs.append(b.constant(True))
                body.inputs[index] = Carried(first, place)
