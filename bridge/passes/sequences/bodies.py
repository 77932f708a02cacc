"""A body of an If or a Loop while its sequences, optionals and tensors of open rank are lowered.

A form of a value has several leaves. So an old input of the body becomes several new inputs, one
for each leaf, and so does an old output. There are three stages, for Ifs in `ifs.py` and for Loops
in `loops.py`:

1. The body gets its new inputs, and the node the inputs that they take.
2. The nodes of the body are lowered.
3. The outputs are brought into the forms that both branches have, or all iterations.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from bridge.neutral.captures import Captures
from bridge.neutral.graph import Body, Node, Value
from bridge.neutral.inference.computed import enter_known
from bridge.neutral.ports import InputPort, Invariant, OutputPort, outer_input
from bridge.passes.sequences.elements import Captured, Elements
from bridge.passes.sequences.form import Form, is_compound
from bridge.passes.sequences.ragged import Ragged
from bridge.passes.sequences.tensors import Open, Plain
from bridge.passes.sequences.uniform import Uniform

if TYPE_CHECKING:
    from bridge.passes.sequences.lower import Lowering

F = TypeVar("F", bound=Form)


class BodyLowering:
    """Lowers the `body` of a node, which has this `role` there. `outer` lowers the graph around it,
    `inner` the graph in it. `captures` are the inputs of the new node. `entries` are the new inputs
    of the body, with their ports."""

    def __init__(
        self, outer: Lowering, node: Node, role: str, body: Body, captures: Captures
    ) -> None:
        self.outer, self.node, self.role, self.body = outer, node, role, body
        self.inner = outer.inside(node, role, body.graph)
        self.captures = captures
        self.entries: list[tuple[Value, InputPort]] = []
        self._movable: dict[Value, Ragged | Uniform] = {}
        outer.branches.enter(node, body)

    def capture(self, value: Value, port: Invariant) -> None:
        """Gives the body, for its old input `value`, a value of the graph around."""
        source = self.source(port)
        form = self.outer.form(source)
        if isinstance(form, Plain) and not is_compound(value):
            self._capture_value(value, form.value)
            return
        taken = self._captured_form(value, form)
        if isinstance(taken, Open):
            self.inner.bind(value, self.narrowed(taken, source))
            return
        if isinstance(taken, Elements) and (self.node.op == "Loop" or isinstance(form, Captured)):
            movable = partial(self._as_movable, value, source)
            taken = Captured(taken.items, taken.item, movable)
        self.inner.forms[value] = taken

    def source(self, port: InputPort) -> Value:
        """The old input of the node that an old input of the body takes."""
        place = outer_input(port)
        assert place is not None
        return self.node.operand(place)

    def narrowed(self, form: Open, source: Value) -> Open:
        """A captured tensor with only the shapes that it can have in this body."""
        return form

    def _capture_value(self, value: Value, outer: Value) -> None:
        """Makes `value` an input of the body that takes `outer`."""
        enter_known(value, outer)
        self.entries.append((value, Invariant(self.captures.index(outer))))

    def _captured_form(self, value: Value, form: F) -> F:
        """A form of the graph around, in the body: each leaf is an input or a constant."""
        leaves: list[Value] = []
        for leaf, names in zip(form.leaves(), names_of_leaves(value, form), strict=True):
            if leaf.constant is not None:
                leaves.append(self.inner.builder.tensor(leaf.constant))
            else:
                leaves.append(Value(leaf.type, names))
                self._capture_value(leaves[-1], leaf)
        return form.with_leaves(iter(leaves))

    def _as_movable(self, value: Value, source: Value) -> Ragged | Uniform:
        """Captured elements in a form that can be indexed at run time."""
        if value not in self._movable:
            around = self.outer.movable
            if source not in around:
                form = self.outer.form(source)
                assert isinstance(form, Elements)
                with self.outer.builder as b:
                    around[source] = form.movable(b, source.name)
            self._movable[value] = self._captured_form(value, around[source])
        return self._movable[value]

    def close(self, exits: Iterable[tuple[Value, OutputPort]]) -> Body:
        """The lowered body, with these outputs."""
        self.body.graph.nodes = self.inner.nodes
        self.body.set_entries(self.entries)
        self.body.set_exits(exits)
        return self.body


def names_of_leaves(value: Value, form: Form) -> list[list[str]]:
    """The names of each leaf of the form of a value."""
    return [[f"{name}.{leaf}" for name in value.names] for leaf in form.leaf_names()]
