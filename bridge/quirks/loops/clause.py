"""The safe form of a Loop for an engine: a list of clauses, and one rewrite that gives a Loop the
clauses that it lacks.

A clause is one sentence about a Loop, such as "each state starts with a size of its own". Its
function finds the ports that do not fulfil it, and another one, `gives`, changes the Loop so that
they do. The meaning of the Loop stays.

A clause may want a Loop in an If that tests whether the Loop runs (`Draft.wants_guard`). The other
branch gives the outputs of a Loop without an iteration.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

from bridge.neutral.builder import Builder
from bridge.neutral.graph import Body, Graph, Node, Value
from bridge.neutral.ports import Carried, Stacked, outer_input
from bridge.operators import Result
from bridge.operators.control.loop_builder import LoopBuilder, is_positive
from bridge.passes.context import Context
from bridge.quirks.loops.guards import guarded, is_guarded, may_be_guarded
from bridge.quirks.quirk import EngineFault, Place, Quirk, RunQuirk, rewriting


@dataclass(eq=False)
class Draft:
    """A Loop on its way to the safe form: the original node, its place, and the new Loop.

    `wants_guard` is whether a clause wants the Loop in an If. `idle` has the values of outputs
    without an iteration, if these are not the initial states. `retyped` are the outputs that get
    their type behind the Loop.
    """

    b: Builder
    node: Node
    place: Place
    loop: LoopBuilder
    wants_guard: bool = False
    idle: dict[int, Value] = field(default_factory=dict)
    retyped: set[int] = field(default_factory=set)

    @property
    def body(self) -> Body:
        """The body of the new Loop."""
        return self.loop.body

    @property
    def so_far(self) -> Node:
        """The new Loop in its present state, with the outputs of the original node."""
        made = Node("Loop", self.loop.inputs, [], bodies=(self.body,))
        made.outputs = self.node.outputs
        return made

    @property
    def is_guarded(self) -> bool:
        """Whether the Loop stands in an If that tests whether it runs, or will stand in one."""
        return self.wants_guard or is_guarded(self.loop.inputs, self.place)

    @property
    def may_be_guarded(self) -> bool:
        """Whether the Loop may run no iteration, has no If as its guard, and can get one."""
        return not self.is_guarded and may_be_guarded(self.node, self.loop.inputs)

    @property
    def surely_runs(self) -> bool:
        """Whether the trip count and the condition are known to let an iteration run."""
        return all(head is None or is_positive(head) for head in self.loop.inputs[:2])

    @property
    def stacks(self) -> list[Stacked]:
        """The ports of the stacks."""
        return [exit for exit in self.body.outputs if isinstance(exit, Stacked)]

    @property
    def states(self) -> Iterator[tuple[Value, Carried, Value]]:
        """The states of the new Loop; see `states_of`."""
        return states_of(self.loop)

    def start_with(self, port: Carried, initial: Value) -> None:
        """Has only this state start with another value."""
        index, entries = port.input, self.body.inputs
        assert index is not None
        if sum(outer_input(other) == index for other in entries) == 1:
            self.loop.inputs[index] = initial
        else:
            entries[entries.index(port)] = Carried(self.loop.outer(initial), port.output)

    def enter_as(self, entries: dict[Value, Value], nodes: Sequence[Node]) -> None:
        """Has the body read other values instead of these keys. The nodes that it needs go to its
        front."""
        graph = self.body.graph
        gone = {old: new for old, new in entries.items() if old not in graph.inputs}
        for node in graph.nodes:
            node.inputs = [None if v is None else entries.get(v, v) for v in node.inputs]
            if node.extras and "provenance" in node.extras:
                node.extras["provenance"] = node.extras["provenance"].of(lambda v: gone.get(v, v))
        graph.outputs = [entries.get(v, v) for v in graph.outputs]
        read = {*graph.outputs, *(value for node in graph.nodes for value in node.inputs)}
        needed: list[Node] = []
        for node in reversed(nodes):
            if not read.isdisjoint(node.outputs):
                needed.insert(0, node)
                read.update(node.inputs)
        graph.prepend(needed)

    def build(self) -> Sequence[Value]:
        """The outputs of the Loop, behind the Loop and its If."""
        made = Builder([], self.b.name, self.b.target)
        results = self.loop.make(made)
        for index, (new, old) in enumerate(zip(results, self.node.outputs, strict=True)):
            if index not in self.retyped:
                new.type = new.declared = old.type
        if self.wants_guard:
            (loop,) = made.nodes
            results = guarded(self.b, loop, self.idle, self.place)
        else:
            self.b.nodes += made.nodes
        return self.loop.finished(self.b, results)


def states_of(loop: LoopBuilder) -> Iterator[tuple[Value, Carried, Value]]:
    """The states of a Loop, their ports, and their initial values. A state whose rank changes is
    left out, and so is the trip count as a state."""
    for value, port in loop.body.entries():
        initial = loop.initial(port) if isinstance(port, Carried) else None
        if not isinstance(port, Carried) or port.input == 0 or initial is None:
            continue
        if initial.rank == value.rank:
            yield value, port, initial


Give = Callable[[Draft, Any], None]


@dataclass(eq=False, kw_only=True)
class Clause(Quirk):
    """A quirk that is a clause of the safe Loop; `holds` is its sentence.

    `lacks` finds the ports, or other things, that do not fulfil it. The list is empty if all do.
    `give` changes the Loop so that they do. `retypes` is whether outputs get another type inside
    the Loop. `run` gives a Loop this clause alone.
    """

    holds: str
    lacks: Callable[[Draft], Collection[Any]]
    retypes: bool = False
    give: Give = field(init=False)

    def gives(self, give: Give) -> Give:
        """Declares how a Loop gets the clause."""
        self.give = give
        return give


def clause(
    holds: str, retypes: bool = False, **fault: Unpack[EngineFault]
) -> Callable[[Callable[[Draft], Collection[Any]]], Clause]:
    """Declares a clause, over the function that finds what does not fulfil it."""

    def declared(lacks: Callable[[Draft], Collection[Any]]) -> Clause:
        def run(graph: Graph, context: Context) -> bool | None:
            return making_safe((made,))(graph, context)

        needs = frozenset({"Loop"})
        made = Clause(
            declared=lacks, run=run, needs=needs, at=("Loop",), holds=holds, lacks=lacks,
            retypes=retypes, **fault,
        )  # fmt: skip
        return made

    return declared


def making_safe(clauses: Sequence[Clause]) -> RunQuirk:
    """A pass that gives each Loop the clauses that it lacks, in their order."""

    def made_safe(b: Builder, node: Node, place: Place) -> Result:
        draft = Draft(b, node, place, LoopBuilder.of(node))
        given = [clause for clause in clauses if _is_given(clause, draft)]
        place.fired.extend((clause.name, place.path(node)) for clause in given)
        return draft.build() if given else None

    return rewriting("Loop", by=made_safe, uses=True)


def _is_given(clause: Clause, draft: Draft) -> bool:
    """Gives a Loop one clause. Returns whether the Loop lacked it."""
    lacking = clause.lacks(draft)
    if not lacking:
        return False
    # A later clause changes the Loop that earlier clauses left. So its steps come first behind the
    # Loop.
    behind, draft.loop.finish = draft.loop.finish, {}
    clause.give(draft, lacking)
    if clause.retypes:
        draft.retyped |= {*draft.loop.finish}
    for index, steps in behind.items():
        draft.loop.finish.setdefault(index, []).extend(steps)
    return True
